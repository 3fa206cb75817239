package bruteforce_test

// One minimal problem for each class of causes of /tmp/w/brute21.md. Copy the file to
// examples/judges/bruteforce. Each sub-test FAILS today: it asks for what the search finds.

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/judges/bruteforce"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

const (
	zoneKey, hostKey = corev1.LabelTopologyZone, corev1.LabelHostname
	typeKey, capKey  = corev1.LabelInstanceTypeStable, "karpenter.sh/capacity-type"
)

func kindOf(name, cpu, memory string, offers ...instancetypes.Offering) instancetypes.InstanceType {
	return instancetypes.New(name, nil, amounts(cpu, memory), offers...)
}

func od(zone string, price float64) instancetypes.Offering {
	return instancetypes.Offer(zone, "on-demand", price)
}

func spot(zone string, price float64) instancetypes.Offering {
	return instancetypes.Offer(zone, "spot", price)
}

func asks2(cpu, memory string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = amounts(cpu, memory) }
}

func selects(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

func hostPort(p *corev1.Pod) {
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080, Protocol: corev1.ProtocolTCP}}
}

func soft(p *corev1.Pod) {
	p.Spec.TopologySpreadConstraints[len(p.Spec.TopologySpreadConstraints)-1].WhenUnsatisfiable = corev1.ScheduleAnyway
}

func prefersNear(key, app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 50, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		}}}}
	}
}

func existing(name, typ, zone, capacity, cpu, memory string) *corev1.Node {
	n := machine(name, zone)
	n.Labels[typeKey], n.Labels[capKey], n.Labels[labelGeneration] = typ, capacity, "3"
	n.Status.Allocatable = amounts(cpu, memory)
	n.Status.Allocatable["pods"] = resource.MustParse("110")
	n.Status.Capacity = n.Status.Allocatable
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

func both(lists ...[]*corev1.Pod) (out []*corev1.Pod) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

func TestCauses(t *testing.T) {
	pools := func(types ...instancetypes.InstanceType) []scheduling.Pool {
		return []scheduling.Pool{{NodePool: nodepool.New("pool-0"), Types: types}}
	}
	racks := []scheduling.Pool{{NodePool: nodepool.New("pool-0", requirements.In(labelRack, "r1", "r2"))}, {NodePool: nodepool.New("pool-1")}}
	for i := range racks {
		racks[i].Types = []instancetypes.InstanceType{kindOf("t", "4", "32Gi", spot("b", 0.088))}
	}
	for _, c := range []struct {
		name  string
		s     scheduling.Snapshot
		leave bool
		best  float64
	}{
		{"1a pinned: a lone pod of a hard spread stays in the zone that was cheap by share (1119)", scheduling.Snapshot{
			Pools: pools(kindOf("large", "2", "8Gi", od("c", 0.1)), kindOf("small", "2", "4Gi", spot("a", 0.046))),
			Pods:  both(several(1, "spread", asks2("500m", "4Gi"), spreads(zoneKey, "spread", 1)), several(3, "tied", asks2("900m", "1Gi"), selects(zoneKey, "c"))),
		}, false, 0.2},
		{"1b pinned, and order: a free pod that a spread counts (7001379)", scheduling.Snapshot{
			Pools: pools(kindOf("t", "2", "8Gi", spot("a", 0.056), od("b", 0.081))),
			Pods: both(several(1, "app-0", asks2("900m", "1Gi")), several(1, "app-1", asks2("100m", "1Gi"), func(p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: zoneKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"app-0", "app-1"}}},
				}}}
			})),
		}, false, 0.056},
		{"1c pinned: a host port leaves no room on the existing node whose zone was chosen (7002366)", scheduling.Snapshot{
			Nodes: []*corev1.Node{existing("node-0", "other", "b", "on-demand", "8", "32Gi")},
			Pools: pools(kindOf("t", "2", "16Gi", spot("a", 0.032), od("b", 0.079))),
			Pods:  several(2, "web", asks2("500m", "4Gi"), hostPort, spreads(zoneKey, "web", 2)),
		}, false, 0.032},
		{"1d pinned: two spreads, combinations that share no node (102487)", scheduling.Snapshot{
			Pools: pools(kindOf("t1", "8", "64Gi", spot("b", 0.133)), kindOf("t2", "2", "8Gi", od("a", 0.083), spot("a", 0.041), od("b", 0.083))),
			Pods:  several(3, "web", asks2("1", "512Mi"), spreads(zoneKey, "web", 2), spreads(capKey, "web", 1)),
		}, false, 0.124},
		{"2a preferences that are ignored pin pods (100)", scheduling.Snapshot{
			Pools: pools(kindOf("t3", "4", "8Gi", od("b", 0.153)), kindOf("t4", "8", "16Gi", spot("b", 0.224))),
			Pods: both(several(1, "app-0", asks2("1500m", "512Mi"), spreads(typeKey, "app-0", 1), soft, inAffinity(zoneKey, "app-0", false), func(p *corev1.Pod) {
				list := &p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
				*list = append(*list, (*list)[0])
				(*list)[1].TopologyKey = hostKey
			}), several(1, "app-1", asks2("3500m", "4Gi"))),
		}, false, 0.224},
		{"2b the same with LeaveZones (2058)", scheduling.Snapshot{
			Pools: pools(kindOf("t", "4", "16Gi", od("a", 0.175), od("b", 0.175), od("c", 0.175))),
			Pods:  both(several(2, "app-0", asks2("500m", "1Gi"), spreads(zoneKey, "app-0", 1)), several(1, "app-1", asks2("900m", "4Gi"), prefersNear(hostKey, "app-0"))),
		}, true, 0.175},
		{"3 pods that keep apart by a label could share a node without it (816)", scheduling.Snapshot{
			Pools: racks, Pods: several(2, "web", asks2("2", "512Mi"), inAffinity(labelRack, "web", true)),
		}, false, 0.088},
		{"4 the zone of a group follows the first pod's free place (2567)", scheduling.Snapshot{
			Nodes: []*corev1.Node{existing("node-0", "other", "a", "spot", "4", "16Gi")},
			Pools: pools(kindOf("t", "4", "32Gi", od("a", 0.15), spot("c", 0.046))),
			Pods:  several(2, "web", asks2("3500m", "1Gi"), inAffinity(zoneKey, "web", false)),
		}, false, 0.092},
		{"5 an existing node goes to pods that have another place (1930)", scheduling.Snapshot{
			Nodes: []*corev1.Node{existing("node-0", "other", "c", "spot", "1200m", "7Gi")},
			Pools: pools(kindOf("t0", "2", "8Gi", od("c", 0.082)), kindOf("t1", "1", "2Gi", od("a", 0.048))),
			Pods:  both(several(1, "app-0", asks2("300m", "256Mi"), selects(zoneKey, "c")), several(1, "app-2", asks2("1", "1Gi"), inAffinity(zoneKey, "app-2", true))),
		}, false, 0.048},
		{"6 classes are assigned in one order: the spread counts pods that could come later (102349)", scheduling.Snapshot{
			Pools: pools(kindOf("t3", "4", "16Gi", spot("a", 0.088)), kindOf("t4", "8", "64Gi", spot("b", 0.221))),
			Pods:  both(several(2, "app-0", asks2("900m", "2Gi"), selects(typeKey, "t4")), several(2, "app-1", asks2("500m", "256Mi"), spreads(zoneKey, "app-0", 1), inAffinity(hostKey, "app-1", true))),
		}, false, 0.309},
		{"7 a zone whose only node the spread does not count is not left (2430)", scheduling.Snapshot{
			Nodes: []*corev1.Node{existing("node-0", "other", "b", "spot", "8", "16Gi")},
			Pools: []scheduling.Pool{{NodePool: nodepool.New("pool-0"), Types: []instancetypes.InstanceType{instancetypes.New("t", map[string]string{labelGeneration: "5"}, amounts("2", "4Gi"), spot("a", 0.025), od("b", 0.088))}}},
			Pods:  several(5, "web", asks2("1500m", "4Gi"), selects(labelGeneration, "5"), spreads(zoneKey, "web", 2)),
		}, true, 0.125},
		{"2c preferences that are ignored change how pods are packed (100784)", scheduling.Snapshot{
			Nodes: []*corev1.Node{existing("node-0", "other", "b", "on-demand", "7700m", "31Gi")},
			Pools: pools(kindOf("t0", "4", "16Gi", spot("c", 0.102)), kindOf("t1", "8", "32Gi", spot("a", 0.131))),
			Pods:  both(several(2, "app-0", asks2("3500m", "2Gi")), several(2, "app-1", asks2("900m", "512Mi"), spreads(hostKey, "app-1", 1), spreads(hostKey, "app-0", 1), soft)),
		}, false, 0.131},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := plan.Make(t.Context(), c.s, &plan.Options{Scheduling: &scheduling.Options{IgnorePreferences: true, LeaveZones: c.leave}})
			require.NoError(t, err)
			counting := bruteforce.ForSale
			if c.leave {
				counting = bruteforce.ForSaleButZones
			}
			a := bruteforce.NewSearch(c.s, counting, nil, 1_000_000).Cheapest(c.s.Pods, bruteforce.Billionths(10))
			require.NotNil(t, a)
			assert.Equal(t, bruteforce.Billionths(c.best), a.Price, "the search: %s", told(a))
			assert.Empty(t, p.Unplaced())
			assert.LessOrEqual(t, p.Cost().Dollars(), c.best+1e-9, "the plan is dearer")
		})
	}
}

