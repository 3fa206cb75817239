package scenario_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/examples/judges/karpenter"
	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
)

func TestOneSeedOneScenario(t *testing.T) {
	for seed := range uint64(5) {
		a, b := scenario.Generate(seed, scenario.Options{Pods: 100, Limits: true}), scenario.Generate(seed, scenario.Options{Pods: 100, Limits: true})
		require.Equal(t, a, b)
		one, err := a.YAML()
		require.NoError(t, err)
		two, err := b.YAML()
		require.NoError(t, err)
		assert.Equal(t, string(one), string(two))
		assert.Len(t, a.Pods, 100)
		assert.NotEqual(t, a.Pods, scenario.Generate(seed+1, scenario.Options{Pods: 100}).Pods)
	}
}

// TestAnAPIServerAcceptsEveryPod asks the API server's own validation.
func TestAnAPIServerAcceptsEveryPod(t *testing.T) {
	for seed := range uint64(60) {
		s := scenario.Generate(seed, scenario.Options{})
		c, err := kubejudge.Admit(t.Context(), s.Cluster())
		require.NoError(t, err, s.String())
		for _, pod := range append(c.Pods, c.Running...) {
			internal := &core.Pod{}
			require.NoError(t, corev1conversion.Convert_v1_Pod_To_core_Pod(pod, internal, nil))
			assert.Empty(t, podregistry.Strategy.Validate(t.Context(), internal), "%s: %s", s, pod.Name)
		}
	}
}

// TestEveryConstraintIsDrawn counts what 60 seeds bring; a constraint that the generator no longer draws is one that
// nobody judges.
func TestEveryConstraintIsDrawn(t *testing.T) {
	seen := map[string]int{}
	note := func(name string, is bool) {
		if is {
			seen[name]++
		} else {
			seen[name] += 0
		}
	}
	for seed := range uint64(60) {
		s := scenario.Generate(seed, scenario.Options{Limits: true})
		note("several pools", len(s.NodePools) > 1)
		note("nodes", len(s.Nodes) > 0)
		note("running pods", len(s.Running) > 0)
		note("daemonsets", len(s.DaemonSets) > 0)
		note("attach limits", len(s.CSINodes) > 0)
		note("bound volumes", len(s.PVs) > 0)
		for _, p := range s.NodePools {
			note("limits", p.Spec.Limits != nil)
			note("weights", p.Spec.Weight != nil)
			note("pool taints", p.Spec.Template.Spec.Taints != nil)
			note("startup taints", p.Spec.Template.Spec.StartupTaints != nil)
			note("lanes", p.Name == "lanes-spot")
		}
		for _, n := range s.Nodes {
			note("cordoned", n.Spec.Unschedulable)
			note("pool nodes", n.Labels[karpv1.NodePoolLabelKey] != "")
		}
		for _, p := range s.Pods {
			for _, c := range p.Spec.TopologySpreadConstraints {
				note("spread "+c.TopologyKey, true)
				note("ScheduleAnyway", c.WhenUnsatisfiable == corev1.ScheduleAnyway)
				note("minDomains", c.MinDomains != nil)
				note("nodeAffinityPolicy", c.NodeAffinityPolicy != nil)
				note("nodeTaintsPolicy", c.NodeTaintsPolicy != nil)
				note("spread matchLabelKeys", c.MatchLabelKeys != nil)
				note("spread of others", c.LabelSelector.MatchLabels["app"] != p.Labels["app"])
			}
			if a := p.Spec.Affinity; a != nil {
				note("required node affinity", a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil)
				note("preferred node affinity", a.NodeAffinity != nil && a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution != nil)
				note("preferred affinity", a.PodAffinity != nil && a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution != nil)
				note("preferred anti-affinity", a.PodAntiAffinity != nil && a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution != nil)
				var terms []corev1.PodAffinityTerm
				if a.PodAffinity != nil {
					note("affinity", a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil)
					terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
				}
				if a.PodAntiAffinity != nil {
					note("anti-affinity", a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil)
					terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
				}
				for _, term := range terms {
					note("namespaces", term.Namespaces != nil)
					note("namespaceSelector", term.NamespaceSelector != nil)
					note("affinity matchLabelKeys", term.MatchLabelKeys != nil)
					note("affinity mismatchLabelKeys", term.MismatchLabelKeys != nil)
				}
			}
			note("selector", p.Spec.NodeSelector != nil)
			note("tolerations", p.Spec.Tolerations != nil)
			note("host ports", p.Spec.Containers[0].Ports != nil)
			note("host network", p.Spec.HostNetwork)
			note("priority", p.Spec.PriorityClassName != "")
			note("gates", p.Spec.SchedulingGates != nil)
			note("init containers", p.Spec.InitContainers != nil)
			note("pod resources", p.Spec.Resources != nil)
			for _, v := range p.Spec.Volumes {
				note("ephemeral volumes", v.Ephemeral != nil)
				note("claims", v.PersistentVolumeClaim != nil)
			}
		}
	}
	for name, count := range seen {
		assert.Positive(t, count, name)
	}
	assert.Len(t, seen, 43)
}

