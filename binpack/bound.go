package binpack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// BoundKind says which argument proves a [Bound].
type BoundKind string

// The bounds, weakest first. The first two rest on duals of items such that no filling of a type
// has a dual value above its price. By linear programming duality, no plan costs less than the dual
// value of its items, minus the dual value that existing nodes can hold. Some items fit only types
// whose price is above the dual value of every filling. Then each whole bin that these items need
// adds the difference: the price of the bin minus the highest dual value of its fillings.
const (
	// AssignmentLP has duals of items; fillings may hold fractions of items.
	AssignmentLP BoundKind = "assignment-lp"
	// Configuration has duals of items; fillings hold whole items (A. A. Farley, 1990).
	Configuration BoundKind = "configuration"
	// Exhausted means that a search refuted every set of bins that costs less than the bound.
	Exhausted BoundKind = "exhausted"
)

// Certificate reports whether a bound of this kind has a certificate: numbers that other code can
// check in one pass over types and items, as [Instance.VerifyBound] does. [Exhausted] has none;
// only another search can confirm it.
func (k BoundKind) Certificate() bool { return k != Exhausted }

// Bound is a lower bound on the objective of every plan for the same items, with its certificate or
// the extent of the search that proves it. Price is the bound; 0 claims nothing. Kind says what
// proves it. The bound ignores budgets and weights of pools, so it also holds for plans that break
// them. Proofs compute with numbers up to 2^52 units, which are exact: if one bin costs more than
// that, about $4.5 million an hour, the bound may be 0.
type Bound struct {
	Price Price
	Kind  BoundKind
	// ItemDuals is the certificate of [AssignmentLP] and [Configuration]: the dual price of one
	// copy of each item, by position in Problem.Items. For [Exhausted] it is a surrogate constraint
	// of the search.
	ItemDuals []Price
	// Nodes is how many sets of bins and fillings the search of [Exhausted] looked at.
	Nodes int
}

// VerifyBound checks a plan from any source: its layout, its objective, and its bound. The error
// says what is wrong.
//
// A certificate is checked in one pass over types and items, exactly or with a derived margin for
// rounding. Types that cost less than the bound are checked: no filling of such a type may have a
// dual value above the price of the type. There is one exception: in types of a counted reservation
// or a capacity pool, fillings may have a higher dual value, and the excess is subtracted below.
// The proved price is
//
//   - the dual value of the placed items,
//   - minus the excess: existing nodes, counted reservations and capacity pools may hold more dual
//     value than they cost,
//   - plus a surcharge for items that fit only types whose price is above the dual value of every
//     filling: price minus that value, for each whole bin that the items need.
//
// It is rounded up to the next amount that prices of bins can add up to, and must then be at least
// the bound.
//
// For [Configuration] the pass includes a search of limited length for each type. For [Exhausted]
// the search runs again, with about the same number of nodes.
func (in *Instance) VerifyBound(plan *Plan) error {
	if plan == nil {
		return errNoPlan
	}
	compiled := *plan
	plan = &compiled
	plan.Layout = in.split.layout(plan.Layout, in.split.in)
	if err := in.check(plan.Layout); err != nil {
		return err
	}
	b := plan.Bound
	switch objective := in.objectiveOf(plan.Layout); {
	case plan.Objective != objective:
		return fmt.Errorf("binpack: the objective is %v, the plan says %v", objective, plan.Objective)
	case b.Price > objective:
		return fmt.Errorf("binpack: bound %v is above the objective %v", b.Price, objective)
	}
	var proved Price
	var err error
	switch {
	case b.Price <= 0: // it needs no proof
	case b.Kind == AssignmentLP || b.Kind == Configuration:
		proved, err = in.verifyItems(plan.Layout, plan.Objective, b, new(relax.Watch))
	case b.Kind == Exhausted:
		proved, err = in.searchAgain(plan.Layout, plan.Objective, b, nil)
	default:
		return fmt.Errorf("binpack: unknown kind of bound %q", b.Kind)
	}
	if err != nil {
		return err
	}
	if proved = in.roundUp(proved); proved < b.Price {
		return fmt.Errorf("binpack: %v is proved, but the bound claims %v", proved, b.Price)
	}
	return nil
}

// prove sets alternatives and bound, which do not depend on each other.
func (in *Instance) prove(r *run, plan *Plan, h hint, alternatives int) {
	var other sync.WaitGroup
	other.Go(func() { plan.Alternatives = in.alternatives(plan.Layout, alternatives, r) })
	plan.Bound = r.bound(in, plan.Layout, plan.Objective, h)
	other.Wait()
	plan.Stopped = plan.Stopped || r.stopped()
}

// Prove returns the plan of [Options.Draft] or [Options.ProveLater] with its bound and its
// alternatives. Of the options it uses Effort and Alternatives. The error says that the layout is
// not one of the instance, or names an invalid option. When ctx ends, the bound is the best so far,
// and [Plan.Stopped] is set.
func (in *Instance) Prove(ctx context.Context, plan *Plan, opts *Options) (*Plan, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if plan == nil {
		return nil, errNoPlan
	}
	o, err := opts.complete()
	if err != nil {
		return nil, err
	}
	layout := in.split.layout(plan.Layout, in.split.in)
	if err := in.check(layout); err != nil {
		return nil, err
	}
	r, end := newRun(ctx, o.Effort)
	defer end()
	out := in.planOf(layout, plan.Strategy)
	out.Stopped = plan.Stopped
	in.prove(r, out, plan.proved, o.Alternatives)
	return in.outward(out), nil
}

