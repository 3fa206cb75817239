package topology_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/topology"
)

// first is the order of n pods of the first class.
func first(n int) []int { return make([]int, n) }

// node is an existing node of a name in a zone.
func node(name, in string, free int64) topology.Node {
	return topology.Node{Labels: requirements.FromLabels(map[string]string{host: name, zone: in}), Free: []int64{free, free}}
}

// Pods that the reference has on existing nodes are tied to them, those beside whom others want to be as well; the rest goes
// where it may.
func TestReferenceTakesItsSeats(t *testing.T) {
	p, st := settle(t, topology.Input{
		Classes: []topology.Class{class("web", 3, spread(zone, "web")), class("cache", 1, near(host, "web"))},
		Nodes:   []topology.Node{node("one", "a", 2), node("two", "b", 2)},
	}, inZones(4, "a", "b"))
	r := st.Reference(topology.Queue{Classes: []int{0, 0, 0, 1}})
	require.Equal(t, []int{3, 1}, r.Placed)
	require.Equal(t, []int{3, 1}, r.Holding)
	out := p.Settle(r.Seats(topology.CloseUnused))
	require.Equal(t, []int{0, 0}, out.Left)
	on := map[int]int{}
	for _, lot := range out.Lots {
		for _, slot := range lot.Slots {
			on[lot.Node] += lot.Count * slot.Count
		}
	}
	require.Equal(t, map[int]int{0: 2, 1: 2}, on)
	p, st = settle(t, topology.Input{Classes: []topology.Class{class("web", 3)}, Nodes: []topology.Node{node("one", "a", 2)}}, inZones(4, "a"))
	out = p.Settle(st.Reference(topology.Queue{Classes: first(3)}).Seats(topology.CloseUnused))
	require.Equal(t, []int{2, 1}, []int{out.Lots[0].Count, out.Lots[1].Count}, "two on the node, one on a new one")
	require.Equal(t, []int{0, -1}, []int{out.Lots[0].Node, out.Lots[1].Node})
}

// Karpenter looks over the zones that the pods ask for, whatever the policy says; kube-scheduler counts the others too, so
// what it places does not hold.
func TestReferenceHoldsAsFarAsKubeSchedulerLets(t *testing.T) {
	everywhere := func(c *corev1.TopologySpreadConstraint) {
		ignore := corev1.NodeInclusionPolicyIgnore
		c.NodeAffinityPolicy = &ignore
	}
	_, st := settle(t, topology.Input{
		Classes: []topology.Class{class("web", 4, asks(zone+"=a"), spread(zone, "web", everywhere))}, Nodes: []topology.Node{node("other", "b", 0)},
	}, inZones(4, "a", "b"))
	r := st.Reference(topology.Queue{Classes: first(4)})
	require.Equal(t, []int{4}, r.Placed)
	require.Equal(t, []int{1}, r.Holding)
}

// The first of two terms leaves a zone out that the second allows: Karpenter spreads by the first. No node of its plan is
// in that zone, so kube-scheduler does not count it either.
func TestReferenceClosesWhereItHasNoNode(t *testing.T) {
	terms := func(c *topology.Class) {
		c.Asked = requirements.AnyOf(requirements.MustParse(zone+" notin (b)"), requirements.MustParse(zone+" in (a,b)"))
		c.Required = c.Asked
	}
	p, st := settle(t, topology.Input{Classes: []topology.Class{class("web", 4, terms, spread(zone, "web"))}}, inZones(4, "a", "b", "c"))
	r := st.Reference(topology.Queue{Classes: first(4)})
	require.Equal(t, []int{4}, r.Holding)
	require.Equal(t, []string{`0 in "a": 2`, `0 in "c": 2`}, placed(p.Settle(r.Seats(topology.CloseUnused))))
	require.Equal(t, []int{0}, p.Settle(r.Seats(topology.CloseNone)).Left, "others go elsewhere")
	require.Equal(t, []int{0}, p.Settle(r.Numbers()).Left)
}

