package podclass

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Group splits pods into classes that are alike in everything that bears on placement. Each class is in the order of
// [Compare], and the classes in the order of their first pods, whatever the order of the pods. It costs a comparison of
// pointers for pods that come next to a replica of theirs and share its memory, and a text of the whole pod for others.
func Group(pods []*corev1.Pod) [][]*corev1.Pod {
	f := fingerprint{labels: usedLabels(pods)}
	byPrint := map[string]int{}
	var out [][]*corev1.Pod
	at := -1
	for _, p := range pods {
		if at < 0 || !SameTemplate(out[at][0], p) {
			print := f.of(p)
			id, ok := byPrint[string(print)]
			if !ok {
				id = len(out)
				byPrint[string(print)] = id
				out = append(out, nil)
			}
			at = id
		}
		out[at] = append(out[at], p)
	}
	for _, class := range out {
		Sort(class)
	}
	slices.SortStableFunc(out, func(a, b []*corev1.Pod) int { return Compare(a[0], b[0]) })
	return out
}

// SameTemplate reports whether two pods were plainly made from one template: they share the memory of everything that
// bears on placement. It is a shortcut only: pods that fail it may still be alike. Pods with ephemeral volumes are never
// the same, for each has claims of its own.
func SameTemplate(a, b *corev1.Pod) bool {
	x, y := &a.Spec, &b.Spec
	return a.Namespace == b.Namespace &&
		sameSlice(x.Containers, y.Containers) && sameSlice(x.InitContainers, y.InitContainers) &&
		sameSlice(x.Tolerations, y.Tolerations) && sameSlice(x.TopologySpreadConstraints, y.TopologySpreadConstraints) &&
		sameSlice(x.Volumes, y.Volumes) && x.Affinity == y.Affinity && x.Resources == y.Resources &&
		x.Priority == y.Priority && x.PriorityClassName == y.PriorityClassName && x.RuntimeClassName == y.RuntimeClassName &&
		x.HostNetwork == y.HostNetwork && maps.Equal(x.NodeSelector, y.NodeSelector) && maps.Equal(a.Labels, b.Labels) &&
		a.Annotations[ratioAnnotation] == b.Annotations[ratioAnnotation] &&
		len(x.Overhead) == 0 && len(y.Overhead) == 0 &&
		!slices.ContainsFunc(x.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil })
}

func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
