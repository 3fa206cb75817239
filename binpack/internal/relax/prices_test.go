package relax

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// labelled draws kinds of which each is open to some groups of classes only.
func labelled(rng *rand.Rand) *Model {
	m := &Model{Dims: 1 + rng.IntN(3)}
	for range 1 + rng.IntN(12) {
		k := Kind{Price: float64(rng.IntN(1000)), Supply: -1, Label: len(m.Kinds)}
		for range m.Dims {
			k.Capacity = append(k.Capacity, int64(rng.IntN(50)))
		}
		m.Kinds = append(m.Kinds, k)
	}
	sets := make([]uint64, 1+rng.IntN(5))
	for g := range sets {
		sets[g] = rng.Uint64() & (1<<len(m.Kinds) - 1)
	}
	for range 1 + rng.IntN(10) {
		c := Class{Count: int64(1 + rng.IntN(30)), Most: math.MaxInt32, Kinds: []uint64{sets[rng.IntN(len(sets))]}}
		for range m.Dims {
			c.Size = append(c.Size, int64(rng.IntN(20)))
		}
		if m.Classes = append(m.Classes, c); m.cheapest(&c, true) < 0 { // nothing holds it
			m.Classes[len(m.Classes)-1].Count = 0
		}
	}
	return m
}

func coverage(m *Model) []float64 {
	value, _ := m.CertifyCoverage(&Budget{Left: math.MaxInt})
	return value
}

// No kind offers its room for less than that is worth in its sort, so whatever fills a bin is worth no more than it costs.
func TestNoKindOffersWorthForLess(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	apart := 0
	for range 5000 {
		m := labelled(rng)
		s := m.sorts()
		prices := s.prices(m.Classes, &Budget{Left: math.MaxInt})
		for k := range m.Kinds {
			if s.of[k] < 0 {
				continue
			}
			room := 0.0
			for r, c := range m.Kinds[k].room() {
				room += c * prices[s.of[k]][r]
			}
			require.LessOrEqual(t, room, m.Kinds[k].Price*(1+1e-9))
		}
		for i, v := range s.values(prices) {
			for k := range m.Kinds {
				if m.Classes[i].May(k) && Copies(m.Kinds[k].Capacity, m.Classes[i].Size, 1) > 0 {
					worth := 0.0
					for r, size := range m.Classes[i].Size {
						worth += float64(size) * prices[s.of[k]][r]
					}
					require.LessOrEqual(t, v, worth*(1+1e-12))
				}
			}
		}
		one := *m // the same where every kind is open to all: prices of one sort
		one.Classes = nil
		for _, c := range m.Classes {
			c.Kinds = []uint64{1<<len(m.Kinds) - 1}
			one.Classes = append(one.Classes, c)
		}
		total := func(m *Model, values []float64) (sum float64) {
			for i, v := range values {
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

// Two groups, each at home in bins of its own, and dear ones that both may go into: worked out by hand.
func TestPricesBySort(t *testing.T) {
	m := &Model{
		Dims: 1,
		Kinds: []Kind{
			{Capacity: []int64{10}, Price: 100e6, Supply: -1}, // for both
			{Capacity: []int64{10}, Price: 80e6, Supply: -1},  // for the second
			{Capacity: []int64{5}, Price: 60e6, Supply: -1},   // for the first, dear
		},
		Classes: []Class{
			{Size: []int64{1}, Count: 10, Most: 10, Kinds: []uint64{0b101}},
			{Size: []int64{1}, Count: 10, Most: 10, Kinds: []uint64{0b011}},
		},
	}
	require.InDeltaSlice(t, []float64{10e6, 8e6}, coverage(m), 1)
	_, proof := m.CertifyCoverage(&Budget{Left: math.MaxInt})
	require.InDelta(t, 180e6, float64(proof.Price), 30)

	b := Budget{Left: 1 << 20}
	m.sorts().prices(m.Classes, &b)
	require.Less(t, b.Left, 1<<20, "prices are work, too")
}

// Things of size 1 in bins that each hold four, of pools that each hold so many bins: the cheapest pools are filled, one after the
// other, and then what has no pool. The lifted proof knows nearly that, and no more.
func TestLiftedProofIsBelowTheOptimum(t *testing.T) {
	rng := rand.New(rand.NewPCG(91, 92))
	for range 300 {
		m := &Model{Dims: 1}
		bins, each := int64(1+rng.IntN(12)), int64(1+rng.IntN(3))
		var prices []int64
		for pool := range 1 + rng.IntN(5) {
			price := 1000 * int64(100+rng.IntN(100))
			prices = append(prices, slices.Repeat([]int64{price}, int(each))...)
			m.Kinds = append(m.Kinds, Kind{Capacity: []int64{4}, Price: float64(price), Supply: -1, Pool: int32(pool + 1)})
		}
		m.Kinds = append(m.Kinds, Kind{Capacity: []int64{4}, Price: 400_000, Supply: -1})
		prices = append(prices, slices.Repeat([]int64{400_000}, int(bins))...)
		m.Classes = []Class{{Size: []int64{1}, Count: 4 * bins, Most: 1 << 30, Kinds: []uint64{1<<len(m.Kinds) - 1}}}
		m.Diversity = []Diversity{{Counts: []int64{1}, Left: slices.Repeat([]int64{4 * each}, len(m.Kinds))}}
		slices.Sort(prices)
		optimum := int64(0)
		for _, p := range prices[:bins] {
			optimum += p
		}
		b := &Budget{Left: 1 << 40}
		value, proof := m.CertifyCoverage(b)
		lifted := m.lift(value, proof, b)
		require.LessOrEqual(t, lifted.Price, optimum, "%+v", m)
		require.GreaterOrEqual(t, float64(lifted.Price), 0.999*float64(optimum), "%+v", m)
		again, _, err := m.Verify(lifted.Value)
		require.NoError(t, err)
		require.Equal(t, lifted.Price, again)
	}
}
