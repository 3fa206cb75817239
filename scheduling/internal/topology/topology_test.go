package topology_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
)

const (
	zone  = corev1.LabelTopologyZone
	host  = corev1.LabelHostname
	tier  = "example.com/tier"
	taint = "taints"
)

func app(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

// class returns pods of an app that take one unit each of cpu and memory.
func class(name string, count int, edits ...func(*topology.Class)) topology.Class {
	anything := requirements.AnyOf(requirements.Set{})
	c := topology.Class{
		Pod:   &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": name}}},
		Count: count, Requests: []int64{1, 1}, Asked: anything, Required: anything,
	}
	for _, e := range edits {
		e(&c)
	}
	return c
}

func takes(n int64) func(*topology.Class) {
	return func(c *topology.Class) { c.Requests = []int64{n, n} }
}

func asks(text string) func(*topology.Class) {
	return func(c *topology.Class) {
		c.Asked = requirements.AnyOf(requirements.MustParse(text))
		c.Required = c.Asked
	}
}

func spread(key, name string, edits ...func(*corev1.TopologySpreadConstraint)) func(*topology.Class) {
	return func(c *topology.Class) {
		t := corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: app(name)}
		for _, e := range edits {
			e(&t)
		}
		c.Pod.Spec.TopologySpreadConstraints = append(c.Pod.Spec.TopologySpreadConstraints, t)
	}
}

func soft(t *corev1.TopologySpreadConstraint) { t.WhenUnsatisfiable = corev1.ScheduleAnyway }

func affinity(c *topology.Class) *corev1.Affinity {
	if c.Pod.Spec.Affinity == nil {
		c.Pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
	}
	return c.Pod.Spec.Affinity
}

func near(key, name string) func(*topology.Class) {
	return func(c *topology.Class) {
		a := affinity(c).PodAffinity
		a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution,
			corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: app(name)})
	}
}

func away(key, name string) func(*topology.Class) {
	return func(c *topology.Class) {
		a := affinity(c).PodAntiAffinity
		a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution,
			corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: app(name)})
	}
}

// shape is one size of node, at a price of one per unit of cpu, with an offering for each label
// set.
func shape(size int64, labels string, offerings ...string) topology.Shape {
	out := topology.Shape{Labels: requirements.MustParse(labels), Free: []int64{size, size}}
	for _, o := range offerings {
		out.Offerings = append(out.Offerings, topology.Offering{Labels: requirements.MustParse(o), Price: float64(size)})
	}
	return out
}

func inZones(size int64, zones ...string) topology.Shape {
	var offerings []string
	for _, z := range zones {
		offerings = append(offerings, zone+"="+z)
	}
	return shape(size, "", offerings...)
}

func assign(t *testing.T, in topology.Input, shapes ...topology.Shape) (*topology.Problem, *topology.Assignment) {
	t.Helper()
	p, errs := topology.New(in)
	require.Empty(t, errs)
	p = p.WithShapes(slices.Values(shapes))
	return p, p.Start()
}

// placed returns how many pods of each class went to each domain, and how many are unplaced.
func placed(st *topology.Assignment) []string {
	out := []string{}
	for _, pt := range st.Classes {
		for d, n := range pt.Placed {
			if n > 0 {
				out = append(out, fmt.Sprintf("%d in %q: %d", pt.Class, pt.Domains[d], n))
			}
		}
	}
	for c, n := range st.Unplaced {
		if n > 0 {
			out = append(out, fmt.Sprintf("%d unplaced: %d", c, n))
		}
	}
	return out
}

func TestZoneSpreadIsBalanced(t *testing.T) {
	_, st := assign(t, topology.Input{Classes: []topology.Class{class("web", 10, spread(zone, "web"))}}, inZones(4, "a", "b", "c"))
	assert.Equal(t, []string{`0 in "a": 4`, `0 in "b": 3`, `0 in "c": 3`}, placed(st))
	require.Len(t, st.Lots, 3)
	assert.Equal(t, zone+" in (b)", st.Lots[1].Required.String())
}

