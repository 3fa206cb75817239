package topology

import (
	"cmp"
	"slices"

	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// assigner assigns pods to domains one after the other. Each pod's constraints hold given all pods
// before it, so the order of assignment is an order of binding.
type assigner struct {
	p       *Problem
	facts   Facts
	state   *interpod.State
	classes []*RelaxedClass
	levels  [][]int // by class, its relaxed classes
	picks   []Pick  // in the order of assignment

	assigned []int // by class, how many of its pods are assigned

	followers map[int32][]*RelaxedClass // by group, the classes with affinity to it
	bundles   []*bundle
	free      map[int][]int64 // by existing node, its free capacity less the bundles tied to it
	room      [][]int64       // by existing node, its free capacity less all pods that are probably packed there
	opened    map[value]bool  // values that no node has and that pods were assigned to
	nextRoom  map[[2]int]int  // by relaxed class and domain, the first of its existing nodes with room for one more pod
}

func (p *Problem) newAssigner(f Facts) *assigner {
	s := &assigner{
		p: p, facts: f, state: p.running.Clone(), levels: make([][]int, len(p.classes)), followers: map[int32][]*RelaxedClass{},
		free: map[int][]int64{}, opened: map[value]bool{}, nextRoom: map[[2]int]int{}, room: make([][]int64, len(p.nodes)), classes: make([]*RelaxedClass, 0, len(p.classes)), picks: make([]Pick, 0, 2*len(p.classes)),
		assigned: make([]int, len(p.classes)),
	}
	s.stayAll()
	for i := range p.nodes {
		s.room[i] = slices.Clone(p.nodes[i].Free)
	}
	for i := range p.groups {
		if g := &p.groups[i]; g.spread && !p.withinNode[i] {
			for _, v := range p.universe(int32(i), f.closed) {
				s.state.AddDomain(int32(i), p.values.Of(g.keyID, v))
			}
		}
	}
	return s
}

// run assigns all pods, blamed classes first, and gives up preferences if that fails. It returns
// how many pods of each class are unplaced.
func (s *assigner) run() []int {
	for i := range s.p.classes {
		c := &s.p.classes[i]
		if n := s.p.choice.Pods(i, c.Count); n > 0 {
			level := s.p.choice.givenUp(i)
			if s.p.ignoresSoft {
				level = len(c.soft)
			}
			s.classes[s.relaxed(i, level)].want = n
		}
	}
	for _, u := range s.urgencies() { // these give up all preferences before other classes are assigned
		s.lapsOf(func(rc *RelaxedClass) bool { return s.urgencyOf(rc.Class) == u })
	}
	s.lapsOf(func(*RelaxedClass) bool { return true })
	unplaced := make([]int, len(s.p.classes))
	for _, rc := range s.classes {
		unplaced[rc.Class] += rc.want
	}
	return unplaced
}

// urgency orders classes once some were unplaced: more blame first, then higher priority.
type urgency struct {
	blame    int
	priority int32
}

func (u urgency) compare(v urgency) int {
	return cmp.Or(cmp.Compare(v.blame, u.blame), cmp.Compare(v.priority, u.priority))
}

func (s *assigner) urgencyOf(class int) urgency {
	return urgency{s.facts.blame[class], s.p.classes[class].Priority}
}

// urgencies returns the urgencies of blamed classes, the most urgent first.
func (s *assigner) urgencies() []urgency {
	var out []urgency
	for i := range s.p.classes {
		if s.facts.blame[i] > 0 && s.p.classes[i].Count > 0 {
			out = append(out, s.urgencyOf(i))
		}
	}
	slices.SortFunc(out, urgency.compare)
	return slices.Compact(out)
}

func (s *assigner) lapsOf(among func(*RelaxedClass) bool) {
	for more := true; more; more = s.relax(among) {
		s.laps(among)
	}
}

// relax gives up one preference of each class of the lowest rank that has pods to place and
// preferences. It reports whether there is one. Classes of higher rank depend on these, and may
// then be placed without giving up theirs.
func (s *assigner) relax(among func(*RelaxedClass) bool) bool {
	willing := slices.DeleteFunc(slices.Clone(s.classes), func(rc *RelaxedClass) bool {
		return rc.want == 0 || rc.Level == len(s.p.classes[rc.Class].soft) || !among(rc)
	})
	if len(willing) == 0 {
		return false
	}
	least := slices.MinFunc(willing, func(a, b *RelaxedClass) int { return cmp.Compare(a.rank, b.rank) }).rank
	for _, rc := range willing {
		if rc.rank == least {
			s.classes[s.relaxed(rc.Class, rc.Level+1)].want += rc.want
			rc.want = 0
		}
	}
	return true
}

// laps assigns the classes again and again until no pod can be placed.
func (s *assigner) laps(among func(*RelaxedClass) bool) {
	var order []int
	for i, rc := range s.classes {
		if rc.want > 0 && among(rc) {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return s.compare(s.classes[a], s.classes[b]) })
	for progress := true; progress; {
		progress = false
		for _, i := range order {
			progress = s.place(i) || progress
		}
	}
}

// compare orders the assignment: by urgency, then by rank, then the largest requests first. Of
// equal classes, those that are only counted by others come last.
func (s *assigner) compare(x, y *RelaxedClass) int {
	size := func(rc *RelaxedClass, r int) int64 {
		if requests := s.p.classes[rc.Class].Requests; r < len(requests) {
			return requests[r]
		}
		return 0
	}
	free := func(rc *RelaxedClass) int {
		if len(rc.at.Spreads)+len(rc.at.Terms) > 0 {
			return 0
		}
		return 1
	}
	urgent := 0
	if len(s.facts.blame) > 0 {
		urgent = s.urgencyOf(x.Class).compare(s.urgencyOf(y.Class))
	}
	return cmp.Or(urgent, cmp.Compare(x.rank, y.rank), cmp.Compare(size(y, 0), size(x, 0)), cmp.Compare(size(y, 1), size(x, 1)),
		cmp.Compare(free(x), free(y)), cmp.Compare(len(x.Domains), len(y.Domains)), cmp.Compare(x.Class, y.Class), cmp.Compare(x.Level, y.Level))
}

// place assigns as many pods of the class as its constraints allow now, and reports whether there
// are any.
func (s *assigner) place(i int) bool {
	rc := s.classes[i]
	before := rc.want
	if len(rc.keys) == 0 && !rc.Follows { // all at once
		if n := min(rc.want, rc.most[0]-rc.Placed[0]); n > 0 {
			s.lift(rc.Class, n, -1)
			s.take(i, 0, n, -1)
		}
		return rc.want < before
	}
	for rc.want > 0 {
		s.lift(rc.Class, 1, -1)
		var d, bundle int
		if rc.Follows {
			d, bundle = s.seat(i)
		} else {
			d, bundle = s.best(i), -1
		}
		if d < 0 {
			s.lift(rc.Class, 1, 1)
			break
		}
		if n := rc.Domains[d].node; n >= 0 && bundle < 0 { // its capacity is known, so no round of packing is needed to learn it
			if bundle = s.tie(i, d, n); bundle < 0 {
				s.lift(rc.Class, 1, 1)
				rc.most[d] = rc.Placed[d]
				continue
			}
		}
		s.take(i, d, 1, bundle)
	}
	return rc.want < before
}

// unbounded is more pods than there are.
const unbounded = 1 << 30

// isFull reports whether the domain has reached its bound.
func (rc *RelaxedClass) isFull(d int) bool { return rc.Placed[d] >= rc.most[d] }

// take records pods in a domain.
func (s *assigner) take(i, d, n, bundle int) {
	rc := s.classes[i]
	rc.want -= n
	rc.Placed[d] += n
	s.assigned[rc.Class] += n
	s.open(&rc.Domains[d])
	s.count(rc, d, int32(n))
	s.fill(i, d, n, bundle)
	if k := len(s.picks) - 1; k >= 0 && s.picks[k].Relaxed == i && s.picks[k].Domain == d && s.picks[k].Bundle == bundle {
		s.picks[k].Count += n
		return
	}
	s.picks = append(s.picks, Pick{i, d, bundle, n})
}

// open makes the invented values of a domain domains of spreads, because a node there will have
// them.
func (s *assigner) open(d *Domain) {
	for _, v := range d.fresh {
		if s.opened[v] {
			continue
		}
		s.opened[v] = true
		for i := range s.p.groups {
			if g := &s.p.groups[i]; g.spread && g.keyID == v.key && !s.p.withinNode[i] {
				s.state.AddDomain(int32(i), v.id)
			}
		}
	}
}

// count adds pods of a class in a domain to its groups, and their anti-affinity to the groups of
// its terms.
func (s *assigner) count(rc *RelaxedClass, d int, n int32) {
	dom := &rc.Domains[d]
	for _, g := range s.p.classes[rc.Class].all.MemberOf {
		if s.p.withinNode[g] {
			s.state.CountApart(g, n)
		}
	}
	for _, m := range rc.counted {
		if m.filter >= 0 && dom.Values[m.filter] != filterIn {
			continue
		}
		if v := dom.at[s.p.groups[m.group].keyID]; v >= 0 {
			s.state.Count(m.group, v, n)
		}
	}
	for i := range rc.at.Terms {
		t := &rc.at.Terms[i]
		if v := dom.at[s.p.groups[t.Group].keyID]; t.Anti && v >= 0 && !s.p.withinNode[t.Group] {
			s.state.Keep(t, v, n)
		}
	}
}

// allowed reports whether kube-scheduler would accept one more pod of the class in the domain now.
func (s *assigner) allowed(rc *RelaxedClass, d int) bool {
	dom := &rc.Domains[d]
	return s.state.Check(&rc.at.Constraints, dom.at, s.p.withinNode, nil).OK()
}

// stay counts a pod of a leaving node; n -1 stops counting it.
func (s *assigner) stay(o Origin, n int32) {
	node := &s.p.leaving[o.Node]
	passes := func(filter int32) bool { return s.p.filters[filter].passes(node.Labels) }
	s.state.Add(&node.pods[o.Pod], node.values, passes, node.Running[o.Pod].DeletionTimestamp != nil, n)
}

// stayAll counts all pods of leaving nodes.
func (s *assigner) stayAll() {
	if s.p.choice.Gone {
		return
	}
	for i := range s.p.leaving {
		for k := range s.p.leaving[i].Running {
			s.stay(Origin{i, k}, 1)
		}
	}
}

// lift stops counting the pods that the next n pods of a class replace; sign 1 counts them again.
func (s *assigner) lift(class, n int, sign int32) {
	from := s.p.classes[class].From
	if s.p.choice.Gone {
		return
	}
	for k := s.assigned[class]; k < min(s.assigned[class]+n, len(from)); k++ {
		if from[k].Node >= 0 {
			s.stay(from[k], sign)
		}
	}
}
