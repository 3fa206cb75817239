package simulate_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// scratch is what the pods of a cluster would cost if all were packed anew on new nodes, and how many nodes these would be.
func scratch(t *testing.T, c *fragment.Cluster) (price float64, nodes int) {
	t.Helper()
	s := c.Snapshot
	s.Nodes, s.Pods = nil, nil
	for _, p := range c.Snapshot.Pods {
		q := *p
		q.Spec.NodeName, q.Status = "", corev1.PodStatus{}
		s.Pods = append(s.Pods, &q)
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
		best, _ := scratch(t, c)
		share := (r.PricePerHour - r.PricePerHourAfter).Dollars() / (r.PricePerHour.Dollars() - best)
		t.Logf("%d nodes at $%.2f: plan $%.2f with %d evictions of %d pods, from scratch $%.2f: %.1f%% of its saving", len(c.Snapshot.Nodes), r.PricePerHour.Dollars(), r.PricePerHourAfter.Dollars(), r.Evictions, len(c.Snapshot.Pods), best, 100*share)
		assert.GreaterOrEqual(t, share, 0.9, "seed %d", seed)
	}
}
