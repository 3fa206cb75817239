package lp

import (
	"math"
	"slices"
	"sync/atomic"
)

// Entry is a non-zero entry of a column.
type Entry struct {
	Row    int32
	Amount float64
}

// Program minimises price.x with cover rows sum >= demand and supply rows sum <= supply, x >= 0. It
// is not safe for concurrent use.
type Program struct {
	// Stop, if not nil, ends Solve early when it is set.
	Stop *atomic.Bool

	m   int
	rhs []float64
	// bigM is the cost of leaving one unit of a row uncovered.
	bigM []float64
	// entries are those of the logical columns, two for each row, and then those of Add, one column
	// after the other. ends says where each column ends.
	entries []Entry
	ends    []int32
	prices  []float64

	basis   []int32 // by row: a column
	where   []int32 // by column: its row in the basis, or -1
	inverse []float64
	x       []float64
	y       []float64
	dir     []float64
	pivots  int
	steps   int
	least   float64 // lower prices count as this much in comparisons of gains, which may be rounding errors
	fresh   bool    // y was computed since the last pivot
}

// New returns a programme without columns. Artificial columns of price bigM cover the rows until
// columns do; supply[row] marks a supply row.
func New(rhs []float64, supply []bool, bigM []float64) *Program {
	m := len(rhs)
	p := &Program{
		m: m, rhs: slices.Clone(rhs), bigM: bigM, least: tiny, basis: make([]int32, m), inverse: make([]float64, m*m),
		x: make([]float64, m), y: make([]float64, m), dir: make([]float64, m),
	}
	p.Grow(2*m, 2*m)
	for row := m - 1; row >= 0; row-- {
		surplus := -1.0
		if supply[row] { // it has none
			surplus = 0
		}
		p.Add(0, []Entry{{int32(row), surplus}})
	}
	for row := m - 1; row >= 0; row-- { // slacks and artificial columns
		price := bigM[row]
		if supply[row] {
			price = 0
		}
		p.Add(price, []Entry{{int32(row), 1}})
		p.least = max(p.least, bigM[row]*1e-6)
	}
	p.restart()
	return p
}

func (p *Program) restart() {
	clear(p.inverse)
	for c := range p.where {
		p.where[c] = -1
	}
	for i := range p.m {
		c := 2*p.m - 1 - i // the slack or artificial column of the row
		p.basis[i], p.where[c] = int32(c), int32(i)
		p.inverse[i*p.m+i] = 1
	}
	copy(p.x, p.rhs)
}

// Grow makes room for that many more columns and entries.
func (p *Program) Grow(columns, entries int) {
	p.entries, p.ends = slices.Grow(p.entries, entries), slices.Grow(p.ends, columns)
	p.prices, p.where = slices.Grow(p.prices, columns), slices.Grow(p.where, columns)
}

// column returns the entries of a column.
func (p *Program) column(c int32) []Entry {
	if c == 0 {
		return p.entries[:p.ends[0]]
	}
	return p.entries[p.ends[c-1]:p.ends[c]]
}

// Add appends a column and returns its number.
func (p *Program) Add(price float64, entries []Entry) int {
	p.entries = append(p.entries, entries...)
	p.ends = append(p.ends, int32(len(p.entries)))
	p.prices = append(p.prices, price)
	p.where = append(p.where, -1)
	return len(p.ends) - 1 - 2*p.m
}

// Steps returns the work since the last call: the entries touched.
func (p *Program) Steps() int {
	n := p.steps
	p.steps = 0
	return n
}

// Demand changes the right-hand side of a row. The next Solve starts from the last basis.
func (p *Program) Demand(row int, rhs float64) { p.rhs[row] = rhs }

// Reprice changes the price of a column. The next Solve starts from the last basis.
func (p *Program) Reprice(c int, price float64) { p.prices[2*p.m+c] = price }

// Duals returns the dual of each row in the last solution: not negative for cover rows, not
// positive for supply rows. It must not be modified.
func (p *Program) Duals() []float64 { return p.y }

// Amount returns how much of the column the last solution buys.
func (p *Program) Amount(c int) float64 {
	if at := p.where[2*p.m+c]; at >= 0 {
		return max(0, p.x[at])
	}
	return 0
}

