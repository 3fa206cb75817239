// Package eviction says what it takes to move a pod: whether it needs a place elsewhere, what its
// eviction costs, which annotations protect it, and what the PodDisruptionBudgets of its namespace
// allow.
//
// Everything is a function of the objects and of a given moment. Values are immutable and safe for
// concurrent use.
package eviction
