package whatif

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/joinery-sdk/joinery/requirements"
)

// selected says which pods a constraint looks at.
type selected struct {
	namespaces map[string]bool
	selector   labels.Selector
	text       string
}

func (s *selected) matches(namespace string, set map[string]string) bool {
	return s.namespaces[namespace] && s.selector.Matches(labels.Set(set))
}

// group is a set of pods counted by the values of a label.
type group struct {
	key      int32 // index into engine.keys
	who      []selected
	counts   table
	owners   table // pods that keep members away from their domain
	total    int32 // members on nodes that have the key
	universe int32 // where members count and which values are domains, for spreads; -1 for affinity
}

// universe is the set of nodes on which a spread counts, and the domains that they make up.
type universe struct {
	key      int32
	asked    requirements.Alternatives
	tolerate []corev1.Toleration // nil where taints do not matter
	keys     []int32             // labels that nodes must have
	pass     []int8              // by static group: 0 unknown, 1 yes, 2 no
	nodes    table
	live     int32
}

type spread struct {
	group               int32
	maxSkew, minDomains int32
	self                int32 // 1 where the pod counts itself
}

// topology is what the constraints of a class look at.
type topology struct {
	spreads  []spread
	affinity []int32 // groups; all must have a member in the node's domain
	selfish  bool    // the pod meets its own affinity
	anti     []int32
	memberOf []int32
}

// topologyReader turns constraints into groups.
type topologyReader struct {
	e          *engine
	namespaces map[string]map[string]string
	groups     map[string]int32
	universes  map[string]int32
}

func (r *topologyReader) selection(own string, sel *metav1.LabelSelector, t *corev1.PodAffinityTerm) (selected, error) {
	selector, err := metav1.LabelSelectorAsSelector(sel)
	if err != nil {
		return selected{}, err
	}
	out := selected{namespaces: map[string]bool{}, selector: selector}
	if t != nil {
		for _, n := range t.Namespaces {
			out.namespaces[n] = true
		}
		if t.NamespaceSelector != nil {
			ns, err := metav1.LabelSelectorAsSelector(t.NamespaceSelector)
			if err != nil {
				return selected{}, err
			}
			for name, set := range r.namespaces {
				if ns.Matches(labels.Set(set)) {
					out.namespaces[name] = true
				}
			}
		}
	}
	if t == nil || len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
		out.namespaces[own] = true
	}
	what := "nothing"
	if sel != nil {
		what = selector.String()
	}
	out.text = strings.Join(slices.Sorted(maps.Keys(out.namespaces)), ",") + "|" + what
	return out, nil
}

func (r *topologyReader) group(key string, who []selected, universe int32) int32 {
	k := r.e.key(key)
	texts := []string{fmt.Sprintf("%d|%d", k, universe)}
	for i := range who {
		texts = append(texts, who[i].text)
	}
	text := strings.Join(texts, "|")
	if id, ok := r.groups[text]; ok {
		return id
	}
	id := int32(len(r.e.groups))
	r.groups[text] = id
	r.e.groups = append(r.e.groups, group{key: k, who: who, universe: universe})
	return id
}

// read reads the hard constraints of a pod as an API server stores it. With anti only, it reads which pods it keeps away:
// that is all that matters of a pod that does not move.
func (r *topologyReader) read(pod *corev1.Pod, antiOnly bool) (topology, error) {
	var out topology
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for i := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			t := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i]
			who, err := r.selection(pod.Namespace, t.LabelSelector, t)
			if err != nil {
				return out, err
			}
			out.anti = append(out.anti, r.group(t.TopologyKey, []selected{who}, -1))
		}
	}
	if antiOnly {
		return out, nil
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		terms := a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		var who []selected // a pod counts for a term only where it meets all of them
		for i := range terms {
			w, err := r.selection(pod.Namespace, terms[i].LabelSelector, &terms[i])
			if err != nil {
				return out, err
			}
			who = append(who, w)
		}
		out.selfish = len(who) > 0
		for i := range who {
			out.selfish = out.selfish && who[i].matches(pod.Namespace, pod.Labels)
		}
		for i := range terms {
			out.affinity = append(out.affinity, r.group(terms[i].TopologyKey, who, -1))
		}
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		t := &pod.Spec.TopologySpreadConstraints[i]
		if t.WhenUnsatisfiable == corev1.ScheduleAnyway {
			continue
		}
		s, err := r.spread(pod, t)
		if err != nil {
			return out, err
		}
		out.spreads = append(out.spreads, s)
	}
	return out, nil
}

