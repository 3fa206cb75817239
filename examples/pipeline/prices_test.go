package pipeline_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// A price that is no number is a fault of the catalogue for Make. For those who compile and solve themselves it keeps its offering from
// being bought, and nothing else.
func TestPricesThatAreNone(t *testing.T) {
	want, err := plan.Make(t.Context(), snapshot(t, deployments(20, 4, false)), nil)
	require.NoError(t, err)
	for _, price := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1} {
		s := snapshot(t, deployments(20, 4, false))
		for i := range s.Pools {
			broken := s.Pools[i].Types[0]
			broken.Name = "broken"
			broken.Offerings = append(broken.Offerings[:0:0], broken.Offerings...)
			for j := range broken.Offerings {
				broken.Offerings[j].Price = price
			}
			s.Pools[i].Types = append(slices.Clip(s.Pools[i].Types), broken)
		}
		_, err := plan.Make(t.Context(), s, nil)
		require.ErrorContains(t, err, "offerings[0].price (broken)", "%v", price)
		p, err := scheduling.Compile(s, nil)
		require.NoError(t, err, "%v", price)
		got, err := plan.Solve(t.Context(), p, nil)
		require.NoError(t, err, "%v", price)
		require.Equal(t, want.Packing.Cost, got.Packing.Cost)
		require.Len(t, got.Bindings(), 20)
	}
	require.Equal(t, binpack.Price(math.MaxInt64), plan.Price(math.Inf(1)))
	require.Equal(t, binpack.Price(0), plan.Price(math.NaN()))
}
