package lp

import (
	"math"
	"slices"
)

// Entry is a non-zero entry of a column.
type Entry struct {
	Row    int32
	Amount float64
}

// Program minimises price.x with cover rows sum >= demand and supply rows sum <= supply, x >= 0. It is not safe for concurrent
// use.
type Program struct {
	m      int
	supply []bool
	rhs    []float64
	// bigM is the cost of leaving one unit of a row uncovered.
	bigM   []float64
	cols   [][]Entry
	prices []float64

	basis   []int32 // by row: a column, or ^row for slack and artificial, or ^(m+row) for surplus
	where   []int32 // by column: its row in the basis, or -1
	inverse []float64
	x       []float64
	y       []float64
	dir     []float64
	pivots  int
	steps   int
	least   float64 // prices below count as this much when gains are compared, because such gains may be rounding errors
	fresh   bool    // y was computed since the last pivot
}

// New returns a programme without columns. Artificial columns of price bigM cover the rows until columns do; supply[row] marks
// a supply row.
func New(rhs []float64, supply []bool, bigM []float64) *Program {
	m := len(rhs)
	p := &Program{m: m, supply: supply, rhs: slices.Clone(rhs), bigM: bigM}
	p.inverse = make([]float64, m*m)
	p.x = make([]float64, m)
	p.y = make([]float64, m)
	p.dir = make([]float64, m)
	p.basis = make([]int32, m)
	p.least = tiny
	for _, c := range bigM {
		p.least = max(p.least, c*1e-6)
	}
	p.restart()
	return p
}

func (p *Program) restart() {
	clear(p.inverse)
	for i := range p.m {
		p.basis[i] = ^int32(i)
		p.inverse[i*p.m+i] = 1
	}
	for c := range p.where {
		p.where[c] = -1
	}
	copy(p.x, p.rhs)
}

// Add appends a column and returns its number. It keeps the entries without copying.
func (p *Program) Add(price float64, entries []Entry) int {
	p.cols = append(p.cols, entries)
	p.prices = append(p.prices, price)
	p.where = append(p.where, -1)
	return len(p.cols) - 1
}

// Steps returns the entries touched so far, which is the unit of work.
func (p *Program) Steps() int { return p.steps }

// Demand changes the right-hand side of a row. The next Solve starts from the last basis.
func (p *Program) Demand(row int, rhs float64) { p.rhs[row] = rhs }

// Reprice changes the price of a column. The next Solve starts from the last basis.
func (p *Program) Reprice(c int, price float64) { p.prices[c] = price }

// Duals returns the dual of each row in the last solution: not negative for cover rows, not positive for supply rows. It must
// not be modified.
func (p *Program) Duals() []float64 { return p.y }

// Amount returns how much of the column the last solution buys.
func (p *Program) Amount(c int) float64 {
	if at := p.where[c]; at >= 0 {
		return max(0, p.x[at])
	}
	return 0
}

// Objective returns the cost of the last solution, artificial columns included.
func (p *Program) Objective() float64 {
	sum := 0.0
	for i, b := range p.basis {
		sum += float64(p.price(b) * p.x[i])
	}
	return sum
}

func (p *Program) price(b int32) float64 {
	switch {
	case b >= 0:
		return p.prices[b]
	case int(^b) < p.m && !p.supply[^b]:
		return p.bigM[^b]
	}
	return 0
}

// Status says how a solution ended.
type Status int

// After Limit the solution is feasible, but its duals are not optimal. Duals must be checked in any case, because numbers are
// rounded.
const (
	Optimal Status = iota
	Limit          // the pivot limit was reached
)

