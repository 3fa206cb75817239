package topology

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/topology/quota"
)

// class is a class of the input and what was read of it.
type class struct {
	Class
	spreads  []spread
	terms    []term
	ratios   []ratio
	memberOf []int        // groups, in order
	soft     []Preference // in the order of giving up
}

// spread is one topology spread constraint of a class.
type spread struct {
	group      int
	key        string
	maxSkew    int
	minDomains int
	self       bool // the class is a member of the group
	hard       bool
}

// term is one pod affinity or anti-affinity term of a class.
type term struct {
	group  int
	anti   bool
	self   bool
	hard   bool
	weight int32
	volume bool // for the sake of a volume yet to be made, which no manifest asks and Karpenter does not know
}

// reader turns the constraints of pods into groups, spreads and terms.
type reader struct {
	p          *Problem
	aliases    requirements.Aliases
	namespaces map[string]map[string]string
	byText     map[string]int // groups
	byRaw      map[string]int // the same, before selectors are parsed
	raw        []byte         // reused
	keys       []string       // reused
}

func (r *reader) read(c *class) error {
	pod := c.Pod
	for i := range pod.Spec.TopologySpreadConstraints {
		t := &pod.Spec.TopologySpreadConstraints[i]
		g, err := r.intern(t.TopologyKey, []string{pod.Namespace}, t.LabelSelector, r.filterOf(c, t))
		if err != nil {
			return fmt.Errorf("spec.topologySpreadConstraints[%d].labelSelector: %w", i, err)
		}
		s := spread{group: g, key: r.p.groups[g].key, maxSkew: int(t.MaxSkew), minDomains: 1, hard: t.WhenUnsatisfiable != corev1.ScheduleAnyway}
		if t.MinDomains != nil {
			s.minDomains = int(*t.MinDomains)
		}
		c.spreads = append(c.spreads, s)
	}
	if err := r.ratio(c); err != nil {
		return err
	}
	a := pod.Spec.Affinity
	if a == nil {
		return nil
	}
	if a.PodAffinity != nil {
		if err := r.terms(c, false, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution); err != nil {
			return fmt.Errorf("spec.affinity.podAffinity.%w", err)
		}
	}
	if a.PodAntiAffinity != nil {
		if err := r.terms(c, true, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution); err != nil {
			return fmt.Errorf("spec.affinity.podAntiAffinity.%w", err)
		}
	}
	return nil
}

// terms reads the hard and soft terms of affinity or anti-affinity.
func (r *reader) terms(c *class, anti bool, hard []corev1.PodAffinityTerm, soft []corev1.WeightedPodAffinityTerm) error {
	for i := range hard {
		g, err := r.groupOf(c.Pod.Namespace, &hard[i])
		if err != nil {
			return fmt.Errorf("requiredDuringSchedulingIgnoredDuringExecution[%d].%w", i, err)
		}
		c.terms = append(c.terms, term{group: g, anti: anti, hard: true})
	}
	for i := range soft {
		g, err := r.groupOf(c.Pod.Namespace, &soft[i].PodAffinityTerm)
		if err != nil {
			return fmt.Errorf("preferredDuringSchedulingIgnoredDuringExecution[%d].podAffinityTerm.%w", i, err)
		}
		c.terms = append(c.terms, term{group: g, anti: anti, weight: soft[i].Weight})
	}
	return nil
}

// groupOf is the group that a term of a pod in the namespace looks at.
func (r *reader) groupOf(own string, t *corev1.PodAffinityTerm) (int, error) {
	ns, err := r.namespacesOf(own, t)
	if err != nil {
		return 0, fmt.Errorf("namespaceSelector: %w", err)
	}
	g, err := r.intern(t.TopologyKey, ns, t.LabelSelector, nil)
	if err != nil {
		return 0, fmt.Errorf("labelSelector: %w", err)
	}
	return g, nil
}

