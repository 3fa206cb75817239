package topology

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// bundle is a set of pods that must share a node because of affinity by hostname. It is packed as
// one unit.
type bundle struct {
	slots    []Slot
	pods     int // in all slots
	node     int // the existing node to which it is tied, -1 for any
	requests []int64
	required requirements.Alternatives
	tags     []string
	limits   []Limit // lasting ones
	passing  []Limit // held when their pods were bound
}

// seat adds one more pod of the class with affinity by hostname to a bundle. The pod goes beside
// running pods that meet its affinity, or beside a bundle or a single pod that does, in the first
// domain where that is possible. If it meets its affinity itself, it can be the first pod, in the
// best of the domains. seat returns the domain and the number of the bundle; -1 if there is none.
func (s *assigner) seat(i int) (domain, bundle int) {
	rc := s.classes[i]
	var open []int
	for d := range rc.Domains {
		if !rc.isFull(d) && s.allowed(rc, d) {
			open = append(open, d)
		}
	}
	for _, d := range open {
		if b := s.joinNode(i, d); b >= 0 {
			return d, b
		}
		for b := range s.bundles {
			if s.joinBundle(i, d, b) {
				return d, b
			}
		}
		if b := s.pairUp(i, d); b >= 0 {
			return d, b
		}
	}
	if s.first(rc) {
		for _, d := range s.forAll(i, open) {
			if b := s.addBundle(s.grow(empty(), i, d)); b >= 0 {
				return d, b
			}
		}
	}
	return -1, -1
}

// forAll sorts domains for the first pod of a class whose others must share its node: those first
// in which most other classes that wait for it can be, then those in which one node can hold all
// that are to place, existing nodes before new ones, and then the cheapest.
func (s *assigner) forAll(i int, domains []int) []int {
	if len(domains) < 2 {
		return domains
	}
	rc := s.classes[i]
	score := make([]score, len(rc.Domains))
	for _, d := range domains {
		at, room := &score[d], 0
		for _, n := range s.p.nodesIn(rc, d) {
			room = max(room, copies(s.freeOn(n), s.p.onNode(&s.p.classes[rc.Class], n)))
		}
		at.variant, at.awaiting = s.facts.arbitrary(rc.Class, d), -s.awaiting(rc, d)
		if room < rc.want {
			at.buying, at.price = 1, rc.Domains[d].price
			if !s.p.sold(times(s.p.classes[rc.Class].Requests, rc.want), rc.Domains[d].required()) {
				at.buying, at.counted = 2, -room
			}
		}
	}
	slices.SortStableFunc(domains, func(a, b int) int { return score[a].compare(score[b]) })
	return domains
}

// times returns n times the requests, at most the largest number.
func times(requests []int64, n int) []int64 {
	out := make([]int64, len(requests))
	for r, q := range requests {
		if out[r] = q * int64(n); q > math.MaxInt64/int64(max(n, 1)) {
			out[r] = math.MaxInt64
		}
	}
	return out
}

// empty returns a bundle without pods on any node.
func empty() *bundle { return &bundle{node: -1, required: requirements.AnyOf(requirements.Set{})} }

// first reports whether one of the pods may be alone on a node, because it meets its own affinity
// by hostname and no other pod does anywhere. InterPodAffinity lets such a first pod go anywhere.
func (s *assigner) first(rc *RelaxedClass) bool {
	anywhere := int32(0) // pods that meet all required terms
	for _, t := range rc.at.Terms {
		if t.Hard && !t.Anti {
			anywhere += s.state.Total(t.Group)
		}
	}
	return !slices.ContainsFunc(rc.hosts, func(t interpod.Term) bool {
		return !t.Self || t.Hard && anywhere != 0 || s.state.Total(t.Group) != 0
	})
}

// company says where pods of a class in a domain can share a node. A refusal is final, since
// bundles only grow and nodes only fill.
type company struct {
	noNode bool   // no existing node takes one more
	tried  []int  // by bundle: its pods when it lacked the affinity's target; unbounded if it never takes one
	pairs  []pair // single pods that can be joined
	seen   int    // how many relaxed classes there were when pairs were listed
}

// pair identifies single pods of a relaxed class in a domain.
type pair struct {
	relaxed, domain int
	never           bool // no node can hold one of them and a pod of the class
}

