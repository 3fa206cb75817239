package eviction

import corev1 "k8s.io/api/core/v1"

// Group is pods that run only together, such as those of a training job. Taking it below its minimum disrupts all of it. So a plan moves either
// the pods that it can spare, or all of them in one command, whose new nodes are ready before; otherwise the nodes stay. Nodes that the
// cloud takes back, or that their pool ends, go in any case.
type Group struct {
	// Name is unique.
	Name string
	// Member reports whether a pod is in the group. A pod of two groups is of the first.
	Member func(*corev1.Pod) bool
	// Minimum is how many of its pods must run; 0 means all that do, and so does a number that is larger.
	Minimum int
	// Whole says that its pods move all or none, even if more run than the minimum.
	Whole bool
}

// Spare is how many pods of the group may move at once while the others of those that run do.
func (g *Group) Spare(running int) int {
	if g.Whole || g.Minimum == 0 {
		return 0
	}
	return max(0, running-g.Minimum)
}
