package relax

import (
	"math"
	"slices"
)

// Solution is a packing with its bound.
type Solution struct {
	// Columns are bins with their contents. They may leave items unplaced that only counted bin
	// types can hold.
	Columns []Column
	// Proof is the best certificate.
	Proof Proof
	// Least is a lower bound by an exact search of Nodes sets and fillings, with Duals as a
	// surrogate; 0 if there was none.
	Least int64
	Nodes int
	Duals []int64
	// Worth holds the dual of each class: what the best programme over patterns pays for one item,
	// or, without such a programme, its resources.
	Worth []float64
	// Closed says that the packing is as cheap as the bound, up to Enough.
	Closed bool
}

// Task holds the options of Solve.
type Task struct {
	// Enough is the relative gap at which Solve stops.
	Enough float64
	// Known is the cost of a packing of all items from elsewhere; 0 for none. What costs at least
	// as much is not searched.
	Known float64
	// PlanOnly leaves out what only makes the bound better.
	PlanOnly bool
	// Report, if not nil, receives a lower bound and the price of the best packing so far.
	Report func(bound, price float64)
}

// Solve looks for the cheapest packing and for a proof of its quality, while the gap is open and
// the budget lasts: a greedy filling, an exact search, column generation with dives, and the exact
// search again.
func (m *Model) Solve(t Task, b *Budget) Solution {
	s := &solver{Task: t, m: m, proofs: b.Split(b.Left / provePart), b: b, total: b.Left}
	duals := s.start()
	part := b.Split(s.total / countedPart)
	counted, rest := m.fillCounted(duals, part)
	b.Return(part)
	greedy := b.Split(s.total / greedyPart)
	s.take(slices.Concat(counted, rest.Greedy(s.groups, greedy)))
	b.Return(greedy)
	if !s.closed() {
		s.exact(duals, s.total/exactFirst, s.pack)
	}
	var master *Master
	if s.generates() && !s.closed() {
		master = NewMaster(m)
		duals = s.columns(master)
	}
	if !s.PlanOnly {
		if master != nil {
			s.proveWhole()
		}
		s.prove(m.priced().lift(m.inPrice(duals), s.Proof, s.proofs))
		s.prove(m.priced().lift(m.inPrice(s.coverage), s.Proof, s.proofs))
	}
	if !s.closed() {
		s.exact(duals, b.Left/2, s.pack)
	}
	s.Worth, s.Closed = m.inPrice(duals), s.met()
	return s.Solution
}

// start proves a bound by resource duals, which it returns.
func (s *solver) start() []float64 {
	s.groups = s.m.typeGroups()
	duals, proof := s.groups.certify(s.b)
	s.coverage = duals
	s.prove(proof)
	if s.PlanOnly {
		return duals
	}
	s.proveWhole()
	return duals
}

// proveWhole looks for a better proof than the best one, by whole bins.
func (s *solver) proveWhole() {
	m, duals := s.m.priced(), make([]float64, len(s.m.Classes))
	for i, v := range s.Proof.Duals {
		duals[i] = float64(v)
	}
	if duals = m.forWholeBins(duals, s.proofs); duals != nil {
		s.prove(m.certify(duals, 1, examination{Watch: NewWatch(s.b.Stop, 0), search: s.Proof.Searched, whole: true}))
	}
}

// solver is the state of Solve.
type solver struct {
	Task
	Solution
	m      *Model
	b      *Budget // of the packing
	proofs *Budget // of what only makes the bound better: the packing is the same without it
	total  int
	search *Search
	groups *typeGroups // refined
	// coverage holds the duals of classes by resource duals.
	coverage []float64
}

// take keeps the packing if it is better than the one so far.
func (s *solver) take(columns []Column) {
	s.b.Take(len(columns))
	if columns != nil && (s.Columns == nil || cheaper(s.m, columns, s.Columns)) {
		s.Columns = columns
		s.report()
	}
}

// cheaper reports whether a is the better packing: it leaves fewer items unplaced, or as many and
// costs less.
func cheaper(m *Model, a, b []Column) bool {
	if d := m.Unplaced(a) - m.Unplaced(b); d != 0 {
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
		s.Report(float64(s.bound()), s.m.Cost(s.Columns)*s.m.unit())
	}
}

