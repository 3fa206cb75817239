package proof

import "math"

// knapsack is a linear programme: it maximizes the profit of columns whose sum is at most 1 in each
// row, with an upper bound for each column. It is solved by the simplex method with bounded
// variables. It uses floating-point numbers, because its answer proves nothing by itself: what the
// duals prove is computed exactly.
type knapsack struct {
	rows    int
	columns [][]float64
	profit  []float64
	most    []float64
}

// tolerance is how far from 0 a number must be to count, relative to the profit of a pivot or to 1.
const tolerance = 1e-9

// duals returns the prices of the rows. None is negative.
func (k *knapsack) duals() []float64 {
	m, n := k.rows, len(k.columns)
	inverse, basis, level := make([][]float64, m), make([]int, m), make([]float64, m) // slack r is variable n+r
	for r := range inverse {
		inverse[r] = make([]float64, m)
		inverse[r][r], basis[r], level[r] = 1, n+r, 1
	}
	atMost, isBasic := make([]bool, n), make([]bool, n)
	out := make([]float64, m)
	for range 20 * (n + m) {
		for r := range out {
			out[r] = 0
			for b, v := range basis {
				if v < n {
					out[r] += float64(k.profit[v] * inverse[b][r])
				}
			}
		}
		enter, gain := -1, 0.0
		for j := range n + m {
			var d float64
			switch {
			case j >= n:
				d = -out[j-n]
			case !isBasic[j]:
				d = k.profit[j] - dot(out, k.columns[j])
				if d /= k.profit[j]; atMost[j] {
					d = -d
				}
			}
			if d > gain+tolerance {
				enter, gain = j, d
			}
		}
		if enter < 0 {
			break
		}
		direction, sign := make([]float64, m), 1.0
		for b := range direction {
			if enter < n {
				direction[b] = dot(inverse[b], k.columns[enter])
			} else {
				direction[b] = inverse[b][enter-n]
			}
		}
		limit, leave, toMost := math.Inf(1), -1, false
		if enter < n {
			if limit = k.most[enter]; atMost[enter] {
				sign = -1
			}
		}
		for b, v := range basis {
			switch step := float64(sign * direction[b]); {
			case step > tolerance && level[b]/step < limit:
				limit, leave, toMost = max(0, level[b]/step), b, false
			case step < -tolerance && v < n && (k.most[v]-level[b])/-step < limit:
				limit, leave, toMost = max(0, (k.most[v]-level[b])/-step), b, true
			}
		}
		if math.IsInf(limit, 1) {
			break
		}
		for b := range level {
			level[b] -= float64(limit * float64(sign*direction[b]))
		}
		if leave < 0 { // the column moves from one of its bounds to the other
			atMost[enter] = !atMost[enter]
			continue
		}
		if gone := basis[leave]; gone < n {
			isBasic[gone], atMost[gone] = false, toMost
		}
		basis[leave], level[leave] = enter, limit
		if enter < n {
			if isBasic[enter] = true; sign < 0 {
				level[leave] = k.most[enter] - limit
			}
		}
		pivot := direction[leave]
		for c := range inverse[leave] {
			inverse[leave][c] /= pivot
		}
		for b := range inverse {
			for c := range inverse[b] {
				if b != leave {
					inverse[b][c] -= float64(direction[b] * inverse[leave][c])
				}
			}
		}
	}
	for r := range out {
		out[r] = max(0, out[r])
	}
	return out
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}
