package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/joinery-sdk/joinery/scheduling/volume"
)

// group is a set of pods that some constraint looks at, by namespace and selector, and the label key by whose values
// they are counted. Constraints that look at the same pods by the same key share one group.
type group struct {
	key        string
	namespaces map[string]bool
	selector   labels.Selector
	filter     *nodeFilter // nil where pods count on every node that has the key
	text       string

	counts  map[string]int // running pods, by value of the key
	owners  map[string]int // running pods that must not share the value with members, by value
	members []int          // classes, in order
	watched bool           // on the hostname key: something limits the members within a node
}

// selects reports whether a pod with these labels in this namespace is a member.
func (g *group) selects(namespace string, set map[string]string) bool {
	return g.namespaces[namespace] && g.selector.Matches(labels.Set(set))
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
}

// topology is what a class asks about other pods.
type topology struct {
	spreads []spread
	terms   []term
}

// groups numbers the groups of a problem.
type groups struct {
	all    []*group
	byText map[string]int
}

func (gs *groups) intern(key string, namespaces map[string]bool, sel *metav1.LabelSelector, filter *nodeFilter) (int, error) {
	selector, err := metav1.LabelSelectorAsSelector(sel) // nil selects nothing, empty selects everything
	if err != nil {
		return 0, err
	}
	filterText := ""
	if filter != nil {
		filterText = filter.key
	}
	text := fmt.Sprintf("%s|%s|%s|%s", key, strings.Join(sortedTrue(namespaces), ","), selectorText(sel, selector), filterText)
	if id, ok := gs.byText[text]; ok {
		return id, nil
	}
	gs.all = append(gs.all, &group{key: key, namespaces: namespaces, selector: selector, filter: filter, text: text, counts: map[string]int{}, owners: map[string]int{}})
	gs.byText[text] = len(gs.all) - 1
	return len(gs.all) - 1, nil
}

// claim is the group of the pods that share a claim, by zone; no running pod is in it, for its volume is yet to be made.
func (gs *groups) claim(key string, members []int) int {
	gs.all = append(gs.all, &group{
		key: corev1.LabelTopologyZone, namespaces: map[string]bool{}, selector: labels.Nothing(), text: "claim " + key,
		counts: map[string]int{}, owners: map[string]int{}, members: members,
	})
	return len(gs.all) - 1
}

func selectorText(sel *metav1.LabelSelector, s labels.Selector) string {
	if sel == nil {
		return "nothing"
	}
	return s.String()
}

