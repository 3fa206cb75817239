package binpack_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// What no relaxation knows is found by packing again under all rules.
func TestRulesThatNoRelaxationKnows(t *testing.T) {
	box := func(name string, cpu int64, offerings ...binpack.Offering) binpack.Type {
		return binpack.Type{Name: name, Capacity: []int64{cpu}, Usage: []int64{cpu}, Offerings: offerings}
	}
	offer := func(price binpack.Price, pool string) binpack.Offering {
		return binpack.Offering{Price: price, CapacityPool: pool}
	}
	all := func(nodes *int, cpu int64) []binpack.Pool {
		return []binpack.Pool{{Name: "all", MaxNodes: nodes, Limits: []int64{cpu}}}
	}
	tagged := item("a", 2, 6)
	tagged.Tags, tagged.Limits = []string{"a"}, []binpack.Limit{{Tag: "a", Max: 2}}
	alone := item("b", 1, 2)
	alone.Limits = []binpack.Limit{{Tag: "a", Max: 1}}
	for name, x := range map[string]struct {
		p    binpack.Problem
		cost binpack.Price
	}{
		"a second large box would exceed the limit, so it is one and three small ones": {binpack.Problem{
			Items: []binpack.Item{item("a", 5, 4)}, Types: []binpack.Type{box("small", 4, offer(10, "")), box("large", 9, offer(19, ""))}, Pools: all(nil, 21),
		}, 49},
		"three nodes at most are a large one and two small ones": {binpack.Problem{
			Items: []binpack.Item{item("a", 4, 3)}, Types: []binpack.Type{box("small", 3, offer(9, "")), box("large", 6, offer(20, ""))}, Pools: all(new(3), binpack.Unlimited),
		}, 38},
		"b may be with one a, so two small boxes do instead of one for both and one for b": {binpack.Problem{
			Items: []binpack.Item{tagged, alone}, Types: []binpack.Type{box("small", 8, offer(8, "")), box("large", 14, offer(14, ""))}, Pools: all(nil, binpack.Unlimited),
		}, 16},
		"a capacity pool takes two of five, and which two matters": {binpack.Problem{
			Items: []binpack.Item{item("a", 3, 5), item("b", 2, 2)}, Types: []binpack.Type{box("t", 7, offer(10, "p"), offer(11, "q"), offer(12, "r"))}, Pools: all(nil, binpack.Unlimited),
			Diversity: []binpack.Diversity{{Items: []binpack.Share{{Item: 0, Count: 1}, {Item: 1, Count: 1}}, Max: 2}},
		}, 33},
	} {
		x.p.Resources = []string{"cpu"}
		in, plan := costAware(t, x.p, "")
		require.NoError(t, dumbCheck(in.Problem(), plan.Layout), name)
		assert.Equal(t, x.cost, plan.Objective, name)
		for _, n := range plan.Unplaced {
			require.Zero(t, n, name)
		}
	}
}

// Usage matters only where a pool has limits.
func TestUsageOfAPoolWithoutLimits(t *testing.T) {
	p := binpack.Problem{
		Resources: []string{"cpu"}, Items: []binpack.Item{item("a", 3, 4)}, Pools: []binpack.Pool{{Name: "all", MaxNodes: new(2)}},
		Types: []binpack.Type{{Name: "t", Capacity: []int64{4}, Usage: []int64{4}, Offerings: []binpack.Offering{{Price: 1, Provides: requirements.Set{}}}}},
	}
	_, plan := costAware(t, p, "")
	require.Equal(t, []int{1}, plan.Unplaced)
}
