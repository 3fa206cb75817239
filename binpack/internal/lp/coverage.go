package lp

import (
	"math"
	"slices"
)

// Coverage maximises demand.y subject to row.y <= price for every row and y >= 0: what a unit of each resource is worth
// when capacity can be bought in any fraction. Rows are many and resources few, so it works on the dual of this, min
// price.x with rows covering the demand; its multipliers are y. Demand that is not positive needs no cover. The result
// is only near-exact: callers round it to a certificate.
func Coverage(rows [][]float64, prices, demand []float64) []float64 {
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
	p, scale := scaled(rows, prices, demand, dims)
	p.Solve(200 + 20*len(dims))
	for i, r := range dims {
		y[r] = max(0, p.Multipliers()[i]) / scale[i]
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

// scaled is the programme with each dimension's largest entry 1, then each row's, its price going with it. Thresholds
// then mean the same for cores and bytes, for one bin and for a billion.
func scaled(rows [][]float64, prices, demand []float64, dims []int) (*Program, []float64) {
	m := len(dims)
	scale, rhs, big := make([]float64, m), make([]float64, m), make([]float64, m)
	for k, r := range dims {
		for _, row := range rows {
			scale[k] = max(scale[k], row[r])
		}
		rhs[k] = demand[r] / scale[k]
		big[k] = math.Inf(1)
	}
	for k, most := 0, slices.Max(rhs); k < m; k++ { // how often all of it is asked changes no value
		rhs[k] /= most
	}
	columns, entries := make([][]Entry, len(rows)), make([]Entry, 0, len(rows)*m)
	costs := slices.Clone(prices)
	for i, row := range rows {
		most := 0.0
		for k, r := range dims {
			most = max(most, row[r]/scale[k])
		}
		if most == 0 {
			continue
		}
		costs[i] /= most
		from := len(entries)
		for k, r := range dims {
			if a := row[r] / scale[k] / most; a > 0 {
				entries = append(entries, Entry{int32(k), a})
				big[k] = min(big[k], costs[i]/a)
			}
		}
		columns[i] = entries[from:len(entries):len(entries)]
	}
	// The price of an artificial column: more than the resource can be worth, for no type may be worth more than its price
	// by that resource alone. Nothing larger is needed, and it would cost digits.
	for k := range big {
		big[k] = 2*big[k] + 1
	}
	p := New(rhs, make([]bool, m), big)
	for i, c := range columns {
		p.Add(costs[i], c)
	}
	return p, scale
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
		sum += float64(a[i] * b[i])
	}
	return sum
}
