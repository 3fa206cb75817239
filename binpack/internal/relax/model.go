// Package relax is the packing problem without its finer rules: classes of equal items, bin types of bins at a price, and
// which class may go into which bin type. What it costs at least is a lower bound of the real problem, and what it buys is
// a guide for strategies, which then obey all rules.
//
// The linear programme over patterns (P. C. Gilmore and R. E. Gomory, 1961) is solved by column generation: a pattern is a
// way to fill one bin, the master programme buys patterns, its multipliers say what one more item of each class is
// worth, and a knapsack for each bin type looks for a pattern that is worth more than its bin. Values that no bin type can beat
// prove a bound (A. A. Farley, 1990); where the knapsack is relaxed to fractions, this is the bound of assigning fractions
// of classes to bin types, where it is searched, the stronger one over whole patterns.
package relax

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// Model is a relaxed problem. It is not modified by anything here.
type Model struct {
	Dims     int
	BinTypes []BinType
	Classes  []Class
	// Supply is how much there is of what is counted: bins of reservations, rooms that are paid for, money that is committed.
	Supply []int64
	// Diversity is what proofs know of items that may not be in one pool of bin types; packings do not mind it.
	Diversity []Diversity
}

// Diversity bounds what the bins of a pool of bin types hold, all together.
type Diversity struct {
	// Counts is how much one of each class does; Left, by pool, how much there may be. Pool 0 has no bound.
	Counts, Left []int64
}

// BinType is one way to buy a bin.
type BinType struct {
	Capacity []int64
	Price    float64
	// Supply is an index into Model.Supply, or -1 for what never runs out.
	Supply int32
	// Takes is how much of the supply one bin takes; 0 means 1.
	Takes int64
	// Pool is what [Diversity] bounds; 0 is none.
	Pool int32
	// Label is the caller's.
	Label int
}

// takes is how much of its supply one bin takes.
func (k *BinType) takes() int64 { return max(k.Takes, 1) }

// Class is a number of equal items.
type Class struct {
	Size  []int64
	Count int64
	// Most is how many of them one bin holds at most, whatever the room.
	Most int64
	// Bin types is the bitset of those that the class may go into, sizes aside.
	BinTypes []uint64
}

// Pattern is one filling of a bin: how many of which classes, by class in ascending order.
type Pattern struct {
	Class []int32
	Count []int32
}

// Copy is a pattern of its own.
func (p Pattern) Copy() Pattern {
	return Pattern{append([]int32(nil), p.Class...), append([]int32(nil), p.Count...)}
}

// May reports whether the class may go into the bin type, sizes aside.
func (c *Class) May(typ int) bool { return has(c.BinTypes, typ) }

func has(set []uint64, i int) bool { return set[i/64]&(1<<(i%64)) != 0 }

// Copies is how many items of the size go into the room, at most want.
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

// Budget counts steps of work down, so that how long something is tried does not depend on the machine. It is used up at
// once when Stop is set.
type Budget struct {
	Left int
	Stop *atomic.Bool
}

// Take uses steps up and reports whether any are left.
func (b *Budget) Take(n int) bool {
	if b.Left -= n; b.Stop != nil && b.Stop.Load() {
		b.Left = min(b.Left, 0)
	}
	return b.Left > 0
}

// Split moves a part of what is left, at most n steps, to a budget of its own.
func (b *Budget) Split(n int) *Budget {
	n = max(min(n, b.Left), 0)
	b.Left -= n
	return &Budget{n, b.Stop}
}

// Return takes back what is left of a part.
func (b *Budget) Return(part *Budget) {
	b.Left += part.Left
	b.Take(0)
}

// cheapest is the first of the bin types that hold a item of the class for the least price, or -1: of those that never run out, or of all.
func (m *Model) cheapest(c *Class, counted bool) int {
	best := -1
	for k := range m.BinTypes {
		if (counted || m.BinTypes[k].Supply < 0) && (best < 0 || m.BinTypes[k].Price < m.BinTypes[best].Price) && has(c.BinTypes, k) && Copies(m.BinTypes[k].Capacity, c.Size, 1) > 0 {
			best = k
		}
	}
	return best
}

