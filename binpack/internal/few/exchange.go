package few

import (
	"cmp"
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// Exchange improves a packing of few things one by one: it takes some out of their bins, puts each back where that costs
// least, and now and then accepts what is a little dearer, less and less so (ruin and recreate, G. Schrimpf et al., 2000;
// J. Christiaens and G. Vanden Berghe, 2020). A bin is always of the cheapest kind that holds it. It stops at the floor, or
// after so many rounds, or when the budget is used up. Bins of counted kinds are not touched.
func Exchange(m *relax.Model, bins []relax.Column, floor float64, rounds int, b *relax.Budget) []relax.Column {
	x := newExchange(m, bins)
	if len(x.class) == 0 || len(x.kinds) == 0 {
		return bins
	}
	x.run(floor, rounds, b)
	return append(x.counted, x.columns()...)
}

// exchange is the search. The state of a bin is the sum of what is in it.
type exchange struct {
	m       *relax.Model
	kinds   []int     // uncounted, by price
	room    []int64   // by kind and dimension
	price   []float64 // by kind
	class   []int32   // by thing
	size    []float64 // by thing: its part of the largest bin, for orders
	counted []relax.Column
	now     packing
	best    packing
	saved   packing
	out     []int32 // things without a bin
	key     []float64
	trial   []int64
	rng     relax.Draw
	steps   int
	any     bool // every class may go into every kind
}

// packing is who is where. Bins may be empty.
type packing struct {
	bin  []int32 // by thing
	used []int64 // by bin and dimension
	kind []int32 // by bin, -1 where it is empty
	held []int32 // by bin, how many things
	cost float64
}

func (p *packing) copyFrom(q *packing) {
	p.bin, p.used = append(p.bin[:0], q.bin...), append(p.used[:0], q.used...)
	p.kind, p.held, p.cost = append(p.kind[:0], q.kind...), append(p.held[:0], q.held...), q.cost
}

func newExchange(m *relax.Model, bins []relax.Column) *exchange {
	x := &exchange{m: m, trial: make([]int64, m.Dims)}
	largest := make([]float64, m.Dims)
	for k := range m.Kinds {
		if m.Kinds[k].Supply < 0 {
			x.kinds = append(x.kinds, k)
		}
	}
	slices.SortStableFunc(x.kinds, func(a, b int) int { return cmp.Compare(m.Kinds[a].Price, m.Kinds[b].Price) })
	for _, k := range x.kinds {
		x.room, x.price = append(x.room, m.Kinds[k].Capacity...), append(x.price, m.Kinds[k].Price)
		for r, c := range m.Kinds[k].Capacity {
			largest[r] = max(largest[r], float64(c))
		}
	}
	for _, c := range bins {
		if m.Kinds[c.Kind].Supply >= 0 {
			x.counted = append(x.counted, c)
			continue
		}
		b := int32(len(x.now.kind))
		x.now.kind, x.now.held = append(x.now.kind, -1), append(x.now.held, 0)
		x.now.used = append(x.now.used, make([]int64, m.Dims)...)
		for i, class := range c.Class {
			for range c.Count[i] {
				size := 0.0
				for r, s := range m.Classes[class].Size {
					size = max(size, float64(s)/max(largest[r], 1))
				}
				x.class, x.size = append(x.class, class), append(x.size, size)
				x.now.bin = append(x.now.bin, -1)
				x.put(int32(len(x.class)-1), b, -1)
			}
		}
		x.refit(b)
	}
	x.best.copyFrom(&x.now)
	x.any = true
	for i := range m.Classes {
		for _, k := range x.kinds {
			x.any = x.any && m.Classes[i].May(k)
		}
	}
	return x
}

// fitting is the cheapest kind from the one on that holds so much and suits the class, or -1.
func (x *exchange) fitting(used []int64, from int32, class int32) int32 {
	d := x.m.Dims
	for k := from; int(k) < len(x.kinds); k++ {
		x.steps++
		ok := true
		for r, c := range x.room[int(k)*d : int(k)*d+d] {
			if used[r] > c {
				ok = false
				break
			}
		}
		if ok && x.m.Classes[class].May(x.kinds[k]) {
			return k
		}
	}
	return -1
}

// put places the thing in the bin, which is then of the kind.
func (x *exchange) put(thing, b, kind int32) {
	p := &x.now
	d := x.m.Dims
	for r, s := range x.m.Classes[x.class[thing]].Size {
		p.used[int(b)*d+r] += s
	}
	p.held[b]++
	p.bin[thing] = b
	if kind >= 0 {
		if p.kind[b] >= 0 {
			p.cost -= x.price[p.kind[b]]
		}
		p.kind[b] = kind
		p.cost += x.price[kind]
	}
}

// take removes the thing from its bin; the kind is left as it is.
func (x *exchange) take(thing int32) {
	p := &x.now
	b := p.bin[thing]
	d := x.m.Dims
	for r, s := range x.m.Classes[x.class[thing]].Size {
		p.used[int(b)*d+r] -= s
	}
	p.held[b]--
	p.bin[thing] = -1
	x.out = append(x.out, thing)
}

// refit gives the bin the cheapest kind that holds it.
func (x *exchange) refit(b int32) {
	p := &x.now
	if p.kind[b] >= 0 {
		p.cost -= x.price[p.kind[b]]
	}
	p.kind[b] = -1
	if p.held[b] == 0 {
		return
	}
	d := x.m.Dims
	used := p.used[int(b)*d : int(b)*d+d]
	first := int32(slices.Index(p.bin, b))
	for k := int32(0); ; k++ {
		if k = x.fitting(used, k, x.class[first]); k < 0 || x.suitsAll(b, k) {
			p.kind[b] = k
			break
		}
	}
	if p.kind[b] >= 0 {
		p.cost += x.price[p.kind[b]]
	}
}

func (x *exchange) suitsAll(b, kind int32) bool {
	if x.any {
		return true
	}
	for thing, at := range x.now.bin {
		if at == b && !x.m.Classes[x.class[thing]].May(x.kinds[kind]) {
			return false
		}
	}
	return true
}

// heat is how much dearer, in parts of the cost, a packing may be to be gone on with at first.
const heat = 0.02

func (x *exchange) run(floor float64, rounds int, b *relax.Budget) {
	for round := range rounds {
		if x.best.cost <= floor*(1+1e-9) {
			return
		}
		x.saved.copyFrom(&x.now)
		x.ruin()
		x.steps = 0
		ok := x.recreate()
		left := 1 - float64(round)/float64(rounds)
		warm := x.best.cost * heat * left * left * -math.Log(x.rng.Unit()+1e-12) / float64(1+len(x.best.kind))
		switch {
		case !ok || x.now.cost > x.saved.cost+warm:
			x.now, x.saved = x.saved, x.now
		case x.now.cost < x.best.cost*(1-1e-12):
			x.best.copyFrom(&x.now)
		}
		if !b.Take(x.steps*x.m.Dims + len(x.class)) {
			return
		}
	}
}

// ruin empties a bin or two, and takes single things out of others.
func (x *exchange) ruin() {
	x.out = x.out[:0]
	p := &x.now
	n := len(x.class)
	for range x.rng.Below(3) {
		b := p.bin[x.rng.Below(n)]
		if b < 0 || len(x.out) > 0 && int(p.held[b]) > 40 {
			continue
		}
		for thing := range p.bin {
			if p.bin[thing] == b {
				x.take(int32(thing))
			}
		}
	}
	for range 1 + x.rng.Below(min(n, 8)) {
		if thing := x.rng.Below(n); p.bin[thing] >= 0 {
			x.take(int32(thing))
		}
	}
	for b := range p.kind {
		if p.kind[b] >= 0 {
			x.refit(int32(b))
		}
	}
}

// recreate puts each thing where that costs least, the large ones first or in some other order.
func (x *exchange) recreate() bool {
	noise := []float64{0, 0.3, 1, 30}[x.rng.Below(4)]
	x.key = slices.Grow(x.key[:0], len(x.class))[:len(x.class)]
	for _, thing := range x.out {
		x.key[thing] = x.size[thing] * (1 + noise*x.rng.Unit())
	}
	slices.SortFunc(x.out, func(a, b int32) int { return cmp.Or(cmp.Compare(x.key[b], x.key[a]), cmp.Compare(a, b)) })
	tight := []float64{0, 0.1, 0.4, 1}[x.rng.Below(4)]
	blink := x.rng.Below(3) == 0
	for _, thing := range x.out {
		if !x.insert(thing, tight, blink) {
			return false
		}
	}
	return true
}

// insert puts the thing into the bin that it makes dearer by the least, or a new one; where it is tight, room left empty
// counts as a cost too.
func (x *exchange) insert(thing int32, tight float64, blink bool) bool {
	p := &x.now
	d := x.m.Dims
	class := x.class[thing]
	c := &x.m.Classes[class]
	best, bestKind, least := int32(-1), int32(-1), math.Inf(1)
	empty := int32(-1)
	for b := range int32(len(p.kind)) {
		from, before := int32(0), 0.0
		if p.kind[b] < 0 {
			if empty >= 0 {
				continue
			}
			empty = b
		} else {
			if blink && x.rng.Below(12) == 0 {
				continue
			}
			from, before = p.kind[b], x.price[p.kind[b]]
		}
		for r, s := range c.Size {
			x.trial[r] = p.used[int(b)*d+r] + s
		}
		k := x.fitting(x.trial, from, class)
		for k >= 0 && k != from && p.held[b] > 0 && !x.suitsAll(b, k) {
			k = x.fitting(x.trial, k+1, class)
		}
		if k < 0 || c.Most < int64(len(x.class)) && !x.allows(b, class) {
			continue
		}
		score := x.price[k] - before
		if tight > 0 {
			free := 0.0
			for r, u := range x.trial {
				if room := x.room[int(k)*d+r]; room > 0 {
					free = max(free, 1-float64(u)/float64(room))
				}
			}
			score += tight * 0.2 * free * x.price[k]
		}
		if score < least {
			best, bestKind, least = b, k, score
		}
	}
	if empty < 0 {
		if k := x.fitting(c.Size, 0, class); k >= 0 && (best < 0 || x.price[k] < least) {
			best, bestKind = int32(len(p.kind)), k
			p.kind, p.held = append(p.kind, -1), append(p.held, 0)
			p.used = append(p.used, make([]int64, d)...)
		}
	}
	if best < 0 {
		return false
	}
	x.put(thing, best, bestKind)
	return true
}

// allows reports whether the bin may take one more of the class.
func (x *exchange) allows(b, class int32) bool {
	n := int64(0)
	for thing, at := range x.now.bin {
		if at == b && x.class[thing] == class {
			n++
		}
	}
	return n < x.m.Classes[class].Most
}

// columns is the best packing.
func (x *exchange) columns() []relax.Column {
	count := make([]map[int32]int32, len(x.best.kind))
	for thing, b := range x.best.bin {
		if count[b] == nil {
			count[b] = map[int32]int32{}
		}
		count[b][x.class[thing]]++
	}
	var out []relax.Column
	for b, kind := range x.best.kind {
		if kind < 0 {
			continue
		}
		c := relax.Column{Kind: x.kinds[kind]}
		for class := range x.m.Classes {
			if n := count[b][int32(class)]; n > 0 {
				c.Class, c.Count = append(c.Class, int32(class)), append(c.Count, n)
			}
		}
		out = append(out, c)
	}
	return out
}
