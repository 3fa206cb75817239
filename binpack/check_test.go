package binpack_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// warehouse returns a problem with every rule, and a layout that breaks none.
func warehouse() (binpack.Problem, binpack.Layout) {
	p := binpack.Problem{
		Resources: []string{"cpu", "memory"},
		Items: []binpack.Item{
			{Name: "web", Count: 4, Size: []int64{2, 2}, Requires: anywhere(), Tags: []string{"web"}, Limits: []binpack.Limit{{Tag: "web", Max: 2}}},
			{Name: "east", Count: 1, Size: []int64{1, 1}, Requires: requirements.AnyOf(requirements.MustParse("zone=east, team=red"))},
			{Name: "blue", Count: 1, Size: []int64{1, 1}, Requires: requirements.AnyOf(requirements.MustParse("team=blue"))},
			{Name: "port", Count: 1, Size: []int64{0, 0}, Requires: anywhere(), Limits: []binpack.Limit{{Tag: "daemon", Max: 0}}},
		},
		Pools: []binpack.Pool{
			{Name: "small", MaxNodes: new(2), MaxPrice: new(binpack.Price(25)), Limits: []int64{20}},
			{Name: "shown", MinValues: []binpack.MinValues{{Key: "zone", Count: 2}}},
		},
		Types: []binpack.Type{
			{
				Name: "box", Pool: 0, Capacity: []int64{8, 8}, Usage: []int64{8}, Provides: requirements.MustParse("team in (red,blue)"),
				Offerings: []binpack.Offering{
					{Provides: requirements.MustParse("zone=east"), Price: 10},
					{Provides: requirements.MustParse("zone=west"), Price: 12, Counted: true, Count: 1, Reservation: "r"},
				},
			},
			{Name: "crate", Pool: 1, Capacity: []int64{4, 4}, Tags: []string{"daemon"}, Offerings: []binpack.Offering{
				{Provides: requirements.MustParse("zone=east"), Price: 5}, {Provides: requirements.MustParse("zone=west"), Price: 5},
			}},
			{Name: "barrel", Pool: 0, Capacity: []int64{8, 8}, Usage: []int64{16}, Offerings: []binpack.Offering{{Price: 20, Counted: true, Count: 1, Reservation: "r"}}},
		},
		Nodes: []binpack.Node{{Name: "old", Free: []int64{4, -1}, Provides: requirements.MustParse("zone=east")}},
	}
	return p, binpack.Layout{Bins: []binpack.Bin{
		{Type: 0, Offering: 0, Shares: []binpack.Share{{Item: 0, Count: 2}, {Item: 1, Count: 1}}},
		{Type: 0, Offering: 1, Shares: []binpack.Share{{Item: 2, Count: 1}, {Item: 3, Count: 1}}},
		{Type: 1, Offering: 0, Shares: []binpack.Share{{Item: 0, Count: 2}}},
	}}
}

