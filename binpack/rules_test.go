package binpack_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// unbounded returns a pool without limits.
func unbounded(name string, weight int) binpack.Pool {
	return binpack.Pool{Name: name, Weight: weight}
}

// boxes returns count copies of size 1 in one dimension, and a type that holds four of them for 10.
func boxes(count int) binpack.Problem {
	return binpack.Problem{
		Resources: []string{"cpu"},
		Items:     []binpack.Item{{Name: "box", Count: count, Size: []int64{1}, Requires: anywhere()}},
		Pools:     []binpack.Pool{unbounded("p", 0)},
		Types:     []binpack.Type{{Name: "four", Capacity: []int64{4}, Offerings: []binpack.Offering{{Price: 10}}}},
	}
}

func TestEmptyProblems(t *testing.T) {
	_, plan := lawful(t, binpack.Problem{})
	require.Empty(t, plan.Bins)
	require.Zero(t, plan.GapPercent())
	require.Equal(t, "ffd", plan.Strategy)

	_, plan = lawful(t, boxes(0))
	require.Empty(t, plan.Bins)
	require.Zero(t, plan.Cost)

	p := boxes(3)
	p.Types = nil
	_, plan = lawful(t, p)
	require.Equal(t, []int{3}, plan.Unplaced)

	p = boxes(3)
	p.Types[0].Offerings = nil // cannot be bought
	_, plan = lawful(t, p)
	require.Equal(t, []int{3}, plan.Unplaced)

	p = boxes(3)
	p.Items[0].Requires = requirements.AnyOf() // no node suits
	_, plan = lawful(t, p)
	require.Equal(t, []int{3}, plan.Unplaced)

	p = boxes(9)
	p.Resources, p.Items[0].Size, p.Types[0].Capacity = nil, nil, nil // nothing is limited, so one bin holds all
	_, plan = lawful(t, p)
	require.Len(t, plan.Bins, 1)
}

func TestHeavierPoolsFirstWithinTheirLimits(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit func(*binpack.Pool)
		want  int // bins in the heavy pool
	}{
		{"without limits", func(*binpack.Pool) {}, 5},
		{"nodes", func(p *binpack.Pool) { p.MaxNodes = new(3) }, 3},
		{"no nodes", func(p *binpack.Pool) { p.MaxNodes = new(0) }, 0},
		{"price", func(p *binpack.Pool) { p.MaxPrice = new(binpack.Price(59)) }, 2},
		{"no money", func(p *binpack.Pool) { p.MaxPrice = new(binpack.Price(0)) }, 0},
		{"a limit", func(p *binpack.Pool) { p.Limits = []int64{19} }, 4},
		{"a limit that is reached", func(p *binpack.Pool) { p.Limits = []int64{0} }, 0},
		{"a limit that is passed already", func(p *binpack.Pool) { p.Limits = []int64{-7} }, 0},
		{"a limit that never runs out", func(p *binpack.Pool) { p.Limits = []int64{binpack.Unlimited} }, 5},
		{"the least of all", func(p *binpack.Pool) { p.MaxNodes, p.MaxPrice, p.Limits = new(3), new(binpack.Price(40)), []int64{19} }, 1},
	} {
		p := boxes(20)
		p.Pools = []binpack.Pool{unbounded("light", 0), unbounded("heavy", 7)}
		c.limit(&p.Pools[1])
		p.Types = append(p.Types, binpack.Type{Name: "dear", Pool: 1, Capacity: []int64{4}, Usage: []int64{4}, Offerings: []binpack.Offering{{Price: 25}}})
		in, plan := lawful(t, p)
		heavy := 0
		for _, b := range plan.Bins {
			heavy += in.Problem().Types[b.Type].Pool
		}
		require.Equal(t, c.want, heavy, c.name)
		require.Len(t, plan.Bins, 5, "%s: the rest goes to the lighter pool", c.name)
		require.Equal(t, []int{0}, plan.Unplaced)
	}
}

func TestAmongPoolsOfOneWeightThePriceDecides(t *testing.T) {
	p := boxes(8)
	p.Pools = append(p.Pools, unbounded("q", 0))
	p.Types = append(p.Types, binpack.Type{Name: "four", Pool: 1, Capacity: []int64{4}, Offerings: []binpack.Offering{{Price: 9}}})
	_, plan := lawful(t, p)
	require.Equal(t, binpack.Price(18), plan.Cost)
}

