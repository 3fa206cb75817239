// Package resources has the arithmetic of resource lists and the conversion of quantities to
// integers.
//
// Callers have [corev1.ResourceList]; planners need int64. The unit is fixed here: cpu is counted
// in milli-cores, every other resource in whole units (bytes, pods, devices). Requests are rounded
// up ([Request]) and capacities are rounded down ([Capacity]). So rounding can reject a fit but
// never invent one. Values that do not fit into an int64 saturate.
//
// Every function is pure, safe for concurrent use, and does not change its arguments.
package resources
