package pipeline_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/pipeline"
)

// A price that is no number keeps its offering from being bought, and nothing else.
func TestPricesThatAreNone(t *testing.T) {
	want, err := pipeline.Run(snapshot(t, deployments(20, 4, false)), nil, nil)
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
		got, err := pipeline.Run(s, nil, nil)
		require.NoError(t, err, "%v", price)
		require.Equal(t, want.Plan.Cost, got.Plan.Cost)
		require.Len(t, got.Result.Order, 20)
	}
	require.Equal(t, binpack.Price(math.MaxInt64), pipeline.Price(math.Inf(1)))
	require.Equal(t, binpack.Price(0), pipeline.Price(math.NaN()))
}
