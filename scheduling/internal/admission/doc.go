// Package admission does to a pod what an API server does before a scheduler sees it: manifests that have never been
// through one plan as if they had.
//
// It fills requests from limits, container defaults from LimitRanges, the priority of PriorityClasses, the overhead and
// node selection of RuntimeClasses, the protocol and host port of ports, and it folds matchLabelKeys and
// mismatchLabelKeys into selectors. For the pods of a DaemonSet it adds the tolerations of the DaemonSet controller.
// A pod that an API server has stored comes out as it went in: LimitRanges and RuntimeClasses act only when a pod is made.
//
// No function modifies its arguments.
package admission
