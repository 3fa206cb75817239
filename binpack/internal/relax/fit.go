package relax

import (
	"cmp"
	"math"
	"slices"
)

// fitter packs things into a given set of bins by moving and exchanging single ones, so that less and less stands out
// (simulated annealing: S. Kirkpatrick et al., 1983). It is good where the room is just enough, and proves nothing.
type fitter struct {
	m     *Model
	class []int32   // by thing
	size  []float64 // by thing and dimension, in parts of what all bins hold
	kinds []int
	bins  int
	room  []float64 // by bin and dimension
	used  []float64
	over  []float64 // by bin, what stands out
	held  [][]int32 // by bin, its things
	place []int32   // by thing, its position in held
	bin   []int32
	may   [][]bool // by class and bin; nil for all
	count []int32  // by bin and class, where a class has a limit within a bin; nil for none
	total float64
	rng   Draw
}

// tighten tries to do without the cheapest bin, over and over, as long as the cost stays above the floor: what is in it goes to
// the others, and things are exchanged until all fit again. It is for many like bins, among which no few have a bin's room to
// spare. Bins of counted kinds are left as they are.
func (m *Model) tighten(bins []Column, floor float64, b *Budget) []Column {
	rest := *m
	rest.Classes = slices.Clone(m.Classes)
	var counted, free []Column
	for _, c := range bins {
		if m.Kinds[c.Kind].Supply < 0 {
			free = append(free, c)
			continue
		}
		counted = append(counted, c)
		for i, class := range c.Class {
			rest.Classes[class].Count -= int64(c.Count[i])
		}
	}
	slices.SortStableFunc(free, func(x, y Column) int { return cmp.Compare(m.Kinds[y.Kind].Price, m.Kinds[x.Kind].Price) })
	var f fitter
	proposals := proposalsPerThing * int(rest.things())
	for len(free) > 1 && b.Take(8*(m.Dims+2)*int(rest.things())+len(free)*len(free[len(free)-1].Class)) {
		last := len(free) - 1
		if cost := m.Cost(bins) - m.Kinds[free[last].Kind].Price; cost < floor*(1-1e-9) {
			break
		}
		kinds := make([]int, last)
		for i := range kinds {
			kinds[i] = free[i].Kind
		}
		if f.load(&rest, kinds, free[:last]); !f.run(proposals, b) {
			break
		}
		free = f.columns()
		bins = slices.Concat(counted, free)
	}
	return bins
}

// load takes the things over from the columns as far as they go; the rest goes where most room is. Columns are by bin.
func (f *fitter) load(m *Model, kinds []int, columns []Column) {
	f.m, f.kinds, f.bins, f.rng = m, kinds, len(kinds), Draw(len(kinds))
	d := m.Dims
	all := make([]float64, d)
	for _, k := range kinds {
		for r, c := range m.Kinds[k].Capacity {
			all[r] += float64(c)
		}
	}
	f.room, f.held = f.room[:0], slices.Grow(f.held[:0], f.bins)[:f.bins]
	f.may, f.count = nil, nil
	if slices.ContainsFunc(m.Classes, func(c Class) bool { return c.Most < c.Count }) {
		f.count = make([]int32, len(kinds)*len(m.Classes))
	}
	for b, k := range kinds {
		for r, c := range m.Kinds[k].Capacity {
			f.room = append(f.room, float64(c)/max(all[r], 1))
		}
		f.held[b] = f.held[b][:0]
		for i := range m.Classes {
			if !m.Classes[i].May(k) && f.may == nil {
				f.may = make([][]bool, len(m.Classes))
			}
		}
	}
	for i := range f.may {
		for _, k := range kinds {
			f.may[i] = append(f.may[i], m.Classes[i].May(k))
		}
	}
	f.class, f.size, f.place, f.bin = f.class[:0], f.size[:0], f.place[:0], f.bin[:0]
	f.used, f.over = append(f.used[:0], make([]float64, f.bins*d)...), append(f.over[:0], make([]float64, f.bins)...)
	left := make([]int64, len(m.Classes))
	for i := range m.Classes {
		left[i] = m.Classes[i].Count
	}
	add := func(class int32, b int) {
		thing := int32(len(f.class))
		f.class, f.bin, f.place = append(f.class, class), append(f.bin, int32(b)), append(f.place, int32(len(f.held[b])))
		f.held[b] = append(f.held[b], thing)
		if f.count != nil {
			f.count[b*len(m.Classes)+int(class)]++
		}
		for r, s := range m.Classes[class].Size {
			part := float64(s) / max(all[r], 1)
			f.size = append(f.size, part)
			f.used[b*d+r] += part
		}
	}
	for b, c := range columns {
		for i, class := range c.Class {
			for range c.Count[i] {
				add(class, b)
			}
			left[class] -= int64(c.Count[i])
		}
	}
	for i, n := range left {
		for range n {
			best, most := 0, math.Inf(-1)
			for b := range f.bins {
				if !f.allowed(int32(i), b) {
					continue
				}
				free := math.Inf(1)
				for r := range d {
					free = min(free, f.room[b*d+r]-f.used[b*d+r])
				}
				if free > most {
					best, most = b, free
				}
			}
			add(int32(i), best)
		}
	}
	f.total = 0
	for b := range f.bins {
		f.over[b] = f.excess(b, nil, nil)
		f.total += f.over[b]
	}
}

