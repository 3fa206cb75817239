package relax

import (
	"cmp"
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/lp"
)

// Assignment is values of the classes by the linear programme that assigns fractions of classes to kinds. Where there
// are more than most classes, like ones are priced together, and each then by what its own room is worth: any room
// values give values that prove something. The result is only near-optimal and not yet a proof; see [Model.Certify]. It is
// nil where the classes as priced prove no more than known.
func (m *Model) Assignment(most int, known float64, b *Budget) []float64 {
	coarse, _ := m.Cluster(most)
	n := len(coarse.Classes)
	rhs := make([]float64, n+len(m.Supply))
	supply, big := make([]bool, len(rhs)), make([]float64, len(rhs))
	for i := range coarse.Classes {
		rhs[i] = float64(coarse.Classes[i].Count)
		if big[i] = coarse.penalty(&coarse.Classes[i]); math.IsInf(big[i], 1) {
			rhs[i], big[i] = 0, 1
		}
	}
	for k, c := range m.Supply {
		rhs[n+k], supply[n+k], big[n+k] = float64(c), true, 1
	}
	a := &assignment{m: coarse, lp: lp.New(rhs, supply, big), weights: make([][]float64, len(m.Kinds))}
	value := make([]float64, n)
	for range 300 {
		if a.lp.Solve(20*len(rhs)+100) != lp.Optimal || b.Left <= 0 {
			break
		}
		for i, y := range a.lp.Multipliers()[:n] {
			value[i] = max(0, y)
			if a.best != nil {
				value[i] = float64(0.25*value[i]) + float64(0.75*a.best[i])
			}
		}
		if a.price(value, b) {
			continue
		}
		for i, y := range a.lp.Multipliers()[:n] {
			value[i] = max(0, y)
		}
		if !a.price(value, b) {
			break
		}
	}
	if a.proved <= known*(1+1e-6) {
		return nil
	}
	return a.spread(m)
}

type assignment struct {
	m       *Model
	lp      *lp.Program
	knap    Knapsack
	best    []float64
	proved  float64
	weights [][]float64 // by kind, those that go with best
}

// price adds for each kind the fractional filling that is worth more than it costs.
func (a *assignment) price(value []float64, b *Budget) bool {
	added := false
	root := make([]float64, len(a.m.Kinds))
	weights := make([][]float64, len(a.m.Kinds))
	theta := 1.0
	before := a.lp.Steps()
	for k := range a.m.Kinds {
		kind := &a.m.Kinds[k]
		if !a.m.Load(&a.knap, k, value) {
			continue
		}
		root[k] = a.knap.Bound(kind.Price)
		weights[k] = a.knap.PerUnit()
		limit := kind.Price
		if kind.Supply < 0 {
			if root[k] > kind.Price {
				theta = min(theta, kind.Price/root[k])
			}
		} else {
			limit -= min(0, a.lp.Multipliers()[len(a.m.Classes)+int(kind.Supply)])
		}
		if root[k] > limit*(1+1e-7) {
			if entries := a.knap.fractions(); len(entries) > 0 {
				if kind.Supply >= 0 {
					entries = append(entries, lp.Entry{Row: int32(len(a.m.Classes)) + kind.Supply, Amount: 1})
				}
				a.lp.Add(kind.Price, entries)
				added = true
			}
		}
	}
	if p := a.m.proves(value, theta, root); p > a.proved {
		a.proved, a.best = p, slices.Clone(value)
		for i := range a.best {
			a.best[i] *= theta
		}
		for k := range weights {
			for r := range weights[k] {
				weights[k][r] *= theta
			}
		}
		a.weights = weights
	}
	b.Take(a.knap.Steps() + a.lp.Steps() - before)
	return added
}

