// Package lp solves the linear programmes that price capacity: buy columns at least cost so that every demand is
// covered and no supply is exceeded. Columns are added as they are thought of (column generation), demands may change
// between solutions, and the multipliers of the rows are what a unit of each is worth.
//
// The method is the revised simplex of the textbooks (G. B. Dantzig), primal and dual, with ties by R. G. Bland's rule of
// the least index, so that the same input ends in the same vertex. Rows are few, columns many: the basis inverse is dense
// and costs the square of the number of rows a step.
package lp
