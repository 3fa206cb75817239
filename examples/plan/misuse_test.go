package plan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/requirements"
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

// Numbers that cannot be meant are errors, and labels that nothing for sale has are named.
func TestSettingsWithoutMeaning(t *testing.T) {
	s := scheduling.Snapshot{Pools: []scheduling.Pool{limited(0, "a")}, Pods: job("web", 2, "1")}
	_, err := plan.Make(t.Context(), s, &plan.Options{Scheduling: &scheduling.Options{Attempts: -1}})
	require.ErrorContains(t, err, "Options.Attempts is -1, must not be negative")
	for match, note := range map[string]string{
		"topology.kubernetes.io/zoen=a":                      `factor 0 of the objective changes no price: nothing for sale has the label topology.kubernetes.io/zoen (did you mean "topology.kubernetes.io/zone"?)`,
		"topology.kubernetes.io/zone=a":                      "",
		"topology.kubernetes.io/zone=elsewhere":              "", // other catalogues may have it
		"!acme.example.org/licence":                          "",
		"acme.example.org/licence, kubernetes.io/arch=amd64": `factor 0 of the objective changes no price: nothing for sale has the label acme.example.org/licence`,
	} {
		p, err := plan.Make(t.Context(), s, &plan.Options{Objective: &plan.Objective{Factors: []plan.Factor{{Match: requirements.MustParse(match), Times: 2}}}})
		require.NoError(t, err)
		if note == "" {
			assert.Empty(t, p.Notes(), match)
			continue
		}
		assert.Equal(t, []string{note}, p.Notes(), match)
	}
}
