package few

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// packer packs everything into a given set of bins, or shows that this cannot be done.
type packer struct {
	m     *relax.Model
	value []float64 // a thing's size, all dimensions together
	order []int32   // classes, the largest first
	left  []relax.Class
	knap  relax.Knapsack

	kinds []int

	fitter    fitter
	completer completer
}

func (p *packer) prepare(set []int) {
	if p.value == nil {
		total := make([]float64, p.m.Dims)
		for k := range p.m.Kinds {
			for r, c := range p.m.Kinds[k].Capacity {
				total[r] = max(total[r], float64(c))
			}
		}
		p.value = make([]float64, len(p.m.Classes))
		for i := range p.m.Classes {
			p.order = append(p.order, int32(i))
			for r, s := range p.m.Classes[i].Size {
				p.value[i] += float64(s) / max(total[r], 1)
			}
			p.value[i] = max(p.value[i], 1e-9)
		}
		slices.SortStableFunc(p.order, func(a, b int32) int { return cmp.Compare(p.value[b], p.value[a]) })
	}
	p.kinds = append(p.kinds[:0], set...)
	p.left = append(p.left[:0], p.m.Classes...)
}

// pack tries two greedy ways, and then to make the better one fit by exchanges.
func (p *packer) pack(set []int, proposals int, b *relax.Budget) []relax.Column {
	var best []relax.Column
	least := math.Inf(1)
	for _, bend := range [...]float64{0.5, 1} {
		p.prepare(set)
		var out []relax.Column
		for _, k := range p.kinds {
			c := relax.Column{Kind: k}
			if p.knap.Load(p.m.Kinds[k].Capacity, p.left, func(i int) bool { return p.m.Classes[i].May(k) }, p.value) {
				p.knap.Bound(math.Inf(1))
				p.knap.Fill(bend, 0)
				c.Pattern = p.knap.Found()
			}
			b.Take(p.knap.Steps())
			for i, class := range c.Class {
				p.left[class].Count -= int64(c.Count[i])
			}
			out = append(out, c)
		}
		over := 0.0
		for i := range p.left {
			over += p.value[i] * float64(p.left[i].Count)
		}
		if over == 0 {
			return slices.DeleteFunc(out, func(c relax.Column) bool { return len(c.Class) == 0 })
		}
		if over < least {
			best, least = out, over
		}
	}
	p.fitter.load(p.m, p.kinds, best)
	fits := p.fitter.run(proposals)
	b.Take(p.fitter.proposed * 16)
	if !fits {
		return nil
	}
	return p.fitter.columns()
}

// refute looks through all packings, by so many steps. It gives one if it meets one; refuted means that there is none.
func (p *packer) refute(set []int, most int, b *relax.Budget) (columns []relax.Column, refuted bool) {
	p.prepare(set)
	return p.completer.run(p.m, set, p.order, most, b)
}

// completer looks through all ways to pack everything into a given set of bins, bin by bin (bin completion: R. E. Korf,
// 2002). What stays free in all bins together is known beforehand, so a filling that leaves more free than that, of any
// resource, is none. Of the packings that differ in nothing that matters it looks at one: the first in the order of the
// numbers of things, so each bin is full but for what no longer goes in, and equal bins stand in falling order.
type completer struct {
	m      *relax.Model
	kinds  []int   // the smallest first
	order  []int32 // classes, the largest first
	left   []int64 // by place in order
	slack  []int64 // by dimension: what may still stay free
	fill   [][]int64
	rest   [][]int64 // by bin: what is left from a place in order on, by place and dimension
	used   [][]int64
	known  map[string]bool // states that lead nowhere
	covers []bool          // by two places in order: the first goes in for the second
	inside []int32         // places of what is in the bin
	short  []int64         // by dimension: what the room lacks for one more
	nodes  int
	most   int
}

