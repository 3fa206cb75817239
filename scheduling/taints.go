package scheduling

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/joinery-sdk/joinery/requirements"
)

// taintKey is the pseudo-label under which a node provides its set of taints, so that tolerating is a requirement like
// any other to the packer. It is no valid label key and cannot meet one; it never leaves a plan.
const taintKey = "taints()"

// taintSets numbers the distinct sets of taints of pools and nodes.
type taintSets struct {
	sets   [][]corev1.Taint
	byText map[string]int
}

func newTaintSets() *taintSets { return &taintSets{byText: map[string]int{}} }

func (t *taintSets) intern(taints []corev1.Taint) int {
	texts := make([]string, 0, len(taints))
	for _, taint := range taints {
		texts = append(texts, taintText(taint))
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

// taintText is key=value:effect as kubectl writes it.
func taintText(t corev1.Taint) string {
	if t.Value == "" {
		return fmt.Sprintf("%s:%s", t.Key, t.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}

func taintValue(id int) string { return fmt.Sprintf("t%d", id) }

// untolerated is the first taint of the given effects that the tolerations do not cover.
func untolerated(taints []corev1.Taint, tolerations []corev1.Toleration, effects ...corev1.TaintEffect) (corev1.Taint, bool) {
	return schedulinghelper.FindMatchingUntoleratedTaint(klog.Logger{}, taints, tolerations, func(t *corev1.Taint) bool {
		return slices.Contains(effects, t.Effect)
	}, false)
}

// tolerate fills in which taint sets the class can live with.
func (c *Class) tolerate(sets *taintSets) {
	c.hardOK = make([]bool, len(sets.sets))
	c.softOK = make([]bool, len(sets.sets))
	tolerations := c.Template.Spec.Tolerations
	for i, taints := range sets.sets {
		_, hard := untolerated(taints, tolerations, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
		_, soft := untolerated(taints, tolerations, corev1.TaintEffectPreferNoSchedule)
		c.hardOK[i] = !hard
		c.softOK[i] = !hard && !soft
	}
}

// ephemeral reports whether a taint goes away by itself once a node that is starting up is ready.
func ephemeral(t corev1.Taint) bool {
	switch t.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, "node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered":
		return true
	}
	return strings.HasPrefix(t.Key, "readiness.k8s.io/")
}

// taintSetsIn is the requirement of one of the taint sets that are fine: anything if all are, and what no node meets if
// none is.
func taintSetsIn(fine []bool) requirements.Set {
	if !slices.Contains(fine, false) {
		return requirements.Set{}
	}
	var values []string
	for i, ok := range fine {
		if ok {
			values = append(values, taintValue(i))
		}
	}
	if len(values) == 0 {
		values = []string{"none is tolerated"}
	}
	return requirements.MustOf(requirements.In(taintKey, values...))
}
