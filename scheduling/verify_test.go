package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling"
)

// careless is a packer that puts everything into one node of one shape, whatever anybody asks.
func careless(shape, offering int) packing {
	return func(_ *scheduling.Problem, items []scheduling.Item) scheduling.Outcome {
		bin := scheduling.OutcomeBin{Shape: shape, Offering: offering}
		for i, it := range items {
			bin.Shares = append(bin.Shares, scheduling.Share{Item: i, Count: it.Count})
		}
		return scheduling.Outcome{Bins: []scheduling.OutcomeBin{bin}}
	}
}

// What kube-scheduler would refuse is never returned as placed, whatever planner and packer made of it.
func TestPlansAreVerified(t *testing.T) {
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for name, c := range map[string]struct {
		edit   func(*corev1.Pod)
		pods   int
		placed int
	}{
		"room for all":   {func(*corev1.Pod) {}, 8, 8},
		"too little cpu": {func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("3", "1Gi") }, 4, 2},
		"another zone":   {func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "zone-b"} }, 2, 0},
		"a port": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
		}, 3, 1},
		"apart by node": {func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: web}}}}
		}, 3, 1},
		"a spread that asks for more zones": {func(p *corev1.Pod) {
			two := int32(2)
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 2, MinDomains: &two, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: web}}
		}, 5, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var pods []*corev1.Pod
			for _, n := range []string{"web-0", "web-1", "web-2", "web-3", "web-4", "web-5", "web-6", "web-7"}[:c.pods] {
				pods = append(pods, pod(n, c.edit))
			}
			p := compile(t, scheduling.Snapshot{Pods: pods, Pools: []scheduling.Pool{pool("default")}})
			large := -1
			for i := range p.Shapes {
				if p.InstanceType(i).Name == "large" {
					large = i
				}
			}
			result := solve(p, careless(large, 0))
			require.Len(t, result.Bindings(), c.placed)
			unplaced := 0
			for _, u := range result.Unplaced() {
				unplaced += len(u.Pods)
				assert.NotEmpty(t, u.Reasons())
			}
			assert.Equal(t, c.pods, c.placed+unplaced)
		})
	}
}

// Pods that the packer left out take what is left of nodes that exist.
func TestWhatIsLeftOfExistingNodesIsTaken(t *testing.T) {
	p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("a"), pod("b"), pod("c")}, Nodes: []*corev1.Node{node("n1")}})
	bindings := solve(p, nothing).Bindings()
	require.Len(t, bindings, 3)
	for _, b := range bindings {
		require.Equal(t, "n1", b.Node)
	}
}

// They take what is left of nodes that are bought in any case, too, and the node says how many; where pods are kept apart for rules
// of the packer, or where a pool asks for a choice of types, they do not.
func TestWhatIsLeftOfNewNodesIsTaken(t *testing.T) {
	one := func(_ *scheduling.Problem, _ []scheduling.Item) scheduling.Outcome {
		return scheduling.Outcome{Bins: []scheduling.OutcomeBin{{Shape: 1, Shares: []scheduling.Share{{Item: 0, Count: 1}}}, {Shape: 1}}}
	}
	s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("a"), pod("b"), pod("c")}, Pools: []scheduling.Pool{pool("default")}}
	result := solve(compile(t, s), packing(one))
	require.Len(t, result.Bindings(), 3)
	require.Len(t, result.NewNodes(), 1, "the empty one is not bought")
	assert.Len(t, result.NewNodes()[0].Pods, 3)
	assert.Equal(t, 2, result.NewNodes()[0].Added)

	apart, err := scheduling.Compile(s, &scheduling.Options{Apart: func(*corev1.Pod) string { return "" }})
	require.NoError(t, err)
	require.Len(t, solve(apart, packing(one)).Bindings(), 1)

	s.Pools[0].MinValues = map[string]int{corev1.LabelInstanceTypeStable: 2}
	require.Len(t, solve(compile(t, s), packing(one)).Bindings(), 1, "the packer alone knows what choice is left")
}
