// Package relax solves the packing problem without its finer rules: classes of equal items, bin
// types with a price, and which class may go into which bin type. The cost of its optimum is a
// lower bound for the real problem, and its solution guides strategies, which then apply all rules.
//
// Column generation solves the linear programme over patterns (P. C. Gilmore and R. E. Gomory,
// 1961). A pattern is a filling of one bin. The master programme buys patterns and yields a dual
// for each class, and a knapsack for each bin type looks for a pattern with negative reduced cost.
// Duals under which no pattern has negative reduced cost prove a bound (A. A. Farley, 1990): over
// fractional patterns if the knapsack is relaxed, and the stronger one over whole patterns if it is
// searched.
package relax

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"sync/atomic"
)

// Model is a relaxed problem. This package does not modify it.
type Model struct {
	Dims int
	// Grain divides every price; 0 means 1. Duals of a proof, and what it proves, are in whole
	// numbers of the price. Unit is the unit of BinType.Price: a grain divided by a power of two,
	// so that plans do not depend on the currency; 0 means 1.
	Grain    int64
	Unit     float64
	BinTypes []BinType
	Classes  []Class
	// Supply is the amount of each counted supply: bins of a reservation, existing nodes, committed
	// money.
	Supply []int64
	// Diversity limits what a pool of bin types holds. Only proofs use it; packings ignore it.
	Diversity []Diversity
}

// Diversity limits what all bins of a pool of bin types hold together.
type Diversity struct {
	// Counts is how much one item of each class counts. Left is the limit of each pool; pool 0 has
	// none.
	Counts, Left []int64
}

// BinType is one way to buy a bin.
type BinType struct {
	Capacity []int64
	Price    float64
	// Supply is an index into Model.Supply, or -1 for an uncounted bin type, which never runs out.
	Supply int32
	// Takes is how much of the supply one bin takes; 0 means 1.
	Takes int64
	// Pool is the pool that [Diversity] limits; 0 means none.
	Pool int32
}

// takes returns how much of its supply one bin takes.
func (k *BinType) takes() int64 { return max(k.Takes, 1) }

// Class is a number of equal items.
type Class struct {
	Size  []int64
	Count int64
	// Most is how many of them one bin holds at most, regardless of its capacity.
	Most int64
	// BinTypes is the bitset of the bin types that the class may go into, regardless of sizes.
	BinTypes []uint64
}

// Pattern is a filling of one bin, by class in ascending order.
type Pattern []Amount

// Amount is a number of items of a class.
type Amount struct {
	Class int32
	Count int64
}

// times returns how often the items suffice for the pattern.
func (p Pattern) times(classes []Class) int64 {
	n := int64(math.MaxInt64)
	for _, a := range p {
		n = min(n, classes[a.Class].Count/a.Count)
	}
	return n
}

// take removes the items of the given number of copies of the pattern.
func (p Pattern) take(classes []Class, copies int64) {
	for _, a := range p {
		classes[a.Class].Count -= copies * a.Count
	}
}

func (p Pattern) sort() {
	slices.SortFunc(p, func(a, b Amount) int { return cmp.Compare(a.Class, b.Class) })
}

// May reports whether the class may go into the bin type, regardless of sizes.
func (c *Class) May(typ int) bool { return has(c.BinTypes, typ) }

func has(set []uint64, i int) bool { return set[i/64]&(1<<(i%64)) != 0 }

// fits reports whether an item of the class alone goes into the bin type k.
func (c *Class) fits(typ *BinType, k int) bool {
	return c.May(k) && Copies(typ.Capacity, c.Size, 1) > 0
}

// Copies returns how many items of the size fit into the free capacity, at most want.
func Copies[N int | int64](free, size []int64, want N) N {
	for r, s := range size {
		if s > free[r] && s > 0 {
			return 0
		}
		if want > 1 {
			if high, low := bits.Mul64(uint64(s), uint64(want)); high != 0 || low > uint64(free[r]) {
				want = N(free[r] / s)
			}
		}
	}
	return want
}

// Budget counts down steps of work, so the amount of work does not depend on the machine. Setting
// Stop uses it up at once.
type Budget struct {
	Left int
	Stop *atomic.Bool
}

// Take uses n steps and reports whether any are left.
func (b *Budget) Take(n int) bool {
	if b.Left -= n; b.Stopped() {
		b.Left = min(b.Left, 0)
	}
	return b.Left > 0
}

// Stopped reports whether Stop is set.
func (b *Budget) Stopped() bool { return b.Stop != nil && b.Stop.Load() }

