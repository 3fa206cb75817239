package binpack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// Options are the options of [Pack]. nil means all defaults.
type Options struct {
	// Strategy decides the layout; nil means [CostAware] with Effort.
	Strategy Strategy
	// Effort is how much work goes into the bound and, if Strategy is nil, into the layout.
	Effort Effort
	// Alternatives is how many choices each bin lists at most, unless the MinValues of its pool
	// need more. 0 means 60, as many types as package cloudprovider/aws puts into one fleet
	// request.
	Alternatives int
	// Draft skips what only a final plan needs: each bin has one alternative, the chosen one, and
	// the bound is 0. The layout is no worse than without Draft. It is for callers that pack
	// several times.
	Draft bool
	// ProveLater returns the plan without bound and alternatives, like Draft, but keeps what the
	// strategy has proved. [Instance.Prove] then adds the same bound as a call without ProveLater.
	// It is for callers that pack several times and use one plan.
	ProveLater bool
	// First is a plan that [FirstFitDecreasing] made of the same instance, for example a draft.
	// [CostAware] then starts from it instead of running first fit again. Plans of other strategies
	// are ignored. A plan that does not fit the instance is an error of [Pack].
	First *Plan
	// Progress, if not nil, is called when the plan or its bound improves, from the goroutine of
	// the call.
	Progress func(Progress)
}

// Progress is the state of a running [Pack].
type Progress struct {
	// Bound and Price bracket the optimum: no plan of the items costs less than Bound, and a known
	// plan costs Price. If that plan leaves items unplaced and costs less than the bound, Bound is
	// reduced to Price.
	Bound, Price Price
	// Work is the fraction of the steps that are used, from 0 to 1.
	Work float64
}

// Gap returns how far the price is above the bound, as a fraction of the bound. It is infinite
// while nothing is proved, and NaN if price and bound are both 0.
func (p Progress) Gap() float64 { return float64(p.Price-p.Bound) / float64(p.Bound) }

// Pack decides a layout by the strategy, checks it, and adds price, bound and alternatives. The
// error is that of [Compile] or of the strategy, or names an invalid option or the rule that the
// strategy broke. The built-in strategies break none; they fail if first fit buys 2^20 bins or more.
//
// When ctx ends, Pack returns the best plan and bound so far without an error, and sets
// [Plan.Stopped]. With more than a few thousand items, first fit may not have reached all of them
// by then; the others are unplaced. If the problem is not compiled by then, all items are unplaced.
// If ctx does not end, the result depends only on the problem and the options.
func Pack(ctx context.Context, p Problem, opts *Options) (*Plan, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	stop := new(atomic.Bool)
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	in, err := compile(p, stop)
	if errors.Is(err, errStopped) {
		return nothing(p), nil
	}
	if err != nil {
		return nil, err
	}
	return in.Pack(ctx, opts)
}

// nothing returns the plan of a problem that there was no time to read.
func nothing(p Problem) *Plan {
	plan := &Plan{Bound: Bound{Kind: AssignmentLP, ItemDuals: make([]Price, len(p.Items))}, Unplaced: make([]int, len(p.Items)), Stopped: true}
	for i, it := range p.Items {
		plan.Unplaced[i] = it.Count
	}
	return plan
}

// complete returns the options with their defaults, or an error that names an invalid one.
func (opts *Options) complete() (o Options, err error) {
	if opts != nil {
		o = *opts
	}
	if o.Strategy == nil {
		o.Strategy = CostAware{Effort: o.Effort}
	}
	if c, ok := o.Strategy.(*CostAware); ok {
		o.Strategy = *c
	}
	if c, ok := o.Strategy.(CostAware); ok {
		if err := c.Effort.check(); err != nil {
			return o, err
		}
	}
	if err := o.Effort.check(); err != nil {
		return o, err
	}
	switch {
	case o.Alternatives < 0:
		return o, fmt.Errorf("binpack: Options.Alternatives is %d, want a number of choices, or 0 for 60", o.Alternatives)
	case o.Alternatives == 0:
		o.Alternatives = 60
	}
	return o, nil
}

