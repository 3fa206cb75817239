package scheduling_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func pod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}}}
	p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list("1", "1Gi")}}}
	for _, e := range edits {
		e(p)
	}
	return p
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

// instanceType has offerings on demand in two zones and spot in the first.
func instanceType(name string, cpu, memory string, price float64) instancetypes.InstanceType {
	capacity := list(cpu, memory)
	capacity[corev1.ResourcePods] = resource.MustParse("20")
	offering := func(zone, capacityType string, price float64) instancetypes.Offering {
		return instancetypes.Offering{Price: price, Available: true, Requirements: requirements.MustOf(
			requirements.In(corev1.LabelTopologyZone, zone), requirements.In(instancetypes.LabelCapacityType, capacityType))}
	}
	return instancetypes.InstanceType{
		Name: name, Capacity: capacity,
		Requirements: requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, name), requirements.In(corev1.LabelArchStable, "amd64"),
			requirements.In(corev1.LabelTopologyZone, "zone-a", "zone-b"), requirements.In(instancetypes.LabelCapacityType, "on-demand", "spot")),
		Offerings: []instancetypes.Offering{offering("zone-a", "on-demand", price), offering("zone-b", "on-demand", price), offering("zone-a", "spot", price/3)},
	}
}

func types() []instancetypes.InstanceType {
	return []instancetypes.InstanceType{instanceType("small", "2", "8Gi", 0.1), instanceType("large", "8", "32Gi", 0.4)}
}

func pool(name string, edits ...func(*nodepool.NodePool)) scheduling.Pool {
	p := nodepool.NodePool{Name: name}
	for _, e := range edits {
		e(&p)
	}
	return scheduling.Pool{NodePool: p, Types: types()}
}

func node(name string, edits ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelTopologyZone: "zone-a", corev1.LabelArchStable: "amd64",
	}}}
	n.Status.Allocatable = list("4", "16Gi")
	n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("20")
	n.Status.Capacity = n.Status.Allocatable
	for _, e := range edits {
		e(n)
	}
	return n
}

func compile(t *testing.T, s scheduling.Snapshot) *scheduling.Problem {
	t.Helper()
	p, err := scheduling.Compile(s, nil)
	require.NoError(t, err)
	return p
}

func TestClassesAreWhatBearsOnPlacement(t *testing.T) {
	pods := []*corev1.Pod{
		pod("web-10"), pod("web-2"), pod("web-1"),
		pod("big-0", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("2", "1Gi") }),
		pod("picky-0", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b"} }),
		pod("tolerant-0", func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }),
		// Images, environments and labels that no selector looks at do not matter to a scheduler.
		pod("web-3", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "other"; p.Labels["build"] = "7" }),
	}
	p := compile(t, scheduling.Snapshot{Pods: pods, Pools: []scheduling.Pool{pool("default")}})
	var got []string
	for _, c := range p.Classes {
		names := make([]string, len(c.Pods))
		for i, member := range c.Pods {
			names[i] = member.Name
		}
		got = append(got, fmt.Sprint(names))
	}
	assert.Equal(t, []string{"[big-0]", "[picky-0]", "[tolerant-0]", "[web-1 web-2 web-3 web-10]"}, got)
}

// A running pod keeps one version of an app out of its zone; the other version may go there.
func TestRunningPodsMayTellReplicasApart(t *testing.T) {
	version := func(v string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels["version"] = v } }
	apart := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector:  &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				MatchLabelKeys: []string{"version"}, TopologyKey: corev1.LabelTopologyZone,
			}},
		}}
	}
	pods := []*corev1.Pod{pod("web-0", version("1")), pod("web-1", version("2"))}
	assert.Len(t, compile(t, scheduling.Snapshot{Pods: pods}).Classes, 1, "nobody looks at the version")
	pods = append(pods, pod("old", version("2"), apart, on("n1")))
	p := compile(t, scheduling.Snapshot{Pods: pods, Nodes: []*corev1.Node{node("n1")}})
	require.Len(t, p.Classes, 2)

	// There is one node, and only version 1 may go there.
	var items []string
	for _, it := range p.Items() {
		items = append(items, it.Name)
	}
	assert.Equal(t, []string{"shop/web-0"}, items)
}

