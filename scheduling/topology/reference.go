package topology

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/topology/internal/greedy"
)

// Reference is the plan of a planner that takes one pod at a time, as Karpenter does. It says who has a right to a place
// where pods exclude each other: whom it places, and kube-scheduler accepts there, nobody else should keep out. The zero
// value places nobody; a reference is immutable.
type Reference struct {
	// Placed is how many pods of each class it places.
	Placed []int
	// Holding is how many of them kube-scheduler accepts where the plan wants them.
	Holding []int

	plan   greedy.Plan
	unused map[closedKey]bool // domains where it has no node, which no spread counts
	closed map[closedKey]bool
	given  map[int]int // preferences that would keep out some who hold
}

// Queue is the pods as a planner takes them that takes one at a time, and what else it goes by.
type Queue struct {
	// Classes are the pods in their order, each given by its class.
	Classes []int
	// SoftTaints says that the nodes of some pool have taints that pods should rather avoid.
	SoftTaints bool
	// Pools are those of Shape.Pool; it may be shorter.
	Pools []QueuePool
	// Ties says which of several domains that are as good as each other is taken, for Karpenter takes any: the first (0), the
	// last (1), or with larger numbers now this one, now that, always in the same way.
	Ties int
}

// QueuePool is what a planner knows of a pool besides its shapes.
type QueuePool struct {
	// Asks is what the pool asks of its nodes.
	Asks requirements.Set
	// Left is what its limits leave, in the dimensions of Shape.Usage; none where it has no limits.
	Left []int64
}

// Reference makes the plan of a planner that takes one pod at a time. It costs about as much as to settle for each of up to
// a hundred orders of binding, and [greedy.Problem.Place].
func (st *Settlement) Reference(q Queue) *Reference {
	in := st.p.greedy(&q)
	r := &Reference{Placed: make([]int, len(st.p.classes)), plan: in.Place(q.Classes), closed: st.facts.closed}
	r.unused = st.p.unused(r.plan.Bought)
	r.plan.Seats = slices.DeleteFunc(r.plan.Seats, func(seat greedy.Seat) bool { return st.p.classes[seat.Class].Count == 0 })
	for _, seat := range r.plan.Seats {
		r.Placed[seat.Class]++
	}
	r.hold(st.p, nil)
	if given := st.p.inTheWay(r.Placed, r.Holding); len(given) > 0 {
		r.hold(st.p, given)
	}
	return r
}

// hold finds the order of binding in which most of the plan is accepted, with so many preferences of each class given up from
// the start, if that is more than before. After some fixed ones it tries orders in which those wait in front who did not hold, then
// with whoever keeps them out last, as often as the number of pods lets it.
func (r *Reference) hold(p *Problem, given map[int]int) {
	more := min(40, 6_000/max(1, len(r.plan.Seats)))
	var best []greedy.Seat // those that do not hold
	try := func(order []greedy.Seat, urgent int) bool {
		tried := greedy.Plan{Seats: order, Bought: r.plan.Bought}
		s := p.newSettler(Facts{closed: r.unused, given: given})
		bound, left := s.follow(&tried, urgent)
		better := r.Holding == nil || len(bound) > sum(r.Holding)
		if better {
			tried.Seats = slices.Concat(bound, left)
			best, r.Holding, r.plan, r.given = left, s.placed(), tried, given
		}
		return better
	}
	for _, order := range p.ordersOf(r.plan.Seats) {
		if try(order, 0); sum(r.Holding) == len(order) {
			return
		}
	}
	ahead := func(some []greedy.Seat) bool {
		if len(some) == 0 {
			return false
		}
		order := first(some, r.plan.Seats)
		more -= 2
		return more >= 0 && (try(order, len(some)) || try(p.rivalsLast(&r.plan, order, len(some)), len(some)))
	}
	for better := true; better; {
		better = slices.ContainsFunc(kinds(best), func(class int) bool {
			return ahead(slices.DeleteFunc(slices.Clone(best), func(seat greedy.Seat) bool { return seat.Class != class }))
		}) || ahead(best)
	}
}

// rivalsLast is the order with those last who make it harder for the first ones: whom those spread by, or keep away from, in
// the same domain. Those elsewhere make it easier, or no harder.
func (p *Problem) rivalsLast(plan *greedy.Plan, order []greedy.Seat, urgent int) []greedy.Seat {
	type domain struct {
		group int
		value string
	}
	labels := func(seat greedy.Seat) requirements.Set {
		if old := len(p.nodes); seat.Node >= old {
			return plan.Bought[seat.Node-old]
		}
		return p.nodes[seat.Node].Labels
	}
	theirs := map[domain]bool{}
	for _, seat := range order[:urgent] {
		c := &p.classes[seat.Class]
		note := func(group int) {
			if value, ok := labels(seat).Get(p.groups[group].key).Single(); ok {
				theirs[domain{group, value}] = true
			}
		}
		for _, sp := range c.spreads {
			note(sp.group)
		}
		for _, t := range c.terms {
			if t.anti {
				note(t.group)
			}
		}
	}
	rival := func(seat greedy.Seat) bool {
		return slices.ContainsFunc(p.classes[seat.Class].memberOf, func(group int) bool {
			value, ok := labels(seat).Get(p.groups[group].key).Single()
			return ok && theirs[domain{group, value}]
		})
	}
	var before, after []greedy.Seat
	for _, seat := range order[urgent:] {
		if rival(seat) {
			after = append(after, seat)
		} else {
			before = append(before, seat)
		}
	}
	return slices.Concat(order[:urgent], before, after)
}

