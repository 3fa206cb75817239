package binpack

import (
	"cmp"
	"math"
	"slices"
)

// tagProfile is the tags that something adds and the limits that it brings, by number, in order.
type tagProfile struct {
	adds []tagCount
	caps []tagCount
}

// tagCount is a tag with a number: how many there are, or how many are allowed.
type tagCount struct {
	tag int32
	n   int32
}

const noLimit int32 = math.MaxInt32

// tagState is one tag of a bin: how many things carry it and how many are allowed by those that are there.
type tagState struct {
	tag   int32
	count int32
	limit int32
}

func (in *Instance) compileTags() {
	p := &in.problem
	in.tags = map[string]int32{}
	in.itemTags = make([]tagProfile, len(p.Items))
	for i, it := range p.Items {
		in.itemTags[i] = in.tagProfile(it.Tags, it.Limits)
	}
	in.typeTags = make([]tagProfile, len(p.Types))
	for t, typ := range p.Types {
		in.typeTags[t] = in.tagProfile(typ.Tags, typ.Limits)
	}
	in.nodeTags = make([]tagProfile, len(p.Nodes))
	for n, node := range p.Nodes {
		in.nodeTags[n] = in.tagProfile(node.Tags, node.Limits)
	}
}

func (in *Instance) tagProfile(tags []string, limits []Limit) tagProfile {
	var out tagProfile
	number := func(tag string) int32 {
		id, ok := in.tags[tag]
		if !ok {
			id = int32(len(in.tags))
			in.tags[tag] = id
		}
		return id
	}
	byTag := func(a, b tagCount) int { return cmp.Compare(a.tag, b.tag) }
	for _, tag := range tags {
		id := number(tag)
		if k := slices.IndexFunc(out.adds, func(c tagCount) bool { return c.tag == id }); k >= 0 {
			out.adds[k].n++
		} else {
			out.adds = append(out.adds, tagCount{id, 1})
		}
	}
	for _, l := range limits {
		id, n := number(l.Tag), int32(min(l.Max, math.MaxInt32-1))
		if k := slices.IndexFunc(out.caps, func(c tagCount) bool { return c.tag == id }); k >= 0 {
			out.caps[k].n = min(out.caps[k].n, n)
		} else {
			out.caps = append(out.caps, tagCount{id, n})
		}
	}
	slices.SortFunc(out.adds, byTag)
	slices.SortFunc(out.caps, byTag)
	return out
}

// room is how many copies of an item with tags t the state admits, at most want.
func room(state []tagState, t *tagProfile, want int) int {
	for _, add := range t.adds {
		count, limit := lookupTag(state, add.tag)
		if own, ok := capOf(t, add.tag); ok {
			limit = min(limit, own)
		}
		if limit == noLimit {
			continue
		}
		want = min(want, int(max(0, limit-count)/add.n))
	}
	for _, c := range t.caps {
		if count, _ := lookupTag(state, c.tag); count > c.n {
			return 0
		}
	}
	return want
}

func capOf(t *tagProfile, tag int32) (int32, bool) {
	for _, c := range t.caps {
		if c.tag == tag {
			return c.n, true
		}
	}
	return 0, false
}

func lookupTag(state []tagState, tag int32) (count, limit int32) {
	for i := range state {
		if state[i].tag == tag {
			return state[i].count, state[i].limit
		}
	}
	return 0, noLimit
}

// addTags records k copies of an item with tags t.
func addTags(state []tagState, t *tagProfile, k int) []tagState {
	at := func(tag int32) *tagState {
		for i := range state {
			if state[i].tag == tag {
				return &state[i]
			}
		}
		state = append(state, tagState{tag, 0, noLimit})
		return &state[len(state)-1]
	}
	for _, add := range t.adds {
		s := at(add.tag)
		s.count = int32(min(int64(s.count)+int64(add.n)*int64(k), int64(noLimit))) // above every limit there is
	}
	for _, c := range t.caps {
		s := at(c.tag)
		s.limit = min(s.limit, c.n)
	}
	return state
}

// tagsSuit reports whether the shares, on a bin of the type, break none of their own limits and none of the type's.
func (in *Instance) tagsSuit(t int32, shares []Share) bool {
	base := addTags(nil, &in.typeTags[t], 1)
	var added []tagState
	for _, s := range shares {
		added = addTags(added, &in.itemTags[s.Item], s.Count)
	}
	for _, s := range added {
		count, limit := lookupTag(base, s.tag)
		if s.count == 0 { // what the type breaks by itself is not the items' fault
			limit = noLimit
		}
		if int64(count)+int64(s.count) > int64(min(limit, s.limit)) && min(limit, s.limit) != noLimit {
			return false
		}
	}
	return true
}
