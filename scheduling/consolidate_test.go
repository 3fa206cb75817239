package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// largePerPod buys a large node for each pod, on demand in zone-a or in the zone that its domain
// asks for, whatever it costs.
func largePerPod(p *scheduling.Problem, items []scheduling.Item) scheduling.Outcome {
	var out scheduling.Outcome
	for i, item := range items {
		for s, shape := range p.Shapes {
			if o := suiting(shape, item); p.InstanceType(s).Name == "large" && o >= 0 {
				for range item.Count {
					out.Bins = append(out.Bins, scheduling.OutcomeBin{Shape: s, Offering: o, Shares: []scheduling.Share{{Item: i, Count: 1}}})
				}
				break
			}
		}
	}
	return out
}

// bill is what a plan buys: the price, and the nodes by type and zone.
func bill(r *scheduling.Result) (price float64, nodes map[string]int) {
	nodes = map[string]int{}
	for _, n := range r.NewNodes() {
		price += n.PricePerHour
		nodes[n.InstanceType.Name+" in "+n.Zone]++
	}
	return price, nodes
}

// New nodes are given up if their pods have room elsewhere, unless the caller says that they stay as
// packed.
func TestNodesAreGivenUp(t *testing.T) {
	pods := []*corev1.Pod{pod("a"), pod("b"), pod("c")}
	s := scheduling.Snapshot{Pods: pods, Pools: []scheduling.Pool{pool("default")}}
	packed := solve(compile(t, s), asPacked(largePerPod))
	require.Len(t, packed.NewNodes(), 3)
	require.True(t, packed.IsAsPacked())

	r := solve(compile(t, s), largePerPod)
	require.Len(t, r.Bindings(), 3)
	require.False(t, r.IsAsPacked())
	before, _ := bill(packed)
	after, nodes := bill(r)
	require.Less(t, after, before/2)
	require.Len(t, r.NewNodes(), 1, "%v", nodes)

	s.Nodes = []*corev1.Node{node("n1")}
	require.Empty(t, solve(compile(t, s), largePerPod).NewNodes(), "an existing node has room")

	apart, err := scheduling.Compile(s, &scheduling.Options{Apart: func(*corev1.Pod) string { return "" }})
	require.NoError(t, err)
	require.Len(t, solve(apart, largePerPod).NewNodes(), 3, "the packer alone knows who may share a node")
}

// Spreads count every zone for sale, so that pods stay in their zones, and so do pods that others
// count. If zones may be left alone, the pods come together.
func TestSpreadPodsStayInTheirZones(t *testing.T) {
	spread := func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		}}
	}
	s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("a", spread), pod("b", spread)}, Pools: []scheduling.Pool{pool("default")}}
	r := solve(compile(t, s), largePerPod)
	_, nodes := bill(r)
	require.Len(t, r.Bindings(), 2)
	assert.Equal(t, map[string]int{"small in zone-a": 1, "small in zone-b": 1}, nodes)

	p, err := scheduling.Compile(s, &scheduling.Options{LeaveZones: true})
	require.NoError(t, err)
	assert.Len(t, solve(p, largePerPod).NewNodes(), 1)
}

// Pods stay where others prefer them to be, though kube-scheduler would accept them elsewhere. What
// keeps pods on nodes with a label is in TestLabelsThatNodesMayLack of examples/plan.
func TestPodsStayWhereOthersPreferThem(t *testing.T) {
	loud := pod("loud", func(p *corev1.Pod) { p.Labels["app"] = "loud" })
	quiet := pod("quiet", func(p *corev1.Pod) {
		away := corev1.PodAffinityTerm{TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "loud"}}}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: away}}}}
	})
	s := scheduling.Snapshot{Pods: []*corev1.Pod{loud, quiet}, Pools: []scheduling.Pool{pool("default")}}
	dear := 1000.0
	p, err := scheduling.Compile(s, &scheduling.Options{PreferencePrice: &dear})
	require.NoError(t, err)
	require.Len(t, solve(p, largePerPod).NewNodes(), 2)
}

// A node of a pool is not replaced by one of a pool of less weight, however cheap.
func TestWeightsComeBeforePrices(t *testing.T) {
	dear, cheap := pool("dear", func(p *nodepool.NodePool) { p.Weight = 10 }), pool("cheap")
	dear.Types = types()[1:]
	dear.Types[0].Offerings = dear.Types[0].Offerings[:1]
	s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("a"), pod("b")}, Pools: []scheduling.Pool{dear, cheap}}
	for weight, want := range map[int32]string{10: "large", 0: "small"} {
		s.Pools[0].Weight = weight
		r := solve(compile(t, s), largePerPod)
		require.Len(t, r.NewNodes(), 1)
		require.Equal(t, want, r.NewNodes()[0].InstanceType.Name, "weight %d", weight)
	}
}

// A node is worth the preferences of its pods at their price, and those that hold in the new place
// are not given up.
func TestPreferencesHaveTheirPriceWhenNodesGo(t *testing.T) {
	prefer := func(zone string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
				{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}},
			}}}
		}
	}
	here, there := pod("here", prefer("zone-a")), pod("there", prefer("zone-b"))
	s := scheduling.Snapshot{Pods: []*corev1.Pod{here, there}, Nodes: []*corev1.Node{node("n1")}, Pools: []scheduling.Pool{pool("default")}}
	for price, want := range map[float64]int{0.1: 0, 1000: 1} {
		p, err := scheduling.Compile(s, &scheduling.Options{PreferencePrice: &price})
		require.NoError(t, err)
		r := solve(p, largePerPod)
		require.Len(t, r.Bindings(), 2)
		require.Len(t, r.NewNodes(), want, "price %v", price)
		given, kept := r.GivenUp(here)
		assert.Empty(t, given)
		assert.Len(t, kept, 1, "n1 is in the zone")
		given, _ = r.GivenUp(there)
		assert.Len(t, given, 1-want)
	}
}

// What is bought instead keeps within counts and limits, which are without the node that goes.
func TestWhatIsBoughtInsteadKeepsWithinLimits(t *testing.T) {
	wide := func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("1500m", "1Gi") } // one for each small node
	apart := func(p *corev1.Pod) {
		wide(p)
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		}}}
	}
	one := pool("default")
	one.Limits = list("16", "64Gi") // two large nodes
	s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("a", apart), pod("b", apart)}, Pools: []scheduling.Pool{one}}
	_, nodes := bill(solve(compile(t, s), largePerPod))
	require.Equal(t, map[string]int{"small in zone-a": 2}, nodes)

	for i := range one.Types[0].Offerings {
		one.Types[0].Offerings[i].ReservationCount = 1
	}
	s.Pods = append(s.Pods, pod("c", apart), pod("d", apart), pod("e", apart))
	s.Pools[0].Limits = nil
	_, nodes = bill(solve(compile(t, s), largePerPod))
	require.Equal(t, map[string]int{"small in zone-a": 2, "small in zone-b": 1, "large in zone-a": 2}, nodes, "there is one of each offering of small")
}
