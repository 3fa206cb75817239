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
// one more resource there, of which a bin has as much as their limit; of many kinds a plan looks at a selection, and the bins
// that it makes become the cheapest that hold their contents among all. One portfolio works on it, one way after the other as
// long as the gap between plan and bound is open:
//
//   - what naive planners do: everything in one bin, the largest bins first, first fit decreasing into one kind;
//   - a greedy filling by the worth of resources;
//   - an exact search through the sets of bins that cost less than what is known, as far as no surrogate constraint (each
//     resource, the number of things, their worth) shows them to be too small. Each set is packed, by filling and by exchanges
//     (simulated annealing), or refuted bin by bin (R. E. Korf, 2002; S. Martello and P. Toth, 1990);
//   - the linear programme over fillings of bins (P. C. Gilmore and R. E. Gomory, 1961) by column generation, with the values of
//     the best proof mixed in against their swinging (P. Wentges, 1997), then dives that make whole bins of fractions;
//   - doing without a bin by exchanges, and a large-neighbourhood search over bins that cost more than their contents are worth
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
// cost less, and says how many nodes that took. All of them are rounded up to a sum that prices can come to. No bound sees
// budgets, weights or limits between items (but for tags that keep many of them apart), so it may be below; it is never above.
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