// A type may omit its usage.
func TestUsageMayBeOmitted(t *testing.T) {
	p := boxes(8)
	p.Pools[0].Limits = []int64{0}
	_, plan := lawful(t, p)
	require.Len(t, plan.Bins, 2)
}

func TestReservationsAreCountedAndShared(t *testing.T) {
	p := boxes(20) // five bins
	p.Types[0].Offerings = []binpack.Offering{
		{Price: 10},
		{Price: 1, Counted: true, Count: 3, Reservation: "r"},
		{Price: 2, Counted: true, Count: 1}, // counted on its own
	}
	p.Types = append(p.Types, binpack.Type{Name: "five", Capacity: []int64{5}, Offerings: []binpack.Offering{
		{Price: 1, Counted: true, Count: 2, Reservation: "r"}, // the lowest count of those that share it holds
	}})
	in, plan := lawful(t, p)
	taken := map[string]int{}
	for _, b := range plan.Bins {
		o := in.Problem().Types[b.Type].Offerings[b.Offering]
		taken[fmt.Sprint(o.Counted, o.Reservation)]++
	}
	require.Equal(t, 2, taken["truer"])
	require.Equal(t, 1, taken["true"])
	require.Equal(t, []int{0}, plan.Unplaced)

	p.Types[0].Offerings[0] = binpack.Offering{Price: 10, Counted: true} // none is left of it
	_, plan = lawful(t, p)
	require.Len(t, plan.Bins, 3, "only what is reserved can be bought")
	require.Positive(t, plan.Unplaced[0])
}

func TestMinValuesKeepsChoicesOpen(t *testing.T) {
	p := boxes(8)
	p.Types = []binpack.Type{
		{Name: "small", Capacity: []int64{4}, Provides: requirements.MustParse("type=small"), Offerings: []binpack.Offering{{Price: 10}}},
		{Name: "other", Capacity: []int64{5}, Provides: requirements.MustParse("type=other"), Offerings: []binpack.Offering{{Price: 14}}},
		{Name: "large", Capacity: []int64{8}, Provides: requirements.MustParse("type=large"), Offerings: []binpack.Offering{{Price: 15}}},
	}
	_, plan := lawful(t, p)
	require.Equal(t, binpack.Price(15), plan.Cost, "one large bin is cheapest")

	p.Pools[0].MinValues = []binpack.MinValues{{Key: "type", Count: 2}}
	_, plan = lawful(t, p)
	require.Len(t, plan.Bins, 2, "only the large one holds more than five")
	p.Pools[0].MinValues[0].Count = 3
	_, plan = lawful(t, p)
	for i := range plan.Bins {
		require.Len(t, plan.Alternatives[i], 3)
	}
	p.Pools[0].MinValues[0].Count = 4
	_, plan = lawful(t, p)
	require.Equal(t, []int{8}, plan.Unplaced, "there are not four types")

	p.Pools[0].MinValues[0].Count = 3
	in, err := binpack.Compile(p)
	require.NoError(t, err)
	plan, err = in.Pack(t.Context(), &binpack.Options{Alternatives: 1})
	require.NoError(t, err)
	require.Len(t, plan.Alternatives[0], 3, "the list is as long as MinValues need")
}

// What is sold out is neither a value nor an alternative; the last one of a stock is both, also for
// the bin that takes it.
func TestMinValuesCountWhatCanBeBought(t *testing.T) {
	for _, c := range []struct {
		first, second binpack.Offering
		placed        int
	}{
		{binpack.Offering{Price: 1}, binpack.Offering{Price: 1, Counted: true}, 0},
		{binpack.Offering{Price: 1}, binpack.Offering{Price: 2, Counted: true, Count: 1, Takes: 2}, 0},
		{binpack.Offering{Price: 1, Counted: true, Count: 5, Reservation: "r"}, binpack.Offering{Price: 2, Counted: true, Reservation: "r"}, 0},
		{binpack.Offering{Price: 1}, binpack.Offering{Price: 2, Counted: true, Count: 1}, 1},
		{binpack.Offering{Price: 2}, binpack.Offering{Price: 1, Counted: true, Count: 1}, 1},
	} {
		p := binpack.Problem{
			Resources: []string{"cpu"},
			Items:     []binpack.Item{{Name: "a", Count: 1, Size: []int64{1}, Requires: anywhere()}},
			Pools:     []binpack.Pool{{Name: "p", MinValues: []binpack.MinValues{{Key: "type", Count: 2}}}},
			Types: []binpack.Type{
				{Name: "t0", Capacity: []int64{1}, Provides: requirements.MustParse("type=t0"), Offerings: []binpack.Offering{c.first}},
				{Name: "t1", Capacity: []int64{1}, Provides: requirements.MustParse("type=t1"), Offerings: []binpack.Offering{c.second}},
			},
		}
		_, plan := lawful(t, p)
		require.Len(t, plan.Bins, c.placed, "%+v", c)
		for _, list := range plan.Alternatives {
			require.Len(t, list, 2, "%+v", c)
		}
	}
}

