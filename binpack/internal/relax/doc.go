// Package relax is the packing problem without its finer rules: classes of equal things, kinds of bins at a price, and
// which class may go into which kind. What it costs at least is a lower bound of the real problem, and what it buys is
// a guide for strategies, which then obey all rules.
//
// The linear programme over patterns (P. C. Gilmore and R. E. Gomory, 1961) is solved by column generation: a pattern is a
// way to fill one bin, the master programme buys patterns, its multipliers say what one more thing of each class is
// worth, and a knapsack for each kind looks for a pattern that is worth more than its bin. Values that no kind can beat
// prove a bound (A. A. Farley, 1990); where the knapsack is relaxed to fractions, this is the bound of assigning fractions
// of classes to kinds, where it is searched, the stronger one over whole patterns.
package relax
