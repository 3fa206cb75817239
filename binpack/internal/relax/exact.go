package relax

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// Search enumerates the sets of bins that cost less than a limit, and packs or refutes each. A
// surrogate constraint excludes a set that is too small: by a resource, the number of items, or
// their duals. No set has more bins than there are items, so the search ends at any prices.
type Search struct {
	m          *Model
	types      []int   // types with a price, the dearest first
	free       []int   // counted bins of price 0, part of every set
	most       []int   // by bin type: how many bins are useful
	supply     []int64 // what remains of each supply
	surrogate  []surrogate
	capacities []float64 // by bin type and surrogate
	start      []float64 // demand beyond the free bins, by surrogate
	items      int
	set        []int
	used       []int       // by bin type: how often it is in the set
	rest       [][]float64 // by depth and surrogate
	completer  completer
	knap       Knapsack
	left       []Class
	size       []float64      // by class: the size, summed over the dimensions
	refuted    map[string]int // by set: the level from which another try pays
	key        []byte

	budget *Budget
	limit  float64 // sets that cost at least this are skipped
	lowest float64 // the lowest cost of a set that was neither packed nor refuted
	level  int
	prove  bool
	found  []Column
	cost   float64
	// Nodes is how many sets and fillings of bins the search has visited.
	Nodes int
}

// surrogate is a surrogate constraint: bins that hold everything have at least the demand as
// capacity.
type surrogate struct {
	demand   float64
	per      float64   // cells of cost per unit of demand
	capacity []float64 // by bin type: the capacity of one bin
	cost     []float64 // by cells of demand: the lowest price of bins with that capacity
}

// NewSearch prepares a search with the duals as one more surrogate. It returns nil if there are too
// many items, if sums of sizes overflow, or if it was stopped.
func NewSearch(m *Model, duals []int64, b *Budget) *Search {
	s := &Search{supply: slices.Clone(m.Supply), refuted: map[string]int{}}
	s.reduce(m)
	if s.m == nil {
		return nil
	}
	m = s.m
	s.most, s.used = make([]int, len(m.BinTypes)), make([]int, len(m.BinTypes))
	shared := make([]int, len(m.Supply))
	for k := range m.BinTypes {
		if s.most[k] = s.copies(k); s.most[k] > 0 && m.BinTypes[k].Supply >= 0 {
			shared[m.BinTypes[k].Supply]++
		}
	}
	for k := range m.BinTypes {
		switch typ := &m.BinTypes[k]; {
		case s.most[k] == 0 || math.IsInf(typ.Price, 1):
		case typ.Price == 0 && typ.Supply >= 0 && shared[typ.Supply] == 1:
			s.free = append(s.free, slices.Repeat([]int{k}, s.most[k])...)
		default:
			s.types = append(s.types, k)
		}
	}
	slices.SortStableFunc(s.types, func(a, b int) int { return cmp.Compare(m.BinTypes[b].Price, m.BinTypes[a].Price) })
	if s.overflows() {
		return nil
	}
	if s.compare(duals, b); b.Stopped() {
		return nil
	}
	s.size = s.completer.prepare(m)
	return s
}

// reduce lowers capacities to what may be packed.
func (s *Search) reduce(m *Model) {
	out := &Model{Dims: m.Dims, Supply: m.Supply, BinTypes: slices.Clone(m.BinTypes), Classes: slices.Clone(m.Classes)}
	for i := range out.Classes {
		c := &out.Classes[i]
		if c.Count > maxItems {
			return
		}
		s.items += int(c.Count)
	}
	if s.items > maxItems {
		return
	}
	for k := range out.BinTypes {
		capacity := slices.Clone(m.BinTypes[k].Capacity)
		for r := range capacity {
			asked := int64(0)
			for i := range out.Classes {
				if c := &out.Classes[i]; c.May(k) && c.Size[r] > 0 {
					asked = saturated(asked, c.Size[r], c.Count)
				}
			}
			capacity[r] = max(min(capacity[r], asked), 0)
		}
		out.BinTypes[k].Capacity = capacity
	}
	s.m = out
}

// overflows reports whether sums overflow: of all items, or of the free bins and as many others as
// there are items.
func (s *Search) overflows() bool {
	const most = math.MaxInt64 / 4
	for r := range s.m.Dims {
		asked, held := int64(0), int64(0)
		for i := range s.m.Classes {
			if c := &s.m.Classes[i]; c.Size[r] > 0 {
				asked = saturated(asked, c.Size[r], c.Count)
			}
		}
		for _, k := range s.free {
			held = saturated(held, 1, s.m.BinTypes[k].Capacity[r])
		}
		for _, k := range s.types {
			if c := s.m.BinTypes[k].Capacity[r]; c > 0 {
				held = max(held, saturated(held, c, int64(s.items)))
			}
		}
		if asked > most || held > most {
			return true
		}
	}
	return false
}

