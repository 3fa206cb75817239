package podclass

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelUse is the label keys that selectors look at.
type labelUse map[string]bool

// usedLabels returns the label keys in selectors of these pods, and in required anti-affinity of
// others.
func usedLabels(pods []*corev1.Pod, others ...*corev1.Pod) labelUse {
	u := labelUse{}
	var last corev1.PodSpec // replicas share the memory of their template
	for _, p := range pods {
		if a := p.Spec.Affinity; a != nil && a != last.Affinity {
			u.terms(a.PodAffinity)
			u.terms((*corev1.PodAffinity)(a.PodAntiAffinity)) // the type has the same fields
		}
		if spreads := p.Spec.TopologySpreadConstraints; !sameSlice(spreads, last.TopologySpreadConstraints) {
			for i := range spreads {
				u.selector(spreads[i].LabelSelector)
				u.add(spreads[i].MatchLabelKeys)
			}
		}
		last.Affinity, last.TopologySpreadConstraints = p.Spec.Affinity, p.Spec.TopologySpreadConstraints
	}
	for _, p := range others {
		if a := p.Spec.Affinity; a != nil && a != last.Affinity && a.PodAntiAffinity != nil {
			last.Affinity = a
			u.required(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		}
	}
	return u
}

func (u labelUse) add(keys []string) {
	for _, k := range keys {
		u[k] = true
	}
}

func (u labelUse) selector(s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	for k := range s.MatchLabels {
		u[k] = true
	}
	for _, e := range s.MatchExpressions {
		u[e.Key] = true
	}
}

func (u labelUse) term(t *corev1.PodAffinityTerm) {
	u.selector(t.LabelSelector)
	u.add(t.MatchLabelKeys)
	u.add(t.MismatchLabelKeys)
}

func (u labelUse) required(terms []corev1.PodAffinityTerm) {
	for i := range terms {
		u.term(&terms[i])
	}
}

func (u labelUse) terms(a *corev1.PodAffinity) {
	if a == nil {
		return
	}
	u.required(a.RequiredDuringSchedulingIgnoredDuringExecution)
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		u.term(&a.PreferredDuringSchedulingIgnoredDuringExecution[i].PodAffinityTerm)
	}
}