// joinNode ties a pod to an existing node of the domain with running pods that meet its affinity:
// the one with the most free capacity. It returns the number of the bundle, or -1.
func (s *assigner) joinNode(i, d int) int {
	rc := s.classes[i]
	if rc.near[d].noNode {
		return -1
	}
	nodes := slices.DeleteFunc(slices.Clone(s.p.nodesIn(rc, d)), func(n int) bool { return !s.hasTargets(rc, &bundle{node: n}) })
	most := func(n int) int { return copies(s.freeOn(n), s.p.onNode(&s.p.classes[rc.Class], n)) }
	slices.SortStableFunc(nodes, func(a, b int) int { return cmp.Compare(most(b), most(a)) })
	for _, n := range nodes {
		if b := s.begin(i, d, n); b >= 0 {
			return b
		}
	}
	rc.near[d].noNode = true
	return -1
}

// joinBundle adds one more pod of the class to a bundle that meets its affinity, and reports
// whether it could.
func (s *assigner) joinBundle(i, d, b int) bool {
	rc, bd := s.classes[i], s.bundles[b]
	if n := len(rc.near[d].tried); n <= b {
		rc.near[d].tried = slices.Grow(rc.near[d].tried, len(s.bundles)-n)[:len(s.bundles)]
	}
	tried := &rc.near[d].tried[b]
	if *tried >= bd.pods {
		return false
	}
	if !s.hasTargets(rc, bd) {
		*tried = bd.pods
		return false
	}
	if s.consistent(rc, d, bd) {
		if grown := s.join(bd, i, d); grown != nil {
			s.bundles[b] = grown
			rc.bundled[d]++
			return true
		}
	}
	*tried = unbounded
	return false
}

// join returns the bundle with one more pod of the class; nil if its node cannot hold it.
func (s *assigner) join(b *bundle, i, d int) *bundle {
	if b.node < 0 {
		return s.grow(b, i, d)
	}
	rc := s.classes[i]
	requests := s.beside(b, &s.p.classes[rc.Class])
	if _, ok := slices.BinarySearch(s.p.nodesIn(rc, d), b.node); !ok || !fits(requests, s.freeOn(b.node)) {
		return nil
	}
	grown := s.grow(b, i, d)
	if grown == nil {
		return nil
	}
	left := s.freeOn(b.node)
	for r, q := range requests { // it fits, so nothing overflows
		left[r] -= q
	}
	return grown
}

// runs reports whether a member of a group by hostname runs on the node.
func (s *assigner) runs(group int32, n int) bool {
	at := s.p.nodeValues[n][s.p.groups[group].keyID]
	return at >= 0 && s.p.running.Members(group, at) > 0
}

// addBundle adds a bundle and returns its number; -1 for nil.
func (s *assigner) addBundle(b *bundle) int {
	if b == nil {
		return -1
	}
	for _, sl := range b.slots {
		s.classes[sl.Relaxed].bundled[sl.Domain] += sl.Count
	}
	s.bundles = append(s.bundles, b)
	return len(s.bundles) - 1
}

// freeOn returns the free capacity of an existing node less the bundles that are tied to it.
func (s *assigner) freeOn(n int) []int64 {
	if s.free[n] == nil {
		s.free[n] = slices.Clone(s.p.nodes[n].Free)
	}
	return s.free[n]
}

// bundlesOn returns the bundles that are tied to the node, except for one. Node -1 has none.
func (s *assigner) bundlesOn(n int, but *bundle) []*bundle {
	var out []*bundle
	for _, b := range s.bundles {
		if n >= 0 && b.node == n && b != but {
			out = append(out, b)
		}
	}
	return out
}

// hasTargets reports whether each term of affinity by hostname is met by a pod of the bundle or a
// running pod of its node.
func (s *assigner) hasTargets(rc *RelaxedClass, b *bundle) bool {
	return !slices.ContainsFunc(rc.hosts, func(t interpod.Term) bool {
		return (b.node < 0 || !s.runs(t.Group, b.node)) && !slices.ContainsFunc(b.slots, func(sl Slot) bool {
			return slices.Contains(s.p.classes[s.classes[sl.Relaxed].Class].all.MemberOf, t.Group)
		})
	})
}

// consistent reports whether the domain agrees with those of all pods of the bundle.
func (s *assigner) consistent(rc *RelaxedClass, d int, b *bundle) bool {
	var few [4][2]int
	return !slices.ContainsFunc(b.slots, func(sl Slot) bool {
		other := s.classes[sl.Relaxed]
		return !agree(commonKeys(few[:0], rc, other), &rc.Domains[d], &other.Domains[sl.Domain])
	})
}

