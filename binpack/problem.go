// Package binpack packs items into bins that are bought at a price. It looks for the cheapest plan,
// and proves a lower bound on what any plan costs.
//
// It knows nothing of pods, nodes or clouds. A [Problem] has
//
//   - [Item]: a class of identical copies: how many, how large in each resource, and which labels
//     the bin must have;
//   - [Type] and [Offering]: bins that can be bought, with their capacity, labels and price;
//   - [Pool]: types that share a weight, limits on usage, number of bins and total price, and a
//     minimum of different label values that the choices for a bin must have;
//   - budgets: what the bins of all pools may use together;
//   - [Node]: existing bins, which are already paid for and are filled first.
//
// # What holds within one bin
//
// The sizes of the items add up to at most the capacity. The labels of the bin satisfy what each
// item requires. If a type leaves a label open, the items narrow it, so two items that want
// different values never share a bin. An item adds tags, and brings limits of the form "at most Max
// of this tag while I am here". Host ports, anti-affinity and spread over nodes have this form.
//
// # What holds over the plan
//
// An item goes to the heaviest pool that can hold it within its limits. A plan never exceeds the
// limits of a pool. A plan never uses more of a reservation than is left, even if several types
// share it. A reservation is a number of bins or an amount of money. [Diversity] limits how much of
// some items one capacity pool holds, so that they are spread over several. Unplaced items are a
// result, not an error.
//
// # Strategies
//
// A [Strategy] decides the [Layout]. [Instance.Check] checks every layout by the rules above,
// except the one about the heaviest pool. A plan that breaks a checked rule is an error, never a
// result. A [Filling] makes a layout step by step and refuses each step that would break one of
// these rules.
//
// [FirstFitDecreasing] is the baseline. [CostAware] is the default. It first solves a relaxation,
// which has item classes, undominated bin types, and the existing nodes as bins of price 0 in
// limited number. The relaxation says which class may go into which bin type. A tag that keeps many
// items apart is one more resource in it, with the limit as the capacity. A portfolio of methods
// works on the relaxation, one after the other while there is a gap between plan and bound:
//
//   - a greedy filling guided by resource duals;
//   - an exact search over the sets of bins that cost less than the best plan. A surrogate
//     constraint (a resource, the number of items, their duals) excludes a set that is too small.
//     Each other set is packed, or refuted bin by bin (R. E. Korf, 2002);
//   - column generation for the linear programme over patterns (P. C. Gilmore and R. E. Gomory,
//     1961), and dives that round its solution to whole bins;
//   - the exact search again, which skips what it has refuted.
//
// The result is then built under all rules. First fit places the items that rules keep out of their
// planned bin. Finally, a few bins at a time are emptied and packed again under all rules (G.
// Schrimpf et al., 2000), preferably bins whose price exceeds the duals of their contents. For a
// new bin, a few types are drawn by a fixed pseudo-random sequence. A knapsack fills a bin of each
// of these types, and the best of these bins is taken.
//
// Methods that only improve the bound have a separate eighth of the budget, so a plan is the same
// without them.
//
// The budget of steps grows smoothly with the number of copies. A method that probably cannot end
// within it is skipped. [Effort] sets the budget, so the answer does not depend on the machine.
//
// By price alone, old families are chosen, because their slower cores are cheaper.
// [Offering.Objective] lets a caller account for that.
//
// # Bounds
//
// Every [Plan] carries a [Bound]: no plan that places the same items has a lower objective. Most
// bounds have a certificate: duals that [Instance.VerifyBound] checks in one pass. [BoundKind]
// lists the kinds of proof. Duals pay for fractions of bins. That is too little where a few items
// need dear bins, for example nine items that need one GPU each, if a bin has eight GPUs. There the
// bound also counts whole bins.
//
// All bounds are rounded up to a sum that prices can form. With [Diversity], a filling in a
// capacity pool may have a dual value above its price. [AssignmentLP] and [Configuration] subtract
// this excess, once for each capacity pool. It is limited, because diversity limits what a pool
// holds (a Lagrangian bound). The search ignores diversity. No bound considers budgets, weights or
// limits between items, except tags that keep many items apart. So a bound may be too low, but
// never too high.
//
// # Cost, determinism, concurrency
//
// [Compile] compares each distinct requirement with each distinct label once. First fit then costs
// O(items x (blocks of bins + types) + bins), however many copies an item has. A layout names each
// bin, so there are fewer than 2^20. BENCHMARKS.md lists costs, gaps, seconds and memory at the
// default effort. [Pack] takes a context, and returns the best plan so far when the context ends.
//
// The result is a function of the problem: no clock, no randomness, no map order. It has the same
// bytes on any number of cores and on every processor, because no product is fused with a sum. Ties
// are broken by names, then by input order. A call uses two cores if they are free, and no
// goroutine outlives it. An [Instance] is immutable and safe for concurrent use.
package binpack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
)

