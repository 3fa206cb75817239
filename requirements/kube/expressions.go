package kube

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// Expressions returns the set as the API writes it: requirements that must all hold, in the order
// of the keys. The list is empty if every node satisfies the set. The second result is false if no
// list denotes the set. That is the case for the impossible set, for a union such as "absent or 5",
// and for "any integer": Gt 0 leaves out 0, and the API allows no bound below 0.
func Expressions(s requirements.Set) ([]corev1.NodeSelectorRequirement, bool) {
	if s.IsImpossible() {
		return nil, false
	}
	var out []corev1.NodeSelectorRequirement
	for r := range s.All() {
		chain, ok := r.Expressions()
		if !ok {
			return nil, false
		}
		for _, e := range chain {
			written, ok := expression(e)
			if !ok {
				return nil, false
			}
			out = append(out, written)
		}
	}
	return out, true
}

// expression writes Karpenter's Gte and Lte, which the API does not have, as strict bounds.
func expression(e requirements.Expression) (corev1.NodeSelectorRequirement, bool) {
	out := corev1.NodeSelectorRequirement{Key: e.Key, Operator: corev1.NodeSelectorOperator(e.Operator), Values: e.Values}
	strict, step := corev1.NodeSelectorOpGt, int64(-1)
	switch e.Operator {
	case requirements.OpGte:
	case requirements.OpLte:
		strict, step = corev1.NodeSelectorOpLt, 1
	default:
		return out, true
	}
	n, err := strconv.ParseInt(e.Values[0], 10, 64)
	if err != nil || n+step < 0 {
		return out, false
	}
	out.Operator, out.Values = strict, []string{strconv.FormatInt(n+step, 10)}
	return out, true
}
