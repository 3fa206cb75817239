// Package karpenter calls the scheduler of Karpenter (v1.15.0, or v1.14.1) as a library, as its own
// benchmark does: given pods, node pools, instance types and a cluster, [Solve] returns what that
// version of Karpenter would launch and where it would put each pod. There is no API server and no
// cloud: the scheduler reads from a map.
//
// It is a reference to be compared with, so nothing about its decisions is changed. Two things
// follow. Its answer may differ from run to run, for Karpenter ranges over maps and sorts unstably.
// And its plan names instance types, not machines: a [NewNode] lists those left and the cheapest
// [Launch] among them, which is what the comparison counts.
package karpenter