func (c *completer) run(m *relax.Model, kinds []int, order []int32, most int, b *relax.Budget) (columns []relax.Column, refuted bool) {
	d := m.Dims
	c.m, c.order, c.nodes, c.most = m, order, 0, most
	c.kinds = slices.Clone(kinds)
	slices.SortStableFunc(c.kinds, func(a, b int) int { return cmp.Or(cmp.Compare(m.Kinds[a].Price, m.Kinds[b].Price), cmp.Compare(a, b)) })
	c.left, c.slack = c.left[:0], append(c.slack[:0], make([]int64, d)...)
	for _, class := range order {
		c.left = append(c.left, m.Classes[class].Count)
		for r, s := range m.Classes[class].Size {
			c.slack[r] -= s * m.Classes[class].Count
		}
	}
	for _, k := range kinds {
		for r, room := range m.Kinds[k].Capacity {
			c.slack[r] += room
		}
	}
	for _, s := range c.slack {
		if s < 0 {
			return nil, true
		}
	}
	c.known = map[string]bool{}
	if c.covers == nil { // the order is the same for all sets
		c.cover()
	}
	grow := func(v [][]int64, n int) [][]int64 {
		for len(v) < len(kinds) {
			v = append(v, nil)
		}
		for i := range kinds {
			v[i] = append(v[i][:0], make([]int64, n)...)
		}
		return v
	}
	c.fill, c.rest, c.used = grow(c.fill, len(order)), grow(c.rest, (len(order)+1)*d), grow(c.used, d)
	found := c.bin(0)
	b.Take(c.nodes*4*(d+1) + len(kinds)*(len(order)+4)*(d+1))
	if !found {
		return nil, c.nodes < c.most
	}
	for i, k := range c.kinds {
		col := relax.Column{Kind: k}
		for class := range m.Classes {
			at := slices.Index(order, int32(class))
			if n := c.fill[i][at]; n > 0 {
				col.Class, col.Count = append(col.Class, int32(class)), append(col.Count, int32(n))
			}
		}
		if len(col.Class) > 0 {
			columns = append(columns, col)
		}
	}
	return columns, false
}

// bin fills the bin and those after it.
func (c *completer) bin(at int) bool {
	d := c.m.Dims
	if at == len(c.kinds) {
		return !slices.ContainsFunc(c.left, func(n int64) bool { return n > 0 })
	}
	var key []byte
	if at > 0 {
		key = binary.AppendUvarint(nil, uint64(at))
		for _, n := range c.left {
			key = binary.AppendUvarint(key, uint64(n))
		}
		if c.kinds[at] == c.kinds[at-1] { // how full the bin may be depends on the one before
			for _, n := range c.fill[at-1] {
				key = binary.AppendUvarint(key, uint64(n))
			}
		}
		if c.known[string(key)] {
			return false
		}
	}
	rest := c.rest[at]
	kind := &c.m.Kinds[c.kinds[at]]
	clear(rest[len(c.order)*d:])
	for i, v := range slices.Backward(c.order) {
		class := &c.m.Classes[v]
		n := min(c.left[i], class.Most)
		if !class.May(c.kinds[at]) {
			n = 0
		}
		for r, s := range class.Size {
			rest[i*d+r] = rest[(i+1)*d+r] + n*s
		}
	}
	clear(c.used[at])
	clear(c.fill[at])
	if c.class(at, 0, kind, at > 0 && c.kinds[at] == c.kinds[at-1]) {
		return true
	}
	if key != nil && c.nodes < c.most && len(c.known) < 1<<16 {
		c.known[string(key)] = true
	}
	return false
}

