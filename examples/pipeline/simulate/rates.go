package simulate

import (
	"cmp"
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/deprovision"
)

// rates are dual prices of resources at which no node that can be bought holds more than it costs. By linear programming duality no
// purchase that holds a need costs less than the need at these prices.
type rates []float64

// of is the need at these prices, rounded down. Negative amounts count as 0.
func (r rates) of(need []int64) deprovision.Price {
	sum := 0.0
	for d, q := range need {
		sum += float64(r[d] * float64(max(0, q)))
	}
	return deprovision.Price(math.Floor(min(sum, 1<<62) * (1 - 1e-9))) // for rounding errors of the sum
}

// size is a capacity that can be bought, and its least cost.
type size struct {
	capacity []int64
	cost     deprovision.Price
}

// byCost are the sizes of the front that no other dominates, whatever their labels.
func (m *market) byCost() []size {
	var all, out []size
	for t := range m.front {
		for j := range m.front[t].Offerings {
			all = append(all, size{m.front[t].Capacity, m.costOf(m.origin[t], m.offers[t][j])})
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

// mostRates bounds the needs whose dual prices are computed beforehand.
const mostRates = 64

// compileRates computes the dual prices of the first needs of distinct pods.
func (m *market) compileRates() {
	m.sizes = m.byCost()
	var asked [][]int64
	for i := range m.items {
		need := m.items[i].Requests
		if need == nil || len(asked) == mostRates || slices.ContainsFunc(asked, func(a []int64) bool { return slices.Equal(a, need) }) {
			continue
		}
		asked = append(asked, need)
		if r := m.highest(need); !slices.ContainsFunc(m.rates, func(x rates) bool { return slices.Equal(x, r) }) {
			m.rates = append(m.rates, r)
		}
	}
}

// atLeast is a lower bound of the cost of holding a need.
func (m *market) atLeast(need []int64) (most deprovision.Price) {
	for _, r := range m.rates {
		most = max(most, r.of(need))
	}
	return most
}

// below is the market without sizes that cost at least the limit.
func (m *market) below(limit deprovision.Price) *market {
	n := slices.IndexFunc(m.sizes, func(k size) bool { return k.cost >= limit })
	if n < 0 {
		return m
	}
	return &market{sizes: m.sizes[:n]}
}

// highest are the dual prices at which a need costs most.
func (m *market) highest(need []int64) rates {
	scale := m.scale(need)
	goal := scaled(need, scale)
	var rows [][]float64
	var limits []float64
	for _, k := range m.sizes {
		rows, limits = append(rows, scaled(k.capacity, scale)), append(limits, float64(k.cost))
	}
	x, _ := maximize(goal, rows, limits)
	over := 1.0 // the largest violation by rounding
	for k, row := range rows {
		if sum := dot(row, x); sum > limits[k] {
			if limits[k] <= 0 {
				return make(rates, len(need))
			}
			over = max(over, sum/limits[k])
		}
	}
	r := make(rates, len(need))
	for d := range r {
		r[d] = x[d] / over / scale[d]
	}
	return r
}

// scale is the unit of each resource, so that bytes and cores have the same magnitude.
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

// maximize finds x >= 0 that maximizes goal x subject to rows x <= limits, with limits >= 0: the simplex method with the pivoting rule
// of R. G. Bland, which does not cycle. An unbounded variable remains 0.
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
