package podclass

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// alone is how many pods are grouped without help: for fewer, sharing the work costs more than it brings.
const alone = 1000

// Group splits pods into classes that are alike in everything that bears on placement. Each class is in the order of
// [Compare], and the classes in the order of their first pods, whatever the order of the pods. It costs a comparison of
// pointers for pods that come next to a replica of theirs and share its memory, and a text of the whole pod for others.
// Many pods are shared out among the cores; what comes out is the same on any number of them.
func Group(pods []*corev1.Pod) [][]*corev1.Pod { return GroupAmong(pods, nil) }

// GroupAmong is [Group] where others run already: their required anti-affinity may keep some replicas away and let
// others in, so pods that differ in a label which it looks at are not alike. Pods without anti-affinity cost next to
// nothing.
func GroupAmong(pods, running []*corev1.Pod) [][]*corev1.Pod {
	used := usedLabels(pods)
	used.keptBy(running)
	parts := make([]grouping, 1)
	if len(pods) > alone {
		parts = make([]grouping, min(runtime.GOMAXPROCS(0), 1+len(pods)/alone))
	}
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() { parts[i] = grouped(pods[i*len(pods)/len(parts):(i+1)*len(pods)/len(parts)], used) })
	}
	all.Wait()
	for _, p := range parts[1:] {
		parts[0].join(&p)
	}
	out := parts[0].classes
	for _, class := range out {
		Sort(class)
	}
	order := make([]int, len(out))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(Compare(out[a][0], out[b][0]), cmp.Compare(a, b)) })
	sorted := make([][]*corev1.Pod, len(out))
	for i, at := range order {
		sorted[i] = out[at]
	}
	return sorted
}

// grouping is classes in the order in which their first pods come, with what tells them apart.
type grouping struct {
	classes [][]*corev1.Pod
	prints  []string
	byPrint map[string]int
}

func grouped(pods []*corev1.Pod, used labelUse) grouping {
	f := fingerprint{labels: used}
	g := grouping{byPrint: make(map[string]int, len(pods)/4)}
	at := -1
	for i, p := range pods {
		if at < 0 || !SameTemplate(pods[i-1], p) {
			at = g.class(f.of(p))
		}
		g.classes[at] = append(g.classes[at], p)
	}
	return g
}

// class is the number of the class with this print, which is new where there is none.
func (g *grouping) class(print []byte) int {
	if id, ok := g.byPrint[string(print)]; ok {
		return id
	}
	text := string(print)
	g.byPrint[text] = len(g.classes)
	g.classes, g.prints = append(g.classes, nil), append(g.prints, text)
	return len(g.classes) - 1
}

// join adds the pods of another grouping, which come after those that are here.
func (g *grouping) join(o *grouping) {
	for i, print := range o.prints {
		id, ok := g.byPrint[print]
		if !ok {
			g.byPrint[print] = len(g.classes)
			g.classes, g.prints = append(g.classes, o.classes[i]), append(g.prints, print)
			continue
		}
		g.classes[id] = append(g.classes[id], o.classes[i]...)
	}
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
		a.Annotations[RatioAnnotation] == b.Annotations[RatioAnnotation] &&
		len(x.Overhead) == 0 && len(y.Overhead) == 0 &&
		!slices.ContainsFunc(x.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil })
}

func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
