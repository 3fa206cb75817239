package relax_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

func TestKnapsackIsThatOfBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	loose := 0
	each(t, 3, func(m *relax.Model, _ float64) {
		duals := duals(rng, len(m.Classes))
		for k := range m.BinTypes {
			most := 0.0
			patterns(m, func(count []int64, _ float64) {
				if !fitsIn(m, k, count, m.Classes) {
					return
				}
				profit := 0.0
				for i, n := range count {
					profit += duals[i] * float64(n)
				}
				most = max(most, profit)
			})
			var knap relax.Knapsack
			if !knap.Load(m.BinTypes[k].Capacity, m.Classes, func(i int) bool { return m.Classes[i].BinTypes[0]&(1<<k) != 0 }, duals) {
				require.Zero(t, most)
				continue
			}
			bound := knap.Bound(0)
			require.GreaterOrEqual(t, bound, most)
			if bound > most+1e-6 {
				loose++
			}
			require.LessOrEqual(t, knap.Fill(), most+1e-9, "a filling that fits")
			require.LessOrEqual(t, knap.Improve(3, 50), most+1e-9)
			found, done := knap.Search(0, 1_000_000)
			require.True(t, done)
			require.InDelta(t, most, found, 1e-9)
		}
	})
	require.Greater(t, loose, trials/10, "some bounds are no more than that")
}

// The programme is solved if its duals are feasible over all patterns and their dual value equals its cost.
func TestMasterSolvesTheProgrammeOverAllFillings(t *testing.T) {
	below := 0
	each(t, 5, func(m *relax.Model, best float64) {
		if len(m.Supply) > 0 { // proofs do not look for patterns of counted bin types
			return
		}
		s := relax.NewMaster(m)
		b := plenty()
		s.Price(coverage(m), b)
		for missing := true; missing; { // patterns that column generation missed
			s.Generate(400, b)
			_, columns := m.Prove(s.Duals(), b)
			missing = false
			for _, c := range columns {
				missing = s.Add(c) || missing
			}
		}
		duals := s.Duals()
		sum := 0.0
		for i, v := range duals {
			sum += v * float64(m.Classes[i].Count)
		}
		require.InDelta(t, s.Objective(), sum, 1e-6*best)
		patterns(m, func(count []int64, price float64) {
			profit := 0.0
			for i, n := range count {
				profit += duals[i] * float64(n)
			}
			require.LessOrEqual(t, profit, price*(1+1e-5), "filling %v", count)
		})
		require.LessOrEqual(t, s.Objective(), best*(1+1e-6)+1e-6)
		if s.Objective() < best*(1-1e-6) {
			below++
		}
	})
	require.Greater(t, below, trials/20, "fractions are cheaper in some")
}

func TestProofsAreNeverAboveTheOptimum(t *testing.T) {
	tight := 0
	each(t, 7, func(m *relax.Model, best float64) {
		m, best = scaled(m), best*1e6
		s := relax.NewMaster(m)
		b := plenty()
		s.Price(coverage(m), b)
		s.Generate(400, b)
		proof, _ := m.Prove(s.Duals(), b)
		require.LessOrEqual(t, float64(proof.Price), best)
		again, err := m.Verify(proof.Duals, proof.Searched, new(relax.Watch))
		require.NoError(t, err)
		require.GreaterOrEqual(t, again, proof.Price)
		require.LessOrEqual(t, float64(again), best)
		if float64(proof.Price) > best*(1-1e-6) {
			tight++
		}
		_, covered := m.CertifyCoverage(&relax.Budget{Left: math.MaxInt})
		require.LessOrEqual(t, float64(covered.Price), best)
		if proof.Price > 0 { // duals that are too high are rejected
			for i := range proof.Duals {
				proof.Duals[i] *= 2
			}
			if price, err := m.Verify(proof.Duals, proof.Searched, new(relax.Watch)); err == nil {
				require.LessOrEqual(t, float64(price), best)
			}
		}
	})
	require.Greater(t, tight, trials/5)
}

