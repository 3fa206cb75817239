package relax

import "math"

// Model is a relaxed problem. It is not modified by anything here.
type Model struct {
	Dims    int
	Kinds   []Kind
	Classes []Class
	// Supply is how many bins there are of what is counted: reservations, and rooms that are paid for.
	Supply []int64
}

// Kind is one way to buy a bin.
type Kind struct {
	Capacity []int64
	Price    float64
	// Supply is an index into Model.Supply, or -1 for what never runs out.
	Supply int32
	// Label is the caller's.
	Label int
}

// Class is a number of equal things.
type Class struct {
	Size  []int64
	Count int64
	// Most is how many of them one bin holds at most, whatever the room.
	Most int64
	// Kinds is the bitset of those that the class may go into, sizes aside.
	Kinds []uint64
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

func has(set []uint64, i int) bool { return set[i/64]&(1<<(i%64)) != 0 }

// fits is how many things of the size go into the room, at most want.
func fits(free, size []int64, want int64) int64 {
	for r, s := range size {
		if s > 0 {
			if free[r] < s {
				return 0
			}
			want = min(want, free[r]/s)
		}
	}
	return want
}

// Budget counts steps of work down, so that how long something is tried does not depend on the machine.
type Budget struct{ Left int }

// Take uses steps up and reports whether any are left.
func (b *Budget) Take(n int) bool {
	b.Left -= n
	return b.Left > 0
}

// alone is the least price at which one thing of the class can have a bin for itself, or infinity.
func (m *Model) alone(c *Class) float64 {
	least := math.Inf(1)
	for k := range m.Kinds {
		if m.Kinds[k].Price < least && has(c.Kinds, k) && fits(m.Kinds[k].Capacity, c.Size, 1) > 0 {
			least = m.Kinds[k].Price
		}
	}
	return least
}
