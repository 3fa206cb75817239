package scheduling

import (
	"cmp"
	"fmt"
	"maps"
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
	// references are whom planners place that take one pod at a time; none where nobody is left
	// over or they are not asked. followed is how many of the ways of following them are done with.
	references []*topology.Reference
	followed   int
	// granted is how many attempts there may be beyond the usual number: those that follow a reference, and those after one
	// that placed more than any before it. most is how many that was.
	granted, most int
}

// again is the attempt with one more round.
func (a attempt) again() attempt {
	a.rounds++
	return a
}

// confined is the variant of fewer domains.
const confined = 1

// maxAttempts bounds the search, the less the more pods there are: each attempt costs as much as the first.
func (p *Problem) maxAttempts() int { return min(40, 1+30_000/max(1, p.pending())) }

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
	if s.attempt.tried == 0 && !s.p.limited() {
		s.ask(s)
	}
	if s.attempt.tried > 0 && s.attempt.number > s.attempt.most {
		s.attempt.granted++
	}
	best := s.attempt.best
	if best == nil || s.beats(best) {
		best = s
	}
	tried := s.attempt.tried + 1
	if tried >= s.p.maxAttempts()+s.attempt.granted && s.attempt.references == nil {
		s.ask(best)
	}
	if tried < s.p.maxAttempts()+s.attempt.granted {
		left := s.left()
		if len(left) == 0 {
			return best
		}
		next := attempt{
			tried: tried, varied: s.attempt.varied, kin: s.attempt.kin, solo: s.attempt.solo, best: best,
			references: s.attempt.references, granted: s.attempt.granted, most: max(s.attempt.most, s.attempt.number),
		}
		facts, followed, ok := s.follow(best)
		if next.followed = followed; ok {
			next.granted++
			return s.next(facts, next)
		}
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

// ask asks the references, if somebody is left over whom they may speak for, and lets the search begin anew. It does so after
// the first attempt; where limits make pods compete for what can be bought, after the last one, for then it is the number
// that counts, and who else came in is none the worse for it.
func (s *State) ask(best *State) {
	if s.p.maxAttempts() <= 1 || len(s.left()) == 0 || s.p.options.MostPods {
		return
	}
	s.attempt.references = s.p.references(best.settled)
	if s.attempt.tried > 0 {
		s.attempt.granted += 1 + s.p.maxAttempts()/2
		s.attempt.varied, s.attempt.solo, s.attempt.kin = 0, 0, 0
	}
}

// follow is the next attempt that follows a reference, as long as one of its pods is owed a place: its seats first, with
// several closings, then as many pods of each class as it places, wherever, and where there are limits its very nodes. It
// says how many ways are done with then, and whether there was one more.
func (s *State) follow(best *State) (topology.Facts, int, bool) {
	ways := 4
	if s.p.limited() {
		ways++
	}
	for way := s.attempt.followed; way < ways*len(s.attempt.references); way += ways {
		r := s.attempt.references[way/ways]
		if way%ways == 0 && best.owes(r.Placed) == 0 {
			continue // on to the next reference
		}
		all := []topology.Facts{
			r.Seats(topology.CloseUnused), r.Seats(topology.CloseNeeded), r.Seats(topology.CloseNone), r.Numbers(), r.Nodes(),
		}
		return all[way%ways], way + 1, true
	}
	return topology.Facts{}, ways * len(s.attempt.references), false
}

// left are the classes of which something is left over that some node could hold; as long as some of them are owed a
// place, those are.
func (s *State) left() []int {
	owed := s.owed()
	var out []int
	for i, c := range s.p.Classes {
		most := len(c.Pods)
		if owed != nil {
			most = owed[i]
		}
		if s.attempt.placed[i] < most && s.p.holdable(c) {
			out = append(out, i)
		}
	}
	return out
}

// owed is how many pods of each class should have a place where some of them have none: those of the references that hold,
// then all of them; nil where they are owed nothing. Where pods compete for limits nobody is.
func (s *State) owed() []int {
	if s.p.limited() {
		return nil
	}
	for _, due := range s.dues() {
		if s.owes(due) > 0 {
			return due
		}
	}
	return nil
}

// dues are the pods, by class, that should not be left out, the surest first.
func (s *State) dues() [][]int {
	var out [][]int
	for _, r := range s.attempt.references {
		out = append(out, r.Holding)
	}
	for _, r := range s.attempt.references {
		out = append(out, r.Placed)
	}
	return out
}

// owes is how many of these pods, counted by class, have no place.
func (s *State) owes(pods []int) int {
	n := 0
	for i, due := range pods {
		n += max(0, due-s.attempt.placed[i])
	}
	return n
}

// debts are for how many of the references some of those have no place who have a right one there, how many pods these are, and
// how many whom the references place at all. Where they contradict each other, the most of them should be content.
func (s *State) debts() [3]int {
	var out [3]int
	for _, r := range s.attempt.references {
		held := s.owes(r.Holding)
		out[0] += min(held, 1)
		out[1] += held
		out[2] += s.owes(r.Placed)
	}
	return out
}

// worth is how many pods must come for one that goes, if they are no larger.
const worth = 8

// beats reports whether a finished attempt is better than the best so far. It is if more references are content with it,
// that is, have nobody left out whom they have a right place for, then if it leaves out fewer of those, then of all whom
// they place: nobody should lose a place that Karpenter would give him, as long as he does not compete for limits. For the
// others, of pods that exclude each other some have to stay out, and each attempt has its own: one that places others
// instead is better if they are as many and larger, or very many more. For a rule of numbers alone would leave out the
// large for two small ones, and one of sizes alone a whole deployment for a single pod. Where room is scarce, priorities
// decide, then sizes; and before all else they do among pods that compete for the room of existing nodes, as in
// kube-scheduler's queue.
func (s *State) beats(best *State) bool {
	if len(s.attempt.references) > 0 && !s.p.limited() {
		owes, bestOwes := s.debts(), best.debts()
		if n := cmp.Or(s.p.compareUrgency(s, best), slices.Compare(owes[:], bestOwes[:])); n != 0 {
			return n < 0
		}
	}
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

// limited reports whether some pool has limits.
func (p *Problem) limited() bool {
	return slices.ContainsFunc(p.Pools, func(r PoolRoom) bool { return len(r.Limited) > 0 || r.NodesLeft >= 0 })
}

// scarce reports whether pods compete for room that cannot be bought: pools have limits, or what one of the attempts left
// over fits on existing nodes only.
func (p *Problem) scarce(attempts ...*State) bool {
	if p.limited() {
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
	differs := func(class int) bool { return a.attempt.placed[class] != b.attempt.placed[class] }
	if p.scarce(a, b) {
		if n := p.compareInOrder(a, b, differs, byPriority); n != 0 {
			return n
		}
	}
	return p.compareInOrder(a, b, differs, func(x, y *Class) int { return slices.Compare(y.requests, x.requests) })
}

// compareUrgency says which of two finished attempts is the better one where pods that only fit on existing nodes compete for
// them, negative if a is: the one that places more of the highest priority in which they differ, if the other one has more of a
// lower priority for it. Otherwise they do not compete with each other, and neither is.
func (p *Problem) compareUrgency(a, b *State) int {
	more := map[int32]int{} // pods of a, by priority
	for i, c := range p.Classes {
		if n := a.attempt.placed[i] - b.attempt.placed[i]; n != 0 && !p.buyable(c) {
			more[c.priority] += n
		}
	}
	highest := 0
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(more))) {
		switch n := more[priority]; {
		case highest == 0:
			highest = n
		case highest > 0 && n < 0 || highest < 0 && n > 0:
			return -highest
		}
	}
	return 0
}

func byPriority(x, y *Class) int { return cmp.Compare(y.priority, x.priority) }

// compareInOrder says which of two finished attempts places more pods of the first level of an order in which they differ,
// negative if a does; pods of one level are as good as each other.
func (p *Problem) compareInOrder(a, b *State, among func(class int) bool, compare func(x, y *Class) int) int {
	var order []int
	for i := range p.Classes {
		if among(i) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return compare(p.Classes[x], p.Classes[y]) })
	for from := 0; from < len(order); {
		sum, to := 0, from
		for ; to < len(order) && compare(p.Classes[order[from]], p.Classes[order[to]]) == 0; to++ {
			sum += b.attempt.placed[order[to]] - a.attempt.placed[order[to]]
		}
		if sum != 0 {
			return sum
		}
		from = to
	}
	return 0
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
		short, _ := p.shortage(c, p.spare(c, &r, r.Free))
		return short == nil && required.Compatible(r.Labels, requirements.Keys{})
	})
}
