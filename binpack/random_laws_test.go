package binpack_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
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
	bought, refused, broken, together, strict := 0, 0, 0, 0, 0
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
			want, got := dumbCheck(in.Problem(), l), in.Check(l)
			if want == nil && got != nil && strings.Contains(got.Error(), "what MinValues need at once") {
				strict++ // with several limits it does not try all ways
				continue
			}
			require.Equal(t, want == nil, got == nil, "dumb: %v, check: %v\n%+v\n%+v", want, got, l, p)
			if errors.Is(want, errDumbTogether) {
				together++
			}
			if want != nil {
				broken++
			}
		}
	}
	require.Positive(t, bought)
	require.Positive(t, refused)
	require.Greater(t, broken, 500)
	t.Logf("limits forbid what minValues need in %d distorted layouts, and in %d more where not all ways were tried", together, strict)
	require.LessOrEqual(t, strict, together)
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

// joins returns how often two bins of the plan can be replaced by one that costs no more.
func joins(in *binpack.Instance, p *binpack.Problem, plan *binpack.Plan) (n int) {
	cost := func(b binpack.Bin) binpack.Price { return p.Types[b.Type].Offerings[b.Offering].Price }
	for i := range plan.Bins {
		for j := range i {
			one := func() bool {
				for t := range p.Types {
					for o := range p.Types[t].Offerings {
						b := binpack.Bin{Type: t, Offering: o, Shares: slices.Concat(plan.Bins[i].Shares, plan.Bins[j].Shares)}
						if p.Pools[p.Types[t].Pool].Weight != p.Pools[p.Types[plan.Bins[i].Type].Pool].Weight || cost(b) > cost(plan.Bins[i])+cost(plan.Bins[j]) {
							continue
						}
						l := binpack.Layout{Nodes: plan.Nodes, Bins: append(slices.Clone(plan.Bins), b)}
						l.Bins = slices.Delete(slices.Delete(l.Bins, i, i+1), j, j+1)
						if in.Check(l) == nil {
							return true
						}
					}
				}
				return false
			}
			if one() {
				n++
			}
		}
	}
	return n
}

// families draws pools of types whose prices are proportional to their sizes, as those of a cloud.
func families(r *rand.Rand) binpack.Problem {
	p := binpack.Problem{Resources: []string{"cpu", "memory"}}
	for i := range 1 + r.IntN(2) {
		p.Pools = append(p.Pools, binpack.Pool{Name: fmt.Sprintf("pool-%d", i)})
		per := binpack.Price(5 + r.IntN(6))
		for size := int64(1); size <= 16; size *= 2 {
			t := binpack.Type{Name: fmt.Sprintf("t%d-%d", i, size), Pool: i, Capacity: []int64{8*size - 1, 16*size - 1}}
			for _, zone := range []string{"z1", "z2"} {
				t.Offerings = append(t.Offerings, binpack.Offering{Price: per * binpack.Price(size), Provides: requirements.MustOf(requirements.In("zone", zone))})
			}
			p.Types = append(p.Types, t)
		}
	}
	for i := range 1 + r.IntN(8) {
		it := binpack.Item{Name: fmt.Sprintf("i%d", i), Count: 1 + r.IntN(12), Size: []int64{int64(1 + r.IntN(12)), int64(1 + r.IntN(24))}}
		if r.IntN(3) == 0 {
			it.Requires = requirements.AnyOf(requirements.MustOf(requirements.In("zone", "z1", "z2")))
		}
		if r.IntN(4) == 0 {
			it.Tags, it.Limits = []string{it.Name}, []binpack.Limit{{Tag: it.Name, Max: 1 + r.IntN(3)}}
		}
		p.Items = append(p.Items, it)
	}
	return p
}

