package relax

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/lp"
)

// Column is a pattern for a bin type.
type Column struct {
	BinType int
	Pattern
}

// Master is the master programme: the linear programme over the patterns so far.
type Master struct {
	m       *Model
	classes []Class // without the items that no bin type holds
	left    []Class // classes that are still to cover
	supply  []int64
	unit    []float64 // by supply: the most that one bin takes, the unit of its row
	lp      *lp.Program
	columns []Column
	seen    map[string]bool
	knap    Knapsack
	next    int // the bin type to price next
}

// NewMaster returns a master programme without patterns. The counts of the model are the demand.
func NewMaster(m *Model) *Master {
	n := len(m.Classes)
	s := &Master{m: m, classes: slices.Clone(m.Classes), unit: slices.Repeat([]float64{1}, len(m.Supply)), seen: map[string]bool{}}
	big, supply := slices.Repeat([]float64{1}, n+len(m.Supply)), make([]bool, n+len(m.Supply))
	for i := range s.classes {
		if price := m.bigM(&m.Classes[i]); math.IsInf(price, 1) {
			s.classes[i].Count = 0
		} else {
			big[i] = price
		}
	}
	for k := range m.BinTypes {
		if typ := &m.BinTypes[k]; typ.Supply >= 0 {
			s.unit[typ.Supply] = max(s.unit[typ.Supply], float64(typ.takes()))
		}
	}
	for k := range m.Supply {
		supply[n+k] = true
	}
	s.lp = lp.New(make([]float64, len(big)), supply, big)
	s.reset()
	return s
}

// Add adds a pattern, and reports whether it is new.
func (s *Master) Add(c Column) bool {
	key := binary.AppendVarint(nil, int64(c.BinType))
	entries := make([]lp.Entry, 0, len(c.Pattern)+1)
	for _, a := range c.Pattern {
		key = binary.AppendVarint(binary.AppendVarint(key, int64(a.Class)), a.Count)
		entries = append(entries, lp.Entry{Row: a.Class, Amount: float64(a.Count)})
	}
	if s.seen[string(key)] || len(c.Pattern) == 0 {
		return false
	}
	s.seen[string(key)] = true
	typ := &s.m.BinTypes[c.BinType]
	if typ.Supply >= 0 {
		entries = append(entries, lp.Entry{Row: int32(len(s.classes)) + typ.Supply, Amount: float64(typ.takes()) / s.unit[typ.Supply]})
	}
	s.lp.Add(typ.Price, entries)
	s.columns = append(s.columns, c)
	return true
}

// Solve solves the programme over the current patterns, and reports whether it reached the optimum.
func (s *Master) Solve(b *Budget) bool {
	ok := s.lp.Solve(50 + 10*(len(s.m.Classes)+len(s.m.Supply)))
	b.Take(s.lp.Steps() / sumsInStep)
	return ok
}

// Objective returns the cost of the last solution.
func (s *Master) Objective() float64 { return s.lp.Objective() }

// Duals returns the dual of each class in the last solution.
func (s *Master) Duals() []float64 {
	out := make([]float64, len(s.m.Classes))
	for i, y := range s.lp.Duals()[:len(out)] {
		out[i] = max(0, y)
	}
	return out
}

func (s *Master) premium(k *BinType) float64 {
	if k.Supply < 0 {
		return 0
	}
	return max(0, -s.lp.Duals()[len(s.m.Classes)+int(k.Supply)]) * (float64(k.takes()) / s.unit[k.Supply])
}

// Generate alternates solving and pricing, until no pattern is found, or the rounds or the budget
// end.
func (s *Master) Generate(rounds int, b *Budget) {
	for range rounds {
		if !s.Solve(b) || b.Left <= 0 {
			return
		}
		if !s.Price(s.Duals(), b) {
			break
		}
	}
	s.Solve(b) // include the last patterns even without budget
}

// Deepen searches, with at most steps per bin type, for patterns that Generate missed. It reports
// whether it added any.
func (s *Master) Deepen(steps int, b *Budget) bool {
	duals := s.Duals()
	added := false
	for k := range s.m.BinTypes {
		_, isNew := s.price(k, duals, func(limit float64) float64 {
			profit, _ := s.knap.Search(limit, steps)
			b.Take(s.knap.Steps())
			return profit
		})
		if added = added || isNew; b.Left <= 0 {
			return false
		}
	}
	return added
}

