package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

func terms(all ...corev1.NodeSelectorRequirement) []corev1.NodeSelectorTerm {
	var out []corev1.NodeSelectorTerm
	for _, e := range all {
		out = append(out, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{e}})
	}
	return out
}

func requires(all ...corev1.NodeSelectorRequirement) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms(all...)},
		}}
	}
}

// unreadable returns faults of a pod that an API server of this or another version may have stored.
func unreadable() map[string]func(*corev1.Pod) {
	large := corev1.NodeSelectorRequirement{Key: "size", Operator: corev1.NodeSelectorOpGt, Values: []string{"large"}}
	text := corev1.NodeSelectorRequirement{Key: "size", Operator: corev1.NodeSelectorOpIn, Values: []string{"no label!"}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "no label!"}}
	term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelTopologyZone, LabelSelector: selector}
	affinity := func(a corev1.Affinity) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Affinity = &a } }
	return map[string]func(*corev1.Pod){
		"required Gt large":         requires(large),
		"required value":            requires(text),
		"required unknown operator": requires(corev1.NodeSelectorRequirement{Key: "size", Operator: "Roughly", Values: []string{"1"}}),
		"required field": affinity(corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "spec.other", Operator: "In", Values: []string{"1"}}}}},
		}}}),
		"preferred Lt large": affinity(corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			{Weight: 1, Preference: terms(large)[0]},
		}}}),
		"required affinity":       affinity(corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}),
		"required anti-affinity":  affinity(corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}),
		"preferred anti-affinity": affinity(corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term}}}}),
		"namespace selector": affinity(corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelTopologyZone, NamespaceSelector: selector},
		}}}),
		"spread": func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, LabelSelector: selector}}
		},
		"spread of another version": func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: "Perhaps"}}
		},
		"ratio":                 func(p *corev1.Pod) { p.Annotations = map[string]string{"joinery-sdk.dev/ratio": "half and half"} },
		"toleration":            func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "a", Operator: "Roughly"}} },
		"toleration of nothing": func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Value: "a"}} },
		"tolerated effect":      func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "a", Effect: "Never"}} },
		"weight": affinity(corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: 101, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelTopologyZone}},
		}}}),
		"host port":           func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 65536}} },
		"request above limit": func(p *corev1.Pod) { p.Spec.Containers[0].Resources = requirementsOf("cpu", "2", "500m") },
		"init container's request above limit": func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Resources: requirementsOf("memory", "2Gi", "1Gi")}}
		},
		"pod's request above limit":           func(p *corev1.Pod) { r := requirementsOf("cpu", "2", "1"); p.Spec.Resources = &r },
		"request of a device below its limit": func(p *corev1.Pod) { p.Spec.Containers[0].Resources = requirementsOf("nvidia.com/gpu", "1", "2") },
		"huge pages below their limit":        func(p *corev1.Pod) { p.Spec.Containers[0].Resources = requirementsOf("hugepages-2Mi", "2Mi", "4Mi") },
	}
}

func requirementsOf(name corev1.ResourceName, request, limit string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse(request)}, Limits: corev1.ResourceList{name: resource.MustParse(limit)}}
}

// An empty term of required node affinity matches no node. If there is no other, the reason says so. API servers store such pods; that
// there is a term at all, only those of today demand.
func TestEmptyNodeSelectorTerms(t *testing.T) {
	zone := corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpExists}
	for name, c := range map[string]struct {
		terms  []corev1.NodeSelectorTerm
		placed bool
	}{
		"one":            {[]corev1.NodeSelectorTerm{{}}, false},
		"none":           {nil, false},
		"several":        {make([]corev1.NodeSelectorTerm, 3), false},
		"beside another": {append(terms(zone), corev1.NodeSelectorTerm{}), true},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod("a")
			p.UID = "u"
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: c.terms}}}
			s := scheduling.Snapshot{Pods: []*corev1.Pod{p}, Nodes: []*corev1.Node{node("n1")}}
			s.Nodes[0].Labels[corev1.LabelTopologyZone] = "z"
			require.NoError(t, s.Validate())
			result := solve(compile(t, s), nothing)
			if c.placed {
				assert.Len(t, result.Bindings(), 1)
				return
			}
			require.Len(t, result.Unplaced(), 1)
			assert.Contains(t, result.Unplaced()[0].Reasons()[0].Detail, "an empty nodeSelectorTerm matches no node")
		})
	}
}

