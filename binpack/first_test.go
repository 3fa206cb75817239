package binpack_test

import (
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

// A shorter list of alternatives is a prefix of a longer one, cheapest first.
func TestAlternativesComeInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 34))
	longer := 0
	for range 60 {
		p := small(randomBytes(rng, 160))
		for i := range p.Pools {
			p.Pools[i].MinValues = nil
		}
		in, err := binpack.Compile(p)
		require.NoError(t, err)
		all, err := in.Pack(t.Context(), &binpack.Options{Effort: binpack.EffortFast, Alternatives: 1000})
		require.NoError(t, err)
		few, err := in.Pack(t.Context(), &binpack.Options{Effort: binpack.EffortFast, Alternatives: 3})
		require.NoError(t, err)
		require.Equal(t, all.Bins, few.Bins)
		price := func(c binpack.Choice) binpack.Price { return in.Problem().Types[c.Type].Offerings[c.Offering].Price }
		for i, list := range all.Alternatives {
			if cap := min(3, len(list)); slices.Contains(list[:cap], binpack.Choice{Type: all.Bins[i].Type, Offering: all.Bins[i].Offering}) {
				require.Equal(t, list[:cap], few.Alternatives[i])
			}
			if len(list) > 1 && list[0] == (binpack.Choice{Type: all.Bins[i].Type, Offering: all.Bins[i].Offering}) {
				list = list[1:] // a chosen reservation that is used up leads the list
			}
			require.True(t, slices.IsSortedFunc(list, func(a, b binpack.Choice) int { return int(price(a) - price(b)) }), list)
			if len(list) > 3 {
				longer++
			}
		}
	}
	require.Positive(t, longer)
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
