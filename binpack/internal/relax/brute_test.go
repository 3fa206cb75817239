package relax_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// tiny draws a model of up to seven items and three resources. Bins may lack a resource, cost nothing or be counted, alone or
// shared, and classes may be limited to some bin types. Some bin type holds each item.
func tiny(rng *rand.Rand) *relax.Model {
	m := &relax.Model{Dims: 1 + rng.IntN(3)}
	types := 1 + rng.IntN(5)
	wild := rng.IntN(2) == 0
	if wild {
		for range rng.IntN(3) {
			m.Supply = append(m.Supply, int64(rng.IntN(4)))
		}
	}
	for range types {
		typ := relax.BinType{Price: float64(1 + rng.IntN(40)), Supply: -1}
		if wild && rng.IntN(5) == 0 {
			typ.Price = 0
		}
		if len(m.Supply) > 0 && rng.IntN(2) == 0 {
			typ.Supply = int32(rng.IntN(len(m.Supply)))
		}
		for range m.Dims {
			room := int64(6 + rng.IntN(20))
			if wild && rng.IntN(4) == 0 {
				room = 0
			}
			typ.Capacity = append(typ.Capacity, room)
		}
		m.BinTypes = append(m.BinTypes, typ)
	}
	arches := []uint64{1<<types - 1, rng.Uint64N(1 << types), rng.Uint64N(1 << types)}
	for left := int64(1 + rng.IntN(7)); left > 0; {
		c := relax.Class{Count: 1 + rng.Int64N(min(left, 3)), Most: math.MaxInt32, BinTypes: []uint64{arches[rng.IntN(len(arches))]}}
		if rng.IntN(5) == 0 {
			c.Most = 1 + rng.Int64N(2)
		}
		for range m.Dims {
			size := rng.Int64N(7)
			if wild && rng.IntN(3) == 0 {
				size = 0
			}
			c.Size = append(c.Size, size)
		}
		if holds(m, c.BinTypes[0], []int64{1}, []relax.Class{c}) {
			m.Classes = append(m.Classes, c)
		}
		left -= c.Count
	}
	return m
}

// holds reports whether some bin type of the set holds these counts of the classes.
func holds(m *relax.Model, types uint64, count []int64, classes []relax.Class) bool {
	for k := range m.BinTypes {
		if types&(1<<k) != 0 && fitsIn(m, k, count, classes) {
			return true
		}
	}
	return false
}

// fitsIn reports whether the bin type holds these counts of the classes.
func fitsIn(m *relax.Model, k int, count []int64, classes []relax.Class) bool {
	for i, n := range count {
		if n > 0 && (classes[i].BinTypes[0]&(1<<k) == 0 || n > classes[i].Most) {
			return false
		}
	}
	for r := range m.Dims {
		sum := int64(0)
		for i, n := range count {
			sum += n * classes[i].Size[r]
		}
		if sum > m.BinTypes[k].Capacity[r] {
			return false
		}
	}
	return true
}

// cheapest returns the lowest price of an uncounted bin type that holds these counts of the classes.
func cheapest(m *relax.Model, count []int64) float64 {
	least := math.Inf(1)
	for k := range m.BinTypes {
		if m.BinTypes[k].Supply < 0 && fitsIn(m, k, count, m.Classes) {
			least = min(least, m.BinTypes[k].Price)
		}
	}
	return least
}

// optimum tries every partition of the items and every way to buy bins for it; infinite if supplies do not suffice.
func optimum(m *relax.Model) float64 {
	var items []int
	for i := range m.Classes {
		for range m.Classes[i].Count {
			items = append(items, i)
		}
	}
	best := math.Inf(1)
	var bins [][]int64
	supply := slices.Clone(m.Supply)
	var buy func(at int, cost float64)
	buy = func(at int, cost float64) {
		if at == len(bins) {
			best = min(best, cost)
		}
		if cost >= best {
			return
		}
		plain := math.Inf(1) // of uncounted types only the cheapest matters
		for k := range m.BinTypes {
			if !fitsIn(m, k, bins[at], m.Classes) {
				continue
			}
			typ := &m.BinTypes[k]
			if typ.Supply < 0 {
				plain = min(plain, typ.Price)
			} else if supply[typ.Supply] > 0 {
				supply[typ.Supply]--
				buy(at+1, cost+typ.Price)
				supply[typ.Supply]++
			}
		}
		if !math.IsInf(plain, 1) {
			buy(at+1, cost+plain)
		}
	}
	var place func(at int)
	place = func(at int) {
		if at == len(items) {
			buy(0, 0)
			return
		}
		for _, b := range bins {
			b[items[at]]++
			if holds(m, math.MaxUint64, b, m.Classes) {
				place(at + 1)
			}
			b[items[at]]--
		}
		bins = append(bins, make([]int64, len(m.Classes)))
		bins[len(bins)-1][items[at]]++
		place(at + 1)
		bins = bins[:len(bins)-1]
	}
	place(0)
	return best
}

// patterns calls f with every filling that some bin type holds, and the lowest price of an uncounted one.
func patterns(m *relax.Model, f func(count []int64, price float64)) {
	count := make([]int64, len(m.Classes))
	var fill func(i int)
	fill = func(i int) {
		if i == len(m.Classes) {
			if holds(m, math.MaxUint64, count, m.Classes) {
				f(count, cheapest(m, count))
			}
			return
		}
		for n := range m.Classes[i].Count + 1 {
			count[i] = n
			fill(i + 1)
		}
		count[i] = 0
	}
	fill(0)
}

// lawful checks that the columns hold everything, each within its bin type, and returns their cost.
func lawful(t *testing.T, m *relax.Model, columns []relax.Column) float64 {
	t.Helper()
	placed, bought := make([]int64, len(m.Classes)), make([]int64, len(m.Supply))
	for _, c := range columns {
		count := make([]int64, len(m.Classes))
		for _, a := range c.Pattern {
			count[a.Class] += a.Count
			placed[a.Class] += a.Count
		}
		if sup := m.BinTypes[c.BinType].Supply; sup >= 0 {
			bought[sup]++
			require.LessOrEqual(t, bought[sup], m.Supply[sup])
		}
		require.True(t, fitsIn(m, c.BinType, count, m.Classes), "%v in %+v", c, m.BinTypes[c.BinType])
	}
	for i := range m.Classes {
		require.Equal(t, m.Classes[i].Count, placed[i], "class %d", i)
	}
	return m.Cost(columns)
}

// trials is how many models each draws.
const trials = 400

// each calls f with random tiny models and their optima.
func each(t *testing.T, seed uint64, f func(m *relax.Model, best float64)) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	for range trials {
		if m := tiny(rng); len(m.Classes) > 0 {
			f(m, optimum(m))
		}
	}
}

// duals draws n duals.
func duals(rng *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(rng.IntN(30))
	}
	return out
}

// plenty returns a budget that does not end.
func plenty() *relax.Budget { return &relax.Budget{Left: math.MaxInt / 2} }

// scaled returns the model with large prices, so that integer duals are precise.
func scaled(m *relax.Model) *relax.Model {
	out := *m
	out.BinTypes = slices.Clone(m.BinTypes)
	for k := range out.BinTypes {
		out.BinTypes[k].Price *= 1e6
	}
	return &out
}

func coverage(m *relax.Model) []float64 {
	duals, _ := m.CertifyCoverage(plenty())
	return duals
}