// first are all seats with some of them before the others.
func first(some, all []greedy.Seat) []greedy.Seat {
	count := map[greedy.Seat]int{}
	for _, seat := range some {
		count[seat]++
	}
	return append(slices.Clone(some), slices.DeleteFunc(slices.Clone(all), func(seat greedy.Seat) bool {
		count[seat]--
		return count[seat] >= 0
	})...)
}

// kinds are the classes of some seats, each once.
func kinds(seats []greedy.Seat) []int {
	var out []int
	for _, seat := range seats {
		if !slices.Contains(out, seat.Class) {
			out = append(out, seat.Class)
		}
	}
	return out
}

// inTheWay are the preferences, by class as Facts.given has them, that may keep pods out that a plan places and that do not
// hold: a preference that is met is kept from then on, while in Karpenter's plan it binds only the pod that has it.
func (p *Problem) inTheWay(placed, held []int) map[int]int {
	given := map[int]int{}
	for i, n := range placed {
		if held[i] < n {
			p.giveWay(i, given)
			if own := len(p.classes[i].soft); own > given[i] {
				given[i] = own
			}
		}
	}
	return given
}

func sum(list []int) int {
	n := 0
	for _, k := range list {
		n += k
	}
	return n
}

// ordersOf are some orders in which a plan may be bound: as it came about and backwards, node by node, those who ask most
// of others first and last, and a few that follow from nothing.
func (p *Problem) ordersOf(seats []greedy.Seat) [][]greedy.Seat {
	sorted := func(compare func(a, b greedy.Seat) int) []greedy.Seat {
		return slices.SortedStableFunc(slices.Values(seats), compare)
	}
	asks := func(s greedy.Seat) int { return len(p.classes[s.Class].spreads) + len(p.classes[s.Class].terms) }
	backwards := slices.Clone(seats)
	slices.Reverse(backwards)
	out := [][]greedy.Seat{
		seats, backwards,
		sorted(func(a, b greedy.Seat) int { return cmp.Compare(a.Node, b.Node) }),
		sorted(func(a, b greedy.Seat) int { return cmp.Compare(asks(b), asks(a)) }),
		sorted(func(a, b greedy.Seat) int { return cmp.Compare(asks(a), asks(b)) }),
	}
	for salt := range uint64(4) {
		out = append(out, sorted(func(a, b greedy.Seat) int {
			return cmp.Compare(mix(salt<<32|uint64(a.Class)), mix(salt<<32|uint64(b.Class)))
		}))
	}
	return out
}

// unused are the domains of spreads where no node stands and none of these would; without a filter where none is at all.
func (p *Problem) unused(bought []requirements.Set) map[closedKey]bool {
	used := map[closedKey]bool{}
	isUsed := func(k closedKey) bool {
		if _, known := used[k]; !known {
			used[k] = p.stands(k) || slices.ContainsFunc(bought, func(labels requirements.Set) bool {
				return labels.Has(k.key) && labels.Get(k.key).Contains(k.value) && p.filters[k.filter].passes(labels)
			})
		}
		return used[k]
	}
	out := map[closedKey]bool{}
	for i := range p.classes {
		for _, sp := range p.classes[i].spreads {
			if p.inNode(sp.group) {
				continue
			}
			for _, v := range p.universe(sp.group, Facts{}) {
				k := p.closedKey(sp.group, v)
				if all := (closedKey{k.key, k.value, ""}); !isUsed(all) {
					out[all] = true
				} else if !isUsed(k) {
					out[k] = true
				}
			}
		}
	}
	return p.fewest(out)
}

// fewest leaves out closings by such filters as would make what nodes must satisfy too long: each is one alternative more
// for every one there is.
func (p *Problem) fewest(closed map[closedKey]bool) map[closedKey]bool {
	const most = 32
	type side struct{ key, filter string }
	alternatives := map[side]int{}
	for k := range closed {
		if f := p.filters[k.filter]; f != nil {
			alternatives[side{k.key, k.filter}] = 1 + f.outside.Len()
		}
	}
	sides := slices.SortedFunc(maps.Keys(alternatives), func(a, b side) int {
		return cmp.Or(cmp.Compare(alternatives[a], alternatives[b]), cmp.Compare(a.key, b.key), cmp.Compare(a.filter, b.filter))
	})
	product := 1
	for _, sd := range sides {
		if product *= alternatives[sd]; product > most {
			maps.DeleteFunc(closed, func(k closedKey, _ bool) bool { return k.key == sd.key && k.filter == sd.filter })
		}
	}
	return closed
}

