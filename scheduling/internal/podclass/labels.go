package podclass

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelUse is the label keys that selectors look at.
type labelUse map[string]bool

// usedLabels is the label keys in selectors of these pods.
func usedLabels(pods []*corev1.Pod) labelUse {
	u := labelUse{}
	var lastAffinity *corev1.Affinity
	var lastSpreads []corev1.TopologySpreadConstraint
	for _, p := range pods {
		if a := p.Spec.Affinity; a != nil && a != lastAffinity {
			lastAffinity = a
			u.affinity(a)
		}
		if s := p.Spec.TopologySpreadConstraints; len(s) > 0 && !sameSlice(s, lastSpreads) {
			lastSpreads = s
			for i := range s {
				u.selector(s[i].LabelSelector)
				u.add(s[i].MatchLabelKeys)
			}
		}
	}
	return u
}

// keptBy adds the label keys in required anti-affinity of other pods.
func (u labelUse) keptBy(others []*corev1.Pod) {
	var last *corev1.Affinity
	for _, p := range others {
		a := p.Spec.Affinity
		if a == nil || a == last || a.PodAntiAffinity == nil {
			continue
		}
		last = a
		for i := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			u.term(&a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i])
		}
	}
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

func (u labelUse) affinity(a *corev1.Affinity) {
	for _, terms := range []*corev1.PodAffinity{a.PodAffinity, (*corev1.PodAffinity)(a.PodAntiAffinity)} { // they have the same fields
		if terms == nil {
			continue
		}
		for i := range terms.RequiredDuringSchedulingIgnoredDuringExecution {
			u.term(&terms.RequiredDuringSchedulingIgnoredDuringExecution[i])
		}
		for i := range terms.PreferredDuringSchedulingIgnoredDuringExecution {
			u.term(&terms.PreferredDuringSchedulingIgnoredDuringExecution[i].PodAffinityTerm)
		}
	}
}
