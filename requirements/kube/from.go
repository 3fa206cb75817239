// Package kube reads label requirements from the types of the Kubernetes API, and writes them back.
// It is separate so that package requirements imports only the standard library.
//
// All functions are pure and safe for concurrent use; they do not modify their arguments.
package kube

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// FromExpressions returns the set of nodes that satisfy all of exprs. Each is an element of
// matchExpressions or of a NodePool's requirements. The error joins one
// [*requirements.InvalidError] for each fault, with paths like "[1].operator". Well-formed
// requirements that contradict each other are no error; the set is then impossible.
func FromExpressions(exprs []corev1.NodeSelectorRequirement) (requirements.Set, error) {
	return fromExpressions("", exprs)
}

func fromExpressions(path string, exprs []corev1.NodeSelectorRequirement) (requirements.Set, error) {
	var b requirements.Builder
	var errs []error
	for i, e := range exprs {
		r, err := requirements.New(e.Key, requirements.Operator(e.Operator), e.Values...)
		if err != nil {
			errs = append(errs, under(fmt.Sprintf("%s[%d].", path, i), err))
			continue
		}
		b.Add(r)
	}
	if len(errs) > 0 {
		return requirements.Set{}, errors.Join(errs...)
	}
	s, _ := b.Set() // a contradiction is a meaning, not a fault of form
	return s, nil
}

// FromNodeSelector returns the union of the selector's terms. As in kube-scheduler, a term without
// expressions and fields matches nothing, and so does a selector without terms. A nil selector
// matches anything. The error joins one [*requirements.InvalidError] for each fault.
func FromNodeSelector(sel *corev1.NodeSelector) (requirements.Alternatives, error) {
	if sel == nil {
		return requirements.AnyOf(requirements.Set{}), nil
	}
	var sets []requirements.Set
	var errs []error
	for i, t := range sel.NodeSelectorTerms {
		s, err := fromTerm(fmt.Sprintf("nodeSelectorTerms[%d].", i), t)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sets = append(sets, s)
	}
	return requirements.AnyOf(sets...), errors.Join(errs...)
}

func fromTerm(path string, t corev1.NodeSelectorTerm) (requirements.Set, error) {
	if len(t.MatchExpressions) == 0 && len(t.MatchFields) == 0 {
		return requirements.Impossible(), nil
	}
	labels, errLabels := fromExpressions(path+"matchExpressions", t.MatchExpressions)
	fields, errFields := fromFields(path+"matchFields", t.MatchFields)
	if err := errors.Join(errLabels, errFields); err != nil {
		return requirements.Set{}, err
	}
	s, _ := labels.Intersect(fields)
	return s, nil
}

func fromFields(path string, exprs []corev1.NodeSelectorRequirement) (requirements.Set, error) {
	var b requirements.Builder
	var errs []error
	for i, e := range exprs {
		at := func(field, format string, args ...any) {
			errs = append(errs, &requirements.InvalidError{Path: fmt.Sprintf("%s[%d].%s", path, i, field), Detail: fmt.Sprintf(format, args...)})
		}
		switch {
		case e.Key != metav1.ObjectNameField:
			at("key", "%q: the only field that can be matched is %q", e.Key, metav1.ObjectNameField)
		case len(e.Values) != 1:
			at("values", "a field needs exactly one value, got %d", len(e.Values))
		case e.Operator == corev1.NodeSelectorOpIn:
			b.Add(requirements.In(requirements.NodeNameKey, e.Values[0]))
		case e.Operator == corev1.NodeSelectorOpNotIn:
			b.Add(requirements.NotIn(requirements.NodeNameKey, e.Values[0]))
		default:
			at("operator", "%q: a field can only be matched by In or NotIn", e.Operator)
		}
	}
	s, _ := b.Set()
	return s, errors.Join(errs...)
}

// FromPod reads the node selector and the node affinity of a pod. A pod without either may go
// anywhere. The error joins one [*requirements.InvalidError] for each fault, with paths from the
// pod ("spec.affinity.nodeAffinity...").
func FromPod(spec *corev1.PodSpec) (requirements.Pod, error) {
	const affinity = "spec.affinity.nodeAffinity."
	base := requirements.FromLabels(spec.NodeSelector)
	out := requirements.Pod{Required: requirements.AnyOf(base)}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return out, nil
	}
	var errs []error
	na := spec.Affinity.NodeAffinity
	if sel := na.RequiredDuringSchedulingIgnoredDuringExecution; sel != nil {
		terms, err := FromNodeSelector(sel)
		if err != nil {
			errs = append(errs, under(affinity+"requiredDuringSchedulingIgnoredDuringExecution.", err))
		}
		out.Required = terms.Intersect(out.Required)
	}
	for i, p := range na.PreferredDuringSchedulingIgnoredDuringExecution {
		at := fmt.Sprintf("%spreferredDuringSchedulingIgnoredDuringExecution[%d].", affinity, i)
		if p.Weight < 1 || p.Weight > 100 {
			errs = append(errs, &requirements.InvalidError{Path: at + "weight", Detail: fmt.Sprintf("%d: want 1 to 100", p.Weight)})
		}
		if len(p.Preference.MatchExpressions) == 0 && len(p.Preference.MatchFields) == 0 {
			continue // an empty preferred term prefers no node to another
		}
		s, err := fromTerm("preference.", p.Preference)
		if err != nil {
			errs = append(errs, under(at, err))
			continue
		}
		out.Preferred = append(out.Preferred, requirements.Preference{Weight: p.Weight, Nodes: s})
	}
	slices.SortStableFunc(out.Preferred, func(a, b requirements.Preference) int { return cmp.Compare(b.Weight, a.Weight) })
	return out, errors.Join(errs...)
}

// under puts a prefix before the path of every InvalidError that err joins.
func under(prefix string, err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range joined.Unwrap() {
			errs = append(errs, under(prefix, e))
		}
		return errors.Join(errs...)
	}
	if invalid, ok := errors.AsType[*requirements.InvalidError](err); ok {
		return &requirements.InvalidError{Path: prefix + invalid.Path, Detail: invalid.Detail}
	}
	return err
}