func (r *topologyReader) spread(pod *corev1.Pod, t *corev1.TopologySpreadConstraint) (spread, error) {
	who, err := r.selection(pod.Namespace, t.LabelSelector, nil)
	if err != nil {
		return spread{}, err
	}
	u, err := r.universe(pod, t)
	if err != nil {
		return spread{}, err
	}
	s := spread{group: r.group(t.TopologyKey, []selected{who}, u), maxSkew: t.MaxSkew, minDomains: 1}
	if t.MinDomains != nil {
		s.minDomains = *t.MinDomains
	}
	if who.matches(pod.Namespace, pod.Labels) {
		s.self = 1
	}
	return s, nil
}

// universe finds where a spread counts: on nodes that its owner's node affinity and tolerations allow, as far as its
// policies say so, and that have the keys of all its hard spreads.
func (r *topologyReader) universe(pod *corev1.Pod, t *corev1.TopologySpreadConstraint) (int32, error) {
	u := universe{key: r.e.key(t.TopologyKey), asked: requirements.AnyOf(requirements.Set{})}
	if t.NodeAffinityPolicy == nil || *t.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor {
		asked, err := requirements.FromPod(&pod.Spec)
		if err != nil {
			return 0, err
		}
		u.asked = r.e.aliases.Alternatives(asked.Required)
	}
	text := fmt.Sprintf("%d|%s", u.key, u.asked)
	if t.NodeTaintsPolicy != nil && *t.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor {
		u.tolerate = append([]corev1.Toleration{}, pod.Spec.Tolerations...)
		text += fmt.Sprintf("|%v", u.tolerate)
	}
	for _, o := range pod.Spec.TopologySpreadConstraints {
		if o.WhenUnsatisfiable != corev1.ScheduleAnyway {
			u.keys = append(u.keys, r.e.key(o.TopologyKey))
		}
	}
	slices.Sort(u.keys)
	u.keys = slices.Compact(u.keys)
	text += fmt.Sprintf("|%v", u.keys)
	id, ok := r.universes[text]
	if !ok {
		id = int32(len(r.e.universes))
		r.universes[text] = id
		r.e.universes = append(r.e.universes, u)
	}
	return id, nil
}

// join finds the groups that each class is a member of. Most selectors ask for one value of a label, so groups are looked
// up by that.
func (r *topologyReader) join() {
	type labelled struct{ key, value string }
	byLabel := map[labelled][]int32{}
	var others []int32
	for i := range r.e.groups {
		g := &r.e.groups[i]
		if len(g.who) == 0 {
			continue
		}
		reqs, ok := g.who[0].selector.Requirements()
		if !ok {
			continue // it selects nothing
		}
		at := slices.IndexFunc(reqs, func(q labels.Requirement) bool {
			return q.Operator() == selection.Equals || q.Operator() == selection.DoubleEquals || q.Operator() == selection.In
		})
		if at < 0 {
			others = append(others, int32(i))
			continue
		}
		for _, v := range reqs[at].ValuesUnsorted() {
			byLabel[labelled{reqs[at].Key(), v}] = append(byLabel[labelled{reqs[at].Key(), v}], int32(i))
		}
	}
	for i := range r.e.classes {
		c := &r.e.classes[i]
		candidates := slices.Clone(others)
		for k, v := range c.template.Labels {
			candidates = append(candidates, byLabel[labelled{k, v}]...)
		}
		slices.Sort(candidates)
		for _, g := range slices.Compact(candidates) {
			in := true
			for w := range r.e.groups[g].who {
				in = in && r.e.groups[g].who[w].matches(c.template.Namespace, c.template.Labels)
			}
			if in {
				c.memberOf = append(c.memberOf, g)
			}
		}
	}
}