// Split moves at most n of the remaining steps to a new budget.
func (b *Budget) Split(n int) *Budget {
	n = max(min(n, b.Left), 0)
	b.Left -= n
	return &Budget{n, b.Stop}
}

// Return adds what remains of a part.
func (b *Budget) Return(part *Budget) {
	b.Left += part.Left
	b.Take(0)
}

// unit returns the unit of prices.
func (m *Model) unit() float64 { return cmp.Or(m.Unit, 1) }

// Units returns the lowest cost in units of the model that is at least the price.
func (m *Model) Units(price int64) float64 {
	grain := max(m.Grain, 1)
	whole := price / grain
	if price%grain > 0 {
		whole++
	}
	return float64(whole) * (float64(grain) / m.unit())
}

// Proved returns the lowest possible cost in price that is at least a cost in units. Both steps are
// exact, because a unit is a grain divided by a power of two.
func (m *Model) Proved(units float64) int64 {
	grain := max(m.Grain, 1)
	whole := int64(min(math.Ceil(units/(float64(grain)/m.unit())), 1<<62)) // an infinite cost saturates
	if whole > math.MaxInt64/grain {
		return math.MaxInt64
	}
	return whole * grain
}

// priced returns the model with prices in units of price.
func (m *Model) priced() *Model {
	out := *m
	out.Unit, out.BinTypes = 1, slices.Clone(m.BinTypes)
	for k := range out.BinTypes {
		out.BinTypes[k].Price *= m.unit()
	}
	return &out
}

// inPrice returns the numbers of units in units of price.
func (m *Model) inPrice(units []float64) []float64 {
	out := make([]float64, len(units))
	for i, v := range units {
		out[i] = v * m.unit()
	}
	return out
}

// cheapest returns the first bin type with the lowest price that holds an item of the class, or -1.
// It considers counted bin types only if counted is set.
func (m *Model) cheapest(c *Class, counted bool) int {
	best := -1
	for k := range m.BinTypes {
		typ := &m.BinTypes[k]
		if (counted || typ.Supply < 0) && (best < 0 || typ.Price < m.BinTypes[best].Price) && c.fits(typ, k) {
			best = k
		}
	}
	return best
}

// bigM returns the cost of leaving one item of the class unplaced in the master programme. It
// exceeds every dual: it is 1.5 times the price of an uncounted bin for the item alone. It is
// infinite if no bin type holds the item.
func (m *Model) bigM(c *Class) float64 {
	if k := m.cheapest(c, false); k >= 0 {
		return max(1.5*m.BinTypes[k].Price, 1) // even at price 0, placing beats not placing
	}
	if m.cheapest(c, true) < 0 {
		return math.Inf(1)
	}
	dearest := 0.0
	for k := range m.BinTypes {
		dearest = max(dearest, m.BinTypes[k].Price)
	}
	return 1.5 * (2*dearest + 1)
}

// Fits reports whether some bin type can hold an item of the class.
func (m *Model) Fits(class int) bool { return m.cheapest(&m.Classes[class], true) >= 0 }

// Cost returns the total price of the columns.
func (m *Model) Cost(columns []Column) float64 {
	sum := 0.0
	for _, c := range columns {
		sum += m.BinTypes[c.BinType].Price
	}
	return sum
}

// Unplaced counts the items that some bin type can hold and the columns do not.
func (m *Model) Unplaced(columns []Column) int64 {
	n := int64(0)
	for i, c := range m.rest(columns).Classes {
		if c.Count > 0 && m.Fits(i) {
			n += c.Count
		}
	}
	return n
}

// items counts the items.
func (m *Model) items() int64 {
	n := int64(0)
	for i := range m.Classes {
		n += m.Classes[i].Count
	}
	return n
}

// perBin estimates how many items of average size the largest bin type holds.
func (m *Model) perBin() float64 {
	largest, need := m.largest(), make([]float64, m.Dims)
	for i := range m.Classes {
		for r, s := range m.Classes[i].Size {
			need[r] += float64(float64(s) * float64(m.Classes[i].Count))
		}
	}
	bins := 0.0
	for r := range need {
		if largest[r] > 0 {
			bins = max(bins, need[r]/largest[r])
		}
	}
	return float64(m.items()) / max(bins, 1e-9)
}

// largest returns the largest capacity on offer, by dimension.
func (m *Model) largest() []float64 {
	out := make([]float64, m.Dims)
	for k := range m.BinTypes {
		for r, c := range m.BinTypes[k].Capacity {
			out[r] = max(out[r], float64(c))
		}
	}
	return out
}

