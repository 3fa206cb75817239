package binpack

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
	"github.com/joinery-sdk/joinery/binpack/internal/tags"
)

// CostAware looks for the layout with the lowest objective, and for few bins among equal ones. The
// package documentation says how. The result is never worse than that of [FirstFitDecreasing]: it
// places more copies at the highest priority at which the two differ, or as many at no higher cost.
// If everything is placed and all pools have one weight, it is also compared with fleets of a
// single type, as many as the Effort allows, and costs no more than any of them.
type CostAware struct {
	Effort Effort
}

// Name returns "cost".
func (CostAware) Name() string { return "cost" }

// Pack implements [Strategy].
func (c CostAware) Pack(ctx context.Context, in *Instance) (Layout, error) {
	if err := c.Effort.check(); err != nil || ctx == nil {
		return Layout{}, cmp.Or(err, errNoContext)
	}
	r, end := newRun(ctx, c.Effort)
	defer end()
	r.planOnly = true
	l := r.firstFitDecreasing(in)
	if err := fewEnough(l); err != nil {
		return Layout{}, err
	}
	if !r.stopped() {
		l, _, _ = r.guided(in, l)
	}
	return in.split.layout(l, in.split.out), nil
}

// guided improves on the layout of first fit. It returns the better layout, the bounds that it
// proved, and whether the layout changed. More effort searches differently and may be less lucky.
// So it begins with the layout of the next smaller effort, and no plan is dearer for more effort.
func (r *run) guided(in *Instance, best Layout) (l Layout, h hint, better bool) {
	if less, ok := r.effort.less(); ok {
		first := *r
		first.effort, first.planOnly, first.report = less, true, nil
		best, _, better = first.guided(in, best)
	}
	p := r.planner(in)
	first := in.objectiveOf(best)
	best = p.uniform(best)
	better = better || in.objectiveOf(best) < first
	if !slices.ContainsFunc(in.unplaced(best), func(n int) bool { return n > 0 }) {
		p.ceiling = in.objectiveOf(best)
	}
	if l, ok := p.pack(); ok && in.better(l, best) {
		best, better = l, true
	}
	if p.open && !r.stopped() {
		if l := p.repack(best, false); in.better(l, best) {
			best, better = l, true
		}
	}
	l = p.join(r.withinLimits(in, best))
	return l, p.hint, better || in.better(l, best) || len(l.Bins) < len(best.Bins)
}

func (r *run) planner(in *Instance) *planner {
	b := r.budget(in)
	return &planner{run: r, in: in, f: newFiller(in, r.stop), ceiling: math.MaxInt64, budget: b, total: b.Left, solved: make([]*relaxation, len(in.tiers))}
}

// work returns the used fraction of all steps, including those for packing again, if left remain.
func (p *planner) work(left int) float64 {
	return 1 - float64(max(left, 0))/float64(p.total+p.total/repackPart)
}

// planner makes one layout.
type planner struct {
	*run
	in      *Instance
	f       *filler
	budget  *relax.Budget
	total   int   // steps of the budget at the start
	ceiling Price // the price of a layout that places everything
	open    bool  // some relaxation's packing may not be its cheapest, or rules that it leaves out matter
	hint    hint
	solved  []*relaxation // by tier; nil if none could be made
}

// guide is what the relaxation of a tier knows of its items and types.
type guide struct {
	worth []float64 // by item: the part of the cost that a copy accounts for; 0 if unknown
	types []binType // what the relaxation did not rule out, the most worth for its price first
}

func (p *planner) guide(tier int) guide {
	g := guide{worth: make([]float64, len(p.in.problem.Items))}
	s := p.solved[tier]
	if s == nil {
		for _, t := range p.in.tiers[tier] {
			g.types = append(g.types, binType{typ: t, mask: 1<<len(p.in.problem.Types[t].Offerings) - 1})
		}
		return g
	}
	for class, members := range s.members {
		for _, i := range members {
			g.worth[i] = s.worth[class]
		}
	}
	var knap relax.Knapsack
	for _, k := range s.model.Ranked(&knap, s.worth) {
		if s.types[k].nodes == nil { // to buy
			g.types = append(g.types, s.types[k])
		}
	}
	p.budget.Take(knap.Steps())
	return g
}

// pack returns the layout; ok is false if it was stopped before anything was placed.
func (p *planner) pack() (l Layout, ok bool) {
	for k := range p.in.tiers {
		p.tier(k)
	}
	if p.stopped() && len(p.f.bins) == 0 {
		return l, false
	}
	p.f.packAll()
	p.f.lift()
	p.open = p.open || p.f.wanted() > 0
	return p.f.finish(), true
}