// excess is what stands out of the bin with one thing more and another less.
func (f *fitter) excess(b int, in, out []float64) float64 {
	d := f.m.Dims
	sum := 0.0
	used, room := f.used[b*d:b*d+d], f.room[b*d:b*d+d]
	for r, u := range used {
		if in != nil {
			u += in[r]
		}
		if out != nil {
			u -= out[r]
		}
		if u > room[r]*(1+1e-12) {
			sum += u - room[r]
		}
	}
	return sum
}

// allowed reports whether one more of the class may go into the bin, room aside.
func (f *fitter) allowed(class int32, b int) bool {
	return (f.may == nil || f.may[class][b]) && (f.count == nil || int64(f.count[b*len(f.m.Classes)+int(class)]) < f.m.Classes[class].Most)
}

func (f *fitter) vector(thing int32) []float64 {
	d := f.m.Dims
	return f.size[int(thing)*d : int(thing)*d+d]
}

// run proposes so many moves and reports whether everything fits.
func (f *fitter) run(proposals int, budget *Budget) bool {
	if f.bins < 2 {
		return f.total <= 0
	}
	warm := max(f.total, 1e-3) / 2000
	for n := range proposals {
		if n%256 == 0 && !budget.Take(256*16) {
			return false
		}
		if f.total <= 1e-13 {
			return f.fits()
		}
		heat := warm * (1 - float64(n)/float64(proposals))
		heat *= heat / warm
		a := f.rng.Below(f.bins)
		for try := 0; try < 3 && f.over[a] == 0; try++ {
			a = f.rng.Below(f.bins)
		}
		b := f.rng.Below(f.bins - 1)
		if b >= a {
			b++
		}
		if len(f.held[a]) == 0 {
			continue
		}
		x := f.held[a][f.rng.Below(len(f.held[a]))]
		if !f.allowed(f.class[x], b) {
			continue
		}
		var y int32 = -1
		if len(f.held[b]) > 0 && f.rng.Below(4) > 0 {
			if y = f.held[b][f.rng.Below(len(f.held[b]))]; !f.allowed(f.class[y], a) || f.class[x] == f.class[y] {
				continue
			}
		}
		var other []float64
		if y >= 0 {
			other = f.vector(y)
		}
		overA, overB := f.excess(a, other, f.vector(x)), f.excess(b, f.vector(x), other)
		change := overA + overB - f.over[a] - f.over[b]
		if change > 0 && change >= heat*f.rng.exponential() {
			continue
		}
		f.over[a], f.over[b] = overA, overB
		f.total += change
		f.shift(x, a, b)
		if y >= 0 {
			f.shift(y, b, a)
		}
	}
	return f.total <= 1e-13 && f.fits()
}

func (f *fitter) shift(thing int32, from, to int) {
	d := f.m.Dims
	for r, s := range f.vector(thing) {
		f.used[from*d+r] -= s
		f.used[to*d+r] += s
	}
	if n, class := len(f.m.Classes), int(f.class[thing]); f.count != nil {
		f.count[from*n+class]--
		f.count[to*n+class]++
	}
	last := f.held[from][len(f.held[from])-1]
	f.held[from][f.place[thing]], f.place[last] = last, f.place[thing]
	f.held[from] = f.held[from][:len(f.held[from])-1]
	f.bin[thing], f.place[thing] = int32(to), int32(len(f.held[to]))
	f.held[to] = append(f.held[to], thing)
}

// fits checks in whole numbers what the search believes.
func (f *fitter) fits() bool {
	used := make([]int64, f.m.Dims)
	for b, k := range f.kinds {
		clear(used)
		for class, n := range f.counts(b) {
			c := &f.m.Classes[class]
			if n > c.Most || n > 0 && !c.May(k) {
				return false
			}
			for r, s := range c.Size {
				used[r] += n * s
			}
		}
		for r, u := range used {
			if u > f.m.Kinds[k].Capacity[r] {
				return false
			}
		}
	}
	return true
}

// counts is how many of each class are in the bin.
func (f *fitter) counts(b int) []int64 {
	out := make([]int64, len(f.m.Classes))
	for _, thing := range f.held[b] {
		out[f.class[thing]]++
	}
	return out
}

// columns is the packing.
func (f *fitter) columns() []Column {
	var out []Column
	for b, k := range f.kinds {
		c := Column{Kind: k}
		for class, n := range f.counts(b) {
			if n > 0 {
				c.Class, c.Count = append(c.Class, int32(class)), append(c.Count, int32(n))
			}
		}
		if len(c.Class) > 0 {
			out = append(out, c)
		}
	}
	return out
}
