package greedy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/topology/internal/greedy"
)

const zone = "topology.kubernetes.io/zone"

// market is one pool that buys nodes for four pods in zones a and b, a being cheaper.
func market(classes []greedy.Class, groups ...greedy.Group) *greedy.Problem {
	cell := func(labels string, price float64) greedy.Cell {
		return greedy.Cell{Labels: requirements.MustParse(labels), Sizes: []greedy.Size{{Room: []int64{4}, Price: price}}}
	}
	return &greedy.Problem{Classes: classes, Groups: groups, Pools: []greedy.Pool{{Cells: []greedy.Cell{cell(zone+"=a", 1), cell(zone+"=b", 2)}}}}
}

func anywhere() requirements.Alternatives { return requirements.AnyOf(requirements.Set{}) }

func in(text string) requirements.Alternatives {
	return requirements.AnyOf(requirements.MustParse(text))
}

// class is pods that take one unit each.
func class(st greedy.Stage, groups ...int) greedy.Class {
	if st.Required.IsImpossible() {
		st.Required = anywhere()
	}
	if st.Asked.IsImpossible() {
		st.Asked = anywhere()
	}
	return greedy.Class{Requests: []int64{1}, Groups: groups, Stages: []greedy.Stage{st}}
}

// placed counts the seats of each class.
func placed(p *greedy.Problem, order ...int) []int {
	out := make([]int, len(p.Classes))
	for _, s := range p.Place(order).Seats {
		out[s.Class]++
	}
	return out
}

// A pod that keeps others away counts in every zone that its node may be in: it shuts them out of all, unless it asks for
// one. The other way round, one of them on a node that may be anywhere shuts it out.
func TestWhoComesFirstCountsEverywhere(t *testing.T) {
	web := greedy.Group{Key: zone, Values: []string{"a", "b"}, Kept: true}
	loud := greedy.Stage{Terms: []greedy.Term{{Group: 0, Anti: true, Hard: true}}}
	require.Equal(t, []int{1, 0}, placed(market([]greedy.Class{class(loud), class(greedy.Stage{}, 0)}, web), 0, 1, 1, 1))
	require.Equal(t, []int{0, 3}, placed(market([]greedy.Class{class(loud), class(greedy.Stage{}, 0)}, web), 1, 0, 1, 1))
	loud.Required, loud.Asked = in(zone+"=a"), in(zone+"=a")
	require.Equal(t, []int{1, 3}, placed(market([]greedy.Class{class(loud), class(greedy.Stage{}, 0)}, web), 0, 1, 1, 1))
}

// A spread takes the emptiest of its values, so nodes are in both zones; what is sold in one only decides nothing, and a
// pod whose emptiest zone has nothing for it stays out.
func TestSpreadTakesTheEmptiest(t *testing.T) {
	group := greedy.Group{Key: zone, Values: []string{"a", "b"}}
	even := greedy.Stage{Spreads: []greedy.Spread{{Group: 0, MaxSkew: 1, MinDomains: 1, Self: true}}}
	p := market([]greedy.Class{class(even, 0)}, group)
	plan := p.Place([]int{0, 0, 0, 0})
	require.Equal(t, []greedy.Seat{{0, 0}, {0, 1}, {0, 0}, {0, 1}}, plan.Seats)
	require.True(t, requirements.MustParse(zone+"=a").Equal(plan.Bought[0]))
	require.True(t, requirements.MustParse(zone+"=b").Equal(plan.Bought[1]))
	p.Ties = 1
	require.True(t, requirements.MustParse(zone+"=b").Equal(p.Place([]int{0}).Bought[0]))
	zones := map[string]bool{}
	for p.Ties = 2; p.Ties < 12; p.Ties++ {
		some := p.Place([]int{0}).Bought[0]
		require.True(t, some.Equal(p.Place([]int{0}).Bought[0]), "always the same way")
		zones[some.String()] = true
	}
	require.Len(t, zones, 2, "now this one, now that")
	p.Ties = 0
	p.Pools[0].Cells[1].Sizes = []greedy.Size{{Room: []int64{0}}}
	require.Equal(t, []int{1}, placed(p, 0, 0, 0, 0))
	even.Spreads[0].MaxSkew, even.Spreads[0].MinDomains = 2, 3
	busy := market([]greedy.Class{class(even, 0)}, greedy.Group{Key: zone, Values: []string{"a", "b"}, Running: map[string]int{"a": 1}})
	require.True(t, requirements.MustParse(zone+"=b").Equal(busy.Place([]int{0}).Bought[0]), "the emptier one, though both are allowed")
	require.Equal(t, []int{3}, placed(busy, 0, 0, 0, 0, 0), "a third zone that nobody has counts as empty")
}

