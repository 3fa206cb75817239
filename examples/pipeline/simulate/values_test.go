package simulate_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// The candidates of a new node's claim have as many values as its pool's minValues demand, whatever the pods require and the limits leave. Those that
// are bought together stay within the limits, whichever of them the cloud buys.
func TestNewNodesHaveTheMinimumOfValues(t *testing.T) {
	demanded, limited := 0, 0
	for seed := range uint64(drawings(t)) {
		d, r := draw(seed, false), rand.New(rand.NewPCG(seed, 59))
		for i := range d.s.Pools {
			p := &d.s.Pools[i]
			if r.IntN(3) > 0 {
				p.MinValues = map[string]int{corev1.LabelInstanceTypeStable: 2}
			}
			for k := range p.Types {
				p.Types[k].Requirements, _ = p.Types[k].Requirements.Intersect(requirements.FromLabels(map[string]string{"acme.io/gen": fmt.Sprint(k / 2)}))
			}
			switch r.IntN(12) {
			case 0, 1:
				p.MinValues = map[string]int{"acme.io/gen": 2}
			case 2: // a label of the pool alone is no choice of types
				p.Requirements, _ = p.Requirements.Intersect(requirements.MustOf(requirements.In("acme.io/department", "x", "y")))
				p.MinValues = map[string]int{"acme.io/department": 1 + r.IntN(2)}
			}
		}
		result, _, _ := d.plan(t, d.s)
		pools := map[string]*scheduling.Pool{}
		for i := range d.s.Pools {
			pools[d.s.Pools[i].Name] = &d.s.Pools[i]
		}
		gone, cores, most := map[string]bool{}, map[string]int64{}, map[string]int64{}
		for i := range result.Commands {
			for _, n := range result.Commands[i].Nodes {
				gone[n.Name] = true
			}
		}
		for _, n := range d.s.Nodes {
			if pool := n.Labels["karpenter.sh/nodepool"]; !gone[n.Name] {
				cores[pool] += n.Status.Capacity.Cpu().Value()
			}
		}
		maps.Copy(most, cores)
		for i := range result.Commands {
			for k := range result.Commands[i].NewNodes {
				n := &result.Commands[i].NewNodes[k]
				pool := pools[n.Pool]
				claim, err := simulate.Claim(d.s, n, "token")
				require.NoError(t, err)
				largest := int64(0)
				for _, c := range claim.Candidates {
					for _, typ := range pool.Types {
						if typ.Name == c.Type {
							largest = max(largest, typ.Capacity.Cpu().Value())
						}
						if typ.Name == c.Type && typ.Name == n.InstanceType {
							cores[n.Pool] += typ.Capacity.Cpu().Value()
						}
					}
				}
				most[n.Pool] += largest
				for key, want := range pool.MinValues {
					seen := map[string]bool{}
					for _, c := range claim.Candidates {
						for _, typ := range pool.Types {
							if typ.Name == c.Type {
								value, _ := typ.Requirements.Get(key).Single()
								seen[value] = true
							}
						}
					}
					demanded++
					limited += min(1, len(pool.Limits))
					assert.GreaterOrEqual(t, len(seen), want, "seed %d: %s %s in %s (%s): %v", seed, n.Name, n.InstanceType, n.Zone, n.CapacityType, n.Alternatives)
				}
			}
		}
		for name, pool := range pools {
			if limit, ok := pool.Limits[corev1.ResourceCPU]; ok && cores[name] <= limit.Value() {
				assert.LessOrEqual(t, most[name], limit.Value(), "seed %d: cores of %s, %d as planned", seed, name, cores[name])
			}
		}
	}
	t.Logf("%d demands, %d of them where a pool has limits", demanded, limited)
	assert.Greater(t, demanded, drawings(t)/8)
	assert.Greater(t, limited, drawings(t)/200)
}
