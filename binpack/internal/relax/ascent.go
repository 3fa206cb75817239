package relax

import (
	"math"
	"slices"
)

// ascend returns duals that usually prove more, by dual ascent (D. Erlenkotter, 1978). It first scales each class by the lowest
// ratio of price to profit over the bin types that hold it. (A. A. Farley's bound scales all classes by the lowest of all, so one
// bin type lowers classes that may not even go there.) Then it raises each class in turn until a bin type that holds it reaches its
// price. Profits are those of fractional fillings. It returns nil if its part of the budget does not suffice. Items that counted
// bin types fill above their price are not raised.
func (m *Model) ascend(duals []float64, b *Budget) []float64 {
	n := len(m.BinTypes) * len(m.Classes)
	if m.Dims*n*ascentSteps > b.Left/ascentPart {
		return nil
	}
	a := &ascent{m: m, b: b, duals: slices.Clone(duals), cost: make([]float64, n), most: make([]float64, n), slack: make([]float64, len(m.BinTypes))}
	if !a.fill() {
		return nil
	}
	a.scale()
	if !a.fill() {
		return nil
	}
	for i := range m.Classes {
		if b.Stopped() {
			return nil
		}
		a.raise(i)
	}
	a.repair()
	return a.duals
}

// ascent is the state of ascend.
type ascent struct {
	m     *Model
	b     *Budget
	duals []float64
	knap  Knapsack
	// cost is that of an item by the weights of the bin type's filling, and most how many items one bin holds; by bin type and class.
	cost, most []float64
	slack      []float64 // by bin type: price less profit
}

// fill computes the most profitable fractional filling of each bin type. It reports whether the budget sufficed.
func (a *ascent) fill() bool {
	m := a.m
	for k := range m.BinTypes {
		typ := &m.BinTypes[k]
		cost, most := a.cost[k*len(m.Classes):][:len(m.Classes)], a.most[k*len(m.Classes):][:len(m.Classes)]
		clear(cost)
		profit, all := 0.0, 0.0
		if m.Load(&a.knap, k, a.duals) {
			profit = a.knap.Sharpest(0)
		}
		a.slack[k] = typ.Price - profit
		for i := range m.Classes {
			if c := &m.Classes[i]; c.Count > 0 && c.May(k) {
				most[i] = float64(Copies(typ.Capacity, c.Size, min(c.Count, c.Most)))
				all += float64(most[i] * a.duals[i])
			}
		}
		for i := range cost {
			if profit < all && most[i] > 0 { // otherwise a bin holds everything, and no item costs anything
				for at, r := range a.knap.dims {
					cost[i] += float64(a.knap.weight[at] / float64(typ.Capacity[r]) * float64(m.Classes[i].Size[r]))
				}
			}
		}
		if !a.b.Take(a.knap.Steps() + 2*len(cost)*(m.Dims+1)) {
			return false
		}
	}
	return true
}

// scale raises each class by the lowest ratio of price to profit.
func (a *ascent) scale() {
	for i := range a.duals {
		ratio := math.Inf(1)
		for k := range a.slack {
			if price := a.m.BinTypes[k].Price; a.most[k*len(a.duals)+i] > 0 && a.slack[k] < price {
				ratio = min(ratio, max(1, price/(price-a.slack[k])))
			}
		}
		if !math.IsInf(ratio, 1) {
			a.duals[i] *= ratio
		}
	}
}

// raise raises a class by the least slack of the bin types that hold it. Up to its cost, an item does not enter a filling.
func (a *ascent) raise(i int) {
	gain := math.Inf(1)
	for k, slack := range a.slack {
		if at := k*len(a.duals) + i; a.most[at] > 0 {
			gain = min(gain, max(0, a.cost[at]-a.duals[i])+max(0, slack/a.most[at]))
		}
	}
	if math.IsInf(gain, 1) {
		return
	}
	for k := range a.slack {
		at := k*len(a.duals) + i
		a.slack[k] -= float64((max(0, a.duals[i]+gain-a.cost[at]) - max(0, a.duals[i]-a.cost[at])) * a.most[at])
	}
	a.duals[i] += gain
}

// repair lowers the classes of each uncounted bin type with a profit above its price. There are some, because new duals lead to
// other weights.
func (a *ascent) repair() {
	for k := range a.m.BinTypes {
		if a.b.Stopped() {
			return
		}
		if typ := &a.m.BinTypes[k]; typ.Supply < 0 && a.m.Load(&a.knap, k, a.duals) {
			if most := a.knap.Sharpest(typ.Price); most > typ.Price {
				for i := range a.knap.cand {
					a.duals[a.knap.cand[i].class] *= typ.Price / most
				}
			}
		}
		a.b.Take(a.knap.Steps())
	}
}
