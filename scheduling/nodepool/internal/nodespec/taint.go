package nodespec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joinery-sdk/joinery/internal/strictjson"
)

// Taints checks the taints and startup taints of one node: their form, and that no (key, effect)
// appears twice in both lists together. below is the path of the object that holds them.
func (r *Report) Taints(below string, taints, startupTaints []corev1.Taint) {
	first := map[corev1.Taint]string{} // path, by key and effect
	for _, list := range []struct {
		path   string
		taints []corev1.Taint
	}{{below + ".taints", taints}, {below + ".startupTaints", startupTaints}} {
		for i, t := range list.taints {
			at := fmt.Sprintf("%s[%d]", list.path, i)
			r.Taint(at, t)
			this := corev1.Taint{Key: t.Key, Effect: t.Effect}
			if prior, ok := first[this]; ok {
				r.Add(at, "taint %s:%s is already listed (%s)", t.Key, t.Effect, prior)
				continue
			}
			first[this] = at
		}
	}
}

// Taint checks the form of one taint.
func (r *Report) Taint(at string, t corev1.Taint) {
	if t.Key == "" {
		r.Add(at+".key", "the taint needs a key")
	} else {
		for _, msg := range validation.IsQualifiedName(t.Key) {
			r.Add(at+".key", "%s: %s", strictjson.Quote(t.Key), msg)
		}
	}
	for _, msg := range validation.IsValidLabelValue(t.Value) {
		r.Add(at+".value", "%s: %s", strictjson.Quote(t.Value), msg)
	}
	r.OneOf(at+".effect", string(t.Effect),
		string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute))
}
