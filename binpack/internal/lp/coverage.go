package lp

import (
	"math"
	"slices"
	"sync/atomic"
)

// Coverage maximises demand.y subject to row.y <= price for every row and y >= 0. It returns y, the
// price of a unit of each resource if capacity can be bought in fractions, and the simplex steps.
// It is [Flows] with one place. Demand that is not positive is ignored. The result is nearly exact;
// callers round it to a certificate.
func Coverage(rows [][]float64, prices, demand []float64, stop *atomic.Bool) (best []float64, steps int) {
	sold, any := make([]float64, len(demand)), false
	for r, d := range demand {
		if d > 0 && slices.ContainsFunc(rows, func(row []float64) bool { return row[r] > 0 }) {
			sold[r], any = d, true
		}
	}
	if !any {
		return sold, 0
	}
	f := Flows{Demand: [][]float64{sold}, Into: [][]int{{0}}, Capacity: [][][]float64{rows}, Prices: [][]float64{prices}, Stop: stop}
	duals, steps := f.Duals()
	best = duals[0]
	// If magnitudes differ by more than float64 can hold, a single resource may prove more than the
	// simplex found.
	for r, d := range sold {
		if d == 0 {
			continue
		}
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
	return best, steps
}

// shrink scales the duals down such that no row has a dual value above its price.
func shrink(rows [][]float64, prices, y []float64) {
	factor := 1.0
	for i, row := range rows {
		if dualValue := dot(row, y); dualValue > prices[i] {
			factor = min(factor, prices[i]/dualValue)
		}
	}
	for r := range y {
		y[r] *= factor
	}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}