// price looks for a pattern of the bin type with negative reduced cost, and adds it. fill returns
// the profit of a pattern, which must be above the limit.
func (s *Master) price(k int, duals []float64, fill func(limit float64) float64) (found, added bool) {
	typ := &s.m.BinTypes[k]
	limit := (typ.Price + s.premium(typ)) * (1 + 1e-6)
	may := func(i int) bool { return s.left[i].May(k) }
	if !s.knap.Load(typ.Capacity, s.left, may, duals) || s.knap.Bound(limit) <= limit || fill(limit) <= limit {
		return false, false
	}
	return true, s.Add(Column{k, s.knap.Found(nil)})
}

// Price looks for patterns with negative reduced cost at these duals, and adds them. It stops once
// it has enough, and continues there next time.
func (s *Master) Price(duals []float64, b *Budget) bool {
	const enough = 12
	patterns, added := 0, false
	n := len(s.m.BinTypes)
	for range n {
		found, isNew := s.price(s.next, duals, func(float64) float64 { return s.knap.Fill() })
		s.next = (s.next + 1) % n
		if added = added || isNew; found {
			patterns++
		}
		if !b.Take(s.knap.Steps()) || patterns >= enough {
			break
		}
	}
	return added && b.Left > 0
}

// Dive rounds the fractional solution to whole bins: it fixes the integer part, or the largest
// fraction if there is no integer part, solves the residual problem, and repeats until nothing
// remains. Items that no bin type can hold stay unplaced. Another variation picks another fraction
// close to the largest. Dive restores the programme, and keeps the patterns it generated.
func (s *Master) Dive(variation int, b *Budget) []Column {
	var out []Column
	rng := Draw(variation)
	for slices.ContainsFunc(s.left, func(c Class) bool { return c.Count > 0 }) && b.Left > 0 { // the rest is filled greedily
		s.Solve(b)
		n := len(out)
		for c := range s.columns {
			if x := s.lp.Amount(c); x >= 1-1e-6 {
				out = s.fix(out, c, int64(x+1e-6))
			}
		}
		if len(out) == n {
			best, most := -1, 1e-9
			for c := range s.columns {
				if x := s.lp.Amount(c); x > most {
					best, most = c, x
				}
			}
			if best < 0 {
				break
			}
			if variation > 0 {
				best = s.nearly(most, &rng)
			}
			if out = s.fix(out, best, 1); len(out) == n {
				break
			}
		}
		s.demand()
		s.Solve(b)
		s.ban()
		for range 6 {
			if s.Solve(b); b.Left <= 0 || !s.Price(s.Duals(), b) {
				break
			}
		}
	}
	s.reset()
	return out
}

// nearly returns a column whose amount is close to the largest one.
func (s *Master) nearly(most float64, rng *Draw) int {
	var out []int
	for c := range s.columns {
		if s.lp.Amount(c) >= 0.75*most {
			out = append(out, c)
		}
	}
	return out[rng.Below(len(out))]
}

// reset restores the full demand.
func (s *Master) reset() {
	s.left, s.supply = slices.Clone(s.classes), slices.Clone(s.m.Supply)
	s.demand()
	for c := range s.columns {
		s.lp.Reprice(c, s.m.BinTypes[s.columns[c].BinType].Price)
	}
}

// demand makes the remaining items the demand of the programme.
func (s *Master) demand() {
	for i := range s.left {
		s.lp.Demand(i, float64(s.left[i].Count))
	}
	for k, n := range s.supply {
		s.lp.Demand(len(s.left)+k, float64(n)/s.unit[k])
	}
}

// ban makes patterns that exceed the residual demand too dear. In fractions they look better than
// they are.
func (s *Master) ban() {
	for c, column := range s.columns {
		if column.times(s.left) == 0 {
			s.lp.Reprice(c, max(s.m.BinTypes[column.BinType].Price, 1)*1000)
		}
	}
}

// fix buys copies of the column, limited by the residual demand. If some class runs out within the
// column, it buys one, with that class cut.
func (s *Master) fix(out []Column, c int, copies int64) []Column {
	var p Pattern
	for _, a := range s.columns[c].Pattern {
		if a.Count = min(a.Count, s.left[a.Class].Count); a.Count > 0 {
			p = append(p, a)
		}
	}
	typ := &s.m.BinTypes[s.columns[c].BinType]
	copies = min(copies, p.times(s.left), int64(mostColumns-len(out)))
	if typ.Supply >= 0 {
		copies = min(copies, s.supply[typ.Supply]/typ.takes())
	}
	if len(p) == 0 || copies <= 0 {
		return out
	}
	p.take(s.left, copies)
	if typ.Supply >= 0 {
		s.supply[typ.Supply] -= copies * typ.takes()
	}
	return append(out, slices.Repeat([]Column{{s.columns[c].BinType, p}}, int(copies))...)
}
