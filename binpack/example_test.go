package binpack_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// Ten copies of three cores are packed into boxes of four or nine cores.
func Example() {
	plan, err := binpack.Pack(context.Background(), binpack.Problem{
		Resources: []string{"cpu"},
		Items:     []binpack.Item{{Name: "web", Count: 10, Size: []int64{3}}},
		Types: []binpack.Type{
			{Name: "small", Capacity: []int64{4}, Offerings: []binpack.Offering{{Price: binpack.Dollars(0.17)}}},
			{Name: "large", Capacity: []int64{9}, Offerings: []binpack.Offering{{Price: binpack.Dollars(0.34)}}},
		},
	}, nil)
	fmt.Println(err)
	for _, b := range plan.Bins {
		fmt.Println([]string{"small", "large"}[b.Type], b.Shares[0].Count)
	}
	fmt.Printf("%v, proven not below %v, gap %.1f%%\n", plan.Cost, plan.Bound.Price, plan.GapPercent())
	// Output:
	// <nil>
	// large 3
	// large 3
	// large 3
	// small 1
	// $1.19, proven not below $1.19, gap 0.0%
}

// sample has six web servers and a database, two zones, and an existing node.
func sample() binpack.Problem {
	return binpack.Problem{
		Resources: []string{"cpu", "memory"},
		Items: []binpack.Item{
			{Name: "web", Count: 6, Size: []int64{1, 2}},
			{Name: "db", Count: 1, Size: []int64{2, 8}, Requires: requirements.AnyOf(requirements.MustParse("zone=b"))},
		},
		Types: []binpack.Type{{
			Name: "medium", Capacity: []int64{4, 16},
			Offerings: []binpack.Offering{
				{Provides: requirements.MustParse("zone=a"), Price: binpack.Dollars(1)},
				{Provides: requirements.MustParse("zone=b"), Price: binpack.Dollars(1.2)},
			},
		}},
		Nodes: []binpack.Node{{Name: "old", Free: []int64{1, 4}, Provides: requirements.MustParse("zone=a")}},
	}
}

func ExamplePack() {
	plan, err := binpack.Pack(context.Background(), sample(), nil)
	fmt.Println(err, plan.Cost, plan.Unplaced)
	fmt.Println("on the node that exists:", plan.Nodes[0])
	for i, b := range plan.Bins {
		fmt.Println("bin:", b.Shares, "choices:", plan.Alternatives[i])
	}
	// Output:
	// <nil> $2.20 [0 0]
	// on the node that exists: [{0 1}]
	// bin: [{1 1} {0 2}] choices: [{0 1}]
	// bin: [{0 3}] choices: [{0 0} {0 1}]
}

func ExampleCompile() {
	in, err := binpack.Compile(sample())
	fmt.Println(in.Problem().Types[0].Name, err)
	_, err = binpack.Compile(binpack.Problem{Resources: []string{"cpu"}, Items: []binpack.Item{{Name: "web", Count: -1}}})
	fmt.Println(err)
	// Output:
	// medium <nil>
	// binpack: item "web": count -1 is out of range
	// binpack: item "web" has 0 resources, want 1
}

func ExampleInstance() {
	in, _ := binpack.Compile(sample())
	plan, _ := in.Pack(context.Background(), &binpack.Options{Alternatives: 1})
	for _, b := range plan.Bins {
		fmt.Println(in.Labels(b))
	}
	fmt.Println(in.Check(plan.Layout), in.VerifyBound(plan))
	// Output:
	// zone in (b)
	// zone in (a)
	// <nil> <nil>
}

func ExampleProblem() {
	plan, err := binpack.Pack(context.Background(), binpack.Problem{}, nil) // nothing to pack is no error
	fmt.Println(len(plan.Bins), plan.Cost, err)
	// Output: 0 $0.00 <nil>
}

