// Package podcheck finds what an API server would refuse in a pod that it has not stored yet: most
// of all in what affects where the pod can run, such as resources, affinity, spread, tolerations
// and ports. A plan for a pod that no cluster accepts is worthless, and a message at the field is
// better than a guess from a plan.
package podcheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
)

// Checker checks pods and parts of them. The zero value is ready to use. It remembers which label
// keys and values are valid, so one Checker for many pods is much faster than many. It is not safe
// for concurrent use.
type Checker struct {
	problems []strictjson.Problem
	keys     map[string][]string
	values   map[string][]string
}

// Pod returns what is wrong with a pod, or with a pod template if below is its path
// ("spec.template"). claims are the volumes that a StatefulSet adds.
//
// It also reports what a server takes and no node meets: comparisons of labels with what is no
// integer.
func (c *Checker) Pod(below string, meta *metav1.ObjectMeta, spec *corev1.PodSpec, claims ...string) []strictjson.Problem {
	c.problems = nil
	prefix := ""
	if below != "" {
		prefix = below + "."
	}
	c.labels(prefix+"metadata.labels", meta.Labels)
	c.placement(prefix+"spec", spec)
	c.others(prefix+"spec", spec, claims)
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		_, err := kube.FromPod(spec)
		c.invalid(prefix, err)
		c.poolOperators(prefix+"spec.affinity.nodeAffinity.", spec.Affinity.NodeAffinity)
	}
	return c.problems
}

// Placement returns what an API server refuses in the fields of a pod that decide where it may run.
func (c *Checker) Placement(spec *corev1.PodSpec) []strictjson.Problem {
	c.problems = nil
	c.placement("spec", spec)
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		nodes := spec.Affinity.NodeAffinity
		_, err := kube.FromPod(&corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: nodes}})
		if err != nil { // a server does not read the number of a comparison
			_, err = kube.FromPod(&corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: withNumbers(nodes)}})
		}
		c.invalid("", err)
		c.poolOperators("spec.affinity.nodeAffinity.", nodes)
	}
	return c.problems
}

// withNumbers returns node affinity in which every label is compared with an integer.
func withNumbers(a *corev1.NodeAffinity) *corev1.NodeAffinity {
	out := a.DeepCopy()
	eachTerm(out, "", func(_ string, t *corev1.NodeSelectorTerm) {
		for i := range t.MatchExpressions {
			e := &t.MatchExpressions[i]
			if (e.Operator == corev1.NodeSelectorOpGt || e.Operator == corev1.NodeSelectorOpLt) && len(e.Values) == 1 {
				e.Values[0] = "0"
			}
		}
	})
	return out
}

// poolOperators rejects the operators that package requirements and pools have, but pods do not.
func (c *Checker) poolOperators(path string, a *corev1.NodeAffinity) {
	eachTerm(a, path, func(at string, t *corev1.NodeSelectorTerm) {
		for i, e := range t.MatchExpressions {
			if op := requirements.Operator(e.Operator); op == requirements.OpGte || op == requirements.OpLte {
				c.add(fmt.Sprintf("%s.matchExpressions[%d].operator", at, i), "%q: only pools have it; the node affinity of pods has Gt and Lt", op)
			}
		}
	})
}

// eachTerm visits the terms of node affinity with their paths.
func eachTerm(a *corev1.NodeAffinity, path string, visit func(at string, t *corev1.NodeSelectorTerm)) {
	if required := a.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		for i := range required.NodeSelectorTerms {
			visit(fmt.Sprintf("%srequiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[%d]", path, i), &required.NodeSelectorTerms[i])
		}
	}
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		visit(fmt.Sprintf("%spreferredDuringSchedulingIgnoredDuringExecution[%d].preference", path, i), &a.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
	}
}

// Labels returns what is wrong with a map of labels.
func (c *Checker) Labels(path string, labels map[string]string) []strictjson.Problem {
	c.problems = nil
	c.labels(path, labels)
	return c.problems
}

// Selector returns what is wrong with a label selector; nil is valid.
func (c *Checker) Selector(path string, s *metav1.LabelSelector) []strictjson.Problem {
	c.problems = nil
	c.selector(path, s)
	return c.problems
}

// Taints returns what is wrong with the taints of a node.
func (c *Checker) Taints(path string, taints []corev1.Taint) []strictjson.Problem {
	c.problems = nil
	for i, t := range taints {
		at := fmt.Sprintf("%s[%d]", path, i)
		c.key(at+".key", t.Key)
		c.value(at+".value", t.Value)
		c.oneOf(at+".effect", string(t.Effect), "NoSchedule", "PreferNoSchedule", "NoExecute")
	}
	return c.problems
}

