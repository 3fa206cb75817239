package binpack_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// within panics if f takes longer than the limit, because a search must end.
func within(limit time.Duration, f func()) {
	defer time.AfterFunc(limit, func() { panic("it does not end") }).Stop()
	f()
}

// one returns a problem with a single pool without limits.
func one(resources []string, types []binpack.Type, items ...binpack.Item) binpack.Problem {
	return binpack.Problem{Resources: resources, Pools: []binpack.Pool{unbounded("p", 0)}, Types: types, Items: items}
}

func item(name string, count int, size ...int64) binpack.Item {
	return binpack.Item{Name: name, Count: count, Size: size, Requires: anywhere()}
}

func typ(name string, price binpack.Price, capacity ...int64) binpack.Type {
	return binpack.Type{Name: name, Capacity: capacity, Offerings: []binpack.Offering{{Price: price}}}
}

// fragmented needs more bins than any sum of sizes shows; its optimum is $178.
func fragmented() binpack.Problem {
	return one([]string{"cpu", "gpu"}, []binpack.Type{typ("cpu", 10*binpack.PerDollar, 100, 0), typ("gpu", 8*binpack.PerDollar, 0, 1)},
		item("large", 13, 51, 0), item("small", 7, 7, 0), item("gpu", 6, 0, 1))
}

// Nine items need a GPU, of which a bin has eight: the bound counts two bins, not nine eighths of one.
func TestBoundCountsWholeBins(t *testing.T) {
	p := one([]string{"cpu", "gpu"}, []binpack.Type{typ("cpu", binpack.PerDollar, 16, 0), typ("gpu", 40*binpack.PerDollar, 96, 8)},
		item("cpu", 5000, 1, 0), item("gpu", 9, 4, 1))
	in, plan := lawfulBy(t, p, nil)
	require.Equal(t, 383*binpack.PerDollar, plan.Objective)
	require.Equal(t, 383*binpack.PerDollar, plan.Bound.Price)
	require.Equal(t, binpack.AssignmentLP, plan.Bound.Kind)
	require.NoError(t, in.VerifyBound(plan))
}

// No claim above the optimum is verified.
func TestNoFalseClaimIsVerified(t *testing.T) {
	p := fragmented()
	in, plan := lawfulBy(t, p, nil)
	require.Equal(t, 178*binpack.PerDollar, plan.Objective)
	require.LessOrEqual(t, plan.Bound.Price, plan.Objective)
	require.NoError(t, in.VerifyBound(plan))
	// A dearer layout of the same items allows a higher claim.
	dear := *plan
	dear.Layout, dear.Objective = binpack.Layout{}, 0
	for i, n := range []int{13, 7, 6} {
		for range n {
			dear.Bins = append(dear.Bins, binpack.Bin{Type: i / 2, Shares: []binpack.Share{{Item: i, Count: 1}}})
			dear.Objective += []binpack.Price{10, 10, 8}[i] * binpack.PerDollar
		}
	}
	dear.Cost = dear.Objective
	require.NoError(t, in.Check(dear.Layout))
	for _, claim := range []binpack.Price{179, 200, 248} {
		for _, kind := range []binpack.BoundKind{binpack.Exhausted, binpack.Configuration, binpack.AssignmentLP} {
			for _, items := range [][]binpack.Price{{10 * binpack.PerDollar, 0, 8 * binpack.PerDollar}, {0, 0, 0}, {5, 1, 8}} {
				dear.Bound = binpack.Bound{Price: claim * binpack.PerDollar, Kind: kind, ItemDuals: items}
				require.Error(t, in.VerifyBound(&dear), "%d of kind %s", claim, kind)
			}
		}
	}
}

// A capacity that no item needs may be as large as an integer.
func TestCapacityThatNoItemNeeds(t *testing.T) {
	for _, huge := range []int64{1 << 60, 1 << 61, 1 << 62, math.MaxInt64} {
		p := one([]string{"cpu", "spare"}, []binpack.Type{typ("a", 20, 10, huge), typ("b", 15, 6, huge), typ("c", 5, 1, huge)},
			item("x", 3, 5, 0), item("y", 3, 4, 0), item("z", 2, 1, 0))
		want := p
		want.Types = []binpack.Type{typ("a", 20, 10, 1), typ("b", 15, 6, 1), typ("c", 5, 1, 1)}
		_, least := lawfulBy(t, want, nil)
		_, plan := lawfulBy(t, p, nil)
		require.Equal(t, least.Objective, plan.Objective, "capacity %d", huge)
		require.Equal(t, least.Bound.Price, plan.Bound.Price, "capacity %d", huge)
	}
}