// class decides how many things of the class at the place of the order go into the bin. bound says that the fillings so
// far are those of the equal bin before, which this one must not exceed.
func (c *completer) class(at, i int, kind *relax.Kind, bound bool) bool {
	if c.nodes++; c.nodes >= c.most {
		return false
	}
	d := c.m.Dims
	used, rest := c.used[at], c.rest[at]
	for r, u := range used {
		if u+rest[i*d+r] < kind.Capacity[r]-c.slack[r] {
			return false
		}
	}
	if i == len(c.order) {
		return c.next(at, kind)
	}
	class := &c.m.Classes[c.order[i]]
	n := int64(0)
	if c.left[i] > 0 && class.May(c.kinds[at]) {
		n = min(c.left[i], class.Most)
		for r, s := range class.Size {
			if s > 0 {
				n = min(n, (kind.Capacity[r]-used[r])/s)
			}
		}
	}
	if bound {
		n = min(n, c.fill[at-1][i])
	}
	for ; n >= 0; n-- {
		c.move(at, i, n)
		if c.class(at, i+1, kind, bound && n == c.fill[at-1][i]) {
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

// next goes on to the next bin, if this one is full: nothing that is left goes in, neither besides what is in it nor in
// place of one or two smaller things, which could then go where it goes (the dominance of S. Martello and P. Toth, 1990).
func (c *completer) next(at int, kind *relax.Kind) bool {
	used := c.used[at]
	for j, n := range c.left {
		if n > 0 && c.may(at, j) && c.goes(used, c.m.Classes[c.order[j]].Size, kind) {
			return false
		}
	}
	c.inside = c.inside[:0]
	for i, n := range c.fill[at] {
		if n > 0 {
			c.inside = append(c.inside, int32(i))
		}
	}
	for j, n := range c.left {
		if n > 0 && c.may(at, j) && c.replaces(at, j, kind) {
			return false
		}
	}
	for r, u := range used {
		c.slack[r] -= kind.Capacity[r] - u
	}
	if c.bin(at + 1) {
		return true
	}
	for r, u := range used {
		c.slack[r] += kind.Capacity[r] - u
	}
	return false
}

func (c *completer) goes(used, size []int64, kind *relax.Kind) bool {
	for r, s := range size {
		if used[r]+s > kind.Capacity[r] {
			return false
		}
	}
	return true
}

// may reports whether one more of the class at the place is allowed in the bin, room aside.
func (c *completer) may(at, j int) bool {
	class := &c.m.Classes[c.order[j]]
	return c.fill[at][j] < class.Most && class.May(c.kinds[at])
}

// replaces reports whether a thing of the class at place j goes in for one or two that it covers.
func (c *completer) replaces(at, j int, kind *relax.Kind) bool {
	size := c.m.Classes[c.order[j]].Size
	for r, u := range c.used[at] {
		c.short[r] = u + size[r] - kind.Capacity[r]
	}
	covers := c.covers[j*len(c.order) : (j+1)*len(c.order)]
	first, _ := slices.BinarySearch(c.inside, int32(j))
	inside := c.inside[first:] // what stands before is larger
	steps := len(inside)
	defer func() { c.nodes += steps / 16 }()
	for a, x := range inside {
		if !covers[x] {
			continue
		}
		one := c.m.Classes[c.order[x]].Size
		enough := true
		for r, s := range one {
			enough = enough && s >= c.short[r]
		}
		if enough {
			return true
		}
		steps += len(inside) - a
		for _, y := range inside[a:] {
			if !covers[y] || x == y && c.fill[at][x] < 2 {
				continue
			}
			two := c.m.Classes[c.order[y]].Size
			goes := true
			for r, s := range two {
				sum := one[r] + s
				if sum > size[r] || sum < c.short[r] {
					goes = false
					break
				}
			}
			if goes {
				return true
			}
		}
	}
	return false
}

// cover finds for each class those of which one goes wherever one of it goes.
func (c *completer) cover() {
	n := len(c.order)
	c.covers = make([]bool, n*n)
	for j, big := range c.order {
		for i := j + 1; i < n; i++ {
			x, y := &c.m.Classes[c.order[i]], &c.m.Classes[big]
			ok := x.Most >= x.Count
			for r, s := range x.Size {
				ok = ok && s <= y.Size[r]
			}
			for w, set := range y.Kinds {
				ok = ok && set&^x.Kinds[w] == 0
			}
			c.covers[j*n+i] = ok
		}
	}
	c.short = make([]int64, c.m.Dims)
}