// A spread over zones and tiers, with one of nine combinations missing: a greedy choice gets stuck.
func TestTwoSpreadsWithOneCombinationMissing(t *testing.T) {
	var offerings []string
	for _, z := range []string{"a", "b", "c"} {
		for _, k := range []string{"x", "y", "z"} {
			if z+k != "cz" {
				offerings = append(offerings, zone+"="+z+","+tier+"="+k)
			}
		}
	}
	_, st := assign(t, topology.Input{Classes: []topology.Class{class("web", 18, spread(zone, "web"), spread(tier, "web"))}}, shape(4, "", offerings...))
	assert.Equal(t, []int{0}, st.Unplaced, "18 of 18")
	sums := map[string]int{}
	for d, n := range st.Classes[0].Placed {
		for _, v := range st.Classes[0].Domains[d].Values {
			sums[v] += n
		}
	}
	delete(sums, "in") // every node that has both keys counts
	assert.Equal(t, map[string]int{"a": 6, "b": 6, "c": 6, "x": 6, "y": 6, "z": 6}, sums)
}

// A zone that only sells too small or untolerated nodes still counts for a spread once it has a
// node. So no node may be there.
func TestDomainsThatOnlyStandInTheWayAreClosed(t *testing.T) {
	small, tainted := inZones(1, "c"), inZones(4, "c")
	tainted.Labels = requirements.MustParse(taint + "=t1")
	normal := inZones(4, "a", "b")
	normal.Labels = requirements.MustParse(taint + "=t0")
	tolerates := func(c *topology.Class) {
		c.Tolerated = requirements.MustParse(taint + "=t0")
		c.Untainted = c.Tolerated
	}
	for name, c := range map[string]struct {
		web    topology.Class
		shapes []topology.Shape
	}{
		"only small types": {class("web", 12, takes(2), spread(zone, "web")), []topology.Shape{inZones(4, "a", "b"), small}},
		"a tainted pool":   {class("web", 12, tolerates, spread(zone, "web")), []topology.Shape{normal, tainted}},
	} {
		t.Run(name, func(t *testing.T) {
			_, st := assign(t, topology.Input{Classes: []topology.Class{c.web, class("other", 3)}}, c.shapes...)
			assert.Equal(t, []string{`0 in "a": 6`, `0 in "b": 6`, `1 in "": 3`}, placed(st), "12 of 12")
			for _, lot := range st.Lots {
				assert.False(t, lot.Required.Matches(map[string]string{zone: "c", taint: "t0"}), "nobody may open the zone")
			}
			// A class that can be nowhere else keeps the zone open.
			stuck := class("stuck", 1, asks(zone+"=c"))
			_, st = assign(t, topology.Input{Classes: []topology.Class{c.web, stuck}}, c.shapes...)
			assert.Equal(t, []int{10, 0}, st.Unplaced)
		})
	}
}

func TestZoneAffinityInEitherOrder(t *testing.T) {
	db, web := class("db", 1), class("web", 3, takes(2), near(zone, "db"))
	for name, classes := range map[string][]topology.Class{"target first": {db, web}, "target last": {web, db}} {
		t.Run(name, func(t *testing.T) {
			// The target could be in zone a, but its followers fit nowhere there.
			_, st := assign(t, topology.Input{Classes: classes}, inZones(1, "a"), inZones(4, "b"))
			assert.Equal(t, 0, st.Unplaced[0]+st.Unplaced[1])
			for _, pt := range st.Classes {
				for d, n := range pt.Placed {
					assert.True(t, n == 0 || pt.Domains[d].String() == "b", "%v", placed(st))
				}
			}
			first := st.Classes[st.Picks[0].Relaxed].Class
			assert.Equal(t, "db", classes[first].Pod.Name, "the target binds first")
		})
	}
}

