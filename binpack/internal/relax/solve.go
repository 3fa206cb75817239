package relax

import (
	"math"
	"slices"
)

// Solution is a packing and what was learnt on the way.
type Solution struct {
	// Columns are bins with their contents; they may leave out what counted bin types alone can hold.
	Columns []Column
	// Proof is the best certificate.
	Proof Proof
	// Least is a price that no packing goes below, by a search through Nodes sets and fillings in which the classes were
	// worth Value; 0 where none was made.
	Least int64
	Nodes int
	Duals []int64
}

// Progress is told how far a solve is: a price below which nothing is, and the price of what is known.
type Progress func(bound, price float64)

// Task says what Solve is to do.
type Task struct {
	// Grain is what every price is a multiple of.
	Grain int64
	// Enough is a gap, as a part of the price, at which nothing more is tried.
	Enough float64
	Report Progress
}

// Solve looks for the cheapest packing and for a proof of how cheap any can be, one way after the other, each with its share
// of one budget, for as long as the gap is open: a greedy filling; an exact search; column
// generation and dives; large-neighbourhood search over bins; and the exact search again.
func (m *Model) Solve(t Task, b *Budget) Solution {
	s := solver{m: m, Task: t, b: b, total: b.Left}
	duals, proof := m.CertifyCoverage(b)
	s.coverage = duals
	s.prove(proof)
	part := b.Split(s.total / countedPart)
	counted, rest := m.fillCounted(duals, part)
	b.Return(part)
	greedy := b.Split(s.total / greedyPart)
	s.take(with(counted, rest.Greedy(greedy)))
	b.Return(greedy)
	if !s.closed() {
		s.exact(duals, s.total/exactFirst)
	}
	if s.generates() && !s.closed() {
		duals = s.columns()
	}
	if !s.closed() {
		part := b.Split(b.Left * improveTenths / 10)
		s.take(m.Improve(s.Columns, duals, float64(s.bound()), part))
		b.Return(part)
	}
	if !s.closed() {
		s.exact(duals, b.Left)
	}
	return s.Solution
}

// Bound looks for a proof alone, in the order of Solve: column generation, and an exact search that refutes
// what costs less than the price.
func (m *Model) Bound(price, grain int64, b *Budget) Solution {
	s := solver{m: m, Task: Task{Grain: grain}, b: b, total: b.Left}
	duals, proof := m.CertifyCoverage(b)
	s.coverage = duals
	s.prove(proof)
	open := func() bool { return b.Left > 0 && s.bound() < price }
	if open() && s.generates() {
		duals = s.generate(NewMaster(m))
	}
	s.prove(m.lift(duals, s.Proof, b))
	s.prove(m.lift(s.coverage, s.Proof, b))
	if open() {
		s.refute(duals, price, b.Left)
	}
	return s.Solution
}

// solver is the state of a solve.
type solver struct {
	Task
	Solution
	m      *Model
	b      *Budget
	total  int
	search *Search
	// coverage is what classes are worth by the prices of resources.
	coverage []float64
}

// take keeps the packing if it holds more than the one before, or as much for less.
func (s *solver) take(columns []Column) {
	s.b.Take(len(columns))
	if columns != nil && (s.Columns == nil || cheaper(s.m, columns, s.Columns)) {
		s.Columns = columns
		s.report()
	}
}

// with is the columns after those of counted bin types, nil where there are none of either.
func with(counted, columns []Column) []Column {
	return append(slices.Clip(counted), columns...)
}

// cheaper reports whether a is the better packing: it leaves out fewer items or, where that is the same, costs less.
func cheaper(m *Model, a, b []Column) bool {
	if d := m.leftOut(a) - m.leftOut(b); d != 0 {
		return d < 0
	}
	return m.Cost(a) < m.Cost(b)
}

func (s *solver) prove(p Proof) {
	if p.Price > s.Proof.Price {
		s.Proof = p
		s.report()
	}
}

func (s *solver) report() {
	if s.Report != nil && s.Columns != nil {
		s.Report(float64(s.bound()), s.m.Cost(s.Columns))
	}
}

// bound is the best that is proved, rounded up to a sum of prices.
func (s *solver) bound() int64 {
	p, g := max(s.Proof.Price, s.Least), max(s.Grain, 1)
	if p > math.MaxInt64-g {
		return p
	}
	return (p + g - 1) / g * g
}

