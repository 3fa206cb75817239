package topology_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/topology"
)

func times(class, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = class
	}
	return out
}

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
	r := st.Reference([]int{0, 0, 0, 1}, false, false)
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
	out = p.Settle(st.Reference(times(0, 3), false, false).Seats(topology.CloseUnused))
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
	r := st.Reference(times(0, 4), false, false)
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
	r := st.Reference(times(0, 4), false, false)
	require.Equal(t, []int{4}, r.Holding)
	require.Equal(t, []string{`0 in "a": 2`, `0 in "c": 2`}, placed(p.Settle(r.Seats(topology.CloseUnused))))
	require.Equal(t, []int{0}, p.Settle(r.Seats(topology.CloseNone)).Left, "others go elsewhere")
	require.Equal(t, []int{0}, p.Settle(r.Numbers()).Left)
}

// Preferences are kept as far as the seats let.
func TestReferenceKeepsPreferences(t *testing.T) {
	soft := func(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway }
	web := class("web", 2, spread(zone, "web", soft))
	web.Preferred = []requirements.Preference{{Weight: 1, Nodes: requirements.MustParse(zone + "=a")}}
	p, st := settle(t, topology.Input{Classes: []topology.Class{web}, Nodes: []topology.Node{node("one", "a", 2)}})
	out := p.Settle(st.Reference(times(0, 2), false, false).Seats(topology.CloseUnused))
	require.Equal(t, []int{0}, out.Left)
	for _, pt := range out.Parts {
		require.True(t, pt.Stage == 0 || pt.Placed[0] == 0, "one zone is all there is, so nothing is given up")
	}
}