// Price is an amount of money per hour, in billionths of a dollar or of another currency. It is an
// integer, so sums are the same in every order.
type Price int64

// PerDollar is how many units of Price make one dollar.
const PerDollar Price = 1_000_000_000

// Dollars returns the price of an amount in dollars, rounded to the nearest unit. A number that
// cannot be a price, such as one that is negative or too large, or NaN, gives -1, which [Compile]
// refuses.
func Dollars(dollars float64) Price {
	if units := math.Round(dollars * float64(PerDollar)); dollars >= 0 && units < math.MaxInt64 {
		return Price(units)
	}
	return -1
}

// Dollars returns the price as a decimal number, for display.
func (p Price) Dollars() float64 { return float64(p) / float64(PerDollar) }

// String returns the price in dollars, with two decimals or as many as it needs: "$0.17",
// "$0.0058".
func (p Price) String() string {
	sign, n := "", uint64(p)
	if p < 0 {
		sign, n = "-", -n
	}
	whole, fraction := n/uint64(PerDollar), fmt.Sprintf("%09d", n%uint64(PerDollar))
	for len(fraction) > 2 && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	return fmt.Sprintf("%s$%d.%s", sign, whole, fraction)
}

// Unlimited is the amount of a [Pool]'s limit that never runs out.
const Unlimited int64 = 1<<63 - 1

// Problem says what must be packed and what can be bought. It is plain data. [Compile] checks it
// and keeps no reference that the caller could modify later.
type Problem struct {
	// Resources names the dimensions of every size, capacity and free vector, in order.
	Resources []string
	Items     []Item
	// Pools may be empty: all types are then in one pool without limits.
	Pools []Pool
	Types []Type
	// Budgets[k] limits the sum of entry k of [Offering.Usage] over all new bins of all pools. It
	// is not negative. All budgets must hold.
	Budgets []int64
	// Nodes are existing bins. They are filled first, in this order.
	Nodes []Node
	// Diversity limits how much may depend on one capacity pool.
	Diversity []Diversity
}

// Diversity limits how much the bins and nodes of one capacity pool ([Offering.CapacityPool]) hold
// together, since all of it is lost when the pool is reclaimed. Bins without a capacity pool are
// not limited.
type Diversity struct {
	// Items says how much one copy of each item counts; an item that is not listed counts 0.
	Items []Share
	// Max is the limit on the count of each capacity pool; not negative.
	Max int
	// Placed is the count that each capacity pool already holds; nil means 0.
	Placed map[string]int
}

// Item is a class of identical copies to pack.
type Item struct {
	// Name identifies the item in messages and is the last tie-break of every order. It must be
	// unique.
	Name  string
	Count int
	// Size is what one copy takes, in the order of Problem.Resources; not negative.
	Size []int64
	// Requires holds the labels that the bin must have, as a union of sets. The zero value requires
	// none.
	Requires requirements.Alternatives
	// Tags are the tags that each copy adds to the bin.
	Tags []string
	// Limits hold in the bin while a copy is in it.
	Limits []Limit
	// Priority matters if not everything can be placed: items of the highest priority go first.
	Priority int32
}