// A pod with a volume in zone a comes last, when the spread looks full: Karpenter counts anew for it once it tolerates soft
// taints, or goes by another term of its node affinity. kube-scheduler accepts that only if it is bound first.
func TestReferenceFindsAnOrder(t *testing.T) {
	in := func(zones string) requirements.Set { return requirements.MustParse(zone + " in (" + zones + ")") }
	for _, terms := range []requirements.Alternatives{requirements.AnyOf(requirements.Set{}), requirements.AnyOf(in("nowhere"), in("a,b"))} {
		web := class("web", 1, spread(zone, "web"))
		web.Asked, web.Required = terms, terms.Intersect(requirements.AnyOf(in("a")))
		_, st := settle(t, topology.Input{
			Classes: []topology.Class{class("web", 3, takes(2), asks(zone+"=a")), web}, Nodes: []topology.Node{node("other", "b", 0)},
		}, inZones(8, "a", "b"))
		r := st.Reference(topology.Queue{Classes: []int{0, 0, 0, 1}, SoftTaints: terms.Len() == 1})
		require.Equal(t, []int{3, 1}, r.Placed)
		require.Equal(t, []int{3, 1}, r.Holding)
		if terms.Len() == 1 {
			require.Equal(t, []int{3, 0}, st.Reference(topology.Queue{Classes: []int{0, 0, 0, 1}}).Placed)
		}
	}
}

// Karpenter looks over the zone that the late pods ask for only. For kube-scheduler those elsewhere let them in, and those in
// their zone keep them out: they have to come as soon as they can, and whoever keeps them out has to come last.
func TestReferenceLetsOthersWait(t *testing.T) {
	everywhere := func(c *corev1.TopologySpreadConstraint) {
		ignore := corev1.NodeInclusionPolicyIgnore
		c.NodeAffinityPolicy = &ignore
	}
	late := func(name, in, elsewhere string) []topology.Class {
		return []topology.Class{
			class(name, 2, takes(2), asks(zone+"="+in)), class(name, 2, takes(2), asks(zone+"="+elsewhere)),
			class(name, 2, asks(zone+"="+in), spread(zone, name, everywhere)),
		}
	}
	one, two := node("one", "a", 0), node("two", "b", 0)
	one.Running, two.Running = []*corev1.Pod{class("web", 1).Pod}, []*corev1.Pod{class("db", 1).Pod}
	all := []int{2, 2, 2, 2, 2, 2}
	for _, queue := range [][]int{{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}, {1, 1, 0, 0, 2, 2, 4, 4, 3, 3, 5, 5}} {
		_, st := settle(t, topology.Input{
			Nodes: []topology.Node{one, two}, Classes: slices.Concat(late("web", "a", "b"), late("db", "b", "a")),
		}, inZones(8, "a", "b"))
		r := st.Reference(topology.Queue{Classes: queue})
		require.Equal(t, all, r.Placed)
		require.Equal(t, all, r.Holding)
	}
}

// Of preferred zones only the heaviest counts, until it is given up; and they are given up before the spread.
func TestReferenceGivesUpInKarpentersOrder(t *testing.T) {
	soft := func(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway }
	peer := class("peer", 1, spread(zone, "web")) // so that zones matter
	for _, c := range []struct {
		zones  []string
		spread bool
		want   map[string]int
	}{
		{[]string{"b"}, false, map[string]int{"b": 2}},
		{[]string{"nowhere", "b"}, false, map[string]int{"b": 2}},
		{[]string{"nowhere"}, true, map[string]int{"a": 1, "b": 1}},
		{[]string{"b"}, true, map[string]int{"a": 1, "b": 1}},
	} {
		web := class("web", 2)
		if c.spread {
			web = class("web", 2, spread(zone, "web", soft))
		}
		for i, z := range c.zones {
			web.Preferred = append(web.Preferred, requirements.Preference{Weight: int32(2 - i), Nodes: requirements.MustParse(zone + "=" + z)})
		}
		p, st := settle(t, topology.Input{Classes: []topology.Class{web, peer}}, inZones(4, "a", "b"))
		got := map[string]int{}
		for _, pt := range p.Settle(st.Reference(topology.Queue{Classes: first(2)}).Seats(topology.CloseUnused)).Parts {
			for d, n := range pt.Placed {
				if n > 0 && pt.Class == 0 {
					got[pt.Domains[d].String()] += n
				}
			}
		}
		require.Equal(t, c.want, got, "%v", c.zones)
	}
}

