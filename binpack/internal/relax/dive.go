package relax

import "math"

// Batch is a number of bins with the same filling.
type Batch struct {
	Column
	Copies int64
}

// Dive turns the programme's fractions into whole bins: it fixes what is bought whole, or else the largest fraction,
// solves again for what is left, and goes on until nothing is. What no kind can hold stays out. Another variation takes another
// of the fractions that are nearly the largest. The programme is as before then, with the patterns that were met on the way.
func (s *Master) Dive(variation int, b *Budget) []Batch {
	var out []Batch
	rng := draw(variation)
	for !s.covered() {
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
			if s.Solve(b); b.Left <= 0 || !s.Price(s.Values(), b) {
				break
			}
		}
	}
	s.reset()
	return out
}

// nearly is a column of which nearly as much is bought as of the one that most is bought of.
func (s *Master) nearly(most float64, rng *draw) int {
	var out []int
	for c := range s.columns {
		if s.lp.Amount(c) >= 0.75*most {
			out = append(out, c)
		}
	}
	return out[rng.below(len(out))]
}

// reset asks for everything again.
func (s *Master) reset() {
	copy(s.left, s.m.Classes)
	copy(s.supply, s.m.Supply)
	for i := range s.left {
		if !math.IsInf(s.alone[i], 1) {
			s.lp.Demand(i, float64(s.left[i].Count))
		}
	}
	for k, n := range s.supply {
		s.lp.Demand(len(s.left)+k, float64(n))
	}
	for c := range s.columns {
		s.lp.Reprice(c, s.m.Kinds[s.columns[c].Kind].Price)
	}
}

// ban makes patterns that hold more than what is left too dear: bought in fractions they look better than they are.
func (s *Master) ban() {
	for c := range s.columns {
		for k, class := range s.columns[c].Class {
			if int64(s.columns[c].Count[k]) > s.left[class].Count {
				s.lp.Reprice(c, max(s.m.Kinds[s.columns[c].Kind].Price, 1)*1000)
				break
			}
		}
	}
}

func (s *Master) covered() bool {
	for i := range s.left {
		if s.left[i].Count > 0 && !math.IsInf(s.alone[i], 1) {
			return false
		}
	}
	return true
}

// fix buys so many bins of the column, fewer where the things run out, and no more than one where some run out within it.
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
	if sup := s.m.Kinds[s.columns[c].Kind].Supply; sup >= 0 {
		copies = min(copies, s.supply[sup])
	}
	if kept == 0 || copies <= 0 {
		return out
	}
	for k, class := range p.Class {
		s.left[class].Count -= copies * int64(p.Count[k])
	}
	if sup := s.m.Kinds[s.columns[c].Kind].Supply; sup >= 0 {
		s.supply[sup] -= copies
		s.lp.Demand(len(s.m.Classes)+int(sup), float64(s.supply[sup]))
	}
	return append(out, Batch{Column{s.columns[c].Kind, p}, copies})
}
