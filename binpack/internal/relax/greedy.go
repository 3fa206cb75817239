package relax

import (
	"cmp"
	"math"
	"slices"
)

// Greedy fills bin after bin with what is worth most for its price, from a sample of what is left in which the large
// things come first. Values are those of resources, found anew as the mix of what is left changes. A filling is
// repeated while plenty is left of all that is in it. What no uncounted kind can hold stays out.
func (m *Model) Greedy(b *Budget) []Column {
	g := &greedy{m: m, left: make([]int64, len(m.Classes))}
	for i := range m.Classes {
		if m.cheapest(&m.Classes[i], false) >= 0 {
			g.left[i] = m.Classes[i].Count
		}
	}
	// It must come to an end, so what the budget does not suffice for is done in less detail.
	bins := min(float64(m.things())/m.perBin(), 4*float64(len(m.Classes)))
	g.tries = int(max(1, min(fillings, float64(b.Left)/(fillingSteps*max(bins, 1)))))
	refresh := 1 - 0.5/float64(g.tries)
	var out []Column
	for g.refresh(b) {
		for at, made := g.worth, false; g.worth > refresh*at; made = true {
			if b.Stop != nil && b.Stop.Load() {
				return nil
			}
			c, ok := g.next(b)
			if !ok && made { // other kinds are the good ones for what is left
				break
			}
			if !ok {
				c = g.alone()
			}
			for range g.copies(c.Pattern) {
				out = append(out, c)
				for i, class := range c.Class {
					g.left[class] -= int64(c.Count[i])
					g.worth -= float64(g.value[class] * float64(c.Count[i]))
				}
			}
		}
	}
	return out
}

type greedy struct {
	m      *Model
	left   []int64
	value  []float64
	worth  float64   // of all that is left
	open   []float64 // by sort, of what is left that may go there
	order  []int32   // classes that are left, the most valuable first
	kinds  []int     // the best ones first
	good   int       // how many of them are nearly as good as the best
	rng    Draw
	knap   Knapsack
	sub    []Class
	from   []int32
	worths []float64
	inSub  []bool
	sorts  *sorts
	tries  int // how many fillings are compared for a bin
}

// refresh prices what is left and reports whether there is any.
func (g *greedy) refresh(b *Budget) bool {
	rest := slices.Clone(g.m.Classes)
	first := g.order == nil
	if first {
		g.sorts = g.m.sorts()
	}
	g.order = slices.DeleteFunc(g.order, func(i int32) bool { return g.left[i] == 0 })
	for i := range rest {
		rest[i].Count = g.left[i]
		if g.left[i] > 0 && first {
			g.order = append(g.order, int32(i))
		}
	}
	if len(g.order) == 0 {
		return false
	}
	prices := g.sorts.prices(rest, b)
	g.value = g.sorts.values(prices)
	g.worth = 0
	g.open = make([]float64, len(g.sorts.kinds))
	for i, n := range g.left {
		g.value[i] = max(g.value[i], 1e-6)
		worth := float64(g.value[i] * float64(n))
		g.worth += worth
		for _, at := range g.sorts.into[g.sorts.group[i]] {
			g.open[at] += worth
		}
	}
	if first {
		slices.SortFunc(g.order, func(a, b int32) int { return cmp.Or(cmp.Compare(g.value[b], g.value[a]), cmp.Compare(a, b)) })
		g.inSub = make([]bool, len(g.left))
	}
	g.rank(prices)
	b.Take(g.knap.Steps())
	return g.good > 0
}

// rank orders the kinds by the part of their price that a filling with the mix of what is left comes to. Whole room is
// worth more than any filling, so a kind whose room would not do is not looked at more closely.
func (g *greedy) rank(prices [][]float64) {
	const near, some = 0.985, 4 // how good the kinds are that are tried, and how many of them at least
	ratio := make([]float64, len(g.m.Kinds))
	g.kinds = g.kinds[:0]
	for k := range g.m.Kinds {
		if g.m.Kinds[k].Supply >= 0 || g.sorts.of[k] < 0 {
			continue
		}
		room := 0.0
		for r, c := range g.m.Kinds[k].Capacity {
			room += float64(float64(max(c, 0)) * prices[g.sorts.of[k]][r])
		}
		ratio[k] = min(room*(1+1e-6), g.open[g.sorts.of[k]]) / max(g.m.Kinds[k].Price, 1e-9)
		g.kinds = append(g.kinds, k)
	}
	better := func(a, b int) int { return cmp.Or(cmp.Compare(ratio[b], ratio[a]), cmp.Compare(a, b)) }
	slices.SortFunc(g.kinds, better)
	g.sub, g.from, g.worths = g.sub[:0], g.from[:0], g.worths[:0]
	for k := 0; k < len(g.order); k += 1 + len(g.order)/40 {
		c := g.m.Classes[g.order[k]]
		c.Count = 1 << 20 // the mix matters, not how much there is
		g.sub, g.worths = append(g.sub, c), append(g.worths, g.value[g.order[k]])
	}
	seen := 0
	var best [some]float64 // the highest ratios so far, in order
	for _, k := range g.kinds {
		if ratio[k] < min(near*best[0], best[some-1]) {
			break
		}
		seen++
		kind := &g.m.Kinds[k]
		if !g.knap.Load(kind.Capacity, g.sub, func(i int) bool { return has(g.sub[i].Kinds, k) }, g.worths) {
			ratio[k] = -1
			continue
		}
		open := g.open[g.sorts.of[k]]
		ratio[k] = min(g.knap.Bound(open), open) / max(kind.Price, 1e-9)
		for i, v := range best {
			if ratio[k] > v {
				copy(best[i+1:], best[i:])
				best[i] = ratio[k]
				break
			}
		}
	}
	slices.SortFunc(g.kinds[:seen], better)
	// Those nearly as good as the best are tried; a bad one costs more than any filling makes up for.
	g.good = 0
	for g.good < seen && ratio[g.kinds[g.good]] >= 0 && (g.good < some || ratio[g.kinds[g.good]] > near*ratio[g.kinds[0]]) {
		g.good++
	}
}