// A fix is offered, and with its change a pod has no place.
func TestFalseFixes(t *testing.T) {
	first := int32(1000)
	high := func(p *corev1.Pod) { p.Spec.Priority, p.Spec.PriorityClassName = &first, "high" }
	limited := func(cpu string, types ...instancetypes.InstanceType) []scheduling.Pool {
		p := nodepool.New("pool-0")
		if cpu != "" {
			p.Limits = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
		}
		return []scheduling.Pool{{NodePool: p, Types: types}}
	}
	near := func(p *corev1.Pod) {
		inAffinity(zoneKey, "app-1", false)(p)
		p.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{
			Weight: 50, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: capKey, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app-0"}}},
		}}
	}
	s := scheduling.Snapshot{ // 7001677
		Pools: limited("5", kindOf("t0", "8", "64Gi", od("a", 0.316)), kindOf("t1", "1", "4Gi", od("a", 0.033))),
		Pods:  both(several(2, "app-0", asks2("1", "512Mi"), high, near), several(2, "app-1", asks2("3500m", "2Gi"))),
	}
	for _, class := range draw(1).PriorityClasses {
		s.PriorityClasses = append(s.PriorityClasses, class)
	}
	w := way{"default", s, nil, bruteforce.ForSale}
	p, err := plan.Make(t.Context(), s, nil)
	require.NoError(t, err)
	var out outcome
	out.tryFixes(t.Context(), w, p)
	require.NoError(t, out.err)
	assert.Positive(t, out.fixes)
	assert.Empty(t, out.wrong)
}