// An item whose first alternative shows too few values is packed by its second.
func TestMinValuesTryTheNextAlternative(t *testing.T) {
	p := boxes(1)
	p.Pools[0].MinValues = []binpack.MinValues{{Key: "type", Count: 2}}
	p.Types = []binpack.Type{
		{Name: "a", Capacity: []int64{4}, Provides: requirements.MustParse("type=a, team in (red,blue), disk=ssd"), Offerings: []binpack.Offering{{Price: 10}}},
		{
			Name: "b", Capacity: []int64{4}, Provides: requirements.MustParse("type=b, team in (red,blue)"),
			Offerings: []binpack.Offering{{Price: 20, Counted: true, Count: 1}},
		},
	}
	p.Items[0].Requires = requirements.AnyOf(requirements.MustParse("disk=ssd, team=red"), requirements.MustParse("team=blue"))
	_, plan := lawful(t, p)
	require.Equal(t, []int{0}, plan.Unplaced)
	require.Len(t, plan.Alternatives[0], 2)
}

// Each choice must hold all copies in the bin, and what its daemons bring.
func TestMinValuesCountEveryCopy(t *testing.T) {
	p := boxes(3)
	p.Pools[0].MinValues = []binpack.MinValues{{Key: "type", Count: 2}}
	p.Items[0].Tags = []string{"x"}
	p.Types = []binpack.Type{
		{Name: "a", Capacity: []int64{4}, Provides: requirements.MustParse("type=a"), Offerings: []binpack.Offering{{Price: 10}}},
		{Name: "b", Capacity: []int64{4}, Provides: requirements.MustParse("type=b"), Offerings: []binpack.Offering{{Price: 20}}, Limits: []binpack.Limit{{Tag: "x", Max: 1}}},
	}
	_, plan := lawful(t, p)
	require.Len(t, plan.Bins, 3)
}

// A bin counts in the budget at its cheapest offering; it is narrowed to a dearer one only within the budget.
func TestNarrowingStaysWithinTheBudget(t *testing.T) {
	for _, c := range []struct {
		budget binpack.Price
		left   int
	}{{9, 1}, {10, 1}, {11, 0}} { // two bins for 1 each, and 9 more to move one
		p := boxes(0)
		p.Pools[0].MaxPrice = &c.budget
		p.Types[0].Offerings = []binpack.Offering{{Provides: requirements.MustParse("zone=a"), Price: 1}, {Provides: requirements.MustParse("zone=b"), Price: 10}}
		p.Items = append(p.Items, binpack.Item{Name: "large", Count: 2, Size: []int64{3}, Requires: anywhere()},
			binpack.Item{Name: "small", Count: 1, Size: []int64{1}, Requires: requirements.AnyOf(requirements.MustParse("zone=b"))})
		_, plan := lawful(t, p)
		require.Equal(t, []int{0, 0, c.left}, plan.Unplaced, "budget %d", c.budget)
	}
}

// A team label that the pool leaves open takes the value that the first item requires; another value needs another bin.
func TestOpenKeysSeparateItems(t *testing.T) {
	p := boxes(0)
	p.Types[0].Provides = requirements.MustParse("team, zone in (a,b)")
	for i, text := range []string{"team=red", "team=blue", "team!=red", "team=red, zone=a", "zone=b", "!team", "team in (blue,green)"} {
		p.Items = append(p.Items, binpack.Item{Name: fmt.Sprint(i), Count: 1, Size: []int64{1}, Requires: requirements.AnyOf(requirements.MustParse(text))})
	}
	in, plan := lawful(t, p)
	require.Equal(t, []int{0, 0, 0, 0, 0, 0, 1, 0}, plan.Unplaced, "the label is always there, so nothing without it is")
	require.Len(t, plan.Bins, 2)
	together := map[int]int{}
	for b, bin := range plan.Bins {
		for _, s := range bin.Shares {
			together[s.Item] = b
		}
	}
	require.NotEqual(t, together[1], together[2], "red and blue")
	var labels []string
	for _, b := range plan.Bins {
		labels = append(labels, in.Labels(b).String())
	}
	slices.Sort(labels)
	require.Equal(t, []string{"team in (blue), zone in (b)", "team in (red), zone in (a)"}, labels)
}

