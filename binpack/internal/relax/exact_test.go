package relax_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// The search packs a set of bins if and only if it can be packed, so with enough steps it ends at the optimum.
func TestSearchEndsAtTheOptimum(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	each(t, 11, func(m *relax.Model, best float64) {
		begin := func() *relax.Search {
			whole := make([]int64, len(m.Classes))
			for i, v := range duals(rng, len(whole)) {
				whole[i] = int64(v)
			}
			return relax.NewSearch(m, whole, plenty())
		}
		limit := best + 1
		if math.IsInf(best, 1) {
			limit = 200
		}
		s := begin()
		require.LessOrEqual(t, s.RootBound(), best)
		least, found := s.Run(limit, plenty())
		if math.IsInf(best, 1) {
			require.Equal(t, limit, least)
			return
		}
		require.Equal(t, best, least)
		require.Equal(t, best, lawful(t, m, found))
		require.Equal(t, best, begin().Refute(best, plenty()), "nothing is cheaper")
		require.Equal(t, best, begin().Refute(best+5, plenty()), "what can be packed is not refuted")
		for range 3 {
			part := &relax.Budget{Left: 1 + rng.IntN(3000)}
			least, found = begin().Run(best+1, part)
			require.LessOrEqual(t, least, best, "what has not been looked at is not proved")
			if found != nil {
				require.GreaterOrEqual(t, lawful(t, m, found), best)
			}
			require.LessOrEqual(t, begin().Refute(best+5, &relax.Budget{Left: 1 + rng.IntN(3000)}), best)
		}
	})
}
