package binpack

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// Share is a number of copies of one item in one bin.
type Share struct {
	// Item is an index into Problem.Items.
	Item  int
	Count int
}

// Bin is a new bin and what is in it.
type Bin struct {
	// Type is an index into [Instance.Problem].Types.
	Type int
	// Offering is an index into the type's offerings.
	Offering int
	// Shares are in the order of packing, each item once.
	Shares []Share
}

// Layout is what a [Strategy] decides: who goes where. What it does not mention stays unplaced.
type Layout struct {
	// Nodes holds the shares of each existing node, by position in Problem.Nodes; it may be shorter.
	Nodes [][]Share
	Bins  []Bin
}

// Choice is one way to buy a bin.
type Choice struct {
	Type     int
	Offering int
}

// Plan is a checked layout with its price and the proof of how good that is.
type Plan struct {
	Layout
	// Cost is the price of all new bins; sums too large to count are the largest Price.
	Cost Price
	// Objective is the sum of what the offerings count for: Cost, unless some have an [Offering.Objective] of their own.
	Objective Price
	// Bound is an objective below which no plan can place the same items; it is never above Objective.
	Bound Bound
	// Alternatives holds, for each bin, every choice that would hold the same items, cheapest first, the chosen one
	// included; it is cut to the longest list asked for by [Options.Alternatives]. Each is one that [Diversity] allows while the
	// other bins stay as they are.
	Alternatives [][]Choice
	// Left is how many of each item found no place, by position in Problem.Items.
	Left []int
	// Strategy names what made the layout.
	Strategy string
	// Stopped says that the context ended before the work was done: plan and bound are the best so far.
	Stopped bool
}

// GapPercent is how far the objective is above the bound, in percent of the bound; 0 when nothing is bought.
func (p *Plan) GapPercent() float64 {
	if p.Objective == 0 || p.Bound.Price <= 0 {
		if p.Objective > 0 {
			return 100
		}
		return 0
	}
	return 100 * float64(p.Objective-p.Bound.Price) / float64(p.Bound.Price)
}

// Strategy decides a layout. It must not modify the instance. It need not be perfect: [Pack] checks what it returns.
type Strategy interface {
	// Pack returns a layout, the same for the same instance.
	Pack(in *Instance) Layout
	// Name is a short word for reports, such as "ffd".
	Name() string
}

// Options are the choices of [Pack] that a problem does not make. nil means defaults.
type Options struct {
	// Strategy decides the layout; nil means [CostAware] of the Effort.
	Strategy Strategy
	// Effort is how much work the layout, if Strategy is nil, and the bound are worth.
	Effort Effort
	// Alternatives is how many choices each bin lists at most, unless its pool's MinValues need more; 0 means 60, which is
	// what one EC2 fleet request takes.
	Alternatives int
	// Draft leaves out what only a plan that stands needs: no alternatives but the chosen one, and the bound is 0. It is for
	// callers that pack several times until they are content.
	Draft bool
	// First is a plan that [FirstFitDecreasing] made of the same instance, such as a draft. [CostAware] starts from first
	// fit and need not pack it again then. Plans of other strategies are passed over.
	First *Plan
	// Progress, unless it is nil, is called whenever the plan or its bound gets better, from the goroutine of the call.
	Progress func(Progress)
}

// Progress is how far a call of [Pack] is.
type Progress struct {
	// Bound and Price are what is proved and what is known so far: no plan costs less than Bound, one costs Price.
	Bound, Price Price
	// Work is the part of the steps that have been taken, from 0 to 1.
	Work float64
}

// Gap is how far the price is above the bound, as a part of the bound; infinite where nothing is proved yet.
func (p Progress) Gap() float64 { return float64(p.Price-p.Bound) / float64(p.Bound) }

// Pack decides a layout by the strategy, checks it, and adds price, bound and alternatives. The error is that of
// [Compile], or says which rule a strategy broke; the built-in strategies break none.
//
// When ctx ends, Pack gives the best plan and the best bound that it has, which is no error but stands in [Plan.Stopped]. As
// long as ctx lives the answer depends on the problem and the options alone.
func Pack(ctx context.Context, p Problem, opts *Options) (*Plan, error) {
	in, err := Compile(p)
	if err != nil {
		return nil, err
	}
	return in.Pack(ctx, opts)
}