// tier plans the bins of the pools of one weight. The first tier includes the existing nodes. The
// relaxation knows no limits of pools. So once one is used up, the rest is planned without it.
func (p *planner) tier(k int) {
	for whole := k == 0; p.round(k, whole) && p.f.wanted() > 0 && !p.stopped(); {
		whole = false
	}
}

// round plans bins with what the budgets leave, and reports whether a budget ran out. If whole,
// nothing has been placed yet.
func (p *planner) round(k int, whole bool) (short bool) {
	ceiling, known := Price(math.MaxInt64), 0.0
	if len(p.in.tiers) == 1 && whole && p.ceiling < ceiling {
		ceiling, known = sum(p.ceiling, 1), float64(p.ceiling)
	}
	counts, w := p.f.plannable(k), relax.NewWatch(p.stop, 0)
	relaxed := func() (*relaxation, bool) { return p.in.relaxed(counts, k, whole, ceiling, p.f.left, false, w) }
	r, ok := relaxed()
	if !ok && !p.stopped() { // too many different nodes, so fill them first
		for _, item := range p.in.order {
			p.f.firstFit(item)
		}
		counts, whole, ceiling, known = p.f.want, false, math.MaxInt64, 0
		r, ok = relaxed()
	}
	if fitting := r.fitting(counts); ok && !slices.Equal(fitting, counts) { // an item that fits nowhere must not count as demand
		counts = fitting
		r, ok = relaxed()
	}
	if !ok || len(r.model.BinTypes) == 0 || len(r.model.Classes) == 0 {
		return false
	}
	task := relax.Task{Enough: enoughGap, PlanOnly: p.planOnly, Known: known}
	part := p.budget.Split(p.budget.Left / (len(p.in.tiers) - k)) // each tier gets an equal part of what the earlier ones left
	if p.report != nil && whole {
		task.Report = func(bound, price float64) {
			p.report(Progress{Bound: Price(bound), Price: Price(price), Work: p.work(p.budget.Left + part.Left + p.total/repackPart)})
		}
	}
	s := r.model.Solve(task, part)
	p.budget.Return(part)
	if r.worth = s.Worth; p.solved[k] == nil {
		p.solved[k] = r
	}
	if whole && len(p.in.tiers) == 1 && !r.sparse {
		p.hint = hint{p.in.bounds(r, s), slices.Clone(counts)}
		for i := range p.hint.bounds { // dearer bin types are not in the relaxation
			p.hint.bounds[i].Price = min(p.hint.bounds[i].Price, sum(p.ceiling, 1))
		}
	}
	short = p.realise(r, s.Columns)
	p.open = p.open || !s.Closed || r.sparse || p.f.wanted() > 0
	return short
}

// plannable caps the count of each item at what the nodes and bins of the tier could hold of it
// alone, within the limits of pools, tags and diversity. Counts may be in the billions; planning
// more than that would waste work.
func (f *filler) plannable(tier int) []int {
	in, want := f.in, f.want
	for k, bounded := range in.budgets.bounded {
		if int(in.tierOfPool[k]) == tier && !bounded && len(in.diverse.left) == 0 {
			return want
		}
	}
	out := slices.Clone(want)
	for i, n := range want {
		if f.Ended(len(in.problem.Nodes) + len(in.problem.Types)) {
			return want
		}
		held := 0.0
		for k := range in.problem.Nodes {
			held += float64(in.copiesIn(in.free[k*in.dims:(k+1)*in.dims], in.nodeTags[k], i, n))
		}
		for k := range in.problem.Pools {
			if held < float64(n) && int(in.tierOfPool[k]) == tier {
				held += in.mostOf(k, i, n)
			}
		}
		out[i] = int(min(float64(n), held))
	}
	return out
}

// copiesIn returns how many copies of the item, at most want, fit into a bin with this capacity and
// these tags.
func (in *Instance) copiesIn(capacity []int64, own []tags.State, item, want int) int {
	return tags.Admitted(own, in.itemTags[item], relax.Copies(capacity, in.problem.Items[item].Size, want))
}

