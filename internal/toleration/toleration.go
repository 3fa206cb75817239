// Package toleration says which taints of a node a pod puts up with.
package toleration

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Covers reports whether one of the tolerations matches the taint, by the rules of the Kubernetes documentation ("Taints
// and Tolerations"): the effects are equal or the toleration has none, the keys likewise, and the values are equal unless
// the operator is Exists. No operator means Equal. Any other operator matches nothing; that includes the comparisons Lt
// and Gt, which Kubernetes has behind a feature gate that is off unless somebody sets it.
func Covers(tolerations []corev1.Toleration, taint corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
			return false
		}
		switch t.Operator {
		case corev1.TolerationOpExists:
			return true
		case corev1.TolerationOpEqual, "":
			return t.Value == taint.Value
		default:
			return false
		}
	})
}
