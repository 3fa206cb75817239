package bruteforce_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/judges/bruteforce"
)

// machine is a node of 100 cpus in a zone; none if it is empty.
func machine(name, zone string, taints ...corev1.Taint) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	if zone != "" {
		n.Labels[corev1.LabelTopologyZone] = zone
	}
	n.Spec.Taints = taints
	n.Status.Allocatable = amounts("100", "100Gi")
	n.Status.Allocatable[corev1.ResourcePods] = n.Status.Allocatable[corev1.ResourceCPU]
	return n
}

// labelled is a pod with the label app that the changes are made to.
func labelled(name, app, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}}}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: image, Resources: corev1.ResourceRequirements{Requests: amounts("1", "1Gi")}}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func spreads(key, app string, maxSkew int32, changes ...func(*corev1.TopologySpreadConstraint)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := corev1.TopologySpreadConstraint{MaxSkew: maxSkew, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
		for _, change := range changes {
			change(&c)
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

func inAffinity(key, app string, anti bool) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{}
		}
		terms := []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
		if anti {
			p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
		} else {
			p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
		}
	}
}

func notIn(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpNotIn, Values: []string{value}}}}},
		}}}
	}
}

func tolerates(t corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, t) }
}

// The model gives the answers of the examples in Kubernetes' documentation, under Pod Topology
// Spread Constraints, Assigning Pods to Nodes, and Taints and Tolerations.
func TestExamplesOfTheDocumentation(t *testing.T) {
	const zone, host = corev1.LabelTopologyZone, corev1.LabelHostname
	four := []*corev1.Node{machine("node1", "zoneA"), machine("node2", "zoneA"), machine("node3", "zoneB"), machine("node4", "zoneB")}
	three := []*corev1.Node{machine("node1", "zoneA"), machine("node2", "zoneA"), machine("node3", "zoneB")}
	// on are running pods of an app, one on each of the nodes.
	on := func(app string, nodes ...string) (out []*corev1.Pod) {
		for i, n := range nodes {
			out = append(out, labelled(fmt.Sprint(app, i), app, n))
		}
		return out
	}
	taints := []corev1.Taint{{Key: "key1", Value: "value1", Effect: corev1.TaintEffectNoSchedule}, {Key: "key1", Value: "value1", Effect: corev1.TaintEffectNoExecute}, {Key: "key2", Value: "value2", Effect: corev1.TaintEffectNoSchedule}}
	ignore, five := corev1.NodeInclusionPolicyIgnore, int32(5)
	for _, c := range []struct {
		what    string
		nodes   []*corev1.Node
		running []*corev1.Pod
		pod     *corev1.Pod
		refused []bruteforce.Filter
	}{
		{
			"one spread over zones", four, on("foo", "node1", "node2", "node3"), labelled("mypod", "foo", "", spreads(zone, "foo", 1)),
			[]bruteforce.Filter{bruteforce.PodTopologySpread, bruteforce.PodTopologySpread, "", ""},
		},
		{
			"spreads over zones and nodes", four, on("foo", "node1", "node2", "node3"), labelled("mypod", "foo", "", spreads(zone, "foo", 1), spreads(host, "foo", 1)),
			[]bruteforce.Filter{bruteforce.PodTopologySpread, bruteforce.PodTopologySpread, bruteforce.PodTopologySpread, ""},
		},
		{
			"spreads that conflict", three, on("foo", "node1", "node1", "node2", "node3", "node3"), labelled("mypod", "foo", "", spreads(zone, "foo", 1), spreads(host, "foo", 1)),
			[]bruteforce.Filter{bruteforce.PodTopologySpread, bruteforce.PodTopologySpread, bruteforce.PodTopologySpread},
		},
		{
			"a zone that node affinity excludes does not count", append(four, machine("node5", "zoneC")), on("foo", "node1", "node2", "node3"),
			labelled("mypod", "foo", "", notIn(zone, "zoneC"), spreads(zone, "foo", 1)),
			[]bruteforce.Filter{bruteforce.PodTopologySpread, bruteforce.PodTopologySpread, "", "", bruteforce.NodeAffinity},
		},
		{
			"it counts if the policy is Ignore", append(four, machine("node5", "zoneC")), on("foo", "node1", "node2", "node3"),
			labelled("mypod", "foo", "", notIn(zone, "zoneC"), spreads(zone, "foo", 1, func(c *corev1.TopologySpreadConstraint) { c.NodeAffinityPolicy = &ignore })),
			[]bruteforce.Filter{bruteforce.PodTopologySpread, bruteforce.PodTopologySpread, bruteforce.PodTopologySpread, bruteforce.PodTopologySpread, bruteforce.NodeAffinity},
		},
		{
			"2/2/2 with minDomains 5 and skew 2",
			[]*corev1.Node{machine("a", "a"), machine("b", "b"), machine("c", "c")},
			on("foo", "a", "a", "b", "b", "c", "c"),
			labelled("mypod", "foo", "", spreads(zone, "foo", 2, func(c *corev1.TopologySpreadConstraint) { c.MinDomains = &five })),
			[]bruteforce.Filter{bruteforce.PodTopologySpread, bruteforce.PodTopologySpread, bruteforce.PodTopologySpread},
		},
		{
			"a node without the key does not count, and takes no pod", append(three, machine("node9", "")), on("foo", "node1"), labelled("mypod", "foo", "", spreads(zone, "foo", 1)),
			[]bruteforce.Filter{bruteforce.PodTopologySpread, bruteforce.PodTopologySpread, "", bruteforce.PodTopologySpread},
		},
		{
			"a cache keeps its pods apart", three, on("store", "node1", "node2"), labelled("mypod", "store", "", inAffinity(host, "store", true)),
			[]bruteforce.Filter{bruteforce.InterPodAffinity, bruteforce.InterPodAffinity, ""},
		},
		{
			"a web server runs beside a cache", three, on("store", "node1"), labelled("mypod", "web", "", inAffinity(host, "store", false)),
			[]bruteforce.Filter{"", bruteforce.InterPodAffinity, bruteforce.InterPodAffinity},
		},
		{
			"anti-affinity of a running pod keeps others away, too", three,
			[]*corev1.Pod{labelled("s", "store", "node1", inAffinity(zone, "web", true))},
			labelled("mypod", "web", ""),
			[]bruteforce.Filter{bruteforce.InterPodAffinity, bruteforce.InterPodAffinity, ""},
		},
		{
			"the first pod of a group needs no other", append(three, machine("node9", "")), nil, labelled("mypod", "web", "", inAffinity(zone, "web", false)),
			[]bruteforce.Filter{"", "", "", bruteforce.InterPodAffinity},
		},
		{
			"the second does", three, on("web", "node3"), labelled("mypod", "web", "", inAffinity(zone, "web", false)),
			[]bruteforce.Filter{bruteforce.InterPodAffinity, bruteforce.InterPodAffinity, ""},
		},
		{
			"the third taint is not tolerated",
			[]*corev1.Node{machine("node1", "", taints...), machine("node2", "", taints[:2]...)},
			nil,
			labelled("mypod", "web", "", tolerates(corev1.Toleration{Key: "key1", Operator: corev1.TolerationOpEqual, Value: "value1", Effect: corev1.TaintEffectNoSchedule}),
				tolerates(corev1.Toleration{Key: "key1", Operator: corev1.TolerationOpEqual, Value: "value1", Effect: corev1.TaintEffectNoExecute})),
			[]bruteforce.Filter{bruteforce.TaintToleration, ""},
		},
		{
			"no key and Exists tolerates everything",
			[]*corev1.Node{machine("node1", "", taints...)},
			nil, labelled("mypod", "web", "", tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists})),
			[]bruteforce.Filter{""},
		},
	} {
		m := bruteforce.New(c.nodes, nil, append(c.running, c.pod), nil)
		var got []bruteforce.Filter
		for n := range c.nodes {
			got = append(got, m.Start().Refuses(m.Kind(namespace+"/mypod"), n))
		}
		assert.Equal(t, c.refused, got, c.what)
	}
}
