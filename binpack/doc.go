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
// Reservations run out, also where several types share one. What finds no place is left over, which is a result and no
// error.
//
// # Strategies
//
// A [Strategy] decides the [Layout], and [Instance.Check] reads it by the rules above, whoever made it: a plan that
// breaks one is an error, never a result. [FirstFitDecreasing] is the built-in strategy, after the classic of that name
// (D. S. Johnson, 1973), for several resources by dominant share (A. Ghodsi et al., 2011). Each bin is changed to the
// cheapest choice that holds its contents at the end.
//
// # Bounds
//
// Every [Plan] carries a [Bound]: a price that no plan which places the same items can go below, with a certificate
// that [Instance.VerifyBound] checks in one pass. [CoverageLP] is linear programming duality: let y say what a unit of
// each resource is worth, such that no type offers more worth than its price. Then every bin is worth at most its price,
// and all bins together hold what is placed less what existing nodes have free, so no plan costs less than the worth of
// that. Any such y is a proof, the best one is the dual solution of the linear programme that buys capacity in
// fractions. The bound does not see labels, limits or how things fit together, so it may be far below; it is never above.
//
// # Cost, determinism, concurrency
//
// [Compile] compares each distinct requirement with each distinct label once; packing then costs O(items x (bins +
// types)), however many copies an item has. Everything is a function of the problem: no clock, no randomness, no map
// order, no goroutines. Ties fall to names and then to the order of the input. Instances are immutable and serve any
// number of callers at once.
package binpack
