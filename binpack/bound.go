package binpack

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/few"
	"github.com/joinery-sdk/joinery/binpack/internal/lp"
	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// BoundKind says which argument proves a [Bound].
type BoundKind string

// The kinds of bounds, weakest first. In all of them something is worth so much that no type can be filled with more
// worth than its price; then no plan costs less than what its items are worth.
const (
	// CoverageLP prices resources: it looks at their sums only.
	CoverageLP BoundKind = "coverage-lp"
	// AssignmentLP prices items, each by the types that it can go to; bins are filled with fractions of items.
	AssignmentLP BoundKind = "assignment-lp"
	// Configuration prices items, and bins are filled with whole ones.
	Configuration BoundKind = "configuration"
	// Exhaustive looks through all sets of bins that cost less than the bound, or through all that one bin after the other may leave:
	// nothing cheaper holds everything.
	Exhaustive BoundKind = "exhaustive"
)

// Bound is an objective below which no plan can place the same items, with the certificate that proves it. Budgets and
// weights of pools are not part of the argument, so it also holds for plans that ignore them.
type Bound struct {
	Price Price
	Kind  BoundKind
	// Value is the certificate of [CoverageLP]: what one unit of each resource is worth, in the unit of [Price]; each
	// number is meant at its exact binary value. No type may offer capacity for less than it is worth. See
	// [Instance.VerifyBound].
	Value []float64
	// Items is the certificate of the other kinds: what one of each item is worth, by position in Problem.Items. For
	// Exhaustive it is one more measure, beside the resources, by which sets of bins are found too small.
	Items []Price
}

// exact is a precision in bits at which sums of products of a certificate do not round; where they would, they round
// to the safe side.
const exact = 1024

// VerifyBound checks the certificate of a plan in one pass over types and items, in exact or safely rounded arithmetic:
// that no type that costs less than the bound can be filled with more worth than its price, and that what the placed items
// are worth, less what existing nodes and counted reservations give away, rounded up to a sum that prices can come to, is at
// least the bound. For [Configuration] the pass holds a search
// over the fillings of each type, of limited length; for [Exhaustive] the search is done again.
func (in *Instance) VerifyBound(plan *Plan) error {
	b := plan.Bound
	if b.Price > plan.Objective {
		return fmt.Errorf("binpack: bound %d is above the objective %d", b.Price, plan.Objective)
	}
	var proved Price
	var err error
	switch b.Kind {
	case CoverageLP:
		proved, err = in.verifyCoverage(plan)
	case AssignmentLP, Configuration, Exhaustive:
		proved, err = in.verifyItems(plan)
	default:
		return fmt.Errorf("binpack: unknown kind of bound %q", b.Kind)
	}
	if err != nil {
		return err
	}
	if proved = in.roundUp(proved); proved < b.Price {
		return fmt.Errorf("binpack: the certificate proves %d, the bound claims %d", proved, b.Price)
	}
	return nil
}

func (in *Instance) verifyCoverage(plan *Plan) (Price, error) {
	value := plan.Bound.Value
	if len(value) != in.dims {
		return 0, fmt.Errorf("binpack: certificate has %d values, want %d", len(value), in.dims)
	}
	for _, v := range value {
		if !(v >= 0) || math.IsInf(v, 0) {
			return 0, errors.New("binpack: certificate has a value that is negative or no number")
		}
	}
	for t, typ := range in.problem.Types {
		if len(typ.Offerings) == 0 || in.minPrice[t] >= plan.Bound.Price { // no plan with such a bin costs less
			continue
		}
		if worth(in.capacityOf(int32(t)), value).Cmp(new(big.Float).SetInt64(int64(in.minPrice[t]))) > 0 {
			return 0, fmt.Errorf("binpack: type %q is worth more than its price", typ.Name)
		}
	}
	return in.proved(in.netDemand(plan.Layout), value), nil
}

func (in *Instance) verifyItems(plan *Plan) (Price, error) {
	b := &plan.Bound
	if len(b.Items) != len(in.problem.Items) {
		return 0, fmt.Errorf("binpack: certificate has %d values, want %d", len(b.Items), len(in.problem.Items))
	}
	r, ok := in.relaxed(in.placed(plan.Layout), -1, true, b.Price, math.MaxInt) // what costs more by itself needs no check
	if !ok || r.dearest() > relax.Largest {
		return 0, errors.New("binpack: the certificate is of a kind that does not suit the problem")
	}
	value := make([]int64, len(r.model.Classes))
	for c, members := range r.members {
		value[c] = math.MaxInt64
		for _, i := range members {
			value[c] = min(value[c], int64(b.Items[i]))
		}
	}
	if b.Kind == Exhaustive {
		return in.verifySets(r, value, b.Price)
	}
	proved, searched, err := r.model.Verify(value)
	if err != nil {
		return 0, fmt.Errorf("binpack: certificate: %w", err)
	}
	if searched && b.Kind == AssignmentLP {
		return 0, errors.New("binpack: certificate: some type can be filled with fractions that are worth more than its price")
	}
	return Price(proved), nil
}

