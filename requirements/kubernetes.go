package requirements

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// InvalidError is a requirement that the Kubernetes API would not accept. Path is relative to what was converted, for
// example "nodeSelectorTerms[2].matchExpressions[0].operator".
type InvalidError struct {
	Path   string
	Detail string
}

// Error is "path: detail".
func (e *InvalidError) Error() string {
	if e.Path == "" {
		return e.Detail
	}
	return e.Path + ": " + e.Detail
}

// NodeNameKey is the key under which a node's name is matched by matchFields. It is a field, not a label; no label has
// this name, so the algebra treats it like one.
const NodeNameKey = "metadata.name"

// validate reports everything that is wrong with one requirement, joined.
func validate(path, key string, op Operator, values []string) error {
	var errs []error
	at := func(field, format string, args ...any) {
		full := strings.TrimPrefix(path+"."+field, ".")
		errs = append(errs, &InvalidError{full, fmt.Sprintf(format, args...)})
	}
	for _, msg := range validation.IsQualifiedName(key) {
		at("key", "%q: %s", key, msg)
	}
	badValues := func() {
		for i, v := range values {
			for _, msg := range validation.IsValidLabelValue(v) {
				at(fmt.Sprintf("values[%d]", i), "%q: %s", v, msg)
			}
		}
	}
	switch op {
	case OpIn, OpNotIn:
		if len(values) == 0 {
			at("values", "operator %s needs at least one value", op)
		}
		badValues()
	case OpExists, OpDoesNotExist:
		if len(values) > 0 {
			at("values", "operator %s takes no values, got %q", op, values)
		}
	case OpGt, OpLt, OpGte, OpLte:
		if len(values) != 1 {
			at("values", "operator %s needs exactly one integer, got %d values", op, len(values))
		} else if n, err := strconv.ParseInt(values[0], 10, 64); err != nil || values[0][0] == '+' {
			at("values[0]", "%q: operator %s needs an integer", values[0], op)
		} else if n < 0 { // the API takes label values only, and none starts with a sign
			at("values[0]", "%q: operator %s needs an integer that is not negative", values[0], op)
		}
	default:
		names := make([]string, 0, 8)
		for _, o := range Operators() {
			names = append(names, string(o))
		}
		hint := ""
		if near, ok := Nearest(string(op), names); ok {
			hint = fmt.Sprintf(" (did you mean %q?)", near)
		}
		at("operator", "%q: want one of %s%s", op, strings.Join(names, ", "), hint)
	}
	return errors.Join(errs...)
}

// FromExpressions is the set of nodes that satisfy all of exprs, each an element of matchExpressions or of a
// NodePool's requirements. The error joins one [*InvalidError] for each fault, with paths like "[1].operator", and is
// nil for requirements that are well formed but contradict each other: the set is then impossible.
func FromExpressions(exprs []corev1.NodeSelectorRequirement) (Set, error) {
	return fromExpressions("", exprs)
}

func fromExpressions(path string, exprs []corev1.NodeSelectorRequirement) (Set, error) {
	var b Builder
	var errs []error
	for i, e := range exprs {
		at := fmt.Sprintf("%s[%d]", path, i)
		if err := validate(at, e.Key, Operator(e.Operator), e.Values); err != nil {
			errs = append(errs, err)
			continue
		}
		r, err := New(e.Key, Operator(e.Operator), e.Values...)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		b.Add(r)
	}
	if len(errs) > 0 {
		return Set{}, errors.Join(errs...)
	}
	s, _ := b.Set() // contradictory is a meaning, not a malformation
	return s, nil
}

// FromNodeSelector is the union of the selector's terms. As in kube-scheduler, a term without expressions and fields
// matches nothing, so does a selector without terms; a nil selector matches anything. The error joins one
// [*InvalidError] for each fault.
func FromNodeSelector(sel *corev1.NodeSelector) (Alternatives, error) {
	if sel == nil {
		return AnyOf(Set{}), nil
	}
	var sets []Set
	var errs []error
	for i, t := range sel.NodeSelectorTerms {
		s, err := fromTerm(fmt.Sprintf("nodeSelectorTerms[%d].", i), t)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sets = append(sets, s)
	}
	return AnyOf(sets...), errors.Join(errs...)
}

func fromTerm(path string, t corev1.NodeSelectorTerm) (Set, error) {
	if len(t.MatchExpressions) == 0 && len(t.MatchFields) == 0 {
		return Impossible(), nil
	}
	labels, errLabels := fromExpressions(path+"matchExpressions", t.MatchExpressions)
	fields, errFields := fromFields(path+"matchFields", t.MatchFields)
	if err := errors.Join(errLabels, errFields); err != nil {
		return Set{}, err
	}
	s, _ := labels.Intersect(fields)
	return s, nil
}

func fromFields(path string, exprs []corev1.NodeSelectorRequirement) (Set, error) {
	var b Builder
	var errs []error
	for i, e := range exprs {
		at := func(field, format string, args ...any) {
			errs = append(errs, &InvalidError{fmt.Sprintf("%s[%d].%s", path, i, field), fmt.Sprintf(format, args...)})
		}
		switch {
		case e.Key != NodeNameKey:
			at("key", "%q: the only field that can be matched is %q", e.Key, NodeNameKey)
		case len(e.Values) != 1:
			at("values", "a field needs exactly one value, got %d", len(e.Values))
		case e.Operator == corev1.NodeSelectorOpIn:
			b.Add(In(NodeNameKey, e.Values[0]))
		case e.Operator == corev1.NodeSelectorOpNotIn:
			b.Add(NotIn(NodeNameKey, e.Values[0]))
		default:
			at("operator", "%q: a field can only be matched by In or NotIn", e.Operator)
		}
	}
	s, _ := b.Set()
	return s, errors.Join(errs...)
}

// Expressions is r as the API writes it: a chain of requirements that must all hold, empty for anything. The second
// result is false when no chain denotes r: when it is impossible, a union such as "absent or 5", or any integer at all,
// for the API's bounds are strict and not negative.
func (r Requirement) Expressions() ([]corev1.NodeSelectorRequirement, bool) {
	terms, ok := r.terms()
	if !ok || r.IsImpossible() {
		return nil, false
	}
	if r.IsAnything() {
		return nil, true // the API has no NotIn without values
	}
	out := make([]corev1.NodeSelectorRequirement, 0, len(terms))
	for _, t := range terms {
		// The API knows strict bounds only; Gte and Lte are Karpenter's.
		op, values := t.op, slices.Clone(t.values)
		switch n, _ := strconv.ParseInt(strings.Join(values, ""), 10, 64); op {
		case OpGte:
			if n == 0 {
				return nil, false
			}
			op, values = OpGt, []string{strconv.FormatInt(n-1, 10)}
		case OpLte:
			op, values = OpLt, []string{strconv.FormatInt(n+1, 10)}
		default: // the same in the API
		}
		out = append(out, corev1.NodeSelectorRequirement{Key: t.key, Operator: corev1.NodeSelectorOperator(op), Values: values})
	}
	return out, true
}

// Expressions is the set as the API writes it, in the order of the keys; see [Requirement.Expressions].
func (s Set) Expressions() ([]corev1.NodeSelectorRequirement, bool) {
	if s.impossible {
		return nil, false
	}
	var out []corev1.NodeSelectorRequirement
	for _, r := range s.reqs {
		e, ok := r.Expressions()
		if !ok {
			return nil, false
		}
		out = append(out, e...)
	}
	return out, true
}
