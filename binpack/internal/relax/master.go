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

// Master buys patterns: the linear programme over those that have been thought of so far.
type Master struct {
	m           *Model
	left        []Class // counts still to cover
	supply      []int64
	unit        []float64 // by supply, what the row counts in: the most that one bin takes
	fits        []bool    // by class, whether some bin type holds it
	lp          *lp.Program
	columns     []Column
	seen        map[string]bool
	knap        Knapsack
	profitBound []float64 // by bin type, the bound of the last pricing
	next        int       // the bin type to price next
	// Best is the values that have proved most so far, and what they prove.
	BestDuals []float64
	BestBound float64
	spent     int
}

// NewMaster is a master programme without patterns. Model counts are the demand.
func NewMaster(m *Model) *Master {
	n := len(m.Classes)
	rhs := make([]float64, n+len(m.Supply))
	supply := make([]bool, len(rhs))
	big, fits := make([]float64, len(rhs)), make([]bool, n)
	for i := range m.Classes {
		rhs[i] = float64(m.Classes[i].Count)
		fits[i] = m.Fits(i)
		if big[i] = m.bigM(&m.Classes[i]); math.IsInf(big[i], 1) {
			rhs[i], big[i] = 0, 1
		}
	}
	unit := slices.Repeat([]float64{1}, len(m.Supply))
	for k := range m.BinTypes {
		if typ := &m.BinTypes[k]; typ.Supply >= 0 {
			unit[typ.Supply] = max(unit[typ.Supply], float64(typ.takes()))
		}
	}
	for k, c := range m.Supply {
		rhs[n+k], supply[n+k], big[n+k] = float64(c)/unit[k], true, 1
	}
	return &Master{
		m: m, unit: unit, left: slices.Clone(m.Classes), supply: slices.Clone(m.Supply), fits: fits, lp: lp.New(rhs, supply, big),
		seen: map[string]bool{}, profitBound: make([]float64, len(m.BinTypes)),
	}
}

// Add takes a pattern in, unless it is there already.
func (s *Master) Add(c Column) bool {
	key := binary.AppendVarint(nil, int64(c.BinType))
	for i, class := range c.Class {
		key = binary.AppendVarint(binary.AppendVarint(key, int64(class)), int64(c.Count[i]))
	}
	if s.seen[string(key)] || len(c.Class) == 0 {
		return false
	}
	s.seen[string(key)] = true
	entries := make([]lp.Entry, 0, len(c.Class)+1)
	for i, class := range c.Class {
		entries = append(entries, lp.Entry{Row: class, Amount: float64(c.Count[i])})
	}
	typ := &s.m.BinTypes[c.BinType]
	if typ.Supply >= 0 {
		entries = append(entries, lp.Entry{Row: int32(len(s.m.Classes)) + typ.Supply, Amount: float64(typ.takes()) / s.unit[typ.Supply]})
	}
	s.lp.Add(typ.Price, entries)
	s.columns = append(s.columns, c)
	return true
}

// Amount is how many of the column's bins the last solution buys.
func (s *Master) Amount(column int) float64 { return s.lp.Amount(column) }

// Solve solves the programme over the patterns that are there, and reports whether it came to the end.
func (s *Master) Solve(b *Budget) bool {
	ok := lp.Optimal == s.lp.Solve(50+10*(len(s.m.Classes)+len(s.m.Supply)))
	b.Take((s.lp.Steps() - s.spent) / sumsInStep)
	s.spent = s.lp.Steps()
	return ok
}

// Value is the cost of the last solution.
func (s *Master) Objective() float64 { return s.lp.Objective() }

// Values are what one of each class is worth by the last solution.
func (s *Master) Duals() []float64 {
	out := make([]float64, len(s.m.Classes))
	for i, y := range s.lp.Multipliers()[:len(out)] {
		out[i] = max(0, y)
	}
	return out
}

