package topology

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// bundle is pods that must share a node, because one has affinity to another by the hostname: they are packed as one
// thing. A bundle that is tied to a node is a pod that follows pods which run there.
type bundle struct {
	slots    []Slot
	node     int  // -1: any
	seated   bool // they have their seats on one node to buy
	requests []int64
	required requirements.Alternatives
	tags     []string
	limits   []Limit // that last
	passing  []Limit // that held when those pods came who brought them
}

// seatNear finds where one more pod of the part may sit in the domain: with pods that run, in a bundle that has what it
// asks for, with a pod that is still on its own, or, if nobody is there yet and it is what it asks for, as the first of
// its kind. It returns the number of the bundle, a new one if need be, or -1.
func (s *settler) seatNear(i, d int) int {
	if b := s.joinNode(i, d); b >= 0 {
		return b
	}
	for b := range s.bundles {
		if s.joinBundle(i, d, b) {
			return b
		}
	}
	if b := s.pairUp(i, d); b >= 0 {
		return b
	}
	return s.alone(i, d)
}

// alone makes a bundle of one pod of the part, which others may join; -1 if it follows others that are there already.
func (s *settler) alone(i, d int) int {
	for _, t := range s.parts[i].st.terms {
		if !t.anti && s.p.inNode(t.group) && (!t.self || s.groups[t.group].total != 0) {
			return -1
		}
	}
	if alone, ok := s.grow(&bundle{node: -1, required: requirements.AnyOf(requirements.Set{})}, i, d); ok {
		return s.addBundle(alone)
	}
	return -1
}

// joinNode looks for an existing node where pods run that the part asks for, the one with most room first: pods that
// have a choice of nodes will want some of it.
func (s *settler) joinNode(i, d int) int {
	pt := s.parts[i]
	for _, n := range s.roomiest(pt.Class) {
		node := &s.p.nodes[n]
		alone := slices.ContainsFunc(pt.st.terms, func(t term) bool {
			return !t.anti && s.p.inNode(t.group) && !s.runs(t.group, n)
		})
		if alone || !pt.st.required.Compatible(node.Labels, requirements.Keys{}) || !s.p.contains(pt, d, node.Labels) {
			continue
		}
		if b := s.begin(i, d, n); b >= 0 {
			return b
		}
	}
	return -1
}

// joinBundle puts one more pod of the part into a bundle that has what it asks for, and reports whether it could. Bundles
// only grow, so one that could not take it is not asked again.
func (s *settler) joinBundle(i, d, b int) bool {
	pt, bd := s.parts[i], s.bundles[b]
	refused := &pt.refused[d]
	if refused.has(b) || !s.hasTargets(pt, bd) {
		return false
	}
	if s.consistent(pt, d, bd) {
		if grown, ok := s.join(bd, i, d); ok {
			s.bundles[b] = grown
			pt.bundled[d]++
			return true
		}
	}
	refused.add(b)
	return false
}

// numbers is a set of numbers that are not negative, such as those of bundles.
type numbers []uint64

func (n numbers) has(i int) bool { return i/64 < len(n) && n[i/64]>>(i%64)&1 != 0 }

func (n *numbers) add(i int) {
	for len(*n) <= i/64 {
		*n = append(*n, 0)
	}
	(*n)[i/64] |= 1 << (i % 64)
}

// join is the bundle with one more pod of the part. On an existing node there must be room, beside what else is tied to it.
func (s *settler) join(b *bundle, i, d int) (*bundle, bool) {
	grown, ok := s.grow(b, i, d)
	if !ok || b.node < 0 {
		return grown, ok
	}
	pt, node := s.parts[i], &s.p.nodes[b.node]
	requests := s.beside(b, &s.p.classes[pt.Class])
	others := slices.DeleteFunc(s.bundlesOn(b.node), func(o *bundle) bool { return o == b })
	if !fits(requests, s.freeOn(b.node)) || !pt.st.required.Compatible(node.Labels, requirements.Keys{}) || !s.p.contains(pt, d, node.Labels) ||
		!s.tagsHold(grown, pt, node.Tags, node.Limits, others) {
		return nil, false
	}
	left := s.freeOn(b.node)
	for r, q := range requests { // it fits, so nothing overflows
		left[r] -= q
	}
	return grown, true
}

// runs reports whether a member of a group by the hostname runs on the node.
func (s *settler) runs(group, n int) bool {
	name, _ := s.p.nodes[n].value(corev1.LabelHostname)
	return s.p.groups[group].counts[name] > 0
}

