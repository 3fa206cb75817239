package whatif_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// sold is a pool that sells types of two CPUs: name, zone, capacity type and price, for which a count and a reservation may stand.
func sold(offers ...instancetypes.Offering) scheduling.Pool {
	var types []instancetypes.InstanceType
	for i, o := range offers {
		name := fmt.Sprintf("t.%02d", i)
		all, err := o.Requirements.Intersect(requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, name)))
		if err != nil {
			panic(err)
		}
		types = append(types, instancetypes.InstanceType{Name: name, Capacity: list("2", "8Gi"), Offerings: []instancetypes.Offering{o}, Requirements: all})
	}
	return scheduling.Pool{NodePool: nodepool.NodePool{Name: "default", APIVersion: nodepool.V1}, Types: types}
}

func offer(zone, capacityType string, price float64) instancetypes.Offering {
	return instancetypes.Offering{Price: price, Available: true, Requirements: requirements.MustOf(
		requirements.In(corev1.LabelTopologyZone, zone), requirements.In(instancetypes.LabelCapacityType, capacityType))}
}

func capacity(n *corev1.Node, capacityType string) *corev1.Node {
	n.Labels[instancetypes.LabelCapacityType] = capacityType
	return n
}

// However many offers in a zone are cheaper, the one in the zone that the spread asks for is found.
func TestTheRightZoneIsFoundBehindCheaperOffers(t *testing.T) {
	for _, n := range []int{1, 7, 8, 9, 60} {
		var offers []instancetypes.Offering
		for i := range n {
			offers = append(offers, offer("z1", "on-demand", 0.01+float64(i)/1000))
		}
		s := snapshot([]*corev1.Node{node("a", "z2", "4"), node("b", "z1", "1"), node("c", "z2", "1")},
			pod("p", "a", "1", spread(corev1.LabelTopologyZone)), pod("q", "b", "1", spread(corev1.LabelTopologyZone)), pod("r", "c", "1", labelled("full")))
		s.Pools = []scheduling.Pool{sold(append(offers, offer("z2", "on-demand", 0.5))...)}
		c, err := whatif.Compile(s, nil)
		require.NoError(t, err)
		a := c.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: s.Pods[:1], MaxNodes: 1, Explain: true})
		require.True(t, a.OK(), "%d offers: %s", n, a.Why)
		assert.Equal(t, "z2", a.Bought[0].Zone)
	}
}

func ratio(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{"joinery-sdk.dev/ratio": text}
	}
}

// Pods that are divided by a ratio stay divided when they move, and when they are placed for the first time.
func TestRatiosHold(t *testing.T) {
	half := ratio(instancetypes.LabelCapacityType + ": on-demand=1, spot=1")
	s := snapshot([]*corev1.Node{
		capacity(node("a", "z1", "4"), "on-demand"), capacity(node("b", "z1", "4"), "spot"), capacity(node("c", "z1", "4"), "on-demand"), node("d", "z1", "8"),
	}, pod("p", "a", "1", half), pod("q", "b", "1", half))
	c, err := whatif.Compile(s, nil)
	require.NoError(t, err)
	a := c.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: s.Pods[:1], Explain: true})
	require.True(t, a.OK(), a.Why)
	assert.Equal(t, []string{"p>c"}, places(a), "the spot node has its half, and a node without a capacity type has none")
	again := c.Ask(t.Context(), whatif.Question{Remove: []string{"a", "c"}, Pods: s.Pods[:1], Explain: true})
	assert.False(t, again.OK())

	s.Pools = []scheduling.Pool{sold(offer("z1", "spot", 0.01), offer("z1", "on-demand", 0.05))}
	c, err = whatif.Compile(s, nil)
	require.NoError(t, err)
	bought := c.Ask(t.Context(), whatif.Question{Remove: []string{"a", "c"}, Pods: s.Pods[:1], MaxNodes: 1, Explain: true})
	require.True(t, bought.OK(), bought.Why)
	assert.Equal(t, "on-demand", bought.Bought[0].CapacityType)

	waiting := snapshot(s.Nodes, pod("w", "", "1", half), pod("x", "", "1", half))
	c, err = whatif.Compile(waiting, nil)
	require.NoError(t, err)
	_, at := c.Reserve(waiting.Pods)
	types := map[string]int{}
	for _, p := range at {
		for _, n := range s.Nodes {
			if n.Name == p.Node {
				types[n.Labels[instancetypes.LabelCapacityType]]++
			}
		}
	}
	assert.Equal(t, map[string]int{"on-demand": 1, "spot": 1}, types)
}