// Objective returns the cost of the last solution, artificial columns included.
func (p *Program) Objective() float64 {
	sum := 0.0
	for i, b := range p.basis {
		sum += float64(p.prices[b] * p.x[i])
	}
	return sum
}

// Solve pivots until no column improves or the limit is reached; it reports which. After the limit
// the solution is feasible, but its duals are not optimal. Duals must always be checked, because
// numbers are rounded.
//
// The column with the largest gain per price enters. After more degenerate pivots in a row than
// there are rows, R. G. Bland's rule decides: the first improving variable enters and the first of
// a tie leaves, in one fixed order, so no basis repeats.
func (p *Program) Solve(limit int) (optimal bool) {
	p.amounts()
	if slices.Min(append(p.x, 0)) < 0 && !p.repair(limit) {
		p.restart()
	}
	for i := range p.x {
		p.x[i] = max(0, p.x[i])
	}
	p.computeDuals()
	still := 0 // degenerate pivots in a row
	for range limit {
		if p.Stop != nil && p.Stop.Load() {
			break
		}
		enter, gain, ok := p.entering(still > p.m)
		if !ok && p.fresh {
			return true
		}
		if !ok { // y may have accumulated rounding errors
			p.computeDuals()
			continue
		}
		p.direction(enter)
		leave := p.leaving()
		if leave < 0 {
			break // prices are not negative, so only rounding makes it unbounded
		}
		if still++; p.x[leave] > tiny {
			still = 0
		}
		p.reprice(leave, gain)
		p.pivot(enter, leave)
	}
	p.computeDuals()
	return false
}

// tiny counts as 0 for entries and prices near 1.
const tiny = 1e-9

// computeDuals computes y from the basis.
func (p *Program) computeDuals() {
	clear(p.y)
	for i, b := range p.basis {
		if c := p.prices[b]; c != 0 {
			for k, v := range p.inverse[i*p.m : (i+1)*p.m] {
				p.y[k] += float64(c * v)
			}
		}
	}
	p.steps += p.m * p.m
	p.fresh = true
}

// reprice updates y for the coming pivot, after which the entering column has reduced cost 0.
func (p *Program) reprice(leave int, gain float64) {
	by := gain / p.dir[leave]
	for k, v := range p.inverse[leave*p.m : (leave+1)*p.m] {
		p.y[k] -= float64(by * v)
	}
	p.steps += p.m
	p.fresh = false
}

// entering returns the column with the largest gain relative to its price, and its gain. With bland
// it returns the first column with any gain.
func (p *Program) entering(bland bool) (enter int32, gain float64, found bool) {
	for c, e := range p.entries[:2*p.m] { // the last logical column, of one entry, that gains enters if no other does
		if g := float64(e.Amount*p.y[e.Row]) - p.prices[c]; g > tiny*p.bigM[e.Row] && p.where[c] < 0 {
			if enter, gain, found = int32(c), g, true; bland {
				return enter, gain, found
			}
		}
	}
	most := tiny
	start := int32(2 * p.m)
	for c := 2 * p.m; c < len(p.ends); c++ {
		entries := p.entries[start:p.ends[c]]
		start = p.ends[c]
		p.steps += len(entries)
		if p.where[c] >= 0 {
			continue
		}
		dualValue := 0.0
		for _, e := range entries {
			dualValue += float64(e.Amount * p.y[e.Row])
		}
		if dualValue <= p.prices[c] { // most columns; dividing takes longer than everything else here
			continue
		}
		if g := (dualValue - p.prices[c]) / max(p.prices[c], p.least); g > most {
			most = g
			if enter, gain, found = int32(c), dualValue-p.prices[c], true; bland {
				break
			}
		}
	}
	return enter, gain, found
}

// direction computes the basis inverse times the column.
func (p *Program) direction(c int32) {
	clear(p.dir)
	for _, e := range p.column(c) {
		for i := range p.m {
			p.dir[i] += float64(e.Amount * p.inverse[i*p.m+int(e.Row)])
		}
		p.steps += p.m
	}
}

func (p *Program) leaving() int {
	leave, ratio := -1, math.Inf(1)
	for i, d := range p.dir {
		if d <= tiny {
			continue
		}
		if q := p.x[i] / d; q < ratio || q == ratio && p.basis[i] < p.basis[leave] {
			leave, ratio = i, q
		}
	}
	return leave
}

