// Package nodespec checks what pools, node claims and overlays have in common: requirements, labels, taints, resource
// lists, durations and references. It turns the wire form into the values of package nodepool's vocabulary and collects
// problems by field path, so that all mistakes in an object are reported at once.
package nodespec
