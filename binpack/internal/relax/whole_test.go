package relax_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// Nine items need a GPU, of which a bin has eight. Fractions of bins would cost 9/8 of one, whole ones cost two.
func TestProofsBuyWholeBinsForCaptives(t *testing.T) {
	all := []uint64{3}
	m := &relax.Model{
		Dims:     2,
		BinTypes: []relax.BinType{{Capacity: []int64{16, 0}, Price: 1e6, Supply: -1}, {Capacity: []int64{96, 8}, Price: 40e6, Supply: -1}},
		Classes:  []relax.Class{{Size: []int64{1, 0}, Count: 5000, Most: math.MaxInt32, BinTypes: all}, {Size: []int64{4, 1}, Count: 9, Most: math.MaxInt32, BinTypes: all}},
	}
	s := m.Solve(relax.Task{}, plenty())
	// Beside the nine, two bins hold 156 of the other items. The rest fills 302.75 of the small bins.
	require.Greater(t, s.Proof.Price, int64(382.7e6))
	price, err := m.Verify(s.Proof.Duals, s.Proof.Searched, new(relax.Watch))
	require.NoError(t, err)
	require.Equal(t, s.Proof.Price, price)
}

// Duals for whole bins prove more in some models, and never too much. They need a budget.
func TestWholeBinsAreNeverAboveTheOptimum(t *testing.T) {
	more := 0
	each(t, 47, func(m *relax.Model, best float64) {
		m, best = scaled(m), best*1e6
		s := relax.NewMaster(m)
		s.Price(coverage(m), plenty())
		s.Generate(400, plenty())
		proof, _ := m.Prove(s.Duals(), plenty())
		given := make([]float64, len(proof.Duals))
		for i, v := range proof.Duals {
			given[i] = float64(v)
		}
		up := m.ForWholeBins(given, plenty())
		if up == nil {
			return
		}
		price, err := m.Verify(whole(up), proof.Searched, new(relax.Watch))
		require.NoError(t, err)
		require.LessOrEqual(t, float64(price), best, "%+v", m)
		if float64(price) > float64(proof.Price)*1.01 {
			more++
		}
		require.Nil(t, m.ForWholeBins(given, &relax.Budget{}))
	})
	require.Greater(t, more, trials/40)
}

// A bound for classes that can go nowhere is above every price.
func TestNowhereIsAboveEveryPrice(t *testing.T) {
	m := &relax.Model{
		Dims:     1,
		BinTypes: []relax.BinType{{Capacity: []int64{4}, Price: 1e6, Supply: -1}},
		Classes:  []relax.Class{{Size: []int64{1}, Count: 1, Most: math.MaxInt32, BinTypes: []uint64{0}}},
	}
	price, err := m.Verify([]int64{0}, false, new(relax.Watch))
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt64, price)
}

func whole(duals []float64) []int64 {
	out := make([]int64, len(duals))
	for i, v := range duals {
		out[i] = int64(v * (1 - 1e-9))
	}
	return out
}
