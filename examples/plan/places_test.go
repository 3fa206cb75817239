package plan_test

import (
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

const rack = "example.com/rack"

// racks are a pool of one type, four CPUs for a dollar, of which the requirements are given.
func racks(name, asked string) scheduling.Pool {
	return scheduling.Pool{
		NodePool: nodepool.NodePool{Name: name, Requirements: requirements.MustParse(asked)},
		Types: []instancetypes.InstanceType{{
			Name: "four", Requirements: requirements.MustParse("node.kubernetes.io/instance-type=four, kubernetes.io/arch=amd64"),
			Capacity:  corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("20")},
			Offerings: []instancetypes.Offering{{Price: 1, Available: true, Requirements: requirements.MustParse("topology.kubernetes.io/zone=z, karpenter.sh/capacity-type=on-demand")}},
		}},
	}
}

// Where nodes lack a label, or may have any value of it, pods that keep away from each other by it, and pods that others count by it,
// find a place as with kube-scheduler; nodes that have the label come first for those that keep away.
func TestLabelsThatNodesMayLack(t *testing.T) {
	self := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	apart := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: rack, LabelSelector: self}}}}
	}
	spread := func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: rack, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: self}}
	}
	softly := func(p *corev1.Pod) {
		spread(p)
		p.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.ScheduleAnyway
	}
	for name, c := range map[string]struct {
		pools  []scheduling.Pool
		edit   func(*corev1.Pod)
		placed int
		racks  map[string]int // nodes by label
	}{
		"apart, no rack":             {[]scheduling.Pool{racks("p", "")}, apart, 3, map[string]int{"": 1}},
		"apart, one rack":            {[]scheduling.Pool{racks("p", rack+"=a")}, apart, 1, map[string]int{"a": 1}},
		"apart, one rack and none":   {[]scheduling.Pool{racks("p", ""), racks("q", rack+"=a")}, apart, 3, map[string]int{"": 1}}, // costs least: without the label nothing is apart
		"apart, any rack but a":      {[]scheduling.Pool{racks("p", rack+" notin (a)")}, apart, 3, map[string]int{"": 1}},
		"apart, any rack":            {[]scheduling.Pool{racks("p", rack)}, apart, 3, map[string]int{"default": 1, "default-2": 1, "default-3": 1}},
		"apart, any number above 5":  {[]scheduling.Pool{racks("p", rack+" > 5")}, apart, 3, map[string]int{"6": 1, "7": 1, "8": 1}},
		"spread, no rack":            {[]scheduling.Pool{racks("p", "")}, spread, 0, nil},
		"spread, any rack":           {[]scheduling.Pool{racks("p", rack)}, spread, 3, map[string]int{"default": 1}},
		"spread softly, any rack":    {[]scheduling.Pool{racks("p", rack)}, softly, 3, map[string]int{"default": 1}},
		"spread softly, any but a":   {[]scheduling.Pool{racks("p", rack+" notin (a)")}, softly, 3, map[string]int{"": 1}},
		"spread, any rack but a":     {[]scheduling.Pool{racks("p", rack+" notin (a)")}, spread, 0, nil},
		"spread over those of pools": {[]scheduling.Pool{racks("p", rack+" in (a,b)")}, spread, 3, map[string]int{"a": 1, "b": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			list := pods(3)
			for _, p := range list {
				p.Labels = map[string]string{"app": "web"}
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
				c.edit(p)
			}
			p, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: list, Pools: c.pools}, nil)
			require.NoError(t, err)
			assert.Len(t, p.Bindings(), c.placed)
			var got map[string]int
			for _, n := range p.NewNodes() {
				if got == nil {
					got = map[string]int{}
				}
				got[n.Labels[rack]]++
			}
			assert.Equal(t, c.racks, got)
		})
	}
}

