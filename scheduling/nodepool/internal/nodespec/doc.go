// Package nodespec checks what pools, node claims and overlays have in common: requirements,
// labels, taints, resource lists, durations and references. It turns the wire form into values for
// package nodepool. It collects problems by field path, so that all mistakes in an object are
// reported at once.
package nodespec