// bound returns the best proved bound, rounded up to a multiple of Grain.
func (s *solver) bound() int64 { return RoundUp(max(s.Proof.Price, s.Least), s.m.Grain) }

// closed reports whether the gap is closed or the budget is used up.
func (s *solver) closed() bool { return s.b.Left <= 0 || s.met() }

// met reports whether some packing is as cheap as the bound.
func (s *solver) met() bool {
	return float64(s.bound()) >= s.incumbent()*s.m.unit()*(1-max(s.Enough, 1e-12))
}

// incumbent returns the lowest cost of a packing of all items so far, in units; infinite if there
// is none.
func (s *solver) incumbent() float64 {
	cost := math.Inf(1)
	if s.Known > 0 {
		cost = s.Known / s.m.unit()
	}
	if s.Columns != nil && s.m.Unplaced(s.Columns) == 0 {
		cost = min(cost, s.m.Cost(s.Columns))
	}
	return cost
}

// generates reports whether column generation will probably end within the whole budget. It gets
// only a part of that budget, but it is worth much even if it does not end within that part: if the
// estimate was limited to that part, plans of 20,000 pods with spreads over nodes were 12% dearer.
// The programme has a row for each class, and a pivot costs the square of the rows. The number of
// pivots grows with the rows and with the items in a bin of the best packing. A few pricing rounds
// over all bin types are added.
func (s *solver) generates() bool {
	rows, fill := float64(len(s.m.Classes)+len(s.m.Supply)), s.m.perBin()
	if len(s.Columns) > 0 { // the largest bin type may not be the best
		fill = min(fill, float64(s.m.items())/float64(len(s.Columns)))
	}
	fill = min(max(fill, 1), mostPerBin)
	pricing := float64(len(s.m.BinTypes) * len(s.m.Classes) * s.m.Dims * pricingSteps)
	return float64(rows*rows*rows*pivotsPerRow*fill)+pricing < float64(s.total)
}

// columns runs column generation, proves what its duals are worth, and dives. The patterns that the
// proof finds missing also improve the dives. So the proof is part of the packing even if no bound
// is wanted: without it, plans of 5,000 pods with spreads over nodes were 5% dearer. columns
// returns the duals of the programme.
func (s *solver) columns(master *Master) []float64 {
	m := s.m
	for _, c := range s.Columns {
		master.Add(c)
	}
	part := s.b.Split(s.total / generatePart)
	master.Price(s.coverage, part)
	for master.Generate(400, part); part.Left > 0 && master.Deepen(20_000, part); {
		master.Generate(400, part)
	}
	s.b.Return(part)
	part = s.b.Split(s.total / convergePart)
	s.prove(m.proof(master, sharp, patient, part))
	s.b.Return(part)
	duals := master.Duals()
	for variation := range dives {
		if s.closed() {
			break
		}
		before := s.b.Left
		part := s.b.Split(before / 2)
		columns := master.Dive(variation, part)
		s.take(append(columns, m.rest(columns).Greedy(s.groups, part)...))
		s.b.Return(part)
		if spent := before - s.b.Left; s.b.Left < 4*spent {
			break
		}
	}
	return duals
}

// exact searches sets of bins within part of the steps. With more items it gets fewer steps,
// because more sets then cost nearly the same. search returns the lower bound that it proves. exact
// is skipped if the budget does not allow its preparation.
func (s *solver) exact(duals []float64, steps int, search func(part *Budget) (least float64)) {
	part := s.b.Split(int(float64(steps) * exactItems / float64(exactItems+s.m.items())))
	defer func() { s.b.Return(part) }()
	if s.search == nil && cells*len(s.m.BinTypes)*(s.m.Dims+3)/4 <= part.Left {
		s.Duals = whole(s.m.inPrice(duals))
		s.search = NewSearch(s.m, s.Duals, part)
	}
	if s.search == nil {
		return
	}
	least := search(part)
	s.Nodes, s.Least = s.search.Nodes, max(s.Least, s.m.Proved(least))
	s.report()
}

// pack searches sets that cost less than the packing so far, and takes what it finds.
func (s *solver) pack(part *Budget) float64 {
	cost := s.incumbent()
	if math.IsInf(cost, 1) {
		cost = s.m.Cost(s.Columns)
	}
	least, found := s.search.Run(cost, part)
	s.take(found)
	return least
}
