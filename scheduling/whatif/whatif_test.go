package whatif_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse("20")}
}

func node(name, zone, cpu string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone, corev1.LabelHostname: name, nodepool.LabelKey: "default"}}}
	n.Status.Allocatable, n.Status.Capacity = list(cpu, "64Gi"), list(cpu, "64Gi")
	return n
}

func pod(name, at, cpu string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}}}
	p.Spec.NodeName = at
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	for _, c := range change {
		c(p)
	}
	return p
}

func web() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func spread(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: web()}}
	}
}

func apart(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: web()}}}}
}

func near(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelTopologyZone, LabelSelector: web()}}}}
}

func hostPort(p *corev1.Pod) {
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
}

func labelled(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": app} }
}

// market sells nodes of 2, 4 and 8 CPUs at 2, 4 and 8 cents in two zones.
func market() scheduling.Pool {
	var types []instancetypes.InstanceType
	for _, n := range []int{2, 4, 8} {
		t := instancetypes.InstanceType{Name: fmt.Sprintf("m.%d", n), Capacity: list(fmt.Sprint(n), "64Gi"), Requirements: requirements.MustOf(
			requirements.In(corev1.LabelInstanceTypeStable, fmt.Sprintf("m.%d", n)), requirements.In(corev1.LabelTopologyZone, "z1", "z2"), requirements.In(instancetypes.LabelCapacityType, "on-demand"))}
		for _, z := range []string{"z1", "z2"} {
			t.Offerings = append(t.Offerings, instancetypes.Offering{Price: float64(n) / 100, Available: true, Requirements: requirements.MustOf(
				requirements.In(corev1.LabelTopologyZone, z), requirements.In(instancetypes.LabelCapacityType, "on-demand"))})
		}
		types = append(types, t)
	}
	return scheduling.Pool{NodePool: nodepool.NodePool{Name: "default", APIVersion: nodepool.V1}, Types: types}
}

func snapshot(nodes []*corev1.Node, pods ...*corev1.Pod) scheduling.Snapshot {
	return scheduling.Snapshot{Pods: pods, Nodes: nodes, Pools: []scheduling.Pool{market()}}
}

func compile(t testing.TB, nodes []*corev1.Node, pods ...*corev1.Pod) *whatif.Cluster {
	t.Helper()
	c, err := whatif.Compile(snapshot(nodes, pods...), nil)
	require.NoError(t, err)
	return c
}

func places(a whatif.Answer) []string {
	var out []string
	for _, p := range a.Placements {
		out = append(out, p.Pod.Name+">"+p.Node)
	}
	return out
}

// Pods that ask the same are not all placed by the same scheduler.
func TestOtherSchedulersPods(t *testing.T) {
	mine, other := pod("p", "a", "1"), pod("q", "a", "1", func(p *corev1.Pod) { p.Spec.SchedulerName = "batch" })
	c := compile(t, []*corev1.Node{node("a", "z1", "4"), node("b", "z1", "4")}, mine, other)
	assert.Empty(t, c.Refuses(mine))
	assert.Equal(t, `scheduler "batch" places it`, c.Refuses(other))
	a := c.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: []*corev1.Pod{mine, other}})
	assert.False(t, a.OK())
}