// The length of a search does not depend on the ratio of prices.
func TestPricesFarApart(t *testing.T) {
	for _, ratio := range []binpack.Price{75_000, 300_000, 10_000_000, 1_000_000_000} {
		p := one([]string{"cpu", "memory"}, []binpack.Type{typ("cheap", 1, 1, 0), typ("other", 2, 0, 1), typ("dear", 3*ratio, 10, 10)},
			item("x", 1, 1, 0), item("y", 1, 0, 1), item("z", 1, 10, 10))
		within(5*time.Second, func() {
			start := time.Now()
			_, plan := lawfulBy(t, p, nil)
			require.Equal(t, 3*ratio+3, plan.Objective)
			require.Less(t, time.Since(start), 2*time.Second, "1 : %d", ratio)
		})
	}
}

// A plan does not prepare for what limits do not admit.
func TestManyCopiesAndFewNodes(t *testing.T) {
	for what, limit := range map[string]func(*binpack.Pool){
		"nodes": func(p *binpack.Pool) { p.MaxNodes = new(3) },
		"price": func(p *binpack.Pool) { p.MaxPrice = new(binpack.Price(30)) },
		"usage": func(p *binpack.Pool) { p.Limits = []int64{3} },
	} {
		p := one([]string{"cpu"}, []binpack.Type{typ("a", 10, 8), typ("b", 9, 3)}, item("x", 1_000_000_000, 1), item("y", 1_000_000_000, 2))
		limit(&p.Pools[0])
		for t := range p.Types {
			p.Types[t].Usage = slices.Repeat([]int64{1}, len(p.Pools[0].Limits))
		}
		within(5*time.Second, func() {
			_, plan := lawfulBy(t, p, nil)
			require.Len(t, plan.Bins, 3, what)
			require.Equal(t, 24, 1_000_000_000-plan.Unplaced[0]+2*(1_000_000_000-plan.Unplaced[1]), what)
		})
	}
}

// MaxNodes is part of the plan, not a cut afterwards.
func TestNodesAreFewAndBinsAreMixed(t *testing.T) {
	for nodes, price := range map[int]binpack.Price{1: 100, 2: 50, 3: 45, 4: 40} {
		p := one([]string{"cpu"}, []binpack.Type{typ("small", 10, 5), typ("medium", 25, 10), typ("large", 100, 20)}, item("x", 4, 5))
		p.Pools[0].MaxNodes = new(nodes)
		_, plan := lawfulBy(t, p, nil)
		require.Zero(t, plan.Unplaced[0], "%d nodes", nodes)
		require.Equal(t, price, plan.Objective, "%d nodes", nodes)
	}
}

// Bins that are too large and dear to be bought make neither bounds nor plans worse: in the mean, since either search may be
// luckier on one problem.
func TestGiantsAreNotBought(t *testing.T) {
	rng := rand.New(rand.NewPCG(91, 92))
	types := []binpack.Type{typ("a", 40_000, 2_000, 7_000), typ("b", 79_000, 4_000, 15_000), typ("c", 95_000, 4_000, 31_000), typ("d", 170_000, 8_000, 31_000)}
	giant := typ("giant", 3_000_000, 64_000, 250_000)
	rounds := 40
	if testing.Short() {
		rounds = 24
	}
	bounds, costs := 0.0, 0.0
	for round := range rounds {
		var items []binpack.Item
		for i := range 45 {
			items = append(items, item(fmt.Sprint("i", i), 1+rng.IntN(3), int64(1_000+rng.IntN(3_000)), int64(1_000+rng.IntN(14_000))))
		}
		_, small := lawfulBy(t, one([]string{"cpu", "memory"}, types, items...), nil)
		_, both := lawfulBy(t, one([]string{"cpu", "memory"}, append(types, giant), items...), nil)
		require.InEpsilon(t, int64(small.Bound.Price), int64(both.Bound.Price), 0.02, "round %d", round)
		require.InEpsilon(t, int64(small.Objective), int64(both.Objective), 0.02, "round %d", round)
		bounds += float64(both.Bound.Price) / float64(small.Bound.Price) / float64(rounds)
		costs += float64(both.Objective) / float64(small.Objective) / float64(rounds)
	}
	require.InDelta(t, 1, bounds, 0.003)
	require.InDelta(t, 1, costs, 0.003)
}

