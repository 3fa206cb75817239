package relax

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// labelled draws a model in which each bin type is open to some groups of classes only.
func labelled(rng *rand.Rand) *Model {
	m := &Model{Dims: 1 + rng.IntN(3)}
	for range 1 + rng.IntN(12) {
		k := BinType{Price: float64(rng.IntN(1000)), Supply: -1}
		for range m.Dims {
			k.Capacity = append(k.Capacity, int64(rng.IntN(50)))
		}
		m.BinTypes = append(m.BinTypes, k)
	}
	sets := make([]uint64, 1+rng.IntN(5))
	for g := range sets {
		sets[g] = rng.Uint64() & (1<<len(m.BinTypes) - 1)
	}
	for range 1 + rng.IntN(10) {
		c := Class{Count: int64(1 + rng.IntN(30)), Most: math.MaxInt32, BinTypes: []uint64{sets[rng.IntN(len(sets))]}}
		for range m.Dims {
			c.Size = append(c.Size, int64(rng.IntN(20)))
		}
		if m.Classes = append(m.Classes, c); m.cheapest(&c, true) < 0 { // no bin type holds it
			m.Classes[len(m.Classes)-1].Count = 0
		}
	}
	return m
}

func coverage(m *Model) []float64 {
	duals, _ := m.CertifyCoverage(&Budget{Left: math.MaxInt})
	return duals
}

// No bin type has a capacity with a dual value above its price in its group, so no filling has one.
func TestNoCapacityAboveItsPrice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	apart := 0
	for range 5000 {
		m := labelled(rng)
		s := m.typeGroups()
		prices, duals := s.refine(&Budget{Left: math.MaxInt})
		for k := range m.BinTypes {
			if s.of[k] < 0 {
				continue
			}
			room := 0.0
			for r, c := range s.available(&m.BinTypes[k]) {
				room += c * prices[s.of[k]][r]
			}
			require.LessOrEqual(t, room, m.BinTypes[k].Price*(1+1e-9))
		}
		for i, v := range duals {
			for k := range m.BinTypes {
				if m.Classes[i].May(k) && Copies(m.BinTypes[k].Capacity, m.Classes[i].Size, 1) > 0 {
					profit := 0.0
					for r, size := range m.Classes[i].Size {
						profit += float64(size) / s.largest[r] * prices[s.of[k]][r]
					}
					require.LessOrEqual(t, v, profit*(1+1e-12))
				}
			}
		}
		one := *m // if all bin types are open to all, there is one group
		one.Classes = nil
		for _, c := range m.Classes {
			c.BinTypes = []uint64{1<<len(m.BinTypes) - 1}
			one.Classes = append(one.Classes, c)
		}
		total := func(m *Model, duals []float64) (sum float64) {
			for i, v := range duals {
				sum += v * float64(m.Classes[i].Count)
			}
			return sum
		}
		more, less := total(m, coverage(m)), total(&one, coverage(&one))
		require.GreaterOrEqual(t, more, less*(1-1e-6), "fewer ways to buy cannot make it cheaper")
		if more > less*1.01 {
			apart++
		}
	}
	require.Greater(t, apart, 1000, "labels make a difference")
}

// Prices with a demand group for each class are optimal. Splitting only groups whose classes are cheapest in different places
// finds prices that are as good.
func TestRefinedPricesAreOptimal(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	better := 0
	for range 1000 {
		m := labelled(rng)
		plenty := &Budget{Left: math.MaxInt}
		few, each := m.typeGroups(), m.typeGroups()
		few.most, each.most = math.MaxInt, math.MaxInt
		coarse, _ := few.duals(few.prices(m.Classes, plenty))
		_, refined := few.refine(plenty)
		into := each.into
		each.into = nil
		for i, g := range each.group {
			each.group[i], each.into = i, append(each.into, into[g])
		}
		most, _ := each.duals(each.prices(m.Classes, plenty))
		require.InEpsilon(t, 1+dualValue(most, m.Classes), 1+dualValue(refined, m.Classes), 1e-6)
		if dualValue(coarse, m.Classes) < dualValue(most, m.Classes)*(1-1e-6) {
			better++
		}
	}
	require.Greater(t, better, 100, "one step is not enough")
}