// A user who may create pods must not stop the planning of a cluster: a pod that cannot be read is
// unplaced, and the others are placed.
func TestOneBadPodStopsNothing(t *testing.T) {
	controlled := func(p *corev1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r", Controller: &yes}}
	}
	for name, fault := range unreadable() {
		t.Run(name, func(t *testing.T) {
			s := scheduling.Snapshot{
				Pods:  []*corev1.Pod{pod("bad-0", fault), pod("good-0"), pod("runs-0", fault, on("n1"), controlled), pod("runs-1", on("n1"), controlled)},
				Nodes: []*corev1.Node{node("n1"), node("n2")}, Pools: []scheduling.Pool{pool("default")},
			}
			require.NoError(t, s.Check())
			require.ErrorContains(t, s.Validate(), "pod shop/bad-0: ")
			p := compile(t, s)
			result := solve(p, nothing)
			at, ok := p.Class("shop", "bad-0")
			require.True(t, ok)
			class := p.Classes[at]
			require.NotNil(t, class.Refusal)
			assert.Equal(t, scheduling.StagePod, class.Refusal.Stage)
			assert.Contains(t, class.Refusal.Detail, "it cannot be read: ")
			require.Len(t, result.Bindings(), 1)
			assert.Equal(t, "good-0", result.Bindings()[0].Pod.Name)

			c, err := whatif.Compile(s, nil)
			require.NoError(t, err)
			assert.Contains(t, c.Refuses(s.Pods[2]), "it cannot be read: ")
			assert.Empty(t, c.Refuses(s.Pods[3]))
		})
	}
}

// A pod that no API server would accept is unplaced, and the reason says why.
func TestForbiddenPodsHaveNoPlace(t *testing.T) {
	name := "micro"
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"vm": "yes"}}}
	asks := func(vm string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.RuntimeClassName, p.Spec.NodeSelector = &name, map[string]string{"vm": vm} }
	}
	n := node("n1")
	n.Labels["vm"] = "no"
	s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("bad-0", asks("no")), pod("good-0")}, Nodes: []*corev1.Node{n}, RuntimeClasses: []*nodev1.RuntimeClass{class}}
	p := compile(t, s)
	result := solve(p, nothing)
	require.Len(t, result.Bindings(), 1)
	assert.Equal(t, "good-0", result.Bindings()[0].Pod.Name)
	at, ok := p.Class("shop", "bad-0")
	require.True(t, ok)
	assert.Equal(t, &scheduling.Reason{Stage: scheduling.StagePod, Detail: "an API server refuses it: spec.nodeSelector requires vm=no, but its RuntimeClass micro requires vm=yes"}, p.Classes[at].Refusal)
}

// Any user who may create a pod may also create a DaemonSet.
func TestOneBadDaemonSetStopsNothing(t *testing.T) {
	for name, fault := range unreadable() {
		t.Run(name, func(t *testing.T) {
			template := pod("", fault)
			s := scheduling.Snapshot{
				Pods: []*corev1.Pod{pod("good-0")}, Nodes: []*corev1.Node{node("n1")}, Pools: []scheduling.Pool{pool("default")},
				DaemonSets: []*appsv1.DaemonSet{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "d"},
					Spec:       appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: template.ObjectMeta, Spec: template.Spec}},
				}},
			}
			require.ErrorContains(t, s.Validate(), "DaemonSet shop/d: spec.template.")
			p := compile(t, s)
			require.Len(t, p.Notes, 1)
			assert.Contains(t, p.Notes[0], "DaemonSet shop/d cannot be read: ")
			assert.Len(t, solve(p, nothing).Bindings(), 1)
			_, err := whatif.Compile(s, nil)
			require.NoError(t, err)
		})
	}
}

// kube-scheduler and the DaemonSet controller ignore required terms that they cannot read, if
// another term can be met.
func TestReadableTermsCount(t *testing.T) {
	zone := corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"zone-a"}}
	large := corev1.NodeSelectorRequirement{Key: "size", Operator: corev1.NodeSelectorOpGt, Values: []string{"large"}}
	p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0", requires(large, zone))}, Nodes: []*corev1.Node{node("n1")}})
	assert.Len(t, solve(p, nothing).Bindings(), 1)

	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "d"}}
	d.Spec.Template.Spec = pod("", requires(large, zone)).Spec
	p = compile(t, scheduling.Snapshot{Nodes: []*corev1.Node{node("n1")}, DaemonSets: []*appsv1.DaemonSet{d}})
	assert.Equal(t, []string{"shop/d"}, p.Existing[0].DaemonSets)
}
