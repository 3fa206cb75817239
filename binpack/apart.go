package binpack

import (
	"cmp"
	"slices"
)

// apart is a tag that keeps its bearers in different bins, so that their number says how many bins there must be. A
// relaxation takes it for one more resource: each bearer that brings a limit on its own tag takes what it adds, and a bin
// holds the highest of these limits, less what it carries already; for as soon as one such bearer is in the bin, all
// together stay within its limit.
type apart struct {
	tag int32
	max int64
}

const (
	// maxApart is how many tags a relaxation takes in, for each makes all its searches longer.
	maxApart = 3
	// apartShare is what a tag must call for to matter, as a share of the bins that the most demanding tag calls for, or the
	// resources if it is they.
	apartShare = 0.3
)

// apartTags are the tags that call for the most bins by themselves for these counts of items, the most demanding first.
// A tag that only items of one size and profile share is left out: how many of them one bin holds is known without.
func (in *Instance) apartTags(counts []int) []apart {
	type claim struct {
		apart
		adds  int64
		item  int // one of the bearers
		mixed bool
	}
	var claims []claim
	at := map[int32]int{}
	for _, i := range in.order {
		if counts[i] <= 0 {
			continue
		}
		for _, add := range in.itemTags[i].adds {
			most, ok := capOf(&in.itemTags[i], add.tag)
			if !ok || most <= 0 {
				continue
			}
			k, known := at[add.tag]
			if !known {
				k = len(claims)
				at[add.tag] = k
				claims = append(claims, claim{apart: apart{tag: add.tag}, item: i})
			}
			c := &claims[k]
			c.max = max(c.max, int64(most))
			c.adds += int64(add.n) * int64(counts[i])
			c.mixed = c.mixed || in.profile[c.item] != in.profile[i] || !slices.Equal(in.problem.Items[c.item].Size, in.problem.Items[i].Size)
		}
	}
	need := in.fullBins(counts)
	for _, c := range claims {
		need = max(need, float64(c.adds)/float64(c.max))
	}
	claims = slices.DeleteFunc(claims, func(c claim) bool {
		bins := float64(c.adds) / float64(c.max)
		return !c.mixed || bins < 2 || bins < apartShare*need
	})
	names := make(map[int32]string, len(claims))
	for name, tag := range in.tags {
		if _, ok := at[tag]; ok {
			names[tag] = name
		}
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(float64(b.adds)/float64(b.max), float64(a.adds)/float64(a.max)), cmp.Compare(names[a.tag], names[b.tag]))
	})
	var out []apart
	for _, c := range claims[:min(len(claims), maxApart)] {
		out = append(out, c.apart)
	}
	return out
}

// fullBins is how many bins of the largest room the items would fill.
func (in *Instance) fullBins(counts []int) float64 {
	need := 0.0
	for r := range in.dims {
		largest, sum := int64(0), 0.0
		for t := range in.problem.Types {
			largest = max(largest, in.capacityOf(int32(t))[r])
		}
		for i, n := range counts {
			sum += float64(in.problem.Items[i].Size[r]) * float64(max(n, 0))
		}
		if largest > 0 {
			need = max(need, sum/float64(largest))
		}
	}
	return need
}

// takes is what one of the item takes of the tag's room.
func (a apart) takes(t *tagProfile) int64 {
	if _, ok := capOf(t, a.tag); !ok {
		return 0
	}
	for _, add := range t.adds {
		if add.tag == a.tag {
			return int64(add.n)
		}
	}
	return 0
}

// room is how much of the tag a bin holds that has these tags when it is empty.
func (a apart) room(t *tagProfile) int64 {
	room := a.max
	if most, ok := capOf(t, a.tag); ok {
		room = min(room, int64(most))
	}
	for _, add := range t.adds {
		if add.tag == a.tag {
			room -= int64(add.n)
		}
	}
	return max(room, 0)
}

// withRooms is the room of a bin by resource and then by tag.
func withRooms(room []int64, tags []apart, t *tagProfile) []int64 {
	if len(tags) == 0 {
		return room
	}
	out := make([]int64, 0, len(room)+len(tags))
	out = append(out, room...)
	for _, a := range tags {
		out = append(out, a.room(t))
	}
	return out
}
