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

// beside asks for the node of a pod of an app.
func beside(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{}
		}
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		}}}
	}
}

// awayFrom keeps away from an app by labels, which makes a pod choose values of them.
func awayFrom(app string, keys ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{}
		}
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
		for _, key := range keys {
			p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
				corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}})
		}
	}
}

func called(name, app, cpu string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := replicas(1, func(p *corev1.Pod) { p.Name, p.Labels = name, map[string]string{"app": app} })[0]
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
	for _, change := range changes {
		change(p)
	}
	return p
}

// Pods that must share a node go where one node can hold them all, whatever label they choose a value of: not to a node with room for the first
// alone, and not to the first value of the alphabet. Among such values they go to the cheapest.
func TestPodsThatShareANodeHaveRoomForAll(t *testing.T) {
	types := func(offers ...instancetypes.Offering) []instancetypes.InstanceType {
		list := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("20")}
		return []instancetypes.InstanceType{instancetypes.New("m-8", nil, list, offers...)}
	}
	full := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{
		corev1.LabelHostname: "n1", corev1.LabelTopologyZone: "a", instancetypes.LabelCapacityType: "on-demand",
	}}}
	full.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("9")}
	full.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for name, c := range map[string]struct {
		key    string
		nodes  []*corev1.Node
		offers []instancetypes.Offering
		want   string // zone of the new node
	}{
		"room for one is no room, by capacity type": {instancetypes.LabelCapacityType, []*corev1.Node{full}, []instancetypes.Offering{instancetypes.Offer("b", "spot", 0.4)}, "b"},
		"room for one is no room, by zone":          {corev1.LabelTopologyZone, []*corev1.Node{full}, []instancetypes.Offering{instancetypes.Offer("b", "on-demand", 0.4)}, "b"},
		"the cheapest zone":                         {corev1.LabelTopologyZone, nil, []instancetypes.Offering{instancetypes.Offer("a", "on-demand", 0.5), instancetypes.Offer("b", "on-demand", 0.4), instancetypes.Offer("c", "on-demand", 0.6)}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			var pods []*corev1.Pod
			for _, n := range []string{"pair-0", "pair-1"} {
				pods = append(pods, called(n, "pair", "2", beside("pair"), awayFrom("noisy", c.key)))
			}
			s := scheduling.Snapshot{Pods: pods, Nodes: c.nodes, Pools: []scheduling.Pool{{NodePool: nodepool.New("default"), Types: types(c.offers...)}}}
			p, err := plan.Make(t.Context(), s, nil)
			require.NoError(t, err)
			require.Empty(t, p.Unplaced())
			require.Len(t, p.NewNodes(), 1)
			assert.Equal(t, c.want, p.NewNodes()[0].Zone)
		})
	}
}

// A pod that another must be beside goes where both can be: to the zone that the other requires, though another zone is cheaper, and to a type that
// holds both, though it could be alone on a smaller one. So a node selector that ties the first to some zone and type does not place more pods.
func TestALeaderGoesWhereItsFollowerCanBe(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 89))
	list := func(cpu int) corev1.ResourceList {
		return corev1.ResourceList{"cpu": *resource.NewQuantity(int64(cpu), resource.DecimalSI), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("20")}
	}
	keys := []string{corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, instancetypes.LabelCapacityType}
	zones, sizes, tied := []string{"a", "b", "c"}, []int{2, 4, 8, 16}, 0
	draws := 200
	if testing.Short() {
		draws = 50
	}
	for draw := range draws {
		var types []instancetypes.InstanceType
		for i, cpu := range sizes {
			var offers []instancetypes.Offering
			for _, zone := range zones[r.IntN(2):] {
				offers = append(offers, instancetypes.Offer(zone, []string{"spot", "on-demand"}[r.IntN(2)], float64(int(1)<<i)*(0.1+0.05*r.Float64())))
			}
			types = append(types, instancetypes.New(fmt.Sprint("m-", cpu), nil, list(cpu), offers...))
		}
		some := func(list []string) []string { return list[r.IntN(len(list)):] }
		size := func() string { return fmt.Sprint(500*(1+r.IntN(12)), "m") }
		leader := called("leader", "leader", size(), awayFrom([]string{"leader", "noisy"}[r.IntN(2)], some(keys)...))
		if r.IntN(3) == 0 {
			beside("leader")(leader)
		}
		follower := called("follower", "follower", size(), beside("leader"))
		if r.IntN(2) == 0 {
			follower.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zones[r.IntN(3)]}
		}
		if r.IntN(3) == 0 {
			awayFrom("noisy", some(keys)...)(follower)
		}
		placed := func(selector map[string]string) int {
			tied := leader.DeepCopy()
			tied.Spec.NodeSelector = selector
			p, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: []*corev1.Pod{tied, follower}, Pools: []scheduling.Pool{{NodePool: nodepool.New("default"), Types: types}}}, nil)
			require.NoError(t, err)
			return len(p.Bindings())
		}
		free, most := placed(nil), 0
		for _, zone := range zones {
			for i := range types {
				most = max(most, placed(map[string]string{corev1.LabelTopologyZone: zone, corev1.LabelInstanceTypeStable: types[i].Name}))
			}
		}
		assert.GreaterOrEqual(t, free, most, "draw %d", draw)
		tied += most / 2
	}
	assert.Greater(t, tied, draws/2)
}