// Two replicas must not share a bin: each has the tag, and a limit of one on it.
func ExampleItem() {
	p := sample()
	p.Items[0].Tags = []string{"web"}
	p.Items[0].Limits = []binpack.Limit{{Tag: "web", Max: 1}}
	plan, _ := binpack.Pack(context.Background(), p, nil)
	fmt.Println(len(plan.Bins), "bins beside the node")
	// Output: 5 bins beside the node
}

// A limit also counts the tags of others, here one that the type has before any item.
func ExampleLimit() {
	p := sample()
	p.Types[0].Tags = []string{"port 80"}
	p.Items[1].Limits = []binpack.Limit{{Tag: "port 80", Max: 0}}
	plan, _ := binpack.Pack(context.Background(), p, nil)
	fmt.Println("unplaced:", plan.Unplaced)
	// Output: unplaced: [0 1]
}

// A pool with more weight is filled first, although it is dearer, as far as its budget goes.
func ExamplePool() {
	p := sample()
	p.Pools = []binpack.Pool{{Name: "default"}, {Name: "preferred", Weight: 10, MaxNodes: new(1)}}
	dear := p.Types[0]
	dear.Pool, dear.Offerings = 1, []binpack.Offering{{Provides: requirements.MustParse("zone=b"), Price: binpack.Dollars(2)}}
	p.Types = append(p.Types, dear)
	plan, _ := binpack.Pack(context.Background(), p, nil)
	for _, b := range plan.Bins {
		fmt.Println(p.Pools[p.Types[b.Type].Pool].Name)
	}
	// Output:
	// preferred
	// default
}

// A bin of this pool must offer a choice of two zones. The database needs one zone, so it goes
// elsewhere.
func ExampleMinValues() {
	p := sample()
	p.Pools = []binpack.Pool{{MinValues: []binpack.MinValues{{Key: "zone", Count: 2}}}}
	plan, _ := binpack.Pack(context.Background(), p, nil)
	fmt.Println("unplaced:", plan.Unplaced)
	// Output: unplaced: [0 1]
}

// A label that the type leaves open takes the value that the items in the bin require.
func ExampleType() {
	p := sample()
	p.Types[0].Provides = requirements.MustParse("team in (red,blue)")
	p.Items[0].Requires = requirements.AnyOf(requirements.MustParse("team=red"))
	p.Items[1].Requires = requirements.AnyOf(requirements.MustParse("team=blue"))
	in, _ := binpack.Compile(p)
	plan, _ := in.Pack(context.Background(), nil)
	for _, b := range plan.Bins {
		fmt.Println(in.Labels(b))
	}
	// Output:
	// team in (blue), zone in (a)
	// team in (red), zone in (a)
	// team in (red), zone in (a)
}

// One machine is reserved; the second costs its usual price.
func ExampleOffering() {
	p := sample()
	p.Types[0].Offerings = append(p.Types[0].Offerings, binpack.Offering{Provides: requirements.MustParse("zone=b"), Price: 0, Counted: true, Count: 1})
	plan, _ := binpack.Pack(context.Background(), p, nil)
	fmt.Println(plan.Cost)
	// Output: $1.00
}

func ExampleNode() {
	p := sample()
	p.Nodes[0].Free = []int64{6, 12}
	plan, _ := binpack.Pack(context.Background(), p, nil)
	fmt.Println(plan.Nodes[0], len(plan.Bins))
	// Output: [{0 6}] 1
}

func ExampleDollars() {
	fmt.Println(binpack.Dollars(0.17), 3*binpack.Dollars(0.0058), binpack.Dollars(-1) < 0)
	// Output: $0.17 $0.0174 true
}

func ExamplePrice() {
	fmt.Println(binpack.Price(96_000_000).Dollars(), 2*binpack.PerDollar)
	// Output: 0.096 $2.00
}

// largestFirst puts each item into the open bins that take it, then into bins of the largest type
// that takes it. A filling keeps the rules.
type largestFirst struct{}

func (largestFirst) Name() string { return "largest bins first" }