// Pack is [Pack] for a compiled problem.
func (in *Instance) Pack(ctx context.Context, opts *Options) (*Plan, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	o, err := opts.complete()
	if err != nil {
		return nil, err
	}
	r, end := newRun(ctx, o.Effort)
	defer end()
	r.planOnly = o.Draft
	if o.Progress != nil {
		work := 0.0
		r.report = func(p Progress) {
			work = max(work, p.Work) // steps that a method did not use are returned
			p.Work = work
			p.Bound = min(p.Bound, p.Price) // the bound is of all items, and the plan may leave some unplaced
			o.Progress(p)
			if ctx.Err() != nil { // the callback may have ended it
				r.stop.Store(true)
			}
		}
	}
	layout, h, err := r.layOut(ctx, in, &o)
	if err != nil {
		return nil, err
	}
	plan := in.planOf(layout, o.Strategy.Name())
	if o.Draft || o.ProveLater {
		plan.Bound = in.noBound()
		plan.Alternatives = chosen(layout)
		plan.Stopped = r.stopped()
		if o.ProveLater {
			plan.proved = h
		}
		return in.outward(plan), nil
	}
	in.prove(r, plan, h, o.Alternatives)
	return in.outward(plan), nil
}

// planOf returns the plan of a layout, without bound and alternatives.
func (in *Instance) planOf(layout Layout, strategy string) *Plan {
	plan := &Plan{Layout: layout, Strategy: strategy, Unplaced: in.unplaced(layout)}
	for _, b := range layout.Bins {
		o := &in.problem.Types[b.Type].Offerings[b.Offering]
		plan.Cost, plan.Objective = sum(plan.Cost, o.Price), sum(plan.Objective, o.cost())
	}
	return plan
}

// outward returns the plan with the caller's types in place of compiled ones.
func (in *Instance) outward(plan *Plan) *Plan {
	if in.split == nil {
		return plan
	}
	plan.Layout = in.split.layout(plan.Layout, in.split.out)
	for i, list := range plan.Alternatives {
		own := make([]Choice, len(list)) // equal bins share a list
		for k, c := range list {
			own[k] = in.split.out(c)
		}
		plan.Alternatives[i] = own
	}
	return plan
}

// chosen lists the choice of each bin as its only alternative.
func chosen(l Layout) [][]Choice {
	out, all := make([][]Choice, len(l.Bins)), make([]Choice, len(l.Bins))
	for i, b := range l.Bins {
		all[i] = Choice{b.Type, b.Offering}
		out[i] = all[i : i+1 : i+1]
	}
	return out
}

// layOut returns the checked layout of the strategy, and the bounds that the strategy proved.
func (r *run) layOut(ctx context.Context, in *Instance, o *Options) (layout Layout, h hint, err error) {
	c, ok := o.Strategy.(CostAware)
	if !ok {
		if layout, err = o.Strategy.Pack(ctx, in); err != nil {
			return layout, h, fmt.Errorf("binpack: strategy %s: %w", o.Strategy.Name(), err)
		}
		layout = in.split.layout(layout, in.split.in)
		return layout, h, in.check(layout)
	}
	given, better := o.First != nil && o.First.Strategy == (FirstFitDecreasing{}).Name(), false
	if given {
		if err := in.Check(o.First.Layout); err != nil {
			return layout, h, fmt.Errorf("binpack: Options.First is not a plan of the instance: %w", err)
		}
		layout = in.split.layout(o.First.Layout, in.split.in)
	} else if layout = r.firstFitDecreasing(in); fewEnough(layout) != nil {
		return layout, h, fewEnough(layout)
	}
	if !r.stopped() {
		priced := *r
		priced.effort = c.Effort
		layout, h, better = priced.guided(in, layout)
	}
	if given && !better && r.stopped() { // First was checked, and no time is left
		return layout, h, nil
	}
	return layout, h, in.check(layout)
}

// withinLimits returns the layout, or a better one that is found if the budgets that the layout uses
// up have a price: what the layout pays for their bins. Otherwise bins that are cheap for their
// contents use up a limit that others would use better. On 3,000 problems with limits that bind, this
// lowered the mean distance from the least cost from 0.10% to 0.02%, and several prices by no more.
func (r *run) withinLimits(in *Instance, best Layout) Layout {
	at := in.charging(best, r.stop)
	if at == nil {
		return best
	}
	if l := r.firstFitDecreasing(at); in.better(l, best) {
		best = l
	}
	p := r.planner(at)
	if l, ok := p.pack(); ok {
		if l = p.repack(l, false); in.better(l, best) {
			best = l
		}
	}
	return best
}

