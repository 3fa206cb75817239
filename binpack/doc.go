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
// breaks one is an error, never a result.
//
// [FirstFitDecreasing] is the classic of that name (D. S. Johnson, 1973), for several resources by dominant share
// (A. Ghodsi et al., 2011); each bin is changed to the cheapest choice that holds its contents at the end.
//
// [CostAware], the default, plans on a relaxation: classes of equal items, kinds of bins that none undercuts, which class
// may go where. Tags that keep many things apart count as one more resource there, of which a bin has as much as their limit;
// of more than 150 kinds a plan looks at a selection, and the bins that it makes become the cheapest that hold their contents
// among all. What it does there depends on how many things there are, because no one way was the best for all sizes:
//
//   - up to about a hundred things: it goes through the sets of bins that cost less than what is known, as far as no measure (each
//     resource, the number of things, their worth) shows them to be too small, the roomiest first to find a plan, then the cheap ones
//     for the proof; few are left. Each is packed, by filling and then by exchanges (simulated annealing), or refuted, bin by bin
//     (R. E. Korf, 2002; S. Martello and P. Toth, 1990). Where bins hold few things of few classes, the plan is a shortest path: what
//     is left to be packed is a node, a bin is an arc as long as it costs more than its contents are worth by the linear programme.
//     Where all that is cheaper is refuted, the plan is the cheapest there is, and the search is the proof; above fifty things
//     it is content with one percent, for the sake of milliseconds. Rooms count as far as sums of things can fill them;
//   - more things of few classes: the linear programme over fillings of bins (P. C. Gilmore and R. E. Gomory, 1961) by column
//     generation, with the values of the best proof mixed in against their swinging (P. Wentges, 1997), then dives that make
//     whole bins of fractions, then ruin and recreate of the bins that cost more than their contents are worth
//     (G. Schrimpf et al., 2000);
//   - many classes: a greedy filling by the worth of resources from a sample of what is left, then ruin and recreate.
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
// Every [Plan] carries a [Bound]: an objective that no plan which places the same items can go below, with a certificate
// that [Instance.VerifyBound] checks. The simplest is [CoverageLP], linear programming duality: let y say what a unit of
// each resource is worth, such that no type offers more worth than its price. Then every bin is worth at most its price,
// and all bins together hold what is placed less what existing nodes have free, so no plan costs less than the worth of
// that. The other kinds let items have worth, with fillings in fractions or whole (A. A. Farley, 1990), or look through all
// sets of bins; see [BoundKind]. All of them are rounded up to a sum that prices can come to. No bound sees budgets,
// weights or limits between items (but for tags that keep many of them apart), so it may be below; it is never above.
//
// # Cost, determinism, concurrency
//
// [Compile] compares each distinct requirement with each distinct label once; first fit then costs O(items x (bins +
// types)), however many copies an item has. BENCHMARKS.md has costs, gaps, seconds and memory of the default. Everything is a function of the problem: no clock, no randomness, no map
// order, no goroutines. Ties fall to names and then to the order of the input. Instances are immutable and serve any
// number of callers at once.
package binpack