// closed reports whether there is nothing left to do.
func (s *solver) closed() bool {
	return s.b.Left <= 0 || s.Columns != nil && !s.m.Uncovered(s.Columns) && float64(s.bound()) >= s.m.Cost(s.Columns)*(1-max(s.Enough, 1e-12))
}

// generates reports whether column generation is likely to come to an end within its part of the budget: the programme has a
// row for each class, a pivot touches its square, and there are the more pivots the more rows there are and the more items a
// bin of the best packing so far holds; a few times all bin types are looked through for patterns.
func (s *solver) generates() bool {
	rows, fill := float64(len(s.m.Classes)+len(s.m.Supply)), s.m.perBin()
	if len(s.Columns) > 0 { // the largest bin type may not be the one to buy
		fill = min(fill, float64(s.m.items())/float64(len(s.Columns)))
	}
	if fill = max(fill, 1); s.Columns == nil || float64(s.bound()) < s.m.Cost(s.Columns)*(1-wideGap) { // other ways have not come near
		fill = min(fill, mostPerBin)
	}
	pricing := float64(len(s.m.BinTypes) * len(s.m.Classes) * s.m.Dims * pricingSteps)
	return float64(rows*rows*rows*pivotsPerRow*fill)+pricing < float64(s.total)/generatePart
}

// columns is column generation, its proof, and dives; it gives the values of the programme.
func (s *solver) columns() []float64 {
	m := s.m
	master := NewMaster(m)
	for _, c := range s.Columns {
		master.Add(c)
	}
	duals := s.generate(master)
	for variation := range dives {
		if s.closed() {
			break
		}
		before := s.b.Left
		part := s.b.Split(before / 2)
		s.take(m.finish(flat(master.Dive(variation, part)), part))
		s.b.Return(part)
		if spent := before - s.b.Left; s.b.Left < 4*spent {
			break
		}
	}
	return duals
}

// generate solves the programme over fillings and proves what it can of that.
func (s *solver) generate(master *Master) []float64 {
	m := s.m
	part := s.b.Split(s.total / generatePart)
	master.Price(s.coverage, part)
	for master.Generate(400, part); part.Left > 0 && master.Deepen(20_000, part); {
		master.Generate(400, part)
	}
	s.b.Return(part)
	part = s.b.Split(s.total / provePart)
	s.prove(m.proof(master, sharp, patient, part))
	s.b.Return(part)
	return master.Duals()
}

// searched is the part of the steps that an exact search is worth: the more items there are, the more sets cost nearly the
// same.
func (s *solver) searched(steps int) int {
	return int(float64(steps) * exactItems / float64(exactItems+s.m.items()))
}

// exact searches through sets of bins in so many steps, fewer the more items there are.
func (s *solver) exact(duals []float64, steps int) {
	part := s.b.Split(s.searched(steps))
	defer func() { s.b.Return(part) }()
	if !s.begin(duals, part) {
		return
	}
	least, found := s.search.Run(s.m.Cost(s.Columns), part)
	s.Nodes = s.search.Nodes
	s.Least = max(s.Least, int64(math.Ceil(least*(1-1e-12))))
	if found != nil {
		s.take(found)
	}
	s.report()
}

// begin prepares the search, if that fits into the budget.
func (s *solver) begin(duals []float64, b *Budget) bool {
	if s.search == nil {
		if cells*len(s.m.BinTypes)*(s.m.Dims+3)/4 > b.Left {
			return false
		}
		s.Duals = make([]int64, len(duals))
		whole := make([]float64, len(duals))
		for i, v := range duals {
			s.Duals[i] = int64(max(0, min(v, Largest)))
			whole[i] = float64(s.Duals[i])
		}
		s.search = NewSearch(s.m, whole, b)
	}
	return s.search != nil
}

// refute is exact where a packing for the price is known: it tries to pack nothing.
func (s *solver) refute(duals []float64, price int64, steps int) {
	part := s.b.Split(s.searched(steps))
	if s.begin(duals, part) {
		least := s.search.Refute(float64(price), part)
		s.Nodes, s.Least = s.search.Nodes, int64(math.Ceil(least*(1-1e-12)))
	}
	s.b.Return(part)
}

func flat(batches []Batch) []Column {
	var out []Column
	for _, b := range batches {
		out = append(out, slices.Repeat([]Column{b.Column}, int(b.Copies))...)
	}
	return out
}
