package relax

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// cells is how finely amounts are told apart when the cost of covering them is tabled.
const cells = 400

// measure is one way to compare what is asked with what bins hold: a resource, or the values of things. Any bins that
// hold everything hold enough by every measure.
type measure struct {
	demand float64
	room   []float64 // by kind, what one bin holds at most
	cost   []float64 // by cells of demand, the least price of bins that hold so much
}

// Search enumerates sets of bins from the cheap to the dear and looks for the first that holds everything; for few bins
// this is exact. The model must have no counted kinds.
type Search struct {
	m        *Model
	kinds    []int // the largest first
	measures []measure
	Budget   *Budget
	limit    float64 // sets that cost as much are not looked at
	lowest   float64 // the cost of the cheapest set that could be neither packed nor refuted
	chosen   []int
	rest     [][]float64 // by depth and measure
	packer   packer
	prove    bool
	settled  map[string]int // by set: the least level at which it is worth another try
	key      []byte
	// Level is how much each set is worth, from 0; each level tries four times as much as the one before.
	Level int
	// Found is the cheapest packing so far.
	Found []Column
	Cost  float64
}

// NewSearch prepares a search that measures things by resources and by the value given, besides.
func NewSearch(m *Model, value []float64, b *Budget) *Search {
	s := &Search{m: m, Budget: b, Cost: math.Inf(1), settled: map[string]int{}}
	for k := range m.Kinds {
		if !math.IsInf(m.Kinds[k].Price, 1) && m.Kinds[k].Price > 0 {
			s.kinds = append(s.kinds, k)
		}
	}
	slices.SortStableFunc(s.kinds, func(a, b int) int { return cmp.Compare(m.Kinds[b].Price, m.Kinds[a].Price) })
	for r := range m.Dims {
		x := measure{room: make([]float64, len(m.Kinds))}
		for i := range m.Classes {
			x.demand += float64(m.Classes[i].Size[r]) * float64(m.Classes[i].Count)
		}
		for k := range m.Kinds {
			x.room[k] = float64(m.Kinds[k].Capacity[r]) * (1 + slack)
		}
		s.add(x)
	}
	ones := make([]float64, len(m.Classes))
	for i := range ones {
		ones[i] = 1
	}
	var knap Knapsack
	for _, value := range [][]float64{m.Coverage(), ones, value} {
		x := measure{room: make([]float64, len(m.Kinds))}
		for i := range m.Classes {
			x.demand += value[i] * float64(m.Classes[i].Count)
		}
		for k := range m.Kinds {
			if !m.load(&knap, k, value) {
				continue
			}
			x.room[k] = knap.Bound(math.Inf(1))
			if found, done := knap.Search(0, 200); done {
				x.room[k] = min(x.room[k], found*(1+slack))
			}
		}
		b.Take(knap.Steps())
		s.add(x)
	}
	s.packer.m = m
	return s
}

// add tables what it costs to cover amounts of the measure, at least.
func (s *Search) add(x measure) {
	x.demand *= 1 - slack
	if x.demand <= 0 {
		return
	}
	x.cost = make([]float64, cells+1)
	per := x.demand / cells
	for q := 1; q <= cells; q++ {
		x.cost[q] = math.Inf(1)
		for _, k := range s.kinds {
			if x.room[k] <= 0 {
				continue
			}
			left := max(0, q-int(math.Ceil(x.room[k]/per)))
			x.cost[q] = min(x.cost[q], s.m.Kinds[k].Price+x.cost[left])
		}
	}
	s.Budget.Take(cells * len(s.kinds))
	s.measures = append(s.measures, x)
}

// least is what covering the rest costs at least.
func (s *Search) least(rest []float64) float64 {
	most := 0.0
	for i := range s.measures {
		x := &s.measures[i]
		if rest[i] > 0 {
			most = max(most, x.cost[min(cells, int(rest[i]/x.demand*cells))])
		}
	}
	return most
}

// Root is a price that no set of bins goes below.
func (s *Search) Root() float64 {
	rest := make([]float64, len(s.measures))
	for i := range s.measures {
		rest[i] = s.measures[i].demand
	}
	return s.least(rest)
}

