package binpack_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// shop draws a problem of usual proportions: item classes, types of growing size and price, two zones.
func shop(rng *rand.Rand, classes int) binpack.Problem {
	p := binpack.Problem{
		Resources: []string{"cpu", "memory"},
		Pools:     []binpack.Pool{{Name: "default"}, {Name: "heavy", Weight: 10, MaxNodes: new(2)}},
	}
	for size := range 5 {
		for k, ratio := range []int64{2, 4, 8} {
			cpu := int64(2000) << size
			t := binpack.Type{Name: fmt.Sprintf("family-%d.%d", k, size), Pool: rng.IntN(2), Capacity: []int64{cpu - 100, cpu * ratio * 1024}}
			for z, zone := range []string{"z1", "z2"} {
				price := binpack.Price(cpu*(40+6*ratio)*1000) + binpack.Price(10_000*z)
				t.Offerings = append(t.Offerings, binpack.Offering{Provides: requirements.MustParse("zone=" + zone), Price: price})
			}
			p.Types = append(p.Types, t)
		}
	}
	for i := range classes {
		it := binpack.Item{
			Name: fmt.Sprintf("class-%04d", i), Count: 1 + rng.IntN(40),
			Size: []int64{int64(1+rng.IntN(40)) * 50, int64(1+rng.IntN(64)) * 131072}, Requires: anywhere(),
		}
		switch rng.IntN(6) {
		case 0:
			it.Requires = requirements.AnyOf(requirements.MustParse("zone=z1"))
		case 1:
			it.Tags, it.Limits = []string{it.Name}, []binpack.Limit{{Tag: it.Name, Max: 1}}
		}
		p.Items = append(p.Items, it)
	}
	for i := range rng.IntN(4) {
		p.Nodes = append(p.Nodes, binpack.Node{
			Name: fmt.Sprintf("node-%d", i), Free: []int64{int64(rng.IntN(4000)), int64(rng.IntN(1 << 24))}, Provides: requirements.MustParse("zone=z1"),
		})
	}
	return p
}

// named returns a plan with names instead of indexes, so plans of permuted problems compare.
func named(t *testing.T, p binpack.Problem) (string, *binpack.Plan) {
	t.Helper()
	in, plan := lawful(t, p)
	q := in.Problem()
	contents := func(shares []binpack.Share) string {
		out := ""
		for _, s := range shares {
			out += fmt.Sprintf(" %s*%d", q.Items[s.Item].Name, s.Count)
		}
		return out
	}
	nodes := map[string]string{}
	for n, shares := range plan.Nodes {
		nodes[q.Nodes[n].Name] = contents(shares)
	}
	var bins []string
	for i, b := range plan.Bins {
		bins = append(bins, fmt.Sprintf("%s %s %v:%s", q.Types[b.Type].Name, q.Types[b.Type].Offerings[b.Offering].Provides, len(plan.Alternatives[i]), contents(b.Shares)))
	}
	return fmt.Sprintf("%v\n%v\n%d %d %s", nodes, bins, plan.Cost, plan.Bound.Price, plan.Strategy), plan
}

