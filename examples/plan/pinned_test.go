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

// Anti-affinity to pods that do not exist costs nothing, required or preferred, by whatever label; nor does preferred affinity.
func TestAffinityToNobody(t *testing.T) {
	for seed := range 60 {
		r := rand.New(rand.NewPCG(uint64(seed), 229))
		var types []instancetypes.InstanceType
		for _, cpu := range []int{2, 4, 8, 16} {
			var offers []instancetypes.Offering
			for _, zone := range []string{"a", "b"} {
				for _, capacity := range []string{"on-demand", "spot"} {
					offers = append(offers, instancetypes.Offer(zone, capacity, (1+float64(cpu))*(0.04+0.01*r.Float64())))
				}
			}
			capacity := corev1.ResourceList{"cpu": *resource.NewQuantity(int64(cpu), resource.DecimalSI), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("50")}
			types = append(types, instancetypes.New(fmt.Sprint("t-", cpu), map[string]string{corev1.LabelArchStable: []string{"amd64", "arm64"}[r.IntN(2)]}, capacity, offers...))
		}
		s := scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: nodepool.New("general"), Types: types}}}
		for app := range 1 + r.IntN(4) {
			milli := int64(300 * (1 + r.IntN(8)))
			for k := range 1 + r.IntN(12) {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("app-%d-%d", app, k), Labels: map[string]string{"app": fmt.Sprint(app)}}}
				p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(milli, resource.DecimalSI)}}}}
				s.Pods = append(s.Pods, p)
			}
		}
		without, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		keys := []string{corev1.LabelTopologyZone, corev1.LabelArchStable, instancetypes.LabelCapacityType, corev1.LabelInstanceTypeStable, corev1.LabelHostname}
		terms, kind := map[string]corev1.PodAffinityTerm{}, r.IntN(4)
		for _, p := range s.Pods {
			term, drawn := terms[p.Labels["app"]]
			if !drawn {
				term = corev1.PodAffinityTerm{TopologyKey: keys[r.IntN(len(keys))], LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nobody"}}}
				terms[p.Labels["app"]] = term
			}
			soft := []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: term}}
			switch p.Spec.Affinity = new(corev1.Affinity); kind {
			case 0:
				p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: soft}
			case 1:
				p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: soft}
			default:
				p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
			}
		}
		with, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		assert.Equal(t, len(without.Bindings()), len(with.Bindings()), "seed %d", seed)
		assert.Equal(t, without.Cost(), with.Cost(), "seed %d, kind %d", seed, kind)
	}
}