// passes reports whether a spread counts on the node.
func (e *engine) passes(u *universe, n *node) bool {
	for _, k := range u.keys {
		if n.value(k) < 0 {
			return false
		}
	}
	for int(n.static) >= len(u.pass) {
		u.pass = append(u.pass, 0)
	}
	if u.pass[n.static] == 0 {
		st := &e.statics[n.static]
		u.pass[n.static] = 2
		if u.asked.Compatible(st.labels, requirements.Keys{}) && (u.tolerate == nil || tolerates(u.tolerate, st.taints)) {
			u.pass[n.static] = 1
		}
	}
	return u.pass[n.static] == 1
}

// count adds a pod to the counts of its node, or takes it off with sign -1.
func (e *engine) count(pod int32, n *node, sign int32) {
	p := &e.pods[pod]
	c := &e.classes[p.class]
	for _, id := range c.memberOf {
		g := &e.groups[id]
		v := n.value(g.key)
		if v < 0 || g.universe >= 0 && (p.leaving || !e.passes(&e.universes[g.universe], n)) {
			continue
		}
		g.counts.add(v, sign)
		g.total += sign
	}
	for _, id := range c.anti {
		g := &e.groups[id]
		if v := n.value(g.key); v >= 0 {
			g.owners.add(v, sign)
		}
	}
}

// domain adds a node to the domains of spreads, or takes it off.
func (e *engine) domain(n *node, sign int32) {
	for i := range e.universes {
		u := &e.universes[i]
		v := n.value(u.key)
		if v < 0 || !e.passes(u, n) {
			continue
		}
		before := u.nodes.get(v)
		u.nodes.add(v, sign)
		switch {
		case before == 0:
			u.live++
		case before+sign == 0:
			u.live--
		}
	}
}

// allowed reports whether the constraints between pods let a pod of the class onto a node with these values of the keys.
// Constraints on the keys that are left out are not asked; what is said no to is refused whatever these say.
func (e *engine) allowed(c *class, values []int32, without []bool) bool {
	for _, id := range c.anti {
		g := &e.groups[id]
		if v := values[g.key]; v >= 0 && (without == nil || !without[g.key]) && g.counts.get(v) > 0 {
			return false
		}
	}
	for _, id := range c.memberOf {
		g := &e.groups[id]
		if v := values[g.key]; v >= 0 && (without == nil || !without[g.key]) && g.owners.get(v) > 0 {
			return false
		}
	}
	met, anywhere := true, int32(0)
	for _, id := range c.affinity {
		g := &e.groups[id]
		anywhere += g.total
		if without != nil && without[g.key] {
			continue
		}
		v := values[g.key]
		if v < 0 {
			return false
		}
		met = met && g.counts.get(v) > 0
	}
	if !met && (anywhere > 0 || !c.selfish) {
		return false
	}
	for i := range c.spreads {
		if s := &c.spreads[i]; (without == nil || !without[e.groups[s.group].key]) && !e.even(s, values) {
			return false
		}
	}
	return true
}

// even reports whether one more pod on a node with these values of the keys keeps to the skew.
func (e *engine) even(s *spread, values []int32) bool {
	g := &e.groups[s.group]
	u := &e.universes[g.universe]
	v := values[g.key]
	if v < 0 {
		return false
	}
	least := int32(0)
	if u.live >= s.minDomains {
		least = g.counts.least(&u.nodes, u.live)
	}
	return g.counts.get(v)+s.self-least <= s.maxSkew
}