// copies returns how many bins of the bin type can hold an item each.
func (s *Search) copies(k int) int {
	typ := &s.m.BinTypes[k]
	n := int64(0)
	for i := range s.m.Classes {
		if c := &s.m.Classes[i]; c.fits(typ, k) {
			n += c.Count
		}
	}
	if typ.Supply >= 0 {
		n = min(n, s.m.Supply[typ.Supply]/typ.takes())
	}
	return int(n)
}

// compare makes the surrogates and keeps the strongest.
func (s *Search) compare(duals []int64, b *Budget) {
	m := s.m
	for r := range m.Dims {
		x := surrogate{capacity: make([]float64, len(m.BinTypes))}
		for i := range m.Classes {
			x.demand += float64(float64(m.Classes[i].Size[r]) * float64(m.Classes[i].Count))
		}
		for k := range m.BinTypes {
			x.capacity[k] = float64(m.BinTypes[k].Capacity[r]) * (1 + Slack)
		}
		s.add(x, b)
	}
	ones, weights := slices.Repeat([]float64{1}, len(duals)), make([]float64, len(duals))
	for i, v := range duals {
		weights[i] = float64(v)
	}
	// If a search does not end for a bin type, it does not for larger ones.
	smallFirst := append(slices.Compact(slices.Clone(s.free)), s.types...)
	slices.Reverse(smallFirst[len(smallFirst)-len(s.types):])
	var knap Knapsack
	for _, weight := range [][]float64{ones, weights} {
		x := surrogate{capacity: make([]float64, len(m.BinTypes))}
		for i := range m.Classes {
			x.demand += float64(weight[i] * float64(m.Classes[i].Count))
		}
		missed := 0
		for _, k := range smallFirst {
			if b.Stopped() {
				return
			}
			if x.capacity[k] > 0 || !m.Load(&knap, k, weight) {
				continue
			}
			x.capacity[k] = knap.Bound(math.Inf(1))
			if missed == patience {
				continue
			}
			if found, done := knap.Search(0, deepest); done {
				x.capacity[k] = min(x.capacity[k], found*(1+Slack))
				missed = 0
			} else {
				missed++
			}
		}
		b.Take(knap.Steps())
		s.add(x, b)
	}
	asked := func(x *surrogate) float64 { // beyond the free bins
		rest := x.demand
		for _, k := range s.free {
			rest -= x.capacity[k]
		}
		return rest
	}
	slices.SortStableFunc(s.surrogate, func(a, b surrogate) int {
		return cmp.Or(cmp.Compare(b.least(asked(&b)), a.least(asked(&a))), cmp.Compare(b.cost[cells], a.cost[cells]))
	})
	s.surrogate = s.surrogate[:min(len(s.surrogate), mostSurrogates)]
	for k := range m.BinTypes {
		for i := range s.surrogate {
			s.capacities = append(s.capacities, s.surrogate[i].capacity[k])
		}
	}
	for i := range s.surrogate {
		s.start = append(s.start, asked(&s.surrogate[i]))
	}
}

// add tabulates the lowest cost of covering each amount of the surrogate with bins that are not
// free: a covering knapsack, with capacities rounded up to cells. Counted bins are limited by their
// supply.
func (s *Search) add(x surrogate, b *Budget) {
	x.demand *= 1 - Slack
	if x.demand <= 0 {
		return
	}
	x.per = cells / x.demand
	coverOf := func(k int) cover { return cover{cellsOf(x.capacity[k], x.per), s.m.BinTypes[k].Price} }
	var uncounted []cover
	for _, k := range s.types {
		if s.m.BinTypes[k].Supply < 0 {
			uncounted = append(uncounted, coverOf(k))
		}
	}
	cost, work := covering(nil, uncounted)
	x.cost = cost
	for at, left := range s.supply {
		var some []cover
		least := int64(math.MaxInt64) // that one bin takes
		for _, k := range s.types {
			if int(s.m.BinTypes[k].Supply) == at && x.capacity[k] > 0 {
				some, least = append(some, coverOf(k)), min(least, s.m.BinTypes[k].takes())
			}
		}
		for range min(left/least, int64(s.items)) {
			if b.Stopped() {
				return
			}
			if work += len(some); len(some) == 0 {
				break
			}
			for q := cells; q > 0; q-- {
				for _, o := range some {
					x.cost[q] = min(x.cost[q], o.price+x.cost[max(0, q-o.cells)])
				}
			}
		}
	}
	b.Take(cells * work / 4)
	s.surrogate = append(s.surrogate, x)
}

// least returns the lowest cost of covering the rest.
func (x *surrogate) least(rest float64) float64 {
	if rest <= 0 {
		return 0
	}
	return x.cost[min(cells, int(rest*x.per))]
}

// RootBound returns a lower bound on the cost of a set of bins.
func (s *Search) RootBound() float64 {
	most := 0.0
	for i := range s.surrogate {
		most = max(most, s.surrogate[i].least(s.start[i]))
	}
	return most
}

