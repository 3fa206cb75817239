package binpack_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// costAware packs by price and checks the plan against all laws and against first fit decreasing.
func costAware(t *testing.T, p binpack.Problem, effort binpack.Effort) (*binpack.Instance, *binpack.Plan) {
	t.Helper()
	in, plan := lawfulBy(t, p, &binpack.Options{Effort: effort})
	require.Equal(t, "cost", plan.Strategy)
	base, err := in.Pack(t.Context(), &binpack.Options{Strategy: binpack.FirstFitDecreasing{}, Draft: true})
	require.NoError(t, err)
	noWorse(t, p, plan, base)
	return in, plan
}

// noWorse requires that the plan is no worse than the other one.
func noWorse(t *testing.T, p binpack.Problem, plan, base *binpack.Plan) {
	t.Helper()
	// At the highest priority of which the plans do not place as many copies, this one places more, whatever that costs at lower priorities.
	fewer := 0
	byPriority := slices.Clone(p.Items)
	slices.SortFunc(byPriority, func(a, b binpack.Item) int { return cmp.Compare(b.Priority, a.Priority) })
	at := map[string]int{}
	for i, it := range p.Items {
		at[it.Name] = i
	}
	for k, it := range byPriority {
		fewer += plan.Unplaced[at[it.Name]] - base.Unplaced[at[it.Name]]
		if k+1 == len(byPriority) || byPriority[k+1].Priority != it.Priority {
			require.LessOrEqual(t, fewer, 0, "never fewer placed of priority %d, with as many of each higher one", it.Priority)
			if fewer < 0 {
				break
			}
		}
	}
	if fewer == 0 {
		require.LessOrEqual(t, plan.Objective, base.Objective, "never dearer")
	}
}

// Who wants no bound does not pay for one, and gets no worse plan. More effort makes none worse either.
func TestADraftIsNoWorse(t *testing.T) {
	rng := rand.New(rand.NewPCG(45, 46))
	for k := range rounds(t, 60, 300) {
		p := [](func() binpack.Problem){
			func() binpack.Problem { return small(randomBytes(rng, 160)) },
			func() binpack.Problem { return shop(rng, 12) },
			func() binpack.Problem {
				return one([]string{"cpu", "memory"}, market(), randomItems(rng, 1+rng.IntN(150))...)
			},
		}[k%3]()
		in, plan := costAware(t, p, binpack.EffortFast)
		draft, err := in.Pack(t.Context(), &binpack.Options{Effort: binpack.EffortFast, Draft: true})
		require.NoError(t, err)
		noWorse(t, p, draft, plan)
		if k < 90 { // more effort takes twenty times as long
			more, err := in.Pack(t.Context(), &binpack.Options{Effort: binpack.EffortDefault})
			require.NoError(t, err)
			noWorse(t, p, more, draft)
		}
	}
}

func TestCostAwareAgainstTheDumbJudge(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for range rounds(t, 1_000, 40_000) {
		p := small(randomBytes(rng, 160))
		in, plan := costAware(t, p, binpack.EffortFast)
		require.NoError(t, dumbCheck(in.Problem(), plan.Layout), "the plan %+v of %+v", plan.Layout, p)
	}
}

func TestCostAwareBoundOptimumAndCostStandInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 34))
	searched, optimal, kinds := 0, 0, map[binpack.BoundKind]int{}
	for range rounds(t, 500, 20_000) {
		p := small(randomBytes(rng, 160))
		in, plan := costAware(t, p, binpack.EffortFast)
		best, ok := optimum(in.Problem(), plan.Layout)
		if !ok || len(plan.Bins) == 0 {
			continue
		}
		require.LessOrEqual(t, plan.Bound.Price, best, "the bound %+v of %+v", plan.Bound, p)
		require.LessOrEqual(t, best, plan.Objective, "the cost of %+v", p)
		searched++
		kinds[plan.Bound.Kind]++
		if best == plan.Objective {
			optimal++
		}
	}
	require.Greater(t, searched, 80)
	t.Logf("%d searched: optimal in %d, bounds %v", searched, optimal, kinds)
}