func sortedTrue(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k, v := range m {
		if v {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// namespacesOf are the namespaces that an affinity term looks into: those it names and those its selector selects; the
// pod's own where it does neither.
func (p *Problem) namespacesOf(own string, t *corev1.PodAffinityTerm) (map[string]bool, error) {
	out := map[string]bool{}
	for _, n := range t.Namespaces {
		out[n] = true
	}
	if t.NamespaceSelector == nil {
		if len(t.Namespaces) == 0 {
			out[own] = true
		}
		return out, nil
	}
	sel, err := metav1.LabelSelectorAsSelector(t.NamespaceSelector)
	if err != nil {
		return nil, err
	}
	for name, set := range p.namespaces {
		if sel.Matches(labels.Set(set)) {
			out[name] = true
		}
	}
	return out, nil
}

// knownNamespaces is every namespace that an object or a pod names, with its labels; each carries its own name as a
// label, as the API server sees to.
func (s *Snapshot) knownNamespaces() map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, p := range s.Pods {
		if _, ok := out[p.Namespace]; !ok {
			out[p.Namespace] = map[string]string{corev1.LabelMetadataName: p.Namespace}
		}
	}
	for _, n := range s.Namespaces {
		set := map[string]string{corev1.LabelMetadataName: n.Name}
		for k, v := range n.Labels {
			set[k] = v
		}
		out[n.Name] = set
	}
	return out
}

// compileTopology reads what the classes ask about other pods, and counts those that run.
func (p *Problem) compileTopology(shared []volume.SharedClaim) error {
	p.groups = groups{byText: map[string]int{}}
	p.filters = map[string]*nodeFilter{}
	p.namespaces = p.snapshot.knownNamespaces()
	for _, c := range p.Classes {
		if err := p.readTopology(c); err != nil {
			return &InvalidError{Pod: c.Name(), Err: err}
		}
	}
	inverse := p.runningAntiAffinity()
	p.joinMembers()
	p.joinShared(shared)
	for _, c := range p.Classes {
		for k := range c.topology.spreads {
			sp := &c.topology.spreads[k]
			sp.self = slices.Contains(c.memberOf, sp.group)
			p.groups.all[sp.group].watched = true
		}
		for k := range c.topology.terms {
			t := &c.topology.terms[k]
			t.self = slices.Contains(c.memberOf, t.group)
			p.groups.all[t.group].watched = true
		}
	}
	p.countRunning(inverse)
	return nil
}

// joinMembers matches selectors against classes. Most selectors ask for one value of some label, so classes are looked
// up by label value first.
func (p *Problem) joinMembers() {
	type labelled struct{ namespace, key, value string }
	byLabel := map[labelled][]int{}
	byNamespace := map[string][]int{}
	for i, c := range p.Classes {
		ns := c.Template.Namespace
		byNamespace[ns] = append(byNamespace[ns], i)
		for k, v := range c.Template.Labels {
			byLabel[labelled{ns, k, v}] = append(byLabel[labelled{ns, k, v}], i)
		}
	}
	for id, g := range p.groups.all {
		reqs, selectable := g.selector.Requirements()
		if !selectable {
			continue
		}
		var candidates []int
		at := slices.IndexFunc(reqs, func(r labels.Requirement) bool {
			return r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals || r.Operator() == selection.In
		})
		for _, ns := range sortedTrue(g.namespaces) {
			if at < 0 {
				candidates = append(candidates, byNamespace[ns]...)
				continue
			}
			for _, v := range reqs[at].ValuesUnsorted() {
				candidates = append(candidates, byLabel[labelled{ns, reqs[at].Key(), v}]...)
			}
		}
		slices.Sort(candidates)
		for _, i := range slices.Compact(candidates) {
			if c := p.Classes[i]; g.selects(c.Template.Namespace, c.Template.Labels) {
				g.members = append(g.members, i)
				c.memberOf = append(c.memberOf, id)
			}
		}
	}
}

func (p *Problem) readTopology(c *Class) error {
	pod := c.Template
	if len(pod.Spec.TopologySpreadConstraints) > 0 {
		for i := range pod.Spec.TopologySpreadConstraints {
			t := &pod.Spec.TopologySpreadConstraints[i]
			g, err := p.groups.intern(p.aliases.Key(t.TopologyKey), map[string]bool{pod.Namespace: true}, t.LabelSelector, p.filterOf(c, t))
			if err != nil {
				return fmt.Errorf("spec.topologySpreadConstraints[%d].labelSelector: %w", i, err)
			}
			s := spread{group: g, key: p.groups.all[g].key, maxSkew: int(t.MaxSkew), minDomains: 1, hard: t.WhenUnsatisfiable != corev1.ScheduleAnyway}
			if t.MinDomains != nil {
				s.minDomains = int(*t.MinDomains)
			}
			c.topology.spreads = append(c.topology.spreads, s)
		}
	}
	a := pod.Spec.Affinity
	if a == nil {
		return nil
	}
	add := func(t *corev1.PodAffinityTerm, anti, hard bool, weight int32) error {
		ns, err := p.namespacesOf(pod.Namespace, t)
		if err != nil {
			return err
		}
		g, err := p.groups.intern(p.aliases.Key(t.TopologyKey), ns, t.LabelSelector, nil)
		if err != nil {
			return err
		}
		c.topology.terms = append(c.topology.terms, term{group: g, anti: anti, hard: hard, weight: weight})
		return nil
	}
	each := func(anti bool, hard []corev1.PodAffinityTerm, soft []corev1.WeightedPodAffinityTerm) error {
		for i := range hard {
			if err := add(&hard[i], anti, true, 0); err != nil {
				return err
			}
		}
		for i := range soft {
			if err := add(&soft[i].PodAffinityTerm, anti, false, soft[i].Weight); err != nil {
				return err
			}
		}
		return nil
	}
	if a.PodAffinity != nil {
		if err := each(false, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution); err != nil {
			return fmt.Errorf("spec.affinity.podAffinity: %w", err)
		}
	}
	if a.PodAntiAffinity != nil {
		if err := each(true, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution); err != nil {
			return fmt.Errorf("spec.affinity.podAntiAffinity: %w", err)
		}
	}
	return nil
}

// joinShared keeps pods that share a claim whose volume is yet to be made in one zone: that of the first of them.
func (p *Problem) joinShared(shared []volume.SharedClaim) {
	for _, s := range shared {
		id := p.groups.claim(s.Claim, s.Consumers)
		for _, i := range s.Consumers {
			c := p.Classes[i]
			c.memberOf = append(c.memberOf, id)
			c.topology.terms = append(c.topology.terms, term{group: id, hard: true, self: true})
		}
	}
}

// owner is a running pod's required anti-affinity term.
type owner struct {
	group int
	room  int
}

// runningAntiAffinity adds the groups that running pods keep away from themselves.
func (p *Problem) runningAntiAffinity() []owner {
	var out []owner
	for r := range p.Rooms {
		for _, pod := range p.Rooms[r].running {
			a := pod.Spec.Affinity
			if a == nil || a.PodAntiAffinity == nil {
				continue
			}
			stored := p.snapshot.Admission.Pod(pod)
			for i := range stored.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				t := &stored.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i]
				ns, err := p.namespacesOf(pod.Namespace, t)
				if err != nil {
					continue // it runs, so an API server took it; a selector that does not parse selects nothing
				}
				g, err := p.groups.intern(p.aliases.Key(t.TopologyKey), ns, t.LabelSelector, nil)
				if err != nil {
					continue
				}
				out = append(out, owner{g, r})
			}
		}
	}
	return out
}

