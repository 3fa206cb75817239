package simulate_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
)

func plan(t testing.TB, c *fragment.Cluster, opts *deprovision.Options) deprovision.Result {
	t.Helper()
	sim, nominated, err := simulate.New(c.Snapshot)
	require.NoError(t, err)
	return deprovision.Plan(simulate.Cluster(c.Manifests, c.Snapshot, nominated, fragment.Now()), sim, opts)
}

func percent(r deprovision.Result) float64 { return 100 * (1 - r.PricePerHourAfter/r.PricePerHour) }

// The same cluster in whatever order it is read has the same plan.
func TestOrderDoesNotMatter(t *testing.T) {
	c, err := fragment.Generate(fragment.Options{Nodes: 20, Constrained: true})
	require.NoError(t, err)
	want := describe(plan(t, c, nil))
	require.NotEmpty(t, want)
	n, p := c.Snapshot.Nodes, c.Snapshot.Pods
	for i := range len(n) / 2 {
		n[i], n[len(n)-1-i] = n[len(n)-1-i], n[i]
	}
	for i := range len(p) / 2 {
		p[i], p[len(p)-1-i] = p[len(p)-1-i], p[i]
	}
	assert.Equal(t, want, describe(plan(t, c, nil)))
}

func describe(r deprovision.Result) []string {
	var out []string
	for _, c := range r.Commands {
		text := fmt.Sprintf("%s %s %.4f", c.Method, c.Kind, c.SavingsPerHour)
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

// The search for sets of any make-up is never worse than the reference's.
func TestNeverLessThanTheReference(t *testing.T) {
	for seed := range uint64(8) {
		c, err := fragment.Generate(fragment.Options{Nodes: 15 + int(seed)*5, Seed: seed, Constrained: seed%2 == 0})
		require.NoError(t, err)
		ours, theirs := plan(t, c, nil), plan(t, c, &deprovision.Options{Search: deprovision.SearchKarpenter})
		assert.LessOrEqual(t, ours.PricePerHourAfter, theirs.PricePerHourAfter+1e-9, "seed %d", seed)
		t.Logf("seed %d: %.1f%% with %d evictions, reference's search %.1f%% with %d", seed, percent(ours), ours.Evictions, percent(theirs), theirs.Evictions)
	}
}
