package ruletest

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/internal/selector"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
)

// constraint is one thing in a pod's manifest that affects its place, in words, with a way to
// remove it. The text identifies it: replicas have the same text. Removing replaces slices and
// structs and never changes their contents, because pods share them.
type constraint struct {
	text string
	drop func(*corev1.PodSpec)
}

// constraintsOf returns the constraints of a pod's manifest.
func constraintsOf(spec *corev1.PodSpec) []constraint {
	var out []constraint
	for _, key := range sortedKeys(spec.NodeSelector) {
		out = append(out, constraint{fmt.Sprintf("node selector %s=%s", key, spec.NodeSelector[key]), func(s *corev1.PodSpec) {
			selector := map[string]string{}
			for k, v := range s.NodeSelector {
				if k != key {
					selector[k] = v
				}
			}
			s.NodeSelector = selector
		}})
	}
	if spec.Affinity != nil {
		out = append(out, nodeConstraints(spec.Affinity.NodeAffinity)...)
		if a := spec.Affinity.PodAffinity; a != nil {
			out = append(out, podTerms("pod affinity to", a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution,
				func(s *corev1.PodSpec) (*[]corev1.PodAffinityTerm, *[]corev1.WeightedPodAffinityTerm) {
					affinity, a := *s.Affinity, *s.Affinity.PodAffinity
					affinity.PodAffinity = &a
					s.Affinity = &affinity
					return &a.RequiredDuringSchedulingIgnoredDuringExecution, &a.PreferredDuringSchedulingIgnoredDuringExecution
				})...)
		}
		if a := spec.Affinity.PodAntiAffinity; a != nil {
			out = append(out, podTerms("pod anti-affinity to", a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution,
				func(s *corev1.PodSpec) (*[]corev1.PodAffinityTerm, *[]corev1.WeightedPodAffinityTerm) {
					affinity, a := *s.Affinity, *s.Affinity.PodAntiAffinity
					affinity.PodAntiAffinity = &a
					s.Affinity = &affinity
					return &a.RequiredDuringSchedulingIgnoredDuringExecution, &a.PreferredDuringSchedulingIgnoredDuringExecution
				})...)
		}
	}
	for i, c := range spec.TopologySpreadConstraints {
		soft := ""
		if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
			soft = "preferred "
		}
		text := fmt.Sprintf("%stopology spread of %s by %s with skew %d", soft, selector.TextOf(c.LabelSelector), c.TopologyKey, c.MaxSkew)
		if c.MinDomains != nil && *c.MinDomains > 1 {
			text += fmt.Sprintf(" and minDomains %d", *c.MinDomains)
		}
		out = append(out, constraint{text, func(s *corev1.PodSpec) { s.TopologySpreadConstraints = without(s.TopologySpreadConstraints, i) }})
	}
	for i := range spec.Tolerations {
		out = append(out, constraint{"toleration of " + tolerationText(&spec.Tolerations[i]), func(s *corev1.PodSpec) { s.Tolerations = without(s.Tolerations, i) }})
	}
	for i := range spec.Containers {
		for k, port := range spec.Containers[i].Ports {
			if port.HostPort == 0 {
				continue
			}
			out = append(out, constraint{fmt.Sprintf("host port %d", port.HostPort), func(s *corev1.PodSpec) {
				s.Containers = slices.Clone(s.Containers)
				s.Containers[i].Ports = without(s.Containers[i].Ports, k)
			}})
		}
	}
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			out = append(out, constraint{fmt.Sprintf("volume %q", v.Name), func(s *corev1.PodSpec) { s.Volumes = without(s.Volumes, i) }})
		}
	}
	return out
}

func nodeConstraints(a *corev1.NodeAffinity) []constraint {
	if a == nil {
		return nil
	}
	var out []constraint
	change := func(s *corev1.PodSpec, how func(*corev1.NodeAffinity)) {
		affinity, a := *s.Affinity, *s.Affinity.NodeAffinity
		how(&a)
		affinity.NodeAffinity = &a
		s.Affinity = &affinity
	}
	if required := a.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		text := ""
		if alternatives, err := kube.FromNodeSelector(required); err == nil {
			text = " " + alternatives.String()
		}
		out = append(out, constraint{"required node affinity" + text, func(s *corev1.PodSpec) {
			change(s, func(a *corev1.NodeAffinity) { a.RequiredDuringSchedulingIgnoredDuringExecution = nil })
		}})
	}
	for i, t := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		text := ""
		if alternatives, err := kube.FromNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{t.Preference}}); err == nil {
			text = " " + alternatives.String()
		}
		out = append(out, constraint{fmt.Sprintf("preferred node affinity%s of weight %d", text, t.Weight), func(s *corev1.PodSpec) {
			change(s, func(a *corev1.NodeAffinity) {
				a.PreferredDuringSchedulingIgnoredDuringExecution = without(a.PreferredDuringSchedulingIgnoredDuringExecution, i)
			})
		}})
	}
	return out
}

// podTerms returns the terms of pod affinity or anti-affinity. lists returns those of a spec, in
// structs that may be changed.
func podTerms(what string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm,
	lists func(*corev1.PodSpec) (*[]corev1.PodAffinityTerm, *[]corev1.WeightedPodAffinityTerm),
) []constraint {
	var out []constraint
	for i := range required {
		t := &required[i]
		out = append(out, constraint{fmt.Sprintf("%s %s by %s", what, selector.TextOf(t.LabelSelector), t.TopologyKey), func(s *corev1.PodSpec) {
			list, _ := lists(s)
			*list = without(*list, i)
		}})
	}
	for i := range preferred {
		t := &preferred[i].PodAffinityTerm
		out = append(out, constraint{fmt.Sprintf("preferred %s %s by %s", what, selector.TextOf(t.LabelSelector), t.TopologyKey), func(s *corev1.PodSpec) {
			_, list := lists(s)
			*list = without(*list, i)
		}})
	}
	return out
}