// A pod that may also run outside all pools is not ours if no pool can meet its other alternatives.
func TestAlternativesBesideThePools(t *testing.T) {
	optedOut := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "karpenter.sh/nodepool", Operator: corev1.NodeSelectorOpDoesNotExist}}}
	or := func(key string, op corev1.NodeSelectorOperator, values ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}, optedOut},
			}}}
		}
	}
	for name, c := range map[string]struct {
		edit func(*corev1.Pod)
		ours bool
	}{
		"a label of others":       {or("example.com/managed-group", corev1.NodeSelectorOpIn, "system"), false},
		"any value of it":         {or("example.com/managed-group", corev1.NodeSelectorOpExists), false},
		"not having it":           {or("example.com/managed-group", corev1.NodeSelectorOpDoesNotExist), true},
		"a label of agents":       {or("karpenter.sh/registered", corev1.NodeSelectorOpExists), true},
		"a pool that is not here": {or("karpenter.sh/nodepool", corev1.NodeSelectorOpIn, "other"), false},
		"this pool":               {or("karpenter.sh/nodepool", corev1.NodeSelectorOpIn, "default"), true},
		"its older key":           {or("karpenter.sh/provisioner-name", corev1.NodeSelectorOpDoesNotExist), false},
		"a label of types":        {or(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpExists), true},
	} {
		p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("a-0", c.edit)}, Pools: []scheduling.Pool{pool("default")}})
		assert.Equal(t, !c.ours, len(p.Ignored) == 1, name)
	}
}

func TestPodsThatAreNotOurs(t *testing.T) {
	now := metav1.Now()
	namespaces := []*corev1.Namespace{
		{ObjectMeta: metav1.ObjectMeta{Name: "going", DeletionTimestamp: &now}},
		{ObjectMeta: metav1.ObjectMeta{Name: "gone"}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}},
		{ObjectMeta: metav1.ObjectMeta{Name: "stays"}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}},
	}
	for name, c := range map[string]struct {
		edit func(*corev1.Pod)
		want string // empty: it is ours; "-": it is in no list
	}{
		"plain":            {func(*corev1.Pod) {}, ""},
		"gated":            {func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}} }, `scheduling gate "wait"`},
		"other scheduler":  {func(p *corev1.Pod) { p.Spec.SchedulerName = "batch" }, `scheduler "batch" places it`},
		"default, by name": {func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }, ""},
		"nominated":        {func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" }, ""},
		"of a DaemonSet": {
			func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent"}} },
			`DaemonSet "agent" runs it on every node`,
		},
		"opted out": {func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "karpenter.sh/provisioner-name", Operator: corev1.NodeSelectorOpDoesNotExist}}}},
			}}}
		}, "it opted out of every pool by karpenter.sh/nodepool DoesNotExist"},
		"claims devices": {
			func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} },
			`resource claim "gpu": dynamic resource allocation is not supported`,
		},
		"its namespace goes":             {func(p *corev1.Pod) { p.Namespace = "going" }, `its namespace "going" is being deleted, and the pod with it`},
		"its namespace ended":            {func(p *corev1.Pod) { p.Namespace = "gone" }, `its namespace "gone" is being deleted, and the pod with it`},
		"its namespace stays":            {func(p *corev1.Pod) { p.Namespace = "stays" }, ""},
		"on a leaving node":              {func(p *corev1.Pod) { p.Spec.NodeName = "leaving" }, ""},
		"on one, and its namespace goes": {func(p *corev1.Pod) { p.Spec.NodeName, p.Namespace = "leaving", "going" }, "-"},
		"finished":                       {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, "-"},
		"running":                        {on("n"), "-"},
		"terminating":                    {func(p *corev1.Pod) { now := metav1.Now(); p.DeletionTimestamp = &now }, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			p := compile(t, scheduling.Snapshot{
				Pods: []*corev1.Pod{pod("a-0", c.edit)}, Pools: []scheduling.Pool{pool("default")}, Namespaces: namespaces,
				Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "leaving", DeletionTimestamp: &now, Finalizers: []string{"karpenter.sh/termination"}}}},
			})
			switch c.want {
			case "":
				assert.Len(t, p.Classes, 1)
				assert.Empty(t, p.Ignored)
			case "-":
				assert.Empty(t, p.Classes)
				assert.Empty(t, p.Ignored)
			default:
				assert.Empty(t, p.Classes)
				require.Len(t, p.Ignored, 1)
				assert.Equal(t, c.want, p.Ignored[0].Why)
			}
		})
	}
}

