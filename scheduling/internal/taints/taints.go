// Package taints turns tolerating into a requirement like any other: a node provides its set of taints under a pseudo-label,
// and to tolerate the set is to accept its value.
package taints

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/internal/toleration"
	"github.com/joinery-sdk/joinery/requirements"
)

// Key is the pseudo-label under which a node provides its set of taints, so that tolerating is a requirement like
// any other to the packer. It is no valid label key and cannot meet one; it never leaves a plan.
const Key = "taints()"

// Sets numbers the distinct sets of taints of pools and nodes.
type Sets struct {
	sets   [][]corev1.Taint
	byText map[string]int
}

// New is without any.
func New() *Sets { return &Sets{byText: map[string]int{}} }

// Intern is the number of the set.
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

// Text is key=value:effect as kubectl writes it.
func Text(t corev1.Taint) string {
	if t.Value == "" {
		return fmt.Sprintf("%s:%s", t.Key, t.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}

// Value is that of the pseudo-label for a set.
func Value(id int) string { return fmt.Sprintf("t%d", id) }

// Untolerated is the first taint of the given effects that the tolerations do not cover.
func Untolerated(taints []corev1.Taint, tolerations []corev1.Toleration, effects ...corev1.TaintEffect) (corev1.Taint, bool) {
	for _, t := range taints {
		if slices.Contains(effects, t.Effect) && !toleration.Covers(tolerations, t) {
			return t, true
		}
	}
	return corev1.Taint{}, false
}

// Tolerates reports whether the tolerations put up with all taints that keep pods away; soft ones keep none.
func Tolerates(tolerations []corev1.Toleration, list []corev1.Taint) bool {
	_, found := Untolerated(list, tolerations, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
	return !found
}

// Tolerated is which of the sets, by number, the tolerations put up with: hard minds the taints that keep a pod away, soft
// those too that nodes would rather do without.
func (t *Sets) Tolerated(tolerations []corev1.Toleration) (hard, soft []bool) {
	hard, soft = make([]bool, len(t.sets)), make([]bool, len(t.sets))
	for i, taints := range t.sets {
		_, unwelcome := Untolerated(taints, tolerations, corev1.TaintEffectPreferNoSchedule)
		hard[i] = Tolerates(tolerations, taints)
		soft[i] = hard[i] && !unwelcome
	}
	return hard, soft
}

// Ephemeral reports whether a taint goes away by itself once a node that is starting up is ready.
func Ephemeral(t corev1.Taint) bool {
	switch t.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, "node.cloudprovider.kubernetes.io/uninitialized", taintUnregistered:
		return true
	}
	return strings.HasPrefix(t.Key, "readiness.k8s.io/")
}

// taintUnregistered is on a node until its labels and taints are complete.
const taintUnregistered = "karpenter.sh/unregistered"

// Labels that say how far a node is in its life; karpenter.sh sets them.
const (
	labelRegistered  = "karpenter.sh/registered"
	labelInitialized = "karpenter.sh/initialized"
)

// StartingUp reports whether a node says of itself that it was bought for a pool and was not ready for pods yet.
func StartingUp(n *corev1.Node) bool {
	unregistered := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintUnregistered })
	return (Registered(n) || unregistered) && !Initialized(n)
}

// Registered reports whether the node says that all labels and taints that it was promised with are there.
func Registered(n *corev1.Node) bool { return n.Labels[labelRegistered] == "true" }

// Initialized reports whether the node says that it was ready for pods once.
func Initialized(n *corev1.Node) bool { return n.Labels[labelInitialized] == "true" }

// In is the requirement of one of the taint sets that are fine: anything if all are, and what no node meets if
// none is.
func In(fine []bool) requirements.Set {
	if !slices.Contains(fine, false) {
		return requirements.Set{}
	}
	var values []string
	for i, ok := range fine {
		if ok {
			values = append(values, Value(i))
		}
	}
	if len(values) == 0 {
		values = []string{"none is tolerated"}
	}
	return requirements.MustOf(requirements.In(Key, values...))
}
