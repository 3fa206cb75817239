// Package memcloud is a cloud in memory: the reference implementation of package cloudprovider, for
// tests and simulations.
//
// Everything that makes clouds hard is configurable: capacity pools, quotas, prices, latency,
// machines that need time to boot and to shut down, readers that lag behind, spot machines that are
// taken back. Time is a [Clock] that stands still unless it is moved, and random choices come from
// a seed. So the same calls in the same order give the same answers.
//
// SetCapacity, SetQuota, SetImage, Reprice and Interrupt change a running cloud at once.
// [Cloud.Truth] shows what exists without any lag, for tests to compare with.
package memcloud