// intern finds the group, or adds it. Namespaces are in order.
func (r *reader) intern(key string, namespaces []string, sel *metav1.LabelSelector, filter *nodeFilter) (int, error) {
	r.raw = r.raw[:0]
	r.text(key)
	r.number(len(namespaces))
	for _, n := range namespaces {
		r.text(n)
	}
	if filter == nil {
		r.number(0)
	} else {
		r.number(1)
		r.text(filter.key)
	}
	r.selector(sel)
	id, ok := r.byRaw[string(r.raw)]
	if ok {
		return id, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(sel) // nil selects nothing, empty selects everything
	if err != nil {
		return 0, err
	}
	key = r.aliases.Key(key)
	selectorText, filterText := "nothing", ""
	if sel != nil {
		selectorText = selector.String()
	}
	if filter != nil {
		filterText = filter.key
	}
	text := fmt.Sprintf("%s|%s|%s|%s", key, strings.Join(namespaces, ","), selectorText, filterText)
	if id, ok = r.byText[text]; !ok {
		id = len(r.p.groups)
		r.byText[text] = id
		in := make(map[string]bool, len(namespaces))
		for _, n := range namespaces {
			in[n] = true
		}
		r.p.groups = append(r.p.groups, newGroup(key, in, selector, filter, text))
	}
	r.byRaw[string(r.raw)] = id
	return id, nil
}

func (r *reader) text(s string) { r.raw = append(binary.AppendUvarint(r.raw, uint64(len(s))), s...) }

func (r *reader) number(n int) { r.raw = binary.AppendVarint(r.raw, int64(n)) }

// selector appends the selector as it is written.
func (r *reader) selector(s *metav1.LabelSelector) {
	if s == nil {
		r.number(-1)
		return
	}
	r.keys = r.keys[:0]
	for k := range s.MatchLabels {
		r.keys = append(r.keys, k)
	}
	slices.Sort(r.keys)
	r.number(len(r.keys))
	for _, k := range r.keys {
		r.text(k)
		r.text(s.MatchLabels[k])
	}
	for i := range s.MatchExpressions {
		e := &s.MatchExpressions[i]
		r.text(e.Key)
		r.text(string(e.Operator))
		r.number(len(e.Values))
		for _, v := range e.Values {
			r.text(v)
		}
	}
}

// namespacesOf are the namespaces that an affinity term looks into, in order: those it names and those its selector
// selects; the pod's own where it does neither.
func (r *reader) namespacesOf(own string, t *corev1.PodAffinityTerm) ([]string, error) {
	if t.NamespaceSelector == nil && len(t.Namespaces) == 0 {
		return []string{own}, nil
	}
	out := slices.Clone(t.Namespaces)
	if t.NamespaceSelector != nil {
		sel, err := metav1.LabelSelectorAsSelector(t.NamespaceSelector)
		if err != nil {
			return nil, err
		}
		for name, set := range r.namespaces {
			if sel.Matches(labels.Set(set)) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// keeper is a running pod on a node that keeps members of a group away.
type keeper struct{ group, node int }

// running adds the groups that running pods keep away from themselves.
func (r *reader) running() []keeper {
	var out []keeper
	for n := range r.p.nodes {
		for _, pod := range r.p.nodes[n].Running {
			a := pod.Spec.Affinity
			if a == nil || a.PodAntiAffinity == nil {
				continue
			}
			for i := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				// It runs, so an API server took it; a selector that does not parse selects nothing.
				if g, err := r.groupOf(pod.Namespace, &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i]); err == nil {
					out = append(out, keeper{g, n})
				}
			}
		}
	}
	return out
}

// together makes a group of each set of classes, by zone, in which every member follows the first; no running pod is in
// it.
func (r *reader) together(sets []Together) {
	for _, s := range sets {
		g := newGroup(corev1.LabelTopologyZone, map[string]bool{}, labels.Nothing(), nil, "together "+s.Name)
		g.members, g.what = s.Classes, s.Name
		id := len(r.p.groups)
		r.p.groups = append(r.p.groups, g)
		for _, i := range s.Classes {
			c := &r.p.classes[i]
			c.memberOf = append(c.memberOf, id)
			c.terms = append(c.terms, term{group: id, hard: true, self: true, volume: true})
		}
	}
}

// RatioAnnotation is the annotation of pods that are to be divided over the values of a node label by fixed shares, such
// as "karpenter.sh/capacity-type: on-demand=2, spot=3". All pods of a namespace with the same text are divided together,
// those that run already included, as exactly as whole pods can be; a name and a semicolon in front keep apart what would
// have the same text: "web; karpenter.sh/capacity-type: on-demand=1, spot=1". It is a hard constraint on the plan, of
// which kube-scheduler knows nothing.
const RatioAnnotation = "joinery-sdk.dev/ratio"

// ratio is how many pods of a group go to each value at most.
type ratio struct{ group int }

// ratio reads the annotation of a class.
func (r *reader) ratio(c *class) error {
	text, ok := c.Pod.Annotations[RatioAnnotation]
	if !ok {
		return nil
	}
	key, shares, err := quota.ParseShares(text)
	if err != nil {
		return fmt.Errorf("metadata.annotations[%s]: %w", RatioAnnotation, err)
	}
	id := fmt.Sprintf("ratio %s|%s", c.Pod.Namespace, text)
	g, ok := r.byText[id]
	if !ok {
		g = len(r.p.groups)
		r.byText[id] = g
		group := newGroup(r.aliases.Key(key), map[string]bool{c.Pod.Namespace: true}, labels.Nothing(), nil, id)
		group.shares, group.annotation = shares, text
		group.what = "pods of ratio " + text
		r.p.groups = append(r.p.groups, group)
	}
	c.ratios = append(c.ratios, ratio{g})
	return nil
}

// divide finds the members of each ratio, and how many of them each value may have: its share, the pods left over by
// rounding down going to the largest remainders, of equals to the first value.
func (p *Problem) divide() {
	for i := range p.classes {
		c := &p.classes[i]
		for _, r := range c.ratios {
			p.groups[r.group].members = append(p.groups[r.group].members, i)
			c.memberOf = append(c.memberOf, r.group)
		}
	}
	for _, g := range p.groups {
		if g.shares == nil {
			continue
		}
		total := 0
		for _, i := range g.members {
			total += p.classes[i].Count
		}
		for i := range p.nodes {
			for _, pod := range p.nodes[i].Running {
				if pod.DeletionTimestamp == nil && g.namespaces[pod.Namespace] && pod.Annotations[RatioAnnotation] == g.annotation {
					total++
					if value, ok := p.nodes[i].value(g.key); ok {
						g.counts[value]++
					}
				}
			}
		}
		g.most = quota.Apportion(total, g.shares)
	}
}