// verifySets searches again, without trying to pack.
func (in *Instance) verifySets(r *relaxation, value []int64, claim Price) (Price, error) {
	if len(r.model.Supply) > 0 {
		return 0, errors.New("binpack: the certificate is of a kind that does not suit the problem")
	}
	for _, v := range value {
		if v < 0 || v > relax.Largest {
			return 0, fmt.Errorf("binpack: certificate: value %d is out of range", v)
		}
	}
	return Price(few.Refuted(r.model, value, int64(claim), verifySteps)), nil
}

// verifySteps is how long a search through sets of bins may take when it is checked, more than it is ever given to find.
const verifySteps = 4_000_000_000

// worth is rounded up, if at all.
func worth(v []int64, value []float64) *big.Float {
	sum := new(big.Float).SetPrec(exact).SetMode(big.ToPositiveInf)
	term := new(big.Float).SetPrec(exact).SetMode(big.ToPositiveInf)
	for r := range v {
		if v[r] > 0 && value[r] > 0 {
			sum.Add(sum, term.Mul(new(big.Float).SetInt64(v[r]), big.NewFloat(value[r])))
		}
	}
	return sum
}

// wide is a sum of products that are not negative. It has room for as many of them as memory has.
type wide struct{ hi, lo uint64 }

func (w *wide) add(a, b uint64) {
	hi, lo := bits.Mul64(a, b)
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, lo, 0)
	w.hi, _ = bits.Add64(w.hi, hi, carry)
}

func (w *wide) number() *big.Int {
	n := new(big.Int).SetUint64(w.hi)
	return n.Lsh(n, 64).Add(n, new(big.Int).SetUint64(w.lo))
}

// netDemand is the sum of all placed items less what existing nodes have free, by resource; it may be negative.
func (in *Instance) netDemand(l Layout) []*big.Int {
	asked, free := make([]wide, in.dims), make([]wide, in.dims)
	for i, n := range in.placed(l) {
		for r, size := range in.problem.Items[i].Size {
			asked[r].add(uint64(size), uint64(n))
		}
	}
	for n := range in.problem.Nodes {
		for r := range free {
			free[r].add(uint64(in.free[n*in.dims+r]), 1)
		}
	}
	net := make([]*big.Int, in.dims)
	for r := range net {
		net[r] = new(big.Int).Sub(asked[r].number(), free[r].number())
	}
	return net
}

// proved is the price that the values prove for the demand, rounded up at the end only, for every price is a whole
// number.
func (in *Instance) proved(net []*big.Int, value []float64) Price {
	sum := new(big.Float).SetPrec(exact).SetMode(big.ToNegativeInf)
	term := new(big.Float).SetPrec(exact).SetMode(big.ToNegativeInf)
	for r := range net {
		sum.Add(sum, term.Mul(new(big.Float).SetPrec(exact).SetInt(net[r]), big.NewFloat(value[r])))
	}
	if sum.Sign() <= 0 {
		return 0
	}
	whole, accuracy := sum.Int64()
	if accuracy == big.Below && whole < math.MaxInt64 {
		whole++ // a fraction was cut off
	}
	return Price(whole)
}

// coverageBound solves the coverage LP for what the layout places, and rounds its duals down to a certificate.
func (in *Instance) coverageBound(l Layout, objective Price) Bound {
	out := Bound{Kind: CoverageLP, Value: make([]float64, in.dims)}
	if len(l.Bins) == 0 {
		return out
	}
	net := in.netDemand(l)
	demand := make([]float64, in.dims)
	for r := range net {
		demand[r], _ = new(big.Float).SetInt(net[r]).Float64()
	}
	var rows [][]float64
	var prices []float64
	for _, t := range in.byPrice {
		if len(in.problem.Types[t].Offerings) == 0 || in.minPrice[t] >= objective {
			continue
		}
		row := make([]float64, in.dims)
		for r, c := range in.capacityOf(t) {
			row[r] = float64(max(c, 0))
		}
		rows = append(rows, row)
		prices = append(prices, float64(in.minPrice[t]))
	}
	value := lp.Coverage(rows, prices, demand)
	for r := range value {
		out.Value[r] = value[r] * (1 - 1e-12) // rounding may leave a type worth a little more than its price
	}
	out.Price = min(in.roundUp(in.proved(net, out.Value)), objective)
	return out
}

