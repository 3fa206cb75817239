// Package podfault says what planning cannot read in a pod. An API server of another version may
// have stored it.
package podfault

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/quota"
)

// faults are what is found. Each begins with the path of its field.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

// Of returns the faults of a pod and of its node affinity, each with the path of its field. at is
// the path of the pod.
func Of(p *corev1.Pod, at string, nodes *corev1.NodeAffinity) []error {
	var f faults
	if _, err := kube.FromPod(&corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: nodes}}); err != nil {
		for fault := range strings.SplitSeq(err.Error(), "\n") {
			f.add("%s%s", at, fault)
		}
	}
	if text, ok := p.Annotations[podclass.RatioAnnotation]; ok {
		if _, _, err := quota.ParseShares(text); err != nil {
			f.add("%smetadata.annotations[%s]: %w", at, podclass.RatioAnnotation, err)
		}
	}
	s := &p.Spec
	at += "spec."
	for i := range s.TopologySpreadConstraints {
		if wrong := wrongSpread(&s.TopologySpreadConstraints[i]); wrong != "" {
			f.add("%stopologySpreadConstraints[%d].%s", at, i, wrong)
		}
		f.selector(s.TopologySpreadConstraints[i].LabelSelector, fmt.Sprintf("%stopologySpreadConstraints[%d].labelSelector", at, i))
	}
	for i := range s.Tolerations {
		switch op := s.Tolerations[i].Operator; op {
		case "", corev1.TolerationOpExists, corev1.TolerationOpEqual, "Lt", "Gt": // the last two only if a feature gate is on
		default:
			f.add("%stolerations[%d].operator is %q, want Exists or Equal", at, i, op)
		}
	}
	if a := s.Affinity; a != nil {
		f.terms(at+"affinity.podAffinity.", a.PodAffinity)
		f.terms(at+"affinity.podAntiAffinity.", (*corev1.PodAffinity)(a.PodAntiAffinity)) // the type has the same fields
	}
	f.containers(at+"containers", s.Containers)
	f.containers(at+"initContainers", s.InitContainers)
	f.amounts(at+"overhead", s.Overhead)
	if r := s.Resources; r != nil {
		f.amounts(at+"resources.requests", r.Requests)
		f.amounts(at+"resources.limits", r.Limits)
	}
	return f
}

func (f *faults) containers(at string, containers []corev1.Container) {
	for i := range containers {
		f.amounts(fmt.Sprintf("%s[%d].resources.requests", at, i), containers[i].Resources.Requests)
		f.amounts(fmt.Sprintf("%s[%d].resources.limits", at, i), containers[i].Resources.Limits)
	}
}

// amounts reports quantities below zero.
func (f *faults) amounts(at string, list corev1.ResourceList) {
	for _, name := range resources.Names(list) {
		if q := list[name]; q.Sign() < 0 {
			f.add("%s: %s is %s, must not be negative", at, name, q.String())
		}
	}
}

// selector reports a label selector that kube-scheduler cannot read.
func (f *faults) selector(s *metav1.LabelSelector, at string) {
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		f.add("%s: %w", at, err)
	}
}

// terms reports terms of affinity or anti-affinity that have no key, or a selector that cannot be
// read.
func (f *faults) terms(at string, a *corev1.PodAffinity) {
	if a == nil {
		return
	}
	check := func(t *corev1.PodAffinityTerm, path string) {
		if t.TopologyKey == "" {
			f.add("%s.topologyKey is empty", path)
		}
		f.selector(t.LabelSelector, path+".labelSelector")
		f.selector(t.NamespaceSelector, path+".namespaceSelector")
	}
	for i := range a.RequiredDuringSchedulingIgnoredDuringExecution {
		check(&a.RequiredDuringSchedulingIgnoredDuringExecution[i], fmt.Sprintf("%srequiredDuringSchedulingIgnoredDuringExecution[%d]", at, i))
	}
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		check(&a.PreferredDuringSchedulingIgnoredDuringExecution[i].PodAffinityTerm, fmt.Sprintf("%spreferredDuringSchedulingIgnoredDuringExecution[%d].podAffinityTerm", at, i))
	}
}

// wrongSpread says what is wrong with a topology spread constraint, beginning with the field; empty
// if nothing is.
func wrongSpread(t *corev1.TopologySpreadConstraint) string {
	const honor, ignore = corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	switch {
	case t.MaxSkew < 1:
		return fmt.Sprintf("maxSkew is %d, must be 1 or more", t.MaxSkew)
	case t.MinDomains != nil && *t.MinDomains < 1:
		return fmt.Sprintf("minDomains is %d, must be 1 or more", *t.MinDomains)
	case t.TopologyKey == "":
		return "topologyKey is empty"
	case t.WhenUnsatisfiable != "" && t.WhenUnsatisfiable != corev1.DoNotSchedule && t.WhenUnsatisfiable != corev1.ScheduleAnyway:
		return fmt.Sprintf("whenUnsatisfiable is %q, want DoNotSchedule or ScheduleAnyway", t.WhenUnsatisfiable)
	case t.NodeAffinityPolicy != nil && *t.NodeAffinityPolicy != honor && *t.NodeAffinityPolicy != ignore:
		return fmt.Sprintf("nodeAffinityPolicy is %q, want Honor or Ignore", *t.NodeAffinityPolicy)
	case t.NodeTaintsPolicy != nil && *t.NodeTaintsPolicy != honor && *t.NodeTaintsPolicy != ignore:
		return fmt.Sprintf("nodeTaintsPolicy is %q, want Honor or Ignore", *t.NodeTaintsPolicy)
	}
	return ""
}
