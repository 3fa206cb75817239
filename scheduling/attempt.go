package scheduling

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/topology"
)

// attempt is how far the search for an order has come in which more pods find a place. Usually the first attempt places
// everything.
type attempt struct {
	rounds int    // of this attempt so far
	tried  int    // attempts before this one
	varied int    // number of the variant
	kin    int    // kinds of pods that the best attempt left over and that went first since
	solo   int    // attempts in which one kind went first
	best   *State // of those; nil for none
	placed []int  // pods by class, once the state is done
	number int    // all of them
}

// again is the attempt with one more round.
func (a attempt) again() attempt {
	a.rounds++
	return a
}

// confined is the variant of fewer domains.
const confined = 1

// maxAttempts bounds the search, the less the more pods there are: each attempt costs as much as the first.
func (p *Problem) maxAttempts() int { return min(40, 1+12_000/max(1, p.pending())) }

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
	s.bound = s.bindings(s.dealt)
	for _, b := range s.bound {
		s.attempt.placed[b.class]++
		s.attempt.number++
	}
	if s.attempt.number == s.p.pending() {
		return s
	}
	best := s.attempt.best
	if best == nil || s.beats(best) {
		best = s
	}
	if tried := s.attempt.tried + 1; tried < s.p.maxAttempts() {
		left := s.left()
		if len(left) == 0 {
			return best
		}
		next := attempt{tried: tried, varied: s.attempt.varied, kin: s.attempt.kin, solo: s.attempt.solo, best: best}
		if s.attempt.varied == 0 && s.attempt.solo == 0 {
			if facts, ok := s.settled.Promote(left); ok {
				return s.next(facts, next)
			}
		}
		if best == s {
			next.kin = 0
		}
		if s.attempt.varied == 0 && next.solo < s.p.maxAttempts()/3 {
			if kin := s.p.topology.Kin(best.left()); next.kin < len(kin) {
				next.kin++
				next.solo++
				return s.next(best.settled.Favour(kin[next.kin-1]), next)
			}
		}
		if next.varied++; next.varied == confined {
			if facts, ok := best.settled.Confine(left); ok {
				return s.next(facts, next)
			}
			next.varied++
		}
		return s.next(best.settled.Vary(next.varied), next)
	}
	return best
}

// left are the classes of which something is left over that some node could hold.
func (s *State) left() []int {
	var out []int
	for i, c := range s.p.Classes {
		if s.attempt.placed[i] < len(c.Pods) && s.p.holdable(c) {
			out = append(out, i)
		}
	}
	return out
}

// worth is how many pods must come for one that goes, if they are no larger.
const worth = 8

// beats reports whether a finished attempt is better than the best so far. Of pods that exclude each other some have to
// stay out, and each attempt has its own: one that places others instead is better if they are as many and larger, or
// very many more. For a rule of numbers alone would leave out the large for two small ones, and one of sizes alone a whole
// deployment for a single pod. Of random scenarios this rule leaves out a pod that Karpenter places in the fewest, and
// places fewer pods in none. Where room is scarce, priorities decide, then sizes.
func (s *State) beats(best *State) bool {
	if s.p.scarce(s, best) {
		return s.p.compareOutcomes(s, best) < 0 && (s.attempt.number >= best.attempt.number || s.attempt.varied != confined)
	}
	more := map[int]int{}
	for i, group := range s.p.alike() {
		more[group] += s.attempt.placed[i] - best.attempt.placed[i]
	}
	come, gone := 0, 0
	for _, n := range more {
		come, gone = come+max(n, 0), gone-min(n, 0)
	}
	return gone == 0 && come > 0 || gone > 0 && come >= worth*gone || come >= gone && s.p.compareOutcomes(s, best) < 0
}

// alike numbers classes so that those which can stand for each other, of one size and in the same relations to other
// pods, have the same number.
func (p *Problem) alike() []int {
	all := make([]int, len(p.Classes))
	for i := range all {
		all[i] = i
	}
	number := make([]int, len(p.Classes))
	next := 0
	for _, kin := range p.topology.Kin(all) {
		bySize := map[string]int{}
		for _, i := range kin {
			size := fmt.Sprint(p.Classes[i].requests)
			if _, ok := bySize[size]; !ok {
				bySize[size] = next
				next++
			}
			number[i] = bySize[size]
		}
	}
	return number
}

