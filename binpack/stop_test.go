package binpack_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
)

// Whenever the context ends, there is a plan that keeps all rules and is no dearer than first fit's, with a valid bound, and it
// says that it was stopped.
func TestAPlanThatIsStopped(t *testing.T) {
	if testing.Short() {
		t.Skip("packs 900 items eight times")
	}
	p := one([]string{"cpu", "memory"}, market(), randomItems(rand.New(rand.NewPCG(81, 82)), 900)...)
	in, err := binpack.Compile(p)
	require.NoError(t, err)
	first, err := in.Pack(t.Context(), &binpack.Options{Strategy: binpack.FirstFitDecreasing{}})
	require.NoError(t, err)
	var last binpack.Progress
	whole, err := in.Pack(t.Context(), &binpack.Options{Progress: func(p binpack.Progress) { last = p }})
	require.NoError(t, err)
	require.False(t, whole.Stopped)
	require.Equal(t, whole.Objective, last.Price, "the last gain is reported")
	for reports := range 6 {
		ctx, cancel := context.WithCancel(t.Context())
		if reports == 0 {
			cancel()
		}
		heard, work := 0, 0.0
		plan, err := in.Pack(ctx, &binpack.Options{Progress: func(p binpack.Progress) {
			require.GreaterOrEqual(t, p.Work, work)
			require.GreaterOrEqual(t, p.Price, p.Bound)
			require.GreaterOrEqual(t, p.Gap(), 0.0)
			if heard, work = heard+1, p.Work; heard == reports {
				cancel()
			}
		}})
		cancel()
		require.NoError(t, err)
		require.NoError(t, in.Check(plan.Layout))
		require.NoError(t, in.VerifyBound(plan))
		require.Equal(t, first.Unplaced, plan.Unplaced)
		require.LessOrEqual(t, plan.Objective, first.Objective)
		require.LessOrEqual(t, plan.Bound.Price, whole.Objective)
		require.Equal(t, heard >= reports, plan.Stopped, "after %d reports", reports)
		require.Len(t, plan.Alternatives, len(plan.Bins))
	}
}

// First fit of very many distinct items stops too; what it packed so far is the plan.
func TestFirstFitIsStopped(t *testing.T) {
	rng := rand.New(rand.NewPCG(85, 86))
	var items []binpack.Item
	for i := range 50_000 {
		items = append(items, item(fmt.Sprint("i", i), 1, 10*int64(1+rng.IntN(400)), int64(32+rng.IntN(3000))))
	}
	in, err := binpack.Compile(one([]string{"cpu", "memory"}, market(), items...))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	plan, err := in.Pack(ctx, nil)
	require.NoError(t, err)
	require.True(t, plan.Stopped)
	require.NoError(t, in.Check(plan.Layout))
	require.NoError(t, in.VerifyBound(plan))
	left := 0
	for _, n := range plan.Unplaced {
		left += n
	}
	require.Positive(t, left)
	require.Less(t, left, len(items))
	first, err := in.Pack(ctx, &binpack.Options{Strategy: binpack.FirstFitDecreasing{}, Draft: true})
	require.NoError(t, err)
	require.True(t, first.Stopped)
	require.Equal(t, plan.Unplaced, first.Unplaced)
}

// While a plan leaves items unplaced, the bound of all items may be above its price; progress does not show that.
func TestProgressBoundIsNeverAboveThePrice(t *testing.T) {
	p := one([]string{"cpu", "gpu"}, []binpack.Type{typ("cpu", binpack.PerDollar, 16, 0), typ("gpu", 40*binpack.PerDollar, 96, 8)},
		item("cpu", 700, 3, 0), item("gpu", 30, 4, 1))
	p.Types[1].Offerings[0].Counted, p.Types[1].Offerings[0].Count = true, 2
	reports := 0
	plan, err := binpack.Pack(t.Context(), p, &binpack.Options{Progress: func(p binpack.Progress) {
		require.LessOrEqual(t, p.Bound, p.Price)
		reports++
	}})
	require.NoError(t, err)
	require.Equal(t, []int{0, 14}, plan.Unplaced)
	require.Positive(t, reports)
}

// No plan is dearer than those of naive planners: everything in one bin, the largest bins first, first fit decreasing into one
// bin type.
func TestNoPlanIsDearerThanNaiveOnes(t *testing.T) {
	rng := rand.New(rand.NewPCG(83, 84))
	for round := range rounds(t, 30, 400) {
		var types []binpack.Type
		for k := 1; k <= 5+rng.IntN(60); k++ { // prices nearly in proportion to size
			types = append(types, typ(fmt.Sprintf("t%03d", k), binpack.Price(int64(k)*(1_000_000-int64(rng.IntN(1+round%3*20_000)))), int64(k)*1000-100, int64(k)*4096-300))
		}
		var items []binpack.Item
		for i := range 1 + rng.IntN(12) {
			items = append(items, item(fmt.Sprint("i", i), 1+rng.IntN(50), 10*int64(1+rng.IntN(80)), int64(32+rng.IntN(3000))))
		}
		p := one([]string{"cpu", "memory"}, types, items...)
		in, err := binpack.Compile(p)
		require.NoError(t, err)
		plan, err := in.Pack(t.Context(), nil)
		require.NoError(t, err)
		left := 0
		for _, n := range plan.Unplaced {
			left += n
		}
		for _, one := range types {
			q := p
			q.Types = []binpack.Type{one}
			naive, err := binpack.Pack(t.Context(), q, &binpack.Options{Strategy: binpack.FirstFitDecreasing{}, Draft: true})
			require.NoError(t, err)
			if out := naive.Unplaced; func() int {
				n := 0
				for _, k := range out {
					n += k
				}
				return n
			}() == left {
				require.LessOrEqual(t, plan.Objective, naive.Objective, "round %d, only bins of %s", round, one.Name)
			}
		}
	}
}
