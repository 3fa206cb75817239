// Package nodespec checks what pools, node claims and overlays have in common: requirements, labels, taints, resource
// lists, durations and references. It turns the wire form into the values of package nodepool's vocabulary and collects
// problems by field path, so that one object with ten mistakes costs its author one round trip.
package nodespec
