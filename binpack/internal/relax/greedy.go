package relax

import (
	"cmp"
	"math"
	"slices"
)

// Greedy fills bin after bin with the highest dual value per price, from a sample of the remaining
// items in which large items come first. Duals come from resource duals, which it recomputes as the
// mix changes. It repeats a filling while plenty of its items remain. Items that no uncounted bin
// type can hold stay unplaced. It returns nil if it was stopped or there are too many bins.
func (m *Model) Greedy(groups *typeGroups, b *Budget) []Column {
	g := &greedy{m: m, left: slices.Clone(m.Classes), typeGroups: groups, inSub: make([]bool, len(m.Classes))}
	for i := range g.left {
		if c := &g.left[i]; c.Count > 0 && m.cheapest(c, false) < 0 {
			c.Count = 0
		}
		if g.left[i].Count > 0 {
			g.order = append(g.order, int32(i))
		}
	}
	var out []Column
	for g.refresh(b) {
		for at, made := g.rest, false; g.rest > stale*at; made = true {
			if b.Stopped() {
				return nil
			}
			c, ok := g.next(b)
			if !ok && made { // other bin types are better for the remaining items
				break
			}
			if !ok {
				c = g.alone()
			}
			copies := max(c.times(g.left)/4, 1) // while plenty of each class remains
			if copies > int64(mostColumns-len(out)) {
				return nil
			}
			for range copies {
				out = append(out, c)
				c.take(g.left, 1)
				for _, a := range c.Pattern {
					g.rest -= float64(g.duals[a.Class] * float64(a.Count))
				}
			}
		}
	}
	return out
}

type greedy struct {
	m          *Model
	left       []Class // the remaining items
	duals      []float64
	rest       float64   // dual value of the remaining items
	open       []float64 // by type group: dual value of the remaining items that may go there
	order      []int32   // remaining classes by decreasing dual
	types      []int     // the best first
	good       int       // how many are nearly as good as the best
	rng        Draw
	knap       Knapsack
	sub        []Class
	from       []int32
	subDuals   []float64
	inSub      []bool
	typeGroups *typeGroups
}

// refresh prices the remaining items, and reports whether there are any that fit.
func (g *greedy) refresh(b *Budget) bool {
	g.order = slices.DeleteFunc(g.order, func(i int32) bool { return g.left[i].Count == 0 })
	if len(g.order) == 0 {
		return false
	}
	first := g.duals == nil
	prices := g.typeGroups.prices(g.left, b)
	g.duals, _ = g.typeGroups.duals(prices)
	g.rest, g.open = 0, make([]float64, len(g.typeGroups.types))
	for i := range g.left {
		g.duals[i] = max(g.duals[i], 1e-6)
		profit := float64(g.duals[i] * float64(g.left[i].Count))
		g.rest += profit
		for _, at := range g.typeGroups.into[g.typeGroups.group[i]] {
			g.open[at] += profit
		}
	}
	if first {
		slices.SortFunc(g.order, func(a, b int32) int { return cmp.Or(cmp.Compare(g.duals[b], g.duals[a]), cmp.Compare(a, b)) })
	}
	g.rank(prices)
	b.Take(g.knap.Steps())
	return g.good > 0
}

// rank orders the bin types by the dual value per price of a filling with the mix of remaining
// items. The whole capacity has a higher dual value than any filling, so a bin type whose capacity
// does not suffice is not examined.
func (g *greedy) rank(prices [][]float64) {
	const near, some = 0.985, 4 // the relative quality of bin types to try, and their minimum number
	ratio := g.typeGroups.full(prices)
	g.types = g.types[:0]
	for k, at := range g.typeGroups.of {
		if typ := &g.m.BinTypes[k]; typ.Supply < 0 && at >= 0 {
			ratio[k] = min(ratio[k]*(1+1e-6), g.open[at]) / max(typ.Price, 1e-9)
			g.types = append(g.types, k)
		}
	}
	better := func(a, b int) int { return cmp.Or(cmp.Compare(ratio[b], ratio[a]), cmp.Compare(a, b)) }
	slices.SortFunc(g.types, better)
	g.sub, g.from, g.subDuals = g.sub[:0], g.from[:0], g.subDuals[:0]
	for k := 0; k < len(g.order); k += 1 + len(g.order)/40 {
		c := g.m.Classes[g.order[k]]
		c.Count = 1 << 20 // the mix matters, not the amount
		g.sub, g.subDuals = append(g.sub, c), append(g.subDuals, g.duals[g.order[k]])
	}
	seen := 0
	var best [some]float64 // the highest ratios so far, sorted
	for _, k := range g.types {
		if ratio[k] < min(near*best[0], best[some-1]) {
			break
		}
		seen++
		typ := &g.m.BinTypes[k]
		if !g.knap.Load(typ.Capacity, g.sub, func(i int) bool { return g.sub[i].May(k) }, g.subDuals) {
			ratio[k] = -1
			continue
		}
		open := g.open[g.typeGroups.of[k]]
		ratio[k] = min(g.knap.Bound(open), open) / max(typ.Price, 1e-9)
		for i, v := range best {
			if ratio[k] > v {
				copy(best[i+1:], best[i:])
				best[i] = ratio[k]
				break
			}
		}
	}
	slices.SortFunc(g.types[:seen], better)
	// Try those nearly as good as the best: no filling compensates for a bad bin type.
	g.good = 0
	for g.good < seen && ratio[g.types[g.good]] >= 0 && (g.good < some || ratio[g.types[g.good]] > near*ratio[g.types[0]]) {
		g.good++
	}
}

