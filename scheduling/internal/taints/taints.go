// Package taints turns tolerations into requirements: a node has its set of taints as a
// pseudo-label, and a pod accepts the values that it tolerates.
package taints

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/internal/toleration"
	"github.com/joinery-sdk/joinery/requirements"
)

// Key is the pseudo-label of a node's set of taints. It is not a valid label key, and does not
// appear in results.
const Key = "taints()"

// Sets numbers the distinct sets of taints of pools and nodes.
type Sets struct {
	sets   [][]corev1.Taint
	byText map[string]int
}

// New returns a value without sets.
func New() *Sets { return &Sets{byText: map[string]int{}} }

// Intern returns the number of the set.
func (t *Sets) Intern(taints []corev1.Taint) int {
	texts := make([]string, 0, len(taints))
	for _, taint := range taints {
		texts = append(texts, Text(taint))
	}
	slices.Sort(texts)
	text := strings.Join(texts, ",")
	id, ok := t.byText[text]
	if !ok {
		id = len(t.sets)
		t.byText[text] = id
		t.sets = append(t.sets, taints)
	}
	return id
}

// Text returns key=value:effect as kubectl writes it.
func Text(t corev1.Taint) string {
	if t.Value == "" {
		return fmt.Sprintf("%s:%s", t.Key, t.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}

// Value returns the value of the pseudo-label for a set.
func Value(id int) string { return fmt.Sprintf("t%d", id) }

// Untolerated returns the first taint of the given effects that the tolerations do not cover.
func Untolerated(taints []corev1.Taint, tolerations []corev1.Toleration, effects ...corev1.TaintEffect) (corev1.Taint, bool) {
	for _, t := range taints {
		if slices.Contains(effects, t.Effect) && !toleration.Covers(tolerations, t) {
			return t, true
		}
	}
	return corev1.Taint{}, false
}

// Tolerates reports whether the tolerations cover all NoSchedule and NoExecute taints.
func Tolerates(tolerations []corev1.Toleration, list []corev1.Taint) bool {
	_, found := Untolerated(list, tolerations, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
	return !found
}

// Tolerated returns two requirements. hard accepts the sets whose NoSchedule and NoExecute taints
// the tolerations cover. soft accepts those whose PreferNoSchedule taints they also cover. A
// requirement is anything if it accepts all sets, and one that no node meets if it accepts none.
func (t *Sets) Tolerated(tolerations []corev1.Toleration) (hard, soft requirements.Set) {
	var hards, softs []string
	for i, taints := range t.sets {
		if !Tolerates(tolerations, taints) {
			continue
		}
		hards = append(hards, Value(i))
		if _, unwelcome := Untolerated(taints, tolerations, corev1.TaintEffectPreferNoSchedule); !unwelcome {
			softs = append(softs, Value(i))
		}
	}
	return t.in(hards), t.in(softs)
}

func (t *Sets) in(values []string) requirements.Set {
	switch len(values) {
	case len(t.sets):
		return requirements.Set{}
	case 0:
		values = []string{"none is tolerated"}
	}
	return requirements.MustOf(requirements.In(Key, values...))
}

// Ephemeral reports whether a taint is removed once a node that starts, or starts again, is ready.
func Ephemeral(t corev1.Taint) bool {
	switch t.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, "node.cloudprovider.kubernetes.io/uninitialized", taintUnregistered, taintRebooting:
		return true
	}
	return strings.HasPrefix(t.Key, "readiness.k8s.io/")
}

const (
	taintUnregistered = "karpenter.sh/unregistered" // on a node until its labels and taints are complete
	taintRebooting    = "karpenter.sh/rebooting"    // on a node that is rebooted until it is back
)

// Labels that Karpenter sets on a node that starts.
const (
	labelRegistered  = "karpenter.sh/registered"
	labelInitialized = "karpenter.sh/initialized"
)

// StartingUp reports whether the labels and taints of a node say that it was bought for a pool and
// was never ready.
func StartingUp(n *corev1.Node) bool {
	unregistered := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintUnregistered })
	return (Registered(n) || unregistered) && !Initialized(n)
}

// Rebooting reports whether the node is being rebooted.
func Rebooting(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintRebooting })
}

// Registered reports whether the node has all labels and taints of its claim.
func Registered(n *corev1.Node) bool { return n.Labels[labelRegistered] == "true" }

// Initialized reports whether the node was once ready for pods.
func Initialized(n *corev1.Node) bool { return n.Labels[labelInitialized] == "true" }
