// Package lp solves the linear programmes that price capacity: buy columns at least cost so that every demand is
// covered and no supply is exceeded. Columns are added as they are thought of (column generation), demands may change
// between solutions, and the multipliers of the rows are what a unit of each is worth.
//
// The method is the revised simplex of the textbooks (G. B. Dantzig), primal and dual. Ties fall to the least index, and where
// pivots change nothing R. G. Bland's rule (1977) keeps it from going round. Rows are few, columns many: the basis inverse is dense
// and costs the square of the number of rows a step.
package lp