// A key that one type leaves open is absent on a type that does not mention it.
func TestAKeyIsOpenOnlyWhereTheTypeSaysSo(t *testing.T) {
	p := boxes(0)
	p.Types = append(p.Types, binpack.Type{Name: "open", Capacity: []int64{1}, Provides: requirements.MustParse("team in (x,y)"), Offerings: []binpack.Offering{{Price: 99}}})
	p.Items = append(p.Items,
		binpack.Item{Name: "not x", Count: 1, Size: []int64{1}, Requires: requirements.AnyOf(requirements.MustParse("team!=x"))},
		binpack.Item{Name: "y", Count: 1, Size: []int64{1}, Requires: requirements.AnyOf(requirements.MustParse("team=y"))})
	in, plan := lawful(t, p)
	require.Len(t, plan.Bins, 2)
	bin := binpack.Bin{Shares: []binpack.Share{{Item: 1, Count: 1}}}
	require.True(t, in.Labels(bin).IsAnything(), "the type says nothing, and neither does the item")
	bin.Shares = append(bin.Shares, binpack.Share{Item: 2, Count: 1})
	require.Error(t, in.Check(binpack.Layout{Bins: []binpack.Bin{bin}}))
	require.True(t, in.Labels(bin).IsImpossible())
}

// The first alternative of one item would exclude the next item; the layout is valid by the second.
func TestAlternativesOfItemsAreCompatible(t *testing.T) {
	p := boxes(0)
	p.Types[0].Provides = requirements.MustParse("team in (x,y)")
	p.Items = append(p.Items,
		binpack.Item{Name: "either", Count: 1, Size: []int64{1}, Requires: requirements.AnyOf(requirements.MustParse("team=x"), requirements.MustParse("team=y"))},
		binpack.Item{Name: "only", Count: 1, Size: []int64{1}, Requires: requirements.AnyOf(requirements.MustParse("team=y"))})
	in, err := binpack.Compile(p)
	require.NoError(t, err)
	bin := binpack.Bin{Shares: []binpack.Share{{Item: 1, Count: 1}, {Item: 2, Count: 1}}}
	require.NoError(t, in.Check(binpack.Layout{Bins: []binpack.Bin{bin}}))
	require.Equal(t, "team in (y)", in.Labels(bin).String())

	p.Types[0].Provides = requirements.MustParse("team in (x,y,z)")
	p.Items[2].Requires = requirements.AnyOf(requirements.MustParse("team=z"), requirements.MustParse("team=y"))
	in, err = binpack.Compile(p)
	require.NoError(t, err)
	require.NoError(t, in.Check(binpack.Layout{Bins: []binpack.Bin{bin}}))
	require.Equal(t, "team in (y)", in.Labels(bin).String(), "x would leave nothing for the other")
}

func TestTagsAndLimits(t *testing.T) {
	p := boxes(6)
	p.Items[0].Tags, p.Items[0].Limits = []string{"box"}, []binpack.Limit{{Tag: "box", Max: 2}}
	_, plan := lawful(t, p)
	require.Len(t, plan.Bins, 3, "two a bin")

	p.Items[0].Tags = []string{"box", "box"} // each counts twice
	_, plan = lawful(t, p)
	require.Len(t, plan.Bins, 6)

	p.Items[0].Limits[0].Max = 1
	_, plan = lawful(t, p)
	require.Equal(t, []int{6}, plan.Unplaced, "not even one is allowed")

	p = boxes(6)
	p.Items[0].Tags, p.Items[0].Limits = []string{"box"}, []binpack.Limit{{Tag: "box", Max: 3}, {Tag: "box", Max: 2}, {Tag: "box", Max: 9}}
	_, plan = lawful(t, p)
	require.Len(t, plan.Bins, 3, "the least of several limits holds")

	p = boxes(6)
	p.Types[0].Tags = []string{"daemon"}
	p.Items[0].Limits = []binpack.Limit{{Tag: "daemon", Max: 0}}
	_, plan = lawful(t, p)
	require.Equal(t, []int{6}, plan.Unplaced, "the type has what the item does not stand")

	p = boxes(4)
	p.Items[0].Limits = []binpack.Limit{{Tag: "daemon", Max: 2}}
	p.Types[0].Tags, p.Types[0].Limits = []string{"daemon", "daemon"}, []binpack.Limit{{Tag: "daemon", Max: 1}}
	p.Types = append(p.Types, p.Types[0])
	_, plan = lawful(t, p)
	require.Len(t, plan.Bins, 1, "what the type breaks by itself is not the item's fault")
	require.Len(t, plan.Alternatives[0], 2)

	p = boxes(6)
	p.Items[0].Tags = []string{"box"}
	p.Types[0].Limits = []binpack.Limit{{Tag: "box", Max: 3}}
	_, plan = lawful(t, p)
	require.Len(t, plan.Bins, 2)
}

