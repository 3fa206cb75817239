package binpack

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"sync/atomic"

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
	// Exhausted looks through all sets of bins that cost less than the bound: none of them holds everything.
	Exhausted BoundKind = "exhausted"
)

// Certificate reports whether a bound of the kind has a certificate: numbers that other code checks in one pass over types
// and items, as [Instance.VerifyBound] does. One that is [Exhausted] has none: it says that a search has come to its end, and
// only another search can confirm it.
func (k BoundKind) Certificate() bool { return k != Exhausted }

// Bound is an objective below which no plan can place the same items, with the certificate that proves it or the extent of
// the search that has found nothing cheaper. Budgets and weights of pools are not part of the argument, so it also holds for
// plans that ignore them.
type Bound struct {
	Price Price
	Kind  BoundKind
	// Value is the certificate of [CoverageLP]: what one unit of each resource is worth, in the unit of [Price]; each
	// number is meant at its exact binary value. No type may offer capacity for less than it is worth. See
	// [Instance.VerifyBound].
	Value []float64
	// Items is the certificate of the other kinds: what one of each item is worth, by position in Problem.Items. For
	// Exhausted it is one more surrogate, beside the resources, by which sets of bins are found too small.
	Items []Price
	// Nodes is, for Exhausted, how many sets of bins and fillings the search has looked at.
	Nodes int
}

// exact is a precision in bits at which sums of products of a certificate do not round; where they would, they round
// to the safe side.
const exact = 1024

// VerifyBound checks the certificate of a plan in one pass over types and items, in arithmetic that is exact or errs to the
// safe side by a margin that is derived: that no type that costs less than the bound can be filled with more worth than its
// price, and that what the placed items are worth, less what existing nodes, counted reservations and capacity pools give away, rounded up to
// a sum that prices can come to, is at least the bound. For [Configuration] the pass holds a search over the fillings of each
// type, of limited length. A bound that is [Exhausted] has no certificate; the search is done again, in about as many nodes.
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
	case AssignmentLP, Configuration:
		proved, err = in.verifyItems(plan)
	case Exhausted:
		proved, err = in.searchAgain(plan.Layout, plan.Objective, b, nil)
	default:
		return fmt.Errorf("binpack: unknown kind of bound %q", b.Kind)
	}
	if err != nil {
		return err
	}
	if proved = in.roundUp(proved); proved < b.Price {
		return fmt.Errorf("binpack: %d is proved, the bound claims %d", proved, b.Price)
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
	b := plan.Bound
	r, value, err := in.valued(plan.Layout, b.Price, b) // what costs more by itself needs no check
	if err != nil {
		return 0, err
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

// searchAgain does the search of a bound that is [Exhausted] again, without trying to pack. It gives what that proves. A plan
// claims no more than this, for what the search refutes depends on more than the values: on the kinds below the ceiling, too.
func (in *Instance) searchAgain(l Layout, ceiling Price, b Bound, stop *atomic.Bool) (Price, error) {
	r, value, err := in.valued(l, ceiling, b)
	if err != nil {
		return 0, err
	}
	whole := make([]float64, len(value))
	for i, v := range value {
		if v < 0 || v > relax.Largest {
			return 0, fmt.Errorf("binpack: value %d is out of range", v)
		}
		whole[i] = float64(v)
	}
	budget := &relax.Budget{Left: verifyBase + verifyPerNode*min(max(b.Nodes, 0), verifyNodes), Stop: stop}
	s := relax.NewSearch(r.model, whole, budget)
	if s == nil {
		return 0, errors.New("binpack: a search does not suit the problem")
	}
	return Price(math.Ceil(s.Refute(float64(b.Price), budget) * (1 - 1e-12))), nil
}

// valued is the relaxation of the layout below the ceiling, and what the bound says that one of each class is worth.
func (in *Instance) valued(l Layout, ceiling Price, b Bound) (*relaxation, []int64, error) {
	if len(b.Items) != len(in.problem.Items) {
		return nil, nil, fmt.Errorf("binpack: certificate has %d values, want %d", len(b.Items), len(in.problem.Items))
	}
	r, ok := in.relaxed(in.placed(l), -1, true, ceiling, true, nil, nil)
	if !ok || r.dearest() > relax.Largest {
		return nil, nil, errors.New("binpack: the certificate is of a kind that does not suit the problem")
	}
	value := make([]int64, len(r.model.Classes))
	for c, members := range r.members {
		value[c] = math.MaxInt64
		for _, i := range members {
			value[c] = min(value[c], int64(b.Items[i]))
		}
	}
	return r, value, nil
}

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

// netDemand is the sum of all placed items less what the existing nodes to which one of them may go have free, by resource; it
// may be negative.
func (in *Instance) netDemand(l Layout) []*big.Int {
	asked, free := make([]wide, in.dims), make([]wide, in.dims)
	open := make([]uint64, (len(in.problem.Nodes)+63)/64)
	for i, n := range in.placed(l) {
		if n == 0 {
			continue
		}
		for r, size := range in.problem.Items[i].Size {
			asked[r].add(uint64(size), uint64(n))
		}
		for _, v := range in.profiles[in.profile[i]].variants {
			for w, nodes := range v.nodes {
				open[w] |= nodes
			}
		}
	}
	for n := range in.problem.Nodes {
		if open[n/64]&(1<<(n%64)) == 0 {
			continue
		}
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
	value, _ := lp.Coverage(rows, prices, demand)
	for r := range value {
		out.Value[r] = value[r] * (1 - 1e-12) // rounding may leave a type worth a little more than its price
	}
	out.Price = min(in.roundUp(in.proved(net, out.Value)), objective)
	return out
}

// bound is the best bound that is found for what the layout places.
func (r *run) bound(in *Instance, l Layout, objective Price, hints []hint) Bound {
	best := in.coverageBound(l, objective)
	placed := in.placed(l)
	take := func(b Bound) {
		b.Price = min(in.roundUp(b.Price), objective)
		if b.Kind == Exhausted && b.Price > best.Price {
			proved, err := in.searchAgain(l, objective, b, r.stop)
			if err != nil {
				return
			}
			b.Price = min(b.Price, in.roundUp(proved))
		}
		if b.Price > best.Price {
			best = b
		}
	}
	known := false
	for _, h := range hints {
		if slices.Equal(h.counts, placed) {
			known = true
			for _, b := range h.bounds {
				take(b)
			}
		}
	}
	if known || best.Price >= objective || r.stopped() {
		return best
	}
	x, ok := in.relaxed(placed, -1, true, objective, true, nil, r.stop)
	if !ok || x.dearest() > relax.Largest {
		return best
	}
	for _, b := range in.bounds(x, x.model.Bound(int64(objective), int64(in.grain), r.budget(in))) {
		take(b)
	}
	return best
}

// bounds is what a solution proves, by a certificate and by a search.
func (in *Instance) bounds(r *relaxation, s relax.Solution) []Bound {
	worth := func(kind BoundKind, price int64, value []int64, nodes int) Bound {
		b := Bound{Price: Price(price), Kind: kind, Items: make([]Price, len(in.problem.Items)), Nodes: nodes}
		for c, members := range r.members {
			for _, i := range members {
				b.Items[i] = Price(value[c])
			}
		}
		return b
	}
	var out []Bound
	if s.Proof.Price > 0 {
		kind := AssignmentLP
		if s.Proof.Searched {
			kind = Configuration
		}
		out = append(out, worth(kind, s.Proof.Price, s.Proof.Value, 0))
	}
	if s.Least > s.Proof.Price {
		out = append(out, worth(Exhausted, s.Least, s.Value, s.Nodes))
	}
	return out
}