// countRunning counts running pods by group. On the hostname key they become tags and limits of their node.
func (p *Problem) countRunning(inverse []owner) {
	for _, g := range p.groups.all {
		for r := range p.Rooms {
			room := &p.Rooms[r]
			value, ok := room.value(g.key)
			if !ok || !g.filter.passes(room.Labels) {
				continue
			}
			for _, pod := range room.running {
				if pod.DeletionTimestamp == nil && g.selects(pod.Namespace, pod.Labels) {
					g.counts[value]++
					if g.key == corev1.LabelHostname {
						room.Tags = append(room.Tags, g.tag())
					}
				}
			}
		}
	}
	for _, o := range inverse {
		g, room := p.groups.all[o.group], &p.Rooms[o.room]
		value, ok := room.value(g.key)
		if !ok {
			continue
		}
		g.owners[value]++
		g.watched = true
		if g.key == corev1.LabelHostname {
			room.Limits = append(room.Limits, Limit{g.tag(), 0})
		}
	}
}

func (r *Room) value(key string) (string, bool) { return r.Labels.Get(key).Single() }

// tag is the name under which members of a group on the hostname key are counted within a node.
func (g *group) tag() string { return "pods " + g.text }

// comparePreferences orders soft constraints by what is given up first; see [Preference].
func comparePreferences(a, b Preference) int {
	return cmp.Or(cmp.Compare(a.Kind.rank(), b.Kind.rank()), cmp.Compare(a.Weight, b.Weight), cmp.Compare(b.index, a.index))
}