func TestCheckReportsEachRule(t *testing.T) {
	for _, c := range []struct {
		name     string
		breaking func(*binpack.Problem, *binpack.Layout)
		want     string
	}{
		{"nothing", func(*binpack.Problem, *binpack.Layout) {}, ""},
		{"capacity", func(p *binpack.Problem, l *binpack.Layout) { p.Items[1].Size[1] = 5 }, "binpack: bin 0: 9 of memory are used, there are 8"},
		{"capacity beyond counting", func(p *binpack.Problem, l *binpack.Layout) { p.Items[0].Size[0] = math.MaxInt64 }, "more of cpu is used than can be counted"},
		{"a node without room", func(p *binpack.Problem, l *binpack.Layout) {
			l.Nodes = [][]binpack.Share{{{Item: 0, Count: 2}}}
			l.Bins = l.Bins[:2]
		}, `binpack: node "old": 4 of memory are used, there are -1`},
		{"more nodes than there are", func(p *binpack.Problem, l *binpack.Layout) { l.Nodes = make([][]binpack.Share, 2) }, "layout has 2 nodes, the problem 1"},
		{"zone", func(p *binpack.Problem, l *binpack.Layout) {
			l.Bins[0].Shares[1], l.Bins[1].Shares[0] = l.Bins[1].Shares[0], l.Bins[0].Shares[1]
		}, `binpack: bin 1: item "east" requires team in (red), zone in (east), the labels are team in (blue,red), zone in (west)`},
		{"an open label with two values", func(p *binpack.Problem, l *binpack.Layout) {
			l.Bins[0].Shares = append(l.Bins[0].Shares, binpack.Share{Item: 2, Count: 1})
			l.Bins[1].Shares = l.Bins[1].Shares[1:]
		}, `binpack: bin 0: item "blue" requires team in (blue), the labels are team in (red), zone in (east)`},
		{"limit of a tag", func(p *binpack.Problem, l *binpack.Layout) {
			l.Bins[0].Shares[0].Count, l.Bins[2].Shares[0].Count = 3, 1
		}, `binpack: bin 0: tag "web" occurs 3 times, but at most 2 are allowed`},
		{"limit against what the type brings", func(p *binpack.Problem, l *binpack.Layout) {
			l.Bins[2].Shares = append(l.Bins[2].Shares, l.Bins[1].Shares[1])
			l.Bins[1].Shares = l.Bins[1].Shares[:1]
		}, `binpack: bin 2: tag "daemon" occurs 1 times, but at most 0 are allowed`},
		{"limit of the type", func(p *binpack.Problem, l *binpack.Layout) {
			p.Types[0].Limits = []binpack.Limit{{Tag: "web", Max: 1}}
		}, `binpack: bin 0: tag "web" occurs 2 times, but at most 1 are allowed`},
		{"count", func(p *binpack.Problem, l *binpack.Layout) { p.Items[0].Count = 3 }, `binpack: item "web" is placed 4 times, there are 3`},
		{"nodes of a pool", func(p *binpack.Problem, l *binpack.Layout) { p.Pools[0].MaxNodes = new(1) }, `binpack: pool "small": 2 bins, at most 1 are allowed`},
		{"price of a pool", func(p *binpack.Problem, l *binpack.Layout) { p.Pools[0].MaxPrice = new(binpack.Price(21)) }, `binpack: pool "small": $0.000000022 an hour, at most $0.000000021 is allowed`},
		{"price beyond counting", func(p *binpack.Problem, l *binpack.Layout) { p.Types[0].Offerings[0].Price = math.MaxInt64 }, `binpack: pool "small": $9223372036.854775807 an hour, at most $0.000000025 is allowed`},
		{"limit of a pool", func(p *binpack.Problem, l *binpack.Layout) { p.Types[0].Usage[0] = 11 }, `binpack: pool "small": limit 0 is 20, 22 are used`},
		{"usage beyond counting", func(p *binpack.Problem, l *binpack.Layout) { p.Types[0].Usage[0] = math.MaxInt64 }, `limit 0 is 20, 9223372036854775807 are used`},
		{"reservation", func(p *binpack.Problem, l *binpack.Layout) {
			p.Pools[0].Limits, p.Pools[0].MaxPrice = nil, nil
			l.Bins[0].Type, l.Bins[0].Shares = 2, l.Bins[0].Shares[:1]
		}, `binpack: reservation "r": 1 more are taken than exist`},
		{"minimum of values", func(p *binpack.Problem, l *binpack.Layout) { p.Types[1].Offerings = p.Types[1].Offerings[:1] }, `binpack: bin 2: its alternatives do not show the minimum of values that pool "shown" requires`},
		{"an empty bin", func(p *binpack.Problem, l *binpack.Layout) { l.Bins[2].Shares = nil }, "binpack: bin 2 is empty"},
		{"no such type", func(p *binpack.Problem, l *binpack.Layout) { l.Bins[2].Type = 3 }, "binpack: bin 2: there is no offering 0 of type 3"},
		{"a negative type", func(p *binpack.Problem, l *binpack.Layout) { l.Bins[2].Type = -1 }, "binpack: bin 2: there is no offering 0 of type -1"},
		{"no such offering", func(p *binpack.Problem, l *binpack.Layout) { l.Bins[2].Offering = 2 }, "binpack: bin 2: there is no offering 2 of type 1"},
		{"no such item", func(p *binpack.Problem, l *binpack.Layout) { l.Bins[2].Shares[0].Item = 4 }, "binpack: bin 2: share of item 4, 2 times"},
		{"a negative count", func(p *binpack.Problem, l *binpack.Layout) { l.Bins[2].Shares[0].Count = -1 }, "binpack: bin 2: share of item 0, -1 times"},
		{"an offering that contradicts its type", func(p *binpack.Problem, l *binpack.Layout) {
			p.Types[1].Provides = requirements.MustParse("zone=north")
		}, "binpack: bin 2: type and offering contradict each other: requirements: zone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, l := warehouse()
			c.breaking(&p, &l)
			in, err := binpack.Compile(p)
			require.NoError(t, err)
			err = in.Check(l)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			_, err = in.Pack(t.Context(), &binpack.Options{Strategy: fixed{l}})
			require.ErrorContains(t, err, c.want, "what a strategy returns is checked")
			_, err = in.Pack(t.Context(), nil)
			require.NoError(t, err, "the built-in strategy breaks nothing")
		})
	}
}

