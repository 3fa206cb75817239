package binpack_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
)

// rounds returns how often a suite repeats itself. The suite runs beside others. With -short it does not run at all: make check runs it
// without the race detector.
func rounds(t *testing.T, usual, full int) int {
	t.Helper()
	t.Parallel()
	return alone(t, usual, full)
}

// alone is rounds for a suite that measures time, or sets something for the whole process.
func alone(t *testing.T, usual, full int) int {
	t.Helper()
	if testing.Short() {
		t.Skip("repeats itself")
	}
	if parts, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); err == nil { // see make test-long
		return max(usual, full/parts)
	}
	return usual
}

// lawful packs the problem by first fit, which keeps every law exactly, and checks the plan against everything that must hold
// for every plan.
func lawful(t *testing.T, p binpack.Problem) (*binpack.Instance, *binpack.Plan) {
	t.Helper()
	return lawfulBy(t, p, &binpack.Options{Strategy: binpack.FirstFitDecreasing{}})
}

func lawfulBy(t *testing.T, p binpack.Problem, opts *binpack.Options) (*binpack.Instance, *binpack.Plan) {
	t.Helper()
	in, err := binpack.Compile(p)
	require.NoError(t, err)
	plan, err := in.Pack(t.Context(), opts)
	require.NoError(t, err)
	require.NoError(t, in.Check(plan.Layout))
	require.NoError(t, in.VerifyBound(plan))
	require.LessOrEqual(t, plan.Bound.Price, plan.Objective)
	require.GreaterOrEqual(t, plan.Bound.Price, binpack.Price(0))
	require.Len(t, plan.Alternatives, len(plan.Bins))

	var cost binpack.Price
	left := make([]int, len(p.Items))
	for i, it := range p.Items {
		left[i] = it.Count
	}
	count := func(shares []binpack.Share) {
		seen := map[int]bool{}
		for _, s := range shares {
			require.False(t, seen[s.Item], "an item stands once in a bin")
			seen[s.Item] = true
			left[s.Item] -= s.Count
		}
	}
	for _, shares := range plan.Nodes {
		count(shares)
	}
	for i, b := range plan.Bins {
		count(b.Shares)
		cost += in.Problem().Types[b.Type].Offerings[b.Offering].Price
		require.Contains(t, plan.Alternatives[i], binpack.Choice{Type: b.Type, Offering: b.Offering})
	}
	require.Equal(t, cost, plan.Cost)
	require.Equal(t, left, plan.Unplaced)
	return in, plan
}

func TestRandomProblemsAgainstTheDumbJudge(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	bought, refused, broken := 0, 0, 0
	for range rounds(t, 3_000, 100_000) {
		p := small(randomBytes(rng, 160))
		in, plan := lawful(t, p)
		require.NoError(t, dumbCheck(in.Problem(), plan.Layout), "the plan %+v of %+v", plan.Layout, p)
		bought += len(plan.Bins)
		for _, n := range plan.Unplaced {
			refused += n
		}
		for i, list := range plan.Alternatives {
			for _, c := range list {
				require.NoError(t, dumbChoice(in.Problem(), c.Type, c.Offering, plan.Bins[i].Shares), "alternative %v of bin %d of %+v", c, i, p)
				require.False(t, dumbSoldOut(in.Problem(), in.Problem().Types[c.Type].Offerings[c.Offering]), "alternative %v of bin %d of %+v is sold out", c, i, p)
			}
			labels := in.Labels(plan.Bins[i])
			require.False(t, labels.IsImpossible())
			for _, s := range plan.Bins[i].Shares {
				require.True(t, slices.ContainsFunc(nodesOf(labels), p.Items[s.Item].Requires.Matches), "%s is not on %s", p.Items[s.Item].Requires, labels)
			}
		}
		// Both judges agree on a distorted layout.
		for range 4 {
			l := distort(rng, in.Problem(), plan.Layout)
			want := dumbCheck(in.Problem(), l)
			require.Equal(t, want == nil, in.Check(l) == nil, "dumb: %v, check: %v\n%+v\n%+v", want, in.Check(l), l, p)
			if want != nil {
				broken++
			}
		}
	}
	require.Positive(t, bought)
	require.Positive(t, refused)
	require.Greater(t, broken, 500)
}

// distort changes one detail in a copy of the layout: an offering, a count, or a place.
func distort(rng *rand.Rand, p *binpack.Problem, l binpack.Layout) binpack.Layout {
	out := binpack.Layout{}
	for _, shares := range l.Nodes {
		out.Nodes = append(out.Nodes, slices.Clone(shares))
	}
	for _, b := range l.Bins {
		b.Shares = slices.Clone(b.Shares)
		out.Bins = append(out.Bins, b)
	}
	if len(p.Items) == 0 {
		return out
	}
	item := rng.IntN(len(p.Items))
	switch k := rng.IntN(5); {
	case k == 0 && len(out.Nodes) > 0:
		n := rng.IntN(len(out.Nodes))
		out.Nodes[n] = append(out.Nodes[n], binpack.Share{Item: item, Count: 1})
	case k == 1 && len(out.Bins) > 0:
		b := &out.Bins[rng.IntN(len(out.Bins))]
		b.Shares = append(b.Shares, binpack.Share{Item: item, Count: 1})
	case k == 2 && len(out.Bins) > 0:
		b := &out.Bins[rng.IntN(len(out.Bins))]
		b.Shares[rng.IntN(len(b.Shares))].Count += rng.IntN(3)
	default:
		t := rng.IntN(len(p.Types))
		if len(p.Types[t].Offerings) == 0 {
			return out
		}
		j := rng.IntN(len(p.Types[t].Offerings))
		if len(out.Bins) > 0 && k == 3 {
			b := &out.Bins[rng.IntN(len(out.Bins))]
			b.Type, b.Offering = t, j
			return out
		}
		out.Bins = append(out.Bins, binpack.Bin{Type: t, Offering: j, Shares: []binpack.Share{{Item: item, Count: 1}}})
	}
	return out
}
