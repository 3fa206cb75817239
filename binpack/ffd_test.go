package binpack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

func anywhere() requirements.Alternatives { return requirements.AnyOf(requirements.Set{}) }

func TestTwoSizes(t *testing.T) {
	p := binpack.Problem{
		Resources: []string{"cpu"},
		Items:     []binpack.Item{{Name: "a", Count: 10, Size: []int64{3}, Requires: anywhere()}},
		Pools:     []binpack.Pool{{Name: "p", MaxNodes: -1, MaxPrice: -1}},
		Types: []binpack.Type{
			{Name: "small", Capacity: []int64{4}, Offerings: []binpack.Offering{{Price: 4}}},
			{Name: "large", Capacity: []int64{9}, Offerings: []binpack.Offering{{Price: 8}}},
		},
	}
	in, err := binpack.Compile(p)
	require.NoError(t, err)
	plan, err := in.Pack(t.Context(), &binpack.Options{Strategy: binpack.FirstFitDecreasing{}})
	require.NoError(t, err)
	require.NoError(t, in.VerifyBound(plan))
	require.Equal(t, []int{0}, plan.Unplaced)
	require.Equal(t, binpack.Price(28), plan.Cost)
	require.Equal(t, binpack.Price(28), plan.Bound.Price, "80/3, and all prices are multiples of 4")
}