func (s *Master) premium(k *BinType) float64 {
	if k.Supply < 0 {
		return 0
	}
	return max(0, -s.lp.Multipliers()[len(s.m.Classes)+int(k.Supply)]) * (float64(k.takes()) / s.unit[k.Supply])
}

// Generate solves and adds patterns in turn, until none is missing, rounds are over or the budget is.
func (s *Master) Generate(rounds int, b *Budget) {
	for range rounds {
		if !s.Solve(b) || b.Left <= 0 {
			return
		}
		if !s.Price(s.Duals(), b) {
			break
		}
	}
	s.Solve(b) // the last patterns count, though the budget is used up
}

// Deepen searches, for at most steps a bin type, for patterns that Generate has missed.
func (s *Master) Deepen(steps int, b *Budget) bool {
	duals := s.Duals()
	added := false
	for k := range s.m.BinTypes {
		typ := &s.m.BinTypes[k]
		limit := (typ.Price + s.premium(typ)) * (1 + 1e-6)
		if !s.knap.Load(typ.Capacity, s.left, func(i int) bool { return has(s.m.Classes[i].BinTypes, k) }, duals) || s.knap.Bound(limit) <= limit {
			continue
		}
		if profit, _ := s.knap.Search(limit, steps); profit > limit {
			added = s.Add(Column{k, s.knap.Found()}) || added
		}
		if !b.Take(s.knap.Steps()) {
			return false
		}
	}
	return added
}

// whole reports whether nothing of the demand has been fixed yet.
func (s *Master) whole() bool {
	for i := range s.left {
		if s.left[i].Count != s.m.Classes[i].Count {
			return false // a residual proves nothing of the whole
		}
	}
	return true
}

// found is a pattern that is worth more than its bin.
type found struct {
	column Column
	ratio  float64
}

// Price looks for patterns that are worth more than their bins at these values, and takes in the best. It stops once it
// has enough of them and goes on there the next time; where it has gone round, it notes what bound the values prove.
func (s *Master) Price(duals []float64, b *Budget) bool {
	const enough = 12
	var news []found
	n := len(s.m.BinTypes)
	full := true
	for range n {
		k := s.next
		s.next = (s.next + 1) % n
		typ := &s.m.BinTypes[k]
		limit := (typ.Price + s.premium(typ)) * (1 + 1e-6)
		s.profitBound[k] = 0
		if !s.knap.Load(typ.Capacity, s.left, func(i int) bool { return has(s.m.Classes[i].BinTypes, k) }, duals) {
			continue
		}
		if s.profitBound[k] = s.knap.Bound(min(limit, typ.Price)); s.profitBound[k] > limit {
			if profit := s.knap.Fill(2, 8); profit > limit {
				news = append(news, found{Column{k, s.knap.Found()}, profit / max(limit, 1e-9)})
			}
		}
		if !b.Take(s.knap.Steps()) || len(news) >= enough {
			full = false
			break
		}
	}
	if full {
		s.keepBound(duals)
	}
	added := false
	for i := range news {
		added = s.Add(news[i].column) || added
	}
	return added && b.Left > 0
}

// note keeps the values if, scaled so that no bin type can beat its price, they prove more than those before.
func (s *Master) keepBound(duals []float64) {
	if !s.whole() {
		return
	}
	theta := 1.0
	for k := range s.m.BinTypes {
		if typ := &s.m.BinTypes[k]; typ.Supply < 0 && s.profitBound[k] > typ.Price {
			theta = min(theta, typ.Price/s.profitBound[k])
		}
	}
	if p := s.m.dualBound(duals, theta, s.profitBound); p > s.BestBound {
		s.BestBound, s.BestDuals = p, slices.Clone(duals)
		for i := range s.BestDuals {
			s.BestDuals[i] *= theta
		}
	}
}