// sample makes a small problem of things that may go into the kind and are worth so much together: the large ones, and others by
// chance.
func (g *greedy) sample(k int, worth float64) []float64 {
	g.sub, g.from, g.worths = g.sub[:0], g.from[:0], g.worths[:0]
	sum := 0.0
	add := func(i int32) {
		if g.inSub[i] || g.left[i] == 0 || !has(g.m.Classes[i].Kinds, k) {
			return
		}
		g.inSub[i] = true
		c := g.m.Classes[i]
		c.Count = g.left[i]
		g.sub, g.from, g.worths = append(g.sub, c), append(g.from, i), append(g.worths, g.value[i])
		sum += float64(g.value[i] * float64(min(c.Count, c.Most)))
	}
	const choice = 150
	for at := 0; at < len(g.order) && sum < worth/3; at++ {
		add(g.order[at])
	}
	for tries := 0; (sum < worth || len(g.sub) < choice) && tries < 2*len(g.order); tries++ {
		add(g.order[g.rng.Below(len(g.order))])
	}
	for _, i := range g.from {
		g.inSub[i] = false
	}
	return g.worths
}

// next is the best filling of a few kinds.
func (g *greedy) next(b *Budget) (Column, bool) {
	best, most := Column{}, 0.0
	for try := range g.tries {
		k := g.kinds[g.rng.Below(g.good)]
		if try == 0 {
			k = g.kinds[0]
		}
		kind := &g.m.Kinds[k]
		value := g.sample(k, 3*kind.Price)
		if !g.knap.Load(kind.Capacity, g.sub, func(int) bool { return true }, value) {
			continue
		}
		g.knap.Bound(math.Inf(1))
		worth := g.knap.Fill(2, 1)
		if g.tries > 1 {
			worth = g.knap.Improve(2, 100)
		}
		b.Take(g.knap.Steps())
		if ratio := worth / max(kind.Price, 1e-9); ratio > most {
			p := g.knap.Found()
			for i, at := range p.Class {
				p.Class[i] = g.from[at]
			}
			p.Sort()
			best, most = Column{k, p}, ratio
		}
	}
	return best, most > 0
}

// alone is the cheapest bin for one thing of the most valuable class that is left.
func (g *greedy) alone() Column {
	i := g.order[slices.IndexFunc(g.order, func(i int32) bool { return g.left[i] > 0 })]
	return Column{g.m.cheapest(&g.m.Classes[i], false), Pattern{[]int32{i}, []int32{1}}}
}

// copies is how often the filling may be repeated without using up a quarter of any class in it.
func (g *greedy) copies(p Pattern) int64 {
	n := int64(1 << 30)
	for i, class := range p.Class {
		n = min(n, g.left[class]/(4*int64(p.Count[i])))
	}
	return max(n, 1)
}

