package lp_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack/internal/lp"
)

// programme holds the data of a Program for checks.
type programme struct {
	rhs, bigM []float64
	supply    []bool
	prices    []float64
	columns   [][]lp.Entry
}

// bought returns the cost of the last solution including what it leaves uncovered, after checking that it exceeds no supply.
func (x *programme) bought(t *testing.T, p *lp.Program) float64 {
	t.Helper()
	rest, cost := slices.Clone(x.rhs), 0.0
	for j, entries := range x.columns {
		amount := p.Amount(j)
		require.GreaterOrEqual(t, amount, -1e-9)
		cost += x.prices[j] * amount
		for _, e := range entries {
			rest[e.Row] -= e.Amount * amount
		}
	}
	for i, r := range rest {
		if x.supply[i] {
			require.GreaterOrEqual(t, r, -1e-6, "supply %d is exceeded", i)
		} else {
			cost += x.bigM[i] * max(0, r)
		}
	}
	return cost
}

// However demands, supplies and prices change between solutions, the solution is feasible, the duals are feasible, and both
// have the objective of the programme. So each proves that the other is optimal.
func TestProgramProvesItself(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	repaired := 0
	for round := range rounds(300, 10_000) {
		m := 1 + rng.IntN(8)
		x := &programme{rhs: make([]float64, m), bigM: make([]float64, m), supply: make([]bool, m)}
		for i := range m {
			x.rhs[i], x.bigM[i], x.supply[i] = float64(rng.IntN(20)), 200, i > 0 && rng.IntN(4) == 0
		}
		p := lp.New(x.rhs, x.supply, x.bigM)
		add := func() {
			var entries []lp.Entry
			for i := range m {
				if rng.IntN(2) == 0 {
					entries = append(entries, lp.Entry{Row: int32(i), Amount: float64(1 + rng.IntN(3))})
				}
			}
			if len(entries) > 0 {
				price := float64(rng.IntN(30))
				x.prices, x.columns = append(x.prices, price), append(x.columns, entries)
				p.Add(price, entries)
			}
		}
		for range 1 + rng.IntN(12) {
			add()
		}
		if len(x.columns) == 0 {
			continue
		}
		for step := range 5 {
			require.True(t, p.Solve(1000))
			want := x.bought(t, p)
			require.InDelta(t, want, p.Objective(), 1e-6*(1+want), "round %d, step %d", round, step)
			dual := 0.0
			for i, y := range p.Duals() {
				dual += y * x.rhs[i]
				if x.supply[i] {
					require.LessOrEqual(t, y, 1e-6)
				} else {
					require.GreaterOrEqual(t, y, -1e-6)
					require.LessOrEqual(t, y, x.bigM[i]+1e-6)
				}
			}
			require.InDelta(t, want, dual, 1e-6*(1+want))
			for j, entries := range x.columns {
				dualValue := 0.0
				for _, e := range entries {
					dualValue += e.Amount * p.Duals()[e.Row]
				}
				require.LessOrEqual(t, dualValue, x.prices[j]+1e-6, "column %d is worth more than its price", j)
			}
			switch i := rng.IntN(m); rng.IntN(3) {
			case 0:
				x.rhs[i] = float64(rng.IntN(20))
				p.Demand(i, x.rhs[i])
				repaired++
			case 1:
				j := rng.IntN(len(x.columns))
				x.prices[j] = float64(rng.IntN(30))
				p.Reprice(j, x.prices[j])
			default:
				add()
			}
		}
	}
	require.Positive(t, repaired)
}

// The simplex ends on degenerate programmes.
func TestDegenerateProgramEnds(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for range rounds(200, 5_000) {
		m := 3 + rng.IntN(10)
		rhs, bigM := make([]float64, m), make([]float64, m)
		for i := range rhs {
			rhs[i], bigM[i] = float64(rng.IntN(2)), 100 // half of the demands are 0, so every basis is degenerate
		}
		p := lp.New(rhs, make([]bool, m), bigM)
		for range 4 * m {
			var entries []lp.Entry
			for i := range m {
				if rng.IntN(2) == 0 {
					entries = append(entries, lp.Entry{Row: int32(i), Amount: 1})
				}
			}
			p.Add(float64(1+rng.IntN(3)), entries)
		}
		require.True(t, p.Solve(100*m))
		require.False(t, lp.New([]float64{1}, []bool{false}, []float64{5}).Solve(0), "no pivot is not enough to know")
	}
}