// Two groups with bins of their own, and dear bins open to both, worked out by hand.
func TestDualsByTypeGroup(t *testing.T) {
	m := &Model{
		Dims: 1,
		BinTypes: []BinType{
			{Capacity: []int64{10}, Price: 100e6, Supply: -1}, // for both
			{Capacity: []int64{10}, Price: 80e6, Supply: -1},  // for the second
			{Capacity: []int64{5}, Price: 60e6, Supply: -1},   // for the first, dear
		},
		Classes: []Class{
			{Size: []int64{1}, Count: 10, Most: 10, BinTypes: []uint64{0b101}},
			{Size: []int64{1}, Count: 10, Most: 10, BinTypes: []uint64{0b011}},
		},
	}
	require.InDeltaSlice(t, []float64{10e6, 8e6}, coverage(m), 1)
	_, proof := m.CertifyCoverage(&Budget{Left: math.MaxInt})
	require.InDelta(t, 180e6, float64(proof.Price), 30)

	b := Budget{Left: 1 << 20}
	m.typeGroups().prices(m.Classes, &b)
	require.Less(t, b.Left, 1<<20, "prices are work, too")
}

// Items of size 1, bins that hold four, and pools that hold a number of them. The cheapest pools are filled first, then bins
// without a pool. The lifted proof comes close to that cost and does not exceed it.
func TestLiftedProofIsBelowTheOptimum(t *testing.T) {
	rng := rand.New(rand.NewPCG(91, 92))
	for range 300 {
		m := &Model{Dims: 1}
		bins, each := int64(1+rng.IntN(12)), int64(1+rng.IntN(3))
		var prices []int64
		for pool := range 1 + rng.IntN(5) {
			price := 1000 * int64(100+rng.IntN(100))
			prices = append(prices, slices.Repeat([]int64{price}, int(each))...)
			m.BinTypes = append(m.BinTypes, BinType{Capacity: []int64{4}, Price: float64(price), Supply: -1, Pool: int32(pool + 1)})
		}
		m.BinTypes = append(m.BinTypes, BinType{Capacity: []int64{4}, Price: 400_000, Supply: -1})
		prices = append(prices, slices.Repeat([]int64{400_000}, int(bins))...)
		m.Classes = []Class{{Size: []int64{1}, Count: 4 * bins, Most: 1 << 30, BinTypes: []uint64{1<<len(m.BinTypes) - 1}}}
		m.Diversity = []Diversity{{Counts: []int64{1}, Left: slices.Repeat([]int64{4 * each}, len(m.BinTypes))}}
		slices.Sort(prices)
		optimum := int64(0)
		for _, p := range prices[:bins] {
			optimum += p
		}
		b := &Budget{Left: 1 << 40}
		duals, proof := m.CertifyCoverage(b)
		lifted := m.lift(duals, proof, b)
		require.LessOrEqual(t, lifted.Price, optimum, "%+v", m)
		require.GreaterOrEqual(t, float64(lifted.Price), 0.999*float64(optimum), "%+v", m)
		again, err := m.Verify(lifted.Duals, lifted.Searched, new(Watch))
		require.NoError(t, err)
		require.GreaterOrEqual(t, again, lifted.Price)
		require.LessOrEqual(t, again, optimum, "%+v", m)
	}
}

// Captives whose set overlaps others replace them only if they have more slack than these together, and more than the loss.
func TestDisjointCaptivesHaveTheMostSlack(t *testing.T) {
	var apart []captives
	add := func(set uint64, slack, loss float64) (added bool) {
		apart, added = addApart(apart, captives{set: []uint64{set}, slack: slack}, loss)
		return added
	}
	require.True(t, add(1, 5, 0))
	require.True(t, add(2, 4, 0))
	require.False(t, add(3, 9, 0))
	require.False(t, add(4, 3, 3))
	require.Len(t, apart, 2)
	require.False(t, add(3, 10, 1))
	require.True(t, add(7, 10, 0))
	require.Len(t, apart, 1)
}
