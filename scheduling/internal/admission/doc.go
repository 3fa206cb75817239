// Package admission does to a pod what an API server does before a scheduler sees it. So manifests
// that were never applied plan as if they had been.
//
// It fills requests from limits, container defaults from LimitRanges, the priority from
// PriorityClasses, the overhead and node selection from RuntimeClasses, and the protocol and host
// port of ports. It folds matchLabelKeys and mismatchLabelKeys into selectors. For the pods of a
// DaemonSet it adds the tolerations of the DaemonSet controller. A pod that an API server has
// stored is not changed: LimitRanges and RuntimeClasses act only when a pod is made.
//
// No function modifies its arguments.
package admission