func (p *Program) pivot(enter int32, leave int) {
	m := p.m
	d := p.dir[leave]
	ratio := p.x[leave] / d
	for i := range m {
		if i != leave {
			if p.x[i] -= float64(ratio * p.dir[i]); p.x[i] < 0 && p.x[i] > -tiny {
				p.x[i] = 0
			}
		}
	}
	p.x[leave] = ratio
	pivot := p.inverse[leave*m : (leave+1)*m]
	for k := range pivot {
		pivot[k] /= d
	}
	for i := range m {
		if f := p.dir[i]; i != leave && f != 0 {
			row := p.inverse[i*m : (i+1)*m]
			for k, v := range pivot {
				row[k] -= float64(f * v)
			}
		}
	}
	p.steps += m * m
	p.where[p.basis[leave]] = -1
	p.basis[leave], p.where[enter] = enter, int32(leave)
	if p.pivots++; p.pivots%100 == 0 {
		p.refactor()
	}
}

// repair makes x non-negative after a change of demand, by dual pivots.
func (p *Program) repair(limit int) bool {
	for range limit {
		if p.Stop != nil && p.Stop.Load() {
			return false
		}
		leave, low := -1, -tiny
		for i, v := range p.x {
			if v < low {
				leave, low = i, v
			}
		}
		if leave < 0 {
			return true
		}
		p.computeDuals()
		row := p.inverse[leave*p.m : (leave+1)*p.m]
		enter, ratio := int32(-1), math.Inf(1)
		for c := range p.ends {
			entries := p.column(int32(c))
			if p.where[c] >= 0 {
				continue
			}
			alpha, reduced := 0.0, p.prices[c]
			for _, e := range entries {
				alpha += float64(e.Amount * row[e.Row])
				reduced -= float64(e.Amount * p.y[e.Row])
			}
			if c >= 2*p.m {
				p.steps += len(entries)
			}
			if q := max(0, reduced) / -alpha; alpha < -tiny && q < ratio {
				enter, ratio = int32(c), q
			}
		}
		if enter < 0 {
			return false
		}
		p.direction(enter)
		if math.Abs(p.dir[leave]) < tiny {
			return false
		}
		p.pivot(enter, leave)
	}
	return false
}

// refactor recomputes the inverse and x, because pivots accumulate rounding errors.
func (p *Program) refactor() {
	m, w := p.m, 2*p.m
	a := make([]float64, m*w) // the basis, by row and place, and beside it the unit matrix
	for i, b := range p.basis {
		for _, e := range p.column(b) {
			a[int(e.Row)*w+i] += e.Amount
		}
		a[i*w+m+i] = 1
	}
	if !eliminate(a, m) {
		p.restart()
		return
	}
	for i := range m {
		copy(p.inverse[i*m:(i+1)*m], a[i*w+m:])
	}
	p.steps += m * m * m / 4
	p.amounts()
}

// amounts computes x from the basis.
func (p *Program) amounts() {
	for i := range p.m {
		p.x[i] = dot(p.inverse[i*p.m:(i+1)*p.m], p.rhs)
	}
	p.steps += p.m * p.m
}

// eliminate turns the left half of a matrix of m rows into the unit matrix, by Gauss-Jordan
// elimination with partial pivoting, which turns a unit matrix on the right into the inverse. It
// reports whether the left half is regular.
func eliminate(a []float64, m int) bool {
	w := 2 * m
	for c := range m {
		best := c
		for i := c + 1; i < m; i++ {
			if math.Abs(a[i*w+c]) > math.Abs(a[best*w+c]) {
				best = i
			}
		}
		d := a[best*w+c]
		if math.Abs(d) < 1e-12 {
			return false
		}
		pivot := a[c*w : (c+1)*w]
		for k := range pivot {
			pivot[k], a[best*w+k] = a[best*w+k], pivot[k]
			pivot[k] /= d
		}
		for i := range m {
			f := a[i*w+c]
			if i == c || f == 0 {
				continue
			}
			for k, v := range pivot {
				a[i*w+k] -= float64(f * v)
			}
		}
	}
	return true
}
