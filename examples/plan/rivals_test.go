package plan_test

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
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// drawRivals is a cluster in which workloads keep each other out of whole zones, and in which some
// of their pods have no place anyhow. The names of the workloads are in the order of names.
func drawRivals(r *rand.Rand, names []string) scheduling.Snapshot {
	var types []instancetypes.InstanceType
	zones := []string{"a", "b", "c"}[:1+r.IntN(3)]
	for i := range 1 + r.IntN(2) {
		var offers []instancetypes.Offering
		for _, zone := range zones {
			offers = append(offers, instancetypes.Offer(zone, "on-demand", 0.05+0.1*r.Float64()))
		}
		capacity := corev1.ResourceList{"cpu": *resource.NewQuantity(int64(2+2*r.IntN(3)), resource.DecimalSI), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("20")}
		types = append(types, instancetypes.New(fmt.Sprint("t-", i), nil, capacity, offers...))
	}
	s := scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: nodepool.New("general"), Types: types}}}
	for _, name := range names {
		labels, ignore := map[string]string{"app": name}, corev1.NodeInclusionPolicyIgnore
		spec := corev1.PodSpec{}
		if r.IntN(3) == 0 {
			spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zones[r.IntN(len(zones))]}
		}
		if r.IntN(2) == 0 {
			c := corev1.TopologySpreadConstraint{MaxSkew: int32(1 + r.IntN(2)), TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}
			if r.IntN(2) == 0 {
				c.NodeAffinityPolicy = &ignore
			}
			if r.IntN(3) == 0 {
				c.MinDomains = new(int32(2 + r.IntN(2)))
			}
			spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{c}
		}
		if r.IntN(2) == 0 {
			term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": names[r.IntN(len(names))]}}}
			spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
		}
		spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(100*(1+r.IntN(10))), resource.DecimalSI)}}}}
		for k := range 1 + r.IntN(2)*r.IntN(10) {
			s.Pods = append(s.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("%s-%d", name, k), Labels: labels}, Spec: spec})
		}
	}
	return s
}

// Pods have equal priorities, so more pods is better: leaving workloads out never places more.
func TestLeavingWorkloadsOutPlacesNoMore(t *testing.T) {
	placed := func(s scheduling.Snapshot) int {
		p, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		return len(p.Bindings())
	}
	worse, lost, draws := 0, 0, 1500
	for seed := range draws {
		names := []string{"ant", "bee", "cat", "dog", "eel"}[:2+seed%4]
		s := drawRivals(rand.New(rand.NewPCG(uint64(seed), 2)), names)
		all := placed(s)
		most, best := all, 0
		for subset := 1; subset < 1<<len(names)-1 && all < len(s.Pods); subset++ {
			part := s
			part.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p *corev1.Pod) bool {
				return subset&(1<<slices.Index(names, p.Labels["app"])) == 0
			})
			if len(part.Pods) > most {
				if n := placed(part); n > most {
					most, best = n, subset
				}
			}
		}
		if most > all {
			worse, lost = worse+1, lost+most-all
			t.Logf("seed %d: %d pods of %d, %d without %b", seed, all, len(s.Pods), most, best)
		}
	}
	assert.LessOrEqual(t, worse, draws/200, "%d of %d draws, %d pods", worse, draws, lost)
}
