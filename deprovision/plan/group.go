package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// gangs are the groups of a cluster that have pods on its nodes.
type gangs struct {
	of      map[*corev1.Pod]*eviction.Group
	running map[*eviction.Group]int
	ties    map[string]tie // by node at the start of the round; nodes without ties are left out
}

// tie is the set of nodes that go together with a node when a method is voluntary, and the group
// that is the reason. The nodes are sorted and include the node itself. Ties are transitive: each
// node brings all nodes that it is tied to.
type tie struct {
	nodes []string
	group *eviction.Group
}

func newGangs(c *deprovision.Cluster) gangs {
	out := gangs{of: map[*corev1.Pod]*eviction.Group{}, running: map[*eviction.Group]int{}}
	if len(c.Groups) == 0 {
		return out
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		for _, pod := range n.Reschedulable() {
			at := slices.IndexFunc(c.Groups, func(g eviction.Group) bool { return g.Member(pod) })
			if at < 0 {
				continue
			}
			g := &c.Groups[at]
			if out.of[pod] = g; pod.DeletionTimestamp == nil && !n.Leaving() { // the others are about to end
				out.running[g]++
			}
		}
	}
	return out
}

// spare returns how many pods of the group may move while the others run.
func (x *gangs) spare(g *eviction.Group) int { return g.Spare(x.running[g]) }

// tie finds, for each group, the nodes that hold more of its pods than it can spare. It ties each
// of them to all nodes of the group.
func (p *planner) tie() {
	x := &p.gangs
	x.ties = map[string]tie{}
	if len(x.of) == 0 {
		return
	}
	held := map[*eviction.Group]map[string]int{} // pods by node
	for _, m := range p.members() {
		for _, pod := range m.Pods {
			g := x.of[pod]
			if g == nil {
				continue
			}
			if held[g] == nil {
				held[g] = map[string]int{}
			}
			held[g][m.Name]++
		}
	}
	needed := map[string][]*eviction.Group{} // by node: the groups that move if it goes
	for i := range p.cluster.Groups {
		g := &p.cluster.Groups[i]
		for name, n := range held[g] {
			if n > x.spare(g) {
				needed[name] = append(needed[name], g)
			}
		}
	}
	for name, own := range needed {
		with, list := map[string]bool{name: true}, []string{name}
		for i := 0; i < len(list); i++ {
			for _, g := range needed[list[i]] {
				for mate := range held[g] {
					if !with[mate] {
						with[mate], list = true, append(list, mate)
					}
				}
			}
		}
		x.ties[name] = tie{slices.Sorted(slices.Values(list)), own[0]}
	}
}

// tied returns the nodes of the state that go with the node, including itself, in the order of
// their names.
func (p *planner) tied(m *member) []*member {
	var out []*member
	for _, name := range p.gangs.ties[m.Name].nodes {
		if mate := p.nodes[name]; mate != nil {
			out = append(out, mate)
		}
	}
	if len(out) == 0 {
		return []*member{m}
	}
	return out
}

// tiedTo returns the node and the nodes of the set that go only with it, except those that stay
// already.
func (p *planner) tiedTo(m *member, set []*member, stays map[*member]bool) []*member {
	out := []*member{m}
	if len(p.gangs.ties) == 0 {
		return out
	}
	for _, other := range set {
		if other != m && !stays[other] && slices.Contains(p.gangs.ties[other.Name].nodes, m.Name) {
			out = append(out, other)
		}
	}
	return out
}

// unavoidable reports whether the node goes no matter what happens to its pods.
func unavoidable(m *member, method eligibility.Method) bool {
	return method == eligibility.Interruption || method == eligibility.Expiration && m.Node.Pool != nil && m.Node.Pool.APIVersion == nodepool.V1
}

// tieBlockers returns the blockers of the node that come from the nodes it is tied to.
func (p *planner) tieBlockers(m *member, method eligibility.Method) []eligibility.Blocker {
	t, ok := p.gangs.ties[m.Name]
	if !ok || unavoidable(m, method) {
		return nil
	}
	for _, name := range t.nodes {
		why := "goes by itself"
		if mate := p.nodes[name]; mate != nil {
			by := p.blockers(mate, method)
			if name == m.Name || len(by) == 0 {
				continue
			}
			why = "must stay: " + by[0].String()
		}
		return []eligibility.Blocker{{Kind: eligibility.PodGroup, Text: fmt.Sprintf("group %s needs all pods that would move, so node %s would have to go as well, which %s", t.group.Name, name, why)}}
	}
	return nil
}