// A dive that packs everything is a packing, no cheaper than the optimum. What it leaves unplaced, where pricing found no
// pattern for the rest, greedy filling packs.
func TestDivesAreLawful(t *testing.T) {
	whole := 0
	each(t, 6, func(m *relax.Model, best float64) {
		s := relax.NewMaster(m)
		b := plenty()
		s.Price(coverage(m), b)
		s.Generate(400, b)
		columns := s.Dive(0, b)
		if m.Unplaced(columns) > 0 {
			return
		}
		whole++
		require.GreaterOrEqual(t, lawful(t, m, columns), best*(1-1e-9))
	})
	t.Logf("%d dives packed everything", whole)
	require.Greater(t, whole, trials/2)
}

// A dive uses no steps that it does not have, and what it leaves unplaced counts as unplaced.
func TestDivesEndWithTheirBudget(t *testing.T) {
	each(t, 6, func(m *relax.Model, _ float64) {
		s := relax.NewMaster(m)
		s.Price(coverage(m), plenty())
		s.Generate(400, plenty())
		require.Empty(t, s.Dive(0, &relax.Budget{}))
	})
}

func TestWaysToPackAreLawful(t *testing.T) {
	each(t, 9, func(m *relax.Model, best float64) {
		if len(m.Supply) > 0 { // greedy filling ignores counted bin types
			return
		}
		columns := m.FillGreedily(plenty())
		require.GreaterOrEqual(t, lawful(t, m, columns), best)
	})
}

// A capacity is lowered to the items that may go there, and to the largest subset sum of items.
func TestTightenedCapacitiesAreSums(t *testing.T) {
	cut := 0
	each(t, 15, func(m *relax.Model, best float64) {
		var capacities [][]int64
		for _, k := range m.BinTypes {
			capacities = append(capacities, k.Capacity)
		}
		before := slices.Clone(capacities[0])
		profile, open := make([]int, len(m.Classes)), make([][]uint64, len(m.BinTypes)) // a profile for each class
		for k := range open {
			open[k] = []uint64{0}
			for i := range m.Classes {
				if profile[i] = i; m.Classes[i].May(k) {
					open[k][0] |= 1 << i
				}
			}
		}
		tightened := m.Tightened(capacities, profile, open, new(relax.Watch))
		require.Equal(t, before, capacities[0], "the argument stays as it is")
		for r := range m.Dims {
			sums := map[int64]bool{0: true}
			for i := range m.Classes {
				for range min(m.Classes[i].Count, m.Classes[i].Most) {
					next := map[int64]bool{}
					for s := range sums {
						next[s], next[s+m.Classes[i].Size[r]] = true, true
					}
					sums = next
				}
			}
			for k := range capacities {
				want, all := int64(0), int64(0)
				for i := range m.Classes {
					if m.Classes[i].May(k) {
						all += m.Classes[i].Size[r] * m.Classes[i].Count
					}
				}
				for s := range sums {
					if s <= min(capacities[k][r], all) {
						want = max(want, s)
					}
				}
				if len(sums) == 1 { // no item takes any, so the capacity stays
					want = capacities[k][r]
				}
				require.Equal(t, want, tightened[k][r], "capacity %v for sums %v", capacities[k][r], sums)
				if want < capacities[k][r] {
					cut++
				}
			}
		}
		same := *m
		same.BinTypes = slices.Clone(m.BinTypes)
		for k := range same.BinTypes {
			same.BinTypes[k].Capacity = tightened[k]
		}
		require.Equal(t, best, optimum(&same))
	})
	require.Greater(t, cut, trials)
}

// Resource duals prove no less if fillings and whole bins are examined.
func TestCoverageProvesItself(t *testing.T) {
	proved := 0
	each(t, 41, func(m *relax.Model, best float64) {
		_, got := m.CertifyCoverage(&relax.Budget{Left: math.MaxInt})
		want := m.Certify(coverage(m), 1, nil)
		require.Equal(t, want.Duals, got.Duals)
		require.GreaterOrEqual(t, want.Price, got.Price)
		require.LessOrEqual(t, float64(want.Price), best+1e-6)
		price, err := m.Verify(got.Duals, got.Searched, new(relax.Watch))
		require.NoError(t, err)
		require.GreaterOrEqual(t, price, got.Price)
		if got.Price > 0 {
			proved++
		}
	})
	require.Greater(t, proved, trials/4)
}
