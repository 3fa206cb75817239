package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// services draws pods that spread over zones, pods that keep apart by node, and pods that go near these by zone, with types of two sizes in three zones.
func services(r *rand.Rand) scheduling.Snapshot {
	var s scheduling.Snapshot
	add := func(app string, count int, milli int64, change func(*corev1.PodSpec, *metav1.LabelSelector)) {
		for i := range count {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("%s-%d", app, i), Labels: map[string]string{"app": app}}}
			p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(milli, resource.DecimalSI)}}}}
			change(&p.Spec, &metav1.LabelSelector{MatchLabels: p.Labels})
			s.Pods = append(s.Pods, p)
		}
	}
	add("web", 3+r.IntN(6), int64(500+500*r.IntN(3)), func(spec *corev1.PodSpec, own *metav1.LabelSelector) {
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own}}
	})
	add("db", 1+r.IntN(3), int64(1000+500*r.IntN(3)), func(spec *corev1.PodSpec, own *metav1.LabelSelector) {
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: own}}}}
	})
	add("cache", r.IntN(4), int64(250+250*r.IntN(3)), func(spec *corev1.PodSpec, _ *metav1.LabelSelector) {
		db := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
		spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelTopologyZone, LabelSelector: db}}}}
	})
	var types []instancetypes.InstanceType
	for _, cpu := range []int{4, 8} {
		var offers []instancetypes.Offering
		for _, zone := range []string{"a", "b", "c"} {
			offers = append(offers, instancetypes.Offer(zone, "on-demand", 0.05*float64(cpu)*(1+0.1*r.Float64())))
		}
		types = append(types, instancetypes.New(fmt.Sprintf("m.%d", cpu), nil, corev1.ResourceList{"cpu": *resource.NewQuantity(int64(cpu), resource.DecimalSI), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}, offers...))
	}
	s.Pools = []scheduling.Pool{{NodePool: nodepool.New("default"), Types: types}}
	return s
}

// A further pod without constraints that has room on the nodes of a plan makes the plan hardly dearer: the search may end elsewhere, but seldom far away.
func TestAPodWithRoomMakesNoPlanDearer(t *testing.T) {
	fits, dearer, sum, n := 0, 0, 0.0, 300
	if testing.Short() {
		n = 150
	}
	for seed := range uint64(n) {
		s := services(rand.New(rand.NewPCG(seed, 47)))
		before, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		small := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "small"}}
		small.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("250m")}}}}
		room := false
		for _, n := range before.NewNodes() {
			free := n.InstanceType.Allocatable()["cpu"]
			free.Sub(n.Requests["cpu"])
			room = room || free.MilliValue() >= 250
		}
		if !room || len(before.Unplaced()) > 0 {
			continue
		}
		fits++
		s.Pods = append(s.Pods, small)
		after, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		require.Empty(t, after.Unplaced())
		if more := after.Cost().Dollars()/before.Cost().Dollars() - 1; more > 1e-9 {
			dearer++
			sum += more
		}
	}
	t.Logf("%d plans with room for one more pod: %d become dearer, by %.2f%% in the mean of all", fits, dearer, 100*sum/float64(fits))
	assert.Greater(t, fits, n/3)
	assert.LessOrEqual(t, sum/float64(fits), 0.005)
}
