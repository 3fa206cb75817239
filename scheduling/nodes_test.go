package scheduling_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// bound returns how many pods are planned onto existing nodes.
func bound(t *testing.T, s scheduling.Snapshot) int {
	t.Helper()
	return len(solve(compile(t, s), nothing).Bindings()) // existing nodes are filled whatever the packer says
}

// A node offers pods its allocatable. Capacity replaces it only if there is no allocatable at all,
// as when an API server stores the node.
func TestAllocatableIsTakenAtItsWord(t *testing.T) {
	disk := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
	}
	for name, c := range map[string]struct {
		edit   func(*corev1.Node)
		placed int
	}{
		"of capacity alone": {func(n *corev1.Node) {
			n.Status.Capacity = n.Status.Capacity.DeepCopy()
			n.Status.Capacity[corev1.ResourceEphemeralStorage] = resource.MustParse("20Gi")
		}, 0},
		"without allocatable": {func(n *corev1.Node) {
			n.Status.Capacity = n.Status.Capacity.DeepCopy()
			n.Status.Capacity[corev1.ResourceEphemeralStorage] = resource.MustParse("20Gi")
			n.Status.Allocatable = nil
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.placed, bound(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("a", disk)}, Nodes: []*corev1.Node{node("n1", c.edit)}}))
		})
	}
}

// What a kubelet has granted to a pod in place belongs to that pod, not to the replicas listed
// after it.
func TestResizedPodsAreCountedOneByOne(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	grant := []corev1.ContainerStatus{{Name: "main", Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2500m")}}}}
	for name, resize := range map[string]func(*corev1.Pod){
		"a container": func(p *corev1.Pod) { p.Status.ContainerStatuses = grant },
		"a sidecar":   func(p *corev1.Pod) { p.Status.InitContainerStatuses = grant },
	} {
		t.Run(name, func(t *testing.T) {
			replicas := make([]*corev1.Pod, 2)
			first := pod("there", func(p *corev1.Pod) {
				p.Spec.NodeName = "n1"
				if p.Spec.Containers[0].Name = "main"; name == "a sidecar" {
					p.Spec.Containers[0].RestartPolicy = &always
					p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, nil
				}
			})
			for i := range replicas {
				own := *first // they share what their template says
				own.Name, replicas[i] = fmt.Sprintf("there-%d", i), &own
			}
			free := func() int64 {
				return compile(t, scheduling.Snapshot{Pods: append([]*corev1.Pod{pod("a")}, replicas...), Nodes: []*corev1.Node{node("n1")}}).Existing[0].Free[0]
			}
			before := free()
			resize(replicas[0])
			own := replicas[0].Spec.Containers
			if len(own) == 0 {
				own = replicas[0].Spec.InitContainers
			}
			asked := own[0].Resources.Requests["cpu"]
			assert.Equal(t, before-(2500-asked.MilliValue()), free())
			resize(replicas[1])
			assert.Equal(t, before-2*(2500-asked.MilliValue()), free())
		})
	}
}

// A node without a hostname is in no domain of hostnames. Pods that ask for one do not go there,
// and spreads that ask for one do not count it.
func TestNodesWithoutAHostname(t *testing.T) {
	hostless := func(n *corev1.Node) { delete(n.Labels, corev1.LabelHostname) }
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	over := func(key string) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: web}
	}
	near := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: web,
		}}}}
	}
	running := pod("there", func(p *corev1.Pod) { p.Spec.NodeName = "n1" })
	for name, c := range map[string]struct {
		pods   []*corev1.Pod
		placed int
	}{
		"nothing asked":        {[]*corev1.Pod{pod("a")}, 1},
		"affinity by hostname": {[]*corev1.Pod{pod("a", near), running}, 0},
		"spread over hostnames": {[]*corev1.Pod{pod("a", func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{over(corev1.LabelHostname)}
		})}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.placed, bound(t, scheduling.Snapshot{Pods: c.pods, Nodes: []*corev1.Node{node("n1", hostless)}}))
		})
	}
	// zone-b has no node that a spread over hostnames counts, so it is not a zone that waits for pods.
	both := func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{over(corev1.LabelTopologyZone), over(corev1.LabelHostname)}
		p.Spec.TopologySpreadConstraints[1].MaxSkew = 9
	}
	inB := func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = "zone-b" }
	s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("a", both), pod("b", both), pod("c", both)}, Nodes: []*corev1.Node{node("n1"), node("n2", inB, hostless)}}
	require.Equal(t, 3, bound(t, s))
	s.Nodes[1] = node("n2", inB, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "full", Effect: corev1.TaintEffectNoSchedule}}
	})
	require.Equal(t, 1, bound(t, s), "with a hostname it does")
}

