package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/topology/internal/greedy"
)

// Promote makes facts of pods that were left over although something could hold them: that their classes, and those whom
// they follow, go before the others next time; and where that did not help already, that the preferences of others which
// may keep them away are given up, and those which may keep whom they follow from where they can be, one at a time. What packing found out under the old order is forgotten. It reports whether that is
// anything new.
func (st *Settlement) Promote(left []int) (Facts, bool) {
	next := Facts{closed: st.facts.closed, first: maps.Clone(st.facts.first), given: maps.Clone(st.facts.given), ahead: st.facts.ahead, seats: st.facts.seats}
	if next.first == nil {
		next.first, next.given = map[int]int{}, map[int]int{}
	}
	news := false
	promote := func(class, rank int) {
		if next.first[class] == 0 && st.p.classes[class].Count > 0 {
			next.first[class], news = rank, true
		}
	}
	for _, i := range left {
		if next.first[i] > 0 {
			news = st.p.giveWay(i, next.given) || news
			news = st.p.come(i, next.given) || news
			continue
		}
		promote(i, 1)
		for _, t := range st.p.classes[i].terms {
			if t.hard && !t.anti {
				for _, m := range st.p.groups[t.group].members {
					promote(m, 2)
				}
			}
		}
	}
	return next, news
}