func TestNodesAreFilledFirst(t *testing.T) {
	p := boxes(7)
	p.Nodes = []binpack.Node{
		{Name: "full", Free: []int64{-3}},
		{Name: "b", Free: []int64{2}},
		{Name: "tagged", Free: []int64{9}, Tags: []string{"x", "x"}, Limits: []binpack.Limit{{Tag: "x", Max: 1}}}, // broken before any item
		{Name: "red", Free: []int64{9}, Provides: requirements.MustParse("team=red"), Limits: []binpack.Limit{{Tag: "box", Max: 0}}},
	}
	p.Items[0].Tags = []string{"box"}
	_, plan := lawful(t, p)
	require.Equal(t, [][]binpack.Share{nil, {{Item: 0, Count: 2}}, {{Item: 0, Count: 5}}, nil}, plan.Nodes)
	require.Empty(t, plan.Bins)
	require.Zero(t, plan.Bound.Price)
	require.Zero(t, plan.GapPercent())

	p.Nodes[1].Provides = requirements.Impossible() // a node with contradictory labels takes nothing
	_, plan = lawful(t, p)
	require.Empty(t, plan.Nodes[1])
}

func TestTypesOfMoreThan64Offerings(t *testing.T) {
	p := boxes(4)
	p.Types[0].Offerings = nil
	for i := range 150 {
		o := binpack.Offering{Provides: requirements.MustOf(requirements.In("zone", fmt.Sprint("z", i))), Price: binpack.Price(1000 - i)}
		p.Types[0].Offerings = append(p.Types[0].Offerings, o)
	}
	p.Types = append(p.Types, binpack.Type{Name: "none", Capacity: []int64{4}})
	p.Items = append(p.Items, binpack.Item{Name: "z70", Count: 1, Size: []int64{4}, Requires: requirements.AnyOf(requirements.MustParse("zone=z70"))})
	in, plan := lawful(t, p)
	require.Len(t, plan.Bins, 2)
	require.Equal(t, binpack.Price(1000-149+1000-70), plan.Cost)
	for i, offering := range []int{70, 149} {
		require.Equal(t, 0, plan.Bins[i].Type)
		require.Equal(t, offering, plan.Bins[i].Offering)
		require.Equal(t, fmt.Sprintf("zone in (z%d)", offering), in.Labels(plan.Bins[i]).String())
	}
	for _, by := range []binpack.Strategy{nil, binpack.CostAware{}, wasteful{}} { // types after a wide one keep their number, too
		q := p
		q.Types = append(slices.Clone(p.Types), typ("other", 5000, 4))
		in, plan := lawfulBy(t, q, &binpack.Options{Strategy: by})
		require.NoError(t, dumbCheck(&q, binpack.Layout{Bins: plan.Bins[:1]}))
		require.Len(t, in.Problem().Types, 3)
		require.NotEmpty(t, plan.Bins)
	}
	require.Len(t, plan.Alternatives[1], 60, "the default is what one fleet request takes")
}

func TestOfferingsThatContradictTheirType(t *testing.T) {
	p := boxes(4)
	p.Types[0].Provides = requirements.MustParse("zone=a")
	p.Types[0].Offerings = []binpack.Offering{{Provides: requirements.MustParse("zone=b"), Price: 1}, {Provides: requirements.MustParse("zone=a"), Price: 10}}
	_, plan := lawful(t, p)
	require.Equal(t, binpack.Price(10), plan.Cost, "what contradicts itself cannot be bought")
}