func (largestFirst) Pack(ctx context.Context, in *binpack.Instance) (binpack.Layout, error) {
	p, f := in.Problem(), in.NewFilling()
	var choices []binpack.Choice
	for t := range p.Types {
		for j := range p.Types[t].Offerings {
			choices = append(choices, binpack.Choice{Type: t, Offering: j})
		}
	}
	slices.SortStableFunc(choices, func(a, b binpack.Choice) int {
		return slices.Compare(p.Types[b.Type].Capacity, p.Types[a.Type].Capacity)
	})
	for item := range p.Items {
		for node := range p.Nodes {
			f.AddToNode(node, item, f.Missing(item))
		}
		for bin := range f.Bins() {
			f.Add(bin, item, f.Missing(item))
		}
		for _, c := range choices {
			for held := 1; held > 0 && f.Missing(item) > 0 && ctx.Err() == nil; {
				held, _ = f.Open(c, item, f.Missing(item)) // the choice exists
			}
		}
	}
	return f.Layout(), nil
}

func ExampleStrategy() {
	plan, err := binpack.Pack(context.Background(), sample(), &binpack.Options{Strategy: largestFirst{}})
	fmt.Println(plan.Strategy, plan.Cost, err)
	// Output: largest bins first $3.20 <nil>
}

// A filling can be copied, changed, and taken back.
func ExampleFilling() {
	in, _ := binpack.Compile(sample())
	f := in.NewFilling()
	held, _ := f.Open(binpack.Choice{}, 0, f.Missing(0))
	before := f.Copy()
	f.Remove(0)
	fmt.Println(held, f.Bins(), f.Missing(0), before.Bins(), before.Missing(0))
	fmt.Println(in.Check(f.Layout()), in.Check(before.Layout()))
	// Output:
	// 4 0 6 1 2
	// <nil> <nil>
}

func ExampleFirstFitDecreasing() {
	plan, _ := binpack.Pack(context.Background(), sample(), &binpack.Options{Strategy: binpack.FirstFitDecreasing{}})
	fmt.Println(plan.Strategy, plan.Cost)
	// Output: ffd $2.20
}

// CostAware finds what first fit misses: two items that fill a box together.
func ExampleCostAware() {
	p := binpack.Problem{
		Resources: []string{"cpu"},
		Items: []binpack.Item{
			{Name: "large", Count: 4, Size: []int64{5}},
			{Name: "medium", Count: 4, Size: []int64{4}},
			{Name: "small", Count: 8, Size: []int64{3}},
		},
		Types: []binpack.Type{
			{Name: "ten", Capacity: []int64{10}, Offerings: []binpack.Offering{{Price: binpack.Dollars(1)}}},
			{Name: "eight", Capacity: []int64{8}, Offerings: []binpack.Offering{{Price: binpack.Dollars(0.84)}}},
		},
	}
	for _, s := range []binpack.Strategy{binpack.FirstFitDecreasing{}, binpack.CostAware{}} {
		plan, err := binpack.Pack(context.Background(), p, &binpack.Options{Strategy: s})
		fmt.Println(s.Name(), len(plan.Bins), "bins for", plan.Cost, err)
	}
	// Output:
	// ffd 7 bins for $6.52 <nil>
	// cost 6 bins for $6.00 <nil>
}

// An effort is an amount of work, counted in steps, so it gives the same plan on any machine.
func ExampleEffort() {
	for _, e := range []binpack.Effort{binpack.EffortFast, binpack.EffortDefault, binpack.EffortBest} {
		plan, err := binpack.Pack(context.Background(), sample(), &binpack.Options{Effort: e})
		fmt.Println(e, plan.Cost, plan.Bound.Price, err)
	}
	// Output:
	// fast $2.20 $2.20 <nil>
	// default $2.20 $2.20 <nil>
	// best $2.20 $2.20 <nil>
}

func ExampleOptions() {
	plan, _ := binpack.Pack(context.Background(), sample(), &binpack.Options{Alternatives: 1})
	fmt.Println(plan.Alternatives)
	// Output: [[{0 1}] [{0 0}]]
}