// Tolerations returns what is wrong with a list of tolerations.
func (c *Checker) Tolerations(path string, list []corev1.Toleration) []strictjson.Problem {
	c.problems = nil
	c.tolerations(path, list)
	c.seconds(path, list)
	return c.problems
}

// Quantities returns what is wrong with a resource list: negative or absurd amounts.
func (c *Checker) Quantities(path string, list corev1.ResourceList) []strictjson.Problem {
	c.problems = nil
	for _, name := range sortedKeys(list) {
		c.quantity(path+strictjson.MapKey(string(name)), name, list[name])
	}
	return c.problems
}

func (c *Checker) add(path, format string, args ...any) {
	c.problems = append(c.problems, strictjson.Problem{Path: path, Detail: fmt.Sprintf(format, args...)})
}

// invalid converts the problems that package requirements found.
func (c *Checker) invalid(prefix string, err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			c.invalid(prefix, e)
		}
		return
	}
	bad := &requirements.InvalidError{}
	if errors.As(err, &bad) {
		c.add(prefix+bad.Path, "%s", bad.Detail)
		return
	}
	c.add(strings.TrimSuffix(prefix, "."), "%s", err)
}

func (c *Checker) oneOf(path, word string, allowed ...string) {
	if slices.Contains(allowed, word) {
		return
	}
	hint := ""
	if near, ok := requirements.Nearest(word, allowed); ok {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	c.add(path, "%s: want one of %s%s", strictjson.Quote(word), strings.Join(allowed, ", "), hint)
}

// optional is oneOf for a field that may be missing.
func optional[T ~string](c *Checker, path string, word *T, allowed ...string) {
	if word != nil {
		c.oneOf(path, string(*word), allowed...)
	}
}

func (c *Checker) labels(path string, labels map[string]string) {
	for _, key := range sortedKeys(labels) {
		at := path + strictjson.MapKey(key)
		for _, msg := range c.keyFaults(key) {
			c.add(at, "key %s: %s", strictjson.Quote(key), msg)
		}
		c.value(at, labels[key])
	}
}

func (c *Checker) key(path, key string) {
	if key == "" {
		c.add(path, "must not be empty")
		return
	}
	for _, msg := range c.keyFaults(key) {
		c.add(path, "%s: %s", strictjson.Quote(key), msg)
	}
}

func (c *Checker) value(path, value string) {
	msgs, ok := c.values[value]
	switch {
	case len(value) > tooLong:
		msgs = []string{validation.MaxLenError(validation.LabelValueMaxLength)}
	case !ok:
		msgs = validation.IsValidLabelValue(value)
		c.values = remember(c.values, value, msgs)
	}
	for _, msg := range msgs {
		c.add(path, "%s: %s", strictjson.Quote(value), msg)
	}
}

// tooLong is the length from which a key or value is rejected without further checks: a prefix, a
// slash and a name.
const tooLong = validation.DNS1123SubdomainMaxLength + 1 + validation.LabelValueMaxLength

func (c *Checker) keyFaults(key string) []string {
	msgs, ok := c.keys[key]
	switch {
	case len(key) > tooLong:
		msgs = []string{validation.MaxLenError(tooLong)}
	case !ok:
		msgs = validation.IsQualifiedName(key)
		c.keys = remember(c.keys, key, msgs)
	}
	return msgs
}

// remember caches a result. A table that exceeds its limit starts again.
func remember(table map[string][]string, text string, msgs []string) map[string][]string {
	const bound = 1 << 16
	if table == nil || len(table) >= bound {
		table = map[string][]string{}
	}
	table[text] = msgs
	return table
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	if len(m) == 0 {
		return nil
	}
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (c *Checker) selector(path string, s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	c.labels(path+".matchLabels", s.MatchLabels)
	for i, e := range s.MatchExpressions {
		at := fmt.Sprintf("%s.matchExpressions[%d]", path, i)
		c.key(at+".key", e.Key)
		c.oneOf(at+".operator", string(e.Operator), "In", "NotIn", "Exists", "DoesNotExist")
		switch e.Operator {
		case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
			if len(e.Values) == 0 {
				c.add(at+".values", "operator %s needs at least one value", e.Operator)
			}
		case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist:
			if len(e.Values) > 0 {
				c.add(at+".values", "operator %s takes no values", e.Operator)
			}
		}
		for j, v := range e.Values {
			c.value(fmt.Sprintf("%s.values[%d]", at, j), v)
		}
	}
}