// scarce reports whether pods compete for room that cannot be bought: pools have limits, or what one of the attempts left
// over fits on existing nodes only.
func (p *Problem) scarce(attempts ...*State) bool {
	if slices.ContainsFunc(p.Pools, func(r PoolRoom) bool { return len(r.Limited) > 0 || r.NodesLeft >= 0 }) {
		return true
	}
	for i, c := range p.Classes {
		if slices.ContainsFunc(attempts, func(s *State) bool { return s.attempt.placed[i] < len(c.Pods) }) && !p.buyable(c) && p.roomy(c) {
			return true
		}
	}
	return false
}

// compareOutcomes says which of two finished attempts is the better one, negative if a is. Where room is scarce it is
// the one that places more pods of the highest priority in which they differ. Otherwise, and then, it is the one that
// places more of the largest pods in which they differ, by cpu, then memory: the order in which Karpenter takes them. Of
// pods alike in that, the number counts.
func (p *Problem) compareOutcomes(a, b *State) int {
	more := func(class int) int { return b.attempt.placed[class] - a.attempt.placed[class] }
	order := make([]int, len(p.Classes))
	for i := range order {
		order[i] = i
	}
	// first is the difference in the first level of the order in which there is any; pods of one level are as good as each other.
	first := func(compare func(x, y *Class) int) int {
		slices.SortStableFunc(order, func(x, y int) int { return compare(p.Classes[x], p.Classes[y]) })
		for from := 0; from < len(order); {
			sum, to := 0, from
			for ; to < len(order) && compare(p.Classes[order[from]], p.Classes[order[to]]) == 0; to++ {
				sum += more(order[to])
			}
			if sum != 0 {
				return sum
			}
			from = to
		}
		return 0
	}
	if p.scarce(a, b) {
		if n := first(func(x, y *Class) int { return cmp.Compare(y.priority, x.priority) }); n != 0 {
			return n
		}
	}
	return first(func(x, y *Class) int { return slices.Compare(y.requests, x.requests) })
}

// urgency is what items are ordered by: those that were promoted, then the priorities of pods. The first attempt knows no
// order, for usually everything finds a place.
func (s *State) urgency(settled *topology.Settlement, class int) int64 {
	if s.attempt.tried == 0 {
		return 0
	}
	rank := int64(s.p.Classes[class].priority)
	if settled.Promoted(class) {
		rank += 1 << 32
	}
	return rank
}

// prioritize gives items numbers that are as small as the order allows.
func prioritize(items []Item, urgency []int64) {
	levels := slices.Compact(slices.Sorted(slices.Values(urgency)))
	for i := range items {
		at, _ := slices.BinarySearch(levels, urgency[i])
		items[i].Priority = int32(at)
	}
}

// holdable reports whether some node, to buy or there, could hold a pod of the class if there were no others.
func (p *Problem) holdable(c *Class) bool { return c.Refusal == nil && (p.buyable(c) || p.roomy(c)) }

// buyable reports whether some node to buy could hold a pod of the class.
func (p *Problem) buyable(c *Class) bool {
	required := c.required().Intersect(requirements.AnyOf(c.tolerated))
	for i := range p.Shapes {
		shape := &p.Shapes[i]
		if short, _ := p.shortage(c, shape.Room); short != nil || !required.Compatible(shape.Labels, requirements.Keys{}) {
			continue
		}
		for _, o := range shape.Offerings {
			if node, err := shape.Labels.Intersect(o.Labels); err == nil && required.Compatible(node, requirements.Keys{}) {
				return true
			}
		}
	}
	return false
}

// roomy reports whether some existing node has room for a pod of the class.
func (p *Problem) roomy(c *Class) bool {
	required := c.required().Intersect(requirements.AnyOf(c.tolerated))
	return slices.ContainsFunc(p.Rooms, func(r Room) bool {
		short, _ := p.shortage(c, r.Free)
		return short == nil && required.Compatible(r.Labels, requirements.Keys{})
	})
}
