// Package gang plans groups of pods that run only together, as training jobs do: all that a group needs is placed, or nothing is bought for it.
//
// [Solve] looks for the best set of groups that fit together, so two groups never keep each other out with half of their pods, and the room of a
// group that waits is for others. Of two plans the one is better that has more whole groups of the highest priority in which the two differ; then
// the one with more pods that these groups need; then the one with more pods of that priority; then the cheaper one.
package gang

import (
	corev1 "k8s.io/api/core/v1"
)

// Group is pods that run only together. Groups must not share pods; a pod of two groups is of the first.
type Group struct {
	// Name stands in reasons. It is unique.
	Name string
	// Member reports whether a pod is in the group, one that runs or one that is to be placed.
	Member func(*corev1.Pod) bool
	// Minimum is how many of its pods must run, those that run already included; 0 means all that there are. Pods beyond it are planned as
	// others are. A pod runs if it is bound and not being deleted, or if its place on a node is kept for it, and the node stays. Pods of leaving
	// nodes are placed anew together with those that are pending.
	Minimum int
	// Key is a label key whose value all nodes of the group must share, such as topology.kubernetes.io/zone or the label of a rack; empty for none.
	Key string
	// Values is how many values of Key its nodes may have together; 0 means 1. Values that nodes of its running pods have count.
	Values int
	// Whole says that its pods are disrupted all or none, even if more run than the minimum. Planning does not look at it.
	Whole bool
	// Waits says why no pod of the group may be placed yet, such as that its PodGroup is missing; empty if they may.
	Waits string
}
