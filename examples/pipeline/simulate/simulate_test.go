package simulate_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/deprovision"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
)

func answer(t testing.TB, c *fragment.Cluster) giveback.Result {
	t.Helper()
	sim, nominated, err := simulate.New(c.Snapshot)
	require.NoError(t, err)
	r, err := giveback.Make(t.Context(), simulate.Cluster(c.Manifests, c.Snapshot, nominated, fragment.Now()), sim, nil)
	require.NoError(t, err)
	return r
}

// planned is the plan with the defaults.
func planned(t testing.TB, c deprovision.Cluster, sim giveback.Simulator) giveback.Result {
	t.Helper()
	r, err := giveback.Make(t.Context(), c, sim, nil)
	require.NoError(t, err)
	return r
}

func percent(r giveback.Result) float64 {
	return 100 * (1 - r.PricePerHourAfter.Dollars()/r.PricePerHour.Dollars())
}

// The same cluster in whatever order it is read has the same plan.
func TestOrderDoesNotMatter(t *testing.T) {
	c, err := fragment.Generate(fragment.Options{Nodes: 20, Constrained: true})
	require.NoError(t, err)
	want := describe(answer(t, c))
	require.NotEmpty(t, want)
	n, p := c.Snapshot.Nodes, c.Snapshot.Pods
	for i := range len(n) / 2 {
		n[i], n[len(n)-1-i] = n[len(n)-1-i], n[i]
	}
	for i := range len(p) / 2 {
		p[i], p[len(p)-1-i] = p[len(p)-1-i], p[i]
	}
	assert.Equal(t, want, describe(answer(t, c)))
}

func describe(r giveback.Result) []string {
	var out []string
	for _, c := range r.Commands {
		text := fmt.Sprintf("%s %s %.4f", c.Method, c.Kind, c.SavingsPerHour.Dollars())
		for _, n := range c.Nodes {
			text += " " + n.Name
		}
		for _, p := range c.Placements {
			text += " " + p.Pod.Name + ">" + p.Node
		}
		out = append(out, text)
	}
	return out
}
