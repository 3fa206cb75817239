// Package binpack packs items into bins that are bought at a price, at the least cost it can find, and proves how far
// from the least possible cost that may be.
//
// It knows nothing of pods, nodes or clouds. A [Problem] has
//
//   - [Item]: a class of identical things: how many, how large in each resource, what labels the bin must have;
//   - [Type] and [Offering]: bins that can be bought, their capacity, their labels and their price;
//   - [Pool]: types under one weight and one budget: usage, number of bins, price, and how many choices each bin keeps;
//   - [Node]: bins that are paid for already, filled first.
//
// # What holds within one bin
//
// Sizes add up to at most the capacity. Labels: the bin satisfies what each item requires; a label that the type leaves
// open is narrowed by the items, so that two items which want different values never share a bin. Tags and limits: an
// item adds tags, and brings limits of the form "at most so many of this tag while I am here"; host ports,
// anti-affinity and spread over nodes are all of this form.
//
// # What holds over the plan
//
// Items go to the heaviest pool that holds them within its limits; limits of a pool hold after each single bin.
// Reservations run out, also where several types share one, and may be amounts of money. One capacity pool holds at most so
// much of what is to be spread over several ([Diversity]). What finds no place is left over, which is a result and no error.
//
// # Strategies
//
// A [Strategy] decides the [Layout], and [Instance.Check] reads it by the rules above, whoever made it: a plan that
// breaks one is an error, never a result.
//
// [FirstFitDecreasing] is the classic of that name (D. S. Johnson, 1973), for several resources by dominant share
// (A. Ghodsi et al., 2011); each bin is changed to the cheapest choice that holds its contents at the end.
//
// [CostAware], the default, plans on a relaxation: classes of equal items, kinds of bins that none undercuts, existing nodes as
// bins that cost nothing and of which there is a number, which class may go where. Tags that keep many things apart count as
// one more resource there, of which a bin has as much as their limit. One portfolio works on it, one way after the other as long
// as the gap between plan and bound is open:
//
//   - a greedy filling by the worth of resources;
//   - an exact search through the sets of bins that cost less than what is known, as far as no surrogate constraint (each
//     resource, the number of things, their worth) shows them to be too small. Each set is packed by filling, or refuted bin by
//     bin (R. E. Korf, 2002);
//   - the linear programme over fillings of bins (P. C. Gilmore and R. E. Gomory, 1961) by column generation, then
//     dives that make whole bins of fractions;
//   - a large-neighbourhood search over bins that cost more than their contents are worth
//     (G. Schrimpf et al., 2000), in two halves side by side;
//   - the exact search again.
//
// They share one budget of steps, which grows smoothly with the number of things; no way is chosen by a count of them, and one
// that cannot come to an end within its part is left out.
//
// The outcome is put into practice under all rules; what they forbid is planned again, and first fit places the rest. The
// result never places less than first fit, and is never dearer where it places the same. [Effort] says how much work that is
// worth, in steps, so that the answer does not depend on the machine.
//
// A price alone prefers old families: a core of them costs less and does less. [Offering.Objective] is where a caller says
// how much less it is worth.
//
// # Bounds
//
// Every [Plan] carries a [Bound]: an objective that no plan which places the same items can go below. Most kinds have a
// certificate, numbers that [Instance.VerifyBound] checks in one pass. The simplest is [CoverageLP], linear programming duality:
// let y say what a unit of each resource is worth, such that no type offers more worth than its price. Then every bin is worth
// at most its price, and all bins together hold what is placed less what existing nodes have free where it may go, so no plan
// costs less than the worth of that. [AssignmentLP] and [Configuration] let items have worth, with fillings in fractions or
// whole (A. A. Farley, 1990). A bound that is [Exhausted] has no certificate: a search has looked through all sets of bins that
// cost less, and says how many nodes that took. All of them are rounded up to a sum that prices can come to. With [Diversity] a
// capacity pool whose bins are worth more than their price takes off no more than the most valuable things that it may hold give
// away (a Lagrangian bound), so the certificates of items know that the cheapest pools do not do for everything; the search and
// [CoverageLP] do not. No bound sees budgets, weights or limits between items (but for tags that keep many of them apart), so it
// may be below; it is never above.
//
// # Cost, determinism, concurrency
//
// [Compile] compares each distinct requirement with each distinct label once; first fit then costs O(items x (blocks of bins +
// types)), however many copies an item has. [Pack] takes a context and gives the best plan so far when that ends. BENCHMARKS.md has costs, gaps, seconds and memory of the default. Everything is a
// function of the problem: no clock, no randomness, no map order, the same bytes on any number of cores and on every
// processor, for no product is fused with a sum; a call uses two where
// they are free, and no goroutine outlives it. Ties fall to names and then to the order of the input. Instances are
// immutable and serve any number of callers at once.
package binpack

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/joinery-sdk/joinery/requirements"
)

// Price is an amount of money an hour, in billionths of a dollar (or of whatever currency the caller uses): integers
// add up to the same total in every order.
type Price int64

// PerDollar is how many units of Price make one dollar.
const PerDollar Price = 1_000_000_000

// Dollars is the price as a decimal number, for people.
func (p Price) Dollars() float64 { return float64(p) / float64(PerDollar) }

// Unlimited is the amount of a [Pool]'s limit that never runs out.
const Unlimited int64 = 1<<63 - 1

