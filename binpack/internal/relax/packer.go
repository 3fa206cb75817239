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
func (p *packer) pack(set []int, proposals int, b *Budget) []Column {
	var best []Column
	least := math.Inf(1)
	for _, bend := range [...]float64{0.5, 1} {
		p.prepare(set)
		var out []Column
		for _, k := range p.kinds {
			c := Column{Kind: k}
			if p.knap.Load(p.m.Kinds[k].Capacity, p.left, func(i int) bool { return has(p.m.Classes[i].Kinds, k) }, p.value) {
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
			return slices.DeleteFunc(out, func(c Column) bool { return len(c.Class) == 0 })
		}
		if over < least {
			best, least = out, over
		}
	}
	p.fitter.load(p.m, p.kinds, best)
	fits := p.fitter.run(proposals)
	b.Take(p.fitter.proposed * 4)
	if !fits {
		return nil
	}
	return p.fitter.columns()
}

// refute looks through all packings, by so many steps. It gives one if it meets one; refuted means that there is none.
func (p *packer) refute(set []int, most int, b *Budget) (columns []Column, refuted bool) {
	p.prepare(set)
	return p.completer.run(p.m, set, p.order, most, b)
}