// A zone that stands empty while a spread waits for it may be closed to new nodes, which lets more pods of that spread in, but not at
// the cost of pods of higher priority that spread over the zone themselves.
func TestZonesAreNotClosedToMoreUrgentPods(t *testing.T) {
	honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	cordoned := &corev1.Node{ // for low pods no domain, for high ones one
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelHostname: "n", corev1.LabelTopologyZone: "b"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "closed", Effect: corev1.TaintEffectNoSchedule}}},
	}
	over := func(app string, policy *corev1.NodeInclusionPolicy, priority int32, p *corev1.Pod) *corev1.Pod {
		p.Name, p.Labels, p.Spec.Priority = app+p.Name, map[string]string{"app": app}, &priority
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("100m")}
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, NodeTaintsPolicy: policy, NodeAffinityPolicy: &ignore,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		}}
		return p
	}
	for _, low := range []int{2, 9} { // which want one zone only
		pool := racks("p", "")
		pool.Types[0].Offerings = append(pool.Types[0].Offerings[:0:0], pool.Types[0].Offerings...)
		for i, zone := range []string{"a", "b"} {
			o := pool.Types[0].Offerings[0]
			o.Requirements = requirements.MustParse("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone=" + zone)
			pool.Types[0].Offerings = append(pool.Types[0].Offerings[:i:i], o)
		}
		var list []*corev1.Pod
		for _, p := range pods(low) {
			p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "a"}
			list = append(list, over("low", &honor, -10, p))
		}
		for _, p := range pods(4) {
			list = append(list, over("high", nil, 0, p))
		}
		p, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: list, Pools: []scheduling.Pool{pool}, Nodes: []*corev1.Node{cordoned}}, nil)
		require.NoError(t, err)
		placed := map[string]int{}
		for _, b := range p.Bindings() {
			placed[b.Pod.Labels["app"]]++
		}
		assert.Equal(t, map[string]int{"high": 4, "low": 1}, placed, "%d low ones", low)
	}
}

// An unplaced pod does not change what happens to others. Here the pool's MinValues ask for three types, so no pod can be tied to the type
// that the follower needs; then the follower is larger than any type.
func TestPodsWithoutAPlaceTieNobody(t *testing.T) {
	pool := pools()[0]
	make := func(least int, list ...*corev1.Pod) *plan.Plan {
		pool.MinValues = map[string]int{corev1.LabelInstanceTypeStable: least}
		p, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: list, Pools: []scheduling.Pool{pool}}, nil)
		require.NoError(t, err)
		return p
	}
	follower := pods(1)[0]
	follower.Name = "follower"
	follower.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelInstanceTypeStable, LabelSelector: &metav1.LabelSelector{},
	}}}}
	alone := make(3, pods(9)...)
	require.Len(t, alone.Bindings(), 9)
	both := make(3, append(pods(9), follower)...)
	assert.Len(t, both.Bindings(), 9)
	assert.Equal(t, alone.Cost(), both.Cost())

	follower.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("9000")
	alone, both = make(0, pods(9)...), make(0, append(pods(9), follower)...)
	assert.Equal(t, alone.Cost(), both.Cost())
}

// Where a spread over hostnames counts no node to buy, its least count rises with the nodes that there are, until one of them is full.
func TestSpreadOverNodesThatExist(t *testing.T) {
	s := scheduling.Snapshot{Pools: []scheduling.Pool{racks("p", "")}}
	for name, cpu := range map[string]string{"n1": "9", "n2": "9", "n3": "2"} {
		s.Nodes = append(s.Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, "tier": "old"}},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("40")},
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
	}
	for name, c := range map[string]struct {
		edit func(i int, p *corev1.Pod)
		want map[string]int
	}{
		"alone": {func(int, *corev1.Pod) {}, map[string]int{"n1": 3, "n2": 3, "n3": 2}},
		"with others to it": {func(i int, p *corev1.Pod) {
			if i >= 12 {
				p.Spec.TopologySpreadConstraints = nil
			}
		}, map[string]int{"n1": 9, "n2": 9, "n3": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			s.Pods = pods(24)
			if name == "alone" {
				s.Pods = s.Pods[:12]
			}
			for i, p := range s.Pods {
				p.Labels, p.Spec.NodeSelector = map[string]string{"app": "web"}, map[string]string{"tier": "old"}
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
					MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				}}
				c.edit(i, p)
			}
			p, err := plan.Make(t.Context(), s, nil)
			require.NoError(t, err)
			got := map[string]int{}
			for _, b := range p.Bindings() {
				got[b.Node]++
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// An open label takes the values that nodes have, and further ones; a value of its own is used only where it helps.
func TestOpenLabels(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelHostname: "n", rack: "r1"}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("9")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	db := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "shop", Labels: map[string]string{"app": "db"}}, Spec: corev1.PodSpec{NodeName: "n"}}
	term := func(app string) []corev1.PodAffinityTerm {
		return []corev1.PodAffinityTerm{{TopologyKey: rack, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
	}
	for name, c := range map[string]struct {
		edit   func(*corev1.Pod)
		placed int
		racks  map[string]int
	}{
		"apart": {func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term("p")}}
		}, 4, map[string]int{"default": 1, "default-2": 1, "default-3": 1, "r1": 1}},
		"spread": {func(p *corev1.Pod) {
			over(rack)(p)
			p.Spec.TopologySpreadConstraints[0].LabelSelector = &metav1.LabelSelector{MatchLabels: p.Labels}
		}, 4, map[string]int{"default": 2, "r1": 2}},
		"with a running pod": {func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term("db")}}
		}, 4, map[string]int{"r1": 4}},
		"away from a running pod": {func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term("db")}}
		}, 4, map[string]int{"default": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: append(pending(4, c.edit), db), Pools: []scheduling.Pool{racks("p", rack)}, Nodes: []*corev1.Node{node}}, nil)
			require.NoError(t, err)
			assert.Len(t, p.Bindings(), c.placed)
			got := map[string]int{}
			for _, n := range p.NewNodes() {
				got[n.Labels[rack]]++
			}
			assert.Equal(t, c.racks, got)
		})
	}
}

