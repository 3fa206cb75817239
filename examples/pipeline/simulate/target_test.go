package simulate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
)

// The full answer costs about as much as packing from scratch, four fifths of its saving take at most two fifths of its
// evictions, no pod moves twice, every command of a cluster without constraints saves something, and a plan made again from the end is empty.
func TestTarget(t *testing.T) {
	for _, o := range []fragment.Options{{Nodes: 50, Seed: 31}, {Nodes: 200, Seed: 32}, {Nodes: 200, Seed: 33, Constrained: true}} {
		c, err := fragment.Generate(o)
		require.NoError(t, err)
		r, best := answer(t, c), scratch(t, c)
		limit := 1.02
		if o.Constrained {
			limit = 1.05
		}
		assert.LessOrEqual(t, r.PricePerHourAfter, limit*best, "%+v", o)
		s, moved := c.Snapshot, map[*corev1.Pod]bool{}
		for i := range r.Commands {
			for _, p := range r.Commands[i].Placements {
				assert.False(t, moved[p.Pod], "%s moves twice", p.Pod.Name)
				moved[p.Pod] = true
			}
			if !o.Constrained {
				assert.Positive(t, r.Commands[i].SavingsPerHour)
			}
			s, err = simulate.Apply(s, &r.Commands[i], fragment.Now())
			require.NoError(t, err)
		}
		assert.Empty(t, answer(t, &fragment.Cluster{Manifests: c.Manifests, Snapshot: s}).Commands)
		require.NotEmpty(t, r.Frontier)
		for _, p := range r.Frontier {
			if p.SavingsPerHour >= 0.8*(r.PricePerHour-r.PricePerHourAfter) {
				t.Logf("%+v: %.1f%% saved with %d evictions, %d nodes left, %.1f%% above scratch; 80%% of it with %d", o, percent(r), r.Evictions, len(s.Nodes), 100*(r.PricePerHourAfter/best-1), p.Evictions)
				assert.LessOrEqual(t, float64(p.Evictions), 0.4*float64(r.Evictions), "%+v", o)
				break
			}
		}
	}
}