// mostOf returns an upper bound on how many copies of the item fit into all bins of the pool. It
// uses the pool's budgets, and reservations and capacity pools if all offerings that suit the item
// have one.
func (in *Instance) mostOf(pool, item, want int) float64 {
	b, p := &in.budgets, in.profileOf(item)
	perUnit := make([]float64, len(b.amounts)) // by budget: copies for each unit; infinite if some bin takes nothing
	inPools := map[int32]float64{}             // by capacity pool
	limited, any := true, false
	for _, t := range in.tiers[in.tierOfPool[pool]] {
		if in.problem.Types[t].Pool != pool {
			continue
		}
		n := float64(in.copiesIn(in.capacityOf(t), in.typeTags[t], item, want))
		for rest := p.mask(t); rest != 0 && n > 0; rest &= rest - 1 {
			j := bits.TrailingZeros64(rest)
			at := in.diverse.pool(int(t), j)
			spread := in.diverse.most(item, at)
			switch {
			case !math.IsInf(spread, 1):
				inPools[at] = spread
			case b.counted[t]&(1<<j) == 0:
				limited = false
			}
			held := min(n, spread)
			any = any || held > 0
			for _, u := range b.of(t, j) {
				if held == 0 {
					break
				}
				perUnit[u.budget] = max(perUnit[u.budget], held/float64(u.amount))
			}
		}
	}
	if !any {
		return 0
	}
	held, reserved := math.Inf(1), 0.0
	for k, per := range perUnit {
		all := math.Ceil(per * float64(max(b.amounts[k], 0)))
		switch {
		case per == 0:
		case k < b.reservations:
			reserved += all
		case !math.IsInf(per, 1):
			held = min(held, all)
		}
	}
	if limited {
		for _, n := range inPools {
			reserved += n // whole numbers, whose sum does not depend on their order
		}
		held = min(held, reserved)
	}
	return held
}

// fitting returns the counts without the items that fit into no bin type.
func (r *relaxation) fitting(counts []int) []int {
	out := slices.Clone(counts)
	for c, members := range r.members {
		if !r.model.Fits(c) {
			for _, i := range members {
				out[i] = 0
			}
		}
	}
	return out
}

// realise builds each column as far as the rules allow, in an existing node or a new bin. Existing
// nodes are filled before anything is bought. It reports whether a budget did not allow a column.
func (p *planner) realise(r *relaxation, columns []relax.Column) (short bool) {
	in, f := p.in, p.f
	queues := slices.Clone(r.members) // by class: the items still to be placed
	for class := range queues {
		queues[class] = slices.Clone(queues[class])
	}
	next := make(map[int]int) // by bin type: the next node
	for _, c := range columns {
		nodes := r.types[c.BinType].nodes
		if at := next[c.BinType]; at < len(nodes) {
			next[c.BinType]++
			for _, a := range c.Pattern {
				p.take(&f.nodes[nodes[at]], &queues[a.Class], int(a.Count))
			}
		}
	}
	if len(f.nodes) > 0 {
		for _, item := range in.order {
			f.firstFit(item)
		}
	}
	for _, c := range columns {
		bt := r.types[c.BinType]
		if bt.typ < 0 || f.Ended(4) { // a node
			continue
		}
		typ, mask := bt.typ, bt.mask&f.affordable(bt.typ)
		if mask == 0 {
			short = true
			continue
		}
		if len(f.bins) == maxBins-1 {
			return true
		}
		b := f.newBin(typ, mask)
		f.charge(typ, int(b.charged), 1)
		for _, a := range c.Pattern {
			p.take(&b, &queues[a.Class], int(a.Count))
		}
		if len(b.shares) == 0 {
			f.charge(typ, int(b.charged), -1)
			continue
		}
		f.bins = append(f.bins, b)
	}
	return short
}

// take puts up to n copies from the queue into the bin. If the bin does not admit an item, the next
// one is tried.
func (p *planner) take(b *bin, q *[]int, n int) {
	taken, missed := 0, 0
	for at := 0; at < len(*q) && taken < n && missed < patience; {
		item := (*q)[at]
		if p.f.want[item] == 0 { // an existing node has taken it
			*q = slices.Delete(*q, at, at+1)
			continue
		}
		if k, v, mask, open := p.f.admit(b, item, min(n-taken, p.f.want[item])); k > 0 {
			p.f.place(b, item, k, v, mask, open)
			taken += k
		} else {
			missed++
		}
		if p.f.want[item] == 0 {
			*q = slices.Delete(*q, at, at+1)
		} else {
			at++
		}
	}
}

// lift moves items from light pools to heavier ones that can hold them now, into free capacity or
// new bins. The search plans one tier after the other and exchanges items, and bins are
// right-sized. So at its end, a heavier pool may have capacity or budget that the search did not
// see. It ends because each round has more items in heavier tiers, or cheaper bins.
func (f *filler) lift() {
	if len(f.in.tiers) < 2 {
		return
	}
	d := newDemand(f.in)
	for f.liftAll(d) || f.rightSize() {
	}
}