// What pods would rather have decides between nodes that take them, and keeps them from none.
func TestPreferences(t *testing.T) {
	term := func(key string) []corev1.WeightedPodAffinityTerm {
		return []corev1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: web()}}}
	}
	zone := func(weight int32, zone string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			if p.Spec.Affinity == nil {
				p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
			}
			n := p.Spec.Affinity.NodeAffinity
			n.PreferredDuringSchedulingIgnoredDuringExecution = append(n.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
			}})
		}
	}
	nodes := []*corev1.Node{node("a", "z1", "4"), node("b", "z1", "4"), node("c", "z1", "5"), node("d", "z2", "6")} // b is the fullest
	for name, x := range map[string]struct {
		pods []*corev1.Pod
		want string
	}{
		"nothing":                  {[]*corev1.Pod{pod("p", "a", "1"), pod("q", "b", "1")}, "p>b"},
		"a zone":                   {[]*corev1.Pod{pod("p", "a", "1", zone(1, "z2")), pod("q", "b", "1")}, "p>d"},
		"the heavier of two":       {[]*corev1.Pod{pod("p", "a", "1", zone(1, "z2"), zone(5, "z1")), pod("q", "b", "1")}, "p>b"},
		"a zone that is full":      {[]*corev1.Pod{pod("p", "a", "2", zone(9, "z2")), pod("q", "d", "5", labelled("other")), pod("r", "b", "1")}, "p>b"},
		"a zone that there is not": {[]*corev1.Pod{pod("p", "a", "1", zone(9, "z9")), pod("q", "b", "1")}, "p>b"},
		"away from its like": {[]*corev1.Pod{pod("p", "a", "1", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: term(corev1.LabelHostname)}}
		}), pod("q", "b", "1")}, "p>c"},
		"away from the zone": {[]*corev1.Pod{pod("p", "a", "1", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: term(corev1.LabelTopologyZone)}}
		}), pod("q", "b", "1")}, "p>d"},
		"near its like": {[]*corev1.Pod{pod("p", "a", "1", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: term(corev1.LabelHostname)}}
		}), pod("q", "d", "1"), pod("r", "b", "1", labelled("db"))}, "p>d"},
		"spread if it can be":         {[]*corev1.Pod{pod("p", "a", "1", anyway(corev1.LabelTopologyZone)), pod("q", "b", "1")}, "p>d"},
		"and if it can not, anywhere": {[]*corev1.Pod{pod("p", "a", "3", anyway(corev1.LabelTopologyZone)), pod("q", "b", "1"), pod("r", "d", "5", labelled("other"))}, "p>b"},
	} {
		c := compile(t, nodes, x.pods...)
		a := c.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: x.pods[:1]})
		assert.Equal(t, []string{x.want}, places(a), name)
		a = c.Rebase().Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: x.pods[:1]})
		assert.Equal(t, []string{x.want}, places(a), "%s, rebased", name)
	}
}

func anyway(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		spread(key)(p)
		p.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.ScheduleAnyway
	}
}

func TestRules(t *testing.T) {
	three := []*corev1.Node{node("a", "z1", "4"), node("b", "z1", "4"), node("c", "z2", "4")}
	blocked := slices.Clone(three)
	blocked[1] = node("b", "z1", "4")
	blocked[1].Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}
	for name, c := range map[string]struct {
		nodes []*corev1.Node
		pods  []*corev1.Pod // the first runs on a, which goes
		want  []string
	}{
		"the fullest node that fits":    {three, []*corev1.Pod{pod("p", "a", "1"), pod("q", "c", "2")}, []string{"p>c"}},
		"all are too full":              {three, []*corev1.Pod{pod("p", "a", "3"), pod("q", "b", "2"), pod("r", "c", "2")}, nil},
		"taints":                        {blocked, []*corev1.Pod{pod("p", "a", "1")}, []string{"p>c"}},
		"a selector":                    {three, []*corev1.Pod{pod("p", "a", "1", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "z1"} }), pod("q", "c", "2")}, []string{"p>b"}},
		"a port":                        {three, []*corev1.Pod{pod("p", "a", "1", hostPort), pod("q", "c", "1", hostPort)}, []string{"p>b"}},
		"apart":                         {three, []*corev1.Pod{pod("p", "a", "1", apart), pod("q", "c", "1")}, []string{"p>b"}},
		"others keep away":              {three, []*corev1.Pod{pod("p", "a", "1"), pod("q", "c", "1", apart, labelled("other"))}, []string{"p>b"}},
		"near its like":                 {three, []*corev1.Pod{pod("p", "a", "1", near), pod("q", "b", "1")}, []string{"p>b"}},
		"near itself":                   {three, []*corev1.Pod{pod("p", "a", "1", near)}, []string{"p>b"}},
		"near none":                     {three, []*corev1.Pod{pod("p", "a", "1", near, labelled("other"))}, nil},
		"spread":                        {three, []*corev1.Pod{pod("p", "a", "1", spread(corev1.LabelTopologyZone)), pod("q", "b", "1")}, []string{"p>c"}},
		"spread over nodes":             {three, []*corev1.Pod{pod("p", "a", "1", spread(corev1.LabelHostname)), pod("q", "b", "1")}, []string{"p>c"}},
		"a zone that goes is no domain": {three[:2], []*corev1.Pod{pod("p", "a", "1", spread(corev1.LabelTopologyZone)), pod("q", "b", "1")}, []string{"p>b"}},
	} {
		q := whatif.Question{Remove: []string{"a"}, Pods: c.pods[:1], Explain: true}
		cluster := compile(t, c.nodes, c.pods...)
		a := cluster.Ask(t.Context(), q)
		assert.Equal(t, c.want, places(a), "%s: %s", name, a.Why)
		assert.Equal(t, c.want != nil, a.OK(), name)
		assert.Equal(t, a.OK(), a.Why == "", name)
		assert.Equal(t, places(a), places(cluster.Ask(t.Context(), q)), "%s: the same question has the same answer", name)
	}
}

