package simulate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
	"github.com/joinery-sdk/joinery/instancetypes"
)

// spotForSpot describes a command that breaks the rule for spot nodes; empty if there is none. A consolidation of spot nodes alone buys no spot node
// unless the options allow it, and then only one with enough types to choose from. Nodes that must go are exempt.
func spotForSpot(r *giveback.Result, o giveback.Options) string {
	for i := range r.Commands {
		c := &r.Commands[i]
		if c.Method != eligibility.Consolidation || slices.ContainsFunc(c.Nodes, func(n deprovision.Candidate) bool { return n.CapacityType != "spot" }) {
			continue
		}
		for _, n := range c.NewNodes {
			types := map[string]bool{n.InstanceType: true}
			for _, alt := range n.Alternatives {
				types[alt.InstanceType] = true
			}
			if n.CapacityType == "spot" && (!o.SpotToSpot || len(types) < o.SpotFlexibility) {
				return fmt.Sprintf("command %d of %d, for %s and %d more, buys %s %s, one of %d types", i, len(r.Commands), c.Nodes[0].Name, len(c.Nodes)-1, n.CapacityType, n.InstanceType, len(types))
			}
		}
	}
	return ""
}

// No spot node replaces spot nodes alone, not even by way of an on-demand node that the plan would buy first.
func TestSpotForSpotOnlyOnRequest(t *testing.T) {
	for _, options := range []giveback.Options{{SpotFlexibility: 3}, {SpotFlexibility: 3, SpotToSpot: true}} {
		options.Objective = policy.AnySaving()
		commands, bought, evictions, broken, after := 0, 0, 0, 0, deprovision.Price(0)
		count := func(name string, r *giveback.Result) {
			commands, evictions, after = commands+len(r.Commands), evictions+r.Evictions, after+r.PricePerHourAfter
			for i := range r.Commands {
				bought += len(r.Commands[i].NewNodes)
			}
			if why := spotForSpot(r, options); why != "" {
				if broken++; broken < 10 {
					t.Errorf("%s: %s", name, why)
				}
			}
		}
		for seed := range uint64(drawings(t) / 3) {
			d := draw(seed, seed%2 == 0)
			if seed%4 == 1 { // without budgets more goes at once
				for i := range d.s.Pools {
					d.s.Pools[i].Disruption.Budgets = nil
				}
			}
			if seed%3 == 0 {
				for i, minute := 0, time.Minute; i < len(d.s.Pools); i++ {
					d.s.Pools[i].Disruption.ConsolidateAfter = &minute
				}
			}
			sim, nominated, err := simulate.New(d.s)
			require.NoError(t, err)
			c := simulate.Objects{PodDisruptionBudgets: d.budgets}.Cluster(d.s, nominated, fragment.Now())
			c.Interruptions = d.interruptions
			r, err := giveback.Make(t.Context(), c, sim, &options)
			require.NoError(t, err)
			count(fmt.Sprintf("drawn %d", seed), &r)
		}
		t.Logf("drawn: spot to spot %t: %d plans break the rule; %d commands, %d purchases, %d evictions, %s afterwards", options.SpotToSpot, broken, commands, bought, evictions, after)
		commands, bought, evictions, broken, after = 0, 0, 0, 0, 0
		pool := strings.Replace(fragment.Pool, "[on-demand]", "[spot, on-demand]", 1)
		for seed := range uint64(max(6, drawings(t)/80)) {
			text := pool
			if seed%3 == 0 {
				text = strings.Replace(text, "consolidateAfter: 0s", "consolidateAfter: 1m", 1)
			}
			if seed%4 == 0 {
				text = strings.Replace(text, "100%", "25%", 1)
			}
			f, err := fragment.Generate(fragment.Options{Nodes: 4 + int(seed%7), Seed: seed, Pool: text, Constrained: seed%2 == 0})
			require.NoError(t, err)
			sim, nominated, err := simulate.New(f.Snapshot)
			require.NoError(t, err)
			r, err := giveback.Make(t.Context(), simulate.Cluster(f.Manifests, f.Snapshot, nominated, fragment.Now()), sim, &options)
			require.NoError(t, err)
			count(fmt.Sprintf("fragments %d", seed), &r)
		}
		t.Logf("fragments: spot to spot %t: %d plans break the rule; %d commands, %d purchases, %d evictions, %s afterwards", options.SpotToSpot, broken, commands, bought, evictions, after)
		assert.Greater(t, bought, 10)
	}
}

// A spot node is replaced by an on-demand node only where the pool allows no spot nodes: otherwise the next plan would replace that by a spot node.
// If the spot nodes are sold out, it stays, too, because they may be back soon.
func TestSpotIsOnlyDeleted(t *testing.T) {
	for _, c := range []struct {
		capacity string
		soldOut  bool
		want     string
		why      string
	}{
		{"[spot, on-demand]", false, "", "spot nodes are replaced by spot nodes only on request"},
		{"[spot, on-demand]", true, "", "on-demand nodes replace spot nodes only where the pool allows no spot nodes"},
		{"[on-demand]", false, "m6a.large on-demand", ""},
	} {
		x := tell(t, families("m6a"), "{key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}")
		x.node(t, "a", "m6a.2xlarge", "spot", 1, "1500m", "1Gi")
		pool := tell(t, families("m6a"), "{key: karpenter.sh/capacity-type, operator: In, values: "+c.capacity+"}")
		pool.s.Nodes, pool.s.Pods = x.s.Nodes, x.s.Pods
		for i := range pool.s.Pools[0].Types {
			of := &pool.s.Pools[0].Types[i]
			of.Offerings = slices.Clone(of.Offerings)
			for j := range of.Offerings {
				if c.soldOut && of.Offerings[j].CapacityType() == instancetypes.CapacityTypeSpot {
					of.Offerings[j].Available = false
				}
			}
		}
		r := pool.plan(t, giveback.Options{Methods: []eligibility.Method{eligibility.Emptiness, eligibility.Consolidation}})
		if c.want == "" {
			require.Empty(t, r.Commands)
			assert.Contains(t, r.Verdicts[0].Detail, c.why)
			continue
		}
		require.Len(t, r.Commands, 1)
		require.Len(t, r.Commands[0].NewNodes, 1)
		assert.Equal(t, c.want, r.Commands[0].NewNodes[0].InstanceType+" "+r.Commands[0].NewNodes[0].CapacityType)
	}
}
