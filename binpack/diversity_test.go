package binpack_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// spotMarket returns types with spot capacity in three zones at random discounts, and on demand at three times the price.
func spotMarket(rng *rand.Rand, types int) []binpack.Type {
	var out []binpack.Type
	for i := range types {
		size := int64(8 << (i % 4))
		t := binpack.Type{Name: fmt.Sprintf("t%d", i), Capacity: []int64{size, size * int64(2+i%3)}}
		for _, zone := range []string{"a", "b", "c"} {
			price := binpack.Price(size) * binpack.Price(900+rng.IntN(200))
			provides := requirements.MustOf(requirements.In("zone", zone))
			t.Offerings = append(t.Offerings,
				binpack.Offering{Provides: provides, Price: price, CapacityPool: t.Name + zone},
				binpack.Offering{Provides: provides, Price: 3 * price})
		}
		out = append(out, t)
	}
	return out
}

// At every effort no capacity pool holds more than its share of the plan or of a workload, and the bound includes the cost of
// that.
func TestDiversityHoldsAndTheBoundKnows(t *testing.T) {
	draws := uint64(rounds(t, 4, 40))
	for _, effort := range []binpack.Effort{binpack.EffortFast, binpack.EffortDefault} {
		ofPlan, ofWorkloads := 0.0, 0.0 // sums of gaps
		dearer := binpack.Price(0)      // by how much the bounds say so, in all
		for seed := range draws {
			rng := rand.New(rand.NewPCG(seed, 1))
			p := binpack.Problem{Resources: []string{"cpu", "memory"}, Types: spotMarket(rng, 12)}
			all := binpack.Diversity{Max: 30}
			for i := range 10 {
				cpu := int64(1 + rng.IntN(4))
				p.Items = append(p.Items, item(fmt.Sprintf("workload-%d", i), 30, cpu, cpu*int64(1+rng.IntN(4))))
				all.Items = append(all.Items, binpack.Share{Item: i, Count: 1})
			}
			free := packed(t, p, effort)
			p.Diversity = []binpack.Diversity{all}
			spread := packed(t, p, effort)
			ofPlan += spread.GapPercent()

			for i := range p.Items {
				p.Diversity = append(p.Diversity, binpack.Diversity{Items: []binpack.Share{{Item: i, Count: 1}}, Max: 6})
			}
			each := packed(t, p, effort)
			ofWorkloads += each.GapPercent()
			dearer += spread.Bound.Price + each.Bound.Price - 2*free.Bound.Price
			t.Logf("%s: without %d, a tenth of the plan %d (gap %.1f%%), and a fifth of each workload %d (gap %.1f%%)", effort, free.Objective, spread.Objective, spread.GapPercent(), each.Objective, each.GapPercent())
		}
		require.Positive(t, dearer, "ten capacity pools cost more than the cheapest, and the bounds say so")
		require.LessOrEqual(t, ofPlan/float64(draws), 5.0, "in the mean of %d draws", draws)
		require.LessOrEqual(t, ofWorkloads/float64(draws), 10.0, "in the mean of %d draws", draws)
	}
}

// packed returns a plan that places everything and passes the dumb judge.
func packed(t *testing.T, p binpack.Problem, effort binpack.Effort) *binpack.Plan {
	t.Helper()
	in, plan := costAware(t, p, effort)
	require.NoError(t, dumbCheck(in.Problem(), plan.Layout))
	for _, n := range plan.Unplaced {
		require.Zero(t, n)
	}
	return plan
}

// What a capacity pool holds already counts. Nodes count like bins. Bins without a capacity pool are not limited.
func TestDiversityCountsWhatIsThere(t *testing.T) {
	p := binpack.Problem{
		Resources: []string{"cpu"}, Items: []binpack.Item{item("web", 8, 1)},
		Types: []binpack.Type{{Name: "box", Capacity: []int64{8}, Offerings: []binpack.Offering{
			{Price: 1, CapacityPool: "spot"}, {Price: 3, CapacityPool: "other"}, {Price: 10},
		}}},
		Nodes:     []binpack.Node{{Name: "old", Free: []int64{8}, CapacityPool: "spot"}},
		Diversity: []binpack.Diversity{{Items: []binpack.Share{{Item: 0, Count: 1}}, Max: 4, Placed: map[string]int{"spot": 3}}},
	}
	for _, effort := range []binpack.Effort{binpack.EffortFast, binpack.EffortDefault, binpack.EffortBest} {
		plan := packed(t, p, effort)
		require.Equal(t, []binpack.Share{{Item: 0, Count: 1}}, plan.Nodes[0], "one more is allowed in spot")
		require.Equal(t, binpack.Price(10), plan.Objective, "seven in one bin that has no capacity pool")
		require.Len(t, plan.Alternatives[0], 1, "no capacity pool may take the seven")
	}
	p.Types[0].Offerings = p.Types[0].Offerings[:2]
	plan, err := binpack.Pack(t.Context(), p, nil)
	require.NoError(t, err)
	require.Equal(t, []int{3}, plan.Unplaced, "a rule, not a preference")
}

// At most two of four pods in one capacity pool.
func ExampleDiversity() {
	problem := binpack.Problem{
		Resources: []string{"cpu"},
		Items:     []binpack.Item{{Name: "web", Count: 4, Size: []int64{2}}},
		Types: []binpack.Type{{Name: "large", Capacity: []int64{8}, Offerings: []binpack.Offering{
			{Provides: requirements.MustParse("zone=a"), Price: binpack.Dollars(1), CapacityPool: "large in a"},
			{Provides: requirements.MustParse("zone=b"), Price: binpack.Dollars(1.1), CapacityPool: "large in b"},
		}}},
		Diversity: []binpack.Diversity{{Items: []binpack.Share{{Item: 0, Count: 1}}, Max: 2}},
	}
	plan, err := binpack.Pack(context.Background(), problem, nil)
	for _, b := range plan.Bins {
		fmt.Println(problem.Types[0].Offerings[b.Offering].CapacityPool, b.Shares[0].Count)
	}
	fmt.Println(plan.Cost, err)
	// Output:
	// large in b 2
	// large in a 2
	// $2.10 <nil>
}

// A savings plan commits 50 an hour. A node uses 40 of it and then costs nothing more; the next one costs its price.
func ExampleOffering_commitment() {
	plan, err := binpack.Pack(context.Background(), binpack.Problem{
		Resources: []string{"cpu"},
		Items:     []binpack.Item{{Name: "web", Count: 2, Size: []int64{4}}},
		Types: []binpack.Type{{Name: "large", Capacity: []int64{4}, Offerings: []binpack.Offering{
			{Price: 0, Counted: true, Count: 50, Takes: 40, Reservation: "savings plan"},
			{Price: binpack.Dollars(0.6)},
		}}},
	}, nil)
	fmt.Println(plan.Bins[0].Offering, plan.Bins[1].Offering, plan.Cost, plan.Bound.Price, err)
	// Output: 1 0 $0.60 $0.60 <nil>
}