// penalty is more than one item of the class is worth: what a bin for itself costs that never runs out, and half as much
// again. It is infinite where no bin type holds it.
func (m *Model) bigM(c *Class) float64 {
	if k := m.cheapest(c, false); k >= 0 {
		return max(1.5*m.BinTypes[k].Price, 1) // what costs nothing is still better than nothing
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

// Fits reports whether some bin type can hold a item of the class.
func (m *Model) Fits(class int) bool { return m.cheapest(&m.Classes[class], true) >= 0 }

// Cost is the price of all columns together.
func (m *Model) Cost(columns []Column) float64 {
	sum := 0.0
	for _, c := range columns {
		sum += m.BinTypes[c.BinType].Price
	}
	return sum
}

// Uncovered reports whether the columns leave out something that some bin type can hold.
func (m *Model) Uncovered(columns []Column) bool { return m.leftOut(columns) > 0 }

// leftOut is how many items that some bin type can hold the columns leave out.
func (m *Model) leftOut(columns []Column) int64 {
	placed := make([]int64, len(m.Classes))
	for _, c := range columns {
		for i, class := range c.Class {
			placed[class] += int64(c.Count[i])
		}
	}
	n := int64(0)
	for i := range m.Classes {
		if left := m.Classes[i].Count - placed[i]; left > 0 && m.Fits(i) {
			n += left
		}
	}
	return n
}

// items is how many there are.
func (m *Model) items() int64 {
	n := int64(0)
	for i := range m.Classes {
		n += m.Classes[i].Count
	}
	return n
}

// perBin is about how many items of average size the largest bin type holds.
func (m *Model) perBin() float64 {
	largest := make([]float64, m.Dims)
	for k := range m.BinTypes {
		for r, c := range m.BinTypes[k].Capacity {
			largest[r] = max(largest[r], float64(c))
		}
	}
	need, items := make([]float64, m.Dims), 0.0
	for i := range m.Classes {
		items += float64(m.Classes[i].Count)
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
	return items / max(bins, 1e-9)
}

// Reached is the rooms cut down to what sums of items can come to, resource by resource: whatever is packed, the rest stays
// empty. Sizes are usually round numbers and rooms are not, so that proofs get sharper. It costs O(classes x sums / 64), and
// leaves items alone where there are many classes or sums, which then come to almost anything.
func (m *Model) Tightened(capacities [][]int64) [][]int64 {
	const mostClasses, mostSums = 256, 1 << 16
	if len(m.Classes) > mostClasses {
		return capacities
	}
	out, flat := make([][]int64, len(capacities)), make([]int64, 0, len(capacities)*m.Dims)
	for k := range capacities {
		flat = append(flat, capacities[k]...)
		out[k] = flat[len(flat)-len(capacities[k]):]
	}
	for r := range m.Dims {
		unit, capacity, all := int64(0), int64(0), int64(0)
		for i := range m.Classes {
			c := &m.Classes[i]
			for a, b := unit, c.Size[r]; ; a, b = b, a%b { // the greatest common divisor, after Euclid
				if b == 0 {
					unit = a
					break
				}
			}
			if c.Size[r] > 0 {
				all = saturated(all, c.Size[r], c.Count)
			}
		}
		for k := range capacities {
			capacity = max(capacity, capacities[k][r])
		}
		capacity = min(capacity, all)
		if unit == 0 || capacity/unit > mostSums {
			continue
		}
		sums := m.sums(r, unit, capacity/unit)
		for k := range out {
			if c := &out[k][r]; *c > 0 {
				*c = sums.below(*c/unit) * unit
			}
		}
	}
	return out
}

// saturated is a sum plus a product, or the largest number.
func saturated(sum, size, count int64) int64 {
	if count > (math.MaxInt64-sum)/size {
		return math.MaxInt64
	}
	return sum + size*count
}

// sumSet is a bitset of numbers.
type sumSet []uint64

// sums are the multiples of the unit, up to so many, that some items have together.
func (m *Model) sums(r int, unit, most int64) sumSet {
	s := make(sumSet, most/64+1)
	s[0] = 1
	for i := range m.Classes {
		size, left := m.Classes[i].Size[r]/unit, min(m.Classes[i].Count, m.Classes[i].Most)
		if size == 0 {
			continue
		}
		left = min(left, most/size)
		for n := int64(1); left > 0; n *= 2 { // 1, 2, 4... and the rest make up every number
			n = min(n, left)
			left -= n
			s.shift(n * size)
		}
	}
	return s
}

// shift adds to the set what its numbers and one more make.
func (s sumSet) shift(by int64) {
	words, rest := int(by/64), uint(by%64)
	for i := len(s) - 1; i >= words; i-- {
		v := s[i-words] << rest
		if rest > 0 && i > words {
			v |= s[i-words-1] >> (64 - rest)
		}
		s[i] |= v
	}
}

// below is the greatest of the set that is at most n.
func (s sumSet) below(n int64) int64 {
	if n >= int64(len(s))*64 {
		n = int64(len(s))*64 - 1
	}
	i := n / 64
	v := s[i] & (^uint64(0) >> (63 - uint(n%64)))
	for v == 0 {
		i--
		v = s[i]
	}
	return i*64 + 63 - int64(bits.LeadingZeros64(v))
}