// fixed is a strategy that returns a given layout.
type fixed struct{ layout binpack.Layout }

func (f fixed) Name() string { return "fixed" }
func (f fixed) Pack(context.Context, *binpack.Instance) (binpack.Layout, error) {
	return f.layout, nil
}

func TestCheckReportsAllAtOnce(t *testing.T) {
	p, l := warehouse()
	p.Items[0].Count, p.Pools[0].MaxNodes, p.Items[1].Size[1] = 3, new(1), 9
	in, err := binpack.Compile(p)
	require.NoError(t, err)
	err = in.Check(l)
	require.Error(t, err)
	require.Equal(t, []string{
		"binpack: bin 0: 13 of memory are used, there are 8",
		`binpack: pool "small": 2 bins, at most 1 are allowed`,
		`binpack: item "web" is placed 4 times, there are 3`,
	}, strings.Split(err.Error(), "\n"))
}

func TestVerifyBoundRefusesWhatProvesNothing(t *testing.T) {
	in, plan := lawfulBy(t, one([]string{"cpu", "memory"}, []binpack.Type{typ("box", 10, 8, 8)}, item("half", 4, 4, 1)), &binpack.Options{Strategy: wasteful{}})
	require.Positive(t, plan.Bound.Price)
	require.Equal(t, binpack.AssignmentLP, plan.Bound.Kind)
	for _, c := range []struct {
		name     string
		breaking func(*binpack.Plan)
		want     string
	}{
		{"a higher claim", func(p *binpack.Plan) { p.Bound.Price++ }, "the bound claims"},
		{"items too dear", func(p *binpack.Plan) { p.Bound.ItemDuals = []binpack.Price{1000} }, "above its price"},
		{"a negative value", func(p *binpack.Plan) { p.Bound.ItemDuals = []binpack.Price{-1} }, "out of range"},
		{"too large a value", func(p *binpack.Plan) { p.Bound.ItemDuals = []binpack.Price{math.MaxInt64} }, "out of range"},
		{"another length", func(p *binpack.Plan) { p.Bound.ItemDuals = []binpack.Price{0, 0} }, "certificate has 2 values, want 1"},
		{"another kind", func(p *binpack.Plan) { p.Bound.Kind = "oracle" }, `unknown kind of bound "oracle"`},
		{"more than the plan costs", func(p *binpack.Plan) { p.Bound.Price = 41 }, "bound $0.000000041 is above the objective $0.00000004"},
		{"another objective", func(p *binpack.Plan) { p.Objective = 0 }, "the objective is $0.00000004, the plan says $0.00"},
		{"another layout", func(p *binpack.Plan) { p.Bins = append(slices.Clip(p.Bins), p.Bins[0]) }, "is placed 5 times, there are 4"},
	} {
		broken := *plan
		c.breaking(&broken)
		require.ErrorContains(t, in.VerifyBound(&broken), c.want, c.name)
	}
}