// Existing nodes come first, then the node to buy with the fewest pods, then another one of the first pool that can.
func TestWhereTheNextPodGoes(t *testing.T) {
	p := market([]greedy.Class{class(greedy.Stage{}), class(greedy.Stage{Required: in("team=shop")})})
	p.Nodes = []greedy.Node{{Labels: requirements.MustParse(zone + "=b"), Free: []int64{1}}}
	p.Pools = append(p.Pools, greedy.Pool{Cells: []greedy.Cell{{Labels: requirements.MustParse("team=shop"), Sizes: []greedy.Size{{Room: []int64{2}}}}}})
	plan := p.Place([]int{0, 0, 0, 1, 0, 1, 1, 1})
	require.Equal(t, []greedy.Seat{{0, 0}, {0, 1}, {0, 1}, {1, 2}, {0, 2}, {1, 3}, {1, 3}}, plan.Seats[:7])
	require.Equal(t, greedy.Seat{Class: 1, Node: 4}, plan.Seats[7], "both of that pool are full")
}

// Preferences are given up for a place; a spread whose nodes are others then counts anew, as if nobody had been placed.
func TestGivingUpCountsAnew(t *testing.T) {
	group := greedy.Group{Key: zone, Values: []string{"a", "b"}, Running: map[string]int{"b": 1}}
	picky := class(greedy.Stage{
		Required: in(zone + "=a"), Spreads: []greedy.Spread{{Group: 0, MaxSkew: 1, MinDomains: 1, Self: true}},
	}, 0)
	p := market([]greedy.Class{picky}, group)
	require.Equal(t, []int{2}, placed(p, 0, 0, 0, 0), "two in a, one in b")
	again := p.Classes[0].Stages[0]
	again.Anew = 1
	p.Classes[0].Stages = append(p.Classes[0].Stages, again)
	require.Equal(t, []int{4}, placed(p, 0, 0, 0, 0), "and two more")
}

// A pod that follows another waits a lap for it; the first of its own kind need not.
func TestFollowers(t *testing.T) {
	group := greedy.Group{Key: zone, Values: []string{"a", "b"}}
	follower := greedy.Stage{Terms: []greedy.Term{{Group: 0, Hard: true}}}
	target := greedy.Stage{Required: in(zone + "=b")}
	p := market([]greedy.Class{class(follower), class(target, 0)}, group)
	plan := p.Place([]int{0, 1})
	require.Equal(t, []greedy.Seat{{1, 0}, {0, 0}}, plan.Seats)
	require.Equal(t, []int{0, 0}, placed(p, 0))
	follower.Terms[0].Self = true
	require.Equal(t, []int{2, 0}, placed(market([]greedy.Class{class(follower, 0), class(target)}, group), 0, 0))
}

// The node of the first of a kind may be in two zones, so who keeps away from it can be in neither; or it is in one.
func TestTheFirstOfItsKindMayBeAnywhere(t *testing.T) {
	group := greedy.Group{Key: zone, Values: []string{"a", "b"}, Kept: true}
	kind := greedy.Stage{Terms: []greedy.Term{{Group: 0, Hard: true, Self: true}}}
	shy := greedy.Stage{Terms: []greedy.Term{{Group: 0, Anti: true, Hard: true}}}
	p := market([]greedy.Class{class(kind, 0), class(shy)}, group)
	require.Equal(t, []int{1, 0}, placed(p, 0, 1))
	p.Ties = 1
	require.Equal(t, []int{1, 1}, placed(p, 0, 1))
	seen := map[int]bool{}
	for p.Ties = 2; p.Ties < 22; p.Ties++ {
		seen[placed(p, 0, 1)[1]] = true
	}
	require.Len(t, seen, 2, "now this, now that")
}

// Within a node tags and limits hold, those of hard constraints for everybody who comes later, too.
func TestWithinANode(t *testing.T) {
	alone := greedy.Stage{Tags: []string{"web"}, Limits: []greedy.Limit{{Tag: "web", Max: 1}}}
	p := market([]greedy.Class{class(alone), class(greedy.Stage{Tags: []string{"web"}})})
	p.Nodes = []greedy.Node{{Labels: requirements.MustParse(zone + "=b"), Free: []int64{9}}}
	require.Equal(t, []greedy.Seat{{0, 0}, {1, 0}, {0, 1}}, p.Place([]int{0, 1, 0}).Seats, "a soft one binds its owner only")
	p.Classes[0].Stages[0].Keeps = p.Classes[0].Stages[0].Limits
	require.Equal(t, []greedy.Seat{{0, 0}, {1, 1}, {0, 2}}, p.Place([]int{0, 1, 0}).Seats)
}

