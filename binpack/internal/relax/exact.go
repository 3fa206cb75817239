package relax

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// Search looks through the sets of bins that cost less than a limit, from the cheap to the dear, and packs or refutes each;
// for few bins this is exact. A set is looked at if it is large enough by every surrogate constraint: each resource, the number
// of items, and their values. No set has more bins than there are items, so the search ends whatever the prices are.
type Search struct {
	m          *Model
	types      []int // those that cost something, the dearest first
	free       []int // bins that cost nothing and are part of every set
	gratis     []Column
	most       []int   // by bin type, how many bins of it are of use
	supply     []int64 // what is left of each supply
	surrogate  []surrogate
	capacities []float64 // by bin type and surrogate
	start      []float64 // what is asked beyond the free bins, by surrogate
	items      int
	set        []int
	used       []int       // by bin type, how often it is in the set
	rest       [][]float64 // by depth and surrogate
	completer  completer
	knap       Knapsack
	left       []Class
	size       []float64      // by class: all dimensions together, for filling
	refuted    map[string]int // by set: the least level at which it is worth another try
	key        []byte

	budget *Budget
	limit  float64 // sets that cost as much are not looked at
	lowest float64 // the cost of the cheapest set that could be neither packed nor refuted
	level  int
	prove  bool
	found  []Column
	cost   float64
	// Nodes is how many sets and fillings of bins the search has looked at.
	Nodes int
}

// surrogate is one way to compare what is asked with what bins hold. Bins that hold everything hold enough by every one.
type surrogate struct {
	demand   float64
	per      float64   // cells of cost for a unit of demand
	capacity []float64 // by bin type, what one bin holds at most
	cost     []float64 // by cells of demand, the least price of bins that hold so much
}

// NewSearch prepares a search in which the values are one more surrogate. It is nil where sums of sizes would not fit an integer.
func NewSearch(m *Model, duals []float64, b *Budget) *Search {
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
	s.compare(duals, b)
	s.size = s.completer.prepare(m)
	return s
}

// reduce cuts rooms down to what may be put there, and takes out what goes into bins that cost nothing and never run out.
func (s *Search) reduce(m *Model) {
	out := &Model{Dims: m.Dims, Supply: m.Supply, BinTypes: slices.Clone(m.BinTypes), Classes: slices.Clone(m.Classes)}
	for i := range out.Classes {
		c := &out.Classes[i]
		for k := range m.BinTypes {
			if typ := &m.BinTypes[k]; c.Count > 0 && typ.Price == 0 && typ.Supply < 0 && c.May(k) && Copies(typ.Capacity, c.Size, 1) > 0 {
				for range c.Count {
					s.gratis = append(s.gratis, Column{k, Pattern{[]int32{int32(i)}, []int32{1}}})
				}
				c.Count = 0
			}
		}
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
			if capacity[r] > math.MaxInt64/4/int64(s.items+1) {
				return
			}
		}
		out.BinTypes[k].Capacity = capacity
	}
	s.m = out
}

// copies is how many bins of the bin type are of use: each holds something.
func (s *Search) copies(k int) int {
	typ := &s.m.BinTypes[k]
	n := int64(0)
	for i := range s.m.Classes {
		if c := &s.m.Classes[i]; c.May(k) && Copies(typ.Capacity, c.Size, 1) > 0 {
			n += c.Count
		}
	}
	if typ.Supply >= 0 {
		n = min(n, s.m.Supply[typ.Supply]/typ.takes())
	}
	return int(n)
}

