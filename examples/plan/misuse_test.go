package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// A nil context, packer or problem is named, and is no panic of the runtime.
func TestMisuseIsNamed(t *testing.T) {
	const noContext = "plan: scheduling: round 0: the context is nil; pass context.Background() for none"
	_, err := plan.Make(nil, scheduling.Snapshot{}, nil) //nolint:staticcheck // the context is nil on purpose
	require.EqualError(t, err, noContext)
	_, err = plan.Unproved(nil, scheduling.Snapshot{}, nil) //nolint:staticcheck // likewise
	require.EqualError(t, err, noContext)
	p, err := scheduling.Compile(scheduling.Snapshot{}, nil)
	require.NoError(t, err)
	_, err = plan.Solve(nil, p, nil) //nolint:staticcheck // likewise
	require.EqualError(t, err, noContext)
	_, err = plan.Solve(t.Context(), nil, nil)
	require.EqualError(t, err, "plan: the problem is nil; scheduling.Compile makes one")
	_, err = p.Solve(t.Context(), nil)
	require.EqualError(t, err, "scheduling: round 0: the packer is nil")
	made, err := plan.Make(t.Context(), scheduling.Snapshot{}, nil)
	require.NoError(t, err)
	_, err = made.MarginalCost(nil, "Deployment shop/web") //nolint:staticcheck // likewise
	require.EqualError(t, err, noContext)
}