// A new node counts against its pool's limits with the most that it may be, so of ten units one node of four or eight leaves
// room for no other, and one that its pods want small for another one. What is not within the limits any more is not offered.
func TestLimitsCountTheMost(t *testing.T) {
	size := func(labels string, units int64) greedy.Cell {
		return greedy.Cell{Labels: requirements.MustParse(labels), Sizes: []greedy.Size{{Room: []int64{units}, Price: float64(units), Usage: []int64{units}}}}
	}
	p := market([]greedy.Class{class(greedy.Stage{}), class(greedy.Stage{Required: in("size=small")})})
	p.Pools = []greedy.Pool{{Cells: []greedy.Cell{size("size=small", 4), size("size=large", 8)}, Left: []int64{10}}}
	require.Equal(t, []int{8, 0}, placed(p, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
	plan := p.Place([]int{1, 1, 1, 1, 1, 1, 1, 1, 1})
	require.Len(t, plan.Seats, 8)
	require.Len(t, plan.Bought, 2)
	require.Equal(t, []int{4, 4}, placed(p, 1, 1, 1, 1, 0, 0, 0, 0, 0), "the second node can only be small")
	p.Pools = append(p.Pools, greedy.Pool{Cells: []greedy.Cell{size("size=large", 8)}})
	require.Equal(t, []int{12, 0}, placed(p, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), "another pool has no limits")
}

// What pods on a node share takes its unit once, also where a pod that runs there uses it already.
func TestSharedTakesItsUnitOnce(t *testing.T) {
	sharing := class(greedy.Stage{})
	sharing.Requests, sharing.Shared = []int64{1, 1}, []greedy.Shared{{Name: "photos", Dimension: 1}}
	p := &greedy.Problem{Classes: []greedy.Class{sharing, {Requests: []int64{1, 1}, Stages: sharing.Stages}}}
	p.Nodes = []greedy.Node{{Labels: requirements.MustParse(zone + "=a"), Free: []int64{9, 1}}}
	require.Equal(t, []int{3, 0}, placed(p, 0, 0, 0, 1))
	require.Equal(t, []int{0, 1}, placed(p, 1, 0, 0))
	p.Nodes[0].Free, p.Nodes[0].Shared = []int64{9, 0}, []string{"photos"}
	require.Equal(t, []int{3, 0}, placed(p, 0, 0, 0, 1))
}

// Where more is in use than there is, nobody may come, not even who asks nothing of what is short.
func TestOverfullNodesTakeNobody(t *testing.T) {
	p := &greedy.Problem{Classes: []greedy.Class{class(greedy.Stage{})}}
	p.Classes[0].Requests = []int64{1, 0}
	p.Nodes = []greedy.Node{{Labels: requirements.MustParse(zone + "=a"), Free: []int64{9, 0}}}
	require.Equal(t, []int{1}, placed(p, 0))
	p.Nodes[0].Free[1] = -1
	require.Equal(t, []int{0}, placed(p, 0))
}

// A spread over small nodes counts pods only where somebody has asked for a small node, though there are no others.
func TestOnlyNodesThatWereAskedCount(t *testing.T) {
	group := greedy.Group{Key: zone, Values: []string{"a", "b"}, Filter: in("size=small")}
	even := greedy.Stage{Required: in("size=small"), Asked: in("size=small"), Spreads: []greedy.Spread{{Group: 0, MaxSkew: 1, Self: true}}}
	p := market([]greedy.Class{class(greedy.Stage{Required: in(zone + "=a")}, 0), class(even, 0)}, group)
	for i, z := range []string{"a", "b"} {
		p.Pools[0].Cells[i].Labels = requirements.MustParse("size=small," + zone + "=" + z)
	}
	zoneOf := func() string {
		plan := p.Place([]int{0, 1})
		z, _ := plan.Bought[plan.Seats[1].Node].Get(zone).Single()
		return z
	}
	require.Equal(t, "a", zoneOf(), "the first counts nowhere")
	p.Pools[0].Asks = requirements.MustParse("size=small")
	require.Equal(t, "b", zoneOf(), "the pool asks for it")
}