// Every node to buy will have a hostname, which no daemon can name.
func TestDaemonsThatAskForAHostname(t *testing.T) {
	asking := func(op corev1.NodeSelectorOperator, values ...string) *appsv1.DaemonSet {
		return daemonSet("agent", "500m", func(d *appsv1.DaemonSet) {
			d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: op, Values: values}}}},
			}}}
		})
	}
	for _, c := range []struct {
		daemon *appsv1.DaemonSet
		runs   bool
	}{
		{asking(corev1.NodeSelectorOpExists), true},
		{asking(corev1.NodeSelectorOpNotIn, "n1"), true},
		{asking(corev1.NodeSelectorOpIn, "n1"), false},
		{asking(corev1.NodeSelectorOpDoesNotExist), false},
	} {
		p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("a")}, Pools: []scheduling.Pool{pool("default")}, DaemonSets: []*appsv1.DaemonSet{c.daemon}})
		names, _ := p.Daemons(0)
		assert.Equal(t, c.runs, len(names) == 1, c.daemon.Spec.Template.Spec.Affinity.NodeAffinity.String())
	}
}

// A selector of all namespaces includes that of a DaemonSet, whether or not the namespace is listed
// or has other pods.
func TestNamespacesOfDaemonsAreSelected(t *testing.T) {
	alone := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{},
		}}}}
	}
	s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("a", alone)}, Pools: []scheduling.Pool{pool("default")}}
	require.Len(t, solve(compile(t, s), careless(1, 0)).Bindings(), 1)
	s.DaemonSets = []*appsv1.DaemonSet{daemonSet("agent", "100m")}
	require.Empty(t, solve(compile(t, s), careless(1, 0)).Bindings())
}

// Of two daemons that want one port, the first runs. The capacity that is kept for both does not
// keep it away.
func TestOneOfTwoDaemonsHasThePort(t *testing.T) {
	port := []corev1.ContainerPort{{ContainerPort: 9100, HostPort: 9100}}
	var daemons []*appsv1.DaemonSet
	for i := range 2 {
		daemons = append(daemons, daemonSet(fmt.Sprintf("agent-%d", i), "2500m", func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers[0].Ports = port }))
	}
	same := pod("a", func(p *corev1.Pod) { // there is no cpu left for others
		p.Spec.Containers[0].Ports = port
		p.Spec.Containers[0].Resources.Requests = nil
	})
	require.Zero(t, bound(t, scheduling.Snapshot{Pods: []*corev1.Pod{same}, Nodes: []*corev1.Node{node("n1")}, DaemonSets: daemons}))
	require.Equal(t, 1, bound(t, scheduling.Snapshot{Pods: []*corev1.Pod{same}, Nodes: []*corev1.Node{node("n1")}}))
}

// Replicas are not planned as one class if they differ in a label that a daemon keeps away from.
func TestLabelsThatDaemonsKeepAwayFromTellPodsApart(t *testing.T) {
	daemon := daemonSet("agent", "100m", func(d *appsv1.DaemonSet) {
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"noisy": "yes"}}, NamespaceSelector: &metav1.LabelSelector{},
		}}}}
	})
	s := scheduling.Snapshot{
		Pods:  []*corev1.Pod{pod("a", func(p *corev1.Pod) { p.Labels = map[string]string{"noisy": "yes"} }), pod("b", func(p *corev1.Pod) { p.Labels = nil })},
		Nodes: []*corev1.Node{node("n1")}, DaemonSets: []*appsv1.DaemonSet{daemon},
	}
	bindings := solve(compile(t, s), nothing).Bindings()
	require.Len(t, bindings, 1)
	require.Equal(t, "b", bindings[0].Pod.Name)
}

// A limit that leaving nodes use up becomes free again, and the reason names these nodes. It names
// no nodes of other pools.
func TestLimitsThatLeavingNodesUse(t *testing.T) {
	taint := corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}
	of := func(pool string, leaves bool) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Labels[nodepool.LabelKey] = pool
			if leaves {
				n.Spec.Taints = append(n.Spec.Taints, taint)
			}
		}
	}
	for name, c := range map[string]struct {
		nodes []*corev1.Node
		want  string
	}{
		"one":             {[]*corev1.Node{node("old", of("small", true)), node("full", of("small", false))}, "; node old, which is being removed, counts until it is gone"},
		"two":             {[]*corev1.Node{node("old", of("small", true)), node("elder", of("small", true))}, "; node elder and 1 other that are being removed count until they are gone"},
		"of another pool": {[]*corev1.Node{node("old", of("other", true)), node("full", of("small", false)), node("too", of("small", false))}, ""},
	} {
		for limited, limit := range map[corev1.ResourceName]string{"cpu": "8", "nodes": "2"} {
			t.Run(name+" "+string(limited), func(t *testing.T) {
				small := pool("small", func(p *nodepool.NodePool) { p.Limits = corev1.ResourceList{limited: resource.MustParse(limit)} })
				p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("web", func(p *corev1.Pod) {
					p.Spec.NodeSelector = map[string]string{nodepool.LabelKey: "small", corev1.LabelTopologyZone: "zone-b"}
				})}, Pools: []scheduling.Pool{small}, Nodes: c.nodes})
				reasons := solve(p, nothing).Unplaced()[0].Reasons()
				require.Equal(t, scheduling.StageLimit, reasons[0].Stage)
				if c.want == "" {
					assert.NotContains(t, reasons[0].Detail, "removed")
				} else {
					assert.Contains(t, reasons[0].Detail, c.want)
				}
			})
		}
	}
}