// Of equally cheap plans one with few bins is chosen: hardly any two bins can be joined to one that costs no more. First fit does not look for that.
func TestEquallyCheapPlansHaveFewBins(t *testing.T) {
	count := rounds(t, 300, 5000)
	several, first, joined, bins := 0, 0, 0, [2]int{}
	for seed := range uint64(count) {
		p := families(rand.New(rand.NewPCG(seed, 41)))
		in, plan := lawfulBy(t, p, nil)
		_, ffd := lawful(t, p)
		bins[0], bins[1] = bins[0]+len(ffd.Bins), bins[1]+len(plan.Bins)
		if len(ffd.Bins) > 1 {
			several, first, joined = several+1, first+min(1, joins(in, &p, ffd)), joined+min(1, joins(in, &p, plan))
		}
	}
	t.Logf("%d problems with several bins: bins can be joined in %d plans of first fit (%d bins), and in %d default plans (%d bins)", several, first, bins[0], joined, bins[1])
	require.Greater(t, first, several/10)
	require.Less(t, joined, several/50)
}

// limited draws equal items, a pool whose limit of cores is too low for all of them, and a dearer pool without a limit. It returns the least cost, by
// dynamic programming over cores and items. If the limited pool has the greater weight, it holds as many items as it can.
func limited(r *rand.Rand) (binpack.Problem, binpack.Price) {
	size, count := 1+r.IntN(9), 10+r.IntN(40)
	p := binpack.Problem{Resources: []string{"cpu"}, Items: []binpack.Item{{Name: "item", Count: count, Size: []int64{int64(size)}}}}
	limit := size * count / (2 + r.IntN(3))
	p.Pools = []binpack.Pool{{Name: "spot", Weight: r.IntN(2), Limits: []int64{int64(limit)}}, {Name: "on-demand"}}
	holds, prices := []int{}, [2][]int{}
	for k, cores := range []int{size + r.IntN(size), 2*size + r.IntN(2*size), 4*size + r.IntN(4*size)} {
		price := 20*cores + r.IntN(12*cores)
		holds, prices[0], prices[1] = append(holds, cores/size), append(prices[0], price), append(prices[1], price*2+r.IntN(cores))
		for pool := range p.Pools {
			t := binpack.Type{Name: fmt.Sprint(k), Pool: pool, Capacity: []int64{int64(cores)}, Offerings: []binpack.Offering{{Price: binpack.Price(prices[pool][k])}}}
			if pool == 0 {
				t.Usage = []int64{int64(cores)}
			}
			p.Types = append(p.Types, t)
		}
	}
	const never = 1 << 40
	bought := make([]int, count+1)   // the cost of bins of the pool without a limit that hold n items
	within := make([][]int, limit+1) // the same for the limited pool, by cores of the limit
	for cores := range within {
		within[cores] = make([]int, count+1)
	}
	for n := 1; n <= count; n++ {
		bought[n] = never
		for k, h := range holds {
			bought[n] = min(bought[n], bought[max(0, n-h)]+prices[1][k])
		}
		for cores := range within {
			within[cores][n] = never
			for k, h := range holds {
				if used := int(p.Types[2*k].Usage[0]); used <= cores {
					within[cores][n] = min(within[cores][n], within[cores-used][max(0, n-h)]+prices[0][k])
				}
			}
		}
	}
	least := never
	for n := count; n >= 0; n-- {
		if within[limit][n] < never {
			if least = min(least, within[limit][n]+bought[count-n]); p.Pools[0].Weight > 0 {
				break
			}
		}
	}
	return p, binpack.Price(least)
}

// A limit that binds is used well: bins that are cheap for their contents leave room to those that use the limit better. A weight is no reason to place
// fewer items, or to pay more in the mean than a plan that fills the heavier pool first.
func TestLimitsAreUsedWell(t *testing.T) {
	gaps, most := [2][]float64{}, 0.0
	for seed := range uint64(rounds(t, 200, 3000)) {
		p, least := limited(rand.New(rand.NewPCG(seed, 43)))
		_, plan := lawfulBy(t, p, nil)
		require.Equal(t, []int{0}, plan.Unplaced)
		weight, gap := p.Pools[0].Weight, float64(plan.Objective)/float64(least)-1
		if weight == 0 {
			require.GreaterOrEqual(t, plan.Objective, least, "seed %d", seed)
		}
		gaps[weight], most = append(gaps[weight], gap), max(most, gap)
	}
	for weight, of := range gaps {
		mean := 0.0
		for _, gap := range of {
			mean += gap / float64(len(of))
		}
		t.Logf("%d problems with weight %d: %.3f%% above the least cost in the mean; all: %.2f%% at most", len(of), weight, 100*mean, 100*most)
		require.Less(t, mean, 0.001)
	}
}