func TestDimensionsCanBeLeftOut(t *testing.T) {
	for seed := range uint64(20) {
		s := scenario.Generate(seed, scenario.Options{NoVolumes: true, NoExisting: true, NoPreferences: true})
		assert.Empty(t, s.Nodes)
		assert.Empty(t, s.Running)
		assert.Empty(t, s.PVCs)
		for _, p := range s.NodePools {
			assert.Nil(t, p.Spec.Limits)
		}
		for _, p := range s.Pods {
			assert.Empty(t, p.Spec.Volumes)
			for _, c := range p.Spec.TopologySpreadConstraints {
				assert.Equal(t, corev1.DoNotSchedule, c.WhenUnsatisfiable)
			}
		}
	}
}

// TestManifestsReadBack decodes each document strictly into its own type, and asks Karpenter's validation about the pools.
func TestManifestsReadBack(t *testing.T) {
	kinds := map[string]func() client.Object{
		"Namespace": func() client.Object { return &corev1.Namespace{} }, "PriorityClass": func() client.Object { return &schedulingv1.PriorityClass{} },
		"StorageClass": func() client.Object { return &storagev1.StorageClass{} }, "CSIDriver": func() client.Object { return &storagev1.CSIDriver{} },
		"PersistentVolume": func() client.Object { return &corev1.PersistentVolume{} }, "PersistentVolumeClaim": func() client.Object { return &corev1.PersistentVolumeClaim{} },
		"NodePool": func() client.Object { return &karpv1.NodePool{} }, "Node": func() client.Object { return &corev1.Node{} },
		"CSINode": func() client.Object { return &storagev1.CSINode{} }, "DaemonSet": func() client.Object { return &appsv1.DaemonSet{} },
		"Pod": func() client.Object { return &corev1.Pod{} },
	}
	seen := map[string]bool{}
	for seed := range uint64(10) {
		s := scenario.Generate(seed, scenario.Options{Limits: true})
		text, err := s.YAML()
		require.NoError(t, err)
		documents := strings.Split(string(text), "---\n")[1:]
		require.Len(t, documents, len(s.Objects()))
		for i, want := range s.Objects() {
			kind := want.GetObjectKind().GroupVersionKind().Kind
			require.Contains(t, kinds, kind)
			seen[kind] = true
			got := kinds[kind]()
			require.NoError(t, yaml.UnmarshalStrict([]byte(documents[i]), got))
			require.True(t, equality.Semantic.DeepEqual(want, got), "%s: %s %s", s, kind, want.GetName())
		}
		for _, p := range s.NodePools {
			assert.NoError(t, p.DeepCopy().RuntimeValidate(t.Context()), s.String())
		}
		catalogue, err := scenario.CatalogueJSON(s.Catalogue)
		require.NoError(t, err)
		var back []scenario.Type
		require.NoError(t, json.Unmarshal(catalogue, &back))
		assert.True(t, equality.Semantic.DeepEqual(s.Catalogue, back))
	}
	assert.Len(t, seen, len(kinds))
}