// compare makes the surrogates and keeps the sharpest.
func (s *Search) compare(duals []float64, b *Budget) {
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
	weights := [][]float64{slices.Repeat([]float64{1}, len(m.Classes)), duals}
	var knap Knapsack
	for _, weight := range weights {
		x := surrogate{capacity: make([]float64, len(m.BinTypes))}
		for i := range m.Classes {
			x.demand += float64(weight[i] * float64(m.Classes[i].Count))
		}
		missed := 0
		for _, k := range s.smallFirst() {
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

// add tables what it costs at least to cover amounts of the surrogate by bins that are not free. Those that are counted are
// taken once each (a knapsack by covering, rooms rounded up to cells).
func (s *Search) add(x surrogate, b *Budget) {
	x.demand *= 1 - Slack
	if x.demand <= 0 {
		return
	}
	x.cost = slices.Repeat([]float64{math.Inf(1)}, cells+1)
	x.cost[0] = 0
	x.per = cells / x.demand
	type offer struct {
		steps int
		price float64
	}
	offerOf := func(k int) offer {
		return offer{int(math.Ceil(min(x.capacity[k]*x.per*(1+Slack), cells))), s.m.BinTypes[k].Price}
	}
	var offers []offer
	most := 0
	for _, k := range slices.Backward(s.types) { // from the cheap to the dear: those that hold more than all before
		if o := offerOf(k); s.m.BinTypes[k].Supply < 0 && o.steps > most {
			most = o.steps
			offers = append(offers, o)
		}
	}
	for q := 1; q <= cells; q++ {
		for _, o := range offers {
			x.cost[q] = min(x.cost[q], o.price+x.cost[max(0, q-o.steps)])
		}
	}
	work := len(offers)
	for at, left := range s.supply {
		var some []offer
		least := int64(math.MaxInt64) // that one of them takes
		for _, k := range s.types {
			if int(s.m.BinTypes[k].Supply) == at && x.capacity[k] > 0 {
				some, least = append(some, offerOf(k)), min(least, s.m.BinTypes[k].takes())
			}
		}
		for range min(left/least, int64(s.items)) {
			if work += len(some); len(some) == 0 {
				break
			}
			for q := cells; q > 0; q-- {
				for _, o := range some {
					x.cost[q] = min(x.cost[q], o.price+x.cost[max(0, q-o.steps)])
				}
			}
		}
	}
	b.Take(cells * work / 4)
	s.surrogate = append(s.surrogate, x)
}

// least is what covering the rest costs at least.
func (x *surrogate) least(rest float64) float64 {
	if rest <= 0 {
		return 0
	}
	return x.cost[min(cells, int(rest*x.per))]
}

// Root is a price that no set of bins goes below.
func (s *Search) RootBound() float64 {
	most := 0.0
	for i := range s.surrogate {
		most = max(most, s.surrogate[i].least(s.start[i]))
	}
	return most
}

// Run looks for packings that cost less than the cost, at most a multiple of the grain, until none is left or the budget is
// used up: first a little at each set, then more. It gives a price that no packing goes below, and the best packing if it is
// cheaper than the cost. Costs above 2^53 are not exact and not searched.
func (s *Search) Run(cost float64, b *Budget) (least float64, columns []Column) {
	s.budget, s.found, s.cost, s.prove = b, nil, cost, false
	if cost > 2*Largest {
		return 0, nil
	}
	least = min(s.RootBound(), cost)
	for s.level = 0; least < s.cost && b.Left > 0 && s.level < levels; s.level++ {
		sure := true // all sets below have been refuted
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

// Refute looks through all sets that cost less than the limit. It gives the limit if it has refuted all, otherwise a price
// below which there is no packing. It does not try to pack.
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

// descend looks at the set and at all that have more bins, of the bin types from the place on.
func (s *Search) descend(from int, cost float64, rest []float64, depth int) {
	s.Nodes++
	if cost >= s.limit {
		return
	}
	if !slices.ContainsFunc(rest, func(v float64) bool { return v > 0 }) {
		s.settle(cost)
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

// settle packs or refutes the set.
func (s *Search) settle(cost float64) {
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
			s.refuted[string(s.key)] = levels + 1
			return
		}
		if !found && !s.prove {
			columns, found = s.pack()
		}
		if found && !s.prove {
			s.found, s.cost, s.limit = append(columns, s.gratis...), cost, cost
		} else {
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
			s.knap.Fill(2, 0)
			c := Column{k, s.knap.Found()}
			for i, class := range c.Class {
				s.left[class].Count -= int64(c.Count[i])
			}
			columns = append(columns, c)
		}
	}
	s.budget.Take(s.knap.Steps())
	return columns, !slices.ContainsFunc(s.left, func(c Class) bool { return c.Count > 0 })
}

// smallFirst is all bin types, the free ones and then those from the cheap to the dear: what does not end for one does not for
// larger ones.
func (s *Search) smallFirst() []int {
	out := slices.Clone(s.types)
	slices.Reverse(out)
	return append(slices.Compact(slices.Clone(s.free)), out...)
}