// Sums of prices do not wrap.
func TestDearPrices(t *testing.T) {
	p := one([]string{"cpu"}, []binpack.Type{typ("a", 9_000_000_000*binpack.PerDollar, 1)}, item("x", 2, 1))
	in, err := binpack.Compile(p)
	require.NoError(t, err)
	plan, err := in.Pack(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, plan.Bins, 2)
	require.Equal(t, binpack.Price(math.MaxInt64), plan.Cost)
	require.NoError(t, in.VerifyBound(plan))
	require.GreaterOrEqual(t, plan.GapPercent(), 0.0)
	p.Types = append(p.Types, typ("two", binpack.Price(math.MaxInt64), 2))
	in, err = binpack.Compile(p)
	require.NoError(t, err)
	plan, err = in.Pack(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, in.VerifyBound(plan))
	require.Equal(t, 0, plan.Unplaced[0], fmt.Sprint(plan.Layout))
}

// Bins of price 0 are never refuted.
func TestBinsOfPriceZero(t *testing.T) {
	free := typ("free", 0, 4, 0)
	p := one([]string{"cpu", "gpu"}, []binpack.Type{free, typ("gpu", 8, 9, 1)}, item("x", 7, 3, 0), item("g", 2, 1, 1))
	_, plan := lawfulBy(t, p, nil)
	require.Equal(t, binpack.Price(16), plan.Objective)
	require.Equal(t, plan.Objective, plan.Bound.Price)
}

// A bound that a small budget proves by the capacity of whole nodes is checked without a search, which proves more.
func TestBoundsOfNodesAtLittleEffort(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 17))
		p := one([]string{"cpu", "memory"}, nil)
		for k := int64(2); k <= 64; k *= 2 {
			p.Types = append(p.Types, typ(fmt.Sprint("c", k), binpack.Price(90*k+1), 100*k, 200*k), typ(fmt.Sprint("m", k), binpack.Price(110*k+1), 100*k, 400*k))
		}
		for i := range 60 + r.IntN(100) {
			p.Items = append(p.Items, item(fmt.Sprint("x", i), 1, 5+r.Int64N(300), 10+r.Int64N(900)))
		}
		for i := range 10 + r.IntN(20) {
			p.Nodes = append(p.Nodes, binpack.Node{Name: fmt.Sprint("n", i), Free: []int64{r.Int64N(800), r.Int64N(1600)}})
		}
		lawfulBy(t, p, &binpack.Options{Strategy: binpack.CostAware{Effort: binpack.EffortFast}})
	}
}

// Sums of many large nodes do not wrap: a bound of items in any unit is valid.
func TestBoundsOfManyLargeNodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	searched := 0
	for range rounds(t, 20, 200) {
		nodes, room, shift := 50+rng.IntN(400), int64(1+rng.IntN(12)), 30+rng.IntN(28)
		large := item("x", 1+rng.IntN(12), 1<<shift, 0)
		large.Requires = requirements.AnyOf(requirements.MustParse("n=1"))
		p := one([]string{"big", "cpu"}, []binpack.Type{typ("b", 10, 0, int64(5+rng.IntN(5)))},
			item("y", 1+rng.IntN(6), 0, int64(1+rng.IntN(5))), item("z", 1+rng.IntN(6), 0, int64(1+rng.IntN(5))), large)
		for k := range nodes {
			p.Nodes = append(p.Nodes, binpack.Node{Name: fmt.Sprint("n", k), Free: []int64{room<<shift - int64(k), 0}, Provides: requirements.MustParse("n=1")})
		}
		_, best := lawfulBy(t, p, nil)
		_, plan := lawfulBy(t, p, &binpack.Options{Strategy: wasteful{nodes: true}})
		require.LessOrEqual(t, plan.Bound.Price, best.Objective, "%d nodes with %d << %d", nodes, room, shift)
		if best.Bound.Kind == binpack.Exhausted {
			searched++
		}
	}
	require.Positive(t, searched)
}
