// Package resources is the one home of resource-list arithmetic and of quantities as integers.
//
// Callers hold [corev1.ResourceList]; planners want int64. The exchange rate is fixed here: cpu counts in milli-cores,
// every other resource in whole units (bytes, pods, devices). What somebody asks for is rounded up ([Request]), what
// somebody offers is rounded down ([Capacity]), so that rounding can refuse a fit but never invent one. Values that an
// int64 cannot hold saturate at its ends.
//
// Every function is pure, safe for concurrent use, and leaves its arguments untouched.
package resources