func TestAntiAffinityActsBothWays(t *testing.T) {
	loud, quiet := class("loud", 1, takes(2), away(zone, "quiet")), class("quiet", 2)
	_, st := assign(t, topology.Input{Classes: []topology.Class{loud, quiet}}, inZones(4, "a", "b"))
	assert.Equal(t, []string{`0 in "a": 1`, `1 in "b": 2`}, placed(st), "who comes later keeps away from who kept away")
	_, st = assign(t, topology.Input{Classes: []topology.Class{loud, quiet}}, inZones(4, "a"))
	assert.Equal(t, []string{`0 in "a": 1`, `1 unplaced: 2`}, placed(st))

	// The same with a pod that runs.
	node := topology.Node{Labels: requirements.FromLabels(map[string]string{zone: "a", host: "n1"}), Free: []int64{0, 0}, Running: []*corev1.Pod{loud.Pod}}
	p, st := assign(t, topology.Input{Classes: []topology.Class{quiet}, Nodes: []topology.Node{node}}, inZones(4, "a", "b"))
	assert.Equal(t, []string{`0 in "b": 2`}, placed(st))
	assert.Equal(t, []topology.Obstacle{{Key: zone, Text: "running pods that keep away from app=quiet by " + zone}}, p.Obstacles(0))
}

// Pods that must be together and spread over the same label keep others off every further domain.
func TestSpreadsOfPodsTogetherAreObstacles(t *testing.T) {
	for _, key := range []string{zone, host} {
		for count, want := range map[int]int{1: 0, 2: 1, 5: 1} {
			web := class("web", count, near(key, "web"), spread(key, "web"))
			p, _ := assign(t, topology.Input{Classes: []topology.Class{web, class("other", 2)}}, inZones(4, "a", "b"))
			assert.Len(t, p.Obstacles(1), want)
			assert.Len(t, p.Obstacles(0), 2, "its own constraints")
			for _, o := range p.Obstacles(1) {
				assert.Equal(t, topology.Obstacle{Key: key, Text: "spread of app=web over " + key + " with skew 1, whose pods must be together", Others: true}, o)
			}
		}
	}
}

func TestHostnameConstraintsBecomeTagsAndLimits(t *testing.T) {
	running := class("web", 1)
	node := topology.Node{Labels: requirements.FromLabels(map[string]string{host: "n1"}), Free: []int64{4, 4}, Running: []*corev1.Pod{running.Pod}}
	p, st := assign(t, topology.Input{Nodes: []topology.Node{node}, Classes: []topology.Class{class("web", 3, away(host, "web")), class("loner", 1, away(host, "web"))}})
	require.Len(t, st.Lots, 2)
	require.Len(t, st.Lots[0].Tags, 1)
	tag := st.Lots[0].Tags[0]
	assert.Equal(t, []topology.Limit{{Tag: tag, Max: 1}}, st.Lots[0].Limits, "one of itself")
	assert.Empty(t, st.Lots[1].Tags)
	assert.Equal(t, []topology.Limit{{Tag: tag, Max: 0}}, st.Lots[1].Limits)
	tags, limits := p.Within(0)
	assert.Equal(t, []string{tag}, tags)
	assert.Empty(t, limits)
}

// If no node to buy counts, the least count of a spread by hostname rises with the existing nodes,
// one of which is full. Other pods that it counts are assigned with them.
func TestHostnameSpreadOverNodesThatExist(t *testing.T) {
	old := func(name string, free int64) topology.Node {
		return topology.Node{Labels: requirements.FromLabels(map[string]string{host: name, zone: "a", tier: "old"}), Free: []int64{free, free}}
	}
	in := topology.Input{
		Nodes:   []topology.Node{old("n1", 9), old("n2", 9), old("n3", 2)},
		Classes: []topology.Class{class("web", 12, asks(tier+"=old"), spread(host, "web"))},
	}
	_, st := assign(t, in, inZones(8, "a"))
	require.Equal(t, []string{`0 in "n1": 3`, `0 in "n2": 3`, `0 in "n3": 2`, "0 unplaced: 4"}, placed(st))
	in.Classes = append(in.Classes, class("web", 12, asks(tier+"=old")))
	_, st = assign(t, in, inZones(8, "a"))
	on := make([]int, len(in.Nodes))
	for _, lot := range st.Lots {
		on[lot.Node] += lot.Count
	}
	require.Equal(t, []int{9, 9, 2}, on, "they are tied to nodes, as many as these hold")

	in.Classes[1] = class("web", 3, takes(10))
	_, st = assign(t, in, inZones(32, "a"))
	require.Equal(t, []string{`0 in "n1": 3`, `0 in "n2": 3`, `0 in "n3": 2`, `1 in "out/(none)": 3`, "0 unplaced: 4"}, placed(st))

	also := inZones(8, "a")
	also.Labels = requirements.MustParse(tier + "=old")
	_, st = assign(t, in, also)
	require.Equal(t, topology.Limit{Tag: st.Lots[0].Tags[0], Max: 1}, st.Lots[0].Limits[0], "a new node might be empty")

	for i := range 64 {
		in.Nodes = append(in.Nodes, old(fmt.Sprint("more", i), 2))
	}
	_, st = assign(t, in, inZones(32, "a"))
	require.Len(t, st.Lots[0].Limits, 1, "too many to look at them all for every pod")
}