// liftAll moves what it can once, and reports whether it moved anything.
func (f *filler) liftAll(d *demand) (any bool) {
	if f.Over {
		return false
	}
	bins := slices.Clone(f.bins)
	slices.SortStableFunc(bins, func(a, b bin) int { return cmp.Compare(f.in.tierOf(a.typ), f.in.tierOf(b.typ)) })
	f.bins, f.binIndex = f.bins[:0], freeIndex{}
	for i := range bins {
		b := &bins[i]
		any = f.liftFrom(b, d) || any
		if len(b.shares) == 0 || !f.stillAffords(b) {
			f.withdraw(b)
			continue
		}
		any = f.exchange(b) || any
		f.bins = append(f.bins, *b)
	}
	f.binIndex = freeIndex{}
	return any
}

// liftFrom moves copies of the bin's items to heavier tiers, while the bin keeps its part of
// budgets. It reports whether it moved any.
func (f *filler) liftFrom(b *bin, d *demand) (any bool) {
	for i := range b.shares {
		s := &b.shares[i]
		missing := f.want[s.Item] // not part of this
		f.want[s.Item] = s.Count
		f.expose(f.capacityPool(b), s.Item, -s.Count)
		for k := range f.in.tierOf(b.typ) {
			f.firstOf(f.bins, &f.binIndex, s.Item, k)
			for f.want[s.Item] > 0 && f.open(s.Item, f.in.tiers[k], d) {
			}
		}
		f.expose(f.capacityPool(b), s.Item, f.want[s.Item])
		any = any || f.want[s.Item] < s.Count
		s.Count, f.want[s.Item] = f.want[s.Item], missing
	}
	if any {
		b.shares = slices.DeleteFunc(b.shares, func(s Share) bool { return s.Count == 0 })
		f.measure(b)
	}
	return any
}

// exchange replaces the bin by one of a heavier tier that holds all of it, and reports whether
// there is one. That one may take from budgets what the bin gives back.
func (f *filler) exchange(b *bin) (ok bool) {
	f.withdraw(b)
	for k := int32(0); k < f.in.tierOf(b.typ) && !ok; k++ {
		var t int32
		var j int
		if t, j, ok = f.cheapestChoice(b, k, math.MaxInt64); ok {
			f.become(b, t, j)
		}
	}
	f.count(b, 1)
	return ok
}

// uniform returns the layout, or a better fleet of one type: first fit fills bins of that type,
// then each changes to its cheapest choice. So no plan is dearer than such a fleet, which users
// compare with. While the budget lasts, it tries each type if enough of its bins for all contents
// cost less than the layout. It tries none if there are several weights or the layout leaves copies
// unplaced.
func (p *planner) uniform(best Layout) Layout {
	in := p.in
	if len(in.tiers) != 1 || slices.ContainsFunc(in.unplaced(best), func(n int) bool { return n > 0 }) {
		return best
	}
	demand := make([]float64, in.dims)
	for _, b := range best.Bins {
		for _, s := range b.Shares {
			for r, size := range in.problem.Items[s.Item].Size {
				demand[r] += float64(float64(size) * float64(s.Count))
			}
		}
	}
	type fleet struct {
		typ  int32
		cost float64
	}
	var fleets []fleet
	for _, t := range in.tiers[0] {
		bins := 0.0
		for r, c := range in.capacityOf(t) {
			if demand[r] > 0 {
				bins = max(bins, math.Ceil(demand[r]/float64(max(c, 0))))
			}
		}
		fleets = append(fleets, fleet{t, float64(in.minPrice[t]) * bins})
	}
	slices.SortStableFunc(fleets, func(a, b fleet) int { return cmp.Compare(a.cost, b.cost) })
	part := p.budget.Split(p.total / uniformPart)
	defer p.budget.Return(part)
	perItem := uniformSteps * len(in.problem.Items)
	for _, x := range fleets {
		if x.cost >= float64(in.objectiveOf(best)) || part.Left < perItem {
			break
		}
		f := newFiller(in, p.stop)
		f.packInto(in.decreasing(in.capacityOf(x.typ)), [][]int32{{x.typ}}, nil)
		if f.wanted() == 0 {
			if l := f.finish(); in.better(l, best) {
				best = l
			}
		}
		part.Take(uniformSteps * f.Work)
	}
	return best
}