func without[T any](list []T, i int) []T { return slices.Delete(slices.Clone(list), i, i+1) }

func tolerationText(t *corev1.Toleration) string {
	text := t.Key
	if text == "" {
		text = "every taint"
	}
	if t.Operator != corev1.TolerationOpExists && t.Value != "" {
		text += "=" + t.Value
	}
	if t.Effect != "" {
		text += ":" + string(t.Effect)
	}
	return text
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

// requiring adds to what pods require of their nodes.
func (q *inquiry) requiring(wanted requirements.Alternatives) func(*corev1.Pod) {
	var terms []corev1.NodeSelectorTerm
	for set := range wanted.All() {
		split := []corev1.NodeSelectorTerm{{}}
		for r := range set.All() {
			var both []corev1.NodeSelectorTerm
			for _, part := range q.expressible(r) {
				list, _ := kube.Expressions(requirements.MustOf(part))
				for _, term := range split {
					if r.Key() == requirements.NodeNameKey {
						term.MatchFields = slices.Concat(term.MatchFields, list)
					} else {
						term.MatchExpressions = slices.Concat(term.MatchExpressions, list)
					}
					both = append(both, term)
				}
			}
			split = both
		}
		terms = append(terms, split...)
	}
	return func(pod *corev1.Pod) {
		affinity := pod.Spec.Affinity.DeepCopy()
		if affinity == nil {
			affinity = &corev1.Affinity{}
		}
		if affinity.NodeAffinity == nil {
			affinity.NodeAffinity = &corev1.NodeAffinity{}
		}
		have := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		if have == nil {
			have = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
			affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = have
		}
		var both []corev1.NodeSelectorTerm
		for _, a := range have.NodeSelectorTerms {
			for _, b := range terms {
				both = append(both, corev1.NodeSelectorTerm{
					MatchExpressions: slices.Concat(a.MatchExpressions, b.MatchExpressions), MatchFields: slices.Concat(a.MatchFields, b.MatchFields),
				})
			}
		}
		have.NodeSelectorTerms = both
		pod.Spec.Affinity = affinity
	}
}

// expressible returns requirements that manifests can express and that together allow what r allows
// of the nodes there are. A manifest cannot say "absent or at most 3", or "any text but a number
// above 3", so such a requirement becomes the absence of the label and a list of existing values.
func (q *inquiry) expressible(r requirements.Requirement) []requirements.Requirement {
	if _, ok := kube.Expressions(requirements.MustOf(r)); ok {
		return []requirements.Requirement{r}
	}
	var out []requirements.Requirement
	if r.AllowsAbsent() {
		out = append(out, requirements.DoesNotExist(r.Key()))
	}
	var allowed []string
	for _, known := range q.plan.valuesOf(r.Key()) {
		values, _ := known.Intersect(r).Values()
		allowed = append(allowed, values...)
	}
	if len(allowed) > 0 {
		out = append(out, requirements.In(r.Key(), allowed...))
	}
	return out
}

// These labels mark pods, so that constraints can keep them together or apart: the pods of the
// rule, those that it wants them with and without, and pods that must be in different places.
const (
	markPrefix   = "ruletest.joinery.example/"
	markKept     = markPrefix + "kept"
	markCompany  = markPrefix + "company"
	markAvoided  = markPrefix + "avoided"
	markDistinct = markPrefix + "distinct"
)

// markedObstacle matches what a reason says of a constraint that names a mark.
var markedObstacle = regexp.MustCompile(`, [a-z -]+ ` + regexp.QuoteMeta(markPrefix) + `\w+=yes (over|by) [^ ,]+( with skew \d+)?( and minDomains \d+)?(, but there is no such pod)?`)

func marked(mark string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels = with(pod.Labels, mark, "yes") }
}

// joined makes pods require pods with a mark, or their absence, by a label key and across
// namespaces.
func joined(key string, near bool, mark string) func(*corev1.Pod) {
	term := corev1.PodAffinityTerm{
		TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{mark: "yes"}}, NamespaceSelector: &metav1.LabelSelector{},
	}
	return func(pod *corev1.Pod) {
		affinity := pod.Spec.Affinity.DeepCopy()
		if affinity == nil {
			affinity = &corev1.Affinity{}
		}
		if near {
			if affinity.PodAffinity == nil {
				affinity.PodAffinity = &corev1.PodAffinity{}
			}
			list := &affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			*list = append(*list, term)
		} else {
			if affinity.PodAntiAffinity == nil {
				affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
			}
			list := &affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			*list = append(*list, term)
		}
		pod.Spec.Affinity = affinity
	}
}

// spread makes the pods of the rule spread over a label key. As in Kubernetes, the skew is measured
// from the emptiest value that the pods may use, or from 0 if there are fewer than minDomains.
func spread(key string, skew, minDomains int) func(*corev1.Pod) {
	domains := int32(min(minDomains, math.MaxInt32))
	constraint := corev1.TopologySpreadConstraint{
		MaxSkew: int32(min(skew, math.MaxInt32)), TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, MinDomains: &domains,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{markKept: "yes"}},
	}
	return func(pod *corev1.Pod) {
		pod.Spec.TopologySpreadConstraints = append(slices.Clone(pod.Spec.TopologySpreadConstraints), constraint)
	}
}

// atMost limits how many pods of the rule may share a value of a label key. It is a spread with
// more minDomains than there can be, so its skew is always measured from 0.
func atMost(key string, most int) func(*corev1.Pod) { return spread(key, most, math.MaxInt32) }
