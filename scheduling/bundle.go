package scheduling

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// bundle is pods that must share a node, because one has affinity to another by the hostname: they are packed as one
// thing. A bundle that is tied to a room is a pod that follows pods which run there.
type bundle struct {
	slots    []slot
	room     int // -1: any node
	requests []int64
	required requirements.Alternatives
	tags     []string
	limits   []Limit
}

// slot is a number of pods of one part in a domain.
type slot struct{ part, domain, count int }

// follows reports whether the part has affinity by the hostname.
func (s *settler) follows(pt *part) bool {
	return slices.ContainsFunc(pt.st.terms, func(t term) bool { return !t.anti && s.p.onHostname(t.group) })
}

// seatNear finds where one more pod of the part may sit in the domain: with pods that run, in a bundle that has what it
// asks for, with a pod that is still on its own, or, if nobody is there yet and it is what it asks for, as the first of
// its kind. It returns the number of the bundle, a new one if need be, or -1.
func (s *settler) seatNear(i, d int) int {
	pt := s.parts[i]
	if b := s.joinRoom(i, d); b >= 0 {
		return b
	}
	for b, bd := range s.bundles {
		if bd.room < 0 && s.hasTargets(pt, bd) && s.consistent(pt, d, bd) {
			if grown, ok := s.grow(bd, i, d); ok {
				s.bundles[b] = grown
				return b
			}
		}
	}
	if b := s.pairUp(i, d); b >= 0 {
		return b
	}
	for _, t := range pt.st.terms {
		if !t.anti && s.p.onHostname(t.group) && !(t.self && s.groups[t.group].total == 0) {
			return -1
		}
	}
	if alone, ok := s.grow(&bundle{room: -1, required: requirements.AnyOf(requirements.Set{})}, i, d); ok {
		s.bundles = append(s.bundles, alone)
		return len(s.bundles) - 1
	}
	return -1
}

// joinRoom looks for an existing node where pods run that the part asks for.
func (s *settler) joinRoom(i, d int) int {
	pt := s.parts[i]
	c := s.p.Classes[pt.class]
	for r := range s.p.Rooms {
		room := &s.p.Rooms[r]
		near := !slices.ContainsFunc(pt.st.terms, func(t term) bool {
			name, _ := room.value(corev1.LabelHostname)
			return !t.anti && s.p.onHostname(t.group) && s.p.groups.all[t.group].counts[name] == 0
		})
		if !near || copies(s.roomLeft(r), c.requests) == 0 || !pt.st.required.Compatible(room.Labels, requirements.Keys{}) || !s.inDomain(pt, d, room.Labels) {
			continue
		}
		name, _ := room.value(corev1.LabelHostname)
		b, ok := s.grow(&bundle{room: r, required: requirements.AnyOf(requirements.MustOf(requirements.In(corev1.LabelHostname, name)))}, i, d)
		if !ok || !s.tagsHold(b, room.Tags, room.Limits, s.inRoom(r)) {
			continue
		}
		subtract(s.roomLeft(r), c.requests)
		s.bundles = append(s.bundles, b)
		return len(s.bundles) - 1
	}
	return -1
}

// roomLeft is what this settler has not yet given away of a room to pods that must be there.
func (s *settler) roomLeft(r int) []int64 {
	if s.rooms == nil {
		s.rooms = map[int][]int64{}
	}
	if s.rooms[r] == nil {
		s.rooms[r] = slices.Clone(s.p.Rooms[r].Free)
	}
	return s.rooms[r]
}

// inRoom lists the bundles that are tied to the room.
func (s *settler) inRoom(r int) []*bundle {
	var out []*bundle
	for _, b := range s.bundles {
		if b.room == r {
			out = append(out, b)
		}
	}
	return out
}

// inDomain reports whether a node with these labels is in the domain.
func (s *settler) inDomain(pt *part, d int, labels requirements.Set) bool {
	for k, key := range pt.keys {
		if f := s.p.filters[key]; f != nil {
			if !slices.Contains(f.values(labels, pt.st.required), pt.domains[d].values[k]) {
				return false
			}
			continue
		}
		if v, ok := labels.Get(key).Single(); !ok || v != pt.domains[d].values[k] {
			return false
		}
	}
	return true
}

// hasTargets reports whether the bundle holds a pod for each thing that the part wants near.
func (s *settler) hasTargets(pt *part, b *bundle) bool {
	for _, t := range pt.st.terms {
		if t.anti || !s.p.onHostname(t.group) {
			continue
		}
		if !slices.ContainsFunc(b.slots, func(sl slot) bool {
			return slices.Contains(s.p.Classes[s.parts[sl.part].class].memberOf, t.group)
		}) {
			return false
		}
	}
	return true
}