// Limit allows a bin to hold at most Max copies with a tag. A copy that brings the limit and also
// has the tag counts too.
type Limit struct {
	Tag string
	Max int
}

// Pool groups types under a weight and a budget.
type Pool struct {
	// Name appears in messages. It need not be unique: a NodePool and a Provisioner may share one.
	Name string
	// Weight orders pools, heaviest first: an item goes to the heaviest pool that can hold it
	// within its limits. Among pools of equal weight the price decides.
	Weight int
	// Limits[k] limits the sum of entry k of [Type.Usage] over the new bins of the pool; nil means
	// no limit. A negative limit is exceeded before anything is bought, so it allows no new bin.
	Limits []int64
	// MaxNodes limits the number of new bins; nil means no limit, 0 means none.
	MaxNodes *int
	// MaxPrice limits the total price of the new bins; nil means no limit, and 0 only bins of price
	// 0.
	MaxPrice *Price
	// MinValues requires that the alternatives of each new bin have a minimum number of values of a
	// key; 1 or more.
	MinValues []MinValues
}

// MinValues requires Count different values of the label Key among the alternatives of a bin, within
// limits and budgets ([Instance.Needed]). The value of a Counted offering counts if it had stock
// before the plan, even if the plan uses all of it.
type MinValues struct {
	Key   string
	Count int
}

// Type is a bin type that can be bought: an instance type as one pool offers it.
type Type struct {
	// Name identifies the bin type within its pool. Several Types may share a name if their
	// capacity differs by offering.
	Name string
	// Pool is an index into Problem.Pools.
	Pool int
	// Capacity is what the items in one bin may take, in the order of Problem.Resources. It may be
	// negative, as when the system takes more than there is: no item that takes any of the resource
	// fits.
	Capacity []int64
	// Provides holds the labels of every such bin. A key that neither the type nor the offering
	// mentions is absent. A key with several possible values is open: the items in the bin narrow
	// it.
	Provides requirements.Set
	// Usage is what one bin takes of its pool's limits, in the order of Pool.Limits; nil means
	// nothing. In a pool without limits it does not matter.
	Usage []int64
	// Tags and Limits are there before any item, for example the host ports of daemons.
	Tags   []string
	Limits []Limit
	// Offerings says how and at which price the type can be bought. A type without offerings cannot
	// be bought.
	Offerings []Offering
}

// Offering is one way to buy a [Type].
type Offering struct {
	// Provides narrows Type.Provides, for example to a zone and a capacity type. An offering that
	// contradicts its type is allowed, and cannot be bought.
	Provides requirements.Set
	Price    Price
	// Objective is the cost of the bin when plans are compared, in the unit of Price; 0 means
	// Price. It accounts for what a price list does not say: a slower family, a licence per node,
	// the interruptions of spot capacity. Budgets and [Plan.Cost] use Price.
	Objective Price
	// Counted means that only Count bins of the offering are left, as in a reservation. Offerings
	// of several types share a count if they name the same Reservation; the least Count holds.
	Counted     bool
	Count       int
	Reservation string
	// Takes is how much of the Count one bin takes; 0 means 1. Only a Counted offering may have it.
	// With it, a reservation can be an amount of money, like a savings plan: Count is the
	// commitment, Takes is what one bin uses of it, and Price, usually 0, is what is paid in
	// addition. A bin is covered as a whole or not at all. For bins beyond the commitment, give the
	// type another offering at the full price.
	Takes int
	// CapacityPool names what may be reclaimed together, such as the spot capacity of an instance
	// type in a zone; see [Diversity]. Empty means none.
	CapacityPool string
	// Usage is what one bin uses, in the order of Problem.Budgets; nil means nothing.
	Usage []int64
}

