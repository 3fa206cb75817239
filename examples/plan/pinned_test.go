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

// Pods that must be together in a zone and spread over zones fit only where no other zone has a node: beside the pods that select their zone.
// They are packed there as well as if they selected it, too.
func TestTogetherInTheZoneOfOthers(t *testing.T) {
	sum, other := 0.0, 0.0
	for seed := range 60 {
		r := rand.New(rand.NewPCG(uint64(seed), 227))
		var types []instancetypes.InstanceType
		zones := []string{"a", "b", "c"}
		for _, cpu := range []int{2, 4, 8, 16} {
			var offers []instancetypes.Offering
			for _, zone := range zones {
				offers = append(offers, instancetypes.Offer(zone, "on-demand", (1+float64(cpu))*(0.04+0.01*r.Float64())))
			}
			capacity := corev1.ResourceList{"cpu": *resource.NewQuantity(int64(cpu), resource.DecimalSI), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("50")}
			types = append(types, instancetypes.New(fmt.Sprint("t-", cpu), nil, capacity, offers...))
		}
		made := func(name string, milli, count int) (pods []*corev1.Pod) {
			for k := range count {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint(name, "-", k), Labels: map[string]string{"app": name}}}
				p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(milli), resource.DecimalSI)}}}}
				pods = append(pods, p)
			}
			return pods
		}
		zone := zones[r.IntN(3)]
		web, pinned := made("web", 300*(1+r.IntN(6)), 2+r.IntN(40)), made("cache", 500, 1+r.IntN(2))
		for _, p := range web {
			selector := &metav1.LabelSelector{MatchLabels: p.Labels}
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelTopologyZone, LabelSelector: selector}}}}
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector}}
		}
		for _, p := range pinned {
			p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone}
		}
		s := scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: nodepool.New("general"), Types: types}}, Pods: append(web, pinned...)}
		p, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		if !assert.Equal(t, len(s.Pods), len(p.Bindings()), "seed %d", seed) {
			continue
		}
		for _, p := range web {
			p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone}
		}
		selected, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		sum, other = sum+p.Cost().Dollars(), other+selected.Cost().Dollars()
		assert.LessOrEqual(t, p.Cost().Dollars(), 1.05*selected.Cost().Dollars(), "seed %d", seed)
	}
	assert.LessOrEqual(t, sum, 1.005*other)
	t.Logf("$%.2f, $%.2f if the zone is selected", sum, other)
}