// Required affinity to the pods of a DaemonSet is met by nodes that run them: by the node itself, or by another one of its domain. Pods share
// such nodes.
func TestAffinityToDaemons(t *testing.T) {
	daemons := func(arch string) *appsv1.DaemonSet {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache"}}
		d.Spec.Template.Labels = map[string]string{"app": "cache"}
		d.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: arch}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
		return d
	}
	beside := func(key, namespace string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: key, Namespaces: []string{namespace}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cache"}},
			}}}}
		}
	}
	arm := racks("arm", "")
	arm.Types[0].Name, arm.Types[0].Requirements = "arm", requirements.MustParse("node.kubernetes.io/instance-type=arm, kubernetes.io/arch=arm64")
	arm.Types[0].Offerings[0].Price = 2
	for name, c := range map[string]struct {
		edit   func(*corev1.Pod)
		placed int
		most   float64 // dollars an hour
	}{
		"by node":            {beside(corev1.LabelHostname, "shop"), 8, 6}, // three on each arm machine
		"by zone":            {beside(corev1.LabelTopologyZone, "shop"), 8, 6},
		"another namespace":  {beside(corev1.LabelHostname, "bank"), 0, 0},
		"a label that lacks": {beside(rack, "shop"), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			list := replicas(8, c.edit)
			s := scheduling.Snapshot{Pods: list, Pools: []scheduling.Pool{racks("amd", ""), arm}, DaemonSets: []*appsv1.DaemonSet{daemons("arm64")}}
			p, err := plan.Make(t.Context(), s, nil)
			require.NoError(t, err)
			assert.Len(t, p.Bindings(), c.placed)
			assert.LessOrEqual(t, p.Cost(), binpack.Dollars(c.most))
		})
	}
}

// A DaemonSet that selects nodes by a label that a pool leaves open runs on nodes with that value, and takes capacity and ports of these alone.
func TestDaemonsOfOpenLabels(t *testing.T) {
	daemon := func(where map[string]string) *appsv1.DaemonSet {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent"}}
		d.Spec.Template.Spec.NodeSelector = where
		d.Spec.Template.Spec.Containers = []corev1.Container{{
			Ports:     []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}},
		}}
		return d
	}
	port := func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	}
	on := func(value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{rack: value} }
	}
	for name, c := range map[string]struct {
		asked  string
		edit   func(*corev1.Pod)
		placed int
		racks  map[string]int
	}{
		"a port":               {rack + " in (a,b)", port, 1, map[string]int{"b": 1}},
		"capacity":             {rack + " in (a,b)", func(*corev1.Pod) {}, 1, map[string]int{"b": 1}},
		"any value":            {rack, func(*corev1.Pod) {}, 1, map[string]int{"default": 1}},
		"any value but b":      {rack + " notin (b)", port, 1, map[string]int{"": 1}},
		"only the daemon's":    {rack + "=a", func(*corev1.Pod) {}, 0, map[string]int{}},
		"the pod asks for it":  {rack + " in (a,b)", on("a"), 0, map[string]int{}},
		"the pod asks for b":   {rack + " in (a,b)", on("b"), 1, map[string]int{"b": 1}},
		"the pod asks for any": {rack, on("c"), 1, map[string]int{"c": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduling.Snapshot{Pods: pending(1, c.edit), Pools: []scheduling.Pool{racks("p", c.asked)}, DaemonSets: []*appsv1.DaemonSet{daemon(map[string]string{rack: "a"})}}
			p, err := plan.Make(t.Context(), s, nil)
			require.NoError(t, err)
			assert.Len(t, p.Bindings(), c.placed)
			got := map[string]int{}
			for _, n := range p.NewNodes() {
				got[n.Labels[rack]]++
			}
			assert.Equal(t, c.racks, got)
		})
	}
}
