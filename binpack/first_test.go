package binpack_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
)

// Passing a draft on saves its packing and changes nothing. Plans of other strategies are ignored.
func TestADraftIsTakenUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for range rounds(t, 12, 12) {
		in, err := binpack.Compile(shop(rng, 1+rng.IntN(6)))
		require.NoError(t, err)
		draft, err := in.Pack(t.Context(), &binpack.Options{Strategy: binpack.FirstFitDecreasing{}, Draft: true})
		require.NoError(t, err)
		for _, effort := range []binpack.Effort{binpack.EffortFast, binpack.EffortDefault} {
			want, err := in.Pack(t.Context(), &binpack.Options{Effort: effort})
			require.NoError(t, err)
			got, err := in.Pack(t.Context(), &binpack.Options{Effort: effort, First: draft})
			require.NoError(t, err)
			require.Equal(t, want, got)
			got, err = in.Pack(t.Context(), &binpack.Options{Effort: effort, First: &binpack.Plan{Strategy: "mine"}})
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
}

// A plan that is proved later is the one that is proved at once, by first fit, by cost, with one pool and with several of different weights. A
// layout that breaks a rule is not proved.
func TestProvedLater(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 36))
	for range rounds(t, 12, 12) {
		p := shop(rng, 1+rng.IntN(6))
		if rng.IntN(2) == 0 {
			p = small(randomBytes(rng, 200))
		}
		in, err := binpack.Compile(p)
		require.NoError(t, err)
		for _, by := range []binpack.Strategy{nil, binpack.FirstFitDecreasing{}} {
			o := binpack.Options{Strategy: by, Effort: binpack.EffortFast, Alternatives: 1 + rng.IntN(60)}
			want, err := in.Pack(t.Context(), &o)
			require.NoError(t, err)
			o.ProveLater = true
			first, err := in.Pack(t.Context(), &o)
			require.NoError(t, err)
			require.Equal(t, want.Layout, first.Layout)
			require.Zero(t, first.Bound.Price)
			got, err := in.Prove(t.Context(), first, &o)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.NoError(t, in.VerifyBound(got))
			for i := range first.Bins {
				if broken := *first; len(first.Bins[i].Shares) > 0 {
					broken.Bins = slices.Clone(first.Bins)
					broken.Bins[i].Shares = []binpack.Share{{Item: first.Bins[i].Shares[0].Item, Count: 1 << 40}}
					_, err := in.Prove(t.Context(), &broken, &o)
					require.Error(t, err)
				}
			}
			_, err = in.Prove(t.Context(), first, &binpack.Options{Alternatives: -1})
			require.ErrorContains(t, err, "Alternatives")
		}
	}
}

// A shorter list of alternatives is a prefix of a longer one, cheapest first.
func TestAlternativesComeInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 34))
	longer := 0
	for range 200 {
		p := small(randomBytes(rng, 200))
		for i := range p.Pools {
			p.Pools[i].MinValues = nil
		}
		in, err := binpack.Compile(p)
		require.NoError(t, err)
		objective := func(c binpack.Choice) binpack.Price {
			o := in.Problem().Types[c.Type].Offerings[c.Offering]
			return cmp.Or(o.Objective, o.Price)
		}
		for _, by := range []binpack.Strategy{nil, wasteful{}} {
			all, err := in.Pack(t.Context(), &binpack.Options{Strategy: by, Effort: binpack.EffortFast, Alternatives: 1000})
			require.NoError(t, err)
			few, err := in.Pack(t.Context(), &binpack.Options{Strategy: by, Effort: binpack.EffortFast, Alternatives: 3})
			require.NoError(t, err)
			require.Equal(t, all.Bins, few.Bins)
			for i, list := range all.Alternatives {
				own := binpack.Choice{Type: all.Bins[i].Type, Offering: all.Bins[i].Offering}
				require.Contains(t, list, own)
				require.True(t, slices.IsSortedFunc(list, func(a, b binpack.Choice) int { return cmp.Compare(objective(a), objective(b)) }), list)
				for _, c := range list { // each can be bought instead
					l := all.Layout
					l.Bins = slices.Clone(l.Bins)
					l.Bins[i].Type, l.Bins[i].Offering = c.Type, c.Offering
					require.NoError(t, in.Check(l), "%v for bin %d of %+v: %+v", c, i, l, p)
				}
				want := list[:min(3, len(list))]
				if !slices.Contains(want, own) {
					want = append(slices.Clone(want[:2]), own)
				}
				require.Equal(t, want, few.Alternatives[i])
				if len(list) > 3 {
					longer++
				}
			}
		}
	}
	require.Positive(t, longer)
}

// last buys a bin of the last type for each copy.
type last struct{}

func (last) Name() string { return "last" }

func (last) Pack(_ context.Context, in *binpack.Instance) (l binpack.Layout, err error) {
	for i, it := range in.Problem().Items {
		for range it.Count {
			l.Bins = append(l.Bins, binpack.Bin{Type: len(in.Problem().Types) - 1, Shares: []binpack.Share{{Item: i, Count: 1}}})
		}
	}
	return l, nil
}

// The chosen one of many choices is listed, in its place, within the limit.
func TestAlternativesWithADearChoice(t *testing.T) {
	for _, n := range []int{1, 4, 5, 6, 80} {
		p := one([]string{"cpu"}, nil, item("x", 2, 10))
		for i := range n {
			p.Types = append(p.Types, typ(fmt.Sprintf("t%02d", i), binpack.Price(10+i), 10))
		}
		_, plan := lawfulBy(t, p, &binpack.Options{Strategy: last{}, Alternatives: 5})
		require.Len(t, plan.Alternatives[0], min(n, 5))
		require.Equal(t, binpack.Choice{Type: n - 1}, plan.Alternatives[0][min(n, 5)-1])
	}
}

// Fast is never dearer than first fit, and often cheaper.
func TestFastIsOftenCheaper(t *testing.T) {
	if testing.Short() {
		t.Skip("plans many problems")
	}
	rng := rand.New(rand.NewPCG(35, 36))
	for _, c := range []struct{ classes, copies int }{{60, 2000}, {8, 150}, {8, 5000}} {
		cheaper := 0
		for range 4 {
			p := shop(rng, c.classes)
			p.Nodes = nil
			for i := range p.Items {
				p.Items[i].Count = c.copies / c.classes
			}
			in, err := binpack.Compile(p)
			require.NoError(t, err)
			first, err := in.Pack(t.Context(), &binpack.Options{Strategy: binpack.FirstFitDecreasing{}})
			require.NoError(t, err)
			fast, err := in.Pack(t.Context(), &binpack.Options{Effort: binpack.EffortFast})
			require.NoError(t, err)
			require.Equal(t, first.Unplaced, fast.Unplaced)
			require.LessOrEqual(t, fast.Cost, first.Cost)
			if fast.Cost < first.Cost {
				cheaper++
			}
		}
		require.Positive(t, cheaper, c)
	}
}