// consistent reports whether a pod in the domain can be on the bundle's node: keys that both know have one value.
func (s *settler) consistent(pt *part, d int, b *bundle) bool {
	for _, sl := range b.slots {
		other := s.parts[sl.part]
		for k, key := range pt.keys {
			if o := slices.Index(other.keys, key); o >= 0 && other.domains[sl.domain].values[o] != pt.domains[d].values[k] {
				return false
			}
		}
	}
	return true
}

// pairUp makes a bundle of the part's pod and a pod that is on its own so far.
func (s *settler) pairUp(i, d int) int {
	pt := s.parts[i]
	for j, other := range s.parts {
		if s.follows(other) {
			continue // its pods are in bundles already
		}
		for e := range other.domains {
			if other.placed[e]-s.bundled(j, e) <= 0 {
				continue
			}
			start, ok := s.grow(&bundle{room: -1, required: requirements.AnyOf(requirements.Set{})}, j, e)
			if !ok || !s.hasTargets(pt, start) || !s.consistent(pt, d, start) {
				continue
			}
			if pair, ok := s.grow(start, i, d); ok {
				s.bundles = append(s.bundles, pair)
				return len(s.bundles) - 1
			}
		}
	}
	return -1
}

// bundled is how many pods of a part and domain are in bundles.
func (s *settler) bundled(part, domain int) int {
	n := 0
	for _, b := range s.bundles {
		for _, sl := range b.slots {
			if sl.part == part && sl.domain == domain {
				n += sl.count
			}
		}
	}
	return n
}

// grow is the bundle with one more pod of the part, if some node could hold it.
func (s *settler) grow(b *bundle, i, d int) (*bundle, bool) {
	pt := s.parts[i]
	c := s.p.Classes[pt.class]
	out := &bundle{room: b.room, slots: slices.Clone(b.slots), requests: slices.Clone(c.requests)}
	for r, q := range b.requests {
		if out.requests[r] += q; out.requests[r] < q {
			return nil, false
		}
	}
	at := slices.IndexFunc(out.slots, func(sl slot) bool { return sl.part == i && sl.domain == d })
	if at >= 0 {
		out.slots[at].count++
		out.required = b.required
	} else {
		out.slots = append(out.slots, slot{i, d, 1})
		out.required = b.required.Intersect(pt.st.required)
		if len(pt.keys) > 0 {
			out.required = out.required.Intersect(s.p.pin(pt.keys, &pt.domains[d]))
		}
	}
	out.tags = slices.Concat(b.tags, pt.tags)
	out.limits = b.limits
	if at < 0 {
		out.limits = slices.Concat(b.limits, pt.limits)
	}
	if !s.tagsHold(out, nil, nil, nil) {
		return nil, false
	}
	if out.room >= 0 {
		return out, true
	}
	for k := range s.p.cells {
		cell := &s.p.cells[k]
		if cell.holds(out.requests) && out.required.Compatible(cell.labels, requirements.Keys{}) {
			return out, true
		}
	}
	for r := range s.p.Rooms {
		if within(out.requests, s.p.Rooms[r].Free) && out.required.Compatible(s.p.Rooms[r].Labels, requirements.Keys{}) {
			return out, true
		}
	}
	return nil, false
}

// tagsHold reports whether the bundle, with what else is on its node, keeps all limits.
func (s *settler) tagsHold(b *bundle, tags []string, limits []Limit, others []*bundle) bool {
	count := map[string]int{}
	for _, t := range tags {
		count[t]++
	}
	all := slices.Concat(limits, b.limits)
	for _, t := range b.tags {
		count[t]++
	}
	for _, o := range others {
		for _, t := range o.tags {
			count[t]++
		}
		all = append(all, o.limits...)
	}
	for _, l := range all {
		// A limit that is broken without the bundle is not the bundle's doing, unless it adds to it or brings it.
		if count[l.Tag] > l.Max && (slices.Contains(b.tags, l.Tag) || slices.Contains(b.limits, l)) {
			return false
		}
	}
	return true
}

// text tells bundles apart that cannot be exchanged.
func (b *bundle) text() string {
	var out strings.Builder
	for _, sl := range b.slots {
		fmt.Fprintf(&out, "%d/%d x%d ", sl.part, sl.domain, sl.count)
	}
	fmt.Fprintf(&out, "@%d", b.room)
	return out.String()
}