// Sizes, counts, prices and tags at the limits of integers: nothing overflows, and no rule is broken.
func TestAbsurdSizes(t *testing.T) {
	const most = math.MaxInt64
	p := boxes(3)
	p.Items[0].Size, p.Types[0].Capacity = []int64{most}, []int64{most}
	p.Types[0].Offerings[0].Price = most
	_, plan := packedWithoutSums(t, p)
	require.Len(t, plan.Bins, 3)
	require.Equal(t, binpack.Price(most), plan.Cost, "the largest price that can be written")

	p = boxes(2)
	p.Items[0].Size = []int64{most/2 + 1}
	p.Types[0].Capacity = []int64{most}
	_, plan = lawful(t, p)
	require.Len(t, plan.Bins, 2, "two of them are one more than there is")

	p = boxes(math.MaxInt32)
	p.Items[0].Size = []int64{0}
	p.Items[0].Tags = []string{"x", "x"}
	p.Items = append(p.Items, binpack.Item{Name: "more", Count: math.MaxInt32, Size: []int64{0}, Requires: anywhere(), Tags: []string{"x"}},
		binpack.Item{Name: "shy", Count: 1, Size: []int64{0}, Requires: anywhere(), Limits: []binpack.Limit{{Tag: "x", Max: 5}}})
	_, plan = lawful(t, p)
	require.Equal(t, []int{0, 0, 0}, plan.Unplaced)
	require.Len(t, plan.Bins, 2, "the shy one keeps to itself")
	p.Items[1].Count = 0 // twice as many tags as items, and a sum that would be negative
	_, plan = lawful(t, p)
	require.Len(t, plan.Bins, 2)

	p = boxes(2)
	p.Items[0].Size = []int64{3}
	p.Types[0].Usage = []int64{most}
	p.Pools[0].Limits, p.Pools[0].MaxPrice = []int64{most - 1}, new(binpack.Price(most))
	p.Types = append(p.Types, binpack.Type{Name: "light", Capacity: []int64{4}, Usage: []int64{most / 2}, Offerings: []binpack.Offering{{Price: most / 2}}})
	_, plan = lawful(t, p)
	require.Equal(t, []int{0}, plan.Unplaced)
	require.Equal(t, binpack.Price(most-1), plan.Cost)

	p = boxes(math.MaxInt32) // billions of copies, and the bound is still that of the division
	p.Types[0].Capacity, p.Types[0].Offerings[0].Price = []int64{1 << 20}, binpack.Dollars(10)
	_, plan = lawful(t, p)
	require.Len(t, plan.Bins, 2048)
	require.InEpsilon(t, 20480, plan.Bound.Price.Dollars(), 1e-4, "a dual has no fractions")
}

// packedWithoutSums is lawful for prices whose sum overflows.
func packedWithoutSums(t *testing.T, p binpack.Problem) (*binpack.Instance, *binpack.Plan) {
	t.Helper()
	in, err := binpack.Compile(p)
	require.NoError(t, err)
	plan, err := in.Pack(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, in.VerifyBound(plan))
	return in, plan
}

func TestGapPercent(t *testing.T) {
	plan := binpack.Plan{Objective: 30, Bound: binpack.Bound{Price: 24}}
	require.InDelta(t, 25, plan.GapPercent(), 1e-9)
	plan.Bound.Price = 0
	require.InDelta(t, 100, plan.GapPercent(), 1e-9)
	plan.Objective = 0
	require.Zero(t, plan.GapPercent())
	require.InDelta(t, 1.5, binpack.Price(1_500_000_000).Dollars(), 1e-12)
}

// The cheapest node for the first item cannot hold the second. If only one node may be bought, it is the one that holds both.
func TestScarceNodesHoldMost(t *testing.T) {
	p := boxes(1)
	p.Types[0].Provides = requirements.FromLabels(map[string]string{"family": "a"})
	p.Types = append(p.Types, binpack.Type{Name: "m", Capacity: []int64{4}, Provides: requirements.FromLabels(map[string]string{"family": "m"}), Offerings: []binpack.Offering{{Price: 12}}})
	p.Items[0].Size = []int64{3}
	p.Items = append(p.Items, binpack.Item{Name: "choosy", Count: 1, Size: []int64{1}, Requires: requirements.AnyOf(requirements.MustOf(requirements.In("family", "m")))})
	p.Pools[0].MaxNodes = new(1)
	_, plan := lawful(t, p)
	require.Equal(t, []int{0, 0}, plan.Unplaced)
	p.Pools[0].MaxNodes = nil
	_, plan = lawful(t, p)
	require.Equal(t, []int{0, 0}, plan.Unplaced)
	p.Pools[0].MaxNodes = new(1)
	p.Items[1].Size = []int64{2} // they do not fit together: the smaller one is unplaced
	_, plan = lawful(t, p)
	require.Equal(t, []int{0, 1}, plan.Unplaced)
}

