package binpack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// An omitted field requires nothing and limits nothing, and Misfit says why an item fits nowhere.
func TestZeroValues(t *testing.T) {
	p := binpack.Problem{
		Resources: []string{"cpu"},
		Items: []binpack.Item{
			{Name: "any", Count: 9, Size: []int64{1}},
			{Name: "large", Count: 1, Size: []int64{7}},
			{Name: "picky", Count: 1, Size: []int64{1}, Requires: requirements.AnyOf(requirements.MustParse("zone=b"))},
		},
		Types: []binpack.Type{{Name: "four", Capacity: []int64{4}, Provides: requirements.MustParse("zone=a"), Offerings: []binpack.Offering{{Price: 1}}}},
	}
	plan, err := binpack.Pack(t.Context(), p, nil)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 1}, plan.Unplaced)
	require.Len(t, plan.Bins, 3)
	require.Empty(t, p.Pools, "the problem stays as it is")
	require.Zero(t, p.Items[0].Requires.Len())

	in, err := binpack.Compile(p)
	require.NoError(t, err)
	require.Empty(t, in.Misfit(0))
	require.Equal(t, "nothing that has the labels is large enough: four lacks 3 of cpu", in.Misfit(1))
	require.Equal(t, "nothing has the labels that it requires: zone in (b)", in.Misfit(2))
	p.Nodes = []binpack.Node{{Name: "n", Free: []int64{8}}}
	in, err = binpack.Compile(p)
	require.NoError(t, err)
	require.Empty(t, in.Misfit(1))

	p.Items[0].Requires = requirements.AnyOf(requirements.Impossible()) // no alternative, unlike the zero value
	plan, err = binpack.Pack(t.Context(), p, nil)
	require.NoError(t, err)
	require.Equal(t, []int{9, 0, 1}, plan.Unplaced)
}