// Kin groups classes by what they ask of other pods and who counts them, for where one stays out for the sake of others,
// those that are alike in this do, too. Those of the most pods come first.
func (p *Problem) Kin(classes []int) [][]int {
	at := map[string]int{}
	var out [][]int
	for _, i := range classes {
		c := &p.classes[i]
		var key strings.Builder
		fmt.Fprint(&key, c.memberOf)
		for _, t := range c.terms {
			fmt.Fprint(&key, " ", t.group, t.anti, t.hard)
		}
		for _, sp := range c.spreads {
			fmt.Fprint(&key, " ", sp.group, sp.hard)
		}
		k, ok := at[key.String()]
		if !ok {
			k = len(out)
			at[key.String()] = k
			out = append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	pods := func(kin []int) int {
		n := 0
		for _, i := range kin {
			n += p.classes[i].Count
		}
		return n
	}
	slices.SortStableFunc(out, func(a, b []int) int { return pods(b) - pods(a) })
	return out
}

// Favour is the facts for settling with these classes, and whom they follow, before all others. What packing found out
// under the old order is forgotten.
func (st *Settlement) Favour(kin []int) Facts {
	const ahead = 2
	first := make(map[int]int, len(st.facts.first)+len(kin))
	for i, turn := range st.facts.first {
		first[i] = turn + ahead
	}
	for _, i := range kin {
		for _, t := range st.p.classes[i].terms {
			if t.hard && !t.anti {
				for _, m := range st.p.groups[t.group].members {
					first[m] = 2
				}
			}
		}
	}
	for _, i := range kin {
		first[i] = 1
	}
	return Facts{closed: st.facts.closed, first: first, given: st.facts.given, ahead: st.facts.ahead, seats: st.facts.seats}
}

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
}

// Reference makes the plan of a planner that takes one pod at a time, given by their classes, in this order. softTaints
// says that the nodes of some pool have taints that pods should rather avoid; last, that of domains which are as good as
// each other it takes the last, not the first. Karpenter takes any.
func (st *Settlement) Reference(order []int, softTaints, last bool) *Reference {
	in := st.p.greedy(softTaints)
	in.Last = last
	r := &Reference{Placed: make([]int, len(st.p.classes)), plan: in.Place(order), closed: st.facts.closed}
	r.unused = st.p.unused(r.plan.Bought)
	for _, seat := range r.plan.Seats {
		r.Placed[seat.Class]++
	}
	most := -1
	for _, seats := range st.p.ordersOf(r.plan.Seats) {
		tried := greedy.Plan{Seats: seats, Bought: r.plan.Bought}
		s := st.p.newSettler(Facts{closed: r.unused})
		s.follow(&tried)
		held, n := s.placed(), 0
		for _, k := range held {
			n += k
		}
		if n > most {
			most, r.Holding, r.plan = n, held, tried
		}
		if n == len(seats) {
			break
		}
	}
	return r
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
			if p.groups[sp.group].hostname {
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
	closed := map[Closings]map[closedKey]bool{CloseUnused: r.unused, CloseNeeded: r.closed}[closings]
	return Facts{closed: closed, seats: &r.plan}
}

// Numbers is the facts for settling with as many pods of each class first as the reference places, wherever that is.
func (r *Reference) Numbers() Facts { return Facts{closed: r.closed, ahead: r.Placed} }

// greedy is the problem as a planner reads it that takes one pod at a time.
func (p *Problem) greedy(softTaints bool) *greedy.Problem {
	out := &greedy.Problem{Classes: make([]greedy.Class, len(p.classes)), Groups: make([]greedy.Group, len(p.groups)), Nodes: make([]greedy.Node, len(p.nodes))}
	for i, g := range p.groups {
		out.Groups[i] = greedy.Group{Key: g.key, Within: g.hostname, Tag: g.tag, Running: g.counts, Owners: g.owners, Passes: g.filter.passes, Kept: len(g.owners) > 0}
		if !g.hostname {
			out.Groups[i].Values = p.universe(i, Facts{})
		}
	}
	for i := range p.classes {
		c := &p.classes[i]
		out.Classes[i] = greedy.Class{Requests: c.Requests, Groups: c.memberOf, Stages: p.inTurn(c, softTaints)}
		for _, t := range c.terms {
			out.Groups[t.group].Kept = out.Groups[t.group].Kept || t.anti && t.hard
		}
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		out.Nodes[i] = greedy.Node{Labels: n.Labels, Free: n.Free, Tags: n.Tags, Limits: asGreedy(n.Limits)}
	}
	var pools [][]Shape
	for s := range p.shapes {
		s.Offerings = slices.Clone(s.Offerings)
		for len(pools) <= s.Pool {
			pools = append(pools, nil)
		}
		pools[s.Pool] = append(pools[s.Pool], s)
	}
	for _, shapes := range pools {
		var cells []greedy.Cell
		for _, c := range cellsOf(slices.Values(shapes), true) {
			cells = append(cells, greedy.Cell{Labels: c.labels, Rooms: c.rooms, Sizes: c.sizes})
		}
		out.Pools = append(out.Pools, cells)
	}
	return out
}

// giveWay notes that others give up the preferences that look at the class, and reports whether there are any more.
func (p *Problem) giveWay(class int, given map[int]int) bool {
	news := false
	for i := range p.classes {
		for k, soft := range p.classes[i].soft {
			if k < given[i] {
				continue
			}
			if g, ok := p.classes[i].looksAt(soft); ok && slices.Contains(p.classes[class].memberOf, g) {
				given[i], news = k+1, true
			}
		}
	}
	return news
}

// come notes that each of those whom the class follows gives up one more preference, and reports whether there was any.
func (p *Problem) come(class int, given map[int]int) bool {
	news := false
	for _, t := range p.classes[class].terms {
		if !t.hard || t.anti {
			continue
		}
		for _, m := range p.groups[t.group].members {
			if m != class && p.classes[m].Count > 0 && given[m] < len(p.classes[m].soft) {
				given[m]++
				news = true
			}
		}
	}
	return news
}

// looksAt is the group that a preference is about.
func (c *class) looksAt(soft Preference) (int, bool) {
	switch soft.Kind {
	case PreferSpread:
		return c.spreads[soft.index].group, true
	case PreferPods:
		return c.terms[soft.index].group, true
	case PreferNodes, PreferNoTaint:
	}
	return 0, false
}

// compareParts is the order of settling: by rank, then the largest pods first, for they are the hardest to place; of
// equals, pods that are only counted come last, where they disturb nobody. Where some had to be promoted, they come
// before all that, and then the priorities of pods count.
func (s *settler) compareParts(x, y *Part) int {
	size := func(pt *Part, r int) int64 {
		if requests := s.p.classes[pt.Class].Requests; r < len(requests) {
			return requests[r]
		}
		return 0
	}
	free := func(pt *Part) int {
		if len(pt.st.spreads)+len(pt.st.terms) > 0 {
			return 0
		}
		return 1
	}
	urgency := 0
	if len(s.facts.first) > 0 {
		urgency = cmp.Or(cmp.Compare(s.turn(x), s.turn(y)), cmp.Compare(s.p.classes[y.Class].Priority, s.p.classes[x.Class].Priority))
	}
	rank := cmp.Compare(x.rank, y.rank)
	if s.facts.bySize() {
		rank = 0
	}
	return cmp.Or(urgency, cmp.Compare(s.facts.shuffled(x.Class), s.facts.shuffled(y.Class)), rank, cmp.Compare(size(y, 0), size(x, 0)), cmp.Compare(size(y, 1), size(x, 1)),
		cmp.Compare(free(x), free(y)), cmp.Compare(len(x.Domains), len(y.Domains)), cmp.Compare(x.Class, y.Class), cmp.Compare(x.Stage, y.Stage))
}

// turn is which parts come first: the smallest numbers do.
func (s *settler) turn(pt *Part) int {
	if n := s.facts.first[pt.Class]; n > 0 {
		return n
	}
	return 1 << 30
}

// Promoted reports whether the pods of a class went before the others.
func (st *Settlement) Promoted(class int) bool { return st.facts.first[class] > 0 }
