package binpack

import (
	"cmp"
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/few"
	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// Effort says how much work a price-aware plan is worth. Work is counted in steps, so the answer does not depend on how
// fast or busy the machine is. The empty Effort is EffortDefault.
type Effort string

// The efforts, in rising order: Default allows some ten times the steps of Fast, and Best ten times those. Fast searches
// only where that takes milliseconds, among up to a hundred things or so and among things of few sorts; elsewhere it is first
// fit with the bound of resources.
const (
	EffortFast    Effort = "fast"
	EffortDefault Effort = "default"
	EffortBest    Effort = "best"
)

const (
	// handful is how many things are searched whatever they are, and fewSorts how many sizes and requirements all the more
	// of them may have in an effort that must be quick.
	handful, fewSorts = 110, 24
)

// steps is what the effort allows for the items: some milliseconds for a hundred things, a few tenths of a second for
// thousands, by default.
func (in *Instance) steps(e Effort) int {
	things := in.things()
	n := max(things, 50) * 8_000
	if things > handful {
		n = min(12_000_000+24_000*things, 90_000_000)
	}
	switch e {
	case EffortDefault:
	case EffortFast:
		switch {
		case things <= handful:
			return n / 8
		case in.sorts() <= fewSorts:
			return min(2_000*things, 400_000)
		}
		return 0
	case EffortBest:
		return n * 10
	}
	return n
}

// sorts is how many sizes and requirements the items have together, or one more than few.
func (in *Instance) sorts() int {
	var kinds []int
	for i := range in.problem.Items {
		known := slices.ContainsFunc(kinds, func(k int) bool {
			return in.profile[k] == in.profile[i] && slices.Equal(in.problem.Items[k].Size, in.problem.Items[i].Size)
		})
		if known || in.problem.Items[i].Count == 0 {
			continue
		}
		if kinds = append(kinds, i); len(kinds) > fewSorts {
			break
		}
	}
	return len(kinds)
}

// CostAware looks for the layout of the least objective. It solves the linear programme over fillings of bins for what a
// class of items is worth and which fillings pay, buys whole bins of them, packs the most wasteful bins anew as long as
// its steps last, and puts the outcome into practice under all rules. What the rules forbid is planned again; what is
// left then is placed by first fit. The result is compared with that of [FirstFitDecreasing]: it never places less, of all
// items and of those of any priority or above, and never costs more where it places the same.
type CostAware struct {
	Effort Effort
}

// Name is "cost".
func (CostAware) Name() string { return "cost" }

// Pack implements [Strategy].
func (c CostAware) Pack(in *Instance) Layout {
	l, _ := c.guided(in, FirstFitDecreasing{}.Pack(in))
	return l
}

// guided is Pack where first fit has packed already, and what it has learnt about values.
func (c CostAware) guided(in *Instance, best Layout) (Layout, []hint) {
	bestCost := in.objectiveOf(best)
	if in.steps(c.Effort) == 0 {
		return best, nil
	}
	var hints []hint
	for _, valued := range []bool{false, true} {
		if valued && len(in.problem.Nodes) == 0 {
			break
		}
		p := &planner{in: in, f: newFiller(in), effort: c.Effort, ceiling: bestCost}
		p.budget = &relax.Budget{Left: in.steps(c.Effort)}
		l := p.pack(valued)
		if cost := in.objectiveOf(l); in.compare(l, cost, best, bestCost) < 0 {
			best, bestCost = l, cost
		}
		hints = p.hints
	}
	return best, hints
}

// things is how many there are to pack.
func (in *Instance) things() int {
	n := 0
	for _, it := range in.problem.Items {
		n += it.Count
	}
	return n
}

func (in *Instance) objectiveOf(l Layout) Price {
	var cost Price
	for _, b := range l.Bins {
		cost = sum(cost, in.objective(int32(b.Type), b.Offering))
	}
	return cost
}

// compare is negative if a is the better layout: from the highest priority down it places nowhere fewer, all told, and
// somewhere more, or the same for less.
func (in *Instance) compare(a Layout, costA Price, b Layout, costB Price) int {
	placedA, placedB := in.placed(a), in.placed(b)
	more, most, least := 0, 0, 0
	for k, i := range in.order {
		more += placedA[i] - placedB[i]
		if k+1 == len(in.order) || in.problem.Items[in.order[k+1]].Priority != in.problem.Items[i].Priority {
			most, least = max(most, more), min(least, more)
		}
	}
	switch {
	case least < 0:
		return 1
	case most > 0:
		return -1
	}
	return cmp.Compare(costA, costB)
}

// hint is what a plan has learnt on the way about these counts of items: a bound that was proved or, where the plan did
// not look at all kinds, the patterns that it bought, which prove nothing yet.
type hint struct {
	bound    Bound
	patterns []pattern
	counts   []int
}

// pattern is a filling of a kind by class; classes are the same wherever counts are.
type pattern struct {
	kind
	relax.Pattern
}

// planner makes one layout.
type planner struct {
	in      *Instance
	f       *filler
	effort  Effort
	budget  *relax.Budget
	ceiling Price // what is known to suffice
	counts  []int // what is to be placed of the items, as far as some bin may hold it
	hints   []hint
}

func (p *planner) pack(valued bool) Layout {
	in, f := p.in, p.f
	if valued {
		p.fillNodesByValue()
	}
	for _, item := range in.order {
		f.firstFit(f.nodes, item)
	}
	for k := range in.tiers {
		p.tier(k)
	}
	p.placeRest()
	return f.finish()
}

// placeRest places what is left by first fit.
func (p *planner) placeRest() {
	in, f := p.in, p.f
	d := newDemand(in)
	for _, item := range in.order {
		for k := range in.tiers {
			if f.want[item] == 0 {
				break
			}
			f.firstFitTier(item, int32(k))
			for f.want[item] > 0 && f.open(item, &in.tiers[k], d) {
			}
		}
		d.drop(in, item)
	}
}

// tier plans bins of the pools of one weight, again for what the rules did not allow.
func (p *planner) tier(k int) {
	const rounds = 4
	for round := range rounds {
		ceiling := Price(math.MaxInt64)
		if len(p.in.tiers) == 1 && round == 0 {
			ceiling = sum(p.ceiling, 1)
		}
		most := manyOffers
		if p.in.things() <= p.effort.searched() {
			most = math.MaxInt // the search among few looks at all
		}
		r, ok := p.in.relaxed(p.f.want, k, false, ceiling, most)
		p.counts = r.fitting(p.f.want)
		if !slices.Equal(p.counts, p.f.want) { // what fits nowhere would count as something to be bought for
			r, ok = p.in.relaxed(p.counts, k, false, ceiling, most)
		}
		if !ok || len(r.model.Kinds) == 0 || r.dearest() > relax.Largest {
			return
		}
		reach := r.reachable()
		if reach == 0 {
			return
		}
		first := round == 0 && len(p.in.tiers) == 1 && len(p.f.nodes) == 0
		if p.plan(r, first) == 0 {
			return
		}
	}
}

// fitting is the counts without the items that no kind can hold.
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

// reachable is how many things some kind can hold.
func (r *relaxation) reachable() int64 {
	var n int64
	for i := range r.model.Classes {
		if r.model.Fits(i) {
			n += r.model.Classes[i].Count
		}
	}
	return n
}

// plan solves the relaxation and puts it into practice. It gives the number of bins that were opened.
func (p *planner) plan(r *relaxation, first bool) int {
	const fewClasses, fewThings = 48, 8 // above, column generation costs more than it brings
	model := r.model
	search := p.in.things() <= p.effort.searched()
	if n := len(model.Classes); n > fewClasses && !search && (n > maxClasses || model.PerBin() > fewThings) {
		p.budget.Left /= 2 // larger bins make each step take longer
		columns := model.Greedy(p.budget)
		value := model.Coverage()
		p.budget.Left = max(p.budget.Left, p.in.steps(p.effort)/4)
		return p.realise(r, model.Improve(columns, value, 0, p.budget))
	}
	if search {
		return p.realise(r, p.planFew(r, first))
	}
	m := p.generate(r)
	p.prove(r, m, first)
	return p.realise(r, p.dive(r, m, m.Values()))
}

// generate solves the programme over fillings.
func (p *planner) generate(r *relaxation) *relax.Master {
	m := relax.NewMaster(r.model)
	part := &relax.Budget{Left: p.budget.Left / 2}
	p.budget.Left -= part.Left
	if len(r.model.Kinds) > 60 && p.in.things() > p.effort.searched() { // from so many, values start off far from their end
		for _, c := range r.model.Greedy(&relax.Budget{Left: part.Left / 8}) {
			m.Add(c)
		}
	}
	m.Price(r.model.Coverage(), part)
	for m.Generate(400, part); part.Left > 0 && m.Deepen(20_000, part); {
		m.Generate(400, part)
	}
	return m
}

// prove proves what it can of what was generated, and knows it from then on.
func (p *planner) prove(r *relaxation, m *relax.Master, first bool) relax.Proof {
	return p.proveNear(r, m, first, sharp, patient, max(p.in.steps(p.effort), p.budget.Left))
}

// proveNear is prove as near as that, in at most so many rounds and steps.
func (p *planner) proveNear(r *relaxation, m *relax.Master, first bool, near float64, rounds, steps int) relax.Proof {
	if !first { // what it proves does not hold for everything
		return relax.Proof{}
	}
	if r.sparse {
		p.suggest(r, m.Columns())
		return relax.Proof{}
	}
	proof := p.in.prove(r, m, near, rounds, &relax.Budget{Left: steps})
	if proof.Price > 0 {
		p.learn(p.in.itemBound(r, proof))
	}
	return proof
}

// cheaper is the less dear of two packings.
func cheaper(m *relax.Model, a, b []relax.Column) []relax.Column {
	if m.Uncovered(a) || !m.Uncovered(b) && m.Cost(b) < m.Cost(a) {
		return b
	}
	return a
}

// dive makes whole bins of the fractions and improves them.
func (p *planner) dive(r *relaxation, m *relax.Master, value []float64) []relax.Column {
	model := r.model
	floor := p.floor(m) // of all things, not of what a dive has left
	best := p.whole(model, m, model.Greedy(&relax.Budget{}))
	best = model.Improve(best, value, floor, p.budget)
	if n := p.in.things(); p.effort != EffortFast && n <= 2000 && len(model.Kinds) <= 2 && !model.Uncovered(best) {
		best = few.Tighten(model, best, floor, 3_000*n, &relax.Budget{Left: p.in.steps(p.effort)})
	}
	return best
}

// floor is what no packing is cheaper than by what was generated.
func (p *planner) floor(m *relax.Master) float64 { return float64(p.in.roundUp(Price(m.BestPrice))) }

// whole makes whole bins of the fractions in several ways and gives the cheapest packing, if that is none below best.
func (p *planner) whole(model *relax.Model, m *relax.Master, best []relax.Column) []relax.Column {
	const most = 4
	floor := p.floor(m)
	for variation := range most {
		before := p.budget.Left * 2 / 3
		part := &relax.Budget{Left: before} // a dive comes to an end, if a poor one, without any
		columns := flat(m.Dive(variation, part))
		spent := min(before-part.Left, before)
		p.budget.Left -= spent
		if !model.Uncovered(columns) && (model.Uncovered(best) || model.Cost(columns) < model.Cost(best)) {
			best = columns
		}
		if model.Cost(best) <= floor || p.budget.Left < 2*spent {
			break
		}
	}
	return best
}

func flat(batches []relax.Batch) []relax.Column {
	var out []relax.Column
	for _, b := range batches {
		for range b.Copies {
			out = append(out, b.Column)
		}
	}
	return out
}

// suggest keeps the patterns for the bound to start from.
func (p *planner) suggest(r *relaxation, columns []relax.Column) {
	h := hint{counts: slices.Clone(p.counts)}
	for _, c := range columns {
		h.patterns = append(h.patterns, pattern{r.kinds[c.Kind], c.Pattern})
	}
	p.hints = append(p.hints, h)
}

// learn keeps a bound for the things that are to be placed.
func (p *planner) learn(b Bound) {
	p.hints = append(p.hints, hint{bound: b, counts: slices.Clone(p.counts)})
}

// realise opens a bin for each column and puts in what the rules allow. It gives the number of bins that were opened.
func (p *planner) realise(r *relaxation, columns []relax.Column) int {
	in, f := p.in, p.f
	queues := r.queues()
	opened := 0
	for _, c := range columns {
		kind := r.kinds[c.Kind]
		mask := kind.mask & f.affordable(kind.typ)
		if mask == 0 {
			continue
		}
		b := f.newBin(kind.typ, mask)
		f.charge(kind.typ, int(b.charged), 1)
		for k, class := range c.Class {
			p.take(&b, &queues[class], int(c.Count[k]))
		}
		if len(b.shares) == 0 {
			f.charge(kind.typ, int(b.charged), -1)
			continue
		}
		slices.SortStableFunc(b.shares, func(x, y Share) int { return in.rank[x.Item] - in.rank[y.Item] })
		f.bins = append(f.bins, b)
		opened++
	}
	return opened
}

// queue is the items of a class that are still to be placed.
type queue struct{ items []int }

func (r *relaxation) queues() []queue {
	out := make([]queue, len(r.members))
	for c, members := range r.members {
		out[c].items = slices.Clone(members)
	}
	return out
}

// take puts n things of the queue into the bin, or as many as it admits. Items that have limits of their own give way to
// the next.
func (p *planner) take(b *bin, q *queue, n int) int {
	const patience = 64 // items that do not go in before it is given up
	taken, missed := 0, 0
	for at := 0; at < len(q.items) && taken < n && missed < patience; {
		item := q.items[at]
		if k, v, mask, open := p.f.admit(b, item, min(n-taken, p.f.want[item])); k > 0 {
			p.f.place(b, item, k, v, mask, open)
			taken += k
		} else {
			missed++
		}
		if p.f.want[item] == 0 {
			q.items = slices.Delete(q.items, at, at+1)
		} else {
			at++
		}
	}
	return taken
}

// fillNodesByValue fills existing nodes with what is worth most by the prices of resources.
func (p *planner) fillNodesByValue() {
	in, f := p.in, p.f
	r, _ := in.relaxed(f.want, -1, false, math.MaxInt64, math.MaxInt)
	value := r.model.Coverage()
	var knap relax.Knapsack
	queues := r.queues()
	for n := range f.nodes {
		eligible := func(c int) bool {
			for _, v := range in.profiles[in.profile[r.members[c][0]]].variants {
				if v.nodes[n/64]&(1<<(n%64)) != 0 {
					return true
				}
			}
			return false
		}
		if !knap.Load(r.roomOf(in, n), r.model.Classes, eligible, value) {
			continue
		}
		knap.Bound(math.Inf(1))
		knap.Fill(0.5, 1)
		knap.Improve(3, 100)
		pattern := knap.Found()
		for i, class := range pattern.Class {
			taken := p.take(&f.nodes[n], &queues[class], int(pattern.Count[i]))
			r.model.Classes[class].Count -= int64(taken)
		}
	}
}
