// Package constraint makes constraints of the caller's own: from functions, from sets of nodes, and
// with names.
//
// All are immutable and as safe for concurrent use as the functions that they are given.
package constraint

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Func is a function used as a [scheduling.Constraint]. nil restricts no pod.
type Func func(*corev1.Pod, requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason)

// Narrow calls the function.
func (f Func) Narrow(pod *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
	if f == nil {
		return required, nil
	}
	return f(pod, required)
}

// Require returns a constraint that restricts pods to the nodes of a set. It applies to the pods
// for which the function when returns true. If when is nil, it applies to all pods.
func Require(when func(*corev1.Pod) bool, nodes requirements.Set) scheduling.Constraint {
	return Func(func(pod *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
		if when != nil && !when(pod) {
			return required, nil
		}
		return requirements.AnyOf(nodes), nil // not the intersection, so that a refusal can quote it
	})
}

// Named returns the constraint with a name. The reasons of a refusal quote the name if the pod would
// have a place without the constraint, or if they would be others. It returns nil for nil.
func Named(name string, c scheduling.Constraint) scheduling.Constraint {
	if c == nil {
		return nil
	}
	return named{c, name}
}

type named struct {
	scheduling.Constraint
	name string
}

// String returns the quoted name.
func (n named) String() string { return fmt.Sprintf("constraint %q", n.name) }
