package interpod

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	operator "k8s.io/apimachinery/pkg/selection"
)

// Split separates required constraints, with the groups of the pods, from preferred ones.
func (c Constraints) Split() (required, preferred Constraints) {
	required.MemberOf, required.Ratios = c.MemberOf, c.Ratios
	of := func(hard bool) *Constraints {
		if hard {
			return &required
		}
		return &preferred
	}
	for _, s := range c.Spreads {
		to := of(s.Hard)
		to.Spreads = append(to.Spreads, s)
	}
	for _, t := range c.Terms {
		to := of(t.Hard)
		to.Terms = append(to.Terms, t)
	}
	return required, preferred
}

// Join sets MemberOf and all Self of the constraints of a pod.
func (x *Index) Join(c *Constraints, pod *corev1.Pod) {
	c.MemberOf = x.MemberOf(pod)
	for i := range c.Spreads {
		_, c.Spreads[i].Self = slices.BinarySearch(c.MemberOf, c.Spreads[i].Group)
	}
	for i := range c.Terms {
		_, c.Terms[i].Self = slices.BinarySearch(c.MemberOf, c.Terms[i].Group)
	}
}

// lookup finds the groups of a pod. A group whose selector requires one of several values of a
// label is found by that label.
type lookup struct {
	groups  int // how many groups it knows
	byLabel map[label][]int32
	others  []int32
	keys    []string           // labels of all selectors, ascending
	known   map[string][]int32 // results, by namespace and the values of keys
	text    []byte             // reused
}

type label struct{ key, value string }

// MemberOf returns the groups of a pod, ascending. All constraints must be read before. It costs a
// look at the groups of its labels, once for all pods with the same labels. The result must not be
// modified.
func (x *Index) MemberOf(pod *corev1.Pod) []int32 {
	if len(x.groups.list) == 0 {
		return nil
	}
	return x.memberOfRatio(x.selectedBy(pod.Namespace, pod.Labels), pod)
}

// selectedBy returns the groups whose selectors match a pod with these labels.
func (x *Index) selectedBy(namespace string, set map[string]string) []int32 {
	if x.lookup == nil || x.lookup.groups < len(x.groups.list) {
		x.lookup = x.newLookup()
	}
	l, namespace := x.lookup, cmp.Or(namespace, corev1.NamespaceDefault)
	l.text = append(l.text[:0], namespace...)
	for _, k := range l.keys {
		if v, ok := set[k]; ok {
			l.text = append(append(l.text, 0), v...)
		} else {
			l.text = append(l.text, 1)
		}
	}
	if known, ok := l.known[string(l.text)]; ok {
		return known
	}
	candidates := slices.Clone(l.others)
	for k, v := range set {
		candidates = append(candidates, l.byLabel[label{k, v}]...)
	}
	slices.Sort(candidates)
	out := slices.DeleteFunc(slices.Compact(candidates), func(g int32) bool {
		return slices.ContainsFunc(x.groups.list[g].all, func(s *selection) bool { return !s.matches(namespace, set) })
	})
	l.known[string(l.text)] = out
	return out
}

func (x *Index) newLookup() *lookup {
	l := &lookup{groups: len(x.groups.list), byLabel: map[label][]int32{}, known: map[string][]int32{}}
	for i := range x.groups.list {
		var first labels.Requirements
		selectable := true
		for _, s := range x.groups.list[i].all {
			reqs, ok := s.selector.Requirements()
			selectable = selectable && ok
			for r := range reqs {
				l.keys = append(l.keys, reqs[r].Key())
			}
			if first == nil {
				first = reqs
			}
		}
		at := slices.IndexFunc(first, func(r labels.Requirement) bool {
			return r.Operator() == operator.Equals || r.Operator() == operator.DoubleEquals || r.Operator() == operator.In
		})
		switch {
		case !selectable: // it selects nothing
		case at < 0:
			l.others = append(l.others, int32(i))
		default:
			for _, v := range first[at].ValuesUnsorted() {
				l.byLabel[label{first[at].Key(), v}] = append(l.byLabel[label{first[at].Key(), v}], int32(i))
			}
		}
	}
	slices.Sort(l.keys)
	l.keys = slices.Compact(l.keys)
	return l
}