func TestCompileReportsEverythingMalformed(t *testing.T) {
	_, err := binpack.Compile(binpack.Problem{
		Resources: []string{"cpu"},
		Items: []binpack.Item{
			{Name: "a", Count: -1, Size: []int64{-5}},
			{Name: "a", Count: math.MaxInt32 + 1, Size: []int64{1, 2}, Limits: []binpack.Limit{{Tag: "x", Max: -1}}},
		},
		Pools: []binpack.Pool{{Name: "p", Limits: []int64{1, 2}}},
		Types: []binpack.Type{
			{Name: "t", Pool: 1, Capacity: nil},
			{Name: "u", Capacity: []int64{1}, Usage: []int64{-1}, Offerings: []binpack.Offering{{Price: -1}, {Counted: true, Count: -1}}, Limits: []binpack.Limit{{Tag: "y", Max: -2}}},
		},
		Nodes: []binpack.Node{{Name: "n", Free: []int64{1}}, {Name: "n", Limits: []binpack.Limit{{Tag: "z", Max: -3}}}},
	})
	require.Error(t, err)
	require.Equal(t, []string{
		`binpack: item "a": count -1 is out of range`,
		`binpack: item "a" (items[0]): size of cpu is negative`,
		`binpack: item "a" is listed twice`,
		`binpack: item "a": count 2147483648 is out of range`,
		`binpack: item "a" has 2 resources, want 1`,
		`binpack: item "a": limit of tag "x" is negative`,
		`binpack: type "t" (types[0]) has 0 resources, want 1`,
		`binpack: type "t" (types[0]): pool 1 does not exist`,
		`binpack: type "u" (types[1]): usage has 1 entry, its pool "p" limits 2`,
		`binpack: type "u" (types[1]): usage is negative`,
		`binpack: type "u" (types[1]): offerings[0]: price is negative, too large or not a number`,
		`binpack: type "u" (types[1]): offerings[1]: Count is negative`,
		`binpack: type "u" (types[1]): limit of tag "y" is negative`,
		`binpack: node "n" has 0 resources, want 1`,
		`binpack: node "n" is listed twice`,
		`binpack: node "n": limit of tag "z" is negative`,
	}, strings.Split(err.Error(), "\n"))
}

// What cannot be meant is refused with its name.
func TestCompileAndPackRefuse(t *testing.T) {
	for want, change := range map[string]func(p *binpack.Problem, o *binpack.Options){
		`binpack: resource "cpu" is listed twice`: func(p *binpack.Problem, _ *binpack.Options) {
			*p = one([]string{"cpu", "cpu"}, nil)
		},
		`binpack: pool "p" (pools[0]): MaxNodes or MaxPrice is negative; nil means no limit`: func(p *binpack.Problem, _ *binpack.Options) {
			p.Pools[0].MaxNodes = new(-1)
		},
		`binpack: pool "p" (pools[0]): the minimum of "zone" is -1, want 1 or more`: func(p *binpack.Problem, _ *binpack.Options) {
			p.Pools[0].MinValues = []binpack.MinValues{{Key: "zone", Count: -1}}
		},
		`binpack: type "x" (types[0]): offerings[0]: price is negative, too large or not a number`: func(p *binpack.Problem, _ *binpack.Options) {
			p.Types[0].Offerings[0].Price = binpack.Dollars(math.NaN())
		},
		`binpack: pool "p" (pools[0]): a minimum of values has no key`: func(p *binpack.Problem, _ *binpack.Options) {
			p.Pools[0].MinValues = []binpack.MinValues{{Count: 1}}
		},
		`binpack: type "x" (types[0]): offerings[1]: price is negative, too large or not a number`: func(p *binpack.Problem, _ *binpack.Options) {
			p.Types[0].Offerings = append(p.Types[0].Offerings, binpack.Offering{Price: binpack.Dollars(-1e-12)})
		},
		`binpack: pool "p" (pools[0]): the minimum of "zone" is 0, want 1 or more`: func(p *binpack.Problem, _ *binpack.Options) {
			p.Pools[0].MinValues = []binpack.MinValues{{Key: "zone"}}
		},
		`binpack: type "x" (types[0]) has 1 resource, want 0`: func(p *binpack.Problem, _ *binpack.Options) {
			p.Resources, p.Items = nil, nil
		},
		`binpack: type "x" (types[0]): offerings[0]: usage has 1 entry, want one for each budget: 0`: func(p *binpack.Problem, _ *binpack.Options) {
			p.Types[0].Offerings[0].Usage = []int64{1}
		},
		`binpack: type "x" (types[0]): offerings[0]: only a Counted offering has a Count, Takes or Reservation`: func(p *binpack.Problem, _ *binpack.Options) {
			p.Types[0].Offerings[0].Count = 1
		},
		"binpack: type \"x\" (types[0]): offerings[0]: only a Counted offering has a Count, Takes or Reservation\n" +
			`binpack: type "x" (types[0]): offerings[1]: only a Counted offering has a Count, Takes or Reservation`: func(p *binpack.Problem, _ *binpack.Options) {
			p.Types[0].Offerings = []binpack.Offering{{Takes: 2}, {Reservation: "r"}}
		},
		`binpack: type "x" (types[0]): offerings[0]: Objective is negative, too large or not a number`: func(p *binpack.Problem, _ *binpack.Options) {
			p.Types[0].Offerings[0].Objective = binpack.Dollars(math.NaN())
		},
		"binpack: type \"x\" (types[0]): offerings[0]: Count is negative\n" +
			`binpack: type "x" (types[0]): offerings[0]: Takes is negative`: func(p *binpack.Problem, _ *binpack.Options) {
			p.Types[0].Offerings[0] = binpack.Offering{Counted: true, Count: -1, Takes: -1}
		},
		`binpack: type "x" (types[0]): offerings[0]: Takes is negative`: func(p *binpack.Problem, _ *binpack.Options) {
			p.Types[0].Offerings[0].Takes = -1
		},
		`binpack: node "n": want one value of each label, got zone in (a,b)`: func(p *binpack.Problem, _ *binpack.Options) {
			p.Nodes = []binpack.Node{{Name: "n", Free: []int64{1}, Provides: requirements.MustParse("zone in (a,b)")}}
		},
		`binpack: node "n": want one value of each label, got zone`: func(p *binpack.Problem, _ *binpack.Options) {
			p.Nodes = []binpack.Node{{Name: "n", Free: []int64{1}, Provides: requirements.MustParse("zone")}}
		},
		`binpack: node "n": want one value of each label, got zone notin (a)`: func(p *binpack.Problem, _ *binpack.Options) {
			p.Nodes = []binpack.Node{{Name: "n", Free: []int64{1}, Provides: requirements.MustParse("zone notin (a)")}}
		},
		"binpack: Options.Alternatives is -1, want a number of choices, or 0 for 60": func(_ *binpack.Problem, o *binpack.Options) { o.Alternatives = -1 },
		`binpack: there is no effort "Fast", only "fast", "default" and "best"`:      func(_ *binpack.Problem, o *binpack.Options) { o.Effort = "Fast" },
		`binpack: there is no effort "all", only "fast", "default" and "best"`: func(_ *binpack.Problem, o *binpack.Options) {
			o.Strategy = &binpack.CostAware{Effort: "all"}
		},
		"binpack: Options.First is not a plan of the instance: binpack: bin 0: there is no offering 0 of type 7": func(_ *binpack.Problem, o *binpack.Options) {
			o.First = &binpack.Plan{Strategy: "ffd", Layout: binpack.Layout{Bins: []binpack.Bin{{Type: 7, Shares: []binpack.Share{{Item: 126, Count: 1}}}}}}
		},
	} {
		p, o := one([]string{"cpu"}, []binpack.Type{typ("x", 10, 4)}, item("a", 3, 1)), binpack.Options{}
		change(&p, &o)
		_, err := binpack.Pack(t.Context(), p, &o)
		require.EqualError(t, err, want)
	}
}

