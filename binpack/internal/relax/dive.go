package relax

import "math"

// Batch is a number of bins with the same filling.
type Batch struct {
	Column
	Copies int64
}

// Dive turns the programme's fractions into whole bins: it fixes what is bought whole, or else the largest fraction,
// solves again for what is left, and goes on until nothing is. What no kind can hold stays out. The programme is spent then.
func (s *Master) Dive(b *Budget) []Batch {
	var out []Batch
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
			if out = s.fix(out, best, 1); len(out) == n {
				break
			}
		}
		for i := range s.left {
			s.lp.Demand(i, float64(s.left[i].Count))
		}
		for range 4 {
			if s.Solve(b); b.Left <= 0 || !s.Price(s.Values(), b) {
				break
			}
		}
	}
	return out
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