// charging returns the instance with a price of what bins take of the budgets that the layout uses
// up, added to their objectives. It is nil if the layout uses up none, so that every choice could be
// bought once more.
func (in *Instance) charging(l Layout, stop *atomic.Bool) *Instance {
	b := &in.budgets
	used, paid, scarce := make([]float64, len(b.amounts)), make([]float64, len(b.amounts)), make([]bool, len(b.amounts))
	for _, x := range l.Bins {
		for _, u := range b.of(int32(x.Type), x.Offering) {
			used[u.budget] += float64(u.amount)
			paid[u.budget] += float64(in.objective(int32(x.Type), x.Offering))
		}
	}
	p := in.problem
	for t := range p.Types {
		for j := range p.Types[t].Offerings {
			for _, u := range b.of(int32(t), j) {
				scarce[u.budget] = scarce[u.budget] || used[u.budget] > 0 && float64(u.amount) > float64(b.amounts[u.budget])-used[u.budget]
			}
		}
	}
	if !slices.Contains(scarce, true) {
		return nil
	}
	p.Types = slices.Clone(p.Types)
	for t := range p.Types {
		p.Types[t].Offerings = slices.Clone(p.Types[t].Offerings)
		for j := range p.Types[t].Offerings {
			for _, u := range b.of(int32(t), j) {
				if o := &p.Types[t].Offerings[j]; scarce[u.budget] {
					o.Objective = sum(o.cost(), Price(min(float64(float64(paid[u.budget]/used[u.budget])*float64(u.amount)), 1<<60)))
				}
			}
		}
	}
	out, err := compile(p, stop)
	if err != nil { // stopped
		return nil
	}
	return out
}

// join returns a layout that costs no more and has fewer bins, if it finds one. It tries to replace
// each bin and another one, the first of each type and offering, by one bin, as long as that succeeds.
// Prices of a family's sizes are often proportional, so many layouts cost the same.
func (p *planner) join(l Layout) Layout {
	s := &repacker{filler: newFiller(p.in, p.stop), budget: &relax.Budget{Left: p.total / joinPart, Stop: p.stop}}
	if len(l.Bins) < 2 || p.stopped() || !s.restore(l) {
		return l
	}
	kind := func(j int) [2]int32 { return [2]int32{s.bins[j].typ, s.bins[j].charged} }
	var first []int // the first bin of each type and offering, among those before next
	for i, next := 1, 0; i < len(s.bins) && s.budget.Left > 0; i++ {
		for ; next < i; next++ {
			if !slices.ContainsFunc(first, func(j int) bool { return kind(j) == kind(next) }) {
				first = append(first, next)
			}
		}
		for _, j := range first {
			if s.budget.Left > 0 && s.join(i, j) {
				i, first, next = max(i-2, 0), nil, 0 // the bins after i moved down by two, and the new one is the last
				break
			}
		}
	}
	if len(s.bins) == len(l.Bins) {
		return l
	}
	return s.finish()
}

// join replaces two bins by a new one, the last, that costs no more. It reports whether there is one.
func (s *repacker) join(i, j int) bool {
	a, b, tier := s.bins[i], s.bins[j], s.in.tierOf(s.bins[i].typ)
	if s.in.tierOf(b.typ) != tier {
		return false
	}
	s.budget.Take(joinSteps + len(s.in.tiers[tier])/oneBinPart)
	s.withdraw(&a)
	s.withdraw(&b)
	s.rest = append(append(s.rest[:0], a.shares...), b.shares...)
	if t, o, ok := s.choiceFor(s.rest, tier, sum(sum(s.price(&a), s.price(&b)), 1)); ok && s.add(t, o, s.rest) {
		s.bins = slices.Delete(slices.Delete(s.bins, i, i+1), j, j+1)
		return true
	}
	s.count(&a, 1)
	s.count(&b, 1)
	return false
}