// A team is required and none is preferred: Karpenter places such pods on nodes without one, where kube-scheduler refuses
// them.
func TestReferencePrefersAgainstWhatIsRequired(t *testing.T) {
	web := class("web", 2)
	web.Asked = requirements.AnyOf(requirements.MustOf(requirements.Exists("team")))
	web.Required = web.Asked
	web.Preferred = []requirements.Preference{{Weight: 1, Nodes: requirements.MustOf(requirements.DoesNotExist("team"))}}
	_, st := settle(t, topology.Input{Classes: []topology.Class{web}}, inZones(4, "a"))
	r := st.Reference(topology.Queue{Classes: first(2)})
	require.Equal(t, []int{2}, r.Placed)
	require.Equal(t, []int{0}, r.Holding)
}

// A second term of node affinity is tried where the first leads nowhere, before any preference is given up.
func TestReferenceTriesEveryTerm(t *testing.T) {
	web := class("web", 2, spread(zone, "web", func(c *corev1.TopologySpreadConstraint) { c.MaxSkew = 2 }))
	web.Asked = requirements.AnyOf(requirements.MustParse(zone+"=a"), requirements.MustParse(zone+"=b"))
	web.Required = web.Asked
	web.Preferred = []requirements.Preference{{Weight: 1, Nodes: requirements.MustParse(zone + "=b")}}
	p, st := settle(t, topology.Input{Classes: []topology.Class{web}}, inZones(4, "a", "b"))
	out := p.Settle(st.Reference(topology.Queue{Classes: first(2)}).Seats(topology.CloseUnused))
	require.Equal(t, []string{`0 in "b": 2`}, placed(out))
}

// Three pods can be in zone a or b. Two more, which count them too and spread over both zones, can be in a only. In the first
// try the three take the room that a node in a has, in the next they make way.
func TestOthersMakeWayForThoseWhoWereLeftOver(t *testing.T) {
	everywhere := func(c *corev1.TopologySpreadConstraint) {
		ignore := corev1.NodeInclusionPolicyIgnore
		c.NodeAffinityPolicy = &ignore
	}
	p, st := settle(t, topology.Input{Classes: []topology.Class{
		class("web", 3, takes(2)), class("web", 2, asks(zone+"=a"), spread(zone, "web", everywhere)),
	}, Nodes: []topology.Node{node("one", "a", 6), node("two", "b", 0)}}, inZones(8, "a", "b"))
	r := st.Reference(topology.Queue{Classes: []int{1, 1, 0, 0, 0}})
	out := p.Settle(r.Numbers())
	require.Equal(t, []int{0, 2}, out.Left)
	facts, news := out.Promote([]int{1})
	require.True(t, news)
	require.Equal(t, []int{0, 0}, p.Settle(facts).Left)
}

// Three pods would rather be apart, and there is one node. For Karpenter that binds only the first of them, the others give it
// up; so it is given up by all where the plan is followed, for a preference that is met is kept.
func TestReferenceHoldsWithoutPreferences(t *testing.T) {
	apart := func(c *topology.Class) {
		affinity(c).PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{
			{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: host, LabelSelector: app("web")}},
		}
	}
	p, st := settle(t, topology.Input{Classes: []topology.Class{class("web", 3, apart)}, Nodes: []topology.Node{node("one", "a", 4)}})
	r := st.Reference(topology.Queue{Classes: first(3)})
	require.Equal(t, []int{3}, r.Placed)
	require.Equal(t, []int{3}, r.Holding)
	require.Equal(t, []int{0}, p.Settle(r.Seats(topology.CloseUnused)).Left)
}