// spread gives each class of the fine model the least that its room is worth in any kind that it can go to.
func (a *assignment) spread(m *Model) []float64 {
	out := make([]float64, len(m.Classes))
	for i := range m.Classes {
		c := &m.Classes[i]
		least := math.Inf(1)
		for k := range m.Kinds {
			if m.Kinds[k].Supply >= 0 || !has(c.Kinds, k) || Copies(m.Kinds[k].Capacity, c.Size, 1) == 0 {
				continue
			}
			worth := 0.0
			for r, w := range a.weights[k] {
				worth += float64(w * float64(c.Size[r]))
			}
			least = min(least, worth)
		}
		if !math.IsInf(least, 1) {
			out[i] = least
		}
	}
	return out
}

// PerUnit is what one unit of each resource of the bin is worth, by the last Bound.
func (s *Knapsack) PerUnit() []float64 {
	out := make([]float64, len(s.capacity))
	for k, r := range s.dims {
		out[r] = s.weight[k] / float64(s.capacity[r])
	}
	return out
}

// fractions is the filling in fractions that the last Bound was made of.
func (s *Knapsack) fractions() []lp.Entry {
	var out []lp.Entry
	for i, b := range s.solver.basis {
		if b >= 0 && s.solver.x[i] > 1e-12 {
			out = append(out, lp.Entry{Row: s.cand[b].class, Amount: s.solver.x[i]})
		}
	}
	return out
}

// Cluster joins classes that may go to the same kinds and look alike, until there are at most so many: a class of the
// average size stands for each group. It gives the groups too.
func (m *Model) Cluster(most int) (*Model, [][]int32) {
	largest := make([]float64, m.Dims)
	for k := range m.Kinds {
		for r, c := range m.Kinds[k].Capacity {
			largest[r] = max(largest[r], float64(c))
		}
	}
	order := make([]int, len(m.Classes))
	share := make([][]float64, len(m.Classes))
	for i := range m.Classes {
		order[i] = i
		share[i] = make([]float64, m.Dims)
		for r, s := range m.Classes[i].Size {
			share[i][r] = float64(s) / max(largest[r], 1)
		}
	}
	for grain := 2; ; grain *= 2 { // coarser and coarser
		bucket := func(i int) []int64 {
			out := make([]int64, 0, m.Dims+1)
			top := 0.0
			for _, v := range share[i] {
				top = max(top, v)
			}
			for _, v := range share[i] {
				part, power := math.Frexp(max(v, top/1024, 1e-12)) // about eight times the logarithm
				out = append(out, int64((8*power+int(16*part))/grain))
			}
			return out
		}
		keys := make([][]int64, len(m.Classes))
		for i := range keys {
			keys[i] = bucket(i)
		}
		same := func(a, b int) int {
			return cmp.Or(slices.Compare(m.Classes[a].Kinds, m.Classes[b].Kinds), slices.Compare(keys[a], keys[b]))
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Or(same(a, b), cmp.Compare(a, b)) })
		groups := 1
		for k := 1; k < len(order); k++ {
			if same(order[k-1], order[k]) != 0 {
				groups++
			}
		}
		if groups > most && grain < 1<<10 {
			continue
		}
		return m.joined(order, same)
	}
}

// joined makes one class of each run of equals: as many things of the average size.
func (m *Model) joined(order []int, same func(a, b int) int) (*Model, [][]int32) {
	out := &Model{Dims: m.Dims, Kinds: m.Kinds, Supply: m.Supply}
	var groups [][]int32
	for first := 0; first < len(order); {
		end := first + 1
		for end < len(order) && same(order[first], order[end]) == 0 {
			end++
		}
		c := Class{Size: make([]int64, m.Dims), Kinds: m.Classes[order[first]].Kinds}
		sum := make([]float64, m.Dims)
		var group []int32
		for _, i := range order[first:end] {
			group = append(group, int32(i))
			c.Count += m.Classes[i].Count
			c.Most += m.Classes[i].Most
			for r, s := range m.Classes[i].Size {
				sum[r] += float64(float64(s) * float64(m.Classes[i].Count))
			}
		}
		for r := range sum {
			c.Size[r] = int64(math.Ceil(sum[r] / float64(max(c.Count, 1))))
		}
		out.Classes, groups = append(out.Classes, c), append(groups, group)
		first = end
	}
	return out, groups
}