// Run looks for packings cheaper than cost, until none remains or the budget ends. It first spends
// little on each set, then more. It returns a lower bound, and the best packing if one is cheaper
// than cost. It does not search costs above 2^53, which are not exact.
func (s *Search) Run(cost float64, b *Budget) (least float64, columns []Column) {
	s.budget, s.found, s.cost, s.prove = b, nil, cost, false
	if cost > 2*Largest {
		return 0, nil
	}
	least = min(s.RootBound(), cost)
	for s.level = 0; least < s.cost && b.Left > 0 && s.level < levels; s.level++ {
		sure := true // all cheaper sets are refuted
		from := least
		for k := 1.0; k <= thresholds && from < s.cost && b.Left > 0; k++ {
			limit := math.Ceil(from + float64((s.cost-from)*(k/thresholds)))
			low := s.below(limit)
			if sure {
				least = max(least, min(low, s.cost))
			}
			sure = sure && low >= min(limit, s.cost)
		}
	}
	return min(least, s.cost), s.found
}

// Refute tries to refute all sets that cost less than the limit, without trying to pack. It returns
// a lower bound: the limit if it refuted all.
func (s *Search) Refute(limit float64, b *Budget) float64 {
	if s.budget, s.prove = b, true; limit > 2*Largest {
		return 0
	}
	return s.below(limit)
}

func (s *Search) below(limit float64) float64 {
	s.limit, s.lowest = limit, limit
	s.set = append(s.set[:0], s.free...)
	s.descend(0, 0, s.start, 0)
	return min(s.lowest, s.limit)
}

// descend visits the set and its supersets, adding only bin types from the place on.
func (s *Search) descend(from int, cost float64, rest []float64, depth int) {
	s.Nodes++
	if cost >= s.limit {
		return
	}
	if !slices.ContainsFunc(rest, func(v float64) bool { return v > 0 }) {
		s.decide(cost)
	}
	if depth == s.items {
		return
	}
	if len(s.rest) == depth {
		s.rest = append(s.rest, make([]float64, len(rest)))
	}
	for at := from; at < len(s.types); at++ {
		k := s.types[at]
		typ := &s.m.BinTypes[k]
		low := cost + typ.Price
		if low >= s.limit || s.used[k] == s.most[k] || typ.Supply >= 0 && s.supply[typ.Supply] < typ.takes() {
			continue
		}
		next, price := s.rest[depth], low
		capacities := s.capacities[k*len(rest):][:len(rest)]
		for i, v := range rest {
			next[i] = v - capacities[i]
			if low = max(low, price+s.surrogate[i].least(next[i])); low >= s.limit {
				break
			}
		}
		if low >= s.limit {
			s.budget.Take(4)
			continue
		}
		if !s.budget.Take(8 * (1 + len(rest))) {
			s.lowest = min(s.lowest, low)
			continue
		}
		s.set = append(s.set, k)
		s.used[k]++
		if typ.Supply >= 0 {
			s.supply[typ.Supply] -= typ.takes()
		}
		s.descend(at, price, next, depth+1)
		if typ.Supply >= 0 {
			s.supply[typ.Supply] += typ.takes()
		}
		s.used[k]--
		s.set = s.set[:len(s.set)-1]
	}
}

// decide packs or refutes the set.
func (s *Search) decide(cost float64) {
	if s.budget.Left <= 0 {
		s.lowest = min(s.lowest, cost)
		return
	}
	s.key = s.key[:0]
	for _, k := range s.set[len(s.free):] {
		s.key = binary.AppendUvarint(s.key, uint64(k))
	}
	from := s.refuted[string(s.key)]
	if from > levels {
		return
	}
	if s.prove || from <= s.level {
		nodes := s.budget.Left / s.completer.perNode()
		if !s.prove {
			nodes = min(nodes, firstNodes<<(2*s.level))
		}
		columns, found, refuted := s.completer.run(s.set, nodes, s.budget)
		s.Nodes += s.completer.nodes
		if refuted {
			if !s.prove { // which visits each set once
				s.refuted[string(s.key)] = levels + 1
			}
			return
		}
		if !found && !s.prove {
			columns, found = s.pack()
		}
		switch {
		case s.prove:
		case found:
			s.found, s.cost, s.limit = columns, cost, cost
		default:
			s.refuted[string(s.key)] = s.level + 1
		}
	}
	s.lowest = min(s.lowest, cost)
	if s.prove {
		s.limit = s.lowest
	}
}

// pack fills the bins of the set greedily.
func (s *Search) pack() (columns []Column, found bool) {
	s.left = append(s.left[:0], s.m.Classes...)
	for _, k := range s.set {
		if s.knap.Load(s.m.BinTypes[k].Capacity, s.left, func(i int) bool { return s.m.Classes[i].May(k) }, s.size) {
			s.knap.Bound(math.Inf(1))
			s.knap.Fill()
			found := s.knap.Found(nil)
			found.take(s.left, 1)
			columns = append(columns, Column{k, found})
		}
	}
	s.budget.Take(s.knap.Steps())
	return columns, !slices.ContainsFunc(s.left, func(c Class) bool { return c.Count > 0 })
}