// proves is the bound by the values times theta, where root says what no filling of each bin type is worth more than.
func (m *Model) dualBound(duals []float64, theta float64, profitBound []float64) float64 {
	sum := 0.0
	for i := range m.Classes {
		sum += float64(theta * duals[i] * float64(m.Classes[i].Count))
	}
	premium := make([]float64, len(m.Supply))
	for k := range m.BinTypes {
		if typ := &m.BinTypes[k]; typ.Supply >= 0 {
			premium[typ.Supply] = max(premium[typ.Supply], (float64(theta*profitBound[k])-typ.Price)/float64(typ.takes()))
		}
	}
	for k, p := range premium {
		sum -= float64(p * float64(m.Supply[k]))
	}
	return sum
}

// Batch is a number of bins with the same filling.
type Batch struct {
	Column
	Copies int64
}

// Dive turns the programme's fractions into whole bins: it fixes what is bought whole, or else the largest fraction,
// solves again for what is left, and goes on until nothing is. What no bin type can hold stays out. Another variation takes another
// of the fractions that are nearly the largest. The programme is as before then, with the patterns that were met on the way.
func (s *Master) Dive(variation int, b *Budget) []Batch {
	var out []Batch
	rng := Draw(variation)
	for !s.covered() && b.Left > 0 { // what is left then is filled greedily
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
		for i := range s.left {
			s.lp.Demand(i, float64(s.left[i].Count))
		}
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

// nearly is a column of which nearly as much is bought as of the one that most is bought of.
func (s *Master) nearly(most float64, rng *Draw) int {
	var out []int
	for c := range s.columns {
		if s.lp.Amount(c) >= 0.75*most {
			out = append(out, c)
		}
	}
	return out[rng.Below(len(out))]
}

// reset asks for everything again.
func (s *Master) reset() {
	copy(s.left, s.m.Classes)
	copy(s.supply, s.m.Supply)
	for i := range s.left {
		if s.fits[i] {
			s.lp.Demand(i, float64(s.left[i].Count))
		}
	}
	for k, n := range s.supply {
		s.lp.Demand(len(s.left)+k, float64(n)/s.unit[k])
	}
	for c := range s.columns {
		s.lp.Reprice(c, s.m.BinTypes[s.columns[c].BinType].Price)
	}
}

// ban makes patterns that hold more than what is left too dear: bought in fractions they look better than they are.
func (s *Master) ban() {
	for c := range s.columns {
		for k, class := range s.columns[c].Class {
			if int64(s.columns[c].Count[k]) > s.left[class].Count {
				s.lp.Reprice(c, max(s.m.BinTypes[s.columns[c].BinType].Price, 1)*1000)
				break
			}
		}
	}
}

func (s *Master) covered() bool {
	for i := range s.left {
		if s.left[i].Count > 0 && s.fits[i] {
			return false
		}
	}
	return true
}

// fix buys so many bins of the column, fewer where the items run out, and no more than one where some run out within it.
func (s *Master) fix(out []Batch, c int, copies int64) []Batch {
	p := s.columns[c].Copy()
	kept := 0
	for k, class := range p.Class {
		n := min(int64(p.Count[k]), s.left[class].Count)
		if n == 0 {
			continue
		}
		p.Class[kept], p.Count[kept] = class, int32(n)
		copies = min(copies, s.left[class].Count/n)
		kept++
	}
	p.Class, p.Count = p.Class[:kept], p.Count[:kept]
	if sup := s.m.BinTypes[s.columns[c].BinType].Supply; sup >= 0 {
		copies = min(copies, s.supply[sup]/s.m.BinTypes[s.columns[c].BinType].takes())
	}
	if kept == 0 || copies <= 0 {
		return out
	}
	for k, class := range p.Class {
		s.left[class].Count -= copies * int64(p.Count[k])
	}
	if sup := s.m.BinTypes[s.columns[c].BinType].Supply; sup >= 0 {
		s.supply[sup] -= copies * s.m.BinTypes[s.columns[c].BinType].takes()
		s.lp.Demand(len(s.m.Classes)+int(sup), float64(s.supply[sup])/s.unit[sup])
	}
	return append(out, Batch{Column{s.columns[c].BinType, p}, copies})
}
