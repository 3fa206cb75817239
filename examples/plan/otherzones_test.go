package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Where another pool, whose taint the pods do not tolerate, also sells in zones in which theirs sells nothing, a hard spread is even over all
// zones in which they can be bought a node. If a zone may be closed in exchange for one in which nothing is bought, 144 of 300 are not.
func TestZonesOfOtherPools(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 75
	}
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 223))
		zones := []string{"a", "b", "c", "d", "e", "f"}
		r.Shuffle(len(zones), func(i, j int) { zones[i], zones[j] = zones[j], zones[i] })
		own := zones[:2+r.IntN(3)]
		sells := func(zones []string) (types []instancetypes.InstanceType) {
			for _, cpu := range []int{2, 4, 8} {
				var offers []instancetypes.Offering
				for _, zone := range zones {
					offers = append(offers, instancetypes.Offer(zone, "on-demand", float64(cpu)*(0.04+0.01*r.Float64())))
				}
				capacity := corev1.ResourceList{"cpu": *resource.NewQuantity(int64(cpu), resource.DecimalSI), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("50")}
				types = append(types, instancetypes.New(fmt.Sprint("t-", cpu), nil, capacity, offers...))
			}
			return types
		}
		tainted := nodepool.New("batch")
		tainted.Taints = []corev1.Taint{{Key: "batch", Effect: corev1.TaintEffectNoSchedule}}
		s := scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: nodepool.New("general"), Types: sells(own)}, {NodePool: tainted, Types: sells(zones)}}}
		web := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"app": "web"}}}
		web.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(250*(1+r.IntN(7))), resource.DecimalSI)}}}}
		skew := 1 + r.IntN(2)
		web.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: int32(skew), TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: web.Labels},
		}}
		for k := range 2 + r.IntN(12) {
			p := web.DeepCopy()
			p.Name = fmt.Sprint("web-", k)
			s.Pods = append(s.Pods, p)
		}
		p, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		require.Len(t, p.Bindings(), len(s.Pods), seed)
		count := map[string]int{}
		for _, n := range p.NewNodes() {
			count[n.Zone] += len(n.Pods)
		}
		least, most := len(s.Pods), 0
		for _, zone := range own {
			least, most = min(least, count[zone]), max(most, count[zone])
		}
		require.LessOrEqual(t, most-least, skew, "seed %d: %v", seed, count)
	}
}