// Limits are kept by the nodes as the reference has them: what shares one is packed together.
func TestReferenceKeepsNodes(t *testing.T) {
	small := inZones(4, "a")
	small.Usage = []int64{4}
	p, st := settle(t, topology.Input{Classes: []topology.Class{class("web", 5, takes(2)), class("log", 4)}}, small)
	r := st.Reference(topology.Queue{Classes: []int{0, 0, 0, 0, 0, 1, 1, 1, 1}, Pools: []topology.QueuePool{{Left: []int64{9}}}})
	require.Equal(t, []int{4, 0}, r.Placed, "two nodes for two each")
	out := p.Settle(r.Nodes())
	require.Equal(t, []int{0, 0}, out.Left, "limits are the packer's")
	require.Len(t, out.Lots[0].Bundles, 2)
	require.Equal(t, []topology.Slot{{Part: 0, Domain: 0, Count: 2}}, out.Lots[0].Slots)
	for i, lot := range out.Lots {
		require.Equal(t, i == 0, lot.Seated, "those within limits go first")
	}
}

// What pods ask contradicts itself. Karpenter places them where the label is missing, as if that were asked, and then they keep
// others out. They have no right to it.
func TestReferenceReadsAsKarpenter(t *testing.T) {
	lost := class("web", 0)
	lost.Asked, lost.Required = requirements.Alternatives{}, requirements.Alternatives{}
	missing := requirements.AnyOf(requirements.MustOf(requirements.DoesNotExist("team"), requirements.In(zone, "a")))
	lost.Readings = []topology.Reading{{Asked: missing, Required: missing}}
	_, st := settle(t, topology.Input{Classes: []topology.Class{lost, class("shy", 1, away(zone, "web"), asks(zone+"=a"))}}, inZones(4, "a", "b"))
	r := st.Reference(topology.Queue{Classes: []int{1}})
	require.Equal(t, []int{0, 1}, r.Placed)
	r = st.Reference(topology.Queue{Classes: []int{0, 1}})
	require.Equal(t, []int{0, 0}, r.Placed)
}

// Karpenter does not know that the users of a volume yet to be made must be in one zone; kube-scheduler accepts one of them.
func TestReferenceKnowsNoVolumesToBeMade(t *testing.T) {
	_, st := settle(t, topology.Input{
		Classes:  []topology.Class{class("writer", 1, asks(zone+"=a")), class("reader", 1, takes(2), asks(zone+" in (a,b)"))},
		Together: []topology.Together{{Name: "users of a volume", Classes: []int{0, 1}}},
	}, inZones(1, "a"), inZones(4, "b"))
	r := st.Reference(topology.Queue{Classes: []int{0, 1}})
	require.Equal(t, []int{1, 1}, r.Placed)
	require.Equal(t, []int{1, 0}, r.Holding)
}

// Three pods use one volume, and the node can attach one: all of them are on it, as one thing.
func TestReferenceSharesVolumes(t *testing.T) {
	sharing := func(c *topology.Class) { c.Shared = []topology.Shared{{Name: "photos", Dimension: 1}} }
	one := node("one", "a", 4)
	one.Free = []int64{4, 1}
	p, st := settle(t, topology.Input{Classes: []topology.Class{class("web", 2, sharing), class("cron", 1, sharing)}, Nodes: []topology.Node{one}})
	r := st.Reference(topology.Queue{Classes: []int{0, 0, 1}})
	require.Equal(t, []int{2, 1}, r.Holding)
	out := p.Settle(r.Seats(topology.CloseUnused))
	require.Equal(t, []int{0, 0}, out.Left)
	require.Len(t, out.Lots, 1)
	require.Equal(t, []int64{3, 1}, out.Lots[0].Requests)
	one.Free, one.Shared = []int64{4, 0}, []string{"photos"}
	_, st = settle(t, topology.Input{Classes: []topology.Class{class("web", 2, sharing)}, Nodes: []topology.Node{one}})
	require.Equal(t, []int{2}, st.Reference(topology.Queue{Classes: first(2)}).Holding, "a pod that runs there uses it already")
}
