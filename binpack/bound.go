package binpack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
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

// diversity is the compiled [Problem.Diversity], without those that no plan can break.
type diversity struct {
	left     [][]int   // by diversity and capacity pool: what it may still hold
	counts   [][]Share // by item: the diversities that it counts for, and how much one copy counts
	pools    map[string]int32
	offering [][]int32 // by type and offering: the capacity pool, -1 for none
	node     []int32   // by node: its capacity pool, -1 for none
}

func (in *Instance) compileDiversity() {
	p := &in.problem
	d := &in.diverse
	d.counts = make([][]Share, len(p.Items))
	var kept []Diversity
	for _, x := range p.Diversity {
		all := int64(0)
		for _, s := range x.Items {
			all = sum(all, int64(s.Count)*int64(p.Items[s.Item].Count))
		}
		for _, n := range x.Placed {
			all = sum(all, int64(max(n, 0)))
		}
		if all > int64(x.Max) {
			kept = append(kept, x)
		}
	}
	if len(kept) == 0 {
		return
	}
	d.pools = map[string]int32{}
	number := func(name string) int32 {
		if name == "" {
			return -1
		}
		return numbered(d.pools, name)
	}
	d.offering, d.node = make([][]int32, len(p.Types)), make([]int32, len(p.Nodes))
	for t := range p.Types {
		for j := range p.Types[t].Offerings {
			d.offering[t] = append(d.offering[t], number(p.Types[t].Offerings[j].CapacityPool))
		}
	}
	for n := range p.Nodes {
		d.node[n] = number(p.Nodes[n].CapacityPool)
	}
	if len(d.pools) == 0 { // no capacity pools
		in.diverse = diversity{counts: d.counts}
		return
	}
	for i, x := range kept {
		left := slices.Repeat([]int{x.Max}, len(d.pools))
		for name, n := range x.Placed {
			if at, ok := d.pools[name]; ok {
				left[at] = max(x.Max-max(n, 0), 0)
			}
		}
		d.left = append(d.left, left)
		for _, s := range x.Items {
			if list := d.counts[s.Item]; s.Count > 0 && len(list) > 0 && list[len(list)-1].Item == i {
				list[len(list)-1].Count += s.Count
			} else if s.Count > 0 {
				d.counts[s.Item] = append(list, Share{i, s.Count})
			}
		}
	}
}

// count returns how much one copy of the item counts for the diversity.
func (d *diversity) count(number, item int) int64 {
	for _, s := range d.counts[item] {
		if s.Item == number {
			return int64(s.Count)
		}
	}
	return 0
}

// pool returns the number of the offering's capacity pool, -1 for none.
func (d *diversity) pool(typ, offering int) int32 {
	if len(d.left) == 0 {
		return -1
	}
	return d.offering[typ][offering]
}

// most returns how many copies of the item the capacity pool may hold; infinite if there is no
// limit.
func (d *diversity) most(item int, pool int32) float64 {
	most := math.Inf(1)
	if pool >= 0 {
		for _, s := range d.counts[item] {
			most = min(most, float64(max(d.left[s.Item][pool], 0)/s.Count))
		}
	}
	return most
}

// ofNode returns the number of the node's capacity pool, -1 for none.
func (d *diversity) ofNode(node int) int32 {
	if len(d.left) == 0 {
		return -1
	}
	return d.node[node]
}

// spreadMost returns the diversities with the highest demand, as many as may become resources.
func (in *Instance) spreadMost(counts []int) []extra {
	asked := make([]int64, len(in.diverse.left))
	var out []extra
	for i, n := range counts {
		for _, s := range in.diverse.counts[i] {
			asked[s.Item] += int64(s.Count) * int64(max(n, 0))
		}
	}
	for d := range asked {
		if asked[d] > int64(slices.Min(in.diverse.left[d])) {
			out = append(out, extra{tag: -1, diversity: d})
		}
	}
	slices.SortStableFunc(out, func(a, b extra) int { return cmp.Compare(asked[b.diversity], asked[a.diversity]) })
	return out[:min(len(out), maxApart)]
}

// capacityPool returns the number of the bin's capacity pool, -1 for none.
func (f *filler) capacityPool(b *bin) int32 {
	if b.node >= 0 {
		return f.in.diverse.ofNode(int(b.node))
	}
	return f.in.diverse.pool(int(b.typ), int(b.charged))
}

// spread returns how many copies of the item, at most want, the capacity pool may take.
func (f *filler) spread(pool int32, item, want int) int {
	if pool < 0 {
		return want
	}
	for _, s := range f.in.diverse.counts[item] {
		want = min(want, max(f.diverse[s.Item][pool], 0)/s.Count)
	}
	return want
}

// expose counts k copies of the item against the capacity pool; a negative k gives them back.
func (f *filler) expose(pool int32, item, k int) {
	if pool < 0 {
		return
	}
	for _, s := range f.in.diverse.counts[item] {
		f.diverse[s.Item][pool] -= k * s.Count
	}
}

// exposeAll counts the shares against the capacity pool, the given number of times.
func (f *filler) exposeAll(pool int32, shares []Share, times int) {
	for _, s := range shares {
		f.expose(pool, s.Item, times*s.Count)
	}
}

// exposable returns the offerings of the mask whose capacity pools may take the shares.
func (f *filler) exposable(t int32, mask uint64, shares []Share) uint64 {
	if len(f.diverse) == 0 {
		return mask
	}
	for rest := mask; rest != 0; rest &= rest - 1 {
		j := bits.TrailingZeros64(rest)
		pool, n := f.in.diverse.offering[t][j], 0
		for n < len(shares) && f.spread(pool, shares[n].Item, shares[n].Count) == shares[n].Count {
			f.expose(pool, shares[n].Item, shares[n].Count)
			n++
		}
		f.exposeAll(pool, shares[:n], -1)
		if n < len(shares) {
			mask &^= 1 << j
		}
	}
	return mask
}

// eligible returns, as a mask, the type's offerings that suit the item under some variant and whose
// capacity pools may take one more copy.
func (f *filler) eligible(item int, t int32) uint64 {
	return f.exposable(t, f.in.profileOf(item).mask(t), []Share{{item, 1}})
}
