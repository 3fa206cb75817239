package binpack

import "sync"

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
	// included; it is cut to the longest list asked for by [Options.Alternatives].
	Alternatives [][]Choice
	// Left is how many of each item found no place, by position in Problem.Items.
	Left []int
	// Strategy names what made the layout.
	Strategy string
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
}

// Pack decides a layout by the strategy, checks it, and adds price, bound and alternatives. The error is that of
// [Compile], or says which rule a strategy broke; the built-in strategies break none.
func Pack(p Problem, opts *Options) (*Plan, error) {
	in, err := Compile(p)
	if err != nil {
		return nil, err
	}
	return in.Pack(opts)
}

// Pack is [Pack] for a problem that has been compiled.
func (in *Instance) Pack(opts *Options) (*Plan, error) {
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
	layout, hints, err := in.layOut(&o)
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
		plan.Alternatives = make([][]Choice, len(layout.Bins))
		chosen := make([]Choice, len(layout.Bins))
		for i, b := range layout.Bins {
			chosen[i] = Choice{b.Type, b.Offering}
			plan.Alternatives[i] = chosen[i : i+1 : i+1]
		}
		return plan, nil
	}
	// Neither depends on the other.
	var other sync.WaitGroup
	other.Go(func() { plan.Alternatives = in.alternatives(layout, o.Alternatives) })
	plan.Bound = in.bound(layout, plan.Objective, in.steps(o.Effort), hints)
	other.Wait()
	return plan, nil
}

// layOut is the checked layout of the strategy, and what that has learnt about values.
func (in *Instance) layOut(o *Options) (layout Layout, hints []hint, err error) {
	switch c, ok := o.Strategy.(CostAware); {
	case !ok:
		layout = o.Strategy.Pack(in)
	case o.First != nil && o.First.Strategy == FirstFitDecreasing{}.Name():
		layout, hints = c.guided(in, o.First.Layout)
	default:
		layout, hints = c.guided(in, FirstFitDecreasing{}.Pack(in))
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