// fractional solves the knapsack in fractions, max value.n with the parts of each dimension at most 1, by the simplex
// method on as many rows as there are dimensions. It gives what each dimension is worth.
type fractional struct {
	inverse, x, y, dir []float64
	perValue           []float64 // by candidate and dimension: the part of the bin that a unit of value takes
	basis              []int
}

func (f *fractional) solve(cand []candidate, size []float64, d int, out []float64) []float64 {
	grow := func(v []float64, n int) []float64 {
		if cap(v) < n {
			return make([]float64, n)
		}
		v = v[:n]
		clear(v)
		return v
	}
	f.inverse, f.x, f.y, f.dir = grow(f.inverse, d*d), grow(f.x, d), grow(f.y, d), grow(f.dir, d)
	f.perValue = slices.Grow(f.perValue[:0], len(size))[:len(size)]
	for i := range cand {
		per := 1 / cand[i].value
		for k, v := range size[i*d : i*d+d] {
			f.perValue[i*d+k] = v * per
		}
	}
	f.basis = f.basis[:0]
	for i := range d {
		f.inverse[i*d+i], f.x[i] = 1, 1
		f.basis = append(f.basis, -1-i)
	}
	for range 30 + 10*d {
		clear(f.y)
		for i, b := range f.basis {
			if b >= 0 {
				for k := range d {
					f.y[k] += float64(cand[b].value * f.inverse[i*d+k])
				}
			}
		}
		enter := f.entering(len(cand), d)
		if enter == math.MinInt {
			break
		}
		for i := range d {
			f.dir[i] = 0
			for k := range d {
				if enter >= 0 {
					f.dir[i] += float64(f.inverse[i*d+k] * size[enter*d+k])
				} else if k == -1-enter {
					f.dir[i] += f.inverse[i*d+k]
				}
			}
		}
		leave, ratio := -1, math.Inf(1)
		for i := range d {
			if f.dir[i] > 1e-12 {
				if q := f.x[i] / f.dir[i]; q < ratio {
					leave, ratio = i, q
				}
			}
		}
		if leave < 0 {
			break
		}
		f.pivot(enter, leave, ratio, d)
	}
	// Whatever the rounding, weights must be worth every thing: raise what is short.
	for _, y := range f.y {
		out = append(out, max(0, y))
	}
	return out
}

// entering is the candidate whose room costs the least part of its value, or the Slack of a dimension, if that pays.
func (f *fractional) entering(n, d int) int {
	best, least := math.MinInt, 1-1e-11
	if d == 3 { // cpu, memory and pods
		y0, y1, y2 := f.y[0], f.y[1], f.y[2]
		part := f.perValue[:3*n]
		for i := 0; len(part) >= 3; i++ {
			if room := float64(part[0]*y0) + float64(part[1]*y1) + float64(part[2]*y2); room < least {
				best, least = i, room
			}
			part = part[3:]
		}
	} else {
		for i := range n {
			room := 0.0
			for k, v := range f.perValue[i*d : i*d+d] {
				room += float64(v * f.y[k])
			}
			if room < least {
				best, least = i, room
			}
		}
	}
	if best != math.MinInt {
		return best
	}
	for k := range d {
		if f.y[k] < -1e-12 {
			return -1 - k
		}
	}
	return best
}

func (f *fractional) pivot(enter, leave int, ratio float64, d int) {
	for i := range d {
		if i != leave {
			f.x[i] = max(0, f.x[i]-float64(ratio*f.dir[i]))
		}
	}
	f.x[leave] = ratio
	for k := range d {
		f.inverse[leave*d+k] /= f.dir[leave]
	}
	for i := range d {
		if i != leave {
			for k := range d {
				f.inverse[i*d+k] -= float64(f.dir[i] * f.inverse[leave*d+k])
			}
		}
	}
	f.basis[leave] = enter
}
