package podclass

import (
	"maps"
	"runtime"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// alone is how many pods one goroutine groups. Starting another goroutine costs more than grouping
// fewer.
const alone = 1000

// Group splits pods into classes that are equal in everything that affects placement. Each class is
// in the order of [Compare], and the classes are in the order of their first pods. A label is
// compared only if a selector of these pods looks at it, or the required anti-affinity of others or
// of DaemonSets. A pod that shares memory with its predecessor costs a comparison of pointers. Any
// other pod costs a text of its whole spec. The result does not depend on the order of the
// arguments or the number of cores.
func Group(pods, others []*corev1.Pod, daemonSets []*appsv1.DaemonSet) [][]*corev1.Pod {
	daemons := make([]*corev1.Pod, len(daemonSets))
	for i, d := range daemonSets {
		daemons[i] = &corev1.Pod{Spec: d.Spec.Template.Spec}
	}
	used := usedLabels(pods, slices.Concat(others, daemons)...)
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
	slices.SortFunc(out, func(a, b []*corev1.Pod) int { return Compare(a[0], b[0]) }) // no two pods have the same name
	return out
}

// Split splits groups of pods further, by a text that it asks for each pod. The parts of a group
// are in the order of their first pods.
func Split(groups [][]*corev1.Pod, by func(*corev1.Pod) string) [][]*corev1.Pod {
	var out [][]*corev1.Pod
	for _, pods := range groups {
		g := grouping{byPrint: map[string]int{}}
		for _, pod := range pods {
			at := g.class([]byte(by(pod)))
			g.classes[at] = append(g.classes[at], pod)
		}
		out = append(out, g.classes...)
	}
	return out
}

// grouping is classes in the order of their first pods, with their fingerprints.
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

// class returns the number of the class with this fingerprint; a new one if there is none.
func (g *grouping) class(print []byte) int {
	if id, ok := g.byPrint[string(print)]; ok {
		return id
	}
	text := string(print)
	g.byPrint[text] = len(g.classes)
	g.classes, g.prints = append(g.classes, nil), append(g.prints, text)
	return len(g.classes) - 1
}

// join appends the pods of another grouping.
func (g *grouping) join(o *grouping) {
	for i, print := range o.prints {
		id := g.class([]byte(print))
		g.classes[id] = append(g.classes[id], o.classes[i]...)
	}
}

// SameTemplate reports whether two pods share the memory of everything that affects placement, as
// replicas of one template do. Pods that do not may still be equal. It is false for pods with
// ephemeral volumes, since each has its own claims.
func SameTemplate(a, b *corev1.Pod) bool {
	x, y := &a.Spec, &b.Spec
	return Namespace(a) == Namespace(b) && (a.UID == "") == (b.UID == "") && (a.UID == MadeAnew) == (b.UID == MadeAnew) &&
		sameSlice(x.Containers, y.Containers) && sameSlice(x.InitContainers, y.InitContainers) &&
		sameSlice(x.Tolerations, y.Tolerations) && sameSlice(x.TopologySpreadConstraints, y.TopologySpreadConstraints) &&
		sameSlice(x.Volumes, y.Volumes) && x.Affinity == y.Affinity && x.Resources == y.Resources &&
		x.Priority == y.Priority && x.PriorityClassName == y.PriorityClassName && x.RuntimeClassName == y.RuntimeClassName &&
		x.HostNetwork == y.HostNetwork && equal(x.HostUsers, y.HostUsers) && maps.Equal(x.NodeSelector, y.NodeSelector) && maps.Equal(a.Labels, b.Labels) &&
		a.Annotations[RatioAnnotation] == b.Annotations[RatioAnnotation] &&
		len(x.Overhead) == 0 && len(y.Overhead) == 0 &&
		!slices.ContainsFunc(x.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil })
}

func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func equal(a, b *bool) bool { return a == b || a != nil && b != nil && *a == *b }