// closed returns the nodes of the list that are in the set or tied to a node of it.
func (p *planner) closed(set, list []*member) []*member {
	if len(p.gangs.ties) == 0 {
		return set
	}
	in := map[string]bool{}
	for _, m := range set {
		for _, mate := range p.tied(m) {
			in[mate.Name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(list), func(m *member) bool { return !in[m.Name] })
}

// untorn returns the set without the nodes that are tied to a node outside it.
func (p *planner) untorn(set []*member) []*member {
	if len(p.gangs.ties) == 0 {
		return set
	}
	in := map[string]bool{}
	for _, m := range set {
		in[m.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(set), func(m *member) bool {
		return slices.ContainsFunc(p.tied(m), func(mate *member) bool { return !in[mate.Name] })
	})
}

// below returns the groups that fall below their minimum if the nodes go, in the order of the
// cluster, and how many of their pods move.
func (p *planner) below(set []*member) ([]*eviction.Group, map[*eviction.Group]int) {
	moves := map[*eviction.Group]int{}
	if len(p.gangs.of) > 0 {
		for _, m := range set {
			for _, pod := range m.Pods {
				if g := p.gangs.of[pod]; g != nil {
					moves[g]++
				}
			}
		}
	}
	var out []*eviction.Group
	for i := range p.cluster.Groups {
		if g := &p.cluster.Groups[i]; moves[g] > p.gangs.spare(g) {
			out = append(out, g)
		}
	}
	return out, moves
}

// torn returns a group that the move takes below its minimum without moving all of it, or nil.
// Nodes that go in any case tear no group.
func (p *planner) torn(v move) *eviction.Group {
	if len(v.nodes) == 0 || unavoidable(v.nodes[0], v.method) {
		return nil
	}
	below, moves := p.below(v.nodes)
	for _, g := range below {
		if moves[g] < p.gangs.running[g] {
			return g
		}
	}
	return nil
}

// tornLater returns a group that the wave tears, or that it takes below its minimum together with
// the waves before it. It returns nil if there is none.
func (p *planner) tornLater(before []*member, wave move) *eviction.Group {
	if g := p.torn(wave); g != nil || len(before) == 0 {
		return g
	}
	_, now := p.below(wave.nodes)
	below, all := p.below(slices.Concat(before, wave.nodes))
	for _, g := range below {
		if now[g] > 0 && now[g] < all[g] && !unavoidable(wave.nodes[0], wave.method) {
			return g
		}
	}
	return nil
}

// without returns the nodes that run no pods of the group and are not tied to one that does.
func (p *planner) without(g *eviction.Group, set []*member) []*member {
	rest, _ := p.unstuck(set, func(pods []*corev1.Pod) bool {
		return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return p.gangs.of[pod] == g })
	})
	return rest
}

// unstuck splits the nodes. left has those for whose pods stuck returns true and those tied to one
// of these; rest has the others.
func (p *planner) unstuck(set []*member, stuck func([]*corev1.Pod) bool) (rest, left []*member) {
	stay := map[string]bool{}
	for _, m := range set {
		stay[m.Name] = stuck(m.Pods)
	}
	for _, m := range set {
		if stay[m.Name] || slices.ContainsFunc(p.gangs.ties[m.Name].nodes, func(name string) bool { return stay[name] }) {
			left = append(left, m)
		} else {
			rest = append(rest, m)
		}
	}
	return rest, left
}

// joined returns the moves, with moves of tied nodes merged at the place of the last of them.
func (p *planner) joined(list []move) []move {
	if len(p.gangs.ties) == 0 {
		return list
	}
	out, at := slices.Clone(list), map[string]int{} // by node: its position
	for i, v := range out {
		for _, m := range v.nodes {
			at[m.Name] = i
		}
	}
	for _, v := range pieces(list) {
		m := v.nodes[0]
		if unavoidable(m, v.method) {
			continue
		}
		for _, name := range p.gangs.ties[m.Name].nodes {
			from, ok := at[name]
			to := at[m.Name]
			if from > to {
				from, to = to, from
			}
			if !ok || from == to || out[from].method != out[to].method {
				continue
			}
			for _, moved := range out[from].nodes {
				at[moved.Name] = to
			}
			out[from], out[to] = move{}, join(out[from], out[to])
		}
	}
	return slices.DeleteFunc(out, func(v move) bool { return len(v.nodes) == 0 })
}

// fallen returns the names of the groups that fall below their minimum. The text says for each
// whether it moves whole.
func (p *planner) fallen(set []*member) (names []string, text string) {
	below, moves := p.below(set)
	for _, g := range below {
		names = append(names, g.Name)
		if moves[g] >= p.gangs.running[g] {
			text += fmt.Sprintf("; group %s moves whole", g.Name)
		} else {
			text += fmt.Sprintf("; group %s falls below its minimum", g.Name)
		}
	}
	slices.SortFunc(names, strings.Compare)
	return names, text
}

// together says how many nodes go with the node, and why. It is empty if the node goes alone. The
// text begins a sentence.
func (p *planner) together(node string) string {
	t := p.gangs.ties[node]
	if len(t.nodes) < 2 {
		return ""
	}
	return fmt.Sprintf("group %s moves whole, with all %d nodes that it ties together: ", t.group.Name, len(t.nodes))
}