// fillCounted fills bins of counted kinds with what is worth most, those first that give the most for their price, as long as
// they are worth it. It gives them and the model of what is left.
func (m *Model) fillCounted(value []float64, b *Budget) ([]Column, *Model) {
	rest := *m
	if len(m.Supply) == 0 {
		return nil, &rest
	}
	rest.Classes = slices.Clone(m.Classes)
	supply := slices.Clone(m.Supply)
	positive := make([]float64, len(value))
	for i, v := range value {
		positive[i] = max(v, 1e-6)
	}
	var out []Column
	var knap Knapsack
	counted := 0
	for k := range m.Kinds {
		if m.Kinds[k].Supply >= 0 {
			counted++
		}
	}
	// Where looking at all classes for each bin does not fit into the budget, it is every so many of them, others for each.
	stride := 1 + len(m.Classes)*counted*m.Dims*countedSteps/max(b.Left, 1)
	stride = max(min(stride, len(m.Classes)/leastClasses), 1)
	fill := func(k int) (Pattern, float64) {
		if !knap.Load(m.Kinds[k].Capacity, rest.Classes, func(i int) bool { return (i+k)%stride == 0 && has(rest.Classes[i].Kinds, k) }, positive) {
			return Pattern{}, 0
		}
		defer func() { b.Take(knap.Steps()) }()
		knap.Bound(math.Inf(1))
		knap.Fill(2, 1)
		worth := knap.Improve(3, 100)
		return knap.Found(), worth
	}
	ratio := make([]float64, len(m.Kinds))
	var order []int
	for k := range m.Kinds {
		if m.Kinds[k].Supply >= 0 {
			_, worth := fill(k)
			if ratio[k] = worth / max(m.Kinds[k].Price, 1e-9); m.Kinds[k].Price == 0 {
				ratio[k] /= float64(m.Kinds[k].takes())
			}
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ratio[b], ratio[a]) })
	for _, k := range order {
		kind := &m.Kinds[k]
		for supply[kind.Supply] >= kind.takes() {
			pattern, worth := fill(k)
			if worth <= kind.Price {
				break
			}
			copies := supply[kind.Supply] / kind.takes()
			for i, class := range pattern.Class {
				copies = min(copies, rest.Classes[class].Count/int64(pattern.Count[i]))
			}
			supply[kind.Supply] -= copies * kind.takes()
			for i, class := range pattern.Class {
				rest.Classes[class].Count -= copies * int64(pattern.Count[i])
			}
			out = append(out, slices.Repeat([]Column{{k, pattern}}, int(copies))...)
		}
	}
	return out, &rest
}

// finish puts what the columns leave out into the room that they have, and into more bins.
func (m *Model) finish(columns []Column, b *Budget) []Column {
	rest := *m
	rest.Classes = slices.Clone(m.Classes)
	out := make([]Column, 0, len(columns))
	for _, c := range columns {
		for i, class := range c.Class {
			rest.Classes[class].Count -= int64(c.Count[i])
		}
		out = append(out, Column{c.Kind, c.Copy()})
	}
	for at := range out {
		room := slices.Clone(m.Kinds[out[at].Kind].Capacity)
		for i, class := range out[at].Class {
			for r, s := range m.Classes[class].Size {
				room[r] -= s * int64(out[at].Count[i])
			}
		}
		for i := range rest.Classes {
			c := &rest.Classes[i]
			if c.Count == 0 || !c.May(out[at].Kind) {
				continue
			}
			inside := int64(0)
			place := slices.Index(out[at].Class, int32(i))
			if place >= 0 {
				inside = int64(out[at].Count[place])
			}
			n := Copies(room, c.Size, min(c.Count, c.Most-inside))
			if n <= 0 {
				continue
			}
			if c.Count -= n; place < 0 {
				out[at].put(c, i, n, room)
				continue
			}
			out[at].Count[place] += int32(n)
			for r, s := range c.Size {
				room[r] -= s * n
			}
		}
		out[at].Sort()
	}
	return append(out, rest.Greedy(b)...)
}

func (c *Column) put(class *Class, i int, n int64, free []int64) {
	c.Class, c.Count = append(c.Class, int32(i)), append(c.Count, int32(n))
	for r, s := range class.Size {
		free[r] -= s * n
	}
}

// smallest is the cheapest uncounted kind that holds what the column does of the classes, its own where none is cheaper.
func (m *Model) smallest(classes []Class, c Column) int {
	if k := m.holds(classes, c.Pattern, m.Kinds[c.Kind].Price); k >= 0 && m.Kinds[k].Price < m.Kinds[c.Kind].Price {
		return k
	}
	return c.Kind
}

// holds is the first of the uncounted kinds that hold the pattern of the classes for the least price, at most the limit, or -1.
func (m *Model) holds(classes []Class, p Pattern, limit float64) int {
	need := make([]int64, m.Dims)
	for i, at := range p.Class {
		c := &classes[at]
		if int64(p.Count[i]) > c.Most {
			return -1
		}
		for r, size := range c.Size {
			if size > 0 {
				need[r] = saturated(need[r], size, int64(p.Count[i]))
			}
		}
	}
	best := -1
	for k := range m.Kinds {
		kind := &m.Kinds[k]
		if kind.Supply < 0 && kind.Price <= limit && (best < 0 || kind.Price < m.Kinds[best].Price) && Copies(kind.Capacity, need, 1) > 0 &&
			!slices.ContainsFunc(p.Class, func(at int32) bool { return !classes[at].May(k) }) {
			best = k
		}
	}
	return best
}