func daemonSet(name, cpu string, edits ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: name}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list(cpu, "0")}}}
	for _, e := range edits {
		e(d)
	}
	return d
}

func TestDaemonsTakeTheirShareByOffering(t *testing.T) {
	inZoneA := func(d *appsv1.DaemonSet) {
		d.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "zone-a"}
	}
	p := compile(t, scheduling.Snapshot{
		Pods: []*corev1.Pod{pod("web-0")}, Pools: []scheduling.Pool{pool("default")},
		DaemonSets: []*appsv1.DaemonSet{daemonSet("everywhere", "100m"), daemonSet("zonal", "500m", inZoneA)},
	})
	cpu := map[string][]int64{}
	for i := range p.Shapes {
		for _, o := range p.Shapes[i].Offerings {
			zone, _ := o.Labels.Get(corev1.LabelTopologyZone).Single()
			key := p.InstanceType(i).Name + " " + zone
			if !slices.Contains(cpu[key], p.Shapes[i].Free[0]) {
				cpu[key] = append(cpu[key], p.Shapes[i].Free[0])
			}
		}
	}
	assert.Equal(t, map[string][]int64{"small zone-a": {1400}, "small zone-b": {1900}, "large zone-a": {7400}, "large zone-b": {7900}}, cpu)
}

func TestDaemonsKeepAwayFromTaintsOfPools(t *testing.T) {
	tainted := pool("tainted", func(p *nodepool.NodePool) {
		p.Taints = []corev1.Taint{{Key: "gpu", Value: "true", Effect: corev1.TaintEffectNoSchedule}}
		p.StartupTaints = []corev1.Taint{{Key: "starting", Effect: corev1.TaintEffectNoSchedule}}
	})
	tolerant := func(d *appsv1.DaemonSet) {
		d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	}
	p := compile(t, scheduling.Snapshot{
		Pods: []*corev1.Pod{pod("web-0")}, Pools: []scheduling.Pool{tainted},
		DaemonSets: []*appsv1.DaemonSet{daemonSet("plain", "100m"), daemonSet("tolerant", "10m", tolerant)},
	})
	names, total := p.Daemons(0)
	assert.Equal(t, []string{"system/tolerant"}, names)
	assert.Equal(t, "10m", total.Cpu().String())
}

