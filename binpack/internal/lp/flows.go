package lp

import (
	"math"
	"slices"
	"sync/atomic"
)

// Flows is a problem in which groups have demand that can be met in several places. In each place
// capacity can be bought in fractions. The demand of a group is split over the places open to it.
type Flows struct {
	// Demand is by group and dimension.
	Demand [][]float64
	// Into lists the places open to each group.
	Into [][]int
	// Capacity and Prices list what can be bought in each place; capacities are by dimension.
	Capacity [][][]float64
	Prices   [][]float64
	// Stop, if not nil, ends the simplex early when it is set.
	Stop *atomic.Bool
}

// Duals returns the price of a unit of each dimension in each place, and the simplex steps. No
// capacity has a dual value above its price, and the total dual value of all demand, each group's
// at its cheapest place, is maximal. Groups that no place can hold are ignored. The result is
// nearly exact, like that of [Coverage].
func (f *Flows) Duals() (duals [][]float64, steps int) {
	places, dims := len(f.Capacity), 0
	if len(f.Demand) > 0 {
		dims = len(f.Demand[0])
	}
	scale := make([]float64, dims)
	for _, capacities := range f.Capacity {
		for _, capacity := range capacities {
			for r, c := range capacity {
				scale[r] = max(scale[r], c)
			}
		}
	}
	// least is the price of a unit of each dimension alone, by place; infinite if there is none.
	least := make([][]float64, places)
	row := func(s, r int) int { return s*dims + r }
	rhs, bigM := make([]float64, places*dims), slices.Repeat([]float64{1}, places*dims)
	for s, capacities := range f.Capacity {
		least[s] = slices.Repeat([]float64{math.Inf(1)}, dims)
		for i, capacity := range capacities {
			for r, c := range capacity {
				if c > 0 {
					least[s][r] = min(least[s][r], f.Prices[s][i]*scale[r]/c)
				}
			}
		}
		for r, price := range least[s] {
			if !math.IsInf(price, 1) {
				bigM[row(s, r)] = 2*price + 1
			}
		}
	}
	columns := 0
	for g := range f.Demand {
		columns += len(f.Into[g])
	}
	flows := make([][]Entry, 0, columns) // by group and place
	arena := make([]Entry, 0, columns*(dims+1))
	for s := range f.Capacity {
		columns += len(f.Capacity[s])
	}
	most := 0.0
	for g, demand := range f.Demand {
		units := 0.0 // the group's demand, at most 1 of each dimension per unit
		for r, d := range demand {
			if d > 0 && scale[r] > 0 {
				units = max(units, d/scale[r])
			}
		}
		if units == 0 {
			continue
		}
		dearest, at := -1.0, int32(len(rhs))
		for _, s := range f.Into[g] {
			cost, first := 0.0, len(arena)
			arena = append(arena, Entry{at, 1})
			for r, d := range demand {
				if d > 0 {
					part := d / scale[r] / units
					arena = append(arena, Entry{int32(row(s, r)), -part})
					cost += float64(least[s][r] * part)
				}
			}
			if cost < math.Inf(1) { // the place holds the group
				flows = append(flows, arena[first:])
				dearest = max(dearest, cost)
			}
		}
		if dearest >= 0 {
			rhs, bigM = append(rhs, units), append(bigM, 2*dearest+1)
			most = max(most, units)
		}
	}
	for k := range rhs { // scaling the demand does not change the duals
		rhs[k] /= max(most, 1e-300)
	}
	p := New(rhs, make([]bool, len(rhs)), bigM)
	p.Stop = f.Stop
	p.Grow(columns, columns*(dims+1))
	for _, entries := range flows {
		p.Add(0, entries)
	}
	var column []Entry
	for s, capacities := range f.Capacity {
		for i, capacity := range capacities {
			largest := 0.0
			for r, c := range capacity {
				largest = max(largest, c/max(scale[r], 1e-300))
			}
			column = column[:0]
			for r, c := range capacity {
				if c > 0 {
					column = append(column, Entry{int32(row(s, r)), c / scale[r] / largest})
				}
			}
			if largest > 0 {
				p.Add(f.Prices[s][i]/largest, column)
			}
		}
	}
	p.Solve(200 + 20*len(rhs))
	duals = make([][]float64, places)
	for s := range places {
		duals[s] = make([]float64, dims)
		for r, price := range least[s] {
			if !math.IsInf(price, 1) {
				duals[s][r] = max(0, p.Duals()[row(s, r)]) / scale[r]
			}
		}
		shrink(f.Capacity[s], f.Prices[s], duals[s])
	}
	return duals, p.Steps()
}