// judgeKarpenter plans with Karpenter and judges the plan.
func judgeKarpenter(t *testing.T, s scenario.Scenario) (karpenter.Result, kubejudge.Verdict) {
	t.Helper()
	in, err := s.Karpenter(t.Context())
	require.NoError(t, err, s.String())
	result, err := karpenter.Solve(t.Context(), in)
	require.NoError(t, err, s.String())
	var nodes []*corev1.Node
	var csi []*storagev1.CSINode
	var plan []kubejudge.Binding
	for i, n := range result.NewNodes {
		name := fmt.Sprintf("new-%d", i)
		nodes = append(nodes, n.Node(name))
		for _, p := range n.Pods {
			plan = append(plan, kubejudge.Binding{Pod: p, Node: name})
		}
	}
	for _, e := range result.Existing {
		for _, p := range e.Pods {
			plan = append(plan, kubejudge.Binding{Pod: p, Node: e.Node})
		}
	}
	cluster, order, err := s.Planned(t.Context(), nodes, csi, plan)
	require.NoError(t, err, s.String())
	verdict, err := kubejudge.JudgeAnyOrder(t.Context(), cluster, order)
	require.NoError(t, err, s.String())
	return result, verdict
}

func TestBothJudgesReadEveryScenario(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 5
	}
	placed, left, accepted, total := 0, 0, 0, 0
	refused := map[string]int{}
	for seed := range seeds {
		s := scenario.Generate(seed, scenario.Options{})
		result, verdict := judgeKarpenter(t, s)
		assert.Equal(t, len(s.Pods), result.Placed()+len(result.Unplaced), s.String())
		placed, left = placed+result.Placed(), left+len(result.Unplaced)
		accepted, total = accepted+len(verdict.Accepted), total+len(verdict.Accepted)+len(verdict.Refused)
		for _, r := range verdict.Refused {
			refused[r.Plugin]++
		}
	}
	t.Logf("Karpenter placed %d pods and left %d; kube-scheduler accepted %d of %d binds; refused by %v", placed, left, accepted, total, refused)
	assert.Greater(t, placed, 2*left, "most pods must be such as can be placed")
	assert.Greater(t, float64(accepted), 0.9*float64(total))
	// What Karpenter 1.14.1 overlooks: zones that it leaves open, a claim that several pods share before it is bound, a
	// preferred term that contradicts a selector, and the host port of a daemonset pod still missing on a node that runs.
	// Any other plugin here means that this package tells the two judges different things.
	for plugin := range refused {
		assert.Contains(t, []string{"PodTopologySpread", "InterPodAffinity", "VolumeBinding", "NodeAffinity", "NodePorts"}, plugin)
	}
}

