package simulate_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// scratch is what the new nodes would cost, and how many they would be, if all pods were packed anew, except those on the nodes that stay.
func scratch(t *testing.T, c *fragment.Cluster, stays map[string]bool) (price float64, nodes int) {
	t.Helper()
	s := c.Snapshot
	s.Nodes, s.Pods = nil, nil
	for _, n := range c.Snapshot.Nodes {
		if stays[n.Name] {
			s.Nodes = append(s.Nodes, n)
		}
	}
	for _, p := range c.Snapshot.Pods {
		if !stays[p.Spec.NodeName] {
			p = p.DeepCopy()
			p.Spec.NodeName, p.Status = "", corev1.PodStatus{}
		}
		s.Pods = append(s.Pods, p)
	}
	packed, err := plan.Make(t.Context(), s, &plan.Options{Packing: &binpack.Options{Strategy: binpack.CostAware{}}})
	require.NoError(t, err)
	require.Empty(t, packed.Unplaced())
	return packed.Packing.Cost.Dollars(), len(packed.NewNodes())
}

// On fragmented clusters the plan saves at least nine tenths of what packing everything anew would.
func TestNearlyAsGoodAsFromScratch(t *testing.T) {
	if testing.Short() {
		t.Skip("packs clusters from scratch")
	}
	seeds := uint64(2)
	if os.Getenv("JOINERY_LONG") == "1" {
		seeds = 12
	}
	for seed := range seeds {
		c, err := fragment.Generate(fragment.Options{Nodes: 20 + 20*int(seed%3), Seed: 100 + seed, Constrained: seed%2 == 1})
		require.NoError(t, err)
		r := answer(t, c)
		best, _ := scratch(t, c, nil)
		share := (r.PricePerHour - r.PricePerHourAfter).Dollars() / (r.PricePerHour.Dollars() - best)
		t.Logf("%d nodes at $%.2f: plan $%.2f with %d evictions of %d pods, from scratch $%.2f: %.1f%% of its saving", len(c.Snapshot.Nodes), r.PricePerHour.Dollars(), r.PricePerHourAfter.Dollars(), r.Evictions, len(c.Snapshot.Pods), best, 100*share)
		assert.GreaterOrEqual(t, share, 0.9, "seed %d", seed)
	}
}

// Nodes that PodDisruptionBudgets keep have room for the pods of others. It is used nearly as well as by packing these pods anew.
func TestRoomOfNodesThatStay(t *testing.T) {
	if testing.Short() {
		t.Skip("packs clusters from scratch")
	}
	draws := uint64(8)
	if os.Getenv("JOINERY_LONG") == "1" {
		draws = 60
	}
	sum, most := 0.0, 0.0
	for draw := range draws {
		seed := 900 + draw
		c, err := fragment.Generate(fragment.Options{Nodes: 20 + 20*int(draw%3), Seed: seed, Constrained: draw%2 == 1})
		require.NoError(t, err)
		guarded(c, seed)
		kept, stays, price := untouchable(c), map[string]bool{}, 0.0
		for _, p := range c.Snapshot.Pods {
			if kept[p.Labels["app"]] {
				stays[p.Spec.NodeName] = true
			}
		}
		sim, nominated, err := simulate.New(c.Snapshot)
		require.NoError(t, err)
		all := simulate.Cluster(c.Manifests, c.Snapshot, nominated, fragment.Now())
		for i := range all.Nodes {
			if stays[all.Nodes[i].Name()] {
				price += all.Nodes[i].PricePerHour.Dollars()
			}
		}
		r, err := giveback.Make(t.Context(), all, sim, nil)
		require.NoError(t, err)
		best, _ := scratch(t, c, stays)
		dearer := r.PricePerHourAfter.Dollars()/(price+best) - 1
		t.Logf("seed %d, %d of %d nodes stay: $%.3f, %.2f%% dearer than anew", seed, len(stays), len(all.Nodes), r.PricePerHourAfter.Dollars(), 100*dearer)
		sum, most = sum+dearer, max(most, dearer)
	}
	t.Logf("%.2f%% dearer in the mean, %.2f%% at most", 100*sum/float64(draws), 100*most)
	assert.LessOrEqual(t, sum/float64(draws), 0.005)
	assert.LessOrEqual(t, most, 0.04)
}
