package topology

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// group is a set of pods that some constraint looks at, by namespace and selector, and the label key by whose values
// they are counted. Constraints that look at the same pods by the same key share one group.
type group struct {
	key        string
	hostname   bool // the key is the hostname: what looks at the group acts within one node
	namespaces map[string]bool
	selector   labels.Selector
	filter     *nodeFilter // nil where pods count on every node that has the key
	tag        string      // identifies the group; members on the hostname key are counted within a node by it
	what       string      // says in words whom it selects

	counts  map[string]int // running pods, by value of the key
	owners  map[string]int // running pods that must not share the value with members, by value
	members []int          // classes, in order
	watched bool           // on the hostname key: something limits the members within a node

	// Of a ratio: its shares by value, the annotation that members have, and how many of them each value may have.
	shares     map[string]int
	annotation string
	most       map[string]int
}

// selects reports whether a pod with these labels in this namespace is a member.
func (g *group) selects(namespace string, set map[string]string) bool {
	return g.namespaces[namespace] && g.selector.Matches(labels.Set(set))
}

// obstacle puts whom the group selects and its key into a format, and what else there is.
func (g *group) obstacle(format string, args ...any) Obstacle {
	return Obstacle{g.key, fmt.Sprintf(format, append([]any{g.what, g.key}, args...)...)}
}

// join matches selectors against classes. Most selectors ask for one value of some label, so classes are looked up by
// label value first.
func (p *Problem) join() {
	type labelled struct{ namespace, key, value string }
	byLabel := map[labelled][]int{}
	byNamespace := map[string][]int{}
	if len(p.groups) > 0 {
		for i := range p.classes {
			pod := p.classes[i].Pod
			byNamespace[pod.Namespace] = append(byNamespace[pod.Namespace], i)
			for k, v := range pod.Labels {
				byLabel[labelled{pod.Namespace, k, v}] = append(byLabel[labelled{pod.Namespace, k, v}], i)
			}
		}
	}
	for id, g := range p.groups {
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
			if c := &p.classes[i]; g.selects(c.Pod.Namespace, c.Pod.Labels) {
				g.members = append(g.members, i)
				c.memberOf = append(c.memberOf, id)
			}
		}
	}
}

// relate notes which constraints look at their owners, and which groups are watched.
func (p *Problem) relate() {
	for i := range p.classes {
		c := &p.classes[i]
		for k := range c.spreads {
			sp := &c.spreads[k]
			sp.self = slices.Contains(c.memberOf, sp.group)
			p.groups[sp.group].watched = true
		}
		for k := range c.terms {
			t := &c.terms[k]
			t.self = slices.Contains(c.memberOf, t.group)
			p.groups[t.group].watched = true
		}
	}
}

// countRunning counts running pods by group. On the hostname key they become tags and limits of their node. Pods on
// their way out count for nothing, as in kube-scheduler.
func (p *Problem) countRunning(keepers []keeper) {
	for i := range p.nodes { // the slices are the caller's
		p.nodes[i].Tags, p.nodes[i].Limits = slices.Clip(p.nodes[i].Tags), slices.Clip(p.nodes[i].Limits)
	}
	for _, g := range p.groups {
		for i := range p.nodes {
			node := &p.nodes[i]
			value, ok := node.value(g.key)
			if !ok || !g.filter.passes(node.Labels) {
				continue
			}
			for _, pod := range node.Running {
				if pod.DeletionTimestamp == nil && g.selects(pod.Namespace, pod.Labels) {
					g.counts[value]++
					if g.hostname {
						node.Tags = append(node.Tags, g.tag)
					}
				}
			}
		}
	}
	for _, k := range keepers {
		g, node := p.groups[k.group], &p.nodes[k.node]
		value, ok := node.value(g.key)
		if !ok {
			continue
		}
		g.owners[value]++
		g.watched = true
		if g.hostname {
			node.Limits = append(node.Limits, Limit{g.tag, 0})
		}
	}
}

// value is the node's one value of the label; false where it has none.
func (n *Node) value(key string) (string, bool) { return n.Labels.Get(key).Single() }

func newGroup(key string, namespaces map[string]bool, selector labels.Selector, filter *nodeFilter, text string) *group {
	what := selector.String()
	if what == "" {
		what = "all pods"
	}
	return &group{
		key: key, hostname: key == corev1.LabelHostname, namespaces: namespaces, selector: selector, filter: filter, tag: "pods " + text, what: what,
		counts: map[string]int{}, owners: map[string]int{},
	}
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