// Pack is [Pack] for a problem that has been compiled.
func (in *Instance) Pack(ctx context.Context, opts *Options) (*Plan, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Strategy == nil {
		o.Strategy = CostAware{Effort: o.Effort}
	}
	if o.Alternatives <= 0 {
		o.Alternatives = 60
	}
	r := &run{effort: o.Effort, stop: new(atomic.Bool)}
	defer context.AfterFunc(ctx, func() { r.stop.Store(true) })()
	if r.stop.Store(ctx.Err() != nil); o.Progress != nil {
		work := 0.0
		r.report = func(p Progress) {
			work = max(work, p.Work) // what has been set aside for a part and not been used comes back
			p.Work = work
			o.Progress(p)
			r.stop.Store(ctx.Err() != nil) // whoever is told may have had enough
		}
	}
	layout, hints, err := r.layOut(in, &o)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Layout: layout, Strategy: o.Strategy.Name(), Left: in.left(layout)}
	for _, b := range layout.Bins {
		o := &in.problem.Types[b.Type].Offerings[b.Offering]
		plan.Cost, plan.Objective = sum(plan.Cost, o.Price), sum(plan.Objective, o.cost())
	}
	if o.Draft {
		plan.Bound = Bound{Kind: CoverageLP, Value: make([]float64, in.dims)}
		plan.Alternatives = chosen(layout)
		plan.Stopped = r.stopped()
		return plan, nil
	}
	// Neither depends on the other.
	var other sync.WaitGroup
	other.Go(func() { plan.Alternatives = in.alternatives(layout, o.Alternatives, r) })
	plan.Bound = r.bound(in, layout, plan.Objective, hints)
	other.Wait()
	plan.Stopped = r.stopped()
	return plan, nil
}

// chosen is the alternatives of a draft: what the layout says.
func chosen(l Layout) [][]Choice {
	out, all := make([][]Choice, len(l.Bins)), make([]Choice, len(l.Bins))
	for i, b := range l.Bins {
		all[i] = Choice{b.Type, b.Offering}
		out[i] = all[i : i+1 : i+1]
	}
	return out
}

// layOut is the checked layout of the strategy, and what that has learnt about bounds.
func (r *run) layOut(in *Instance, o *Options) (layout Layout, hints []hint, err error) {
	c, ok := o.Strategy.(CostAware)
	if !ok {
		layout = o.Strategy.Pack(in)
		return layout, nil, in.Check(layout)
	}
	given := o.First != nil && o.First.Strategy == (FirstFitDecreasing{}).Name()
	if given {
		layout = o.First.Layout
	} else {
		layout = FirstFitDecreasing{}.Pack(in)
	}
	better := false
	if !r.stopped() {
		priced := *r
		priced.effort = c.Effort
		layout, hints, better = priced.guided(in, layout)
	}
	if given && !better && r.stopped() { // it has been checked, and there is no time
		return layout, hints, nil
	}
	return layout, hints, in.Check(layout)
}

func (in *Instance) left(l Layout) []int {
	left := in.placed(l)
	for i, it := range in.problem.Items {
		left[i] = it.Count - left[i]
	}
	return left
}

// placed is how many of each item the layout places.
func (in *Instance) placed(l Layout) []int {
	placed := make([]int, len(in.problem.Items))
	for _, shares := range l.Nodes {
		for _, s := range shares {
			placed[s.Item] += s.Count
		}
	}
	for _, b := range l.Bins {
		for _, s := range b.Shares {
			placed[s.Item] += s.Count
		}
	}
	return placed
}

// Point is a layout on a [Instance.Frontier].
type Point struct {
	Layout
	Objective Price
	// Count is the sum of what its bins count for.
	Count int64
}

// Frontier is what it costs to have less of something: layouts that place as much as the cheapest does, none of which is both
// dearer and counts for more than another, the cheapest first. counts says what a bin bought so counts for, not negative; nil
// counts bins, and 1 for spot offerings alone shows cost against how much is spot.
//
// Each point is the plan, at the effort fast, of a problem in which what counts costs something more, twice as much from one to
// the next (the weighted sums of multi-objective optimization), so that points inside the convex hull are not found. When ctx
// ends, the points so far stand.
func (in *Instance) Frontier(ctx context.Context, counts func(Choice) int64) ([]Point, error) {
	if counts == nil {
		counts = func(Choice) int64 { return 1 }
	}
	var out []Point
	var left []int
	for step, extra := 0, Price(0); step < frontierPoints && ctx.Err() == nil; step++ {
		priced := in.problem
		priced.Types = slices.Clone(priced.Types)
		for t := range priced.Types {
			offers := slices.Clone(priced.Types[t].Offerings)
			for j := range offers {
				if n := counts(Choice{t, j}); n > 0 && extra > 0 {
					offers[j].Objective = Price(min(float64(offers[j].cost())+float64(float64(n)*float64(extra)), math.MaxInt64/4))
				}
			}
			priced.Types[t].Offerings = offers
		}
		other, err := Compile(priced)
		if err != nil {
			return nil, err
		}
		plan, err := other.Pack(ctx, &Options{Effort: EffortFast, Draft: true})
		if err != nil {
			return nil, err
		}
		p := Point{Layout: plan.Layout, Objective: in.objectiveOf(plan.Layout)}
		for _, b := range plan.Bins {
			p.Count += counts(Choice{b.Type, b.Offering})
		}
		if left == nil {
			left = plan.Left
		}
		if slices.Equal(left, plan.Left) {
			out = append(out, p)
		}
		if extra *= 2; extra == 0 {
			extra = max(p.Objective/Price(16*max(len(p.Bins), 1)), 1) // a sixteenth of what a bin costs
		}
	}
	slices.SortStableFunc(out, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Objective, b.Objective), cmp.Compare(a.Count, b.Count))
	})
	kept := out[:0]
	for _, p := range out {
		if len(kept) == 0 || p.Count < kept[len(kept)-1].Count {
			kept = append(kept, p)
		}
	}
	return kept, nil
}
