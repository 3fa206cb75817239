package lp_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack/internal/lp"
)

// bought returns the lowest cost of covering the demand in fractions of the types without reduced cost under y. By weak duality
// no y proves more than that, and a y that proves as much is optimal. It is +Inf if such types do not cover the demand; then y
// is not optimal. It shares nothing with the simplex under test: it tries every basis of those types and of surpluses.
func bought(rows [][]float64, prices, demand, y []float64) float64 {
	const near = 1e-7
	m := len(demand)
	var columns [][]float64 // by row, as fractions of the demand; the last entry is the price
	for i, row := range rows {
		if dualValue, _ := dual(nil, nil, row, y); dualValue < prices[i]*(1-near) {
			continue
		}
		c := make([]float64, m, m+1)
		for r := range row {
			c[r] = row[r] / demand[r]
		}
		columns = append(columns, append(c, prices[i]))
	}
	for r := range m {
		c := make([]float64, m+1)
		c[r] = -1
		columns = append(columns, c)
	}
	best := math.Inf(1)
	var basis [][]float64
	var choose func(from int)
	choose = func(from int) {
		if len(basis) == m {
			if x, ok := solve(basis, m); ok && slices.Min(x) >= -near {
				cost := 0.0
				for k, c := range basis {
					cost += c[m] * x[k]
				}
				best = min(best, cost)
			}
			return
		}
		for k := from; k < len(columns); k++ {
			basis = append(basis, columns[k])
			choose(k + 1)
			basis = basis[:len(basis)-1]
		}
	}
	choose(0)
	return best
}

// solve returns x such that the columns times x sum to 1 in each row, by elimination with the largest pivot; not ok if the
// columns are dependent.
func solve(columns [][]float64, m int) (x []float64, ok bool) {
	a := make([][]float64, m)
	for r := range a {
		a[r] = make([]float64, m+1)
		for k, c := range columns {
			a[r][k] = c[r]
		}
		a[r][m] = 1
	}
	for k := range m {
		p := k
		for r := k; r < m; r++ {
			if math.Abs(a[r][k]) > math.Abs(a[p][k]) {
				p = r
			}
		}
		if a[k], a[p] = a[p], a[k]; math.Abs(a[k][k]) < 1e-12*columnMax(columns[k]) {
			return nil, false
		}
		for r := range m {
			if f := a[r][k] / a[k][k]; r != k && f != 0 {
				for c := k; c <= m; c++ {
					a[r][c] -= f * a[k][c]
				}
			}
		}
	}
	x = make([]float64, m)
	for k := range x {
		x[k] = a[k][m] / a[k][k]
	}
	return x, true
}

func columnMax(column []float64) float64 {
	most := 0.0
	for _, v := range column[:len(column)-1] {
		most = max(most, math.Abs(v))
	}
	return most
}

// dual returns the bound that the duals prove, and the largest relative excess of a type over its price.
func dual(rows [][]float64, prices, demand, y []float64) (value, excess float64) {
	for r, d := range demand {
		value += d * y[r]
	}
	for i, row := range rows {
		dualValue := 0.0
		for r, c := range row {
			dualValue += c * y[r]
		}
		excess = max(excess, (dualValue-prices[i])/prices[i])
	}
	return value, excess
}

// unit is the unit of a resource: memory is counted in bytes, cores are not.
func unit(r int) float64 { return []float64{1, 1 << 30, 1, 1 << 20, 1000}[r] }

// If one type sells bytes and another tebibytes, float64 loses digits. The result must still be a proof, and no worse than that
// of the best resource alone.
func TestCoverageDualsOfIllMatchedTypes(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range rounds(300, 20_000) {
		m, n := 1+rng.IntN(4), 1+rng.IntN(20)
		rows, prices, demand := make([][]float64, n), make([]float64, n), make([]float64, m)
		for i := range rows {
			rows[i] = make([]float64, m)
			for r := range rows[i] {
				rows[i][r] = float64(rng.Int64N(1<<62) >> rng.IntN(62))
			}
			prices[i] = float64(rng.Int64N(1<<62) >> rng.IntN(62))
		}
		for r := range demand {
			demand[r] = float64(rng.Int64N(1<<62) >> rng.IntN(62))
		}
		y, _ := lp.Coverage(rows, prices, demand, nil)
		got, _ := dual(rows, prices, demand, y)
		for i, row := range rows {
			dualValue, _ := dual(nil, nil, row, y)
			require.LessOrEqual(t, dualValue, prices[i]*(1+1e-12))
		}
		for r, d := range demand {
			alone := -1.0
			for i, row := range rows {
				if row[r] > 0 && (alone < 0 || prices[i]/row[r] < alone) {
					alone = prices[i] / row[r]
				}
			}
			require.GreaterOrEqual(t, got*(1+1e-12), alone*d)
		}
	}
}

// The duals prove as much as possible: something that can be bought costs no more.
func TestCoverageDualsAreOptimal(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for round := range rounds(300, 5_000) {
		m, n := 1+rng.IntN(5), 1+rng.IntN(40)
		rows, prices, demand := make([][]float64, n), make([]float64, n), make([]float64, m)
		for i := range rows {
			rows[i] = make([]float64, m)
			for r := range rows[i] {
				rows[i][r] = float64(rng.IntN(64)) * unit(r)
			}
			rows[i][0]++ // covers the first resource
			prices[i] = float64(1 + rng.IntN(1_000_000))
		}
		for r := range demand {
			demand[r] = float64(1+rng.IntN(1000)) * float64(1+rng.IntN(1<<20)) * unit(r)
			rows[r%n][r] += unit(r) // covers the others
		}
		if m > n {
			continue
		}
		y, _ := lp.Coverage(rows, prices, demand, nil)
		got, excess := dual(rows, prices, demand, y)
		want := bought(rows, prices, demand, y)
		require.LessOrEqual(t, excess, 1e-6, "round %d: a type is worth more than its price: %d types, %d resources", round, n, m)
		require.InEpsilon(t, want, got, 1e-6, "round %d: %d types, %d resources: want %.12g got %.12g excess %g", round, n, m, want, got, excess)
		for _, v := range y {
			require.GreaterOrEqual(t, v, 0.0)
		}
	}
}

// One resource: the dual is the cheapest price per unit, whatever the demand.
func TestCoverageDualsOfHugeDemand(t *testing.T) {
	for _, bins := range []float64{1, 1e3, 1e6, 1e9, 1e12} {
		y, _ := lp.Coverage([][]float64{{4}, {9}}, []float64{4, 8}, []float64{9 * bins}, nil)
		require.InEpsilon(t, 8.0/9, y[0], 1e-9, "%g bins", bins)
	}
}

func TestCoverageDualsWithoutCover(t *testing.T) {
	y, _ := lp.Coverage(nil, nil, []float64{5}, nil)
	require.Equal(t, []float64{0}, y, "nothing can be bought")
	y, _ = lp.Coverage([][]float64{{0, 3}}, []float64{1}, []float64{5, 0}, nil)
	require.Equal(t, []float64{0, 0}, y, "what is asked is not sold, what is sold is not asked")
	y, _ = lp.Coverage([][]float64{{2, 0}, {1, 1}}, []float64{2, 0}, []float64{4, 4}, nil)
	require.Equal(t, []float64{0, 0}, y, "one type is free")
}