func TestRoomsCountWhatRunsAndWhatDaemonsWillTake(t *testing.T) {
	p := compile(t, scheduling.Snapshot{
		Pods: []*corev1.Pod{
			pod("web-0"), pod("old-0", on("n1")), pod("old-1", on("n1"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
			pod("agent-x", on("n2"), func(p *corev1.Pod) {
				p.Namespace = "system"
				p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent"}}
				p.Spec.Containers[0].Resources.Requests = list("100m", "0")
			}),
		},
		Nodes:      []*corev1.Node{node("n2"), node("n1")},
		DaemonSets: []*appsv1.DaemonSet{daemonSet("agent", "100m")},
	})
	require.Len(t, p.Existing, 2)
	assert.Equal(t, "n1", p.Existing[0].Node.Name)
	assert.Equal(t, int64(4000-1000-100), p.Existing[0].Free[0], "one pod runs, one has failed, the daemon is missing")
	assert.Equal(t, int64(18), p.Existing[0].Free[2])
	assert.Equal(t, int64(4000-100), p.Existing[1].Free[0], "the daemon is there and counted once")
}

func TestNodesThatAreFullOfDaemonsAreNoted(t *testing.T) {
	p := compile(t, scheduling.Snapshot{
		Pods:  []*corev1.Pod{pod("web-0"), pod("old", on("n1"), func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("1", "64Gi") })},
		Nodes: []*corev1.Node{node("n1")}, DaemonSets: []*appsv1.DaemonSet{daemonSet("huge", "5"), daemonSet("small", "1", func(d *appsv1.DaemonSet) {
			delete(d.Spec.Template.Spec.Containers[0].Resources.Requests, corev1.ResourceMemory) // of which the node has too little for what runs there
		})},
	})
	assert.Equal(t, []string{"node n1 is too small for DaemonSet system/huge: short of cpu"}, p.Notes)
}

// A daemon whose host port is taken does not run, so nothing counts it.
func TestDaemonsWhosePortIsTaken(t *testing.T) {
	port := []corev1.ContainerPort{{HostPort: 9100}}
	agent := func(name string) *appsv1.DaemonSet {
		return daemonSet(name, "100m", func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers[0].Ports = port })
	}
	compiled := func(ports []corev1.ContainerPort, daemons ...*appsv1.DaemonSet) *scheduling.Problem {
		spread := pod("web-0", func(p *corev1.Pod) {
			p.Namespace = "system"
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"other"}}}},
			}}
		})
		return compile(t, scheduling.Snapshot{
			Pods:  []*corev1.Pod{spread, pod("old", on("n1"), func(p *corev1.Pod) { p.Spec.Containers[0].Ports = ports })},
			Pools: []scheduling.Pool{pool("default")},
			Nodes: []*corev1.Node{node("n1", func(n *corev1.Node) {
				n.Labels = map[string]string{corev1.LabelTopologyZone: "zone-full"}
				n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("1200m")
			})},
			DaemonSets: daemons,
		})
	}
	free := compiled(nil, agent("agent"))
	require.Empty(t, free.Notes)
	require.Len(t, solve(free, onePerNode).Bindings(), 1, "a daemon in each zone: the pod may go anywhere")
	taken := compiled(port, agent("agent"))
	require.Equal(t, []string{"node n1 has no room for DaemonSet system/agent: host port 9100/TCP is taken"}, taken.Notes)
	require.Empty(t, solve(taken, onePerNode).Bindings(), "none in the full zone, one on a new node, where the pod would be the second")
	require.Len(t, solve(compiled(nil, agent("agent"), agent("other")), onePerNode).Bindings(), 1, "two daemons of one port: a node has the first alone, new or not")
}

func TestNodesOnTheirWayOutTakeNothing(t *testing.T) {
	now := metav1.Now()
	p := compile(t, scheduling.Snapshot{
		Pods: []*corev1.Pod{pod("web-0")},
		Nodes: []*corev1.Node{
			node("deleted", func(n *corev1.Node) { n.DeletionTimestamp = &now }),
			node("disrupted", func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
			}),
		},
	})
	assert.Empty(t, p.Existing)
	assert.Len(t, p.Notes, 2)
}

