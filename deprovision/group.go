package deprovision

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

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

// tie is the nodes, sorted, with which a node goes by voluntary methods, itself included, and the group that is the reason. With each of them go
// all that it is tied to.
type tie struct {
	nodes []string
	group *eviction.Group
}

func newGangs(c *Cluster) gangs {
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
			if out.of[pod] = g; pod.DeletionTimestamp == nil && !n.Leaving() { // others are as good as gone
				out.running[g]++
			}
		}
	}
	return out
}

// spare is how many pods of the group may move while the others run.
func (x *gangs) spare(g *eviction.Group) int { return g.Spare(x.running[g]) }

// tie ties each node to all nodes of the groups of which it has more pods than they can spare.
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

// tied are the nodes of the state that go with the node, itself included, in the order of their names.
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

// tiedTo are the node and those of the set that go only with it, without those that stay already.
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

// unavoidable reports whether the node goes whatever becomes of its pods.
func unavoidable(m *member, method eligibility.Method) bool {
	return method == eligibility.Interruption || method == eligibility.Expiration && m.pool != nil && m.pool.APIVersion == nodepool.V1
}

// tieBlockers are the reasons of other nodes why the node must stay.
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
		return []eligibility.Blocker{{Kind: eligibility.PodGroup, Text: fmt.Sprintf("group %s needs all pods that would move, and with them node %s would have to go, which %s", t.group.Name, name, why)}}
	}
	return nil
}

// closed is those of the list that are in the set or tied to one of it.
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

// untorn is the set without the nodes that are tied to one outside of it.
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

// below are the groups that removals take below their minimum, in the order of the cluster, and how many of their pods move.
func (p *planner) below(group []removal) ([]*eviction.Group, map[*eviction.Group]int) {
	moves := map[*eviction.Group]int{}
	if len(p.gangs.of) > 0 {
		for _, r := range group {
			for _, pod := range r.base {
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

// torn is a group that removals take below its minimum without moving all of it, though they could stay; nil for none.
func (p *planner) torn(group []removal) *eviction.Group {
	if len(group) == 0 || unavoidable(group[0].member, group[0].method) {
		return nil
	}
	below, moves := p.below(group)
	for _, g := range below {
		if moves[g] < p.gangs.running[g] {
			return g
		}
	}
	return nil
}

// tornLater is a group that a wave tears, or takes below its minimum together with the waves before it; nil for none.
func (p *planner) tornLater(before, wave []removal) *eviction.Group {
	if g := p.torn(wave); g != nil || len(before) == 0 {
		return g
	}
	_, now := p.below(wave)
	below, all := p.below(slices.Concat(before, wave))
	for _, g := range below {
		if now[g] > 0 && now[g] < all[g] && !unavoidable(wave[0].member, wave[0].method) {
			return g
		}
	}
	return nil
}

// without is the removals without those that run pods of a group.
func (p *planner) without(g *eviction.Group, group []removal) []removal {
	rest, _ := p.unstuck(group, func(pods []*corev1.Pod) bool {
		return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return p.gangs.of[pod] == g })
	})
	return rest
}

// unstuck is the removals without those whose pods the function reports and those that go only with one of them; and these.
func (p *planner) unstuck(group []removal, stuck func([]*corev1.Pod) bool) (rest, left []removal) {
	stay := map[string]bool{}
	for _, r := range group {
		stay[r.Name] = stuck(r.base)
	}
	for _, r := range group {
		if stay[r.Name] || slices.ContainsFunc(p.gangs.ties[r.Name].nodes, func(name string) bool { return stay[name] }) {
			left = append(left, r)
		} else {
			rest = append(rest, r)
		}
	}
	return rest, left
}

// joined is the groups of removals, those with tied nodes made one in the place of the last of them.
func (p *planner) joined(list [][]removal) [][]removal {
	if len(p.gangs.ties) == 0 {
		return list
	}
	out, at := slices.Clone(list), map[string]int{} // by node: its position
	for i, group := range out {
		for _, r := range group {
			at[r.Name] = i
		}
	}
	for _, r := range slices.Concat(list...) {
		if unavoidable(r.member, r.method) {
			continue
		}
		for _, name := range p.gangs.ties[r.Name].nodes {
			from, ok := at[name]
			to := at[r.Name]
			if from > to {
				from, to = to, from
			}
			if !ok || from == to || out[from][0].method != out[to][0].method {
				continue
			}
			for _, moved := range out[from] {
				at[moved.Name] = to
			}
			out[from], out[to] = nil, slices.Concat(out[from], out[to])
		}
	}
	return slices.DeleteFunc(out, func(group []removal) bool { return len(group) == 0 })
}

// fallen says of each group that falls below its minimum whether it moves whole, and returns their names.
func (p *planner) fallen(group []removal) (names []string, text string) {
	below, moves := p.below(group)
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

// together says with how many nodes the node goes, and why; empty if it goes alone. It begins a sentence.
func (p *planner) together(node string) string {
	t := p.gangs.ties[node]
	if len(t.nodes) < 2 {
		return ""
	}
	return fmt.Sprintf("group %s moves whole, with all %d nodes that it ties together: ", t.group.Name, len(t.nodes))
}