// A spread by hostname limits only the pod that is bound; others that it counts may come later. If
// they are known to share its node, the limit is their number there.
func TestHostnameSpreadLimitsWhoComes(t *testing.T) {
	first, later := class("web", 1, spread(host, "web")), class("web", 2, near(host, "web"))
	_, st := assign(t, topology.Input{Classes: []topology.Class{first, later}}, inZones(8, "a"))
	require.Equal(t, []int{0, 0}, st.Unplaced)
	require.Len(t, st.Lots, 1)
	require.Equal(t, []topology.Limit{{Tag: st.Lots[0].Tags[0], Max: 3}}, st.Lots[0].Limits)
	_, st = assign(t, topology.Input{Classes: []topology.Class{class("db", 1), class("web", 2, near(host, "db"), spread(host, "web"))}}, inZones(8, "a"))
	require.Equal(t, 1, st.Unplaced[1], "who comes later and spreads finds one there")
}

func TestBundles(t *testing.T) {
	t.Run("self-affinity by hostname", func(t *testing.T) {
		_, st := assign(t, topology.Input{Classes: []topology.Class{class("web", 3, near(host, "web"))}}, inZones(4, "a"))
		require.Len(t, st.Lots, 1)
		assert.Equal(t, []topology.Slot{{Relaxed: 0, Domain: 0, Count: 3}}, st.Lots[0].Slots)
		assert.Equal(t, []int64{3, 3}, st.Lots[0].Requests)
		assert.Equal(t, 1, st.Lots[0].Count)
		assert.Equal(t, -1, st.Lots[0].Node)
	})
	t.Run("a group that outgrows a node", func(t *testing.T) {
		_, st := assign(t, topology.Input{Classes: []topology.Class{class("web", 7, near(host, "web"))}}, inZones(4, "a"))
		require.Len(t, st.Lots, 1)
		assert.Equal(t, 4, st.Lots[0].Slots[0].Count)
		assert.Equal(t, []int{3}, st.Unplaced)
	})
	t.Run("followers of another class", func(t *testing.T) {
		_, st := assign(t, topology.Input{Classes: []topology.Class{class("db", 2), class("web", 5, near(host, "db"))}}, inZones(4, "a"))
		require.Len(t, st.Lots, 2, "two nodes with a different number of followers")
		for _, lot := range st.Lots {
			assert.Equal(t, 0, st.Classes[lot.Slots[0].Relaxed].Class, "the pod that they follow is first")
			assert.True(t, st.Classes[lot.Slots[1].Relaxed].Follows)
		}
		assert.Equal(t, []int{0, 0}, st.Unplaced)
	})
	t.Run("pods that run", func(t *testing.T) {
		db := class("db", 1)
		node := func(name string, running ...*corev1.Pod) topology.Node {
			return topology.Node{Labels: requirements.FromLabels(map[string]string{host: name}), Free: []int64{2, 2}, Running: running}
		}
		_, st := assign(t, topology.Input{
			Nodes: []topology.Node{node("n1"), node("n2", db.Pod)}, Classes: []topology.Class{class("web", 3, near(host, "db"))},
		}, inZones(4, "a"))
		require.Len(t, st.Lots, 1)
		assert.Equal(t, 1, st.Lots[0].Node)
		assert.Equal(t, 2, st.Lots[0].Count)
		assert.Equal(t, host+" in (n2)", st.Lots[0].Required.String())
		assert.Equal(t, []int{1}, st.Unplaced)
	})
	t.Run("pods that follow one which follows pods that run", func(t *testing.T) {
		node := topology.Node{Labels: requirements.FromLabels(map[string]string{host: "n1"}), Free: []int64{3, 3}, Running: []*corev1.Pod{class("db", 1).Pod}}
		_, st := assign(t, topology.Input{
			Nodes: []topology.Node{node}, Classes: []topology.Class{class("web", 1, near(host, "db")), class("log", 3, near(host, "web"))},
		})
		require.Len(t, st.Lots, 1)
		assert.Equal(t, 0, st.Lots[0].Node)
		assert.Equal(t, []topology.Slot{{Relaxed: 0, Domain: 0, Count: 1}, {Relaxed: 1, Domain: 0, Count: 2}}, st.Lots[0].Slots, "as many as there is room for")
		assert.Equal(t, []int64{3, 3}, st.Lots[0].Requests)
		assert.Equal(t, []int{0, 1}, st.Unplaced)
	})
}