func shuffled[T any](rng *rand.Rand, in []T) []T {
	out := slices.Clone(in)
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func TestPlansDoNotDependOnTheOrderOfTheInput(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for round := range rounds(t, 20, 300) {
		p := shop(rng, 12)
		if round%2 == 0 { // only names differ
			for i := range p.Items {
				p.Items[i].Size = []int64{700, 1 << 20}
			}
		}
		want, _ := named(t, p)
		q := p
		q.Items, q.Types = shuffled(rng, p.Items), shuffled(rng, p.Types)
		got, _ := named(t, q)
		require.Equal(t, want, got, "items and types in another order")

		// Nodes are filled in order, so a shuffle may move items. Cost and bound of a problem without new bins do not change,
		// nor does the bound if the same items are placed.
		q.Nodes = shuffled(rng, p.Nodes)
		_, before := named(t, p)
		_, after := named(t, q)
		if slices.Max(before.Unplaced) == 0 && slices.Max(after.Unplaced) == 0 {
			require.Equal(t, before.Bound.Price, after.Bound.Price, "nodes in another order")
		}
	}
}

func TestPlansDoNotDependOnNames(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for range rounds(t, 20, 300) {
		p := shop(rng, 12)
		q := p
		q.Items, q.Types, q.Resources = slices.Clone(p.Items), slices.Clone(p.Types), []string{"kerne", "speicher"}
		for i := range q.Items { // a prefix keeps the order of names, which breaks ties
			it := &q.Items[i]
			it.Name = "renamed-" + it.Name
			if len(it.Tags) > 0 {
				it.Tags, it.Limits = []string{"tag of " + it.Name}, []binpack.Limit{{Tag: "tag of " + it.Name, Max: 1}}
			}
			if !it.Requires.Equal(anywhere()) {
				it.Requires = requirements.AnyOf(requirements.MustParse("area=y1"))
			}
		}
		for i := range q.Types {
			ty := &q.Types[i]
			ty.Name, ty.Offerings = "other "+ty.Name, slices.Clone(ty.Offerings)
			ty.Offerings[0].Provides, ty.Offerings[1].Provides = requirements.MustParse("area=y1"), requirements.MustParse("area=y2")
		}
		q.Nodes = slices.Clone(p.Nodes)
		for i := range q.Nodes {
			q.Nodes[i].Provides = requirements.MustParse("area=y1")
		}
		_, before := named(t, p)
		_, after := named(t, q)
		require.Equal(t, before.Layout, after.Layout)
		require.Equal(t, before.Alternatives, after.Alternatives)
		require.Equal(t, before.Bound, after.Bound)
	}
}

func TestPlansScaleWithTheirUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	for range rounds(t, 20, 300) {
		p := shop(rng, 12)
		_, before := named(t, p)

		sizes := p // cores in thousandths instead of whole, bytes instead of kibibytes
		scale := []int64{1000, 1024}
		sizes.Items, sizes.Types, sizes.Nodes = slices.Clone(p.Items), slices.Clone(p.Types), slices.Clone(p.Nodes)
		times := func(v []int64) []int64 { return []int64{v[0] * scale[0], v[1] * scale[1]} }
		for i := range sizes.Items {
			sizes.Items[i].Size = times(sizes.Items[i].Size)
		}
		for i := range sizes.Types {
			sizes.Types[i].Capacity = times(sizes.Types[i].Capacity)
		}
		for i := range sizes.Nodes {
			sizes.Nodes[i].Free = times(sizes.Nodes[i].Free)
		}
		_, after := named(t, sizes)
		require.Equal(t, before.Layout, after.Layout)
		require.Equal(t, before.Cost, after.Cost)
		require.InDelta(t, float64(before.Bound.Price), float64(after.Bound.Price), 1e-6*float64(before.Cost)+1, "a unit proves nothing")

		prices := p
		prices.Types = slices.Clone(p.Types)
		for i := range prices.Types {
			prices.Types[i].Offerings = slices.Clone(p.Types[i].Offerings)
			for j := range prices.Types[i].Offerings {
				prices.Types[i].Offerings[j].Price *= 7
			}
		}
		_, after = named(t, prices)
		require.Equal(t, before.Layout, after.Layout, "the cheapest stays the cheapest")
		require.Equal(t, 7*before.Cost, after.Cost)
		require.LessOrEqual(t, after.Bound.Price, 7*before.Cost)
		require.LessOrEqual(t, before.Bound.Price, after.Cost/7)
		// Duals are rounded to whole prices, which changes where the search for fillings of a check is cut short.
		require.InEpsilon(t, 7*float64(before.Bound.Price), float64(after.Bound.Price), 0.01)
	}
}

func TestAnEqualSecondOfferingChangesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	for range rounds(t, 20, 300) {
		p := shop(rng, 12)
		_, before := named(t, p)
		q := p
		q.Types = slices.Clone(p.Types)
		k := rng.IntN(len(q.Types))
		q.Types[k].Offerings = append(slices.Clone(q.Types[k].Offerings), q.Types[k].Offerings[rng.IntN(2)])
		_, after := named(t, q)
		require.Equal(t, before.Layout, after.Layout)
		require.Equal(t, before.Bound, after.Bound)

		q.Types = append(slices.Clone(p.Types), p.Types[k])
		_, after = named(t, q)
		require.Equal(t, before.Cost, after.Cost, "a second type of the same kind")
		require.Equal(t, before.Bound.Price, after.Bound.Price)
	}
}

// How much of an item remains influences the choice of the next type, so two halves cost the same only if there is one type.
// The provable bound is always the same.
func TestAClassInTwoHalves(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for round := range rounds(t, 40, 600) {
		p := shop(rng, 12)
		p.Pools[1].MaxNodes = nil // a budget that runs out within an item could hit either half
		if round%2 == 0 {
			p.Types = p.Types[8:9]
		}
		_, before := named(t, p)
		q := p
		q.Items = slices.Clone(p.Items)
		k := rng.IntN(len(q.Items))
		if q.Items[k].Count < 2 {
			continue
		}
		half := q.Items[k]
		half.Count = q.Items[k].Count / 2
		q.Items[k].Count -= half.Count
		half.Name += "b" // next to the other half by name; tags stay those of the whole
		q.Items = append(q.Items, half)
		_, after := named(t, q)
		require.Equal(t, before.Bound.Price, after.Bound.Price)
		if round%2 == 0 {
			require.Equal(t, before.Cost, after.Cost)
			require.Len(t, after.Bins, len(before.Bins))
		}
	}
}

// The optimum never falls with more to pack. The proved bound may, but only if a search for patterns was cut short.
func TestMoreToPackNeverLowersTheBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for range rounds(t, 20, 300) {
		p := shop(rng, 12)
		p.Nodes, p.Pools[1].MaxNodes = nil, nil
		_, before := named(t, p)
		q := p
		q.Items = slices.Clone(p.Items)
		q.Items[rng.IntN(len(q.Items))].Count += 5
		_, after := named(t, q)
		require.GreaterOrEqual(t, after.Cost, before.Bound.Price)
		require.GreaterOrEqual(t, float64(after.Bound.Price), 0.95*float64(before.Bound.Price))
	}
}

func TestSameBytesOnAnyNumberOfCores(t *testing.T) {
	rng := rand.New(rand.NewPCG(25, 26))
	problems, runs := []binpack.Problem{shop(rng, 40), shop(rng, 80), small(randomBytes(rng, 200))}, 10
	if testing.Short() {
		problems, runs = problems[:1], 1
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for i, p := range problems {
		want := ""
		for _, cores := range []int{1, 2} {
			runtime.GOMAXPROCS(cores)
			for range runs {
				text, plan := named(t, p)
				text += fmt.Sprintf("%+v", *plan)
				want = cmp.Or(want, text)
				require.Equal(t, want, text, "problem %d on %d cores", i, cores)
			}
		}
	}
}

// Pack does not change the problem, and an instance serves several callers at once.
func TestArgumentsAndInstancesStayAsTheyAre(t *testing.T) {
	seed := func() binpack.Problem { return shop(rand.New(rand.NewPCG(27, 28)), 12) }
	p := seed()
	in, err := binpack.Compile(p)
	require.NoError(t, err)
	want, err := in.Pack(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, seed(), p)

	done := make(chan *binpack.Plan)
	for range 4 {
		go func() {
			plan, err := in.Pack(t.Context(), nil)
			assert.NoError(t, err)
			assert.NoError(t, in.Check(plan.Layout))
			done <- plan
		}()
	}
	for range 4 {
		require.Equal(t, want, <-done)
	}
}
