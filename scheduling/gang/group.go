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
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Group is a set of pods that run only together. Groups should not share pods. If a pod is in two
// groups, it counts for the first. [Validate] says which groups have no meaning.
type Group struct {
	// Name appears in reasons. It must be unique, and not empty.
	Name string
	// Member reports whether a pod is in the group. It is asked about running pods and pods to
	// place, and must not be nil.
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

// Validate returns an error for each group that has no meaning: one without Name or Member, one
// named like another, or one with a negative number.
func Validate(groups []Group) error {
	var errs []error
	known := map[string]bool{}
	for i := range groups {
		g := &groups[i]
		bad := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("gang: group %q: "+format, append([]any{g.Name}, args...)...))
		}
		switch {
		case g.Name == "":
			errs = append(errs, fmt.Errorf("gang: group %d has no name", i))
			continue
		case known[g.Name]:
			bad("there is another group of this name, and names must be unique")
		}
		known[g.Name] = true
		if g.Member == nil {
			bad("Member is nil; it must say which pods are in the group")
		}
		if g.Minimum < 0 {
			bad("Minimum is %d, must not be negative; 0 means all existing pods", g.Minimum)
		}
		if g.Values < 0 {
			bad("Values is %d, must not be negative; 0 means 1", g.Values)
		}
	}
	return errors.Join(errs...)
}
