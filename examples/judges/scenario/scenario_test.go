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
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/features"
	limitrangeregistry "k8s.io/kubernetes/pkg/registry/core/limitrange"
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/examples/judges/karpenter"
	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
)

func TestOneSeedOneScenario(t *testing.T) {
	for seed := range uint64(5) {
		o := scenario.Options{Pods: 100, Limits: true, Changing: true}
		a, b := scenario.Generate(seed, o), scenario.Generate(seed, o)
		require.Equal(t, a, b)
		one, err := a.YAML()
		require.NoError(t, err)
		two, err := b.YAML()
		require.NoError(t, err)
		assert.Equal(t, string(one), string(two))
		assert.GreaterOrEqual(t, len(a.Pods), 100)
		assert.NotEqual(t, a.Pods, scenario.Generate(seed+1, scenario.Options{Pods: 100}).Pods)
	}
}

// TestAnAPIServerAcceptsEveryPod asks the API server's own validation.
func TestAnAPIServerAcceptsEveryPod(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.UserNamespacesHostNetworkSupport, true) // which a cluster may have on
	for seed := range uint64(120) {
		s := scenario.Generate(seed, scenario.Options{Changing: seed%2 == 1})
		for _, pod := range s.Pods {
			pod.UID, pod.Spec.Priority = "", nil // as it was made, for the limit ranges of today
		}
		c, err := kubejudge.Admit(t.Context(), s.Cluster())
		require.NoError(t, err, s.String())
		for i, pod := range append(c.Pods, c.Running...) {
			internal := &core.Pod{}
			require.NoError(t, corev1conversion.Convert_v1_Pod_To_core_Pod(pod, internal, nil))
			assert.Empty(t, podregistry.Strategy.Validate(t.Context(), internal), "%s: %s", s, pod.Name)
			for _, l := range s.LimitRanges {
				if l.Namespace == pod.Namespace && i < len(c.Pods) {
					l = l.DeepCopy()
					corev1conversion.SetObjectDefaults_LimitRange(l)
					assert.NoError(t, limitranger.PodValidateLimitFunc(l, internal), "%s: %s", s, pod.Name)
				}
			}
		}
		for _, l := range s.LimitRanges {
			internal := &core.LimitRange{}
			require.NoError(t, corev1conversion.Convert_v1_LimitRange_To_core_LimitRange(l, internal, nil))
			assert.Empty(t, limitrangeregistry.Strategy.Validate(t.Context(), internal), "%s: %s", s, l.Name)
		}
	}
}

