// Package constraint makes constraints of the caller's own: of functions, of sets of nodes, and with names.
//
// All are immutable and as safe for concurrent use as the functions that they are given.
package constraint

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Func is a function as a [scheduling.Constraint].
type Func func(*corev1.Pod, requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason)

// Narrow calls the function.
func (f Func) Narrow(pod *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
	return f(pod, required)
}

// Require is the constraint that pods for which when holds have nodes of the set only.
func Require(when func(*corev1.Pod) bool, nodes requirements.Set) scheduling.Constraint {
	return Func(func(pod *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
		if !when(pod) {
			return required, nil
		}
		return required.Intersect(requirements.AnyOf(nodes)), nil
	})
}

// Named is the constraint with a name, which stands in reasons.
func Named(name string, c scheduling.Constraint) scheduling.Constraint { return named{c, name} }

type named struct {
	scheduling.Constraint
	name string
}

// String is the name.
func (n named) String() string { return fmt.Sprintf("constraint %q", n.name) }
