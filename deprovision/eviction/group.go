package eviction

import corev1 "k8s.io/api/core/v1"

// Group is a set of pods that run only together, such as those of a training job. Taking it below
// its minimum disrupts all of it. So a plan moves either only pods that it can spare, or all of
// them in one command whose new nodes are ready before. Otherwise the nodes stay. Nodes that the
// cloud takes back or whose pool ends them go in any case.
type Group struct {
	// Name is unique.
	Name string
	// Member reports whether a pod is in the group. A pod of two groups belongs to the first.
	Member func(*corev1.Pod) bool
	// Minimum is how many of its pods must run. 0, or a number larger than that of the running
	// pods, means all running pods.
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
