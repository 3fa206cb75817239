package ruletest

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
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
func requiring(wanted requirements.Alternatives) func(*corev1.Pod) {
	var terms []corev1.NodeSelectorTerm
	for set := range wanted.All() {
		var term corev1.NodeSelectorTerm
		expressible := true
		for r := range set.All() {
			list, ok := kube.Expressions(requirements.MustOf(r))
			expressible = expressible && ok
			if r.Key() == requirements.NodeNameKey {
				term.MatchFields = append(term.MatchFields, list...)
			} else {
				term.MatchExpressions = append(term.MatchExpressions, list...)
			}
		}
		if expressible {
			terms = append(terms, term)
		}
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

// These labels mark pods, so that constraints can keep them together or apart: the pods of the
// rule, those that it wants them with and without, and pods that must be in different places.
const (
	markKept     = "ruletest.joinery.example/kept"
	markCompany  = "ruletest.joinery.example/company"
	markAvoided  = "ruletest.joinery.example/avoided"
	markDistinct = "ruletest.joinery.example/distinct"
)

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

// way is one way to force pods to keep a rule.
type way struct {
	text string // what the pods are forced to besides the rule's own words, such as "an even spread"
	pods edits
}

// ways yields ways to force pods to keep what the rule says about places. There is one way if
// manifests can say exactly that. They cannot say how many values pods must use at least, or limit
// the skew among values that have pods only. So each of several ways demands a little more:
//
//   - some pods are in different places
//   - all pods are on a set of values, over which the skew is limited
//
// Every plan that keeps the rule is among the plans of some way, unless there are too many sets or
// too many kinds of pods for them all, or nodes share a label kubernetes.io/hostname, which stands
// for the node in manifests.
func (q *inquiry) ways() iter.Seq[way] {
	s := q.rule.Spread
	return func(yield func(way) bool) {
		if s == nil {
			if a := q.rule.Apart; yield(way{"", q.forced()}) && a != nil {
				const steps = 6 // lower limits may fill the nodes better
				for most := a.Most - 1; most > max(0, a.Most-steps); most-- {
					pods := q.forced()
					pods.add(q.subjects, atMost(topologyKey(a.By), most))
					if !yield(way{fmt.Sprintf("at most %d on each value of %s", most, word(placeKey(a.By))), pods}) {
						return
					}
				}
			}
			return
		}
		key := topologyKey(s.By)
		running := q.rule.choose(q.plan.running)
		used := counts(running, placeKey(s.By))
		n := max(0, s.AtLeast-len(used))
		choices := q.distinct(n)
		if len(choices) == 0 {
			q.say("their number: %s cannot be on %s", plural(len(q.planned()), "pod"), plural(n, "more value"))
			return
		}
		try := func(choice []member, text string, hows ...func(*corev1.Pod)) bool {
			pods := q.forced()
			for _, how := range hows {
				pods.add(q.subjects, how)
			}
			if len(choice) > 0 {
				pods.add(slices.Concat(choice, running), marked(markDistinct))
				pods.add(choice, joined(key, false, markDistinct))
				text = strings.TrimPrefix(fmt.Sprintf("%s, %d of them on different values of %s", text, n, word(placeKey(s.By))), ", ")
			}
			return yield(way{text, pods})
		}
		if s.Skew == 0 {
			for _, choice := range choices {
				if !try(choice, "") {
					return
				}
			}
			try(nil, "an even spread", spread(key, 1, max(1, s.AtLeast)))
			return
		}
		for _, choice := range choices {
			if !try(choice, fmt.Sprintf("a skew of at most %d, empty values included", s.Skew), spread(key, s.Skew, max(1, s.AtLeast))) {
				return
			}
		}
		for _, set := range q.subsets(key, max(1, s.AtLeast), slices.Sorted(maps.Keys(used))) {
			on := requiring(requirements.AnyOf(requirements.MustOf(requirements.In(key, set...))))
			for _, choice := range choices {
				if !try(choice, "all on "+strings.Join(set, ", "), on, spread(key, s.Skew, 1)) {
					return
				}
			}
		}
		for _, most := range q.heights(s.Skew) {
			if !try(choices[0], fmt.Sprintf("at most %d on each", most), atMost(key, most)) {
				return
			}
		}
	}
}

// forced returns the edits that express all of a rule but its spread.
func (q *inquiry) forced() edits {
	r, pods := q.rule, edits{}
	pods.add(slices.Concat(q.subjects, r.choose(q.plan.running)), marked(markKept))
	if len(r.LandsOn) > 0 {
		pods.add(q.subjects, requiring(q.plan.alternatives(r.LandsOn)))
	}
	if len(r.NeverOn) > 0 {
		pods.add(q.subjects, requiring(q.plan.elsewhere(r.NeverOn)))
	}
	company := func(c *Company, near bool, mark string) {
		if c == nil {
			return
		}
		key := topologyKey(c.By)
		switch {
		case c.With != "":
			for _, m := range slices.Concat(q.plan.running, q.plan.members) {
				if matchesPod(c.With, m.name) {
					pods.add([]member{m}, marked(mark))
				}
			}
			pods.add(q.subjects, joined(key, near, mark))
		case c.Most > 1:
			pods.add(q.subjects, atMost(key, c.Most))
		default:
			pods.add(q.subjects, joined(key, near, markKept))
		}
	}
	company(r.Together, true, markCompany)
	company(r.Apart, false, markAvoided)
	return pods
}

// planned returns the pods of the rule that are planned.
func (q *inquiry) planned() []member {
	return slices.DeleteFunc(slices.Clone(q.subjects), func(m member) bool { return m.class < 0 })
}

// distinct returns choices of n pods of the rule: one with as many classes as possible, and those
// that differ in their classes, up to a limit. For n = 0 it returns one empty choice.
func (q *inquiry) distinct(n int) [][]member {
	var classes [][]member
	at := map[int]int{}
	for _, m := range q.planned() {
		i, ok := at[m.class]
		if !ok {
			i = len(classes)
			at[m.class] = i
			classes = append(classes, nil)
		}
		classes[i] = append(classes[i], m)
	}
	var mixed []member
	for round := range n {
		for _, c := range classes {
			if round < len(c) && len(mixed) < n {
				mixed = append(mixed, c[round])
			}
		}
	}
	switch {
	case len(mixed) < n:
		return nil
	case n == 0 || len(classes) == 1:
		return [][]member{mixed}
	}
	const most = 12
	out := [][]member{mixed}
	var choose func(from int, chosen []member)
	choose = func(from int, chosen []member) {
		switch {
		case len(out) > most:
		case len(chosen) == n:
			out = append(out, slices.Clone(chosen))
		case from < len(classes):
			for k := min(n-len(chosen), len(classes[from])); k >= 0; k-- {
				choose(from+1, slices.Concat(chosen, classes[from][:k]))
			}
		}
	}
	choose(0, nil)
	return out
}

// subsets returns sets of at least so many known values of a label, all of which contain some
// values. Those that are most like the values in use come first.
func (q *inquiry) subsets(key string, least int, contained []string) [][]string {
	values := q.plan.known()[key]
	const most = 10
	values = values[:min(len(values), most)]
	used := counts(q.subjects, key)
	var out [][]string
	for bits := 1; bits < 1<<len(values); bits++ {
		var set []string
		for i, v := range values {
			if bits>>i&1 == 1 {
				set = append(set, v)
			}
		}
		if len(set) >= least && !slices.ContainsFunc(contained, func(v string) bool { return !slices.Contains(set, v) }) {
			out = append(out, set)
		}
	}
	changes := func(set []string) int {
		n := len(used)
		for _, v := range set {
			if n++; used[v] != nil {
				n -= 2
			}
		}
		return n
	}
	slices.SortStableFunc(out, func(a, b []string) int {
		return cmp.Or(cmp.Compare(changes(a), changes(b)), cmp.Compare(len(a), len(b)))
	})
	return out
}

// heights returns limits of how many pods are on one value with which the values in use may differ
// by at most a skew.
func (q *inquiry) heights(skew int) []int {
	n, out := len(q.planned()), []int{skew, skew + 1}
	const most = 16
	for parts := range min(n, most) {
		if k := n/(parts+1) + min(1, n%(parts+1)); !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}