// Problem says what must be packed and what can be bought. It is plain data; [Compile] checks it and does not keep or
// change any of it that the caller might modify afterwards, provided the caller does not do so during the call.
type Problem struct {
	// Resources names the dimensions of every size, capacity and free vector, in their order.
	Resources []string
	Items     []Item
	// Pools may be left out: types are then in one without limits.
	Pools []Pool
	Types []Type
	// Nodes are bins that are paid for already. They are filled first, in this order.
	Nodes []Node
	// Diversity keeps items from depending on few capacity pools.
	Diversity []Diversity
}

// Diversity allows the bins and nodes of one capacity pool ([Offering.CapacityPool]) so many of some items, all together: what is
// lost at once when the pool is taken back. Bins without a capacity pool hold any number.
type Diversity struct {
	// Items says which items count and how much one of each does; an item that is not mentioned does not.
	Items []Share
	// Max is how much the items in one capacity pool may count; not negative.
	Max int
	// Placed is what is in each capacity pool already; nil means nothing.
	Placed map[string]int
}

// Item is a class of identical things to pack.
type Item struct {
	// Name identifies the item in messages and is the last tie-break of every order; it must be unique.
	Name  string
	Count int
	// Size is what one of them takes, by resource; not negative.
	Size []int64
	// Requires holds the labels that the bin must have, as a union of sets; the zero value asks for none.
	Requires requirements.Alternatives
	// Tags are added to the bin by each of them.
	Tags []string
	// Limits hold in the bin while one of them is there.
	Limits []Limit
	// Priority decides who goes first where not everything can be placed: the higher.
	Priority int32
}

// Limit allows a bin at most Max things with a tag, those that bring the limit included if they carry the tag.
type Limit struct {
	Tag string
	Max int
}

// Pool groups types under a weight and a budget.
type Pool struct {
	Name string
	// Weight orders pools, heaviest first: an item is packed in the heaviest pool that can hold it within its limits.
	// Among pools of equal weight the price decides.
	Weight int
	// Limits bounds the sum of [Type.Usage] over the new bins of the pool, by position; nil limits nothing.
	Limits []int64
	// MaxNodes bounds the number of new bins; 0 limits nothing, nor does a negative number. A pool that may buy nothing has types
	// without offerings, or none.
	MaxNodes int
	// MaxPrice bounds the price of all new bins together; 0 limits nothing, nor does a negative number.
	MaxPrice Price
	// MinValues asks that the alternatives of each new bin show at least so many values of a key.
	MinValues []MinValues
}

// MinValues asks for Count different values of the label Key among the alternatives of a bin.
type MinValues struct {
	Key   string
	Count int
}

// Type is one kind of bin that can be bought: an instance type as one pool offers it.
type Type struct {
	// Name identifies the kind within its pool; several Types may share it where their capacity differs by offering.
	Name string
	// Pool is an index into Problem.Pools.
	Pool int
	// Capacity is the room for items, by resource.
	Capacity []int64
	// Provides are the labels of every such bin. A key that neither the type nor the offering mentions is absent. A
	// key with several possible values is open: the items in the bin narrow it.
	Provides requirements.Set
	// Usage is what one bin takes of its pool's limits, by position in Pool.Limits; nil takes nothing.
	Usage []int64
	// Tags and Limits are there before any item, such as the host ports of daemons.
	Tags   []string
	Limits []Limit
	// Offerings says where, in which form and for how much it can be bought. A type without any cannot.
	Offerings []Offering
}

// Offering is one way to buy a [Type].
type Offering struct {
	// Provides narrows Type.Provides, for example to a zone and a capacity type.
	Provides requirements.Set
	Price    Price
	// Objective is what counts as its cost where plans are compared, in the unit of Price; 0 means Price itself. It is
	// where a caller folds in what a price list does not say: that a family is slower, that each node needs a licence,
	// that spot capacity is interrupted. Budgets and [Plan.Cost] stay in money.
	Objective Price
	// Counted says that only Count of them are left, as in a reservation; several types may share what is counted by
	// naming the same Reservation.
	Counted     bool
	Count       int
	Reservation string
	// Takes is how much of the Count one bin takes; 0 means 1. With it a reservation may be an amount of money, as a savings
	// plan is: Count is what has been committed, Takes what one bin uses of it, and Price, usually 0, what is paid besides. A
	// bin is covered as a whole or not at all, so another offering of the type says what it costs beyond the commitment.
	Takes int
	// CapacityPool names what may be taken back together with others of that name, such as the spot capacity of an instance type
	// in a zone; see [Diversity]. Empty is none.
	CapacityPool string
}

// Node is a bin that exists.
type Node struct {
	Name string
	// Free is the room left for items, by resource; negative counts as none.
	Free []int64
	// Provides are its labels, one value a key; a key that is not mentioned is absent. Items do not narrow the labels of
	// a node: nothing of it is open.
	Provides requirements.Set
	// CapacityPool is as for offerings.
	CapacityPool string
	// Tags and Limits stand for what is there already; a tag may be listed several times.
	Tags   []string
	Limits []Limit
}

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
// When ctx ends, Pack gives the best plan and the best bound that it has, which is no error but stands in [Plan.Stopped]; items
// that first fit had not come to by then, of which there can be some only from a thousand on, are left over. As long as ctx lives
// the answer depends on the problem and the options alone.
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
			r.stop.Store(ctx.Err() != nil) // the callback may have ended ctx
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
		layout = r.firstFitDecreasing(in)
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