// Below looks through all sets that cost less than the limit. It gives the least price that such a set with a packing may
// have: the limit if it has refuted all, the price of the packing if it has found one, which is then in Found, or less
// where the budget ran out or a set could not be settled. With prove, it does not try to pack but only to refute.
func (s *Search) Below(limit float64, prove bool) float64 {
	s.limit, s.lowest, s.prove = limit, limit, prove
	s.rest = s.rest[:0]
	rest := make([]float64, len(s.measures))
	for i := range s.measures {
		rest[i] = s.measures[i].demand
	}
	s.chosen = s.chosen[:0]
	s.descend(0, 0, rest, 0)
	return min(s.lowest, s.limit)
}

func (s *Search) descend(from int, cost float64, rest []float64, depth int) {
	if len(s.rest) == depth {
		s.rest = append(s.rest, make([]float64, len(rest)))
	}
	covered := true
	for _, v := range rest {
		covered = covered && v <= 0
	}
	if covered && len(s.chosen) > 0 {
		if s.settle(cost) {
			return
		}
	}
	next := s.rest[depth]
	for at := from; at < len(s.kinds); at++ {
		k := s.kinds[at]
		price := cost + s.m.Kinds[k].Price
		if price >= s.limit {
			continue
		}
		useful := false
		for i := range rest {
			next[i] = rest[i] - s.measures[i].room[k]
			useful = useful || rest[i] > 0 && s.measures[i].room[k] > 0 || covered
		}
		low := price + s.least(next)
		if low >= s.limit || !useful {
			continue
		}
		if !s.Budget.Take(8) {
			s.lowest = min(s.lowest, low)
			continue
		}
		s.chosen = append(s.chosen, k)
		s.descend(at, price, next, depth+1)
		s.chosen = s.chosen[:len(s.chosen)-1]
		if len(s.rest) > depth {
			next = s.rest[depth]
		}
	}
}

// settle packs or refutes the chosen set. It reports whether there is no use in adding bins to it.
func (s *Search) settle(cost float64) bool {
	if s.prove {
		if _, refuted := s.packer.refute(s.chosen, refuteNodes, s.Budget); !refuted {
			s.lowest = min(s.lowest, cost)
			s.limit = s.lowest
		}
		return false
	}
	s.key = s.key[:0]
	for _, k := range s.chosen {
		s.key = binary.AppendUvarint(s.key, uint64(k))
	}
	state := s.settled[string(s.key)]
	if state == refutedForGood {
		return false
	}
	if state <= s.Level {
		nodes, proposals := refuteNodes>>max(0, 12-3*s.Level), 1000<<(2*min(s.Level, 4))
		columns, refuted := s.packer.refute(s.chosen, nodes, s.Budget)
		if refuted {
			s.settled[string(s.key)] = refutedForGood
			return false
		}
		if columns == nil {
			columns = s.packer.pack(s.chosen, proposals, s.Budget)
		}
		if columns != nil {
			s.Found, s.Cost, s.limit = columns, cost, cost
			s.lowest = min(s.lowest, cost)
			return true
		}
		s.settled[string(s.key)] = s.Level + 1
	}
	s.lowest = min(s.lowest, cost)
	return false
}

const (
	// refuteNodes is how many steps a proof that a set of bins does not suffice may take.
	refuteNodes = 4_000_000
	// refutedForGood stands in place of the level at which a set is to be tried next.
	refutedForGood = 1 << 20
)

// Refuted is a price that no packing goes below, the claim if that is one: it looks for cheaper ones in both ways in turn,
// each for longer and longer. The values are those that the search that has found the claim went by.
func (m *Model) Refuted(value []int64, claim int64, steps int) int64 {
	measure := make([]float64, len(value))
	for i, v := range value {
		measure[i] = float64(v)
	}
	_, _, err := m.Verify(value)
	least := int64(0)
	for part := min(steps, 50_000_000); least < claim && steps > 0; part = min(8*part, steps) {
		b := &Budget{Left: part}
		least = max(least, int64(math.Ceil(NewSearch(m, measure, b).Below(float64(claim), true))))
		steps -= part - b.Left
		if err == nil && least < claim { // no bin is worth more than its price
			b = &Budget{Left: part}
			if s := NewResidual(m, value, b); s != nil {
				low, _ := s.Below(claim)
				least = max(least, low)
			}
			steps -= part - b.Left
		}
	}
	return min(least, claim)
}