// plain removes what a relaxation ignores: only sizes, fixed labels and prices remain.
func plain(p binpack.Problem) binpack.Problem {
	p.Nodes, p.Diversity, p.Budgets = nil, nil, nil
	p.Pools, p.Types, p.Items = slices.Clone(p.Pools), slices.Clone(p.Types), slices.Clone(p.Items)
	for i := range p.Pools {
		p.Pools[i] = binpack.Pool{Name: p.Pools[i].Name}
	}
	for i := range p.Types {
		t := &p.Types[i]
		t.Tags, t.Limits, t.Usage, t.Offerings = nil, nil, nil, slices.Clone(t.Offerings)
		t.Provides = requirements.MustOf(requirements.In("type", t.Name), requirements.In("team", "a"))
		for j := range t.Offerings {
			o := &t.Offerings[j]
			o.Counted, o.Count, o.Takes, o.Reservation, o.Usage = false, 0, 0, "", nil
			o.Provides = requirements.MustOf(o.Provides.Get("zone"))
		}
	}
	for i := range p.Items {
		p.Items[i].Tags, p.Items[i].Limits = nil, nil
	}
	return p
}

// Where only sizes, labels and prices matter, tiny problems are solved to the optimum of brute force, and proved.
func TestCostAwareEqualsBruteForceOnTinyProblems(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 44))
	searched := 0
	for range rounds(t, 1_000, 40_000) {
		p := plain(small(randomBytes(rng, 160)))
		in, plan := costAware(t, p, "")
		best, ok := optimum(in.Problem(), plan.Layout)
		if !ok || len(plan.Bins) == 0 {
			continue
		}
		searched++
		require.Equal(t, best, plan.Objective, "%+v", p)
	}
	require.Greater(t, searched, 200)
}

func TestCostAwareSameBytesOnAnyNumberOfCores(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 36))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for range 3 {
		p := shop(rng, 30)
		var want *binpack.Plan
		for _, cores := range []int{1, 2} {
			runtime.GOMAXPROCS(cores)
			_, plan := costAware(t, p, binpack.EffortFast)
			if want == nil {
				want = plan
			}
			require.Equal(t, want, plan)
		}
	}
}

func TestCostAwareDoesNotDependOnTheOrderOfTheInput(t *testing.T) {
	rng := rand.New(rand.NewPCG(37, 38))
	for range rounds(t, 6, 100) {
		p := shop(rng, 12)
		_, before := costAware(t, p, binpack.EffortFast)
		q := p
		q.Items, q.Types = shuffled(rng, p.Items), shuffled(rng, p.Types)
		_, after := costAware(t, q, binpack.EffortFast)
		require.Equal(t, before.Cost, after.Cost)
		require.Equal(t, before.Bound.Price, after.Bound.Price)
		require.Len(t, after.Bins, len(before.Bins))
	}
}

func TestCostAwareLeavesItsArgumentAlone(t *testing.T) {
	seed := func() binpack.Problem { return shop(rand.New(rand.NewPCG(39, 40)), 20) }
	p := seed()
	costAware(t, p, binpack.EffortFast)
	require.Equal(t, seed(), p)
}

func FuzzCostAware(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("cheapest plan, with proof"))
	rng := rand.New(rand.NewPCG(41, 42))
	for range 5 {
		f.Add(randomBytes(rng, 160))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 400 {
			return
		}
		in, plan := costAware(t, plain(small(data)), "")
		if best, ok := optimum(in.Problem(), plan.Layout); ok {
			require.Equal(t, best, plan.Objective, "brute force")
		}
		in, plan = costAware(t, small(data), binpack.EffortFast)
		require.NoError(t, dumbCheck(in.Problem(), plan.Layout))
		if best, ok := optimum(in.Problem(), plan.Layout); ok {
			require.LessOrEqual(t, plan.Bound.Price, best)
			require.LessOrEqual(t, best, plan.Objective)
		}
	})
}