// Closings says which domains are closed to new nodes while the seats of a reference are taken.
type Closings int

const (
	// CloseUnused closes those where the reference has no node: all who hold in its plan get their seats.
	CloseUnused Closings = iota
	// CloseNeeded closes those that were closed before, so that others have more room.
	CloseNeeded
	// CloseNone closes none.
	CloseNone
)

// Seats is the facts for settling with the pods of the reference first, where it wants them.
func (r *Reference) Seats(closings Closings) Facts {
	out := Facts{seats: &r.plan, given: r.given}
	switch closings {
	case CloseUnused:
		out.closed = r.unused
	case CloseNeeded:
		out.closed = r.closed
	case CloseNone:
	}
	return out
}

// Nodes is the facts for settling with the pods of the reference first, those together that share a node to buy. That node
// is known to be within limits.
func (r *Reference) Nodes() Facts {
	out := r.Seats(CloseUnused)
	out.together = true
	return out
}

// Numbers is the facts for settling with as many pods of each class first as the reference places, wherever that is.
func (r *Reference) Numbers() Facts { return Facts{closed: r.closed, ahead: r.Placed} }

// follow gives pods the seats of a plan, in its order, as far as kube-scheduler would have it; those that it would not
// have yet are tried again after the others, the first ones, if they are urgent, after each of them. It returns those that have
// their seats, in the order in which they got them, and those that kube-scheduler would not have at all.
func (s *settler) follow(plan *greedy.Plan, urgent int) (bound, left []greedy.Seat) {
	var wait []greedy.Seat
	try := func(seat greedy.Seat) bool {
		got := s.seat(plan, seat)
		if got {
			bound = append(bound, seat)
		}
		return got
	}
	for seats := plan.Seats; ; urgent = 0 {
		before := len(bound)
		var again []greedy.Seat
		for i, seat := range seats {
			switch {
			case try(seat):
				for k := 0; k < len(wait) && len(s.p.classes[seat.Class].memberOf) > 0; k++ {
					if try(wait[k]) {
						wait, k = slices.Delete(wait, k, k+1), -1
					}
				}
			case i < urgent:
				wait = append(wait, seat)
			default:
				again = append(again, seat)
			}
		}
		if len(bound) == before {
			return bound, append(wait, again...)
		}
		seats = again
	}
}

// seat gives one pod its seat, with as few preferences given up as that takes. On a node to buy only the domain counts,
// unless it follows others.
func (s *settler) seat(plan *greedy.Plan, seat greedy.Seat) bool {
	for stage := s.facts.given[seat.Class]; stage <= len(s.p.classes[seat.Class].soft); stage++ {
		i := s.partOf(seat.Class, stage)
		pt := s.parts[i]
		there := make([]int, len(pt.Domains))
		for d := range pt.Domains {
			var in bool
			if old := len(s.p.nodes); seat.Node < old {
				labels := s.p.nodes[seat.Node].Labels
				in = pt.st.required.Compatible(labels, requirements.Keys{}) && s.p.contains(pt, d, labels)
			} else {
				in = s.required(pt, d).Compatible(plan.Bought[seat.Node-old], requirements.Keys{})
			}
			if in {
				there[d] = 1
			}
		}
		for d := s.best(i, there); d >= 0; d = s.best(i, there) {
			there[d] = 0
			bundle := -1
			switch {
			case seat.Node < len(s.p.nodes):
				if bundle = s.tie(i, d, seat.Node); bundle < 0 {
					continue
				}
			case s.facts.together:
				bundle = s.seatTogether(i, d, seat.Node)
			}
			if bundle < 0 && pt.follows {
				if bundle = s.seatNear(i, d); bundle < 0 {
					continue
				}
			}
			pt.want++
			s.take(i, d, 1, bundle)
			return true
		}
	}
	return false
}

// tie puts one pod of the part on an existing node, beside those that it follows or shares something with, and returns its
// bundle, -1 if it cannot be there.
func (s *settler) tie(i, d, n int) int {
	pt := s.parts[i]
	c := &s.p.classes[pt.Class]
	if pt.follows || len(c.Shared) > 0 {
		for _, b := range s.on[n] {
			if (pt.follows || s.sharesWith(s.bundles[b], c)) && s.joinBundle(i, d, b) {
				return b
			}
		}
	}
	for _, t := range pt.st.terms {
		if !t.anti && s.p.inNode(t.group) && !s.runs(t.group, n) && (!t.self || s.groups[t.group].total != 0) {
			return -1
		}
	}
	return s.begin(i, d, n)
}

// seatTogether puts one pod of the part beside those whose seats are on the same node to buy, and returns their bundle, -1
// if that cannot be.
func (s *settler) seatTogether(i, d, node int) int {
	b, known := s.bought[node]
	if !known {
		if b = s.alone(i, d); b >= 0 {
			s.bought[node], s.bundles[b].seated = b, true
		}
		return b
	}
	if !s.joinBundle(i, d, b) {
		return -1
	}
	return b
}
