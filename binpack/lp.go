package binpack

import (
	"math"
	"slices"
)

// coverageDuals maximises demand.y subject to row.y <= price for every row and y >= 0: what a unit of each resource is
// worth when capacity can be bought in any fraction. Rows are many and resources few, so it works on the dual of this,
// min price.x with rows covering the demand, by a revised simplex whose basis is resources x resources; its multipliers
// are y. Demand that is not positive needs no cover. The result is only near-exact: callers round it to a certificate.
// The method is the textbook's (G. B. Dantzig); ties follow R. G. Bland's rule of the least index.
func coverageDuals(rows [][]float64, prices, demand []float64) []float64 {
	y := make([]float64, len(demand))
	var dims []int
	for r, d := range demand {
		if d <= 0 {
			continue
		}
		for _, row := range rows {
			if row[r] > 0 {
				dims = append(dims, r)
				break
			}
		}
	}
	if len(dims) == 0 {
		return y
	}
	s := newCover(rows, prices, demand, dims)
	for range 200 + 20*len(dims) {
		if !s.step() {
			break
		}
	}
	for i, r := range dims {
		y[r] = max(0, s.y[i]) / s.scale[i]
	}
	best := shrunk(rows, prices, y)
	// Where entries differ by more than a float's digits, a single resource may prove more than the simplex has found.
	for _, r := range dims {
		alone := make([]float64, len(demand))
		alone[r] = math.Inf(1)
		for i, row := range rows {
			if row[r] > 0 {
				alone[r] = min(alone[r], prices[i]/row[r])
			}
		}
		if dot(demand, alone) > dot(demand, best) {
			best = alone
		}
	}
	return best
}

// shrunk multiplies the values so that no type is worth more than its price.
func shrunk(rows [][]float64, prices, y []float64) []float64 {
	factor := 1.0
	for i, row := range rows {
		if worth := dot(row, y); worth > prices[i] {
			factor = min(factor, prices[i]/worth)
		}
	}
	out := slices.Clone(y)
	for r := range out {
		out[r] *= factor
	}
	return out
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// cover is the state of the simplex: columns are types (0..n-1), then surplus, then artificial columns.
type cover struct {
	// rows are by type, scaled so that the largest entry of each dimension is 1, then of each type; the type's price
	// goes with it. Thresholds then mean the same for cores and bytes, for one bin and for a billion.
	rows    [][]float64
	prices  []float64
	scale   []float64
	m, n    int
	basis   []int
	inverse [][]float64 // of the basis, m x m
	x       []float64
	y       []float64
	// big is the price of each artificial column: more than the resource can be worth, for no type may be worth more
	// than its price by that resource alone. Nothing larger is needed, and it would cost digits.
	big []float64
}

func newCover(rows [][]float64, prices, demand []float64, dims []int) *cover {
	s := &cover{prices: slices.Clone(prices), m: len(dims), n: len(rows)}
	s.rows = make([][]float64, len(rows))
	s.x = make([]float64, s.m)
	for k, r := range dims {
		most := 0.0
		for _, row := range rows {
			most = max(most, row[r])
		}
		s.scale = append(s.scale, most)
		s.x[k] = demand[r] / most
	}
	for k, most := 0, slices.Max(s.x); k < s.m; k++ { // how often all of it is asked changes no value
		s.x[k] /= most
	}
	for i, row := range rows {
		s.rows[i] = make([]float64, s.m)
		for k, r := range dims {
			s.rows[i][k] = row[r] / s.scale[k]
		}
		if most := slices.Max(s.rows[i]); most > 0 {
			for k := range s.m {
				s.rows[i][k] /= most
			}
			s.prices[i] /= most
		}
	}
	for k := range s.m {
		most := math.Inf(1)
		for i, row := range s.rows {
			if row[k] > 0 {
				most = min(most, s.prices[i]/row[k])
			}
		}
		s.big = append(s.big, 2*most+1)
	}
	s.inverse = make([][]float64, s.m)
	s.y = make([]float64, s.m)
	for i := range s.m {
		s.inverse[i] = make([]float64, s.m)
		s.inverse[i][i] = 1
		s.basis = append(s.basis, s.n+s.m+i)
	}
	return s
}

func (s *cover) price(col int) float64 {
	switch {
	case col < s.n:
		return s.prices[col]
	case col < s.n+s.m:
		return 0
	default:
		return s.big[col-s.n-s.m]
	}
}

// step does one pivot and reports whether there was one to do. Ties go to the lowest column, so that it always ends the
// same way.
func (s *cover) step() bool {
	for k := range s.m {
		s.y[k] = 0
		for i, col := range s.basis {
			s.y[k] += s.price(col) * s.inverse[i][k]
		}
	}
	enter, gain := -1, 1e-10
	for col, row := range s.rows {
		worth := 0.0
		for k, a := range row {
			worth += a * s.y[k]
		}
		// Relative gain: a dear type is not preferred only because it is large.
		if g := (worth - s.prices[col]) / max(s.prices[col], 1e-9); g > gain {
			enter, gain = col, g
		}
	}
	if enter < 0 {
		for k := range s.m { // a surplus column is minus one unit of cover
			if -s.y[k] > 1e-10*s.big[k] {
				enter = s.n + k
				break
			}
		}
	}
	if enter < 0 {
		return false
	}
	dir := make([]float64, s.m)
	for i := range s.m {
		for k := range s.m {
			dir[i] += s.inverse[i][k] * s.entry(enter, k)
		}
	}
	leave, ratio := -1, math.Inf(1)
	for i := range s.m {
		if dir[i] > 1e-11 {
			if q := s.x[i] / dir[i]; q < ratio*(1-1e-12) || (q <= ratio && leave >= 0 && s.basis[i] < s.basis[leave]) {
				leave, ratio = i, q
			}
		}
	}
	if leave < 0 {
		return false
	}
	s.pivot(enter, leave, dir, ratio)
	return true
}

func (s *cover) entry(col, k int) float64 {
	switch {
	case col < s.n:
		return s.rows[col][k]
	case col == s.n+k:
		return -1
	case col == s.n+s.m+k:
		return 1
	}
	return 0
}

func (s *cover) pivot(enter, leave int, dir []float64, ratio float64) {
	for i := range s.m {
		if i != leave {
			s.x[i] = max(0, s.x[i]-ratio*dir[i])
		}
	}
	s.x[leave] = ratio
	for k := range s.m {
		s.inverse[leave][k] /= dir[leave]
	}
	for i := range s.m {
		if i == leave {
			continue
		}
		for k := range s.m {
			s.inverse[i][k] -= dir[i] * s.inverse[leave][k]
		}
	}
	s.basis[leave] = enter
}
