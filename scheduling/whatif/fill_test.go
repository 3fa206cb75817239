package whatif_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// sized is a pod of so many CPUs and so much memory.
func sized(name, at, cpu, memory string) *corev1.Pod {
	return pod(name, at, cpu, func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse(memory)
	})
}

// Many pods are put in node by node, those first that are largest along what a node has left: one by one the large ones take CPUs
// where there is little memory and memory where there are few CPUs, and the rest finds no place.
func TestManyPodsFillNodes(t *testing.T) {
	wide, tall := node("wide", "z1", "8"), node("tall", "z1", "4")
	wide.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("8Gi")
	tall.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("32Gi")
	var pods []*corev1.Pod
	for i := range 4 {
		pods = append(pods, sized(fmt.Sprintf("c%d", i), "old", "2", "2Gi"), sized(fmt.Sprintf("m%d", i), "old", "1", "8Gi"))
	}
	c := compile(t, []*corev1.Node{node("old", "z1", "16"), wide, tall}, pods...)
	a := c.Ask(t.Context(), whatif.Question{Remove: []string{"old"}, Pods: pods, Explain: true})
	require.True(t, a.OK(), a.Why)
	for _, p := range a.Placements {
		assert.Equal(t, map[byte]string{'c': "wide", 'm': "tall"}[p.Pod.Name[0]], p.Node, p.Pod.Name)
	}
}

// Places of indistinguishable pods are permuted, so that the pods of a node go to few others, and existing nodes come
// before those to buy.
func TestPlacesAreExchanged(t *testing.T) {
	var pods []*corev1.Pod
	to := map[*corev1.Pod]string{}
	for i := range 4 {
		for _, from := range []string{"a", "b"} {
			p := pod(fmt.Sprintf("%s%d", from, i), from, "1")
			pods = append(pods, p)
			to[p] = []string{"x", "y"}[i%2] // those of each node are divided
		}
	}
	c := compile(t, []*corev1.Node{node("a", "z1", "4"), node("b", "z1", "4"), node("x", "z1", "4"), node("y", "z1", "4")}, pods...)
	a := c.Ask(t.Context(), whatif.Question{Remove: []string{"b", "a"}, Pods: pods, Place: to, Elsewhere: true})
	require.True(t, a.OK(), a.Why)
	went := map[byte]map[string]int{'a': {}, 'b': {}}
	for _, p := range a.Placements {
		went[p.Pod.Name[0]][p.Node]++
	}
	assert.Equal(t, map[byte]map[string]int{'a': {"y": 4}, 'b': {"x": 4}}, went)
}

// Where pods are spread, those of a domain that is to have fewer leave it first, and all others stay in theirs: then each node by
// itself can be given back, in the order in which they were asked about.
func TestExchangeKeepsDomains(t *testing.T) {
	nodes := []*corev1.Node{node("a", "z1", "4"), node("b", "z1", "4"), node("c", "z2", "4"), node("x", "z1", "4"), node("y", "z2", "4")}
	var pods []*corev1.Pod
	for _, at := range []string{"a", "a", "b", "b", "c"} { // four in z1, one in z2
		pods = append(pods, pod(fmt.Sprintf("p%d", len(pods)), at, "1", spread(corev1.LabelTopologyZone)))
	}
	to := map[*corev1.Pod]string{pods[0]: "x", pods[1]: "x", pods[2]: "x", pods[3]: "y", pods[4]: "y"}
	c := compile(t, nodes, pods...)
	a := c.Ask(t.Context(), whatif.Question{Remove: []string{"a", "b", "c"}, Pods: pods, Place: to, Elsewhere: true})
	require.True(t, a.OK(), a.Why)
	got := map[*corev1.Pod]string{}
	for _, p := range a.Placements {
		got[p.Pod] = p.Node
	}
	assert.Equal(t, "y", got[pods[0]], "the first of z1 leaves")
	assert.Equal(t, []string{"x", "x", "x", "y"}, []string{got[pods[1]], got[pods[2]], got[pods[3]], got[pods[4]]})
	at := c
	for i, from := range []string{"a", "b", "c"} {
		moving := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.Spec.NodeName != from })
		step := at.Ask(t.Context(), whatif.Question{Remove: []string{from}, Pods: moving, Place: maps.Clone(got), Explain: true})
		require.True(t, step.OK(), "%d: %s", i, step.Why)
		at = step.After()
	}
}

// Pods that need what few nodes have are placed before those that only keep these company, and others go to nodes that have none of
// it as long as there are any.
func TestRareResourcesComeFirst(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	card := node("card", "z1", "4")
	card.Status.Allocatable[gpu], card.Status.Capacity[gpu] = resource.MustParse("2"), resource.MustParse("2")
	small := pod("small", "old", "2", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("1") })
	large := pod("large", "old", "4")
	c := compile(t, []*corev1.Node{node("old", "z1", "8"), card, node("plain", "z1", "5"), node("tiny", "z1", "1")}, small, large)
	a := c.Ask(t.Context(), whatif.Question{Remove: []string{"old"}, Pods: []*corev1.Pod{large, small}, Explain: true})
	require.True(t, a.OK(), a.Why)
	assert.Equal(t, []string{"small>card", "large>plain"}, places(a))
}

// What ends with the nodes that go does not change the order of pods, or a plan made after that would find other places.
func TestDaemonsDoNotOrderPods(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	cards := func(n string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpu: resource.MustParse(n)}
		}
	}
	card := node("card", "z1", "8")
	card.Status.Allocatable[gpu], card.Status.Capacity[gpu] = resource.MustParse("4"), resource.MustParse("4")
	large, small, asks := pod("large", "old", "4"), pod("small", "old", "1", cards("1")), pod("asks", "", "1", cards("3"))
	agent := pod("agent", "old", "20", func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", Controller: new(true)}}
	})
	for _, pods := range [][]*corev1.Pod{{large, small, asks}, {large, small, asks, agent}} {
		c := compile(t, []*corev1.Node{card, node("plain", "z1", "8"), node("spare", "z1", "9"), node("old", "z1", "32")}, pods...)
		assert.Equal(t, []string{"large>plain", "small>card"}, places(c.Ask(t.Context(), whatif.Question{Remove: []string{"old"}, Pods: pods[:2]})))
	}
}

// Where few pods have volumes, free room for them does not outweigh all else: a pod goes to the fullest node.
func TestCommonResourcesDoNotOrderNodes(t *testing.T) {
	const disk = corev1.ResourceEphemeralStorage
	with := func(n *corev1.Node, size string) *corev1.Node {
		n.Status.Allocatable[disk], n.Status.Capacity[disk] = resource.MustParse(size), resource.MustParse(size)
		return n
	}
	p := pod("p", "old", "1")
	asks := pod("asks", "", "1", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests[disk] = resource.MustParse("1Gi") })
	c := compile(t, []*corev1.Node{with(node("full", "z1", "2"), "100Gi"), with(node("idle", "z1", "8"), "90Gi"), with(node("old", "z1", "32"), "100Gi")}, p, asks)
	assert.Equal(t, []string{"p>full"}, places(c.Ask(t.Context(), whatif.Question{Remove: []string{"old"}, Pods: []*corev1.Pod{p}})))
}