// roomiest are the nodes that have room for a pod, those that hold most of its kind first; in variants in some other
// order.
func (s *settler) roomiest(class int) []int {
	type held struct{ node, copies int }
	var list []held
	for n := range s.p.nodes {
		if k := copies(s.freeOn(n), s.p.onNode(&s.p.classes[class], n)); k > 0 {
			list = append(list, held{n, k})
		}
	}
	slices.SortStableFunc(list, func(a, b held) int {
		return cmp.Or(cmp.Compare(s.facts.leaning(class, a.node, 0), s.facts.leaning(class, b.node, 0)), cmp.Compare(b.copies, a.copies))
	})
	out := make([]int, len(list))
	for i, h := range list {
		out[i] = h.node
	}
	return out
}

// addBundle counts the pods of a new bundle as bundled, and numbers it.
func (s *settler) addBundle(b *bundle) int {
	for _, sl := range b.slots {
		s.parts[sl.Part].bundled[sl.Domain] += sl.Count
	}
	s.bundles = append(s.bundles, b)
	number := len(s.bundles) - 1
	if b.node >= 0 {
		s.on[b.node] = append(s.on[b.node], number)
	}
	return number
}

// freeOn is what this settler has not yet given away of a node to pods that must be there.
func (s *settler) freeOn(n int) []int64 {
	if s.free[n] == nil {
		s.free[n] = slices.Clone(s.p.nodes[n].Free)
	}
	return s.free[n]
}

// bundlesOn lists the bundles that are tied to the node.
func (s *settler) bundlesOn(n int) []*bundle {
	out := make([]*bundle, 0, len(s.on[n]))
	for _, b := range s.on[n] {
		out = append(out, s.bundles[b])
	}
	return out
}

// hasTargets reports whether the bundle holds a pod for each thing that the part wants near, or its node does.
func (s *settler) hasTargets(pt *Part, b *bundle) bool {
	for _, t := range pt.st.terms {
		if t.anti || !s.p.inNode(t.group) || b.node >= 0 && s.runs(t.group, b.node) {
			continue
		}
		if !slices.ContainsFunc(b.slots, func(sl Slot) bool {
			return slices.Contains(s.p.classes[s.parts[sl.Part].Class].memberOf, t.group)
		}) {
			return false
		}
	}
	return true
}

// consistent reports whether a pod in the domain can be on the bundle's node: keys that both know have one value.
func (s *settler) consistent(pt *Part, d int, b *bundle) bool {
	for _, sl := range b.slots {
		other := s.parts[sl.Part]
		for k, key := range pt.keys {
			if o := slices.Index(other.keys, key); o >= 0 && other.Domains[sl.Domain].Values[o] != pt.Domains[d].Values[k] {
				return false
			}
		}
	}
	return true
}

// pairUp makes a bundle of the part's pod and a pod that is on its own so far.
func (s *settler) pairUp(i, d int) int {
	pt := s.parts[i]
	for _, j := range s.pairs(pt.Class) {
		other := s.parts[j]
		if other.follows {
			continue // its pods are in bundles already
		}
		for e := range other.Domains {
			if other.Placed[e] <= other.bundled[e] {
				continue
			}
			if both := s.couple(i, d, j, e); both != nil {
				return s.addBundle(both)
			}
		}
	}
	return -1
}

// couple is a pod of part i, which follows others, beside one of part j; nil if no node can hold the two. It is worked out
// once for all such pods.
func (s *settler) couple(i, d, j, e int) *bundle {
	key := [4]int{i, d, j, e}
	if known, ok := s.couples[key]; ok {
		return known
	}
	var both *bundle
	if alone := (&bundle{node: -1, slots: []Slot{{j, e, 1}}}); s.hasTargets(s.parts[i], alone) && s.consistent(s.parts[i], d, alone) {
		if start, ok := s.grow(&bundle{node: -1, required: requirements.AnyOf(requirements.Set{})}, j, e); ok {
			if grown, ok := s.grow(start, i, d); ok {
				both = grown
			}
		}
	}
	s.couples[key] = both
	return both
}

// awaitedNear is how many parts that were left over before wait for a pod of this one in the domain, to share its node, and
// have nobody else whom they could join.
func (s *settler) awaitedNear(i, d int) int {
	if len(s.facts.first) == 0 {
		return 0
	}
	n := 0
	for k, f := range s.parts {
		if k == i || f.want == 0 || !f.follows || s.facts.first[f.Class] == 0 || !s.mayPair(k, i, d) {
			continue
		}
		others := false
		for j, other := range s.parts {
			for e := range other.Domains {
				others = others || j != k && other.Placed[e] > other.bundled[e] && s.mayPair(k, j, e)
			}
		}
		if !others {
			n++
		}
	}
	return n
}

