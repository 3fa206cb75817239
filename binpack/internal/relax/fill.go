package relax

import "math"

// Fill packs greedily by the similarity of a candidate to the free capacity, weighted by the square root of its profit, and by the
// eighth power of its profit per cost. It returns the best profit since Bound. Call it after Bound.
func (s *Knapsack) Fill() float64 {
	clear(s.count)
	copy(s.free, s.capacity)
	d := len(s.dims)
	s.order, s.ratio, s.parts = s.order[:0], s.ratio[:0], s.parts[:0]
	profit := 0.0
	for i := range s.cand {
		c := &s.cand[i]
		norm := 0.0
		for _, size := range s.size[i*d : (i+1)*d] {
			norm += float64(size * size)
		}
		ratio := 1 / math.Sqrt(max(norm, 1e-300)) * math.Sqrt(c.profit) // roots are the same on every processor, powers are not
		density := c.profit / max(c.cost, 1e-300)
		density *= density
		density *= density
		ratio *= density * density // its eighth power
		s.order, s.ratio = append(s.order, i), append(s.ratio, ratio)
		s.parts = append(s.parts, s.size[i*d:(i+1)*d]...)
	}
	for {
		s.steps += len(s.order)*d/2 + d
		at := s.fittest(d)
		if at < 0 {
			break
		}
		i := s.order[at]
		c, whole := &s.cand[i], s.wholeOf(i)
		k := Copies(s.free, whole, c.most-s.count[i])
		if k == 0 { // a rounding error in fittest
			s.drop(at, d)
			continue
		}
		k = max(1, k/4)
		for r, size := range whole {
			s.free[r] -= k * size
		}
		profit += float64(float64(k) * c.profit)
		if s.count[i] += k; s.count[i] == c.most {
			s.drop(at, d)
		}
	}
	if profit > s.bestProfit {
		s.bestProfit = profit
		copy(s.best, s.count)
	}
	return s.bestProfit
}

// drop removes the candidate at the place from order, ratio and parts.
func (s *Knapsack) drop(at, d int) {
	last := len(s.order) - 1
	s.order[at], s.ratio[at] = s.order[last], s.ratio[last]
	copy(s.parts[at*d:(at+1)*d], s.parts[last*d:])
	s.order, s.ratio, s.parts = s.order[:last], s.ratio[:last], s.parts[:last*d]
}

// fittest returns the place of the candidate with the highest score, or -1. It drops those that no longer fit. This is the
// innermost loop of the package.
func (s *Knapsack) fittest(d int) int {
	s.left = sized(s.left, d)
	left := s.left
	for k, r := range s.dims {
		left[k] = float64(s.free[r]) / float64(s.capacity[r]) * (1 + 1e-12)
	}
	best, most := -1, 0.0
	for at := 0; at < len(s.order); {
		score, goes := 0.0, true
		part := s.parts[at*d : at*d+d]
		if d == 3 {
			a, b, c := part[0], part[1], part[2]
			goes = a <= left[0] && b <= left[1] && c <= left[2]
			score = float64(a*left[0]) + float64(b*left[1]) + float64(c*left[2])
		} else {
			for k, size := range part {
				goes = goes && size <= left[k]
				score += float64(size * left[k])
			}
		}
		if !goes {
			s.drop(at, d)
			continue
		}
		if score *= s.ratio[at]; score > most {
			best, most = at, score
		}
		at++
	}
	return best
}
