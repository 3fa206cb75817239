// Package lp solves the linear programmes that price capacity: buy columns at minimum cost, such
// that every demand is covered and no supply is exceeded. Columns can be added and demands changed
// between solutions (column generation). The dual of a row is the price of one unit.
//
// The method is the revised simplex (G. B. Dantzig), primal and dual. Ties go to the lowest index,
// and R. G. Bland's rule (1977) prevents cycling. There are few rows and many columns, so the basis
// inverse is dense, and a pivot costs the square of the rows.
package lp