// Solve pivots until no column improves or the limit is reached.
//
// The column with the largest gain per price enters. After more degenerate pivots in a row than there are rows, R. G. Bland's
// rule decides: the first improving variable enters and the first of a tie leaves, in one fixed order, so no basis repeats.
func (p *Program) Solve(limit int) Status {
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
		enter, gain, ok := p.entering(still > p.m)
		if !ok && p.fresh {
			return Optimal
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
	return Limit
}

// tiny counts as 0 for entries and prices near 1.
const tiny = 1e-9

// computeDuals computes y from the basis.
func (p *Program) computeDuals() {
	clear(p.y)
	for i, b := range p.basis {
		if c := p.price(b); c != 0 {
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

// entering returns the column with the largest gain relative to its price, and its gain. With bland it returns the first column
// with any gain.
func (p *Program) entering(bland bool) (enter int32, gain float64, found bool) {
	most := tiny
	for row := p.m - 1; row >= 0; row-- { // surpluses come first in the order, by descending row
		if b, g := ^int32(p.m+row), -p.y[row]; !p.supply[row] && g > tiny*p.bigM[row] && !p.inBasis(b) {
			if enter, gain, found = b, g, true; bland {
				return enter, gain, found
			}
		}
	}
	for row := p.m - 1; row >= 0; row-- { // then slacks and artificial columns
		if b, g := ^int32(row), p.y[row]-p.price(^int32(row)); g > tiny*p.bigM[row] && !p.inBasis(b) {
			if enter, gain, found = b, g, true; bland {
				return enter, gain, found
			}
		}
	}
	slack := found
	for c, entries := range p.cols {
		p.steps += len(entries)
		if p.where[c] >= 0 {
			continue
		}
		dualValue := 0.0
		for _, e := range entries {
			dualValue += float64(e.Amount * p.y[e.Row])
		}
		if g := (dualValue - p.prices[c]) / max(p.prices[c], p.least); g > most {
			most = g
			if enter, gain, found = int32(c), dualValue-p.prices[c], true; bland && !slack {
				break
			}
		}
	}
	return enter, gain, found
}

func (p *Program) inBasis(b int32) bool { return slices.Contains(p.basis, b) }

// direction computes the basis inverse times the column.
func (p *Program) direction(b int32) {
	clear(p.dir)
	add := func(row int, amount float64) {
		for i := range p.m {
			p.dir[i] += float64(amount * p.inverse[i*p.m+row])
		}
		p.steps += p.m
	}
	switch {
	case b >= 0:
		for _, e := range p.cols[b] {
			add(int(e.Row), e.Amount)
		}
	case int(^b) < p.m:
		add(int(^b), 1)
	default:
		add(int(^b)-p.m, -1)
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
	if old := p.basis[leave]; old >= 0 {
		p.where[old] = -1
	}
	if enter >= 0 {
		p.where[enter] = int32(leave)
	}
	p.basis[leave] = enter
	if p.pivots++; p.pivots%100 == 0 {
		p.refactor()
	}
}

// repair makes x non-negative after a change of demand, by dual pivots.
func (p *Program) repair(limit int) bool {
	for range limit {
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
		enter, ratio, found := int32(0), math.Inf(1), false
		try := func(b int32, alpha, reduced float64) {
			if alpha < -tiny {
				if q := max(0, reduced) / -alpha; q < ratio || q == ratio && b < enter {
					enter, ratio, found = b, q, true
				}
			}
		}
		for c, entries := range p.cols {
			if p.where[c] >= 0 {
				continue
			}
			alpha, reduced := 0.0, p.prices[c]
			for _, e := range entries {
				alpha += float64(e.Amount * row[e.Row])
				reduced -= float64(e.Amount * p.y[e.Row])
			}
			p.steps += len(entries)
			try(int32(c), alpha, reduced)
		}
		for i := range p.m {
			if !p.supply[i] && !p.inBasis(^int32(p.m+i)) {
				try(^int32(p.m+i), -row[i], p.y[i])
			}
			if !p.inBasis(^int32(i)) {
				try(^int32(i), row[i], p.price(^int32(i))-p.y[i])
			}
		}
		if !found {
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
	m := p.m
	a := make([]float64, m*m) // by row and place in the basis
	for j, b := range p.basis {
		switch {
		case b >= 0:
			for _, e := range p.cols[b] {
				a[int(e.Row)*m+j] += e.Amount
			}
		case int(^b) < m:
			a[int(^b)*m+j] = 1
		default:
			a[(int(^b)-m)*m+j] = -1
		}
	}
	if !invert(a, p.inverse, m) {
		p.restart()
		return
	}
	p.steps += m * m * m / 4
	p.amounts()
}

// amounts computes x from the basis.
func (p *Program) amounts() {
	for i := range p.m {
		sum := 0.0
		for k, v := range p.inverse[i*p.m : (i+1)*p.m] {
			sum += float64(v * p.rhs[k])
		}
		p.x[i] = sum
	}
	p.steps += p.m * p.m
}

// invert writes the inverse of a to out, by Gauss-Jordan elimination with partial pivoting. It destroys a. It reports whether a
// is regular.
func invert(a, out []float64, m int) bool {
	clear(out)
	for i := range m {
		out[i*m+i] = 1
	}
	for c := range m {
		best := c
		for i := c + 1; i < m; i++ {
			if math.Abs(a[i*m+c]) > math.Abs(a[best*m+c]) {
				best = i
			}
		}
		d := a[best*m+c]
		if math.Abs(d) < 1e-12 {
			return false
		}
		if best != c {
			swapRows(a, m, best, c)
			swapRows(out, m, best, c)
		}
		ra, ro := a[c*m:(c+1)*m], out[c*m:(c+1)*m]
		for k := range m {
			ra[k] /= d
			ro[k] /= d
		}
		for i := range m {
			f := a[i*m+c]
			if i == c || f == 0 {
				continue
			}
			xa, xo := a[i*m:(i+1)*m], out[i*m:(i+1)*m]
			for k := range m {
				xa[k] -= float64(f * ra[k])
				xo[k] -= float64(f * ro[k])
			}
		}
	}
	return true
}

func swapRows(a []float64, m, i, j int) {
	for k := range m {
		a[i*m+k], a[j*m+k] = a[j*m+k], a[i*m+k]
	}
}
