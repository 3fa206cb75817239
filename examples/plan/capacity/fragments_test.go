package capacity_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/capacity"
)

// What is free on a thousand nodes in pieces that hold none of the pods is no room, and takes nothing off the bound of a plan.
func TestFragmentsTakeNothingOffTheBound(t *testing.T) {
	state, _, large := thousand(t)
	for i := 0; ; i++ {
		a, err := state.Ask(t.Context(), some(large[len(large)-1], 1, 1000+i))
		require.NoError(t, err)
		if a.Kind == capacity.Buy {
			break
		}
		state, err = a.Commit()
		require.NoError(t, err)
	}
	whole := state.Snapshot()
	whole.Pods = slices.Concat(whole.Pods, some(large[3], 2, 7))
	p, err := plan.Make(t.Context(), whole, nil)
	require.NoError(t, err)
	require.Len(t, p.NewNodes(), 2)
	assert.InDelta(t, p.Totals().PricePerHour, p.Totals().LowerBoundPerHour, 0.05*p.Totals().PricePerHour)
	require.NoError(t, p.Bound.Verify())
}