// A spread counts only pods on nodes that its owner could use. Other pods of the app may be
// elsewhere.
func TestCountsDependOnTheOwnersNodeFilter(t *testing.T) {
	offerings := []string{zone + "=a,arch=arm", zone + "=b,arch=arm", zone + "=a,arch=amd", zone + "=b,arch=amd"}
	owner := class("web", 2, takes(2), asks("arch=arm"), spread(zone, "web"))
	other := class("web", 5, asks(zone+"=a"))
	_, st := assign(t, topology.Input{Classes: []topology.Class{owner, other}}, shape(4, "", offerings...))
	assert.Equal(t, []int{0, 0}, st.Unplaced)
	assert.Contains(t, placed(st), `0 in "a": 1`)
	assert.Contains(t, placed(st), `0 in "b": 1`)
	for d, n := range st.Classes[1].Placed {
		if n > 0 {
			assert.Contains(t, []string{"in/a", "out/a"}, st.Classes[1].Domains[d].String(), "each is settled on one side of the filter")
		}
	}
	// Pods that only fit on nodes outside the filter do not count, although their labels allow others.
	large := class("web", 5, takes(3), asks(zone+"=a"))
	_, st = assign(t, topology.Input{Classes: []topology.Class{owner, large}}, shape(2, "arch=arm", zone+"=a", zone+"=b"), shape(4, "arch=amd", zone+"=a"))
	assert.Equal(t, []string{`0 in "a": 1`, `0 in "b": 1`, `1 in "out/a": 5`}, placed(st))
	// If affinity is ignored, all of them count, and zone b has to catch up first.
	ignore := corev1.NodeInclusionPolicyIgnore
	all := func(c *corev1.TopologySpreadConstraint) { c.NodeAffinityPolicy = &ignore }
	last := class("web", 6, asks("arch=arm"), spread(zone, "web", all))
	_, st = assign(t, topology.Input{Classes: []topology.Class{class("web", 5, takes(2), asks(zone+"=a")), last}}, shape(4, "", offerings...))
	assert.Equal(t, []string{`0 in "a": 5`, `1 in "a": 1`, `1 in "b": 5`}, placed(st))
}