func TestBuysTheCheapestThatHoldsAll(t *testing.T) {
	pods := []*corev1.Pod{pod("p", "a", "2"), pod("q", "a", "1")}
	c := compile(t, []*corev1.Node{node("a", "z1", "8")}, pods...)
	a := c.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: pods, MaxNodes: 1, MaxPrice: 80_000_000})
	require.True(t, a.OK())
	require.Len(t, a.Bought, 1)
	assert.Equal(t, "m.4", a.Bought[0].Type)
	assert.Equal(t, "default-0", a.Bought[0].Name)
	assert.InDelta(t, 0.04, float64(a.Price)/1e9, 1e-9)
	assert.Empty(t, a.Bought[0].Alternatives, "m.8 costs no less than what is given back")
	assert.Equal(t, "z1", a.Bought[0].Labels[corev1.LabelTopologyZone])
	dear := c.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: pods, MaxNodes: 1, MaxPrice: 40_000_000})
	assert.False(t, dear.OK(), "less than, not as much as")
}

// What is given back makes room under a limit only as far as the pool was not over it: a version of the cluster buys what the same cluster
// read anew buys.
func TestNothingIsBoughtOverALimit(t *testing.T) {
	for name, limits := range map[string]corev1.ResourceList{
		"cpu": {corev1.ResourceCPU: resource.MustParse("10")}, "memory": {corev1.ResourceMemory: resource.MustParse("160Gi")}, "nodes": {"nodes": resource.MustParse("3")},
	} {
		for n := 2; n <= 6; n++ {
			big := pod("big", "", "4")
			pods, nodes := []*corev1.Pod{big}, []*corev1.Node{}
			for i := range n {
				at := node(fmt.Sprintf("n%d", i), "z1", "4")
				at.Labels[nodepool.LabelKey] = "default"
				at.Status.Capacity = list("4", "64Gi")
				nodes, pods = append(nodes, at), append(pods, pod(fmt.Sprintf("p%d", i), at.Name, "500m"))
			}
			pool := market()
			pool.Limits = limits
			s := scheduling.Snapshot{Pods: pods, Nodes: nodes, Pools: []scheduling.Pool{pool}}
			c, err := whatif.Compile(s, nil)
			require.NoError(t, err)
			a := c.Ask(t.Context(), whatif.Question{Remove: []string{"n0"}, Pods: pods[1:2]})
			require.True(t, a.OK())
			buy := a.After().Ask(t.Context(), whatif.Question{Pods: pods[:1], MaxNodes: 1, MaxPrice: 1_000_000_000})

			moved := pod("p0", "n1", "500m")
			s.Nodes, s.Pods = nodes[1:], append([]*corev1.Pod{big, moved}, pods[2:]...)
			anew, err := whatif.Compile(s, nil)
			require.NoError(t, err)
			again := anew.Ask(t.Context(), whatif.Question{Pods: s.Pods[:1], MaxNodes: 1, MaxPrice: 1_000_000_000})
			assert.Equal(t, again.OK(), buy.OK(), "limit of %s, %d nodes", name, n)
			assert.Equal(t, n <= 3 && name == "nodes" || n <= 2, again.OK(), "limit of %s, %d nodes", name, n)
		}
	}
}

// cpus are the first of what nodes have free.
func cpus(room [][]int64) []int64 {
	out := make([]int64, len(room))
	for i := range room {
		out[i] = room[i][0]
	}
	return out
}

func TestVersions(t *testing.T) {
	p, q := pod("p", "a", "1"), pod("q", "b", "1")
	first := compile(t, []*corev1.Node{node("a", "z1", "4"), node("b", "z1", "4"), node("c", "z2", "4")}, p, q)
	one := first.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: []*corev1.Pod{p}})
	second := one.After()
	two := second.Ask(t.Context(), whatif.Question{Remove: []string{"b"}, Pods: []*corev1.Pod{q, p}})
	assert.Equal(t, []string{"p>c", "q>c"}, slices.Sorted(slices.Values(places(two))))
	third := two.After()
	assert.Equal(t, []int64{0, 0, 2000}, cpus(third.FreeOf([]string{"a", "b", "c"})), "the first two are gone")
	assert.Equal(t, []int64{3000, 3000, 4000}, cpus(first.FreeOf([]string{"a", "b", "c"})), "an old version is as it was")
	assert.Equal(t, places(one), places(first.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: []*corev1.Pod{p}})))
	assert.Equal(t, places(two), places(second.Ask(t.Context(), whatif.Question{Remove: []string{"b"}, Pods: []*corev1.Pod{q, p}})))
	assert.Equal(t, int64(2000), third.Rebase().Free()[0])
	assert.Equal(t, int64(2000), third.Free()[0])
	assert.Equal(t, int64(10000), first.Free()[0])
}

