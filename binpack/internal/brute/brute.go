// Package brute solves tiny models by trying everything, for tests to compare with.
package brute

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// tiny is a random model of up to seven things that some kind holds, of up to three resources.
func tiny(rng *rand.Rand) *relax.Model {
	m := &relax.Model{Dims: 1 + rng.IntN(3)}
	kinds := 1 + rng.IntN(4)
	for k := range kinds {
		kind := relax.Kind{Price: float64(1 + rng.IntN(40)), Supply: -1, Label: k}
		for range m.Dims {
			kind.Capacity = append(kind.Capacity, int64(6+rng.IntN(20)))
		}
		m.Kinds = append(m.Kinds, kind)
	}
	for left := int64(1 + rng.IntN(7)); left > 0; {
		c := relax.Class{Count: 1 + rng.Int64N(min(left, 3)), Most: math.MaxInt32, Kinds: []uint64{1<<kinds - 1}}
		if rng.IntN(5) == 0 {
			c.Most = 1 + rng.Int64N(2)
		}
		if rng.IntN(4) == 0 && kinds > 1 {
			c.Kinds[0] &^= 1 << rng.IntN(kinds)
		}
		for range m.Dims {
			c.Size = append(c.Size, rng.Int64N(7))
		}
		if holds(m, c.Kinds[0], []int64{1}, []relax.Class{c}) {
			m.Classes = append(m.Classes, c)
		}
		left -= c.Count
	}
	return m
}

// holds reports whether some kind of the set holds so many of each class.
func holds(m *relax.Model, kinds uint64, count []int64, classes []relax.Class) bool {
	for k := range m.Kinds {
		if kinds&(1<<k) != 0 && FitsIn(m, k, count, classes) {
			return true
		}
	}
	return false
}

// FitsIn reports whether the kind holds so many of each class.
func FitsIn(m *relax.Model, k int, count []int64, classes []relax.Class) bool {
	for i, n := range count {
		if n > 0 && (classes[i].Kinds[0]&(1<<k) == 0 || n > classes[i].Most) {
			return false
		}
	}
	for r := range m.Dims {
		sum := int64(0)
		for i, n := range count {
			sum += n * classes[i].Size[r]
		}
		if sum > m.Kinds[k].Capacity[r] {
			return false
		}
	}
	return true
}

// cheapest is the least price of a kind that holds so many of each class.
func cheapest(m *relax.Model, count []int64) float64 {
	least := math.Inf(1)
	for k := range m.Kinds {
		if FitsIn(m, k, count, m.Classes) {
			least = min(least, m.Kinds[k].Price)
		}
	}
	return least
}

// Optimum tries every way to put the things together: each goes to a bin that is there, or to a new one.
func Optimum(m *relax.Model) float64 {
	var things []int
	for i := range m.Classes {
		for range m.Classes[i].Count {
			things = append(things, i)
		}
	}
	best := math.Inf(1)
	var bins [][]int64
	var place func(at int)
	place = func(at int) {
		if at == len(things) {
			cost := 0.0
			for _, b := range bins {
				cost += cheapest(m, b)
			}
			best = min(best, cost)
			return
		}
		for _, b := range bins {
			b[things[at]]++
			place(at + 1)
			b[things[at]]--
		}
		bins = append(bins, make([]int64, len(m.Classes)))
		bins[len(bins)-1][things[at]]++
		place(at + 1)
		bins = bins[:len(bins)-1]
	}
	place(0)
	return best
}

// Patterns calls f with every filling that some kind holds, and the least price of one.
func Patterns(m *relax.Model, f func(count []int64, price float64)) {
	count := make([]int64, len(m.Classes))
	var fill func(i int)
	fill = func(i int) {
		if i == len(m.Classes) {
			if price := cheapest(m, count); !math.IsInf(price, 1) {
				f(count, price)
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

// Lawful checks that the columns hold everything, each within its kind, and gives what they cost.
func Lawful(t *testing.T, m *relax.Model, columns []relax.Column) float64 {
	t.Helper()
	placed := make([]int64, len(m.Classes))
	for _, c := range columns {
		count := make([]int64, len(m.Classes))
		for i, class := range c.Class {
			count[class] += int64(c.Count[i])
			placed[class] += int64(c.Count[i])
		}
		require.True(t, FitsIn(m, c.Kind, count, m.Classes), "%v in %+v", c, m.Kinds[c.Kind])
	}
	for i := range m.Classes {
		require.Equal(t, m.Classes[i].Count, placed[i], "class %d", i)
	}
	return m.Cost(columns)
}

// Trials is how many models Each makes.
const Trials = 400

// Each calls f with random tiny models and their optima.
func Each(t *testing.T, seed uint64, f func(m *relax.Model, best float64)) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	for range Trials {
		if m := tiny(rng); len(m.Classes) > 0 {
			f(m, Optimum(m))
		}
	}
}

// Values are n random ones.
func Values(rng *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(rng.IntN(30))
	}
	return out
}

// Plenty is a budget that does not run out.
func Plenty() *relax.Budget { return &relax.Budget{Left: math.MaxInt / 2} }

// Scaled is the model with prices that leave room for whole values.
func Scaled(m *relax.Model) *relax.Model {
	out := *m
	out.Kinds = slices.Clone(m.Kinds)
	for k := range out.Kinds {
		out.Kinds[k].Price *= 1e6
	}
	return &out
}
