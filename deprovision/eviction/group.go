package eviction

import corev1 "k8s.io/api/core/v1"

// Group is a set of pods that run only together, such as those of a training job. Taking it below
// its minimum disrupts all of it. So a plan moves either only pods that the group can spare, or all
// of its pods in one command, whose new nodes must be ready first. If neither is possible, the
// nodes stay. Interrupted nodes, and expired nodes of v1 pools, go in any case.
type Group struct {
	// Name identifies the group; it must be unique.
	Name string
	// Member reports whether a pod is in the group. A pod of two groups belongs to the first.
	Member func(*corev1.Pod) bool
	// Minimum is how many of its pods must run. 0, or more than the number of running pods, means
	// all running pods.
	Minimum int
	// Whole says that all of its pods move or none, even if more run than the minimum.
	Whole bool
}

// Spare returns how many pods of the group may move at once while the other running pods keep
// running.
func (g *Group) Spare(running int) int {
	if g.Whole || g.Minimum == 0 {
		return 0
	}
	return max(0, running-g.Minimum)
}