func TestStartingNodesAreSeenAsTheyWillBe(t *testing.T) {
	starting := node("new", func(n *corev1.Node) {
		n.Labels["karpenter.sh/nodepool"], n.Labels["karpenter.sh/registered"] = "default", "true"
		n.Spec.Taints = []corev1.Taint{
			{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule}, {Key: "warming-up", Effect: corev1.TaintEffectNoSchedule},
		}
	})
	withStartup := pool("default", func(p *nodepool.NodePool) {
		p.StartupTaints = []corev1.Taint{{Key: "warming-up", Effect: corev1.TaintEffectNoSchedule}}
	})
	s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0")}, Nodes: []*corev1.Node{starting}, Pools: []scheduling.Pool{withStartup}}
	placed := settleOn(t, compile(t, s))
	assert.Equal(t, []string{"new: web-0"}, placed)
	starting.Labels["karpenter.sh/initialized"] = "true" // now the taints are there to stay
	assert.Empty(t, settleOn(t, compile(t, s)))
}

// A rebooting node comes back with its capacity, and the taints of its start keep no pod away.
func TestRebootingNodesAreSeenAsTheyWillBe(t *testing.T) {
	taint := func(keys ...string) (out []corev1.Taint) {
		for _, key := range keys {
			out = append(out, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
		return out
	}
	withStartup := pool("default", func(p *nodepool.NodePool) { p.StartupTaints = taint("warming-up") })
	for name, c := range map[string]struct {
		taints []string
		want   []string
	}{
		"asked for":            {[]string{"karpenter.sh/rebooting"}, []string{"there: web-0"}},
		"down":                 {[]string{"karpenter.sh/rebooting", "node.kubernetes.io/unreachable", "warming-up"}, []string{"there: web-0"}},
		"for some pods only":   {[]string{"karpenter.sh/rebooting", "team"}, nil},
		"cordoned as well":     {[]string{"karpenter.sh/rebooting", "node.kubernetes.io/unschedulable"}, nil},
		"leaving all the same": {[]string{"karpenter.sh/rebooting", "karpenter.sh/disrupted"}, nil},
		"not rebooting":        {[]string{"warming-up"}, nil},
	} {
		there := node("there", func(n *corev1.Node) {
			n.Labels["karpenter.sh/nodepool"], n.Labels["karpenter.sh/registered"], n.Labels["karpenter.sh/initialized"] = "default", "true", "true"
			n.Spec.Taints = taint(c.taints...)
		})
		s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0")}, Nodes: []*corev1.Node{there}, Pools: []scheduling.Pool{withStartup}}
		assert.Equal(t, c.want, settleOn(t, compile(t, s)), name)
		if slices.Contains(c.taints, "karpenter.sh/rebooting") { // a claim that speaks of the time before
			s.NodeClaims = []scheduling.NodeClaim{{Name: "c", NodeName: "there", Initialized: true, StartupTaints: taint("warming-up")}}
			assert.Equal(t, c.want, settleOn(t, compile(t, s)), name)
		}
	}
}

// settleOn puts the items of the first round onto existing nodes, one pod a node at a time, by
// labels and resources only. It returns the pods that were placed.
func settleOn(t *testing.T, p *scheduling.Problem) []string {
	t.Helper()
	var out []string
	for i, it := range p.Items() {
		for r := range p.Existing {
			if it.Requires.Compatible(p.Existing[r].Labels, requirements.Keys{}) && it.Requests[0] <= p.Existing[r].Free[0] {
				o := scheduling.Outcome{Existing: make([][]scheduling.Share, len(p.Existing))}
				o.Existing[r] = []scheduling.Share{{Item: i, Count: 1}}
				result, err := p.Solve(t.Context(), packing(func(_ *scheduling.Problem, items []scheduling.Item) scheduling.Outcome {
					if i >= len(items) {
						return scheduling.Outcome{}
					}
					return o
				}))
				require.NoError(t, err)
				for _, b := range result.Bindings() {
					out = append(out, b.Node+": "+b.Pod.Name)
				}
				break
			}
		}
	}
	return out
}

func TestLimitsAreWhatExistingNodesLeave(t *testing.T) {
	limited := pool("default", func(p *nodepool.NodePool) {
		p.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10"), "nodes": resource.MustParse("3")}
	})
	own := node("n1", func(n *corev1.Node) { n.Labels["karpenter.sh/provisioner-name"] = "default" })
	p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0")}, Pools: []scheduling.Pool{limited}, Nodes: []*corev1.Node{own, node("foreign")}})
	require.Len(t, p.Pools, 1)
	assert.Equal(t, []corev1.ResourceName{corev1.ResourceCPU}, p.Pools[0].Limited)
	assert.Equal(t, []int64{6000}, p.Pools[0].Left)
	assert.Equal(t, 2, p.Pools[0].NodesLeft)
}

func TestPoolsOrderAndWhatIsLeftOut(t *testing.T) {
	replicas := int64(3)
	p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0")}, Pools: []scheduling.Pool{
		pool("b"), pool("a"), pool("heavy", func(p *nodepool.NodePool) { p.Weight = 10 }), pool("static", func(p *nodepool.NodePool) { p.Replicas = &replicas }),
	}})
	var names []string
	for _, k := range p.Pools {
		names = append(names, k.Name)
	}
	assert.Equal(t, []string{"heavy", "a", "b"}, names)
}

