package capacity

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joinery-sdk/joinery/scheduling"
)

// keyOf returns everything about a pod that affects its place, except its name. It returns false
// for pods that need a plan. A plan weighs preferences against money, spreads over zones where
// nothing runs yet, and chooses one domain for pods that go where others are. Pods with unbound
// claims need a plan because the volume depends on what others take.
func keyOf(p *corev1.Pod) (string, bool) {
	spec := &p.Spec
	if p.DeletionTimestamp != nil || spec.NodeName != "" || p.Status.NominatedNodeName != "" || len(p.Status.ContainerStatuses)+len(p.Status.InitContainerStatuses) > 0 ||
		p.Status.Phase != "" && p.Status.Phase != corev1.PodPending ||
		len(p.OwnerReferences) > 0 && ownedByNodes(p) || len(spec.TopologySpreadConstraints) > 0 || spec.RuntimeClassName != nil || weighs(spec.Affinity) {
		return "", false
	}
	for key := range p.Annotations {
		if key == corev1.MirrorPodAnnotationKey || strings.HasPrefix(key, "joinery-sdk.dev/") {
			return "", false
		}
	}
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; v.EmptyDir == nil && v.ConfigMap == nil && v.Secret == nil && v.Projected == nil && v.DownwardAPI == nil && v.HostPath == nil {
			return "", false
		}
	}
	text, err := spec.Marshal() // maps are sorted in it
	if err != nil {
		return "", false
	}
	var b strings.Builder
	b.Grow(len(text) + 128)
	b.WriteString(cmp.Or(p.Namespace, corev1.NamespaceDefault))
	for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
		b.WriteByte(0)
		b.WriteString(key)
		b.WriteByte('=')
		b.WriteString(p.Labels[key])
	}
	b.WriteString("\x00\x00")
	if p.UID != "" { // an API server has stored it and adds nothing
		b.WriteByte(1)
	}
	b.Write(text)
	return b.String(), true
}

// ownedByNodes reports whether the pod belongs to its node and disappears with it.
func ownedByNodes(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" || o.Kind == "Node" })
}

// weighs reports whether a plan weighs the affinity against money or chooses a domain for it.
func weighs(a *corev1.Affinity) bool {
	return a != nil && (a.NodeAffinity != nil && len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)+len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0)
}

func nameOf(p *corev1.Pod) string { return cmp.Or(p.Namespace, corev1.NamespaceDefault) + "/" + p.Name }

// admits reports whether an API server may change the pod's requests, so that it runs with other
// requests than it has here.
func admits(s *scheduling.Snapshot, p *corev1.Pod) bool {
	return slices.ContainsFunc(s.LimitRanges, func(l *corev1.LimitRange) bool {
		return cmp.Or(l.Namespace, corev1.NamespaceDefault) == cmp.Or(p.Namespace, corev1.NamespaceDefault)
	})
}

// plain reports whether nothing in the snapshot moves by itself and no taint is only a preference,
// because a plan would buy a node to respect it.
func plain(s *scheduling.Snapshot) bool {
	soft := func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule }
	return !slices.ContainsFunc(s.Nodes, func(n *corev1.Node) bool {
		return n.DeletionTimestamp != nil || slices.ContainsFunc(n.Spec.Taints, soft)
	}) &&
		!slices.ContainsFunc(s.Pools, func(p scheduling.Pool) bool { return slices.ContainsFunc(p.Taints, soft) }) &&
		!slices.ContainsFunc(s.Pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil || p.Spec.NodeName == "" }) &&
		!slices.ContainsFunc(s.NodeClaims, func(c scheduling.NodeClaim) bool { return c.Deleting })
}

// selector matches the pods that a term of anti-affinity is about, and perhaps more, because it
// ignores namespaces.
type selector struct{ pods labels.Selector }

func (s selector) selects(p *corev1.Pod) bool {
	return s.pods == nil || s.pods.Matches(labels.Set(p.Labels))
}

// antiAffinity returns selectors of the pods that some of these pods keep away.
func antiAffinity(pods []*corev1.Pod) []selector {
	var out []selector
	seen := map[*metav1.LabelSelector]bool{} // replicas share theirs
	for _, p := range pods {
		a := p.Spec.Affinity
		if a == nil || a.PodAntiAffinity == nil {
			continue
		}
		for _, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if t.LabelSelector != nil && seen[t.LabelSelector] {
				continue
			}
			seen[t.LabelSelector] = true
			parsed, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
			if err != nil {
				parsed = nil // it is rejected or ignored elsewhere; counting it is safe
			}
			out = append(out, selector{parsed})
		}
	}
	return out
}
