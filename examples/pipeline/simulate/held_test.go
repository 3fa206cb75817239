package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// dearer describes how a plan saves less than deletions of some of its own nodes. From some command on, each node that the plan gives back is
// deleted instead if its pods fit on nodes that stay. It is empty if no such exchange saves more. Commands with waves take longer, so they are left out.
func dearer(t *testing.T, s scheduling.Snapshot, r *giveback.Result) string {
	t.Helper()
	leaves, all := []string(nil), deprovision.Price(0)
	for i := range r.Commands {
		if len(r.Commands[i].Waves) > 0 {
			return ""
		}
		for _, n := range r.Commands[i].Nodes {
			leaves = append(leaves, n.Name)
		}
		all += r.Commands[i].SavingsPerHour
	}
	before := deprovision.Price(0)
	for i := range r.Commands {
		c := &r.Commands[i]
		if c.Method == eligibility.Consolidation && len(c.NewNodes) > 0 {
			first, _, err := simulate.New(s)
			require.NoError(t, err)
			sim, saves, deleted := giveback.Simulator(first), before, []string(nil)
			for _, later := range r.Commands[i:] {
				for _, n := range later.Nodes {
					stays := slices.DeleteFunc(slices.Clone(leaves), func(name string) bool { return name == n.Name })
					a, err := sim.Simulate(t.Context(), giveback.Question{Remove: []string{n.Name}, Pods: n.Pods, Cordon: stays})
					require.NoError(t, err)
					if a.OK() && later.Method == eligibility.Consolidation {
						sim, saves, deleted = a.After(), saves+n.PricePerHour, append(deleted, n.Name)
					}
				}
			}
			if saves > all {
				return fmt.Sprintf("%d commands save $%.4f; with deletions of %s from command %d on it would be $%.4f", len(r.Commands), all.Dollars(), strings.Join(deleted, ", "), i, saves.Dollars())
			}
		}
		before += c.SavingsPerHour
		var err error
		s, err = simulate.Apply(s, c, fragment.Now())
		require.NoError(t, err)
	}
	return ""
}

// Under budgets no command replaces nodes whose deletion would save more now. Many clusters are of equal nodes with a few small pods each.
func TestBudgetsAreUsedForWhatSavesMost(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 20
	}
	bought := 0
	check := func(name string, s scheduling.Snapshot, r *giveback.Result) {
		for i := range r.Commands {
			bought += len(r.Commands[i].NewNodes)
		}
		if why := dearer(t, s, r); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 71))
		x := tell(t, families("m5, c5, r5"), onDemand)
		typ, pods, cpu := one(r, "m5.large", "m5.xlarge", "m5.2xlarge"), 1+r.IntN(3), one(r, "250m", "500m", "900m")
		nodes := 2 + r.IntN(7)
		for i := range nodes {
			x.node(t, fmt.Sprintf("n%d", i), typ, "on-demand", 1+r.IntN(pods), cpu, one(r, "512Mi", "1Gi", "2Gi"))
		}
		x.s.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: 1 + r.IntN(nodes-1)}}
		for policy, o := range policies() {
			result := x.plan(t, giveback.Options{Objective: o})
			check(fmt.Sprintf("equal nodes %d, %s", seed, policy), x.s, &result)
		}
	}
	for seed := range uint64(seeds) {
		o := fragment.Options{Nodes: 4 + int(seed%16), Seed: 7000 + seed, Constrained: seed%2 == 1}
		o.Pool = strings.Replace(fragment.Pool, `{nodes: "100%"}`, fmt.Sprintf(`{nodes: "%d"}`, 1+seed%4), 1)
		c, err := fragment.Generate(o)
		require.NoError(t, err)
		result := answer(t, c)
		check(fmt.Sprintf("fragments %d", seed), c.Snapshot, &result)
	}
	require.Positive(t, bought)
}

// A node whose pods fit on another one goes without a purchase if the budget allows no more, and the last two share a smaller node.
func TestOneAtATime(t *testing.T) {
	x := tell(t, families("m5, c5, r5"), onDemand)
	x.node(t, "a", "m5.xlarge", "on-demand", 1, "500m", "1Gi")
	x.node(t, "b", "m5.xlarge", "on-demand", 1, "500m", "1Gi")
	x.s.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: 1}}
	for name, o := range policies() {
		r := x.plan(t, giveback.Options{Objective: o})
		require.Len(t, r.Commands, 1, name)
		require.Equal(t, giveback.Delete, r.Commands[0].Kind, name)
		require.Equal(t, []corev1.Pod{*x.s.Pods[0]}, []corev1.Pod{*r.Commands[0].Placements[0].Pod}, name)
	}
}