// verifyItems returns what the item duals of a bound prove. A type that costs as much as the bound
// needs no check. But with fewer types, items that the bound told apart may fall into one class,
// which gets the lowest of their duals. Then all types below the objective are checked, as when the
// bound was made.
func (in *Instance) verifyItems(l Layout, objective Price, b Bound, w *relax.Watch) (Price, error) {
	var best Price
	for _, ceiling := range []Price{b.Price, objective} {
		r, duals, err := in.relaxedAt(l, ceiling, b, w)
		if err != nil {
			return 0, err
		}
		proved, err := r.model.Verify(duals, b.Kind == Configuration, w)
		if err != nil {
			return 0, fmt.Errorf("binpack: certificate: %w", err)
		}
		if best = max(best, Price(proved)); in.roundUp(best) >= b.Price {
			break
		}
	}
	return best, nil
}

// searchAgain repeats the search of an [Exhausted] bound without trying to pack, and returns what
// it proves. A plan claims no more than this, because the search also depends on which bin types
// are below the ceiling.
func (in *Instance) searchAgain(l Layout, ceiling Price, b Bound, stop *atomic.Bool) (Price, error) {
	r, duals, err := in.relaxedAt(l, ceiling, b, relax.NewWatch(stop, 0))
	if err != nil {
		return 0, err
	}
	for _, v := range duals {
		if v < 0 || v > relax.Largest {
			return 0, fmt.Errorf("binpack: value %d is out of range", v)
		}
	}
	budget := &relax.Budget{Left: verifyBase + verifyPerNode*min(max(b.Nodes, 0), verifyNodes), Stop: stop}
	s := relax.NewSearch(r.model, duals, budget)
	if s == nil {
		return 0, errors.New("binpack: a search does not suit the problem")
	}
	return Price(r.model.Proved(s.Refute(r.model.Units(int64(b.Price)), budget))), nil
}

// relaxedAt returns the relaxation of the layout below the ceiling, and the dual of each class.
func (in *Instance) relaxedAt(l Layout, ceiling Price, b Bound, w *relax.Watch) (*relaxation, []int64, error) {
	if len(b.ItemDuals) != len(in.problem.Items) {
		return nil, nil, fmt.Errorf("binpack: certificate has %d values, want %d", len(b.ItemDuals), len(in.problem.Items))
	}
	r, ok := in.relaxed(in.placed(l), -1, true, ceiling, in.budgets.amounts, true, w)
	if !ok {
		return nil, nil, errors.New("binpack: the certificate is of a kind that does not suit the problem")
	}
	duals := make([]int64, len(r.model.Classes))
	for c, members := range r.members {
		duals[c] = math.MaxInt64
		for _, i := range members {
			duals[c] = min(duals[c], int64(b.ItemDuals[i]))
		}
	}
	return r, duals, nil
}

// hint holds the bounds that a plan proved on the way, and the counts of items for which they hold.
type hint struct {
	bounds []Bound
	counts []int
}

// floor returns the best bound that the plan proved.
func (p *planner) floor() Price {
	floor := Price(0)
	for _, b := range p.hint.bounds {
		floor = max(floor, b.Price)
	}
	return floor
}

// noBound returns the bound 0.
func (in *Instance) noBound() Bound {
	return Bound{Kind: AssignmentLP, ItemDuals: make([]Price, len(in.problem.Items))}
}

// bound returns the best bound found for the layout.
func (r *run) bound(in *Instance, l Layout, objective Price, h hint) Bound {
	best := in.noBound()
	placed := in.placed(l)
	take := func(b Bound) {
		b.Price = min(in.roundUp(b.Price), objective)
		if b.Price <= best.Price {
			return
		}
		var proved Price // a plan claims no more than a checker finds
		var err error
		if b.Kind == Exhausted {
			proved, err = in.searchAgain(l, objective, b, r.stop)
		} else {
			proved, err = in.verifyItems(l, objective, b, relax.NewWatch(r.stop, graceOfChecks))
		}
		if b.Price = min(b.Price, in.roundUp(proved)); err == nil && b.Price > best.Price {
			best = b
		}
	}
	known := slices.Equal(h.counts, placed)
	if known {
		for _, b := range h.bounds {
			take(b)
		}
	}
	if known || best.Price >= objective || r.stopped() {
		return best
	}
	x, ok := in.relaxed(placed, -1, true, objective, in.budgets.amounts, true, relax.NewWatch(r.stop, 0))
	if !ok {
		return best
	}
	for _, b := range in.bounds(x, x.model.Solve(relax.Task{Enough: enoughGap, Known: float64(objective)}, r.budget(in))) {
		take(b)
	}
	return best
}

// bounds returns what a solution proves: by a certificate, and by a search.
func (in *Instance) bounds(r *relaxation, s relax.Solution) []Bound {
	claim := func(kind BoundKind, price int64, duals []int64, nodes int) Bound {
		b := Bound{Price: Price(price), Kind: kind, ItemDuals: make([]Price, len(in.problem.Items)), Nodes: nodes}
		for c, members := range r.members {
			for _, i := range members {
				b.ItemDuals[i] = Price(duals[c])
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
		out = append(out, claim(kind, s.Proof.Price, s.Proof.Duals, 0))
	}
	if s.Least > s.Proof.Price {
		out = append(out, claim(Exhausted, s.Least, s.Duals, s.Nodes))
	}
	return out
}