func TestPendingPodsHaveTheirCapacity(t *testing.T) {
	p, waits := pod("p", "a", "2"), pod("w", "", "3")
	c := compile(t, []*corev1.Node{node("a", "z1", "4"), node("b", "z1", "4")}, p, waits)
	reserved, at := c.Reserve([]*corev1.Pod{waits})
	require.Len(t, at, 1)
	assert.Equal(t, "b", at[0].Node)
	a := reserved.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: []*corev1.Pod{p}})
	assert.False(t, a.OK())
}

func TestRefuses(t *testing.T) {
	p := pod("p", "a", "1", func(p *corev1.Pod) { p.Spec.SchedulerName = "other" })
	c := compile(t, []*corev1.Node{node("a", "z1", "4")}, p)
	assert.Equal(t, `scheduler "other" places it`, c.Refuses(p))
	assert.Equal(t, "it is not in the snapshot", c.Refuses(pod("x", "", "1")))

	silent := pod("p", "a", "1")
	c, err := whatif.Compile(scheduling.Snapshot{Nodes: []*corev1.Node{node("a", "z1", "4")}, Pods: []*corev1.Pod{silent}}, &whatif.Options{Constraints: []scheduling.Constraint{refusing{}}})
	require.NoError(t, err)
	assert.Equal(t, "a constraint of the caller refuses it", c.Refuses(silent))
}

// refusing refuses every pod, and does not say why.
type refusing struct{}

func (refusing) Narrow(_ *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
	return required, &scheduling.Reason{}
}

func ExampleCluster_Ask() {
	p := pod("web-0", "a", "3")
	c, _ := whatif.Compile(scheduling.Snapshot{
		Nodes: []*corev1.Node{node("a", "z1", "8"), node("b", "z1", "2")}, Pods: []*corev1.Pod{p}, Pools: []scheduling.Pool{market()},
	}, nil)
	a := c.Ask(context.Background(), whatif.Question{Remove: []string{"a"}, Pods: []*corev1.Pod{p}, Explain: true})
	fmt.Println(a.Why)
	a = c.Ask(context.Background(), whatif.Question{Remove: []string{"a"}, Pods: []*corev1.Pod{p}, MaxNodes: 1, MaxPrice: 80_000_000})
	for _, n := range a.Bought {
		fmt.Printf("%s %s $%.2f\n", n.Name, n.Type, float64(n.Price)/1e9)
	}
	// Output:
	// shop/web-0: of 1 other node, 1 is too full (the nearest, b, lacks cpu 1)
	// default-0 m.4 $0.04
}

// A pod is asked about once, and only where its node goes: it would otherwise be in two places.
func TestPodsThatStayAreNotAskedAbout(t *testing.T) {
	p, q, waits := pod("p", "a", "1"), pod("q", "b", "1"), pod("w", "", "1")
	c := compile(t, []*corev1.Node{node("a", "z1", "4"), node("b", "z1", "4"), node("c", "z1", "4")}, p, q, waits)
	for want, ask := range map[string]whatif.Question{
		`pod shop/p runs on node "a", which stays; remove the node, too`: {Remove: []string{"b"}, Pods: []*corev1.Pod{q, p}},
		"pod shop/p is asked about more than once":                       {Remove: []string{"a"}, Pods: []*corev1.Pod{p, waits, p}},
	} {
		a := c.Ask(t.Context(), ask)
		assert.False(t, a.OK())
		assert.Equal(t, want, a.Why)
	}
	a := c.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: []*corev1.Pod{p, waits}})
	assert.True(t, a.OK(), a.Why)
	left := c.Ask(t.Context(), whatif.Question{Remove: []string{"a"}}) // p goes with its node
	for _, after := range []*whatif.Cluster{left.After(), left.After().Rebase()} {
		a = after.Ask(t.Context(), whatif.Question{Pods: []*corev1.Pod{p}})
		assert.True(t, a.OK(), a.Why)
	}
	_, at := c.Reserve([]*corev1.Pod{p, waits, waits})
	require.Len(t, at, 1)
	assert.Same(t, waits, at[0].Pod)
}