// maxClasses is how many classes column generation handles: its matrix grows with their square.
const maxClasses = 160

// bound is the best bound that is found for what the layout places, in so many steps.
func (in *Instance) bound(l Layout, objective Price, steps int, hints []hint) Bound {
	best := in.coverageBound(l, objective)
	if best.Price >= objective {
		return best
	}
	for _, h := range hints { // often all is known
		if in.roundUp(h.bound.Price) >= objective && slices.Equal(h.counts, in.placed(l)) {
			best = h.bound
			best.Price = objective
			return best
		}
	}
	r, ok := in.relaxed(in.placed(l), -1, true, objective, math.MaxInt)
	if !ok || r.dearest() > relax.Largest {
		return best
	}
	if bound, ok := in.stranded(r, objective); ok {
		return bound
	}
	budget := &relax.Budget{Left: steps}
	try := func(proof relax.Proof) {
		if price := min(in.roundUp(Price(proof.Price)), objective); price > best.Price {
			best = in.itemBound(r, proof)
			best.Price = price
		}
	}
	if len(r.apart) > 0 { // what keeps things apart is no resource of the coverage bound
		try(r.model.CertifyCoverage())
	}
	if steps == 0 {
		return best
	}
	if len(r.model.Classes) > maxClasses {
		if len(r.model.Classes)*len(r.model.Kinds) < 2_000_000 {
			if value := r.model.Assignment(maxClasses/2, float64(best.Price), budget); value != nil {
				try(r.model.Certify(value, 1))
			}
		}
		return best
	}
	known := false
	var start []pattern
	for _, h := range hints {
		if !slices.Equal(h.counts, in.placed(l)) {
			continue
		}
		if h.patterns != nil {
			start = h.patterns
			continue
		}
		known = true
		if price := min(in.roundUp(h.bound.Price), objective); price > best.Price {
			best = h.bound
			best.Price = price
		}
	}
	if known {
		return best
	}
	m := relax.NewMaster(r.model)
	r.addTo(m, start)
	m.Solve(budget)
	m.Price(r.model.Coverage(), budget)
	for m.Generate(400, budget); budget.Left > 0 && m.Deepen(20_000, budget); {
		m.Generate(400, budget)
	}
	try(in.prove(r, m, sharp, patient, budget))
	return best
}

// sharp is by what part a proof may be below what it could become, where that is to be known well, and patient in how many
// rounds it is sought.
const sharp, patient = 0.0005, 8

// prove makes the best proof of what column generation has found, or one that is so near to it, in at most so many rounds.
func (in *Instance) prove(r *relaxation, m *relax.Master, near float64, rounds int, budget *relax.Budget) relax.Proof {
	var best relax.Proof
	if m.BestPrice > 0 {
		best = r.model.Certify(m.Best, 1)
	}
	m.Solve(budget) // the patterns that came last when steps ran out
	// What the proof finds worth more than its bin has been missed by column generation, which goes on with it.
	for range rounds {
		if m.Value() <= float64(best.Price)*(1+near) || budget.Left <= 0 {
			break
		}
		proof, missing := r.model.Prove(m.Values(), 100_000, budget)
		if proof.Price > best.Price {
			best = proof
		}
		added := false
		for _, c := range missing {
			added = m.Add(c) || added
		}
		if !added {
			break
		}
		m.Generate(20, budget)
	}
	return best
}

// addTo gives the master programme the patterns whose kind it has.
func (r *relaxation) addTo(m *relax.Master, patterns []pattern) {
	number := make(map[kind]int, len(r.kinds))
	for k, v := range r.kinds {
		number[v] = k
	}
	for _, c := range patterns {
		if k, ok := number[c.kind]; ok {
			m.Add(relax.Column{Kind: k, Pattern: c.Pattern})
		}
	}
}

// stranded looks for an item that no bin below the objective can hold: then no plan is below it.
func (in *Instance) stranded(r *relaxation, objective Price) (Bound, bool) {
	for c := range r.model.Classes {
		if r.model.Fits(c) {
			continue
		}
		b := Bound{Price: objective, Kind: AssignmentLP, Items: make([]Price, len(in.problem.Items))}
		for _, i := range r.members[c] {
			b.Items[i] = objective
		}
		return b, objective <= relax.Largest
	}
	return Bound{}, false
}

// itemBound is a proof as a certificate.
func (in *Instance) itemBound(r *relaxation, proof relax.Proof) Bound {
	out := Bound{Price: Price(proof.Price), Kind: AssignmentLP, Items: make([]Price, len(in.problem.Items))}
	if proof.Searched {
		out.Kind = Configuration
	}
	for c, members := range r.members {
		for _, i := range members {
			out.Items[i] = Price(proof.Value[c])
		}
	}
	return out
}