// TestEveryConstraintIsDrawn counts what 200 seeds bring beside the fields and shapes of TestEveryPairIsDrawn; what the
// generator no longer draws is what nobody judges.
func TestEveryConstraintIsDrawn(t *testing.T) {
	seen := map[string]int{}
	note := func(name string, is bool) {
		if is {
			seen[name]++
		} else {
			seen[name] += 0
		}
	}
	for seed := range uint64(200) {
		s := scenario.Generate(seed, scenario.Options{Limits: true})
		note("several pools", len(s.NodePools) > 1)
		note("daemonsets", len(s.DaemonSets) > 0)
		note("attach limits", len(s.CSINodes) > 0)
		note("bound volumes", len(s.PVs) > 0)
		for _, c := range s.PriorityClasses {
			note("a priority of all other pods", c.GlobalDefault)
		}
		for _, p := range s.NodePools {
			_, nodes := p.Spec.Limits["nodes"]
			note("limits of nodes", nodes)
			_, memory := p.Spec.Limits[corev1.ResourceMemory]
			note("limits of several resources", memory)
			note("lanes", p.Name == "lanes-spot")
		}
		for _, n := range s.Nodes {
			note("cordoned", n.Spec.Unschedulable)
			note("pool nodes", n.Labels[karpv1.NodePoolLabelKey] != "")
		}
		for _, p := range s.Running {
			for _, v := range p.Spec.Volumes {
				note("running pods with claims", v.PersistentVolumeClaim != nil)
			}
		}
		revisions := map[string]string{}
		for _, p := range s.Pods {
			app, hash := p.Labels["app"], p.Labels["pod-template-hash"]
			note("several revisions of an app", revisions[app] != "" && revisions[app] != hash)
			revisions[app] = hash
			for _, c := range p.Spec.TopologySpreadConstraints {
				note("spread "+c.TopologyKey, true)
				note("ScheduleAnyway", c.WhenUnsatisfiable == corev1.ScheduleAnyway)
				note("spread of others", c.LabelSelector != nil && c.LabelSelector.MatchLabels["app"] != p.Labels["app"])
			}
			note("three spreads", len(p.Spec.TopologySpreadConstraints) > 2)
			if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
				terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
				note("a dozen node-affinity terms", len(terms) == 12)
				note("node-affinity terms of several expressions", len(terms[0].MatchExpressions) > 2)
			}
			note("host ports", p.Spec.Containers[0].Ports != nil)
			for _, v := range p.Spec.Volumes {
				note("ephemeral volumes", v.Ephemeral != nil)
				note("claims", v.PersistentVolumeClaim != nil)
			}
		}
	}
	for name, count := range seen {
		assert.Positive(t, count, name)
	}
	assert.Len(t, seen, 26)
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
		"Namespace": func() client.Object { return &corev1.Namespace{} }, "RuntimeClass": func() client.Object { return &nodev1.RuntimeClass{} }, "PriorityClass": func() client.Object { return &schedulingv1.PriorityClass{} },
		"StorageClass": func() client.Object { return &storagev1.StorageClass{} }, "CSIDriver": func() client.Object { return &storagev1.CSIDriver{} },
		"VolumeAttachment": func() client.Object { return &storagev1.VolumeAttachment{} }, "CSIStorageCapacity": func() client.Object { return &storagev1.CSIStorageCapacity{} },
		"PersistentVolume": func() client.Object { return &corev1.PersistentVolume{} }, "PersistentVolumeClaim": func() client.Object { return &corev1.PersistentVolumeClaim{} },
		"NodePool": func() client.Object { return &karpv1.NodePool{} }, "Node": func() client.Object { return &corev1.Node{} },
		"CSINode": func() client.Object { return &storagev1.CSINode{} }, "DaemonSet": func() client.Object { return &appsv1.DaemonSet{} },
		"Pod": func() client.Object { return &corev1.Pod{} }, "NodeClaim": func() client.Object { return &karpv1.NodeClaim{} },
		"LimitRange":          func() client.Object { return &corev1.LimitRange{} },
		"PodDisruptionBudget": func() client.Object { return &policyv1.PodDisruptionBudget{} },
	}
	seen := map[string]bool{}
	for seed := range uint64(10) {
		s := scenario.Generate(seed, scenario.Options{Limits: true, Changing: true})
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
	// What Karpenter overlooks: zones that it leaves open, a claim that several pods share before it is bound, a
	// preferred term that contradicts a selector, the host port of a daemonset pod still missing on a node that runs, and
	// that a pod waits for another scheduler.
	// Any other plugin here means that this package tells the two judges different things.
	for plugin := range refused {
		assert.Contains(t, []string{"PodTopologySpread", "InterPodAffinity", "VolumeBinding", "NodeAffinity", "NodePorts", "SchedulerName"}, plugin)
	}
}

// TestWhatKubeSchedulerPlacesItselfIsValid is the judge judged: whatever kube-scheduler places by its own choice, it must
// accept again in that order, and every node of it must be one that its filters were asked about.
func TestWhatKubeSchedulerPlacesItselfIsValid(t *testing.T) {
	placed, compared := 0, 0
	for seed := range uint64(150) { // few of Karpenter's plans bind half of their pods without volumes, and they differ from run to run
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

func TestMinimizeTakesTermsOneByOne(t *testing.T) {
	// The fault: a pod with two affinity terms, and one that is being deleted.
	terms := func(p *corev1.Pod) int {
		if p.Spec.Affinity == nil || p.Spec.Affinity.PodAffinity == nil {
			return 0
		}
		return len(p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	fails := func(s scenario.Scenario) bool {
		return slices.ContainsFunc(s.Pods, func(p *corev1.Pod) bool { return terms(p) >= 2 }) &&
			slices.ContainsFunc(s.Running, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	}
	found := 0
	for seed := uint64(1); found < 5; seed++ {
		s := scenario.Tangled(seed)
		if !fails(s) {
			continue
		}
		found++
		small := scenario.Minimize(s, fails)
		require.Len(t, small.Pods, 1)
		assert.Len(t, small.Running, 1)
		assert.Equal(t, 2, terms(small.Pods[0]))
		assert.Nil(t, small.Pods[0].Spec.Affinity.NodeAffinity)
		assert.Nil(t, small.Pods[0].Spec.Affinity.PodAntiAffinity)
		for _, term := range small.Pods[0].Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			assert.Empty(t, term.MatchLabelKeys)
			assert.Nil(t, term.NamespaceSelector)
		}
		assert.Empty(t, small.Namespaces)
		assert.Empty(t, small.RuntimeClasses)
	}
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