// A terminating pod does not count for spreads, but its successor does.
func TestReplacementsCountForSpreads(t *testing.T) {
	leaving := func(p *corev1.Pod) {
		now := metav1.Now()
		p.DeletionTimestamp = &now
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web"}}
	}
	p, q := pod("p", "a", "1", spread(corev1.LabelTopologyZone), leaving), pod("q", "a", "1", spread(corev1.LabelTopologyZone), leaving)
	nodes := []*corev1.Node{node("a", "z1", "4"), node("b", "z1", "4"), node("c", "z2", "4")}
	c := compile(t, nodes, p, q)
	a := c.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: []*corev1.Pod{p, q}})
	assert.ElementsMatch(t, []string{"p>b", "q>c"}, places(a), "one in each zone")
	leave := whatif.Question{Remove: []string{"c"}, Pods: []*corev1.Pod{q}}
	assert.Empty(t, places(a.After().Ask(t.Context(), leave)), "nodes are for sale in zone z2")
	leave.LeaveDomains = true
	assert.Equal(t, []string{"q>b"}, places(a.After().Ask(t.Context(), leave)), "there is one zone left")
	again := c.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: []*corev1.Pod{p, q}})
	assert.Equal(t, places(a), places(again), "what was undone is as it was")
}

// What is bought is not called what a claim is called whose node is not there yet.
func TestBoughtNodesAreNotNamedLikeClaims(t *testing.T) {
	p := pod("p", "a", "2")
	s := snapshot([]*corev1.Node{node("a", "z1", "8")}, p)
	s.NodeClaims = []scheduling.NodeClaim{{Name: "default-0", Labels: map[string]string{nodepool.LabelKey: "default"}, Capacity: list("1", "1Gi"), Allocatable: list("1", "1Gi")}}
	c, err := whatif.Compile(s, nil)
	require.NoError(t, err)
	a := c.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: []*corev1.Pod{p}, MaxNodes: 1})
	require.Len(t, a.Bought, 1, a.Why)
	assert.Equal(t, "default-1", a.Bought[0].Name)
}

// What a kubelet has granted a pod in place is that pod's, not that of those like it, whether we may move them or not.
func TestResizedPodsAreCountedOneByOne(t *testing.T) {
	for name, edit := range map[string]func(*corev1.Pod){
		"ours":            func(*corev1.Pod) {},
		"another's":       func(p *corev1.Pod) { p.Spec.SchedulerName = "batch" },
		"a daemon's":      func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d"}} },
		"a static pod's":  func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} },
		"with a sidecar":  func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "s"}} },
		"and one started": func(p *corev1.Pod) { p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "s"}} },
	} {
		t.Run(name, func(t *testing.T) {
			grown := pod("p-0", "a", "1", edit, func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("3")}}}}
			})
			c := compile(t, []*corev1.Node{node("a", "z1", "8")}, grown, pod("p-1", "a", "1", edit))
			assert.Equal(t, []int64{4000}, cpus(c.FreeOf([]string{"a"})))
		})
	}
}

// An invalid question is never answered with OK, with pods or without, and never panics.
func TestInvalidQuestions(t *testing.T) {
	stays, waits := pod("a", "n1", "1"), pod("b", "", "1")
	c, err := whatif.Compile(scheduling.Snapshot{Nodes: []*corev1.Node{node("n1", "a", "4"), node("n2", "a", "4")}, Pods: []*corev1.Pod{stays, waits}}, nil)
	require.NoError(t, err)
	for want, q := range map[string]whatif.Question{
		`there is no node "nosuch" that could be removed`:                 {Remove: []string{"nosuch"}},
		`there is no node "n1" that could be removed`:                     {Remove: []string{"n1", "n1"}},
		"pods[0] is nil; leave it out":                                    {Pods: []*corev1.Pod{nil}},
		"pods[1] is nil; leave it out":                                    {Pods: []*corev1.Pod{waits, nil}},
		"pod shop/b is asked about more than once":                        {Pods: []*corev1.Pod{waits, waits}},
		`pod shop/a runs on node "n1", which stays; remove the node, too`: {Pods: []*corev1.Pod{stays}},
		"pod shop/c is not in the snapshot":                               {Pods: []*corev1.Pod{pod("c", "", "1")}},
	} {
		a := c.Ask(t.Context(), q)
		assert.False(t, a.OK(), want)
		assert.Equal(t, want, a.Why)
		assert.NotContains(t, a.Unplaced, (*corev1.Pod)(nil))
		again := a.After().Ask(t.Context(), whatif.Question{Pods: []*corev1.Pod{waits}})
		assert.True(t, again.OK(), "it changes nothing")
	}
	for _, q := range []whatif.Question{{}, {Remove: []string{"n2"}}, {Remove: []string{"n1"}, Pods: []*corev1.Pod{stays, waits}}, {Pods: []*corev1.Pod{waits}, Explain: true}} {
		a := c.Ask(t.Context(), q)
		assert.True(t, a.OK(), a.Why)
	}
}
