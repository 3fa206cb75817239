// Package semantics compares the small rules of Kubernetes that the library has written down for
// itself, node affinity, tolerations and effective requests, with Kubernetes' own
// (component-helpers), on random objects.
package semantics