// Effort says how much work goes into a plan. Work is counted in steps, so the result does not
// depend on the speed or load of the machine. The empty Effort means EffortDefault.
type Effort string

// The efforts, from least to most work. Default takes some milliseconds for a hundred copies and up
// to half a second for thousands. Fast takes a twentieth of that, with a minimum. Best takes ten
// times as long as Default.
const (
	EffortFast    Effort = "fast"
	EffortDefault Effort = "default"
	EffortBest    Effort = "best"
)

// steps returns the budget for a number of copies: one curve for all sizes.
func (e Effort) steps(copies int) int {
	x := float64(copies) / (float64(copies) + halfItems)
	n := leastSteps + int(mostSteps*x*x*x)
	switch e {
	case EffortDefault, "":
	case EffortFast:
		return max(n/fastPart, fastLeast)
	case EffortBest:
		return n * bestTimes
	}
	return n
}

// less returns the next smaller effort; false for the smallest.
func (e Effort) less() (Effort, bool) {
	switch e {
	case EffortFast:
		return "", false
	case EffortBest:
		return EffortDefault, true
	case EffortDefault, "":
	}
	return EffortFast, true
}

// check returns an error if there is no such effort.
func (e Effort) check() error {
	switch e {
	case "", EffortFast, EffortDefault, EffortBest:
		return nil
	}
	return fmt.Errorf("binpack: there is no effort %q, only %q, %q and %q", string(e), string(EffortFast), string(EffortDefault), string(EffortBest))
}

// run is one call of Pack: its effort, when it must stop, and where it reports progress.
type run struct {
	effort   Effort
	planOnly bool // no bound is asked for
	stop     *atomic.Bool
	report   func(Progress)
}

// newRun returns a run that stops when ctx ends; end releases what that takes.
func newRun(ctx context.Context, effort Effort) (r *run, end func() bool) {
	r = &run{effort: effort, stop: new(atomic.Bool)}
	end = context.AfterFunc(ctx, func() { r.stop.Store(true) })
	if ctx.Err() != nil {
		r.stop.Store(true)
	}
	return r, end
}

// budget returns the steps of the effort for the instance.
func (r *run) budget(in *Instance) *relax.Budget {
	return &relax.Budget{Left: r.effort.steps(in.copies()), Stop: r.stop}
}

// stopped reports whether the caller's context has ended.
func (r *run) stopped() bool { return r.stop != nil && r.stop.Load() }

