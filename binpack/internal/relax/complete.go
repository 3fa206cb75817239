package relax

import (
	"cmp"
	"slices"
)

// completer searches all packings of all items into a given set of bins, bin by bin (bin completion: R. E. Korf, 2002). The
// total free capacity is known, so a filling that wastes more of any resource is excluded. Of equivalent packings it tries one,
// the first in the order of item counts: each bin is full except for what no longer fits, and equal bins come in decreasing
// order.
type completer struct {
	m     *Model
	types []int   // the smallest first
	order []int32 // classes, the largest first
	left  []int64 // by place in order
	slack []int64 // by dimension: what may still stay free
	fill  [][]int64
	rest  [][]int64 // by bin: the total size that remains from a place in order on, by place and dimension
	used  [][]int64
	nodes int
	most  int
}

// prepare orders the classes, the largest first. It returns their sizes, summed over the dimensions.
func (c *completer) prepare(m *Model) []float64 {
	c.m = m
	largest := make([]float64, m.Dims)
	for k := range m.BinTypes {
		for r, capacity := range m.BinTypes[k].Capacity {
			largest[r] = max(largest[r], float64(capacity))
		}
	}
	size := make([]float64, len(m.Classes))
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

// run searches all packings into the set, with at most so many nodes. It returns one if it finds one; refuted means that there
// is none.
func (c *completer) run(set []int, most int, b *Budget) (columns []Column, found, refuted bool) {
	m, d := c.m, c.m.Dims
	c.nodes, c.most = 0, most
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
	for _, s := range c.slack {
		if s < 0 {
			return nil, false, true
		}
	}
	grow := func(v [][]int64, n int) [][]int64 {
		for len(v) < len(set) {
			v = append(v, nil)
		}
		for i := range set {
			v[i] = append(v[i][:0], make([]int64, n)...)
		}
		return v
	}
	c.fill, c.rest, c.used = grow(c.fill, len(c.order)), grow(c.rest, (len(c.order)+1)*d), grow(c.used, d)
	found = c.bin(0)
	b.Take(c.nodes * c.perNode())
	if !found {
		return nil, false, c.nodes < c.most
	}
	for i, k := range c.types {
		col := Column{BinType: k}
		for at, class := range c.order {
			if n := c.fill[i][at]; n > 0 {
				col.Class, col.Count = append(col.Class, class), append(col.Count, int32(n))
			}
		}
		if len(col.Class) > 0 {
			col.Sort()
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
	rest := c.rest[at]
	typ := &c.m.BinTypes[c.types[at]]
	clear(rest[len(c.order)*d:])
	for i, v := range slices.Backward(c.order) {
		class := &c.m.Classes[v]
		n := min(c.left[i], class.Most)
		if !class.May(c.types[at]) {
			n = 0
		}
		for r, s := range class.Size {
			rest[i*d+r] = rest[(i+1)*d+r] + n*s
		}
	}
	clear(c.used[at])
	clear(c.fill[at])
	return c.class(at, 0, typ, at > 0 && c.types[at] == c.types[at-1])
}

// class decides how many items of the class go into the bin, then continues with the next class. bound means that the bin so
// far equals the equal bin before it, which it must not exceed.
func (c *completer) class(at, i int, typ *BinType, bound bool) bool {
	if c.nodes++; c.nodes >= c.most {
		return false
	}
	d := c.m.Dims
	used, rest := c.used[at], c.rest[at]
	for r, u := range used {
		if u+rest[i*d+r] < typ.Capacity[r]-c.slack[r] {
			return false
		}
	}
	if i == len(c.order) {
		return c.next(at, typ)
	}
	class := &c.m.Classes[c.order[i]]
	n := int64(0)
	if c.left[i] > 0 && class.May(c.types[at]) {
		n = min(c.left[i], class.Most)
		for r, s := range class.Size {
			if s > 0 {
				n = min(n, (typ.Capacity[r]-used[r])/s)
			}
		}
	}
	if bound {
		n = min(n, c.fill[at-1][i])
	}
	for ; n >= 0; n-- {
		c.move(at, i, n)
		if c.class(at, i+1, typ, bound && n == c.fill[at-1][i]) {
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
		c.used[at][r] += n * s
	}
}

// next continues with the next bin, if no remaining item fits into this one.
func (c *completer) next(at int, typ *BinType) bool {
	used := c.used[at]
	for j, n := range c.left {
		if n > 0 && c.may(at, j) && c.goes(used, c.m.Classes[c.order[j]].Size, typ) {
			return false
		}
	}
	for r, u := range used {
		c.slack[r] -= typ.Capacity[r] - u
	}
	if c.bin(at + 1) {
		return true
	}
	for r, u := range used {
		c.slack[r] += typ.Capacity[r] - u
	}
	return false
}

func (c *completer) goes(used, size []int64, typ *BinType) bool {
	for r, s := range size {
		if used[r]+s > typ.Capacity[r] {
			return false
		}
	}
	return true
}

// may reports whether the bin may take one more item of the class, whatever its size.
func (c *completer) may(at, j int) bool {
	class := &c.m.Classes[c.order[j]]
	return c.fill[at][j] < class.Most && class.May(c.types[at])
}