// commonKeys appends the positions of the keys that both have.
func commonKeys(both [][2]int, a, b *RelaxedClass) [][2]int {
	for i, k := range a.keys {
		if o := slices.IndexFunc(b.keys, func(o key) bool { return o.name == k.name }); o >= 0 {
			both = append(both, [2]int{i, o})
		}
	}
	return both
}

// agree reports whether one node can be in both domains: common keys have one value.
func agree(keys [][2]int, a, b *Domain) bool {
	return !slices.ContainsFunc(keys, func(k [2]int) bool { return a.Values[k[0]] != b.Values[k[1]] })
}

// pairUp makes a bundle of a pod of the class and a single pod that meets its affinity. It returns
// the number of the bundle, or -1.
func (s *assigner) pairUp(i, d int) int {
	rc := s.classes[i]
	near := &rc.near[d]
	if near.seen < len(s.classes) {
		near.pairs, near.seen = s.pairs(i, d), len(s.classes)
	}
	for k := range near.pairs {
		p := &near.pairs[k]
		other := s.classes[p.relaxed]
		if p.never || other.Placed[p.domain] <= other.bundled[p.domain] {
			continue
		}
		if s.shareNode(i, d, p.relaxed, p.domain) {
			return s.addBundle(s.grow(s.grow(empty(), p.relaxed, p.domain), i, d))
		}
		p.never = true
	}
	return -1
}

// shareNode reports whether some node could hold one pod of each of two classes in their domains,
// where the second comes first.
func (s *assigner) shareNode(i, d, j, e int) bool {
	a, b := s.classes[i], s.classes[j]
	return s.p.memo.couples.Of(coupled{a.relaxed, b.relaxed, a.Domains[d].text, b.Domains[e].text}, func() bool {
		return s.grow(s.grow(empty(), j, e), i, d) != nil
	})
}

// pairs returns the classes and domains whose pods meet the affinity of the class and can share a
// node of the domain.
func (s *assigner) pairs(i, d int) []pair {
	rc := s.classes[i]
	var out []pair
	alone, few := &bundle{node: -1, slots: []Slot{{}}}, [4][2]int{}
	for _, m := range s.p.groups[rc.hosts[0].Group].members {
		for _, j := range s.levels[m] {
			other := s.classes[j]
			alone.slots[0].Relaxed = j
			if other.Follows || !s.hasTargets(rc, alone) { // pods that follow others are in bundles already
				continue
			}
			both := commonKeys(few[:0], rc, other)
			for e := range other.Domains {
				if agree(both, &rc.Domains[d], &other.Domains[e]) {
					out = append(out, pair{relaxed: j, domain: e})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.relaxed, b.relaxed), cmp.Compare(a.domain, b.domain))
	})
	return out
}

// grow returns the bundle with one more pod of the class; nil if no node could hold it, or for nil.
func (s *assigner) grow(b *bundle, i, d int) *bundle {
	if b == nil {
		return nil
	}
	rc := s.classes[i]
	requests := slices.Clone(s.beside(b, &s.p.classes[rc.Class]))
	for r, q := range b.requests {
		if requests[r] += q; requests[r] < q {
			return nil
		}
	}
	if b.node < 0 && !s.p.someNode(requests, requirements.AnyOf(requirements.Set{})) { // most that fail do so here
		return nil
	}
	out := &bundle{node: b.node, pods: b.pods + 1, slots: slices.Clone(b.slots), requests: requests, required: b.required}
	at := slices.IndexFunc(out.slots, func(sl Slot) bool { return sl.Relaxed == i && sl.Domain == d })
	out.tags = slices.Concat(b.tags, rc.tags)
	out.limits, out.passing = b.limits, b.passing
	if at >= 0 {
		out.slots[at].Count++
	} else {
		out.slots = append(out.slots, Slot{i, d, 1})
		out.limits, out.passing = slices.Concat(b.limits, rc.lasting), slices.Concat(b.passing, rc.passing)
	}
	if !s.tagsHold(out, rc, s.bundlesOn(b.node, b)) {
		return nil
	}
	if at < 0 {
		out.required = b.required.Intersect(rc.Domains[d].required())
	}
	if out.node < 0 && !s.p.someNode(requests, out.required) {
		return nil
	}
	return out
}