func TestPreferencesAreGivenUpInTheDocumentedOrder(t *testing.T) {
	c := class("web", 1, spread(zone, "web", soft), spread(tier, "web", soft), func(c *topology.Class) {
		c.Preferred = []requirements.Preference{{Weight: 5, Nodes: requirements.MustParse("disk=fast")}, {Weight: 2, Nodes: requirements.MustParse("disk=big")}}
		c.Untainted = requirements.MustParse(taint + "=t0")
		affinity(c).PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{
			{Weight: 9, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: zone, LabelSelector: app("db")}},
			{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: zone, LabelSelector: app("cache")}},
		}
	})
	in := topology.Input{Classes: []topology.Class{c}}
	// No preference can be met.
	bare := shape(4, taint+"=t1,disk=slow", zone+"=a")
	p, st := assign(t, in, bare)
	var order []string
	for _, pref := range p.Preferences(0) {
		order = append(order, fmt.Sprintf("%s %d: %s", pref.Kind, pref.Weight, pref.Text))
	}
	assert.Equal(t, []string{
		"ScheduleAnyway spread 0: spread over example.com/tier with skew 1",
		"ScheduleAnyway spread 0: spread over topology.kubernetes.io/zone with skew 1",
		"preferred pod (anti-)affinity 1: near pods app=cache by topology.kubernetes.io/zone",
		"preferred pod (anti-)affinity 9: near pods app=db by topology.kubernetes.io/zone",
		"preferred node affinity 2: disk in (big)",
		"preferred node affinity 5: disk in (fast)",
		"PreferNoSchedule taint 0: nodes without soft taints",
	}, order)
	last := st.Classes[len(st.Classes)-1]
	assert.Equal(t, 7, last.Level)
	assert.Equal(t, []int{1}, last.Placed)
	// With a fast disk and without a soft taint for sale, the last two are kept.
	_, st = assign(t, in, bare, shape(8, taint+"=t0,disk=fast", zone+"=b"))
	last = st.Classes[len(st.Classes)-1]
	assert.Equal(t, 5, last.Level)
	assert.False(t, st.Lots[0].Required.Matches(map[string]string{taint: "t0", "disk": "slow"}))
	// None is tried if they are ignored, and those about other pods are not even read.
	in.IgnorePreferences = true
	_, st = assign(t, in, bare)
	require.Len(t, st.Classes, 1)
	assert.Equal(t, 3, st.Classes[0].Level)
}

// Pods that are counted by a label may still go to nodes without that label.
func TestCountedPodsMayBeWhereTheyAreNotCounted(t *testing.T) {
	classes := []topology.Class{class("web", 2), class("other", 2, spread(tier, "web"))}
	_, st := assign(t, topology.Input{Classes: classes}, shape(4, "", zone+"=a"))
	assert.Equal(t, []string{`0 in "(none)": 2`, `1 unplaced: 2`}, placed(st))
	assert.False(t, st.Lots[0].Required.Matches(map[string]string{tier: "x"}))
}

func TestWhatPackingLearntIsKept(t *testing.T) {
	in := topology.Input{Classes: []topology.Class{class("web", 4, spread(zone, "web", func(c *corev1.TopologySpreadConstraint) { c.MaxSkew = 2 }))}}
	p, st := assign(t, in, inZones(4, "a", "b"))
	assert.Equal(t, []string{`0 in "a": 2`, `0 in "b": 2`}, placed(st))
	facts, news := st.Learn(func(part, domain int) int { return 1 - domain }) // one is unplaced in zone a
	assert.True(t, news)
	again := p.Assign(facts)
	assert.Equal(t, []string{`0 in "a": 1`, `0 in "b": 3`}, placed(again))
	_, news = again.Learn(func(int, int) int { return 0 })
	assert.False(t, news, "all were placed")
	assert.Equal(t, []string{`0 in "a": 2`, `0 in "b": 2`}, placed(st), "assignments are immutable")

	_, st = assign(t, topology.Input{Classes: []topology.Class{class("free", 2)}}, inZones(4, "a"))
	_, news = st.Learn(func(int, int) int { return 1 })
	assert.False(t, news, "nobody has anywhere else to go")
}

func TestUsersOfOneVolumeStayTogether(t *testing.T) {
	in := topology.Input{
		Classes:  []topology.Class{class("web", 2), class("batch", 2, asks(zone+" in (b,c)"))},
		Together: []topology.Together{{Name: "users of a volume", Key: zone, Classes: []int{0, 1}}},
	}
	_, st := assign(t, in, inZones(4, "a", "b", "c"))
	assert.Equal(t, 0, st.Unplaced[0]+st.Unplaced[1])
	zones := map[string]bool{}
	for _, pt := range st.Classes {
		for d, n := range pt.Placed {
			if n > 0 {
				zones[pt.Domains[d].String()] = true
			}
		}
	}
	assert.Len(t, zones, 1, "%v", placed(st))
}