// Pods that use one claim without a volume are placed in one zone.
func TestPodsWithOneClaimStayInOneZone(t *testing.T) {
	waits := storagev1.VolumeBindingWaitForFirstConsumer
	s := snapshot([]*corev1.Node{node("a", "z1", "1"), node("b", "z2", "1"), node("c", "z2", "1")}, pod("p", "", "1", uses("data")), pod("q", "", "1", uses("data")))
	s.StorageClasses = []*storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "block"}, Provisioner: driver, VolumeBindingMode: &waits}}
	class := "block"
	s.PersistentVolumeClaims = []*corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}},
	}}
	c, err := whatif.Compile(s, nil)
	require.NoError(t, err)
	_, at := c.Reserve(s.Pods)
	zone := map[string]bool{}
	for _, p := range at {
		for _, n := range s.Nodes {
			if n.Name == p.Node {
				zone[n.Labels[corev1.LabelTopologyZone]] = true
			}
		}
	}
	assert.Len(t, zone, 1)
}

// An offer with a count is used up by itself or by its reservation, not by what is bought elsewhere.
func TestCountsAreOfTheirOffer(t *testing.T) {
	few := offer("z1", "on-demand", 0.01)
	few.ReservationCount = 1
	s := snapshot([]*corev1.Node{node("a", "z1", "2"), node("b", "z1", "2"), node("c", "z1", "2")},
		pod("p", "a", "2"), pod("q", "b", "2"), pod("r", "c", "2"))
	s.Pools = []scheduling.Pool{sold(few, offer("z1", "on-demand", 0.05))}
	c, err := whatif.Compile(s, nil)
	require.NoError(t, err)
	var types []string
	for i, name := range []string{"a", "b", "c"} {
		a := c.Ask(t.Context(), whatif.Question{Remove: []string{name}, Pods: s.Pods[i : i+1], MaxNodes: 1, Explain: true})
		require.True(t, a.OK(), a.Why)
		types = append(types, a.Bought[0].Type)
		c = a.After()
	}
	assert.Equal(t, []string{"t.00", "t.01", "t.01"}, types)
}