// Tightened returns the capacities lowered, resource by resource, to what items can fill: to the
// sizes of all items that may go there, and to the largest subset sum of items. Sizes are usually
// round and capacities are not, so this tightens proofs.
//
// profile has a number for each class. open has, for each capacity, the bitset of the profiles that
// may go there. It costs O(capacities x profiles + classes x sums / 64). With many classes or sums
// it skips subset sums, because they then reach almost any amount. If the watch ends, the remaining
// capacities stay as they are.
func (m *Model) Tightened(capacities [][]int64, profile []int, open [][]uint64, w *Watch) [][]int64 {
	const mostClasses, mostSums = 256, 1 << 16
	out := make([][]int64, len(capacities))
	for k := range capacities {
		out[k] = slices.Clone(capacities[k])
	}
	demand := make([]int64, 1+slices.Max(append(profile, 0)))
	for r := range m.Dims {
		unit := int64(0)
		clear(demand)
		for i := range m.Classes {
			c := &m.Classes[i]
			unit = Divisor(unit, c.Size[r])
			if c.Size[r] > 0 {
				demand[profile[i]] = saturated(demand[profile[i]], c.Size[r], c.Count)
			}
		}
		if unit == 0 {
			continue
		}
		largest := int64(0)
		for k := range out {
			if w.Ended(len(demand)) {
				return out
			}
			all := int64(0)
			for p, d := range demand {
				if d > 0 && has(open[k], p) {
					all = saturated(all, d, 1)
				}
			}
			out[k][r] = min(out[k][r], all)
			largest = max(largest, out[k][r])
		}
		if len(m.Classes) > mostClasses || largest/unit > mostSums {
			continue
		}
		sums := m.sums(r, unit, largest/unit)
		for k := range out {
			if c := &out[k][r]; *c > 0 {
				*c = sums[*c/unit] * unit
			}
		}
	}
	return out
}

// Divisor returns the greatest common divisor, by Euclid.
func Divisor[N ~int64](a, b N) N {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// RoundUp returns the lowest multiple of the grain that is at least n, or n if that overflows. A
// grain of 0 means 1.
func RoundUp[N ~int64](n, grain N) N {
	grain = max(grain, 1)
	whole := n / grain
	if n%grain > 0 {
		whole++
	}
	if whole > math.MaxInt64/grain {
		return n
	}
	return whole * grain
}

// saturated returns sum + size * count, or math.MaxInt64 on overflow.
func saturated(sum, size, count int64) int64 {
	if count > (math.MaxInt64-sum)/size {
		return math.MaxInt64
	}
	return sum + size*count
}

// sums returns for each amount up to most, in multiples of the unit, the largest subset sum of the
// items that is at most as much.
func (m *Model) sums(r int, unit, most int64) []int64 {
	sums, more, mask := big.NewInt(1), new(big.Int), big.NewInt(1) // a bit for each sum
	mask.Lsh(mask, uint(most+1)).Sub(mask, big.NewInt(1))
	for i := range m.Classes {
		size, left := m.Classes[i].Size[r]/unit, min(m.Classes[i].Count, m.Classes[i].Most)
		if size == 0 {
			continue
		}
		left = min(left, most/size)
		for n := int64(1); left > 0; n *= 2 { // 1, 2, 4... and a remainder form every number
			n = min(n, left)
			left -= n
			sums.Or(sums, more.Lsh(sums, uint(n*size))).And(sums, mask)
		}
	}
	out := make([]int64, most+1)
	for n := range out[1:] {
		if out[n+1] = out[n]; sums.Bit(n+1) == 1 {
			out[n+1] = int64(n + 1)
		}
	}
	return out
}

// Ranked returns the bin types by the worth of their best fractional filling per price, the best
// first. A sample represents all classes. The steps are counted by the knapsack.
func (m *Model) Ranked(knap *Knapsack, worth []float64) []int {
	some := &Model{Dims: m.Dims, BinTypes: m.BinTypes}
	var someWorth []float64
	stride := 1 + len(m.Classes)/rankedClasses
	for i := 0; i < len(m.Classes); i += stride {
		c := m.Classes[i]
		c.Count *= int64(stride)
		some.Classes, someWorth = append(some.Classes, c), append(someWorth, worth[i])
	}
	var types []int
	ratio := make([]float64, len(m.BinTypes))
	for k := range m.BinTypes {
		if some.Load(knap, k, someWorth) {
			ratio[k] = knap.Bound(math.Inf(1)) / max(m.BinTypes[k].Price, 1e-9)
			types = append(types, k)
		}
	}
	slices.SortStableFunc(types, func(a, b int) int { return cmp.Compare(ratio[b], ratio[a]) })
	return types
}