func ExampleLayout() {
	in, _ := binpack.Compile(sample())
	err := in.Check(binpack.Layout{Bins: []binpack.Bin{{Type: 0, Offering: 0, Shares: []binpack.Share{{Item: 0, Count: 5}}}}})
	fmt.Println(err)
	// Output: binpack: bin 0: 5 of cpu are used, there are 4
}

// The certificate can be checked by hand. At these duals, no type has a capacity above its price.
// What is placed, less the free capacity of the node, has the dual value of the bound.
func ExampleBound() {
	in, _ := binpack.Compile(sample())
	plan, _ := in.Pack(context.Background(), nil)
	fmt.Println(plan.Bound.Kind, plan.Bound.Price, plan.Bound.Nodes > 0)
	fmt.Println(in.VerifyBound(plan))
	forged := *plan
	forged.Bound.Price = binpack.Dollars(2.21)
	fmt.Println(in.VerifyBound(&forged))
	// Output:
	// exhausted $2.20 true
	// <nil>
	// binpack: bound $2.21 is above the objective $2.20
}

func ExamplePlan() {
	plan, _ := binpack.Pack(context.Background(), sample(), nil)
	fmt.Printf("%.1f%% above the bound\n", plan.GapPercent())
	// Output: 0.0% above the bound
}

func ExampleBin() {
	in, _ := binpack.Compile(sample())
	b := binpack.Bin{Type: 0, Offering: 1, Shares: []binpack.Share{{Item: 1, Count: 1}, {Item: 0, Count: 2}}}
	fmt.Println(in.Problem().Types[b.Type].Name, in.Labels(b))
	// Output: medium zone in (b)
}

func ExampleShare() {
	plan, _ := binpack.Pack(context.Background(), sample(), nil)
	for _, s := range plan.Bins[0].Shares {
		fmt.Println(sample().Items[s.Item].Name, s.Count)
	}
	// Output:
	// db 1
	// web 2
}

func ExampleChoice() {
	in, _ := binpack.Compile(sample())
	plan, _ := in.Pack(context.Background(), nil)
	for _, c := range plan.Alternatives[1] {
		o := in.Problem().Types[c.Type].Offerings[c.Offering]
		fmt.Println(o.Provides, o.Price)
	}
	// Output:
	// zone in (a) $1.00
	// zone in (b) $1.20
}

// A certificate is checked in one pass. An exhausted bound is checked by searching again.
func ExampleBoundKind() {
	for _, k := range []binpack.BoundKind{binpack.AssignmentLP, binpack.Configuration, binpack.Exhausted} {
		fmt.Println(k, k.Certificate())
	}
	// Output:
	// assignment-lp true
	// configuration true
	// exhausted false
}

// A caller can watch a plan and stop it.
func ExampleProgress() {
	ctx, cancel := context.WithCancel(context.Background())
	plan, err := binpack.Pack(ctx, sample(), &binpack.Options{Progress: func(p binpack.Progress) {
		if p.Gap() < 0.2 {
			cancel() // close enough
		}
	}})
	fmt.Println(plan.Cost, plan.Stopped, err)
	// Output: $2.20 true <nil>
}

// Two offerings share a budget, regardless of their types and pools.
func ExampleProblem_budgets() {
	p := binpack.Problem{
		Resources: []string{"cpu"},
		Items:     []binpack.Item{{Name: "web", Count: 5, Size: []int64{1}}},
		Budgets:   []int64{2}, // spot nodes
		Types: []binpack.Type{{Name: "t", Capacity: []int64{1}, Offerings: []binpack.Offering{
			{Provides: requirements.MustParse("capacity=spot"), Price: binpack.Dollars(0.1), Usage: []int64{1}},
			{Provides: requirements.MustParse("capacity=on-demand"), Price: binpack.Dollars(0.3)},
		}}},
	}
	plan, err := binpack.Pack(context.Background(), p, nil)
	fmt.Println(len(plan.Bins), plan.Cost, err)
	// Output: 5 $1.10 <nil>
}