// What a move takes from pods that they prefer has the price that a planner pays for it, and what it gives counts against that.
func TestPreferencesLostHaveAPrice(t *testing.T) {
	prefers := func(zone string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
				{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}},
			}}}
		}
	}
	away := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: web()}},
		}}}
	}
	even := func(p *corev1.Pod) {
		spread(corev1.LabelHostname)(p)
		p.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.ScheduleAnyway
	}
	infinite, nothing, all := math.Inf(1), 0.0, 1.0
	const own = 10_000_000 // one of two CPUs for two cents
	for name, c := range map[string]struct {
		first, second func(*corev1.Pod)
		taint         bool
		price         *float64
		want          whatif.Price
	}{
		"a zone":             {prefers("z1"), labelled("other"), false, nil, own / 10},
		"a zone, dear":       {prefers("z1"), labelled("other"), false, &all, own},
		"a zone, for free":   {prefers("z1"), labelled("other"), false, &nothing, 0},
		"a zone, at any":     {prefers("z1"), labelled("other"), false, &infinite, 1e18},
		"a zone gained":      {prefers("z2"), labelled("other"), false, nil, 0},
		"company avoided":    {away, func(*corev1.Pod) {}, false, nil, own / 10},
		"a spread":           {even, func(*corev1.Pod) {}, false, nil, own / 10},
		"a soft taint":       {labelled("plain"), labelled("other"), true, nil, own / 10},
		"nothing to prefer":  {labelled("plain"), labelled("other"), false, nil, 0},
		"none of them there": {away, labelled("other"), false, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := node("b", "z2", "8")
			if c.taint {
				b.Spec.Taints = []corev1.Taint{{Key: "old", Effect: corev1.TaintEffectPreferNoSchedule}}
			}
			s := snapshot([]*corev1.Node{node("a", "z1", "4"), b, node("c", "z3", "0")}, pod("p", "a", "1", c.first), pod("q", "b", "1", c.second))
			s.Pools = []scheduling.Pool{sold(offer("z1", "on-demand", 0.02))}
			cluster, err := whatif.Compile(s, &whatif.Options{PreferencePrice: c.price})
			require.NoError(t, err)
			a := cluster.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: s.Pods[:1], Explain: true})
			require.True(t, a.OK(), a.Why)
			assert.Equal(t, c.want, a.Forgone)
			back := a.After().Ask(t.Context(), whatif.Question{Remove: []string{"b"}, Pods: s.Pods[:2], MaxNodes: 3, Explain: true})
			assert.GreaterOrEqual(t, back.Forgone, whatif.Price(0))
		})
	}
}

// A question that is out of time leaves pods unplaced, and the cluster as it was.
func TestQuestionsEndWithTheirContext(t *testing.T) {
	s := snapshot([]*corev1.Node{node("a", "z1", "4"), node("b", "z1", "4")}, pod("p", "a", "1"))
	s.Pools = []scheduling.Pool{market()}
	c, err := whatif.Compile(s, nil)
	require.NoError(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	ask := whatif.Question{Remove: []string{"a"}, Pods: s.Pods, MaxNodes: 1, Explain: true}
	a := c.Ask(over, ask)
	assert.False(t, a.OK())
	assert.Equal(t, "context canceled", a.Why)
	a = c.Ask(t.Context(), ask)
	assert.Equal(t, []string{"p>b"}, places(a))
}

// Pods of a set follow those of it that stay; where all move, they go to one zone, bought nodes included.
func TestSetsStayTogether(t *testing.T) {
	a, b := pod("train-0", "node-a", "3"), pod("train-1", "node-b", "3")
	s := scheduling.Snapshot{
		Nodes: []*corev1.Node{node("node-a", "z1", "4"), node("node-b", "z1", "4"), node("node-c", "z2", "3"), node("node-d", "z1", "3")},
		Pods:  []*corev1.Pod{a, b}, Pools: []scheduling.Pool{market()},
	}
	both := whatif.Question{Remove: []string{"node-a", "node-b"}, Pods: []*corev1.Pod{a, b}, MaxNodes: 2}
	for _, together := range []func(*corev1.Pod) (string, string){nil, func(*corev1.Pod) (string, string) { return "train", corev1.LabelTopologyZone }} {
		c, err := whatif.Compile(s, &whatif.Options{Together: together})
		require.NoError(t, err)
		zones := map[string]bool{}
		answer := c.Ask(t.Context(), both)
		require.True(t, answer.OK())
		for _, p := range answer.Placements {
			zone := map[string]string{"node-c": "z2", "node-d": "z1"}[p.Node]
			for _, n := range answer.Bought {
				if n.Name == p.Node {
					zone = n.Zone
				}
			}
			zones[zone] = true
		}
		one := c.Ask(t.Context(), whatif.Question{Remove: []string{"node-a", "node-d"}, Pods: []*corev1.Pod{a}})
		if together == nil {
			assert.Len(t, zones, 2)
			assert.True(t, one.OK())
		} else {
			assert.Len(t, zones, 1)
			assert.False(t, one.OK(), "node-c is in another zone")
		}
	}
}