// sample selects remaining items with the given dual value that may go into the bin type: the large
// ones, and others at random. It returns their duals.
func (g *greedy) sample(k int, profit float64) []float64 {
	g.sub, g.from, g.subDuals = g.sub[:0], g.from[:0], g.subDuals[:0]
	sum := 0.0
	add := func(i int32) {
		c := g.left[i]
		if g.inSub[i] || c.Count == 0 || !c.May(k) {
			return
		}
		g.inSub[i] = true
		g.sub, g.from, g.subDuals = append(g.sub, c), append(g.from, i), append(g.subDuals, g.duals[i])
		sum += float64(g.duals[i] * float64(min(c.Count, c.Most)))
	}
	const choice = 150
	for at := 0; at < len(g.order) && sum < profit/3; at++ {
		add(g.order[at])
	}
	for tries := 0; (sum < profit || len(g.sub) < choice) && tries < 2*len(g.order); tries++ {
		add(g.order[g.rng.Below(len(g.order))])
	}
	for _, i := range g.from {
		g.inSub[i] = false
	}
	return g.subDuals
}

// next returns the best filling of a few bin types.
func (g *greedy) next(b *Budget) (Column, bool) {
	best, most := Column{}, 0.0
	for try := range fillings {
		k := g.types[g.rng.Below(g.good)]
		if try == 0 {
			k = g.types[0]
		}
		typ := &g.m.BinTypes[k]
		duals := g.sample(k, 3*typ.Price)
		if !g.knap.Load(typ.Capacity, g.sub, func(int) bool { return true }, duals) {
			continue
		}
		g.knap.Bound(math.Inf(1))
		g.knap.Fill()
		profit := g.knap.Improve(2, 100)
		b.Take(g.knap.Steps())
		if ratio := profit / max(typ.Price, 1e-9); ratio > most {
			p := g.knap.Found(nil)
			for i := range p {
				p[i].Class = g.from[p[i].Class]
			}
			p.sort()
			best, most = Column{k, p}, ratio
		}
	}
	return best, most > 0
}

// alone returns the cheapest bin for items of the remaining class with the highest dual.
func (g *greedy) alone() Column {
	i := g.order[slices.IndexFunc(g.order, func(i int32) bool { return g.left[i].Count > 0 })]
	c, k := &g.left[i], g.m.cheapest(&g.m.Classes[i], false)
	return Column{k, Pattern{{i, Copies(g.m.BinTypes[k].Capacity, c.Size, max(min(c.Count, c.Most), 1))}}}
}

// fillCounted fills counted bins, those with the highest dual value per price first, while the dual
// value exceeds the price. It returns them, and the model of the rest.
func (m *Model) fillCounted(duals []float64, b *Budget) ([]Column, *Model) {
	rest := *m
	if len(m.Supply) == 0 {
		return nil, &rest
	}
	rest.Classes = slices.Clone(m.Classes)
	supply := slices.Clone(m.Supply)
	positive := make([]float64, len(duals))
	for i, v := range duals {
		positive[i] = max(v, 1e-6)
	}
	var counted []int
	for k := range m.BinTypes {
		if m.BinTypes[k].Supply >= 0 {
			counted = append(counted, k)
		}
	}
	// If the budget is too small for all classes, each bin considers every stride-th, with another
	// offset.
	stride := 1 + len(m.Classes)*len(counted)*m.Dims*countedSteps/max(b.Left, 1)
	stride = max(min(stride, len(m.Classes)/leastClasses), 1)
	var knap Knapsack
	fill := func(k int) (Pattern, float64) {
		if !knap.Load(m.BinTypes[k].Capacity, rest.Classes, func(i int) bool { return (i+k)%stride == 0 && rest.Classes[i].May(k) }, positive) {
			return nil, 0
		}
		defer func() { b.Take(knap.Steps()) }()
		knap.Bound(math.Inf(1))
		knap.Fill()
		profit := knap.Improve(3, 100)
		return knap.Found(nil), profit
	}
	ratio := make([]float64, len(m.BinTypes))
	for _, k := range counted {
		if b.Stopped() {
			return nil, &rest
		}
		_, profit := fill(k)
		if ratio[k] = profit / max(m.BinTypes[k].Price, 1e-9); m.BinTypes[k].Price == 0 {
			ratio[k] /= float64(m.BinTypes[k].takes())
		}
	}
	slices.SortStableFunc(counted, func(a, b int) int { return cmp.Compare(ratio[b], ratio[a]) })
	var out []Column
	for _, k := range counted {
		typ := &m.BinTypes[k]
		for supply[typ.Supply] >= typ.takes() && !b.Stopped() {
			pattern, profit := fill(k)
			if profit <= typ.Price {
				break
			}
			copies := min(supply[typ.Supply]/typ.takes(), pattern.times(rest.Classes), int64(mostColumns-len(out)))
			if copies == 0 {
				break
			}
			supply[typ.Supply] -= copies * typ.takes()
			pattern.take(rest.Classes, copies)
			out = append(out, slices.Repeat([]Column{{k, pattern}}, int(copies))...)
		}
	}
	return out, &rest
}

// rest returns the model of the items that the columns leave unplaced.
func (m *Model) rest(columns []Column) *Model {
	rest := *m
	rest.Classes = slices.Clone(m.Classes)
	for _, c := range columns {
		c.take(rest.Classes, 1)
	}
	return &rest
}

// Draw is a deterministic pseudo-random sequence (splitmix64, S. Vigna).
type Draw uint64

func (d *Draw) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Below returns a number from 0 to n-1.
func (d *Draw) Below(n int) int { return int(d.next() % uint64(n)) }

// Unit returns a number from 0 up to 1.
func (d *Draw) Unit() float64 { return float64(float64(d.next()>>11) / (1 << 53)) }