// Constants that trade work for quality, each with its reason and what was tried. Those of the
// engine are in internal/relax.
const (
	// leastSteps, mostSteps and halfItems define the budget for n copies: leastSteps + mostSteps *
	// x * x * x steps with x = n / (n + halfItems). A step takes two to three nanoseconds. So a
	// hundred copies take 15 to 25 ms, and ten thousand about half a second. 77 of OR-Library's 80
	// instances (120 to 1,000 copies) are solved. With 3 and 250 million and 270, 2,080 problems of
	// 20 to 5,000 copies took a seventh longer and were 0.04% cheaper. With a half of 400, bounds
	// of 100 and 200 copies were 0.2% lower.
	leastSteps, mostSteps, halfItems = 3_500_000, 200_000_000, 300
	// fastPart is the fraction of the budget that effort fast takes, fastLeast its minimum (under
	// half a millisecond), and bestTimes the multiple that effort best takes. Consolidation uses
	// fast. Six clusters of a thousand nodes, compared with packing from scratch, were 0.6 to 1.0%
	// dearer with a hundredth of the budget, and 0.0 to 0.1% with a twentieth.
	fastPart, fastLeast, bestTimes = 20, 150_000, 10
	// Fleets of one type take at most 1/uniformPart of the budget. They take uniformSteps for each
	// step of a watch, and at least for each item.
	uniformPart, uniformSteps = 16, 16
	// priceBits is the least number of bits of a relaxation's highest price, so that tolerances are
	// small beside prices.
	priceBits = 32
	// enoughGap is the gap at which the search ends; prices are not known more exactly.
	enoughGap = 1e-5
	// admitSteps is how many steps one admit takes.
	admitSteps = 4
	// Packing again under all rules takes 1/repackPart of the budget on top of it, and half of what
	// remains. With a quarter, plans of 2,080 problems of 20 to 5,000 items were 0.07% dearer. It
	// ends after idleRounds rounds for each bin, and idleLeast more, without a gain. With 100
	// rounds, plans of 478 of these problems were 0.02% cheaper.
	repackPart, idleRounds, idleLeast = 2, 40, 800
	// The search for one bin that holds everything that remains takes one step for oneBinPart
	// types. Without it, plans of 1,040 problems were 0.07% dearer, and those of 100 items with
	// labels 0.4%.
	oneBinPart = 4
	// Joining bins takes at most 1/joinPart of the budget, on top of it, and joinSteps for each
	// attempt. Neither has been varied.
	joinPart, joinSteps = 8, 200
	// putSteps is how many steps one attempt to put an item into a bin takes when packing again.
	// openSteps is the same for a new bin, and showSteps for a type that is looked at for
	// MinValues. With the 4 of admitSteps, a fifth of the budget took as long as all the rest.
	// putSteps includes what is copied.
	putSteps, openSteps, showSteps = 16, 60, 8
	// A new bin is the best of openTypes random ones. With 1, 2, 4, 6 and 9 of them, plans of 512
	// problems were 0.2, 0.1, 0.1, 0.2 and 0.2% dearer, because more of them make a round longer. A
	// type is tried only if its own price makes it at least promising times as good as the best
	// one. At most otherBins of the remaining bins take items, and at most otherItems unplaced
	// items are tried, so that a round does not depend on the size of the plan. Without otherBins,
	// plans of 478 problems were 0.2% dearer.
	openTypes, promising, otherBins, otherItems = 3, 0.8, 16, 8
	// Every second round is more random: one of blinks items is passed over, and a new bin is the
	// best of fewer types. With this in every round, plans of 428 problems were 0.2% dearer.
	// Without it, 5 of 2,000 small problems with all rules missed the optimum, and now 2.
	blinks = 8
	// knapsackNodes is how far a round searches a knapsack. repairs and repairNodes are how often
	// and how far it improves a greedy filling. None of them has been varied.
	knapsackNodes, repairs, repairNodes = 150, 2, 60
	// A relaxation has at most minNodeShapes to maxNodeShapes different free capacities of existing
	// nodes. The number is such that comparing each with each class takes at most nodeShapeWork. If
	// there are more, similar ones are merged. With 64 for any number of classes, plans of 5,000
	// pods and 200 nodes were 2.5% dearer and their bounds 1% lower.
	minNodeShapes, maxNodeShapes, nodeShapeWork = 64, 512, 800_000
	// maxApart is how many tags that keep items apart become resources of a relaxation; each makes
	// all its searches longer. apartShare is the least number of bins that such a tag must require,
	// relative to the most that any requirement needs.
	maxApart, apartShare = 3, 0.3
	// verifyBase, verifyPerNode and verifyNodes limit the steps of a repeated search. A node takes
	// fewer than a hundred, and no effort makes more nodes.
	verifyBase, verifyPerNode, verifyNodes = 50_000_000, 128, 20_000_000
	// blockOfBins is how many bins a block of freeIndex has. 100,000 distinct items took 130 ms
	// with 16, 166 ms with 64 and 510 ms with 256, on a busy machine.
	blockOfBins = 16
	// A step of a watch takes 20 to 100 ns. graceSteps of first fit are done even if the context
	// has already ended, in at most 20 ms, so a plan of a thousand items is always whole.
	// graceOfChecks is the same for checking a bound, so that a stopped plan usually has one.
	graceSteps, graceOfChecks = 100_000, 300_000
	// compileEvery is how many items with new requirements are compiled between two checks of the
	// context. Each takes up to 100 microseconds.
	compileEvery = 256
	// maxNarrowings limits how often labels are narrowed, a microsecond each. Beyond it, it stays
	// undecided whether alternatives agree.
	maxNarrowings = 20_000
	// patience is how many items in a row may fail to enter a bin before it is closed.
	patience = 64
)

// wanted counts the copies that are still to be placed.
func (f *filler) wanted() int {
	n := 0
	for _, k := range f.want {
		n += k
	}
	return n
}
