package binpack_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
)

// A search whose depth is the number of bins times that of classes does not use up the stack.
func TestVerifyBoundOfAClaimWithADeepSearch(t *testing.T) {
	if testing.Short() {
		t.Skip("searches for seconds")
	}
	const pairs = 2048
	p := one([]string{"cpu"}, []binpack.Type{typ("x", 10, 1_000_000)})
	var l binpack.Layout
	for i := range pairs {
		p.Items = append(p.Items, item(fmt.Sprintf("i%04d", i), 2, int64(600_000+i)))
		l.Bins = append(l.Bins, slices.Repeat([]binpack.Bin{{Shares: []binpack.Share{{Item: i, Count: 1}}}}, 2)...)
	}
	in, err := binpack.Compile(p)
	require.NoError(t, err)
	plan := &binpack.Plan{Layout: l, Objective: 10 * 2 * pairs}
	plan.Bound = binpack.Bound{Price: plan.Objective, Kind: binpack.Exhausted, ItemDuals: make([]binpack.Price, pairs), Nodes: 20_000_000}
	require.Error(t, in.VerifyBound(plan))
}

// claim draws a claim about a plan of the problem: a layout that may be illegal, and a bound that may be too high.
func claim(d *draw, p *binpack.Problem, plan *binpack.Plan) *binpack.Plan {
	numbers := []int64{0, 1, 2, 5, 10, 1 << 31, 1 << 52, 1<<52 + 1, math.MaxInt64, -1, math.MinInt64}
	number := func() int64 { return numbers[d.below(len(numbers))] }
	out := *plan
	out.Bins, out.Nodes = slices.Clone(plan.Bins), slices.Clone(plan.Nodes)
	switch d.below(8) {
	case 0:
		out.Bins = append(out.Bins, binpack.Bin{Type: int(number()), Offering: int(number()), Shares: []binpack.Share{{Item: int(number()), Count: int(number())}}})
	case 1:
		out.Nodes = append(out.Nodes, []binpack.Share{{Item: int(number()), Count: int(number())}})
	case 2:
		out.Objective = binpack.Price(number())
	}
	out.Bound.Kind = binpack.BoundKind(d.one(string(binpack.AssignmentLP), string(binpack.Configuration), string(binpack.Exhausted), string(out.Bound.Kind), "none"))
	out.Bound.Price, out.Bound.Nodes = out.Objective+binpack.Price(d.below(3)-1), d.below(100)
	if d.below(4) == 0 {
		out.Bound.Price = binpack.Price(number())
	}
	if d.below(2) == 0 {
		out.Bound.ItemDuals = nil
		for range len(p.Items) + d.below(8)/7 {
			out.Bound.ItemDuals = append(out.Bound.ItemDuals, binpack.Price(number()))
		}
	}
	return &out
}

// VerifyBound survives every claim, and confirms none that is above the optimum.
func FuzzVerifyBound(f *testing.F) {
	f.Add([]byte{}, []byte{})
	f.Add([]byte("joinery packs bins"), []byte{3, 2, 2, 1, 0, 1})
	f.Add(slices.Repeat([]byte{1}, 160), []byte{7, 0, 2, 5, 3, 0, 8, 8})
	f.Add(slices.Repeat([]byte{3, 1, 2}, 60), []byte{0, 9, 9, 9, 9})
	f.Fuzz(func(t *testing.T, problem, about []byte) {
		if len(problem) > 400 || len(about) > 100 {
			return
		}
		in, plan := lawful(t, small(problem))
		claimed := claim(&draw{about}, in.Problem(), plan)
		if in.VerifyBound(claimed) != nil {
			return
		}
		if best, ok := optimum(in.Problem(), claimed.Layout); ok {
			require.LessOrEqual(t, claimed.Bound.Price, best)
		}
	})
}

// The checker confirms every plan, whatever the prices are: up to the largest, with and without a
// large common divisor, alone and in sums that saturate.
func TestVerifyBoundAtAllPrices(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	claimed, kinds := 0, map[binpack.BoundKind]int{}
	for round := range 4000 {
		exponent := 20 + rnd.IntN(44)
		price := func() int64 {
			switch rnd.IntN(6) {
			case 0:
				return math.MaxInt64 >> (63 - exponent)
			case 1:
				return int64(1) << max(0, exponent-1)
			}
			v := rnd.Int64() >> (63 - exponent)
			return max(1, v>>rnd.IntN(3))
		}
		grain := int64(1)
		if rnd.IntN(2) == 0 { // prices have a common divisor
			grain = max(1, rnd.Int64()>>(63-rnd.IntN(exponent)))
		}
		p := one([]string{"cpu"}, nil)
		for k := range 1 + rnd.IntN(3) {
			p.Types = append(p.Types, typ(fmt.Sprintf("t%d", k), binpack.Price(max(price()/grain, 1)*grain), int64(4+rnd.IntN(8))))
		}
		for i := range 1 + rnd.IntN(3) {
			p.Items = append(p.Items, item(fmt.Sprintf("i%d", i), 1+rnd.IntN(5), int64(1+rnd.IntN(6))))
		}
		in, err := binpack.Compile(p)
		require.NoError(t, err)
		plan, err := binpack.Pack(t.Context(), p, nil)
		require.NoError(t, err)
		require.NoError(t, in.VerifyBound(plan), "round %d: %v claims %v by %s", round, p.Types, plan.Bound.Price, plan.Bound.Kind)
		if plan.Bound.Price > 0 && exponent > 40 {
			claimed++
			kinds[plan.Bound.Kind]++
		}
	}
	require.Greater(t, claimed, 500)
	require.Len(t, kinds, 3)
}
