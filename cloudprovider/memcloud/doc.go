// Package memcloud is a cloud in memory: the reference implementation of package cloudprovider, for tests and simulations.
//
// Everything that makes clouds hard is a knob: capacity pools, quotas, prices, latency, machines that need time to boot
// and to go away, readings that lag behind, spot machines that are taken back. Time is a [Clock] that stands still
// unless it is moved, and chance comes from a seed, so the same calls in the same order give the same answers.
//
// The knobs of a running cloud (SetCapacity, SetQuota, SetImage, Reprice, Interrupt) act at once. [Cloud.Truth] shows what
// there is without any lag: what tests compare beliefs with.
package memcloud
