package simulate

import (
	"cmp"
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/deprovision"
)

// size is a capacity that can be bought, with its least cost.
type size struct {
	capacity []int64
	cost     deprovision.Price
}

// byCost returns the sizes of the front that no other size dominates, regardless of labels.
func (m *market) byCost() []size {
	var all, out []size
	for t := range m.front {
		for j := range m.front[t].Offerings {
			all = append(all, size{m.front[t].Capacity, deprovision.Price(m.front[t].Offerings[j].Objective)})
		}
	}
	slices.SortStableFunc(all, func(a, b size) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), slices.Compare(b.capacity, a.capacity))
	})
	for _, k := range all {
		if !slices.ContainsFunc(out, func(o size) bool { return covers(o.capacity, k.capacity) }) {
			out = append(out, k)
		}
	}
	return out
}

// atLeast returns a lower bound of the cost of holding a need on sizes below a limit, with 0 for
// all sizes. It is the value of the need at dual prices of resources. At these prices no such size
// holds more than it costs. Negative amounts count as 0.
func (m *market) atLeast(need []int64, limit deprovision.Price) deprovision.Price {
	if n := slices.IndexFunc(m.sizes, func(k size) bool { return limit > 0 && k.cost >= limit }); n >= 0 {
		m = &market{sizes: m.sizes[:n]}
	}
	scale := m.scale(need)
	_, least := m.retain(nil, nil, scaled(need, scale), scale)
	return deprovision.Price(math.Floor(min(least, 1<<62) * (1 - 1e-9))) // allows for rounding errors
}

// scale returns a unit for each resource, so that bytes and cores have the same magnitude.
func (m *market) scale(need []int64) []float64 {
	out := make([]float64, len(need))
	for d := range out {
		out[d] = 1
		for _, k := range m.sizes {
			out[d] = max(out[d], float64(k.capacity[d]))
		}
	}
	return out
}

func scaled(amounts []int64, scale []float64) []float64 {
	out := make([]float64, len(amounts))
	for d, q := range amounts {
		out[d] = float64(max(0, q)) / scale[d]
	}
	return out
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}

// maximize finds x >= 0 that maximizes goal x subject to rows x <= limits, with limits >= 0. It is
// the simplex method with the pivoting rule of R. G. Bland, which does not cycle. An unbounded
// variable remains 0.
func maximize(goal []float64, rows [][]float64, limits []float64) (x []float64, value float64) {
	const tiny = 1e-11
	n := len(goal)
	table := make([][]float64, 0, len(rows)+1) // columns: the variables outside the basis, then the limit; the last row is the goal
	inside, outside := make([]int, len(rows)), make([]int, n)
	for k, row := range rows {
		table = append(table, append(slices.Clone(row), limits[k]))
		inside[k] = n + k
	}
	top := append(slices.Clone(goal), 0)
	table = append(table, top)
	for i := range outside {
		outside[i] = i
	}
	unbounded := make([]bool, n+len(rows))
	for {
		in := -1
		for i, v := range outside {
			if top[i] > tiny && !unbounded[v] && (in < 0 || v < outside[in]) {
				in = i
			}
		}
		if in < 0 {
			break
		}
		out := -1
		for k := range rows {
			row := table[k]
			if row[in] <= tiny {
				continue
			}
			if out < 0 {
				out = k
				continue
			}
			a, b := float64(row[n]*table[out][in]), float64(table[out][n]*row[in])
			if a < b || a == b && inside[k] < inside[out] {
				out = k
			}
		}
		if out < 0 {
			unbounded[outside[in]] = true
			continue
		}
		pivot(table, out, in)
		inside[out], outside[in] = outside[in], inside[out]
	}
	x = make([]float64, n)
	for k, v := range inside {
		if v < n {
			x[v] = max(0, table[k][n])
		}
	}
	return x, -top[n]
}

// pivot exchanges the variable of a row for that of a column.
func pivot(table [][]float64, out, in int) {
	at := table[out]
	p := at[in]
	at[in] = 1
	for i := range at {
		at[i] /= p
	}
	for k, row := range table {
		if f := row[in]; k != out && f != 0 {
			row[in] = 0
			for i := range row {
				row[i] -= float64(f * at[i])
			}
		}
	}
}
