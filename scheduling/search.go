package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
)

// search is the progress of Squeaky Wheel Optimization (D. Joslin, D. Clements, 1999). An attempt blames the pods that it could not place
// although some node could hold them, and the pods that these have affinity to. The next attempt assigns and packs in the order blame,
// priority, rank. When blame no longer helps, one attempt closes domains, and the others vary choices of domains. Usually the first
// attempt places everything.
type search struct {
	rounds  int      // of this attempt so far
	all     int      // of all attempts so far
	attempt int      // attempts before this one
	orders  []string // of blame, in the attempts so far
	varies  bool     // blame has stopped helping, and domains were closed
	variant int
	idle    int    // attempts since the best one
	best    *state // nil for none
	loose   bool   // it is over, and this round packs the best plan without needless ties to domains
}

const (
	// defaultAttempts is the default of Options.Attempts. On random scenarios of 5 to 200 pods eight attempts place about 0.4% more
	// pods than one, and the next eight a tenth of that.
	defaultAttempts = 8
	// searchedPods bounds the search of large snapshots. After two attempts it ends as soon as all rounds have planned so many pods.
	searchedPods = 15_000
	// patience is how many attempts may blame without finding a better plan.
	patience = 2
)

func (p *Problem) pending() int {
	n := 0
	for _, c := range p.Classes {
		n += len(c.Pods)
	}
	return n
}

// conclude gives the first round of the attempt after a verified one, or the last round of the best plan.
func (s *state) conclude() *state {
	if len(s.bound) == s.p.pending() {
		return s.loosen()
	}
	next := s.search
	next.rounds, next.all = 0, next.all+1
	next.attempt++
	next.idle++
	if next.best == nil || s.p.compare(s, next.best) < 0 {
		next.best, next.idle = s, 0
	}
	unplaced := s.unplaced()
	spent := next.all * s.p.pending()
	most := cmp.Or(max(0, s.p.options.Attempts), defaultAttempts)
	if len(unplaced) == 0 || next.attempt >= most || next.attempt > 1 && spent >= searchedPods && s.p.options.Attempts == 0 {
		return next.best.loosen()
	}
	facts := s.step(&next, unplaced)
	return s.p.state(s.p.topology.Assign(facts), next)
}

// loosen gives the round that packs the plan without needless ties to domains, or the plan itself if it has none. Only here is it known who
// is placed, and so who needs others where they are.
func (s *state) loosen() *state {
	loose := s.assigned.Loosen(func(class int) bool { return s.placed[class] > 0 })
	if loose == nil {
		return s
	}
	last := s.search
	last.best, last.loose = s, true
	return s.p.state(loose, last)
}

// verify binds the outcome pod by pod.
func (s *state) verify() {
	s.bound, s.refused = s.p.verifier.verify(s.last.Bins, s.bindings())
	s.placed = make([]int, len(s.p.Classes))
	for _, b := range s.bound {
		s.placed[b.class]++
	}
}

// step is the facts of the next attempt.
func (s *state) step(next *search, unplaced []int) topology.Facts {
	if !next.varies && next.idle < patience {
		facts := s.assigned.Blame(unplaced)
		if order := fmt.Sprint(facts.Order(len(s.p.Classes))); !slices.Contains(next.orders, order) {
			next.orders = append(slices.Clip(next.orders), order)
			return facts
		}
	}
	if !next.varies { // one attempt closes domains
		next.varies = true
		if facts, closed := next.best.assigned.Close(next.best.unplaced()); closed {
			return facts
		}
	}
	next.variant++
	return next.best.assigned.Vary(next.variant)
}

// unplaced are the classes with unplaced pods that some node could hold.
func (s *state) unplaced() []int {
	var out []int
	for i, c := range s.p.Classes {
		if s.placed[i] < len(c.Pods) && c.Refusal == nil && s.p.topology.Holdable(i) {
			out = append(out, i)
		}
	}
	return out
}

// compare is negative if a is the better plan: the one with more pods of the highest priority in which they differ, then with larger
// requests, then with lower cost, then with fewer preferences given up.
func (p *Problem) compare(a, b *state) int {
	return cmp.Or(p.comparePlaced(a, b), cmp.Compare(a.cost(), b.cost()), cmp.Compare(a.givenUp(), b.givenUp()))
}

// comparePlaced is compare by what the plans place.
func (p *Problem) comparePlaced(a, b *state) int {
	more := map[int32]int{} // pods of b, by priority
	for i, c := range p.Classes {
		more[c.priority] += b.placed[i] - a.placed[i]
	}
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(more))) {
		if more[priority] != 0 {
			return more[priority]
		}
	}
	for r := range p.Resources {
		sum := 0.0
		for i, c := range p.Classes {
			sum += float64(b.placed[i]-a.placed[i]) * float64(c.requests[r])
		}
		if sum != 0 {
			return cmp.Compare(sum, 0)
		}
	}
	return 0
}

// cost is the price of the nodes to buy in dollars an hour.
func (s *state) cost() float64 {
	sum := 0.0
	for _, b := range s.last.Bins {
		sum += s.p.Shapes[b.Shape].Offerings[b.Offering].Price
	}
	return sum
}

// givenUp counts the preferences that placed pods gave up.
func (s *state) givenUp() int {
	n := 0
	for _, rc := range s.assigned.Classes {
		for _, k := range rc.Placed {
			n += k * rc.Level
		}
	}
	return n
}

// urgency orders items where not all of them can be placed.
type urgency struct {
	tied     int // 1 if it fits one node only
	blame    int
	priority int32
}

func (u urgency) compare(v urgency) int {
	return cmp.Or(cmp.Compare(u.tied, v.tied), cmp.Compare(u.blame, v.blame), cmp.Compare(u.priority, v.priority))
}

// urgency is that of pods of a class. In the first attempt all are equal: usually everything is placed.
func (s *state) urgency(class int) urgency {
	if s.search.attempt == 0 {
		return urgency{}
	}
	return urgency{blame: s.assigned.Facts.Blamed(class), priority: s.p.Classes[class].priority}
}

// prioritize sets the priorities of items to the ranks of their urgencies.
func prioritize(items []Item, of []urgency) {
	levels := slices.Clone(of)
	slices.SortFunc(levels, urgency.compare)
	levels = slices.Compact(levels)
	for i := range items {
		at, _ := slices.BinarySearchFunc(levels, of[i], urgency.compare)
		items[i].Priority = int32(at)
	}
}
