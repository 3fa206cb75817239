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
	left    []Class // counts still to cover
	supply  []int64
	unit    []float64 // by supply: the most that one bin takes, which is the unit of its row
	fits    []bool    // by class: some bin type holds it
	lp      *lp.Program
	columns []Column
	seen    map[string]bool
	knap    Knapsack
	next    int // the bin type to price next
	spent   int
}

// NewMaster returns a master programme without patterns. The counts of the model are the demand.
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
		seen: map[string]bool{},
	}
}

// Add adds a pattern, and reports whether it is new.
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

// Amount returns how many bins of the column the last solution buys.
func (s *Master) Amount(column int) float64 { return s.lp.Amount(column) }

// Solve solves the programme over the current patterns, and reports whether it reached the optimum.
func (s *Master) Solve(b *Budget) bool {
	ok := lp.Optimal == s.lp.Solve(50+10*(len(s.m.Classes)+len(s.m.Supply)))
	b.Take((s.lp.Steps() - s.spent) / sumsInStep)
	s.spent = s.lp.Steps()
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

// Generate alternates solving and pricing, until no pattern is found, or the rounds or the budget end.
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

// Deepen searches, with at most steps per bin type, for patterns that Generate missed. It reports whether it added any.
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

// found is a pattern with negative reduced cost.
type found struct {
	column Column
	ratio  float64
}

// Price looks for patterns with negative reduced cost at these duals, and adds them. It stops once it has enough, and continues
// there next time.
func (s *Master) Price(duals []float64, b *Budget) bool {
	const enough = 12
	var news []found
	n := len(s.m.BinTypes)
	for range n {
		k := s.next
		s.next = (s.next + 1) % n
		typ := &s.m.BinTypes[k]
		limit := (typ.Price + s.premium(typ)) * (1 + 1e-6)
		if !s.knap.Load(typ.Capacity, s.left, func(i int) bool { return has(s.m.Classes[i].BinTypes, k) }, duals) {
			continue
		}
		if s.knap.Bound(limit) > limit {
			if profit := s.knap.Fill(2, 8); profit > limit {
				news = append(news, found{Column{k, s.knap.Found()}, profit / max(limit, 1e-9)})
			}
		}
		if !b.Take(s.knap.Steps()) || len(news) >= enough {
			break
		}
	}
	added := false
	for i := range news {
		added = s.Add(news[i].column) || added
	}
	return added && b.Left > 0
}

// Dive rounds the fractional solution to whole bins: it fixes the integer part, or else the largest fraction, solves the
// residual problem, and repeats until nothing remains. Items that no bin type can hold stay unplaced. Another variation picks
// another fraction close to the largest. Dive restores the programme, and keeps the patterns it generated.
func (s *Master) Dive(variation int, b *Budget) []Column {
	var out []Column
	rng := Draw(variation)
	for !s.covered() && b.Left > 0 { // the rest is filled greedily
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

// ban makes the patterns too dear that exceed the residual demand. In fractions they look better than they are.
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

// fix buys copies of the column, limited by the residual demand. If some class runs out within the column, it buys one, with
// that class cut.
func (s *Master) fix(out []Column, c int, copies int64) []Column {
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
	return append(out, slices.Repeat([]Column{{s.columns[c].BinType, p}}, int(copies))...)
}