// Every bound is at most the proven optimum, and at least 77 of the 80 instances are solved to it.
func TestCostAwareOnOrlib(t *testing.T) {
	instances := readOrlib(t)
	require.Len(t, instances, 80)
	if testing.Short() {
		instances = instances[:4]
	}
	solved := 0
	for _, o := range instances {
		_, plan := costAware(t, o.problem(), "")
		for _, left := range plan.Unplaced {
			require.Zero(t, left, o.name)
		}
		require.GreaterOrEqual(t, len(plan.Bins), o.optimum, o.name)
		require.LessOrEqual(t, plan.Bound.Price, binpack.Price(o.optimum)*binpack.PerDollar, o.name)
		if len(plan.Bins) == o.optimum {
			solved++
		} else {
			t.Logf("%s: %d bins, optimum %d", o.name, len(plan.Bins), o.optimum)
		}
	}
	t.Logf("%d of %d solved to the optimum", solved, len(instances))
	require.GreaterOrEqual(t, solved, len(instances)*77/80)
}

// A plan for dozens of items uses reservations too.
func TestDozensOfItemsAndReservations(t *testing.T) {
	p := binpack.Problem{
		Resources: []string{"cpu", "memory"}, Pools: []binpack.Pool{unbounded("p", 0)},
		Types: []binpack.Type{
			{Name: "cpu", Capacity: []int64{90, 60}, Offerings: []binpack.Offering{{Price: 50}, {Price: 5, Counted: true, Count: 3}}},
			{Name: "memory", Capacity: []int64{50, 120}, Offerings: []binpack.Offering{{Price: 48}, {Price: 5, Counted: true, Count: 2}}},
			{Name: "small", Capacity: []int64{30, 30}, Offerings: []binpack.Offering{{Price: 21}}},
		},
	}
	for i := range int64(40) { // most bins hold few of either item well
		p.Items = append(p.Items,
			binpack.Item{Name: fmt.Sprint("c", i), Count: 1, Size: []int64{11 + i%23, 3 + i%7}, Requires: requirements.AnyOf(requirements.Set{})},
			binpack.Item{Name: fmt.Sprint("m", i), Count: 1, Size: []int64{4 + i%5, 13 + i%29}, Requires: requirements.AnyOf(requirements.Set{})})
	}
	in, plan := costAware(t, p, "")
	taken := map[string]int{}
	for _, b := range plan.Bins {
		if in.Problem().Types[b.Type].Offerings[b.Offering].Counted {
			taken[in.Problem().Types[b.Type].Name]++
		}
	}
	require.Equal(t, map[string]int{"cpu": 3, "memory": 2}, taken)
	first, err := in.Pack(t.Context(), &binpack.Options{Strategy: binpack.FirstFitDecreasing{}})
	require.NoError(t, err)
	require.Less(t, plan.Objective, first.Objective)
	t.Logf("%d, first fit %d, bound %d (%s)", plan.Objective, first.Objective, plan.Bound.Price, plan.Bound.Kind)
}

// An item that fits no bin does not change the plan of the others.
func TestAnItemThatFitsNowhereDoesNotChangeThePlan(t *testing.T) {
	p := binpack.Problem{
		Resources: []string{"cpu"}, Pools: []binpack.Pool{unbounded("p", 0)},
		Types: []binpack.Type{
			{Name: "seven", Capacity: []int64{7}, Offerings: []binpack.Offering{{Price: 10}}},
			{Name: "three", Capacity: []int64{3}, Offerings: []binpack.Offering{{Price: 6}}},
		},
		Items: []binpack.Item{
			{Name: "ones", Count: 4, Size: []int64{1}, Requires: requirements.AnyOf(requirements.Set{})},
			{Name: "fives", Count: 3, Size: []int64{5}, Requires: requirements.AnyOf(requirements.MustParse("zone in (nowhere)"))},
		},
	}
	_, plan := costAware(t, p, "")
	require.Equal(t, []int{0, 3}, plan.Unplaced)
	require.Equal(t, binpack.Price(10), plan.Objective, "one of seven for the four, not two of three")
	require.Equal(t, binpack.Price(10), plan.Bound.Price)
}