// Node is an existing bin.
type Node struct {
	Name string
	// Free is the free capacity, in the order of Problem.Resources; a negative number counts as 0.
	Free []int64
	// Provides holds its labels, one value per key; a key that is not mentioned is absent.
	// [Compile] refuses a key with several possible values, because items do not narrow the labels
	// of a node. A node whose labels contradict each other holds nothing.
	Provides requirements.Set
	// CapacityPool is the node's capacity pool; see [Offering.CapacityPool].
	CapacityPool string
	// Tags and Limits are those of what the node already holds. A tag may be listed several times.
	Tags   []string
	Limits []Limit
}

// Share is a number of copies of one item in one bin.
type Share struct {
	// Item is an index into Problem.Items.
	Item  int
	Count int
}

// Bin is a new bin and its contents.
type Bin struct {
	// Type is an index into Problem.Types.
	Type int
	// Offering is an index into the type's offerings.
	Offering int
	// Shares are in the order of packing, with each item at most once.
	Shares []Share
	// Labels narrows the labels that the type leaves open, until each item has an alternative that
	// they satisfy. It saves a search for such alternatives. With the zero value the search is
	// made; it is given up if there are too many combinations.
	Labels requirements.Set
}

// Layout is what a [Strategy] decides: what goes where. Items that it does not mention are
// unplaced.
type Layout struct {
	// Nodes[i] holds the shares of Problem.Nodes[i]. The list may be shorter.
	Nodes [][]Share
	Bins  []Bin
}

// Choice is one way to buy a bin. Type is an index into Problem.Types, and Offering an index into
// the type's offerings.
type Choice struct {
	Type     int
	Offering int
}

// Plan is a checked layout with its price and a proof of its quality.
type Plan struct {
	Layout
	// Cost is the total price of the new bins; a sum that overflows is the largest Price.
	Cost Price
	// Objective is the sum of [Offering.Objective] over the new bins. It equals Cost if no offering
	// sets one.
	Objective Price
	// Bound is a lower bound on the objective of plans for the same items, never above Objective.
	Bound Bound
	// Alternatives[i] lists the choices that hold the items of Bins[i], cheapest first: the chosen
	// one and others that are not sold out. [Options.Alternatives] limits their number. [Diversity]
	// allows each of them as long as the other bins stay as they are.
	Alternatives [][]Choice
	// Unplaced[i] is how many copies of Problem.Items[i] are not placed.
	Unplaced []int
	// Strategy names the strategy that made the layout.
	Strategy string
	// Stopped means that the context ended early: plan and bound are the best found by then.
	Stopped bool
	proved  hint // what the strategy proved on the way, for Instance.Prove
}

// GapPercent returns how far the objective is above the bound, in percent of the bound. It is 0 if
// the objective is 0. It is 100 if the bound is 0 and the objective is not.
func (p *Plan) GapPercent() float64 {
	if p.Objective == 0 || p.Bound.Price <= 0 {
		if p.Objective > 0 {
			return 100
		}
		return 0
	}
	return 100 * float64(p.Objective-p.Bound.Price) / float64(p.Bound.Price)
}

// Strategy decides a layout. It may make mistakes, because [Pack] checks the layout. With a
// [Filling] it cannot make any.
type Strategy interface {
	// Pack returns a layout, which must be the same for the same instance. When ctx ends, it
	// returns the best layout so far. [Pack] passes an error on.
	Pack(ctx context.Context, in *Instance) (Layout, error)
	// Name is a short word for reports, such as "ffd".
	Name() string
}

// faults collects the errors of a problem.
type faults struct {
	resources int
	errs      []error
}

func (f *faults) add(format string, args ...any) {
	f.errs = append(f.errs, fmt.Errorf("binpack: "+format, args...))
}

func (f *faults) vector(what func() string, v []int64) {
	if len(v) != f.resources {
		f.add("%s has %s, want %d", what(), plural(len(v), "resource", "resources"), f.resources)
	}
}

func (f *faults) limits(what func() string, ls []Limit) {
	for _, l := range ls {
		if l.Max < 0 {
			f.add("%s: limit of tag %q is negative", what(), l.Tag)
		}
	}
}

