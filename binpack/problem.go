package binpack

import "github.com/joinery-sdk/joinery/requirements"

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
	Pools     []Pool
	Types     []Type
	// Nodes are bins that are paid for already. They are filled first, in this order.
	Nodes []Node
}

// Item is a class of identical things to pack.
type Item struct {
	// Name identifies the item in messages and is the last tie-break of every order; it must be unique.
	Name  string
	Count int
	// Size is what one of them takes, by resource; not negative.
	Size []int64
	// Requires holds the labels that the bin must have, as a union of sets.
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
	// MaxNodes bounds the number of new bins; negative limits nothing.
	MaxNodes int
	// MaxPrice bounds the price of all new bins together; negative limits nothing.
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
}

// Node is a bin that exists.
type Node struct {
	Name string
	// Free is the room left for items, by resource; negative counts as none.
	Free []int64
	// Provides are its labels, one value a key; a key that is not mentioned is absent. Items do not narrow the labels of
	// a node: nothing of it is open.
	Provides requirements.Set
	// Tags and Limits stand for what is there already; a tag may be listed several times.
	Tags   []string
	Limits []Limit
}