// Two small nodes would hold more in all, but fewer of the first priority.
func TestScarceNodesHoldMostOfTheFirstPriority(t *testing.T) {
	p := boxes(3)
	p.Pools[0].Limits = []int64{16}
	p.Types = []binpack.Type{
		{Name: "large", Capacity: []int64{15}, Usage: []int64{16}, Offerings: []binpack.Offering{{Price: 20}}},
		{Name: "small", Capacity: []int64{7}, Usage: []int64{8}, Offerings: []binpack.Offering{{Price: 8}}},
	}
	p.Items[0].Size, p.Items[0].Priority = []int64{5}, 1
	p.Items = append(p.Items, binpack.Item{
		Name: "port", Count: 4, Size: []int64{1}, Requires: anywhere(), Tags: []string{"port"}, Limits: []binpack.Limit{{Tag: "port", Max: 1}},
	})
	_, plan := lawful(t, p)
	require.Equal(t, []int{0, 4}, plan.Unplaced)
	p.Items[0].Priority = 0
	_, plan = lawful(t, p)
	require.Equal(t, []int{1, 2}, plan.Unplaced)
}

// Half of the budget in small nodes suffices for the first box, but all of it holds few of the others.
func TestScarceNodesHoldMostOfAll(t *testing.T) {
	p := boxes(1)
	p.Pools[0].Limits = []int64{16}
	p.Types = []binpack.Type{
		{Name: "large", Capacity: []int64{16}, Usage: []int64{16}, Offerings: []binpack.Offering{{Price: 20}}},
		{Name: "small", Capacity: []int64{4}, Usage: []int64{8}, Offerings: []binpack.Offering{{Price: 1}}},
	}
	p.Items[0].Size, p.Items[0].Priority = []int64{4}, 1
	p.Items = append(p.Items, binpack.Item{Name: "crumb", Count: 12, Size: []int64{1}, Requires: anywhere()})
	_, plan := lawful(t, p)
	require.Equal(t, []int{0, 0}, plan.Unplaced)
}

// The number of copies costs nothing, and the number of bins little. More bins than anybody buys are an error, not a killed process.
func TestManyCopies(t *testing.T) {
	problem := func(count int, size, capacity int64) binpack.Problem {
		p := boxes(count)
		p.Items[0].Size, p.Types[0].Capacity = []int64{size}, []int64{capacity}
		return p
	}
	for _, strategy := range []binpack.Strategy{binpack.FirstFitDecreasing{}, binpack.CostAware{}} {
		_, err := binpack.Pack(t.Context(), problem(math.MaxInt32, 1, 1), &binpack.Options{Strategy: strategy})
		require.ErrorContains(t, err, "buys 1048576 bins")
		plan, err := binpack.Pack(t.Context(), problem(math.MaxInt32, 1, 1<<20), &binpack.Options{Strategy: strategy})
		require.NoError(t, err)
		require.Len(t, plan.Bins, 2048)
	}
	// What a limit does not let anybody buy is unplaced.
	p := problem(1<<30, 1, 1)
	p.Types[0].Usage, p.Pools[0].Limits = []int64{1}, []int64{5}
	plan, err := binpack.Pack(t.Context(), p, nil)
	require.NoError(t, err)
	require.Equal(t, []int{1<<30 - 5}, plan.Unplaced)
	// Joining bins once looked at all pairs of them.
	p = problem(1<<18, 1, 1)
	start := time.Now()
	plan, err = binpack.Pack(t.Context(), p, nil)
	require.NoError(t, err)
	require.Len(t, plan.Bins, 1<<18)
	require.Less(t, time.Since(start), 20*time.Second)
}

