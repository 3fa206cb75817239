package lp_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	gonumlp "gonum.org/v1/gonum/optimize/convex/lp"

	"github.com/joinery-sdk/joinery/binpack/internal/lp"
)

// covering is the primal value by another solver: the least price of fractional bins that cover the demand.
func covering(t *testing.T, rows [][]float64, prices, demand []float64) float64 {
	t.Helper()
	n, m := len(rows), len(demand)
	a := mat.NewDense(m, n+m, nil)
	c := make([]float64, n+m)
	copy(c, prices)
	for r := range m {
		for i, row := range rows {
			a.Set(r, i, row[r]/demand[r])
		}
		a.Set(r, n+r, -1)
	}
	ones := make([]float64, m)
	for r := range ones {
		ones[r] = 1
	}
	value, _, err := gonumlp.Simplex(c, a, ones, 1e-10, nil)
	require.NoError(t, err)
	return value
}

// dual is what the multipliers prove, and how far the worst type is above its price, in parts of it.
func dual(rows [][]float64, prices, demand, y []float64) (value, excess float64) {
	for r, d := range demand {
		value += d * y[r]
	}
	for i, row := range rows {
		worth := 0.0
		for r, c := range row {
			worth += c * y[r]
		}
		excess = max(excess, (worth-prices[i])/prices[i])
	}
	return value, excess
}

// unit is the grain of a resource: memory is counted in bytes, cores are not.
func unit(r int) float64 { return []float64{1, 1 << 30, 1, 1 << 20, 1000}[r] }

// Where one type sells bytes and another tebibytes, digits run out; what comes out must still be a proof, and no worse
// than that of the best resource by itself.
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
		y := lp.Coverage(rows, prices, demand)
		got, _ := dual(rows, prices, demand, y)
		for i, row := range rows {
			worth, _ := dual(nil, nil, row, y)
			require.LessOrEqual(t, worth, prices[i]*(1+1e-12))
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

func TestCoverageDualsAgainstAnotherSolver(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for round := range rounds(300, 5_000) {
		m, n := 1+rng.IntN(5), 1+rng.IntN(40)
		rows, prices, demand := make([][]float64, n), make([]float64, n), make([]float64, m)
		for i := range rows {
			rows[i] = make([]float64, m)
			for r := range rows[i] {
				rows[i][r] = float64(rng.IntN(64)) * unit(r)
			}
			rows[i][0]++ // some cover for the first resource
			prices[i] = float64(1 + rng.IntN(1_000_000))
		}
		for r := range demand {
			demand[r] = float64(1+rng.IntN(1000)) * float64(1+rng.IntN(1<<20)) * unit(r)
			rows[r%n][r] += unit(r) // and for every other
		}
		if m > n {
			continue
		}
		y := lp.Coverage(rows, prices, demand)
		got, excess := dual(rows, prices, demand, y)
		want := covering(t, rows, prices, demand)
		require.LessOrEqual(t, excess, 1e-6, "round %d: a type is worth more than its price: %d types, %d resources, want %.12g got %.12g", round, n, m, covering(t, rows, prices, demand), got)
		require.InEpsilon(t, want, got, 1e-6, "round %d: %d types, %d resources: want %.12g got %.12g excess %g", round, n, m, want, got, excess)
		for _, v := range y {
			require.GreaterOrEqual(t, v, 0.0)
		}
	}
}

// One resource: the value is that of the cheapest capacity, however many bins the demand takes.
func TestCoverageDualsOfHugeDemand(t *testing.T) {
	for _, bins := range []float64{1, 1e3, 1e6, 1e9, 1e12} {
		y := lp.Coverage([][]float64{{4}, {9}}, []float64{4, 8}, []float64{9 * bins})
		require.InEpsilon(t, 8.0/9, y[0], 1e-9, "%g bins", bins)
	}
}

func TestCoverageDualsWithoutCover(t *testing.T) {
	require.Equal(t, []float64{0}, lp.Coverage(nil, nil, []float64{5}), "nothing can be bought")
	require.Equal(t, []float64{0, 0}, lp.Coverage([][]float64{{0, 3}}, []float64{1}, []float64{5, 0}), "what is asked is not sold, what is sold is not asked")
	y := lp.Coverage([][]float64{{2, 0}, {1, 1}}, []float64{2, 0}, []float64{4, 4})
	require.Equal(t, []float64{0, 0}, y, "one type is free")
}
