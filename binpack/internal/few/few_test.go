package few_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack/internal/brute"
	"github.com/joinery-sdk/joinery/binpack/internal/few"
	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

func TestExchangesAreLawful(t *testing.T) {
	optimal := 0
	brute.Each(t, 9, func(m *relax.Model, best float64) {
		columns := m.Greedy(brute.Plenty())
		require.GreaterOrEqual(t, brute.Lawful(t, m, few.Tighten(m, columns, best, 500, brute.Plenty())), best)
		if brute.Lawful(t, m, few.Exchange(m, columns, best, 300, brute.Plenty())) <= best {
			optimal++
		}
	})
	require.Greater(t, optimal, brute.Trials*8/10, "exchanges find the optimum of most tiny problems")
}

// The search through sets of bins packs one if and only if it can be packed, so with enough steps it ends at the optimum.
func TestSearchEndsAtTheOptimum(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	brute.Each(t, 11, func(m *relax.Model, best float64) {
		s := few.NewSearch(m, brute.Values(rng, len(m.Classes)), 1000, brute.Plenty())
		require.LessOrEqual(t, s.Root(), best)
		require.Equal(t, best, s.Below(best+1, false))
		require.Equal(t, best, brute.Lawful(t, m, s.Found))
		require.Equal(t, best, s.Cost)

		s = few.NewSearch(m, brute.Values(rng, len(m.Classes)), 1000, brute.Plenty())
		require.Equal(t, best, s.Below(best, true), "nothing is cheaper")
		require.Equal(t, best, s.Below(best+5, true), "what can be packed is not refuted")

		s = few.NewSearch(m, brute.Values(rng, len(m.Classes)), 1000, &relax.Budget{Left: 1 + rng.IntN(3000)})
		require.LessOrEqual(t, s.Below(best+1, false), best, "what has not been looked at is not proved")
	})
}

func TestShortestPathIsTheOptimum(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	longer := 0
	brute.Each(t, 13, func(m *relax.Model, best float64) {
		m, best = brute.Scaled(m), best*1e6
		s := relax.NewMaster(m)
		b := brute.Plenty()
		s.Price(m.Coverage(), b)
		s.Generate(400, b)
		proof, _ := m.Prove(s.Values(), 10_000, b)
		if float64(proof.Price) < best*(1-1e-6) {
			longer++
		}
		low, found := few.NewResidual(m, proof.Value, brute.Plenty()).Below(int64(best) + 1)
		require.EqualValues(t, best, low)
		require.Equal(t, best, brute.Lawful(t, m, found))
		low, found = few.NewResidual(m, proof.Value, brute.Plenty()).Below(int64(best))
		require.EqualValues(t, best, low)
		require.Empty(t, found)
		low, _ = few.NewResidual(m, proof.Value, &relax.Budget{Left: 1 + rng.IntN(300)}).Below(int64(best) + 1)
		require.LessOrEqual(t, float64(low), best)

		require.EqualValues(t, best, few.Refuted(m, proof.Value, int64(best), 100_000_000))
		require.LessOrEqual(t, float64(few.Refuted(m, proof.Value, int64(best*1.1)+1, 100_000_000)), best, "no claim above the optimum stands")
	})
	require.Greater(t, longer, brute.Trials/20)
}

func TestManyRestsAreLeftAlone(t *testing.T) {
	m := &relax.Model{Dims: 1, Kinds: []relax.Kind{{Capacity: []int64{100}, Price: 10, Supply: -1}}}
	for i := range 30 {
		m.Classes = append(m.Classes, relax.Class{Size: []int64{int64(i + 1)}, Count: 1, Most: 1, Kinds: []uint64{1}})
	}
	require.Nil(t, few.NewResidual(m, make([]int64, 30), brute.Plenty()))
}
