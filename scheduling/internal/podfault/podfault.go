// Package podfault says what is wrong with a pod: what planning cannot read in it, although an API
// server of another version may have stored it, and what an API server refuses to store.
package podfault

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/internal/podcheck"
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
			if s.Tolerations[i].Key == "" && op != corev1.TolerationOpExists {
				f.add("%stolerations[%d].operator is %q, but without a key it must be Exists", at, i, op)
			}
		default:
			f.add("%stolerations[%d].operator is %q, want Exists or Equal", at, i, op)
		}
		switch effect := s.Tolerations[i].Effect; effect {
		case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			f.add("%stolerations[%d].effect is %q, want NoSchedule, PreferNoSchedule or NoExecute", at, i, effect)
		}
	}
	if a := s.Affinity; a != nil {
		f.terms(at+"affinity.podAffinity.", a.PodAffinity)
		f.terms(at+"affinity.podAntiAffinity.", (*corev1.PodAffinity)(a.PodAntiAffinity)) // the type has the same fields
	}
	f.containers(at+"containers", s.Containers)
	f.containers(at+"initContainers", s.InitContainers)
	f.amounts(at+"overhead", s.Overhead)
	if s.Resources != nil {
		f.resources(at+"resources", s.Resources)
	}
	return f
}

// Refused returns what an API server refuses in a pod that it has not stored yet, on the fields that
// decide where the pod may run, each with the path of its field. admitted is the pod as the server
// would store it: LimitRanges may give what the pod lacks.
func Refused(p, admitted *corev1.Pod) []error {
	spec := p.Spec
	spec.Containers, spec.InitContainers, spec.Resources = admitted.Spec.Containers, admitted.Spec.InitContainers, admitted.Spec.Resources
	var f faults
	for _, problem := range new(podcheck.Checker).Placement(&spec) {
		f.add("%s: %s", problem.Path, problem.Detail)
	}
	return f
}

// Text joins faults to one text, which is empty if there are none.
func Text(faults []error) string {
	var texts []string
	for _, err := range faults {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

// Unmatched says why required node affinity matches no node at all, if all of its terms are empty;
// empty if not. nil matches every node. An API server stores such pods, but they never run.
func Unmatched(nodes *corev1.NodeAffinity) string {
	if nodes == nil || nodes.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, t := range nodes.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(t.MatchExpressions)+len(t.MatchFields) > 0 {
			return ""
		}
	}
	return "its required node affinity has only empty terms, or none, and an empty nodeSelectorTerm matches no node; remove it, or say what it requires"
}

func (f *faults) containers(at string, containers []corev1.Container) {
	for i := range containers {
		f.resources(fmt.Sprintf("%s[%d].resources", at, i), &containers[i].Resources)
		for k := range containers[i].Ports {
			if port := containers[i].Ports[k].HostPort; port < 0 || port > 65535 {
				f.add("%s[%d].ports[%d].hostPort is %d, want 1 to 65535", at, i, k, port)
			}
		}
	}
}

// resources reports amounts below zero, and requests that the limits do not allow.
func (f *faults) resources(at string, r *corev1.ResourceRequirements) {
	f.amounts(at+".requests", r.Requests)
	f.amounts(at+".limits", r.Limits)
	for _, name := range resources.Names(r.Requests) {
		if wrong := resources.WrongRequest(name, r); wrong != "" {
			f.add("%s.requests: %s: %s", at, name, wrong)
		}
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
		t := &a.PreferredDuringSchedulingIgnoredDuringExecution[i]
		path := fmt.Sprintf("%spreferredDuringSchedulingIgnoredDuringExecution[%d].", at, i)
		if t.Weight < 1 || t.Weight > 100 {
			f.add("%sweight is %d, want 1 to 100", path, t.Weight)
		}
		check(&t.PodAffinityTerm, path+"podAffinityTerm")
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
