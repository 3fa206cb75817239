package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// replaced describes a purchase of a plan that the plan made right after it would replace; it is empty if there is none. It counts the purchases.
func replaced(t *testing.T, m *manifests.Snapshot, s scheduling.Snapshot, o giveback.Options, bought *int) string {
	t.Helper()
	from := map[string]string{}
	for again := range 2 {
		sim, nominated, err := simulate.New(s)
		require.NoError(t, err)
		r, err := giveback.Make(t.Context(), simulate.Cluster(m, s, nominated, fragment.Now()), sim, &o)
		require.NoError(t, err)
		for i := range r.Commands {
			c := &r.Commands[i]
			for _, n := range c.Nodes {
				if what, ok := from[n.Name]; ok && again == 1 && c.Method == eligibility.Consolidation && len(c.NewNodes) > 0 {
					return fmt.Sprintf("%s, bought for %s, is replaced by %s %s", n.Name, what, c.NewNodes[0].CapacityType, c.NewNodes[0].InstanceType)
				}
			}
			for _, n := range c.NewNodes {
				from[n.Name] = fmt.Sprintf("%s %s as %s %s", c.Nodes[0].CapacityType, c.Nodes[0].InstanceType, n.CapacityType, n.InstanceType)
				*bought++
			}
			s, err = simulate.Apply(s, c, fragment.Now())
			require.NoError(t, err)
		}
	}
	return ""
}

// A plan made right after another one was carried out replaces no node that the other one bought, whatever the capacity types.
func TestPurchasesLast(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 20
	}
	capacity := "{key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}"
	bought := 0
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 73))
		x := tell(t, families("m5, c5, r5"), capacity)
		nodes := 1 + r.IntN(6)
		for i := range nodes {
			x.node(t, fmt.Sprintf("n%d", i), one(r, "m5.large", "m5.xlarge", "m5.2xlarge"), one(r, "spot", "spot", "on-demand"), 1+r.IntN(3), one(r, "250m", "500m"), one(r, "512Mi", "1Gi"))
		}
		if r.IntN(2) == 0 {
			x.s.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: 1 + r.IntN(nodes)}}
		}
		for policy, o := range policies() {
			if why := replaced(t, x.m, x.s, giveback.Options{Objective: o}, &bought); why != "" {
				t.Errorf("%d, %s: %s", seed, policy, why)
			}
		}
	}
	for seed := range uint64(seeds / 2) {
		o := fragment.Options{Nodes: 3 + int(seed%8), Seed: 7500 + seed, Constrained: seed%2 == 1}
		o.Pool = strings.Replace(fragment.Pool, "[on-demand]", "[spot, on-demand]", 1)
		c, err := fragment.Generate(o)
		require.NoError(t, err)
		if why := replaced(t, c.Manifests, c.Snapshot, giveback.Options{}, &bought); why != "" {
			t.Errorf("fragments %d: %s", seed, why)
		}
	}
	require.Positive(t, bought)
}