// Nodes whose taints keep a pod away are counted with the keys of the taints.
func TestReasonsNameTaints(t *testing.T) {
	taints := func(keys ...string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			for _, key := range keys {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
			}
		}
	}
	p := compile(t, scheduling.Snapshot{
		Pods: []*corev1.Pod{pod("web", func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "batch", Operator: corev1.TolerationOpExists}}
		})},
		Nodes: []*corev1.Node{node("n1", taints("batch", "node.kubernetes.io/not-ready")), node("n2", taints("gpu")), node("n3", taints("gpu"))},
	})
	assert.Equal(t, "existing nodes (3): 3 tainted (gpu, node.kubernetes.io/not-ready)", solve(p, nothing).Unplaced()[0].Reasons()[0].String())
}

// What keeps a pod from a node with room is its host port or its disk, and the reason says which.
func TestReasonsNameWhatIsInUse(t *testing.T) {
	port := func(number int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: number, HostPort: number}}
		}
	}
	disk := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-7"}}}}
	}
	on := func(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = name } }
	s := scheduling.Snapshot{
		Pods:  []*corev1.Pod{pod("proxy", port(9443), on("n1")), pod("other", port(9443), on("n2")), pod("web", port(9443))},
		Nodes: []*corev1.Node{node("n1"), node("n2")},
	}
	assert.Equal(t, "existing nodes (2): 2 with host port 9443/TCP in use", solve(compile(t, s), nothing).Unplaced()[0].Reasons()[0].String())
	s.Pods = []*corev1.Pod{pod("proxy", disk, on("n1")), pod("other", port(80), on("n2")), pod("web", disk, port(80))}
	assert.Regexp(t, `^existing nodes \(2\): 2 with .*vol-7.*, host port 80/TCP in use$`, solve(compile(t, s), nothing).Unplaced()[0].Reasons()[0].String())
}

// kube-scheduler binds other pods where running ones keep the pod of a DaemonSet away, or where the node is too small for it, so no room is kept
// for it. If it only has no room itself, it starts as soon as a pod ends: room is kept, the reason says so, and a lower bound counts it as free.
func TestDaemonsThatCannotStartKeepNoRoom(t *testing.T) {
	blocker := pod("old", on("n1"), func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 9100}}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, Namespaces: []string{"system"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shy"}},
		}}}}
	})
	for name, tt := range map[string]struct {
		daemon func(*appsv1.DaemonSet)
		cpu    string
		keeps  bool
	}{
		"it can start":           {func(*appsv1.DaemonSet) {}, "500m", true},
		"it is short of cpu":     {func(*appsv1.DaemonSet) {}, "2", true},
		"the node is too small":  {func(*appsv1.DaemonSet) {}, "5", false},
		"its port is taken":      {func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers[0].Ports = blocker.Spec.Containers[0].Ports }, "500m", false},
		"another pod keeps away": {func(d *appsv1.DaemonSet) { d.Spec.Template.Labels = map[string]string{"app": "shy"} }, "500m", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := compile(t, scheduling.Snapshot{
				Pods: []*corev1.Pod{blocker, pod("web-0")},
				Nodes: []*corev1.Node{node("n1", func(n *corev1.Node) {
					n.Labels = map[string]string{corev1.LabelHostname: "n1"}
					n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("2400m")
				})},
				DaemonSets: []*appsv1.DaemonSet{daemonSet("agent", tt.cpu, tt.daemon)},
			})
			r := solve(p, onePerNode)
			assert.Equal(t, tt.keeps, len(r.Bindings()) == 0)
			if tt.keeps {
				assert.Equal(t, "existing nodes (1): 1 with room that is kept for DaemonSets (system/agent)", r.Unplaced()[0].Reasons()[0].String())
			}
			_, nodes := p.Relaxed()
			assert.Positive(t, nodes[0].Free[0])
		})
	}
}

// A pod on a node that is not in the snapshot is neither bound nor refused; a note names it.
func TestPodsOnUnknownNodesAreNamed(t *testing.T) {
	p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("b", on("gone")), pod("a", on("gone")), pod("c", on("n1"))}, Nodes: []*corev1.Node{node("n1")}})
	assert.Equal(t, []string{"node gone, which pod shop/a and 1 more run on, is not among the nodes, so nothing is planned for what runs there"}, p.Notes)
	assert.Empty(t, p.Classes)
}
