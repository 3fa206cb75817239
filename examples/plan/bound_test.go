package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// sold is a catalogue of one size in two zones.
func sold() []instancetypes.InstanceType {
	list := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("50")}
	t := instancetypes.InstanceType{Name: "std.4", Capacity: list, Requirements: requirements.MustParse("node.kubernetes.io/instance-type=std.4")}
	for _, zone := range []string{"zone-a", "zone-b"} {
		t.Offerings = append(t.Offerings, instancetypes.Offering{
			Requirements: requirements.MustParse("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone=" + zone), Price: 0.2, Available: true,
		})
	}
	return []instancetypes.InstanceType{t}
}

// replicas are pods of one workload that ask for a cpu each.
func replicas(n int, change func(*corev1.Pod)) []*corev1.Pod {
	out := make([]*corev1.Pod, n)
	for i := range out {
		out[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i), Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}},
		}
		change(out[i])
	}
	return out
}

var web = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}

func over(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: web}}
	}
}

func apart(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: web}},
	}}
}

// The bound is of the pods: what the plan chose of zones and preferences is not in it, and what no plan can avoid is.
func TestBoundIsOfThePods(t *testing.T) {
	for _, c := range []struct {
		name         string
		pods         []*corev1.Pod
		price, below float64
	}{
		{"nothing but requests", replicas(4, func(*corev1.Pod) {}), 0.2, 0.2},
		{"a hard spread over zones", replicas(4, over(corev1.LabelTopologyZone)), 0.4, 0.2},
		{"anti-affinity by hostname", replicas(4, apart), 0.8, 0.8},
		{"host ports", replicas(3, func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
		}), 0.6, 0.6},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: c.pods, Pools: []scheduling.Pool{{Types: sold(), NodePool: nodepool.NodePool{Name: "default"}}}}, nil)
			require.NoError(t, err)
			require.NoError(t, p.Bound.Verify())
			assert.InDelta(t, c.price, p.Cost().Dollars(), 1e-9)
			assert.InDelta(t, c.below, p.Bound.Price.Dollars(), 1e-9)
			assert.InDelta(t, c.price, p.Bound.Choice.Dollars(), 1e-9, "of these zones")
		})
	}
}

// A node without a hostname keeps no pods apart, so a bound must not count on anti-affinity there.
func TestBoundKnowsNodesWithoutHostname(t *testing.T) {
	for _, hostname := range []bool{true, false} {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelTopologyZone: "zone-a"}},
			Status:     corev1.NodeStatus{Allocatable: sold()[0].Capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}
		if hostname {
			node.Labels[corev1.LabelHostname] = "n1"
		}
		s := scheduling.Snapshot{Pods: replicas(4, apart), Nodes: []*corev1.Node{node}, Pools: []scheduling.Pool{{Types: sold(), NodePool: nodepool.NodePool{Name: "default"}}}}
		p, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		require.NoError(t, p.Bound.Verify())
		assert.Empty(t, p.Unplaced())
		if hostname {
			assert.InDelta(t, 0.6, p.Bound.Price.Dollars(), 1e-9)
		} else {
			assert.Zero(t, p.Bound.Price)
		}
	}
}

// A daemon that is still to start forbids nothing in a bound: the pods that run may keep it away for good.
func TestBoundKnowsDaemonsThatCannotStart(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelHostname: "n1"}},
		Status:     corev1.NodeStatus{Allocatable: sold()[0].Capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	runs := replicas(1, func(p *corev1.Pod) { p.Name, p.Spec.NodeName = "runs", "n1" })
	shy := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shy"}}
	shy.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
	pod := &corev1.Pod{}
	apart(pod)
	shy.Spec.Template.Spec.Affinity = pod.Spec.Affinity
	p, err := plan.Make(t.Context(), scheduling.Snapshot{
		Pods: append(replicas(2, func(*corev1.Pod) {}), runs...), Nodes: []*corev1.Node{node}, DaemonSets: []*appsv1.DaemonSet{shy},
		Pools: []scheduling.Pool{{Types: sold(), NodePool: nodepool.NodePool{Name: "default"}}},
	}, nil)
	require.NoError(t, err)
	require.Empty(t, p.Unplaced())
	require.NotEmpty(t, p.Bound.Kind, "the plan is no packing of its relaxation")
	assert.Zero(t, p.Bound.Price)
}

