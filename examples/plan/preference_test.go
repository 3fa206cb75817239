package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// drawPreferences draws pools and nodes with and without labels and soft taints, and pods that prefer some of them. Some pods must be where another
// is, which its preferences may keep from where both have room.
func drawPreferences(seed uint64) (s scheduling.Snapshot) {
	r := rand.New(rand.NewPCG(seed, 83))
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	capacity := func(cpu int) corev1.ResourceList {
		return corev1.ResourceList{"cpu": *resource.NewQuantity(int64(cpu), resource.DecimalSI), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("20")}
	}
	soft := []corev1.Taint{{Key: "soft", Value: "yes", Effect: corev1.TaintEffectPreferNoSchedule}}
	for i := range r.IntN(3) {
		p := nodepool.New(fmt.Sprint("pool-", i))
		p.Labels = map[string]string{"rack": one("r1", "r2")}
		if r.IntN(2) == 0 {
			p.Labels = nil
		}
		if r.IntN(2) == 0 {
			p.Taints = soft
		}
		types := []instancetypes.InstanceType{instancetypes.New("m-4", nil, capacity(4), instancetypes.Offer(one("a", "b"), "on-demand", 0.2))}
		s.Pools = append(s.Pools, scheduling.Pool{NodePool: p, Types: types})
	}
	for i := range 1 + r.IntN(3) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{corev1.LabelHostname: fmt.Sprint("n", i), corev1.LabelTopologyZone: one("a", "b")}}}
		if r.IntN(2) == 0 {
			n.Labels["rack"] = one("r1", "r2")
		}
		if r.IntN(3) == 0 {
			n.Spec.Taints = soft
		}
		n.Status.Allocatable = capacity(1 + r.IntN(2))
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		s.Nodes = append(s.Nodes, n)
	}
	term := func() corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: one(corev1.LabelHostname, corev1.LabelTopologyZone, "rack"), LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": one("0", "1", "2")}}}
	}
	for i := range 2 + r.IntN(3) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", i), Labels: map[string]string{"app": fmt.Sprint(i)}}}
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(250*(1+r.IntN(6))), resource.DecimalSI)}}}}
		a := &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}, NodeAffinity: &corev1.NodeAffinity{}}
		if r.IntN(2) == 0 {
			a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term()}
		}
		switch r.IntN(4) {
		case 0:
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: term()}}
		case 1:
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: term()}}
		case 2:
			a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 10, Preference: corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "rack", Operator: corev1.NodeSelectorOpIn, Values: []string{one("r1", "r2")}}},
			}}}
		}
		p.Spec.Affinity = a
		s.Pods = append(s.Pods, p)
	}
	return s
}

// Preferences never cost a pod its place: as many are placed as if they were ignored. One draw in 200 may be worse, because the search has an end.
func TestPreferencesCostNoPod(t *testing.T) {
	draws := 2000
	if testing.Short() {
		draws = 300
	}
	worse, short := 0, 0
	for seed := range uint64(draws) {
		s := drawPreferences(seed)
		kept, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		ignored, err := plan.Make(t.Context(), s, &plan.Options{Scheduling: &scheduling.Options{IgnorePreferences: true}})
		require.NoError(t, err)
		if len(kept.Unplaced()) > 0 {
			short++
		}
		if len(kept.Bindings()) < len(ignored.Bindings()) {
			worse++
			t.Logf("draw %d: %d pods, and %d without preferences", seed, len(kept.Bindings()), len(ignored.Bindings()))
		}
	}
	t.Logf("%d of %d draws leave pods out, %d of them for preferences", short, draws, worse)
	assert.Greater(t, short, draws/10)
	assert.LessOrEqual(t, worse, draws/200)
}

// Anti-affinity by a label that a node lacks keeps no pod from it, so its room is used before a node is bought. Among new nodes, those with the label
// are preferred, because only they separate the pods.
func TestRoomOnNodesWithoutALabelIsUsed(t *testing.T) {
	away := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "rack", LabelSelector: web}},
		}}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelHostname: "n1"}}}
	node.Status.Allocatable = sold()[0].Capacity
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	with, without := nodepool.New("with"), nodepool.New("without")
	with.Labels = map[string]string{"rack": "r1"}
	s := scheduling.Snapshot{Pods: replicas(1, away), Nodes: []*corev1.Node{node}, Pools: []scheduling.Pool{{NodePool: without, Types: sold()}, {NodePool: with, Types: sold()}}}
	p, err := plan.Make(t.Context(), s, nil)
	require.NoError(t, err)
	require.Empty(t, p.NewNodes())
	s.Nodes = nil
	p, err = plan.Make(t.Context(), s, nil)
	require.NoError(t, err)
	require.Equal(t, "with", p.NewNodes()[0].Pool.Name)
}

// Two different pods get the one machine that holds both, where types share a stock or a limit allows one node. First fit alone takes the small
// machine for the first pod, and then the second is out.
func TestScarceMachinesAreTakenForAll(t *testing.T) {
	memory := corev1.ResourceList{"memory": resource.MustParse("64Gi"), "pods": resource.MustParse("20")}
	for name, change := range map[string]func(*nodepool.NodePool, []instancetypes.InstanceType){
		"a shared stock": func(_ *nodepool.NodePool, types []instancetypes.InstanceType) {
			for i := range types {
				types[i].Offerings[0].ReservationCount, types[i].Offerings[0].Commitment = 1, "s1"
			}
		},
		"a limit of nodes": func(p *nodepool.NodePool, _ []instancetypes.InstanceType) {
			p.Limits = corev1.ResourceList{"nodes": resource.MustParse("1")}
		},
	} {
		var types []instancetypes.InstanceType
		for _, cpu := range []string{"4", "8"} {
			list := memory.DeepCopy()
			list["cpu"] = resource.MustParse(cpu)
			price, err := resource.ParseQuantity(cpu)
			require.NoError(t, err)
			types = append(types, instancetypes.New("m-"+cpu, nil, list, instancetypes.Offer("a", "on-demand", 0.05*price.AsApproximateFloat64())))
		}
		pool := nodepool.New("default")
		change(&pool, types)
		pods := append(replicas(1, over(instancetypes.LabelCapacityType)), replicas(1, func(p *corev1.Pod) { p.Name, p.Labels = "other", nil })...)
		for i := range pods {
			pods[i].Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("3500m")}
		}
		p, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: pods, Pools: []scheduling.Pool{{NodePool: pool, Types: types}}}, nil)
		require.NoError(t, err)
		assert.Empty(t, p.Unplaced(), name)
		assert.Len(t, p.NewNodes(), 1, name)
	}
}