// No sum overflows: numbers up to the largest obey the same rules as small ones, added without a limit.
func TestHugeNumbers(t *testing.T) {
	const most = math.MaxInt64
	placed, unplaced, several := 0, 0, 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 5))
		huge := func() int64 {
			parts := []int64{0, 1, most / 5, most / 4, most / 3, most/3 + 1, most / 2, most/2 + 1, most - 1, most}
			return parts[r.IntN(len(parts))]
		}
		p := binpack.Problem{Resources: []string{"a", "b"}, Budgets: []int64{huge()}}
		for range 1 + r.IntN(2) {
			pool := binpack.Pool{Name: fmt.Sprint("p", len(p.Pools)), Limits: []int64{huge()}}
			if r.IntN(2) == 0 {
				pool.MaxPrice = new(binpack.Price(huge()))
			}
			p.Pools = append(p.Pools, pool)
		}
		for i := range 1 + r.IntN(3) {
			o := binpack.Offering{Price: binpack.Price(huge()), Usage: []int64{huge() / 4}}
			if r.IntN(3) == 0 {
				o.Counted, o.Count, o.Reservation = true, math.MaxInt, "r"
			}
			p.Types = append(p.Types, binpack.Type{Name: fmt.Sprint("t", i), Pool: r.IntN(len(p.Pools)), Capacity: []int64{huge(), huge()}, Usage: []int64{huge() / 3}, Offerings: []binpack.Offering{o}})
		}
		for i := range 1 + r.IntN(4) {
			p.Items = append(p.Items, binpack.Item{Name: fmt.Sprint("i", i), Count: 1 + r.IntN(3), Size: []int64{huge() / 2, huge() / 3}, Requires: anywhere(), Priority: int32(r.IntN(2))})
		}
		if r.IntN(2) == 0 {
			p.Nodes = []binpack.Node{{Name: "n", Free: []int64{huge(), huge()}}}
		}
		plan, err := binpack.Pack(t.Context(), p, nil)
		require.NoError(t, err, "seed %d", seed)
		within := func(what string, most int64, parts ...int64) {
			total := new(big.Int)
			for _, x := range parts {
				total.Add(total, big.NewInt(x))
			}
			require.True(t, what != "capacity" && most == binpack.Unlimited || total.Cmp(big.NewInt(most)) <= 0, "seed %d: %s: %s of %d", seed, what, total, most)
		}
		fits := func(shares []binpack.Share, capacity []int64) {
			for k := range p.Resources {
				var parts []int64
				for _, s := range shares {
					for range s.Count {
						parts = append(parts, p.Items[s.Item].Size[k])
					}
				}
				within("capacity", capacity[k], parts...)
			}
		}
		for i, shares := range plan.Nodes {
			fits(shares, p.Nodes[i].Free)
		}
		usage, price, budget, total := make([][]int64, len(p.Pools)), make([][]int64, len(p.Pools)), []int64{}, new(big.Int)
		for _, b := range plan.Bins {
			x := &p.Types[b.Type]
			fits(b.Shares, x.Capacity)
			usage[x.Pool], price[x.Pool] = append(usage[x.Pool], x.Usage[0]), append(price[x.Pool], int64(x.Offerings[0].Price))
			budget = append(budget, x.Offerings[0].Usage[0])
			total.Add(total, big.NewInt(int64(x.Offerings[0].Price)))
		}
		within("budget", p.Budgets[0], budget...)
		for i, pool := range p.Pools {
			within("limit", pool.Limits[0], usage[i]...)
			if pool.MaxPrice != nil {
				within("price", int64(*pool.MaxPrice), price[i]...)
			}
		}
		if total.IsInt64() {
			require.Equal(t, total.Int64(), int64(plan.Cost), "seed %d", seed)
		} else {
			require.EqualValues(t, most, plan.Cost, "seed %d: the largest price stands for all above", seed)
		}
		require.LessOrEqual(t, plan.Bound.Price, plan.Objective, "seed %d", seed)
		in, err := binpack.Compile(p)
		require.NoError(t, err)
		require.NoError(t, in.VerifyBound(plan), "seed %d", seed)
		for _, n := range plan.Unplaced {
			unplaced += n
		}
		if len(plan.Bins) > 1 {
			several++
		}
		placed += len(plan.Bins)
		// An item with a bin to itself that fits, and no limit in its way, has a place.
		for i, n := range plan.Unplaced {
			for k := range p.Types {
				x := &p.Types[k]
				free := p.Pools[x.Pool].MaxPrice == nil && x.Usage[0] == 0 && x.Offerings[0].Usage[0] == 0
				require.False(t, n > 0 && free && x.Capacity[0] >= p.Items[i].Size[0] && x.Capacity[1] >= p.Items[i].Size[1], "seed %d: %d of item %d have no place", seed, n, i)
			}
		}
	}
	t.Log(placed, unplaced, several)
	require.Greater(t, several, 100)
}
