package simulate

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/gang"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// Groups returns groups of pods in the form of package deprovision.
func Groups(groups []gang.Group) []eviction.Group {
	var out []eviction.Group
	for _, g := range groups {
		out = append(out, eviction.Group{Name: g.Name, Member: g.Member, Minimum: g.Minimum, Whole: g.Whole})
	}
	return out
}

// groupOf returns the index of the pod's group, or -1.
func groupOf(groups []gang.Group, pod *corev1.Pod) int {
	return slices.IndexFunc(groups, func(g gang.Group) bool { return g.Member(pod) })
}

// together returns a function that names the group of a pod if the group's pods share a label. It
// returns nil if no group has such a label.
func together(groups []gang.Group) func(*corev1.Pod) (set, label string) {
	if !slices.ContainsFunc(groups, func(g gang.Group) bool { return g.Key != "" }) {
		return nil
	}
	return func(pod *corev1.Pod) (string, string) {
		if g := groupOf(groups, pod); g >= 0 && groups[g].Key != "" {
			return "group " + groups[g].Name, groups[g].Key
		}
		return "", ""
	}
}

// reserve is whatif.Cluster.Reserve without pods of groups that would have fewer pods than they
// need, so that others can use their capacity. Pods of leaving nodes count like pending ones. stays
// are the pods that continue to run.
func reserve(c *whatif.Cluster, moving, stays []*corev1.Pod, groups []gang.Group) (*whatif.Cluster, []whatif.Placement) {
	count := func(pods []*corev1.Pod) []int { // by group
		out := make([]int, len(groups))
		for _, pod := range pods {
			if g := groupOf(groups, pod); g >= 0 {
				out[g]++
			}
		}
		return out
	}
	stay, move := count(stays), count(moving)
	for {
		out, places := c.Reserve(moving)
		var placed []*corev1.Pod
		for _, p := range places {
			placed = append(placed, p.Pod)
		}
		have := count(placed)
		kept := slices.DeleteFunc(slices.Clone(moving), func(pod *corev1.Pod) bool {
			g := groupOf(groups, pod)
			return g >= 0 && (groups[g].Waits != "" || stay[g]+have[g] < cmp.Or(groups[g].Minimum, stay[g]+move[g]))
		})
		if len(kept) == len(moving) {
			return out, places
		}
		moving = kept
	}
}
