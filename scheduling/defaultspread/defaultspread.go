// Package defaultspread gives topology spread constraints to pods without any, as kube-scheduler is
// configured to do. They are the defaultConstraints of its plugin PodTopologySpread, which
// Karpenter 1.15 reads from --scheduler-config. The pods that it returns are planned, simulated and
// explained like others.
//
// The rules are those of kube-scheduler:
// https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/#cluster-level-default-constraints
package defaultspread

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Defaults has the constraints of a cluster, without selectors, and the objects that give each pod
// its selector. The zero value changes no pod. It is only read, and safe for concurrent use.
type Defaults struct {
	// Constraints are given to pods without topology spread constraints of their own, either all of
	// them or none. See [Decode].
	Constraints []corev1.TopologySpreadConstraint
	// Services select pods of their namespaces by labels.
	Services []*corev1.Service
	// ReplicationControllers, ReplicaSets and StatefulSets are the controllers that have selectors
	// for their pods. Pods of other controllers, such as Jobs, have only the selectors of Services.
	ReplicationControllers []*corev1.ReplicationController
	ReplicaSets            []*appsv1.ReplicaSet
	StatefulSets           []*appsv1.StatefulSet
	// Deployments stand for their ReplicaSets if these are not given. A pod that names a Deployment
	// as its controller gets the Deployment's selector. A pod that names a ReplicaSet gets the
	// Deployment's selector plus its own pod-template-hash, if the name of the ReplicaSet is that
	// of the Deployment, a hyphen and this hash. That is the selector which the ReplicaSet would
	// have.
	Deployments []*appsv1.Deployment
}

// Pods returns the list, with copies of the pods that get the constraints. A pod gets them if it
// has no constraints, and if Services or its controller give it a selector. The constraints select
// the pods that match all of these selectors: those of the Services that select the pod, and that
// of its controller. Pods with equal selectors share the memory of their constraints. No argument
// is modified. It costs O(pods + templates x Services of a namespace).
func (d *Defaults) Pods(pods []*corev1.Pod) []*corev1.Pod {
	if len(d.Constraints) == 0 {
		return pods
	}
	x := d.index()
	out := slices.Clone(pods)
	shared := map[string][]corev1.TopologySpreadConstraint{} // by selector
	var last *corev1.Pod
	var constraints []corev1.TopologySpreadConstraint // of the last pod
	for i, p := range pods {
		if p == nil || len(p.Spec.TopologySpreadConstraints) > 0 {
			continue
		}
		if last == nil || !alike(last, p) {
			last, constraints = p, nil
			if s := x.selector(p); len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
				key := metav1.FormatLabelSelector(s)
				if shared[key] == nil {
					shared[key] = d.selecting(s)
				}
				constraints = shared[key]
			}
		}
		if constraints != nil {
			own := *p
			own.Spec.TopologySpreadConstraints = constraints
			out[i] = &own
		}
	}
	return out
}

// selecting returns the constraints with a selector.
func (d *Defaults) selecting(s *metav1.LabelSelector) []corev1.TopologySpreadConstraint {
	out := slices.Clone(d.Constraints)
	for i := range out {
		out[i].LabelSelector = s
	}
	return out
}

// alike reports whether two pods are known to have the same selector without looking it up.
func alike(a, b *corev1.Pod) bool {
	x, y := metav1.GetControllerOfNoCopy(a), metav1.GetControllerOfNoCopy(b)
	same := x == y || x != nil && y != nil && x.APIVersion == y.APIVersion && x.Kind == y.Kind && x.Name == y.Name
	return same && a.Namespace == b.Namespace && maps.Equal(a.Labels, b.Labels)
}

// owner identifies a controller.
type owner struct{ version, kind, namespace, name string }

// index finds the objects of a pod.
type index struct {
	services    map[string][]*corev1.Service // by namespace
	replaced    map[owner]map[string]string  // by ReplicationController
	controllers map[owner]*metav1.LabelSelector
}

func (d *Defaults) index() *index {
	x := &index{services: map[string][]*corev1.Service{}, replaced: map[owner]map[string]string{}, controllers: map[owner]*metav1.LabelSelector{}}
	for _, s := range d.Services {
		if s.Spec.Selector != nil { // a Service without a selector has endpoints that others choose
			x.services[in(s.Namespace)] = append(x.services[in(s.Namespace)], s)
		}
	}
	for _, c := range d.ReplicationControllers {
		x.replaced[owner{"v1", "ReplicationController", in(c.Namespace), c.Name}] = c.Spec.Selector
	}
	add := func(kind string, meta *metav1.ObjectMeta, s *metav1.LabelSelector) {
		x.controllers[owner{"apps/v1", kind, in(meta.Namespace), meta.Name}] = s
	}
	for _, c := range d.ReplicaSets {
		add("ReplicaSet", &c.ObjectMeta, c.Spec.Selector)
	}
	for _, c := range d.StatefulSets {
		add("StatefulSet", &c.ObjectMeta, c.Spec.Selector)
	}
	for _, c := range d.Deployments {
		add("Deployment", &c.ObjectMeta, c.Spec.Selector)
	}
	return x
}

// in returns the namespace of an object, as an API server completes it.
func in(namespace string) string { return cmp.Or(namespace, corev1.NamespaceDefault) }

// selector returns what the Services and the controller of a pod select by; empty if there are
// none.
func (x *index) selector(p *corev1.Pod) *metav1.LabelSelector {
	out := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, s := range x.services[in(p.Namespace)] {
		if labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.Labels)) {
			maps.Copy(out.MatchLabels, s.Spec.Selector)
		}
	}
	ref := metav1.GetControllerOfNoCopy(p)
	if ref == nil {
		return out
	}
	by := owner{ref.APIVersion, ref.Kind, in(p.Namespace), ref.Name}
	maps.Copy(out.MatchLabels, x.replaced[by])
	s := x.controllers[by]
	if hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; s == nil && ref.Kind == "ReplicaSet" && hash != "" {
		by.kind, by.name = "Deployment", strings.TrimSuffix(ref.Name, "-"+hash)
		if s = x.controllers[by]; s != nil {
			out.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
		}
	}
	if _, err := metav1.LabelSelectorAsSelector(s); s == nil || err != nil { // kube-scheduler ignores one that it cannot read
		return out
	}
	out.MatchExpressions = slices.Clone(s.MatchExpressions)
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		value := s.MatchLabels[key]
		switch other, asked := out.MatchLabels[key]; {
		case !asked:
			out.MatchLabels[key] = value
		case other != value:
			out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}})
		}
	}
	return out
}
