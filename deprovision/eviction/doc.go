// Package eviction answers what pods say about being moved: whether a pod would come back elsewhere, what it costs to
// evict it, who protects it, and what the PodDisruptionBudgets of its namespace allow.
//
// Everything is a function of the objects and of a given moment. Values are immutable and safe for concurrent use.
package eviction