// A plan keeps the room of a daemon that has not started, but kube-scheduler may bind pods there, so that a bound counts it as free.
func TestBoundCountsTheRoomOfDaemons(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelHostname: "n1"}},
		Status:     corev1.NodeStatus{Allocatable: sold()[0].Capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for cpu, runs := range map[string]int{"2": 3, "3": 2, "1": 3} { // the last can start
		agent := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent"}}
		agent.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
		running := replicas(runs, func(p *corev1.Pod) { p.Name, p.Spec.NodeName = "old-"+p.Name, "n1" })
		p, err := plan.Make(t.Context(), scheduling.Snapshot{
			Pods: append(replicas(1, func(*corev1.Pod) {}), running...), Nodes: []*corev1.Node{node}, DaemonSets: []*appsv1.DaemonSet{agent},
			Pools: []scheduling.Pool{{Types: sold(), NodePool: nodepool.NodePool{Name: "default"}}},
		}, nil)
		require.NoError(t, err)
		require.Empty(t, p.Unplaced())
		require.Len(t, p.NewNodes(), 1)
		require.NotEmpty(t, p.Bound.Kind)
		require.NoError(t, p.Bound.Verify())
		assert.Zero(t, p.Bound.Price, "%d pods run beside a daemon of %s cpu", runs, cpu)
		assert.Positive(t, p.Bound.Choice)
	}
}

// A node that is short of memory takes pods that ask for none, and the bound counts its room.
func TestBoundKnowsNodesThatAreShort(t *testing.T) {
	list := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("50")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "short", Labels: map[string]string{corev1.LabelHostname: "short"}}}
	node.Status.Allocatable = list
	pods := replicas(6, func(*corev1.Pod) {})
	for _, p := range []struct {
		pod  *corev1.Pod
		node string
	}{{pods[0], "short"}, {pods[1], ""}} { // one runs there, which took more than the node has
		p.pod.Spec.NodeName = p.node
		p.pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("2Gi")}
	}
	p, err := plan.Make(t.Context(), scheduling.Snapshot{
		Pods: pods, Nodes: []*corev1.Node{node}, Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "pool"}, Types: sold()}},
	}, nil)
	require.NoError(t, err)
	require.Empty(t, p.Unplaced())
	require.Len(t, p.NewNodes(), 1)
	assert.NotEmpty(t, p.Bound.Kind)
	assert.NoError(t, p.Bound.Verify())
	assert.InDelta(t, p.NewNodes()[0].PricePerHour, p.Bound.Price.Dollars(), 1e-9, "three of the pods fit on the node, and three need another one")
}

// Weights cost what the same pods cost less without them.
func TestWeightsCost(t *testing.T) {
	dear := sold()
	dear[0].Offerings[0].Price, dear[0].Offerings[1].Price = 0.3, 0.3
	pools := []scheduling.Pool{{Types: dear, NodePool: nodepool.NodePool{Name: "dear", Weight: 10}}, {Types: sold(), NodePool: nodepool.NodePool{Name: "cheap"}}}
	p, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: replicas(8, func(*corev1.Pod) {}), Pools: pools}, nil)
	require.NoError(t, err)
	assert.InDelta(t, 0.6, p.Cost().Dollars(), 1e-9)
	assert.InDelta(t, 0.4, p.Bound.Price.Dollars(), 1e-9)
	cost, err := p.WeightsCost(t.Context())
	require.NoError(t, err)
	assert.Equal(t, plan.Price(0.2), cost)

	pools[0].Weight = 0
	p, err = plan.Make(t.Context(), scheduling.Snapshot{Pods: replicas(8, func(*corev1.Pod) {}), Pools: pools}, nil)
	require.NoError(t, err)
	cost, err = p.WeightsCost(t.Context())
	require.NoError(t, err)
	assert.Zero(t, cost)
}

// Who wants no bound does not pay for one.
func TestDraftHasNoBound(t *testing.T) {
	s := scheduling.Snapshot{Pods: replicas(4, func(*corev1.Pod) {}), Pools: []scheduling.Pool{{Types: sold(), NodePool: nodepool.NodePool{Name: "default"}}}}
	p, err := plan.Make(t.Context(), s, &plan.Options{Packing: &binpack.Options{Draft: true}})
	require.NoError(t, err)
	assert.Zero(t, p.Bound)
	assert.NoError(t, p.Bound.Verify())
}