// tagsHold reports whether the bundle keeps all lasting limits on its node, where other bundles may
// be too. It also checks the passing limits of the class whose pod was added.
func (s *assigner) tagsHold(b *bundle, added *RelaxedClass, others []*bundle) bool {
	all := slices.Clip(b.limits)
	if b.node >= 0 {
		all = append(all, s.p.nodes[b.node].Limits...)
	}
	for _, o := range others {
		all = append(all, o.limits...)
	}
	if len(all)+len(added.passing) == 0 {
		return true
	}
	count := s.countTags(b.node, append(others, b))
	for _, l := range all {
		// The bundle can only break limits that it has, or whose tag it adds.
		if count[l.Tag] > l.Max && (slices.Contains(b.tags, l.Tag) || slices.Contains(b.limits, l)) {
			return false
		}
	}
	return !slices.ContainsFunc(added.passing, func(l Limit) bool { return count[l.Tag] > l.Max })
}

// countTags counts the tags of a node, -1 for none, and of bundles.
func (s *assigner) countTags(node int, bundles []*bundle) map[string]int {
	count := map[string]int{}
	if node >= 0 {
		for _, t := range s.p.nodes[node].Tags {
			count[t]++
		}
	}
	for _, b := range bundles {
		for _, t := range b.tags {
			count[t]++
		}
	}
	return count
}

// limitsOf returns the limits of a complete bundle. If later pods of its node exceeded a passing
// limit, the limit becomes the count that was reached.
func (s *assigner) limitsOf(b *bundle) []Limit {
	if len(b.passing) == 0 {
		return b.limits
	}
	count := s.countTags(b.node, append(s.bundlesOn(b.node, b), b))
	out := slices.Clone(b.limits)
	for _, l := range b.passing {
		out = append(out, Limit{l.Tag, max(l.Max, count[l.Tag])})
	}
	return out
}

// begin ties a bundle of one pod of the class to an existing node, and returns its number; -1 if
// the node cannot hold it.
func (s *assigner) begin(i, d, n int) int {
	name, ok := s.p.nodes[n].value(corev1.LabelHostname)
	if !ok {
		return -1
	}
	return s.addBundle(s.join(&bundle{node: n, required: requirements.AnyOf(requirements.MustOf(requirements.In(corev1.LabelHostname, name)))}, i, d))
}

// tie assigns one pod of a class without affinity by hostname to an existing node: in a bundle that
// it shares something with, or in a new one. It returns the number of the bundle, or -1.
func (s *assigner) tie(i, d, n int) int {
	c := &s.p.classes[s.classes[i].Class]
	for b := range s.bundles {
		if len(c.Shared) > 0 && s.bundles[b].node == n && s.sharesWith(s.bundles[b], c) && s.joinBundle(i, d, b) {
			return b
		}
	}
	return s.begin(i, d, n)
}

// Shared is a unit of a resource that all its users on a node take together, such as an attached
// volume.
type Shared struct {
	// Name identifies it.
	Name string
	// Dimension is the index of its resource in Class.Requests. It is one unit of that resource.
	Dimension int
}

// onNode returns what one pod of the class takes of an existing node, without what it shares with
// running pods.
func (p *Problem) onNode(c *class, n int) []int64 {
	return sparing(c, func(name string) bool { return slices.Contains(p.nodes[n].Shared, name) })
}

// beside returns what one more pod of the class takes beside a bundle, without what they share.
func (s *assigner) beside(b *bundle, c *class) []int64 {
	return sparing(c, func(name string) bool { return s.uses(b, name) })
}

// uses reports whether a pod of the bundle, or a running pod of its node, uses the shared unit of
// that name.
func (s *assigner) uses(b *bundle, name string) bool {
	return b.node >= 0 && slices.Contains(s.p.nodes[b.node].Shared, name) || slices.ContainsFunc(b.slots, func(sl Slot) bool {
		return slices.ContainsFunc(s.p.classes[s.classes[sl.Relaxed].Class].Shared, func(sh Shared) bool { return sh.Name == name })
	})
}

// sharesWith reports whether the pods of the class share something with the bundle.
func (s *assigner) sharesWith(b *bundle, c *class) bool {
	return slices.ContainsFunc(c.Shared, func(sh Shared) bool { return s.uses(b, sh.Name) })
}

// sparing returns the requests of a pod without the shared units that are already there.
func sparing(c *class, there func(name string) bool) []int64 {
	out := c.Requests
	for _, sh := range c.Shared {
		if there(sh.Name) {
			if &out[0] == &c.Requests[0] {
				out = slices.Clone(out)
			}
			out[sh.Dimension]--
		}
	}
	return out
}
