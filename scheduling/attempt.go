package scheduling

import (
	"cmp"
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/topology"
)

// attempt is how far the search for an order has come in which more pods find a place. Usually the first attempt places
// everything.
type attempt struct {
	rounds int    // of this attempt so far
	tried  int    // attempts before this one
	best   *State // of those; nil for none
	placed []int  // pods by class, once the state is done
	number int    // all of them
}

// maxAttempts bounds the search, the less the more pods there are: each attempt costs as much as the first.
func (p *Problem) maxAttempts() int { return min(8, 1+12_000/max(1, p.pending())) }

func (p *Problem) pending() int {
	n := 0
	for _, c := range p.Classes {
		n += len(c.Pods)
	}
	return n
}

// contest ends the attempt of a state that is done: it gives the first round of another one, in which those that were
// left over go first, or the best state so far.
func (s *State) contest() *State {
	s.attempt.placed = make([]int, len(s.p.Classes))
	for _, b := range s.bindings(s.dealt) {
		s.attempt.placed[b.class]++
		s.attempt.number++
	}
	if s.attempt.number == s.p.pending() {
		return s
	}
	best := s.attempt.best
	if best == nil || s.p.compareOutcomes(s, best) < 0 {
		best = s
	}
	if s.attempt.tried+1 < s.p.maxAttempts() {
		var left []int
		for i, c := range s.p.Classes {
			if s.attempt.placed[i] < len(c.Pods) && s.p.holdable(c) {
				left = append(left, i)
			}
		}
		if facts, ok := s.settled.Promote(left); ok {
			return s.next(facts, attempt{tried: s.attempt.tried + 1, best: best})
		}
	}
	return best
}

// compareOutcomes says which of two finished attempts is the better one, negative if a is: the one that places more pods
// of the highest priority in which they differ, then the one that places more of the largest pods. Where a pool has a
// limit, the number of pods counts before their size.
func (p *Problem) compareOutcomes(a, b *State) int {
	limited := slices.ContainsFunc(p.Pools, func(r PoolRoom) bool { return len(r.Limited) > 0 || r.NodesLeft >= 0 })
	order := make([]int, len(p.Classes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		c, d := p.Classes[x], p.Classes[y]
		return cmp.Or(cmp.Compare(d.priority, c.priority), slices.Compare(d.requests, c.requests))
	})
	for from := 0; from < len(order); {
		to := from
		sum, first := 0, 0
		for ; to < len(order) && p.Classes[order[to]].priority == p.Classes[order[from]].priority; to++ {
			more := b.attempt.placed[order[to]] - a.attempt.placed[order[to]]
			sum += more
			first = cmp.Or(first, more)
		}
		if limited {
			first = cmp.Or(sum, first)
		}
		if first != 0 {
			return first
		}
		from = to
	}
	return 0
}

// urgency is the item priority of a class: by the priorities of pods, those that were promoted before their equals.
func (p *Problem) urgency(settled *topology.Settlement, class int) int {
	rank := 2 * int(p.Classes[class].priority)
	if settled.Promoted(class) {
		rank++
	}
	return rank
}

// holdable reports whether some node, to buy or there, could hold a pod of the class if there were no others.
func (p *Problem) holdable(c *Class) bool {
	if c.Refusal != nil {
		return false
	}
	required := c.required().Intersect(requirements.AnyOf(taintSetsIn(c.hardOK)))
	suits := func(room []int64) bool {
		short, _ := p.shortage(c, room)
		return short == nil
	}
	for i := range p.Shapes {
		shape := &p.Shapes[i]
		if !suits(shape.Room) || !required.Compatible(shape.Labels, requirements.Keys{}) {
			continue
		}
		for _, o := range shape.Offerings {
			if node, err := shape.Labels.Intersect(o.Labels); err == nil && required.Compatible(node, requirements.Keys{}) {
				return true
			}
		}
	}
	return slices.ContainsFunc(p.Rooms, func(r Room) bool {
		return suits(r.Free) && required.Compatible(r.Labels, requirements.Keys{})
	})
}