// What may be meant is accepted: a limit that is exceeded already, a sold-out offering, and a label that a node lacks.
func TestCompileAccepts(t *testing.T) {
	p := one([]string{"cpu"}, []binpack.Type{typ("x", 10, 4)}, item("a", 3, 1))
	p.Pools[0].Limits, p.Types[0].Usage = []int64{-1}, []int64{1}
	p.Types[0].Offerings = append(p.Types[0].Offerings, binpack.Offering{Counted: true})
	p.Nodes = []binpack.Node{{Name: "n", Free: []int64{2}, Provides: requirements.MustParse("zone in (a), !gpu, cpus in (4)")}}
	plan, err := binpack.Pack(t.Context(), p, nil)
	require.NoError(t, err)
	require.Equal(t, []int{1}, plan.Unplaced)
	require.Empty(t, plan.Bins)
}

func TestPrices(t *testing.T) {
	for dollars, want := range map[float64]string{
		0.17: "$0.17", 0: "$0.00", 12: "$12.00", 0.0058: "$0.0058", 1.5: "$1.50", 1e-9: "$0.000000001", 9e9: "$9000000000.00",
		-1: "-$0.000000001", -1e-12: "-$0.000000001", 1e-12: "$0.00", math.Copysign(0, -1): "$0.00", math.Inf(1): "-$0.000000001", 1e10: "-$0.000000001",
	} {
		require.Equal(t, want, binpack.Dollars(dollars).String())
	}
	require.Equal(t, "-$9223372036.854775808", binpack.Price(math.MinInt64).String())
	require.Equal(t, 0.17, binpack.Dollars(0.17).Dollars())
}