// noSpot is a custom constraint.
type noSpot struct{}

func (noSpot) Narrow(p *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
	if p.Labels["app"] == "forbidden" {
		return required, &scheduling.Reason{Stage: scheduling.StagePod, Detail: "forbidden pods run nowhere"}
	}
	return required.Intersect(requirements.AnyOf(requirements.MustOf(requirements.NotIn(instancetypes.LabelCapacityType, "spot")))), nil
}

func TestAConstraintOfOnesOwn(t *testing.T) {
	s := scheduling.Snapshot{
		Pods: []*corev1.Pod{pod("web-0"), pod("x-0", func(p *corev1.Pod) {
			p.Labels = map[string]string{"app": "forbidden"}
			p.Spec.NodeSelector = map[string]string{"x": "y"}
		})},
		Pools: []scheduling.Pool{pool("default")},
	}
	p, err := scheduling.Compile(s, &scheduling.Options{Constraints: []scheduling.Constraint{noSpot{}}})
	require.NoError(t, err)
	require.Len(t, p.Items(), 1)
	assert.False(t, p.Items()[0].Requires.Matches(map[string]string{instancetypes.LabelCapacityType: "spot"}))
	class, ok := p.Class("shop", "x-0")
	require.True(t, ok)
	for _, u := range solve(p, nothing).Unplaced() {
		if u.Class == class {
			assert.Equal(t, "forbidden pods run nowhere", u.Reasons()[0].String())
		}
	}
}

func TestMalformedPodsAreNamed(t *testing.T) {
	bad := pod("bad-0", func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: "in", Values: []string{"b"}}}}},
		}}}
	})
	err := (&scheduling.Snapshot{Pods: []*corev1.Pod{bad, pod("good-0")}}).Validate()
	var invalid *scheduling.InvalidError
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, "pod shop/bad-0", invalid.What)
	assert.ErrorContains(t, err, `spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: "in"`)
	assert.ErrorContains(t, err, `did you mean "In"?`)
}

// Nothing of what is handed in changes.
func TestTheSnapshotIsOnlyRead(t *testing.T) {
	pods := []*corev1.Pod{pod("b-1"), pod("b-0"), pod("a-0", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: list("1", "1Gi")}
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, MatchLabelKeys: []string{"app"},
		}}
	})}
	var before []*corev1.Pod
	for _, p := range pods {
		before = append(before, p.DeepCopy())
	}
	n := node("n1")
	beforeNode := n.DeepCopy()
	settleOn(t, compile(t, scheduling.Snapshot{Pods: pods, Nodes: []*corev1.Node{n}, Pools: []scheduling.Pool{pool("default")}}))
	assert.Equal(t, before, pods)
	assert.Equal(t, beforeNode, n)
}
