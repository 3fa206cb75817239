package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// besideOthers draws a cluster with a pool of its own, and pools with a taint that its pods do not tolerate. Those sell other zones, capacity types
// and values of an own label. Each size of the own pool comes as two types of two families that differ only in their price.
func besideOthers(r *rand.Rand) scheduling.Snapshot {
	const tier = "example.com/tier"
	some := func(list ...string) []string {
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list[:1+r.IntN(len(list))]
	}
	sells := func(zones, capacities []string) (types []instancetypes.InstanceType) {
		for _, family := range []string{"m", "n"} {
			for _, cpu := range []int{2, 4, 8} {
				var offers []instancetypes.Offering
				for _, zone := range zones {
					for _, capacity := range capacities {
						offers = append(offers, instancetypes.Offer(zone, capacity, float64(cpu)*(0.04+0.01*r.Float64())))
					}
				}
				name := fmt.Sprint(family, "-", cpu)
				capacity := corev1.ResourceList{"cpu": *resource.NewQuantity(int64(cpu), resource.DecimalSI), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("50")}
				types = append(types, instancetypes.New(name, map[string]string{"example.com/family": family}, capacity, offers...))
			}
		}
		return types
	}
	general := nodepool.New("general")
	zones, capacities, tiers := some("a", "b", "c"), some("on-demand", "spot"), some("gold", "iron")
	own := requirements.MustOf(requirements.In(tier, tiers...))
	general.Requirements, _ = general.Requirements.Intersect(own)
	s := scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: general, Types: sells(zones, capacities)}}}
	for k := range 1 + r.IntN(2) {
		other := nodepool.New(fmt.Sprint("other-", k))
		other.Taints = []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoSchedule}}
		other.Requirements, _ = other.Requirements.Intersect(requirements.MustOf(requirements.In(tier, some("gold", "iron", "wood")...)))
		s.Pools = append(s.Pools, scheduling.Pool{NodePool: other, Types: sells(some("a", "b", "c", "d"), some("on-demand", "spot", "reserved"))})
	}
	keys := []string{corev1.LabelTopologyZone, instancetypes.LabelCapacityType, tier, corev1.LabelHostname}
	var kinds []corev1.Pod
	for k := range 1 + r.IntN(2) {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"app": fmt.Sprint("web", k)}}}
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(400*(1+r.IntN(5))), resource.DecimalSI)}}}}
		for _, key := range keys {
			if r.IntN(3) == 0 {
				p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
					MaxSkew: int32(1 + r.IntN(2)), TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
				})
			}
		}
		kinds = append(kinds, p)
	}
	for i := range r.IntN(4) {
		name := fmt.Sprint("node-", i)
		capacity := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("50")}
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelTopologyZone: zones[r.IntN(len(zones))], instancetypes.LabelCapacityType: capacities[r.IntN(len(capacities))],
				tier: tiers[r.IntN(len(tiers))], nodepool.LabelKey: "general", corev1.LabelInstanceTypeStable: "m-2", "example.com/family": "m",
			}},
			Status: corev1.NodeStatus{Allocatable: capacity, Capacity: capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}
		s.Nodes = append(s.Nodes, n)
		p := kinds[r.IntN(len(kinds))].DeepCopy()
		p.Name, p.Spec.NodeName, p.Status.Phase = fmt.Sprint("runs-", i), name, corev1.PodRunning
		s.Pods = append(s.Pods, p)
	}
	for k := range 1 + r.IntN(8) {
		p := kinds[r.IntN(len(kinds))].DeepCopy()
		p.Name = fmt.Sprint("waits-", k)
		s.Pods = append(s.Pods, p)
	}
	return s
}

// withMinimums returns the snapshot with minValues of the own pool.
func withMinimums(s scheduling.Snapshot, minimums map[string]int) scheduling.Snapshot {
	s.Pools = slices.Clone(s.Pools)
	s.Pools[0].MinValues = minimums
	return s
}

// minValues of 1 demand nothing of a node that has a value, so they change nothing at all. minValues that every node of the pool can meet,
// because each type has a twin, refuse no pod more, and each node lists enough ways to buy it.
func TestMinimumsRefuseNoPodThatHasTypes(t *testing.T) {
	const family = "example.com/family"
	n := 600
	if testing.Short() {
		n = 100
	}
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 31))
		s := besideOthers(r)
		text := func(p *plan.Plan) string {
			var out strings.Builder
			for _, n := range p.NewNodes() {
				fmt.Fprintln(&out, n.Name, n.InstanceType.Name, n.Labels, n.PricePerHour, len(n.Alternatives))
			}
			for _, b := range p.Bindings() {
				fmt.Fprintln(&out, b.Pod.Name, b.Node)
			}
			for _, u := range p.Unplaced() {
				for _, pod := range u.Pods {
					fmt.Fprintln(&out, pod.Name, u.Reasons())
				}
			}
			return out.String()
		}
		without, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		ones := map[string]int{}
		for _, key := range []string{corev1.LabelInstanceTypeStable, family, corev1.LabelTopologyZone, instancetypes.LabelCapacityType} {
			if len(ones) == 0 || r.IntN(2) == 0 {
				ones[key] = 1
			}
		}
		one, err := plan.Make(t.Context(), withMinimums(s, ones), nil)
		require.NoError(t, err)
		require.Equal(t, text(without), text(one), "seed %d: %v", seed, ones)

		key := []string{corev1.LabelInstanceTypeStable, family}[r.IntN(2)]
		two, err := plan.Make(t.Context(), withMinimums(s, map[string]int{key: 2}), nil)
		require.NoError(t, err)
		require.Len(t, two.Bindings(), len(without.Bindings()), "seed %d: %s\n%s\n%s", seed, key, text(without), text(two))
		for _, n := range two.NewNodes() {
			values := map[string]bool{n.InstanceType.Name: true}
			for _, a := range n.Alternatives {
				values[a.InstanceType] = true
			}
			require.GreaterOrEqual(t, len(values), 2, "seed %d: %s", seed, n.Name)
		}
	}
}
