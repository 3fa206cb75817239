// Package scenario makes up clusters, pods, node pools and instance types, for judges and
// comparisons to be run on.
//
// [Generate] draws a whole scenario over every constraint from a seed: the same seed and options
// give the same scenario. [Tangled] draws dense ones, and [Minimize] shrinks one that shows a fault
// to what the fault needs. [Diverse], [Deployments], [Distinct] and [Usual] make the families of
// pods of the speed comparison, [Linear] and [Cloud] the catalogues. Everything is plain Kubernetes
// objects and types in the JSON shape of Karpenter's KWOK provider, so that each program reads it
// in its own way.
//
// Nothing here knows how anybody schedules.
package scenario