// validateItems checks items and diversity.
func (p Problem) validateItems() error {
	f := faults{resources: len(p.Resources)}
	seen := make(map[string]bool, len(p.Items))
	for i := range p.Items {
		it := &p.Items[i]
		what := func() string { return fmt.Sprintf("item %q", it.Name) }
		if seen[it.Name] {
			f.add("%s is listed twice", what())
		}
		seen[it.Name] = true
		if it.Count < 0 || it.Count > math.MaxInt32 {
			f.add("%s: count %d is out of range", what(), it.Count)
		}
		f.vector(what, it.Size)
		for r, s := range it.Size {
			if s < 0 && r < len(p.Resources) {
				f.add("%s (items[%d]): size of %s is negative", what(), i, p.Resources[r])
			}
		}
		f.limits(what, it.Limits)
	}
	for i, d := range p.Diversity {
		if d.Max < 0 {
			f.add("diversity[%d]: max %d is negative", i, d.Max)
		}
		for _, s := range d.Items {
			if s.Item < 0 || s.Item >= len(p.Items) || s.Count < 0 || s.Count > math.MaxInt32 {
				f.add("diversity[%d]: there is no item %d that counts %d", i, s.Item, s.Count)
			}
		}
	}
	return errors.Join(f.errs...)
}

// validateBins checks types, pools and nodes.
func (p Problem) validateBins() error {
	f := faults{resources: len(p.Resources)}
	for r, name := range p.Resources {
		if slices.Index(p.Resources, name) < r {
			f.add("resource %q is listed twice", name)
		}
	}
	f.pools(p.Pools)
	for i, most := range p.Budgets {
		if most < 0 {
			f.add("budgets[%d] is negative", i)
		}
	}
	for i := range p.Types {
		t := &p.Types[i]
		what := func() string { return fmt.Sprintf("type %q (types[%d])", t.Name, i) }
		f.vector(what, t.Capacity)
		if t.Pool < 0 || t.Pool >= len(p.Pools) {
			f.add("%s: pool %d does not exist", what(), t.Pool)
		} else if n := len(p.Pools[t.Pool].Limits); n > 0 && t.Usage != nil && len(t.Usage) != n {
			f.add("%s: usage has %s, its pool %q limits %d", what(), plural(len(t.Usage), "entry", "entries"), p.Pools[t.Pool].Name, n)
		}
		if len(t.Usage) > 0 && slices.Min(t.Usage) < 0 {
			f.add("%s: usage is negative", what())
		}
		for j, o := range t.Offerings {
			if o.Usage != nil && len(o.Usage) != len(p.Budgets) {
				f.add("%s: offerings[%d]: usage has %s, want one for each budget: %d", what(), j, plural(len(o.Usage), "entry", "entries"), len(p.Budgets))
			}
			for _, fault := range []struct {
				is   bool
				text string
			}{
				{o.Price < 0, "price is negative, too large or not a number"},
				{o.Objective < 0, "Objective is negative, too large or not a number"},
				{len(o.Usage) > 0 && slices.Min(o.Usage) < 0, "usage is negative"},
				{o.Count < 0, "Count is negative"},
				{o.Takes < 0, "Takes is negative"},
				{!o.Counted && (o.Count > 0 || o.Takes > 0 || o.Reservation != ""), "only a Counted offering has a Count, Takes or Reservation"},
			} {
				if fault.is {
					f.add("%s: offerings[%d]: %s", what(), j, fault.text)
				}
			}
		}
		f.limits(what, t.Limits)
	}
	nodes := make(map[string]bool, len(p.Nodes))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		what := func() string { return fmt.Sprintf("node %q", n.Name) }
		f.vector(what, n.Free)
		if nodes[n.Name] {
			f.add("node %q is listed twice", n.Name)
		}
		nodes[n.Name] = true
		for r := range n.Provides.All() {
			values, known := r.Values()
			if absent := r.AllowsAbsent(); !known || absent && len(values) > 0 || !absent && len(values) != 1 {
				f.add("node %q: want one value of each label, got %s", n.Name, r)
			}
		}
		f.limits(what, n.Limits)
	}
	return errors.Join(f.errs...)
}
