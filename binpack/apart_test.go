package binpack_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// ladder returns types from 1 to n cores, with 2 GiB per core and proportional prices, less what the system keeps.
func ladder(n int) []binpack.Type {
	var out []binpack.Type
	for k := 1; k <= n; k++ {
		out = append(out, binpack.Type{
			Name: fmt.Sprintf("ladder-%03d", k), Capacity: []int64{int64(k)*1000 - 100, int64(k) * 2048},
			Offerings: []binpack.Offering{{Provides: requirements.MustParse("zone=z1"), Price: binpack.Price(k) * 300_000_000}},
		})
	}
	return out
}

// separate returns items of several sizes of which no two may share a bin.
func separate(counts ...int) []binpack.Item {
	var out []binpack.Item
	for i, n := range counts {
		out = append(out, binpack.Item{
			Name: fmt.Sprintf("apart-%d", i), Count: n, Size: []int64{int64(i+1) * 250, 100}, Requires: anywhere(),
			Tags: []string{"app"}, Limits: []binpack.Limit{{Tag: "app", Max: 1}},
		})
	}
	return out
}

func TestTheBoundCountsBinsForItemsApart(t *testing.T) {
	types := []binpack.Type{
		{Name: "small", Capacity: []int64{2000, 4000}, Offerings: []binpack.Offering{{Price: 100}}},
		{Name: "large", Capacity: []int64{64_000, 128_000}, Offerings: []binpack.Offering{{Price: 2000}}},
	}
	p := binpack.Problem{Resources: []string{"cpu", "memory"}, Pools: []binpack.Pool{{Name: "default"}}, Types: types, Items: separate(20, 20, 20)}
	_, plan := lawfulBy(t, p, nil)
	require.Equal(t, binpack.Price(60*100), plan.Cost)
	require.Equal(t, plan.Cost, plan.Bound.Price, "60 copies that stand apart are 60 bins")

	// A daemon with the tag takes the place of one item; a type without place for it is excluded.
	p.Types[0].Tags = []string{"app"}
	_, plan = lawfulBy(t, p, nil)
	require.Equal(t, binpack.Price(60*2000), plan.Cost)
	require.Equal(t, plan.Cost, plan.Bound.Price)

	// The same holds on an existing node, and a free node saves one bin.
	p.Types[0].Tags = nil
	p.Nodes = []binpack.Node{{Name: "taken", Free: []int64{8000, 8000}, Tags: []string{"app"}}, {Name: "free", Free: []int64{8000, 8000}}}
	_, plan = lawfulBy(t, p, nil)
	require.Equal(t, binpack.Price(59*100), plan.Cost)
	require.Equal(t, plan.Cost, plan.Bound.Price)
}

func TestItemsApartShareBinsWithOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("packs hundreds of items")
	}
	p := binpack.Problem{Resources: []string{"cpu", "memory"}, Pools: []binpack.Pool{{Name: "default"}}, Types: ladder(400)}
	p.Items = separate(60, 60, 60)
	for i := range 30 {
		p.Items = append(p.Items, binpack.Item{
			Name: fmt.Sprintf("filler-%02d", i), Count: 20, Size: []int64{int64(i%5+1) * 200, int64(i%6+1) * 350}, Requires: anywhere(),
		})
	}
	_, first := lawfulBy(t, p, &binpack.Options{Strategy: binpack.FirstFitDecreasing{}})
	_, plan := lawfulBy(t, p, nil)
	require.Less(t, float64(plan.Cost), 0.9*float64(first.Cost), "first fit leaves copies that stand apart alone")
	require.Less(t, plan.GapPercent(), 4.0)
}

func TestFastDoesNotSearchAmongThousands(t *testing.T) {
	p := binpack.Problem{Resources: []string{"cpu", "memory"}, Pools: []binpack.Pool{{Name: "default"}}, Types: ladder(20), Items: separate(400, 400, 400)}
	_, first := lawfulBy(t, p, &binpack.Options{Strategy: binpack.FirstFitDecreasing{}})
	_, plan := lawfulBy(t, p, &binpack.Options{Effort: binpack.EffortFast})
	require.Equal(t, first.Layout, plan.Layout)
	require.Positive(t, plan.Bound.Price)
}

// Plan and bound include hundreds of different nodes, in groups of similar ones.
func TestManyDifferentNodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(95, 96))
	cheaper := 0
	for range rounds(t, 3, 30) {
		p := one([]string{"cpu", "memory"}, market(), randomItems(rng, 600)...)
		for i := range 150 + rng.IntN(150) {
			p.Nodes = append(p.Nodes, binpack.Node{Name: fmt.Sprint("n", i), Free: []int64{int64(rng.IntN(3000)), int64(rng.IntN(9000))}, Provides: requirements.MustParse("zone=z1")})
		}
		_, first := lawfulBy(t, p, &binpack.Options{Strategy: binpack.FirstFitDecreasing{}})
		_, plan := lawfulBy(t, p, nil)
		require.Equal(t, first.Unplaced, plan.Unplaced)
		if len(first.Bins) > 0 {
			require.Greater(t, plan.Bound.Price, binpack.Price(0))
		}
		if require.LessOrEqual(t, plan.Objective, first.Objective); plan.Objective < first.Objective {
			cheaper++
		}
	}
	require.Positive(t, cheaper)
}

// More different nodes than a relaxation takes are filled first. What they leave is still planned by cost.
func TestTooManyDifferentNodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	p := one([]string{"cpu", "memory", "pods"}, nil)
	for k, price := range []binpack.Price{10, 11, 19, 20, 38, 40, 78, 81} {
		cpu := int64(4000) << (k / 2)
		p.Types = append(p.Types, binpack.Type{
			Name: fmt.Sprint("type-", k), Capacity: []int64{cpu, cpu * int64(2+2*(k%2)), 110}, Offerings: []binpack.Offering{{Price: price}},
		})
	}
	for i := range 1500 {
		free := []int64{1 << rng.IntN(12), 1 << rng.IntN(13), 1 << rng.IntN(6)}
		p.Nodes = append(p.Nodes, binpack.Node{Name: fmt.Sprint("n", i), Free: free, Provides: requirements.MustParse(fmt.Sprint("zone=z", i%6))})
	}
	for i := range 60 {
		p.Items = append(p.Items, binpack.Item{Name: fmt.Sprint("i", i), Count: 40, Size: []int64{int64(1+rng.IntN(30)) * 100, int64(1+rng.IntN(60)) * 128, 1}})
		if i%3 == 0 {
			p.Items[i].Requires = requirements.AnyOf(requirements.MustParse(fmt.Sprint("zone notin (z", i%6, ")")))
		}
	}
	_, first := lawfulBy(t, p, &binpack.Options{Strategy: binpack.FirstFitDecreasing{}})
	_, plan := lawfulBy(t, p, &binpack.Options{Effort: binpack.EffortFast})
	require.Less(t, float64(plan.Objective), 0.97*float64(first.Objective))
}
