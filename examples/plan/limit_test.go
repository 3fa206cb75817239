package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Under a limit that is too small for all pods, a part of them seldom has more room than all of them: small pods come
// first where that places more.
func TestFewOfAllAreNotFewerThanOfAPart(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 62))
	var types []instancetypes.InstanceType
	for _, size := range []int{2, 4, 8} {
		for _, kind := range []struct {
			name   string
			memory int
			price  float64
		}{{"c", 2, 0.04}, {"m", 4, 0.048}, {"r", 8, 0.063}} {
			var offers []instancetypes.Offering
			for _, zone := range []string{"a", "b", "c"} {
				offers = append(offers, instancetypes.Offer(zone, "on-demand", kind.price*float64(size)))
			}
			types = append(types, instancetypes.New(fmt.Sprintf("%s-%d", kind.name, size), nil, corev1.ResourceList{
				"cpu": *resource.NewQuantity(int64(size), resource.DecimalSI), "memory": resource.MustParse(fmt.Sprintf("%dGi", size*kind.memory)), "pods": resource.MustParse("58"),
			}, offers...))
		}
	}
	apps, fewer, missed, tried := 4, 0, 0, 0
	for range 100 {
		pool := nodepool.New("default")
		pool.Limits = corev1.ResourceList{"cpu": *resource.NewQuantity(int64(2+2*rng.IntN(8)), resource.DecimalSI)}
		byApp := make([][]*corev1.Pod, apps)
		for a := range apps {
			cpu, memory, spreads := 50*(1+rng.IntN(20)), 256*(1+rng.IntN(16)), rng.IntN(2) == 0
			for i := range 1 + rng.IntN(16) {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("app%d-%d", a, i), Labels: map[string]string{"app": fmt.Sprint(a)}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"cpu": resource.MustParse(fmt.Sprintf("%dm", cpu)), "memory": resource.MustParse(fmt.Sprintf("%dMi", memory))},
				}}}}}
				if spreads {
					p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
				}
				byApp[a] = append(byApp[a], p)
			}
		}
		placed := func(without int) int {
			s := scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: pool, Types: types}}}
			for a := range apps {
				if a != without {
					s.Pods = append(s.Pods, byApp[a]...)
				}
			}
			p, err := plan.Make(t.Context(), s, &plan.Options{Packing: &binpack.Options{Effort: binpack.EffortFast}})
			require.NoError(t, err)
			return p.Totals().Placed
		}
		all := placed(-1)
		for a := range apps {
			tried++
			if n := placed(a); n > all {
				fewer++
				missed += n - all
			}
		}
	}
	require.LessOrEqual(t, fewer, tried/20)
	t.Logf("%d of %d parts have more room than the whole, %d pods more", fewer, tried, missed)
}
