// Package eligibility says which nodes may be given back at all, by which method, since when, and what stands in the way
// of the others.
package eligibility