func TestMalformedSelectorsAreNamed(t *testing.T) {
	bad := class("bad", 1, spread(zone, "bad"))
	bad.Pod.Spec.TopologySpreadConstraints[0].LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "in"}}}
	worse := class("worse", 1, near(zone, "x"))
	worse.Pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector = bad.Pod.Spec.TopologySpreadConstraints[0].LabelSelector
	_, errs := topology.New(topology.Input{Classes: []topology.Class{bad, class("good", 1), worse}})
	require.Len(t, errs, 2, "all at once")
	assert.Equal(t, []int{0, 2}, []int{errs[0].Class, errs[1].Class})
	assert.ErrorContains(t, errs[0].Err, "spec.topologySpreadConstraints[0].labelSelector: ")
	assert.ErrorContains(t, errs[1].Err, "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelector: ")
}

// Pods that placed pods count all stay in their domains. Of pods that placed pods only follow, one
// stays in each domain. Unplaced pods tie none.
func TestTiesThatNobodyNeeds(t *testing.T) {
	web := class("web", 5)
	run := topology.Node{Labels: requirements.FromLabels(map[string]string{zone: "a", host: "n"}), Free: []int64{0, 0}, Running: []*corev1.Pod{web.Pod}}
	for name, c := range map[string]struct {
		others   []topology.Class
		nodes    []topology.Node
		unplaced []int
		want     int // of web, how many stay
	}{
		"counted by a spread":     {[]topology.Class{class("x", 1, spread(zone, "web"))}, nil, nil, 5},
		"kept away from":          {[]topology.Class{class("x", 1, away(zone, "web"))}, nil, nil, 5},
		"followed":                {[]topology.Class{class("x", 1, near(zone, "web"))}, nil, nil, 1},
		"followed by two":         {[]topology.Class{class("x", 1, near(zone, "web")), class("y", 1, near(zone, "web"))}, nil, nil, 1},
		"another is followed":     {[]topology.Class{class("x", 1, near(zone, "web"))}, []topology.Node{run}, nil, 0},
		"followed and counted":    {[]topology.Class{class("x", 1, near(zone, "web")), class("y", 1, away(zone, "web"))}, nil, nil, 5},
		"counted by an unplaced":  {[]topology.Class{class("x", 1, spread(zone, "web"))}, nil, []int{1}, 0},
		"followed by an unplaced": {[]topology.Class{class("x", 1, near(zone, "web"))}, nil, []int{1}, 0},
		"counted under a filter":  {[]topology.Class{class("x", 1, asks(tier+"=1"), spread(zone, "web"))}, nil, []int{1}, 0},
		"by different labels":     {[]topology.Class{class("x", 1, near(zone, "web")), class("y", 1, away(tier, "web"))}, nil, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, st := assign(t, topology.Input{Classes: append([]topology.Class{web}, c.others...), Nodes: c.nodes},
				shape(9, "", zone+"=a, "+tier+"=1"), shape(9, "", zone+"=b, "+tier+"=1"), shape(9, "", zone+"=a, "+tier+"=2"))
			loose := st.Loosen(func(class int) bool { return !slices.Contains(c.unplaced, class) })
			if loose == nil {
				loose = st
			}
			tied, all := 0, 0
			for _, lot := range loose.Lots {
				if loose.Classes[lot.Slots[0].Relaxed].Class == 0 {
					if all += lot.Count; !lot.Loose {
						tied += lot.Count
					}
				}
			}
			assert.Equal(t, c.want, tied, "%v", placed(st))
			assert.Equal(t, 5, all)
		})
	}
}

func TestTiesOfBundles(t *testing.T) {
	head, tail, x := class("head", 3, takes(4)), class("tail", 3, takes(4), near(host, "head")), class("x", 1, near(zone, "head"))
	_, st := assign(t, topology.Input{Classes: []topology.Class{head, tail, x}}, inZones(9, "a"))
	for unplaced, want := range map[int][]string{
		-1: {"1 in a, bundles [0]", "2 anywhere, bundles [1 2]"},
		2:  {"3 anywhere, bundles [0 1 2]"},
	} {
		var got []string
		for _, lot := range st.Loosen(func(class int) bool { return class != unplaced }).Lots {
			where := "in a"
			if lot.Loose && lot.Required.String() == "anything" {
				where = "anywhere"
			}
			if len(lot.Slots) == 2 {
				got = append(got, fmt.Sprintf("%d %s, bundles %v", lot.Count, where, lot.Bundles))
			}
		}
		assert.Equal(t, want, got, "%d is unplaced", unplaced)
	}
}
