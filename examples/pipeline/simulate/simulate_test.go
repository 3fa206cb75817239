package simulate_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/policy"
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

// No cluster is planned worse than by the reference's search, whatever its size, its constraints, its pool's budgets, the policy,
// and how many passes there are.
func TestNeverLessThanTheReference(t *testing.T) {
	count := uint64(20)
	if testing.Short() {
		count = 10
	}
	if os.Getenv("JOINERY_LONG") == "1" {
		count = 400
	}
	better, saved, theirs := 0, 0.0, 0.0
	for seed := range count {
		o := fragment.Options{Nodes: 5 + int(seed*7)%60, Seed: 900 + seed, Constrained: seed%2 == 0}
		if seed%20 == 9 {
			o.Nodes = 200
		}
		if seed%3 == 2 {
			o.Pool = strings.Replace(fragment.Pool, `"100%"`, fmt.Sprintf(`"%d"`, 1+seed%7), 1)
		}
		var opts deprovision.Options
		switch seed % 5 {
		case 1:
			opts.Policy = policy.Payback{}
		case 2:
			opts.MinSavings = 0.1
		case 3:
			opts.Passes = 1 + int(seed)%2
		}
		c, err := fragment.Generate(o)
		require.NoError(t, err)
		ours := plan(t, c, &opts)
		opts.Search = deprovision.SearchKarpenter
		reference := plan(t, c, &opts)
		assert.LessOrEqual(t, ours.PricePerHourAfter, reference.PricePerHourAfter+1e-9, "seed %d", seed)
		if ours.PricePerHourAfter < reference.PricePerHourAfter-1e-9 {
			better++
		}
		saved, theirs = saved+percent(ours), theirs+percent(reference)
	}
	t.Logf("%d clusters: %.2f%% saved on average, %.2f%% by the reference's search; better on %d", count, saved/float64(count), theirs/float64(count), better)
	assert.Positive(t, better)
}
