package binpack_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/binpack/frontier"
)

// Points keep all rules, place the same, and get dearer as their count falls. The first is no dearer than a fast plan.
func TestFrontier(t *testing.T) {
	rng := rand.New(rand.NewPCG(91, 92))
	several := 0
	for range rounds(t, 12, 200) {
		p := one([]string{"cpu", "memory"}, market(), randomItems(rng, 1+rng.IntN(150))...)
		in, err := binpack.Compile(p)
		require.NoError(t, err)
		fast, err := in.Pack(t.Context(), &binpack.Options{Effort: binpack.EffortFast})
		require.NoError(t, err)
		second := func(c binpack.Choice) int64 { return int64(c.Offering) } // counts bins of the second zone
		for _, counts := range []func(binpack.Choice) int64{nil, second} {
			points, err := frontier.Of(t.Context(), p, counts)
			require.NoError(t, err)
			require.NotEmpty(t, points)
			require.LessOrEqual(t, points[0].Objective, fast.Objective)
			for i, pt := range points {
				require.NoError(t, in.Check(pt.Layout))
				count := int64(len(pt.Bins))
				if counts != nil {
					count = 0
					for _, b := range pt.Bins {
						count += counts(binpack.Choice{Type: b.Type, Offering: b.Offering})
					}
				}
				require.Equal(t, count, pt.Count)
				if i > 0 {
					require.Greater(t, pt.Objective, points[i-1].Objective)
					require.Less(t, pt.Count, points[i-1].Count)
				}
			}
			if len(points) > 1 {
				several++
			}
		}
	}
	require.Positive(t, several)
}