// TestWhatKubeSchedulerPlacesItselfIsValid is the judge judged: whatever kube-scheduler places by its own choice, it must
// accept again in that order, and every node of it must be one that its filters were asked about.
func TestWhatKubeSchedulerPlacesItselfIsValid(t *testing.T) {
	placed, compared := 0, 0
	for seed := range uint64(20) {
		s := scenario.Generate(seed, scenario.Options{})
		in, err := s.Karpenter(t.Context())
		require.NoError(t, err)
		result, err := karpenter.Solve(t.Context(), in)
		require.NoError(t, err)
		var nodes []*corev1.Node
		for i, n := range result.NewNodes {
			nodes = append(nodes, n.Node(fmt.Sprintf("new-%d", i)))
		}
		cluster, _, err := s.Planned(t.Context(), nodes, nil, nil)
		require.NoError(t, err)
		free, err := kubejudge.Free(t.Context(), cluster, nil)
		require.NoError(t, err)
		verdict, err := kubejudge.Judge(t.Context(), cluster, free.Accepted)
		require.NoError(t, err)
		assert.True(t, verdict.Valid(), "%s: %s", s, verdict)
		placed += len(verdict.Accepted)

		// A pod that was bound before is as good as one that runs. Those with volumes would have to be bound to them too.
		at := map[types.NamespacedName]string{}
		var rest []kubejudge.Binding
		for i, b := range free.Accepted {
			if i < len(free.Accepted)/2 {
				at[b.Pod] = b.Node
			} else {
				rest = append(rest, b)
			}
		}
		later := cluster
		later.Pods = nil
		for _, p := range cluster.Pods {
			node, bound := at[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]
			if !bound || len(p.Spec.Volumes) > 0 {
				later.Pods = append(later.Pods, p)
				continue
			}
			p = p.DeepCopy()
			p.Spec.NodeName = node
			later.Running = append(slices.Clone(later.Running), p)
			delete(at, types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
		}
		if len(at) > 0 {
			continue
		}
		compared++
		verdict, err = kubejudge.Judge(t.Context(), later, rest)
		require.NoError(t, err)
		assert.True(t, verdict.Valid(), "%s: %s", s, verdict)
	}
	assert.Greater(t, compared, 3)
	assert.Greater(t, placed, 800)
}

func TestMinimizeFindsWhatMatters(t *testing.T) {
	// The fault: two pods that want the same port, one of them spread by zone.
	fails := func(s scenario.Scenario) bool {
		ports, spread := 0, false
		for _, p := range s.Pods {
			if len(p.Spec.Containers[0].Ports) > 0 {
				ports++
				spread = spread || len(p.Spec.TopologySpreadConstraints) > 0
			}
		}
		return ports >= 2 && spread && len(s.NodePools) > 0
	}
	found := 0
	for seed := range uint64(200) {
		s := scenario.Generate(seed, scenario.Options{})
		if !fails(s) {
			continue
		}
		found++
		before := scenario.Generate(seed, scenario.Options{})
		small := scenario.Minimize(s, fails)
		assert.Equal(t, before, s, "the argument is left alone")
		assert.True(t, fails(small))
		assert.Len(t, small.Pods, 2)
		assert.Len(t, small.NodePools, 1)
		assert.Empty(t, small.Nodes)
		assert.Empty(t, small.Running)
		assert.Empty(t, small.DaemonSets)
		assert.Empty(t, small.Catalogue)
		constraints := 0
		for _, p := range small.Pods {
			constraints += len(p.Spec.TopologySpreadConstraints)
			assert.Nil(t, p.Spec.NodeSelector)
			assert.Empty(t, p.Spec.Volumes)
		}
		assert.LessOrEqual(t, constraints, 2, "replicas of one deployment keep theirs together")
		if found == 5 {
			return
		}
	}
	assert.Equal(t, 5, found)
}

func TestFamilies(t *testing.T) {
	for name, family := range map[string]func(int, uint64) []*corev1.Pod{
		"diverse": scenario.Diverse, "usual": scenario.Usual, "deployments": scenario.Deployments, "distinct": scenario.Distinct,
	} {
		t.Run(name, func(t *testing.T) {
			got := family(2503, 7)
			require.Len(t, got, 2503)
			assert.Equal(t, got, family(2503, 7))
			assert.NotEqual(t, got, family(2503, 8))
			names, sizes := map[string]bool{}, map[string]bool{}
			for _, p := range got {
				names[p.Name] = true
				requests := p.Spec.Containers[0].Resources.Requests
				sizes[requests.Cpu().String()+" "+requests.Memory().String()] = true
			}
			assert.Len(t, names, 2503)
			if name == "distinct" {
				assert.Len(t, sizes, 2503)
			} else {
				assert.LessOrEqual(t, len(sizes), 30)
			}
		})
	}
}
