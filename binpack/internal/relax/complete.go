package relax

import (
	"cmp"
	"slices"
)

// completer searches all packings of all items into a given set of bins, bin by bin (bin
// completion: R. E. Korf, 2002). The total free capacity is known, so a filling that wastes more of
// any resource is excluded. Of equivalent packings it tries one, the first in the order of item
// counts: each bin is full except for what no longer fits, and equal bins come in decreasing order.
type completer struct {
	m     *Model
	types []int     // the smallest first
	order []int32   // classes, the largest first
	left  []int64   // remaining items, by place in order
	slack []int64   // by dimension: what may stay free
	fill  [][]int64 // by bin: how many items, by place in order
	rest  [][]int64 // by bin: the total size that remains from a place in order on, by place and dimension
	free  [][]int64 // by bin: the free capacity, by dimension
	nodes int
	most  int
	b     *Budget
}

// prepare orders the classes, the largest first. It returns their sizes, summed over the
// dimensions.
func (c *completer) prepare(m *Model) []float64 {
	c.m = m
	largest, size := m.largest(), make([]float64, len(m.Classes))
	for i := range m.Classes {
		if m.Classes[i].Count > 0 {
			c.order = append(c.order, int32(i))
		}
		for r, v := range m.Classes[i].Size {
			size[i] += float64(v) / max(largest[r], 1)
		}
		size[i] = max(size[i], 1e-9)
	}
	slices.SortStableFunc(c.order, func(a, b int32) int { return cmp.Compare(size[b], size[a]) })
	return size
}

// perNode returns the steps that a node takes.
func (c *completer) perNode() int { return 4 * (c.m.Dims + 1) }

// run searches all packings into the set, in at most the given number of nodes. It returns one if
// it finds one; refuted means that there is none. Neither is known if the search would recurse too
// deeply: once for each bin and class.
func (c *completer) run(set []int, most int, b *Budget) (columns []Column, found, refuted bool) {
	m, d := c.m, c.m.Dims
	c.nodes, c.most, c.b = 0, most, b
	if len(set)*(len(c.order)+1) > deepestFilling {
		return nil, false, false
	}
	c.types = append(c.types[:0], set...)
	slices.SortStableFunc(c.types, func(a, b int) int {
		return cmp.Or(cmp.Compare(m.BinTypes[a].Price, m.BinTypes[b].Price), cmp.Compare(a, b))
	})
	c.left, c.slack = c.left[:0], append(c.slack[:0], make([]int64, d)...)
	for _, class := range c.order {
		c.left = append(c.left, m.Classes[class].Count)
		for r, s := range m.Classes[class].Size {
			c.slack[r] -= s * m.Classes[class].Count
		}
	}
	for _, k := range set {
		for r, capacity := range m.BinTypes[k].Capacity {
			c.slack[r] += capacity
		}
	}
	b.Take((len(set) + 4) * (len(c.order) + 4) * (d + 1) / 4)
	if slices.ContainsFunc(c.slack, func(s int64) bool { return s < 0 }) {
		return nil, false, true
	}
	grow := func(v [][]int64, n int) [][]int64 {
		v = append(v, make([][]int64, max(len(set)-len(v), 0))...)
		for i := range set {
			v[i] = zeros(v[i], n)
		}
		return v
	}
	c.fill, c.rest, c.free = grow(c.fill, len(c.order)), grow(c.rest, (len(c.order)+1)*d), grow(c.free, d)
	found = c.bin(0)
	b.Take(c.nodes * c.perNode())
	if !found {
		return nil, false, c.nodes < c.most
	}
	for i, k := range c.types {
		col := Column{BinType: k}
		for at, class := range c.order {
			if n := c.fill[i][at]; n > 0 {
				col.Pattern = append(col.Pattern, Amount{class, n})
			}
		}
		if len(col.Pattern) > 0 {
			col.sort()
			columns = append(columns, col)
		}
	}
	return columns, true, false
}

// bin fills this bin and the later ones.
func (c *completer) bin(at int) bool {
	d := c.m.Dims
	if at == len(c.types) {
		return !slices.ContainsFunc(c.left, func(n int64) bool { return n > 0 })
	}
	rest, k := c.rest[at], c.types[at]
	clear(rest[len(c.order)*d:])
	for i, v := range slices.Backward(c.order) {
		class := &c.m.Classes[v]
		n := min(c.left[i], class.Most)
		if !class.May(k) {
			n = 0
		}
		for r, s := range class.Size {
			rest[i*d+r] = rest[(i+1)*d+r] + n*s
		}
	}
	copy(c.free[at], c.m.BinTypes[k].Capacity)
	clear(c.fill[at])
	return c.class(at, 0, at > 0 && k == c.types[at-1])
}

// class decides how many items of the class go into the bin, then continues with the next class.
// bound means that the bin so far equals the equal bin before it, which it must not exceed.
func (c *completer) class(at, i int, bound bool) bool {
	if c.nodes++; c.nodes >= c.most {
		return false
	}
	if c.nodes%stopEvery == 0 && c.b.Stopped() {
		c.most = c.nodes // nothing is refuted
		return false
	}
	rest := c.rest[at][i*c.m.Dims:]
	for r, free := range c.free[at] {
		if free > rest[r]+c.slack[r] {
			return false
		}
	}
	if i == len(c.order) {
		return c.next(at)
	}
	class := &c.m.Classes[c.order[i]]
	n := int64(0)
	if c.left[i] > 0 && class.May(c.types[at]) {
		n = Copies(c.free[at], class.Size, min(c.left[i], class.Most))
	}
	if bound {
		n = min(n, c.fill[at-1][i])
	}
	for ; n >= 0; n-- {
		c.move(at, i, n)
		if c.class(at, i+1, bound && n == c.fill[at-1][i]) {
			return true
		}
		c.move(at, i, -n)
		if c.nodes >= c.most {
			return false
		}
	}
	return false
}

func (c *completer) move(at, i int, n int64) {
	c.left[i] -= n
	c.fill[at][i] += n
	for r, s := range c.m.Classes[c.order[i]].Size {
		c.free[at][r] -= n * s
	}
}

// next continues with the next bin, if no remaining item fits into this one.
func (c *completer) next(at int) bool {
	free := c.free[at]
	for i, n := range c.left {
		class := &c.m.Classes[c.order[i]]
		if n > 0 && c.fill[at][i] < class.Most && class.May(c.types[at]) && Copies(free, class.Size, 1) > 0 {
			return false
		}
	}
	for r, n := range free {
		c.slack[r] -= n
	}
	if c.bin(at + 1) {
		return true
	}
	for r, n := range free {
		c.slack[r] += n
	}
	return false
}
