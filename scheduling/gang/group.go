// Package gang plans groups of pods that run only together, as training jobs do: either everything
// that a group needs is placed, or nothing is bought for it.
//
// [Solve] looks for the best set of groups that fit together. So two groups never keep each other
// out with half of their pods, and the capacity for a waiting group is free for others. Plans are
// compared priority by priority, from the highest down. For each priority these decide in turn: the
// number of whole groups, the pods that these groups need, and the other pods. If all of them are
// equal, the lower price decides.
package gang

import (
	corev1 "k8s.io/api/core/v1"
)

// Group is a set of pods that run only together. Groups should not share pods. If a pod is in two
// groups, it counts for the first.
type Group struct {
	// Name appears in reasons. It must be unique.
	Name string
	// Member reports whether a pod is in the group. It is asked about running pods and pods to
	// place.
	Member func(*corev1.Pod) bool
	// Minimum is how many of its pods must run, including those that already run; 0 means all
	// existing ones. Pods beyond it are planned like others. A pod counts as running in two cases,
	// both only if its node stays: it is bound to the node and not being deleted, or a place on the
	// node is kept for it. Pods of leaving nodes are placed again, together with the pending ones.
	Minimum int
	// Key is a label key whose value all nodes of the group must share, such as
	// topology.kubernetes.io/zone or the label of a rack; empty for none.
	Key string
	// Values is how many values of Key its nodes may have together; 0 means 1. Values on nodes of
	// its running pods count.
	Values int
	// Whole says that either all or none of its pods are disrupted, even if more run than the
	// minimum. Planning ignores it.
	Whole bool
	// Waits says why no pod of the group may be placed yet, for example because its PodGroup is
	// missing. It is empty if they may.
	Waits string
}
