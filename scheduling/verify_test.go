package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling"
)

// careless is a packer that puts everything into one node of one shape, against all constraints.
func careless(shape, offering int) packing {
	return func(_ *scheduling.Problem, items []scheduling.Item) scheduling.Outcome {
		bin := scheduling.OutcomeBin{Shape: shape, Offering: offering}
		for i, it := range items {
			bin.Shares = append(bin.Shares, scheduling.Share{Item: i, Count: it.Count})
		}
		return scheduling.Outcome{Bins: []scheduling.OutcomeBin{bin}}
	}
}

// A pod that kube-scheduler would refuse is never returned as placed, whatever planner and packer
// did.
func TestPlansAreVerified(t *testing.T) {
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for name, c := range map[string]struct {
		edit   func(*corev1.Pod)
		pods   int
		placed int
	}{
		"room for all":   {func(*corev1.Pod) {}, 8, 8},
		"too little cpu": {func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("3", "1Gi") }, 4, 2},
		"another zone":   {func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "zone-b"} }, 2, 2}, // on a node that the packer had not thought of
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
			p := compile(t, scheduling.Snapshot{Pods: pods, Pools: []scheduling.Pool{oneNode()}})
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

// Pods that the packer left out use the remaining capacity of existing nodes.
func TestWhatIsLeftOfExistingNodesIsTaken(t *testing.T) {
	p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("a"), pod("b"), pod("c")}, Nodes: []*corev1.Node{node("n1")}})
	bindings := solve(p, nothing).Bindings()
	require.Len(t, bindings, 3)
	for _, b := range bindings {
		require.Equal(t, "n1", b.Node)
	}
}

// They also use the remaining capacity of nodes that are bought anyway, and the node says how many.
// They do not if the packer has rules about pods, or if a pool has minValues.
func TestWhatIsLeftOfNewNodesIsTaken(t *testing.T) {
	one := func(_ *scheduling.Problem, _ []scheduling.Item) scheduling.Outcome {
		return scheduling.Outcome{Bins: []scheduling.OutcomeBin{{Shape: 1, Shares: []scheduling.Share{{Item: 0, Count: 1}}}, {Shape: 1}}}
	}
	s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("a"), pod("b"), pod("c")}, Pools: []scheduling.Pool{pool("default")}}
	result := solve(compile(t, s), asPacked(one))
	require.Len(t, result.Bindings(), 3)
	require.Len(t, result.NewNodes(), 1, "the empty one is not bought")
	assert.Len(t, result.NewNodes()[0].Pods, 3)
	assert.Equal(t, 2, result.NewNodes()[0].Added)

	apart, err := scheduling.Compile(s, &scheduling.Options{Apart: func(*corev1.Pod) string { return "" }})
	require.NoError(t, err)
	result = solve(apart, packing(one))
	require.Len(t, result.Bindings(), 3)
	for _, n := range result.NewNodes() {
		require.Len(t, n.Pods, 1, "the packer alone knows who may share a node")
	}

	s.Pools[0].MinValues = map[string]int{corev1.LabelInstanceTypeStable: 2}
	require.Len(t, solve(compile(t, s), packing(one)).Bindings(), 1, "the packer alone knows what choice is left")
}

// Pods that the packer left out get further nodes that their pools may still buy, unknown to the
// packer.
func TestNodesAreAdded(t *testing.T) {
	s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("a"), pod("b"), pod("c")}, Pools: []scheduling.Pool{pool("default")}}
	result := solve(compile(t, s), nothing)
	require.Len(t, result.Bindings(), 3)
	for _, n := range result.NewNodes() {
		assert.Equal(t, "small", n.InstanceType.Name)
		assert.Equal(t, len(n.Pods), n.Added)
		assert.Negative(t, n.Bin)
	}
	require.Len(t, result.NewNodes(), 2, "what is left of one is taken first")
	s.Pools = []scheduling.Pool{oneNode()}
	require.Len(t, solve(compile(t, s), nothing).Bindings(), 2)
}

// A pod that is added gives up only preferences that do not hold where it is.
func TestAddedPodsKeepWhatHolds(t *testing.T) {
	soft := func(p *corev1.Pod) {
		term := func(key, value string) corev1.PreferredSchedulingTerm {
			in := corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
			return corev1.PreferredSchedulingTerm{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{in}}}
		}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{term(corev1.LabelTopologyZone, "zone-a"), term(corev1.LabelHostname, "n1"), term(corev1.LabelArchStable, "arm64")},
		}}
	}
	a := pod("a", soft)
	r := solve(compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{a}, Nodes: []*corev1.Node{node("n1")}}), nothing)
	given, kept := r.GivenUp(a)
	assert.Equal(t, []string{"preferred node affinity: kubernetes.io/arch in (arm64)"}, given)
	assert.Len(t, kept, 2)
}

// A free volume that was given to an unplaced pod is available to others in the end. So is one that
// kube-scheduler may give to it instead.
func TestVolumesOfUnplacedPodsAreFree(t *testing.T) {
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	local := "local"
	volumeOn := func(name, node string) *corev1.PersistentVolume {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pv.Spec.StorageClassName, pv.Spec.AccessModes = local, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}},
		}}}
		return pv
	}
	with := func(claim string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		}
	}
	s := scheduling.Snapshot{
		Nodes:          []*corev1.Node{node("n1"), node("n2")},
		StorageClasses: []*storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: local}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &mode}},
	}
	for _, name := range []string{"x", "y"} {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		c.Spec.StorageClassName, c.Spec.AccessModes = &local, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		s.PersistentVolumeClaims = append(s.PersistentVolumeClaims, c)
	}
	third := pod("third", on("n1"), func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("4", "1Gi") })

	s.PersistentVolumes = []*corev1.PersistentVolume{volumeOn("1", "n1")}
	apart := func(p *corev1.Pod) { // it may go nowhere: a spread counts an empty zone
		two := int32(2)
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, MinDomains: &two, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	}
	s.Pods = []*corev1.Pod{pod("a", with("x"), apart), pod("b", with("y")), pod("c", on("n2"))}
	result := solve(compile(t, s), nothing)
	require.Len(t, result.Bindings(), 1)
	assert.Equal(t, "b", result.Bindings()[0].Pod.Name)

	s.PersistentVolumes = []*corev1.PersistentVolume{volumeOn("1", "n1"), volumeOn("2", "n2")}
	s.Pods = []*corev1.Pod{pod("a", with("x")), third}
	result = solve(compile(t, s), nothing)
	require.Len(t, result.Bindings(), 1)
	assert.Equal(t, "n2", result.Bindings()[0].Node)
}