// mayPair reports whether a pod of part k, which follows others, could go where a pod of part j in a domain is.
func (s *settler) mayPair(k, j, e int) bool {
	pt := s.parts[k]
	for d := range pt.Domains {
		if pt.Placed[d] < s.capOf(pt, d) && (len(pt.keys) == 0 || s.allowed(pt, d)) && s.couple(k, d, j, e) != nil {
			return true
		}
	}
	return false
}

// pairs are the parts in the order in which pods of the class look for company: in variants those come first that lean
// their way.
func (s *settler) pairs(class int) []int {
	out := make([]int, len(s.parts))
	for j := range s.parts {
		out[j] = j
	}
	if s.facts.variant > 0 {
		slices.SortStableFunc(out, func(a, b int) int {
			return cmp.Compare(s.facts.leaning(class, s.parts[a].Class, 0), s.facts.leaning(class, s.parts[b].Class, 0))
		})
	}
	return out
}

// grow is the bundle with one more pod of the part, if some node could hold it.
func (s *settler) grow(b *bundle, i, d int) (*bundle, bool) {
	pt := s.parts[i]
	c := &s.p.classes[pt.Class]
	out := &bundle{node: b.node, seated: b.seated, slots: slices.Clone(b.slots), requests: slices.Clone(s.beside(b, c))}
	for r, q := range b.requests {
		if out.requests[r] += q; out.requests[r] < q {
			return nil, false
		}
	}
	at := slices.IndexFunc(out.slots, func(sl Slot) bool { return sl.Part == i && sl.Domain == d })
	if at >= 0 {
		out.slots[at].Count++
		out.required = b.required
	} else {
		out.slots = append(out.slots, Slot{i, d, 1})
		out.required = b.required.Intersect(pt.st.required)
		if len(pt.keys) > 0 {
			out.required = out.required.Intersect(s.p.pin(pt.keys, &pt.Domains[d]))
		}
	}
	out.tags = slices.Concat(b.tags, pt.tags)
	out.limits, out.passing = b.limits, b.passing
	if at < 0 {
		out.limits, out.passing = slices.Concat(b.limits, pt.lasting), slices.Concat(b.passing, pt.passing)
	}
	if !s.tagsHold(out, pt, nil, nil, nil) {
		return nil, false
	}
	if out.node >= 0 {
		return out, true
	}
	cells := s.p.forBundles()
	for k := range cells {
		cell := &cells[k]
		if cell.holds(out.requests) && out.required.Compatible(cell.labels, requirements.Keys{}) {
			return out, true
		}
	}
	for n := range s.p.nodes {
		if fits(out.requests, s.p.nodes[n].Free) && out.required.Compatible(s.p.nodes[n].Labels, requirements.Keys{}) {
			return out, true
		}
	}
	return nil, false
}

// tagsHold reports whether the bundle, with what else is on its node, keeps all limits when a pod of the part comes. A spread
// limits only who comes: its own pods may be followed by others that it counts.
func (s *settler) tagsHold(b *bundle, comes *Part, tags []string, limits []Limit, others []*bundle) bool {
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
	return !slices.ContainsFunc(comes.passing, func(l Limit) bool { return count[l.Tag] > l.Max })
}

// limitsOf are the limits of a bundle for what else may be on its node, now that all who share it are there: where others came
// after a pod that spreads by them, no more may.
func (s *settler) limitsOf(b *bundle) []Limit {
	if len(b.passing) == 0 {
		return b.limits
	}
	count := map[string]int{}
	note := func(tags []string) {
		for _, t := range tags {
			count[t]++
		}
	}
	if b.node < 0 {
		note(b.tags)
	} else {
		note(s.p.nodes[b.node].Tags)
		for _, o := range s.bundlesOn(b.node) {
			note(o.tags)
		}
	}
	out := slices.Clone(b.limits)
	for _, l := range b.passing {
		out = append(out, Limit{l.Tag, max(l.Max, count[l.Tag])})
	}
	return out
}

// begin ties a bundle of one pod of the part to an existing node that has room for it, and returns its number, -1 if the
// pod and what is on the node exclude each other.
func (s *settler) begin(i, d, n int) int {
	node := &s.p.nodes[n]
	name, _ := node.value(corev1.LabelHostname)
	b, ok := s.grow(&bundle{node: n, required: requirements.AnyOf(requirements.MustOf(requirements.In(corev1.LabelHostname, name)))}, i, d)
	if !ok || !fits(b.requests, s.freeOn(n)) || !s.tagsHold(b, s.parts[i], node.Tags, node.Limits, s.bundlesOn(n)) {
		return -1
	}
	left := s.freeOn(n)
	for r, q := range b.requests { // it fits, so nothing overflows
		left[r] -= q
	}
	return s.addBundle(b)
}
