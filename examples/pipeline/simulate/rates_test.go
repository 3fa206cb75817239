package simulate

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"

	"github.com/joinery-sdk/joinery/deprovision"
)

// oracle is the most that goal x comes to with rows x <= limits and x >= 0, by gonum's simplex.
func oracle(t *testing.T, goal []float64, rows [][]float64, limits []float64) float64 {
	t.Helper()
	n := len(goal)
	a := mat.NewDense(len(rows), n+len(rows), nil)
	c := make([]float64, n+len(rows))
	for j := range goal {
		c[j] = -goal[j]
	}
	for i, row := range rows {
		for j, v := range row {
			a.Set(i, j, v)
		}
		a.Set(i, n+i, 1)
	}
	best, _, err := lp.Simplex(c, a, limits, 1e-9, nil)
	require.NoError(t, err)
	return -best
}

func TestMaximizeAgainstGonum(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		n, m := 1+r.IntN(4), 1+r.IntN(12)
		goal := make([]float64, n)
		for j := range goal {
			goal[j] = float64(r.IntN(6))
		}
		var rows [][]float64
		var limits []float64
		for range m {
			row := make([]float64, n)
			for j := range row {
				row[j] = float64(r.IntN(9))
			}
			rows, limits = append(rows, row), append(limits, float64(r.IntN(20)))
		}
		for j := range goal { // no variable is without a bound
			row := make([]float64, n)
			row[j] = 1
			rows, limits = append(rows, row), append(limits, 7)
		}
		x, value := maximize(goal, rows, limits)
		assert.InDelta(t, oracle(t, goal, rows, limits), value, 1e-6, "seed %d", seed)
		assert.InDelta(t, value, dot(goal, x), 1e-6)
		for i, row := range rows {
			assert.LessOrEqual(t, dot(row, x), limits[i]+1e-6, "seed %d", seed)
		}
	}
}

// shop is a market of sizes, each with a price.
func shop(sizes map[int64][3]int64) *market {
	m := &market{}
	for cost, c := range sizes {
		m.sizes = append(m.sizes, size{c[:], deprovision.Price(cost)})
	}
	return m
}

// A need that takes GPUs is worth what they cost, whatever little else it takes; nothing that is sold undercuts the worth of what it
// holds.
func TestEveryResourceCounts(t *testing.T) {
	m := shop(map[int64][3]int64{100: {4000, 16, 0}, 900: {4000, 16, 1}})
	plain, gpu := []int64{1000, 4, 0}, []int64{1000, 4, 1}
	assert.InDelta(t, 25, float64(m.atLeast(plain, 0)), 1)
	assert.InDelta(t, 900, float64(m.atLeast(gpu, 0)), 1, "one GPU a node")
	for _, k := range m.sizes {
		assert.LessOrEqual(t, m.atLeast(k.capacity, 0), k.cost)
	}
	assert.Zero(t, m.atLeast([]int64{0, 0, -3}, 0))
}

// retain is as good as the linear program with a column for each node and size.
func TestKeepAgainstTheWholeProgram(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 4))
		m := &market{}
		for range 1 + r.IntN(4) {
			m.sizes = append(m.sizes, size{[]int64{1 + r.Int64N(16), 1 + r.Int64N(16), 1 + r.Int64N(16)}, deprovision.Price(1 + r.IntN(50))})
		}
		rooms, costs := make([][]float64, 1+r.IntN(12)), make([]float64, 0)
		demand := make([]float64, 3)
		for i := range rooms {
			rooms[i] = []float64{float64(r.IntN(12)), float64(r.IntN(12)), float64(r.IntN(12))}
			costs = append(costs, float64(1+r.IntN(40)))
			for d := range demand {
				demand[d] += rooms[i][d] * r.Float64()
			}
		}
		// The dual of the program: rates x and, for each node, by how much its capacity at dual prices exceeds its cost.
		goal := append([]float64{}, demand...)
		var rows [][]float64
		var limits []float64
		for range rooms {
			goal = append(goal, -1)
		}
		for _, k := range m.sizes {
			row := make([]float64, len(goal))
			for d, q := range k.capacity {
				row[d] = float64(q)
			}
			rows, limits = append(rows, row), append(limits, float64(k.cost))
		}
		for i, room := range rooms {
			row := make([]float64, len(goal))
			copy(row, room)
			row[3+i] = -1
			rows, limits = append(rows, row), append(limits, costs[i])
		}
		want := oracle(t, goal, rows, limits)
		_, got := m.retain(rooms, costs, demand, []float64{1, 1, 1})
		assert.InDelta(t, want, got, 1e-3*max(1, want), "seed %d", seed)
	}
}
