package survive_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/survive"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// used sums the capacity of nodes, and counts them as "nodes".
func used(nodes []*corev1.Node, of func(*corev1.Node) bool) corev1.ResourceList {
	out := corev1.ResourceList{"nodes": resource.MustParse("0")}
	for _, n := range nodes {
		if !of(n) {
			continue
		}
		for name, q := range n.Status.Capacity {
			sum := out[name]
			sum.Add(q)
			out[name] = sum
		}
		count := out["nodes"]
		count.Add(resource.MustParse("1"))
		out["nodes"] = count
	}
	return out
}

// The nodes of a pool, those that the plan buys and the headroom stay within the limits of the pool together, and within each CapacityQuota, and
// take no offering more often than it can be bought.
func TestHeadroomStaysWithinLimits(t *testing.T) {
	spares, unmet, counted := 0, 0, 0
	for seed := range uint64(longer(24, 200)) {
		r := rand.New(rand.NewPCG(seed, 17))
		s := draw(r)
		s.Pods = s.Pods[:min(len(s.Pods), 4+r.IntN(9))]
		for k := range r.IntN(3) {
			other := s.Pools[0]
			other.Name, other.Weight = fmt.Sprint("more-", k), int32(r.IntN(3))
			if r.IntN(2) == 0 {
				other.Requirements, _ = other.Requirements.Intersect(requirements.MustOf(requirements.In(corev1.LabelTopologyZone, "z0", fmt.Sprint("z", 1+r.IntN(2)))))
			}
			s.Pools = append(s.Pools, other)
		}
		p, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		inPool := func(name string) func(*corev1.Node) bool {
			return func(n *corev1.Node) bool { return n.Labels[nodepool.LabelKey] == name }
		}
		some := func(have corev1.ResourceList) corev1.ResourceList {
			out := corev1.ResourceList{}
			for _, name := range []corev1.ResourceName{"cpu", "memory", "nodes"} {
				if q := have[name]; r.IntN(2) == 0 {
					out[name] = *resource.NewQuantity(q.Value()*int64(11+r.IntN(6))/10, q.Format)
				}
			}
			return out
		}
		for i := range s.Pools {
			if r.IntN(2) == 0 {
				s.Pools[i].MinValues = map[string]int{corev1.LabelInstanceTypeStable: 1 + r.IntN(4)}
			}
			if s.Pools[i].Limits = nil; r.IntN(3) > 0 {
				s.Pools[i].Limits = some(used(p.CarriedOut().Nodes, inPool(s.Pools[i].Name)))
			}
		}
		inZone := func(zone string) func(*corev1.Node) bool {
			return func(n *corev1.Node) bool { return n.Labels[corev1.LabelTopologyZone] == zone }
		}
		if r.IntN(2) == 0 {
			zone := fmt.Sprint("z", r.IntN(3))
			s.Quotas = append(s.Quotas, capacityquota.Quota{
				Name: zone, Limits: some(used(p.CarriedOut().Nodes, inZone(zone))),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelTopologyZone: zone}},
			})
		}
		stock := map[string]int{} // by pool, type, zone and capacity type
		if r.IntN(2) == 0 {
			for i := range s.Pools {
				s.Pools[i].Types = slices.Clone(s.Pools[i].Types)
				for k := range s.Pools[i].Types {
					typ := &s.Pools[i].Types[k]
					typ.Offerings = slices.Clone(typ.Offerings)
					for j := range typ.Offerings {
						o := &typ.Offerings[j]
						if r.IntN(5) > 0 {
							o.ReservationCount = 1 + r.IntN(2)
							stock[s.Pools[i].Name+" "+typ.Name+" "+o.Requirements.String()] = o.ReservationCount
						}
					}
				}
			}
		}
		p, err = plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		kinds := [][]survive.Kind{{survive.Zone}, {survive.Zone, survive.Node}, {survive.Zone, survive.Family}}[seed%3]
		report, err := survive.Of(t.Context(), p, nil, kinds)
		require.NoError(t, err, "seed %d", seed)
		h := report.Headroom
		spares, unmet = spares+len(h.Spares), unmet+len(h.Unmet)
		within := func(what string, limits corev1.ResourceList, of func(*corev1.Node) bool) {
			have := used(h.Cluster().Nodes, of)
			for name, most := range limits {
				q := have[name]
				assert.LessOrEqual(t, q.Value(), most.Value(), "seed %d %v: %s of %s", seed, kinds, name, what)
			}
		}
		for i := range s.Pools {
			within(s.Pools[i].Name, s.Pools[i].Limits, inPool(s.Pools[i].Name))
		}
		for _, n := range h.Cluster().Nodes {
			key := fmt.Sprintf("%s %s karpenter.sh/capacity-type in (%s), topology.kubernetes.io/zone in (%s)", n.Labels[nodepool.LabelKey], n.Labels[corev1.LabelInstanceTypeStable],
				n.Labels[instancetypes.LabelCapacityType], n.Labels[corev1.LabelTopologyZone])
			if left, known := stock[key]; known {
				stock[key] = left - 1
				assert.Positive(t, left, "seed %d %v: stock of %s", seed, kinds, key)
				counted++
			}
		}
		for _, q := range s.Quotas {
			within("quota "+q.Name, q.Limits, inZone(q.Name))
		}
	}
	t.Logf("%d spares, %d failures unmet, %d nodes of counted stock", spares, unmet, counted)
	assert.Positive(t, counted)
	assert.Positive(t, spares)
	assert.Positive(t, unmet)
}
