package few

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// cells is how finely amounts are told apart when the cost of covering them is tabled.
const cells = 2000

// measure is one way to compare what is asked with what bins hold: a resource, or the values of things. Any bins that
// hold everything hold enough by every measure.
type measure struct {
	demand float64
	per    float64   // cells of cost for a unit of demand
	room   []float64 // by kind, what one bin holds at most
	cost   []float64 // by cells of demand, the least price of bins that hold so much
}

// Search enumerates sets of bins from the cheap to the dear and looks for the first that holds everything; for few bins
// this is exact. The model must have no counted kinds.
type Search struct {
	m        *relax.Model
	kinds    []int // the largest first
	measures []measure
	rooms    []float64 // by kind and measure
	Budget   *relax.Budget
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
	Found []relax.Column
	Cost  float64
}

// NewSearch prepares a search that measures things by resources and by the value given, besides; deep is how many steps finding
// the most value that a kind holds may take.
func NewSearch(m *relax.Model, value []float64, deep int, b *relax.Budget) *Search {
	const patience = 4 // searches without an end in a row before none is tried any more: those of larger bins take longer
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
			x.room[k] = float64(m.Kinds[k].Capacity[r]) * (1 + relax.Slack)
		}
		s.add(x)
	}
	ones := make([]float64, len(m.Classes))
	for i := range ones {
		ones[i] = 1
	}
	values := [][]float64{ones, value}
	if coverage := m.Coverage(); !slices.EqualFunc(coverage, value, func(a, b float64) bool { return math.Abs(a-b) <= 1 }) {
		values = append(values, coverage)
	}
	var knap relax.Knapsack
	for _, value := range values {
		x := measure{room: make([]float64, len(m.Kinds))}
		for i := range m.Classes {
			x.demand += value[i] * float64(m.Classes[i].Count)
		}
		missed := 0
		for _, k := range slices.Backward(s.kinds) { // from the small to the large
			if !m.Load(&knap, k, value) {
				continue
			}
			x.room[k] = knap.Bound(math.Inf(1))
			if missed == patience {
				continue
			}
			if found, done := knap.Search(0, deep); done {
				x.room[k] = min(x.room[k], found*(1+relax.Slack))
				missed = 0
			} else {
				missed++
			}
		}
		b.Take(knap.Steps())
		s.add(x)
	}
	// The sharpest first; what is far from it would only take time.
	slices.SortStableFunc(s.measures, func(a, b measure) int { return cmp.Compare(b.cost[cells], a.cost[cells]) })
	for n := len(s.measures); n > 1 && s.measures[n-1].cost[cells] < 0.4*s.measures[0].cost[cells]; n = len(s.measures) {
		s.measures = s.measures[:n-1]
	}
	for k := range m.Kinds {
		for i := range s.measures {
			s.rooms = append(s.rooms, s.measures[i].room[k])
		}
	}
	s.packer.m = m
	return s
}

// add tables what it costs to cover amounts of the measure, at least.
func (s *Search) add(x measure) {
	x.demand *= 1 - relax.Slack
	if x.demand <= 0 {
		return
	}
	x.cost = make([]float64, cells+1)
	per := x.demand / cells
	x.per = cells / x.demand
	type offer struct {
		steps int
		price float64
	}
	var offers []offer
	most := 0
	for _, k := range slices.Backward(s.kinds) { // from the cheap to the dear: those that hold more than all before
		if steps := int(math.Ceil(x.room[k] / per)); steps > most {
			most = steps
			offers = append(offers, offer{min(steps, cells), s.m.Kinds[k].Price})
		}
	}
	for q := 1; q <= cells; q++ {
		least := math.Inf(1)
		for _, o := range offers {
			least = min(least, o.price+x.cost[max(0, q-o.steps)])
		}
		x.cost[q] = least
	}
	s.Budget.Take(cells * len(offers))
	s.measures = append(s.measures, x)
}

// least is what covering the rest costs at least by this measure.
func (x *measure) least(rest float64) float64 {
	if rest <= 0 {
		return 0
	}
	return x.cost[min(cells, int(rest*x.per))]
}

// least is what covering the rest costs at least.
func (s *Search) least(rest []float64) float64 {
	most := 0.0
	for i := range s.measures {
		most = max(most, s.measures[i].least(rest[i]))
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
		if s.settle(cost, rest) {
			return
		}
	}
	next := s.rest[depth][:len(rest)]
	for from < len(s.kinds) && cost+s.m.Kinds[s.kinds[from]].Price >= s.limit { // the dear ones stand first
		from++
	}
	for at := from; at < len(s.kinds); at++ {
		k := s.kinds[at]
		price := cost + s.m.Kinds[k].Price
		if price >= s.limit {
			continue
		}
		useful, low := covered, price
		rooms := s.rooms[k*len(rest):][:len(rest)]
		for i, rest := range rest {
			next[i] = rest - rooms[i]
			useful = useful || rest > 0 && rooms[i] > 0
			if with := price + s.measures[i].least(next[i]); with > low {
				if low = with; low >= s.limit {
					s.Budget.Take(4 * (i + 1))
					break
				}
			}
		}
		if low >= s.limit || !useful {
			continue
		}
		if !s.Budget.Take(8 * len(s.measures)) {
			s.lowest = min(s.lowest, low)
			continue
		}
		s.chosen = append(s.chosen, k)
		s.descend(at, price, next, depth+1)
		s.chosen = s.chosen[:len(s.chosen)-1]
		if len(s.rest) > depth {
			next = s.rest[depth][:len(rest)]
		}
	}
}

// settle packs or refutes the chosen set. It reports whether there is no use in adding bins to it.
func (s *Search) settle(cost float64, rest []float64) bool {
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
		if columns == nil && s.roomy(rest) {
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

// roomy reports whether the bins have so much room to spare that packing them is worth a try at this level.
func (s *Search) roomy(rest []float64) bool {
	spare := 0.01 / float64(int(1)<<(2*min(s.Level, 4)))
	for i, v := range rest {
		if -v < spare*s.measures[i].demand {
			return s.Level >= 3
		}
	}
	return true
}

const (
	// Deepest is the most steps that finding what a kind holds may take in a search: a proof is checked with so many.
	Deepest = 100_000
	// refuteNodes is how many steps a proof that a set of bins does not suffice may take.
	refuteNodes = 4_000_000
	// refutedForGood stands in place of the level at which a set is to be tried next.
	refutedForGood = 1 << 20
)

// Refuted is a price that no packing goes below, the claim if that is one: it looks for cheaper ones in both ways in turn,
// each for longer and longer. The values are those that the search that has found the claim went by.
func Refuted(m *relax.Model, value []int64, claim int64, steps int) int64 {
	measure := make([]float64, len(value))
	for i, v := range value {
		measure[i] = float64(v)
	}
	_, _, err := m.Verify(value)
	least := int64(0)
	sets := NewSearch(m, measure, Deepest, &relax.Budget{Left: steps})
	for part, over := min(steps, 50_000_000), false; least < claim && steps > 0 && !over; part = min(8*part, steps) {
		b := &relax.Budget{Left: part}
		sets.Budget = b
		least = max(least, int64(math.Ceil(sets.Below(float64(claim), true))))
		steps -= part - b.Left
		over = b.Left > 0                // more steps would change nothing
		if err == nil && least < claim { // no bin is worth more than its price
			b = &relax.Budget{Left: part}
			if s := NewResidual(m, value, b); s != nil {
				low, _ := s.Below(claim)
				least = max(least, low)
			}
			steps -= part - b.Left
			over = over && b.Left > 0
		}
	}
	return min(least, claim)
}
