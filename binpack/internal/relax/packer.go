package relax

import (
	"cmp"
	"math"
	"slices"
)

// packer packs everything into a given set of bins, or shows that this cannot be done.
type packer struct {
	m     *Model
	value []float64 // a thing's size, all dimensions together
	order []int32   // classes, the largest first
	left  []Class
	knap  Knapsack

	kinds []int
	free  [][]int64
	count [][]int64 // by bin and class
	nodes int
	most  int
}

// refuteNodes is how many steps a proof that a set of bins does not suffice may take.
const refuteNodes = 3000

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

// pack tries a few greedy ways.
func (p *packer) pack(set []int, b *Budget) []Column {
	for _, way := range [][2]float64{{0.5, 0}, {1, 0}, {0.2, 0}, {0.5, -1}} {
		p.prepare(set)
		if way[1] < 0 {
			slices.Reverse(p.kinds) // the smallest bin first
		}
		var out []Column
		for _, k := range p.kinds {
			if !p.knap.Load(p.m.Kinds[k].Capacity, p.left, func(i int) bool { return has(p.m.Classes[i].Kinds, k) }, p.value) {
				continue
			}
			p.knap.Bound(math.Inf(1))
			p.knap.Fill(way[0], 0)
			if b.Take(p.knap.Steps()) && len(p.kinds) > 1 {
				p.knap.Improve(1, 60)
				b.Take(p.knap.Steps())
			}
			c := Column{k, p.knap.Found()}
			for i, class := range c.Class {
				p.left[class].Count -= int64(c.Count[i])
			}
			out = append(out, c)
		}
		if !slices.ContainsFunc(p.left, func(c Class) bool { return c.Count > 0 }) {
			return out
		}
		if b.Left <= 0 {
			break
		}
	}
	return nil
}

// refute looks through all ways to put the things into the bins, the largest first. It gives a packing if it meets one;
// refuted means that there is none.
func (p *packer) refute(set []int, b *Budget) (columns []Column, refuted bool) {
	p.prepare(set)
	p.free, p.count = p.free[:0], p.count[:0]
	for _, k := range p.kinds {
		p.free = append(p.free, slices.Clone(p.m.Kinds[k].Capacity))
		p.count = append(p.count, make([]int64, len(p.m.Classes)))
	}
	p.nodes = 0
	found := p.place(0, 0, -1)
	b.Take(p.nodes * (p.m.Dims + 2) * len(p.kinds))
	if !found {
		return nil, p.nodes < p.most
	}
	for i, k := range p.kinds {
		c := Column{Kind: k}
		for class, n := range p.count[i] {
			if n > 0 {
				c.Class, c.Count = append(c.Class, int32(class)), append(c.Count, int32(n))
			}
		}
		if len(c.Class) > 0 {
			columns = append(columns, c)
		}
	}
	return columns, false
}

// place distributes what is left of the class at the position over the bins from bin on; before is how many of it the bin
// before took, for equal bins in equal state are filled in falling order.
func (p *packer) place(at, bin int, before int64) bool {
	if p.nodes++; p.nodes >= p.most {
		return false
	}
	if at == len(p.order) {
		return true
	}
	class := p.order[at]
	c := &p.left[class]
	if c.Count == 0 {
		if !p.enough(at + 1) {
			return false
		}
		return p.place(at+1, 0, -1)
	}
	if bin == len(p.kinds) {
		return false
	}
	k := p.kinds[bin]
	var n int64
	if has(c.Kinds, k) {
		n = fits(p.free[bin], c.Size, min(c.Count, c.Most))
	}
	if before >= 0 && n > before && bin > 0 && p.kinds[bin-1] == k && p.alike(bin, class) {
		n = before
	}
	for ; n >= 0; n-- {
		p.move(bin, class, n)
		if p.place(at, bin+1, n) {
			return true
		}
		p.move(bin, class, -n)
		if p.nodes >= p.most {
			return false
		}
	}
	return false
}

// alike reports whether the bin and the one before hold the same but for the class.
func (p *packer) alike(bin int, class int32) bool {
	for i := range p.count[bin] {
		if int32(i) != class && p.count[bin][i] != p.count[bin-1][i] {
			return false
		}
	}
	return true
}

func (p *packer) move(bin int, class int32, n int64) {
	p.left[class].Count -= n
	p.count[bin][class] += n
	for r, s := range p.left[class].Size {
		p.free[bin][r] -= n * s
	}
}

// enough reports whether all that is left fits into all the room by each resource.
func (p *packer) enough(at int) bool {
	for r := range p.m.Dims {
		need, room := int64(0), int64(0)
		for _, class := range p.order[at:] {
			need += p.left[class].Count * p.left[class].Size[r]
		}
		for bin := range p.free {
			room += p.free[bin][r]
		}
		if need > room {
			return false
		}
	}
	return true
}
