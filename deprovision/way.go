package deprovision

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
)

// way derives the commands that lead from the cluster to the target: what must go first, each node by itself, then what is empty,
// then nodes whose pods fit on those that stay, then the others, together with as few as it takes to save something.
func (p *planner) way() {
	sim := p.start
	bought := map[string]bool{}
	last := false
	step := func(group []removal) bool {
		q, saving := p.stepOf(group, bought)
		if group[0].method == eligibility.Consolidation && saving <= tiny && !last {
			return false
		}
		a := p.askOf(sim, q)
		if !a.OK() {
			return false
		}
		for _, n := range q.Buy {
			bought[n.Name] = true
		}
		p.command(group, &a)
		if a.After != nil {
			sim = a.After()
		}
		return true
	}
	waiting := p.groups()
	for !last && len(waiting) > 0 && !p.ended() {
		before := len(waiting)
		waiting = slices.DeleteFunc(waiting, step)
		if len(waiting) == before { // constraints between pods, or nodes that are to be bought together, make them wait for each other
			waiting = pairs(waiting)
			last = len(waiting) == 1
		}
	}
	if len(waiting) > 0 && !p.ended() && !step(waiting[0]) {
		p.keep(waiting[0]) // all others stay right without them
	}
	p.out.After = sim
	p.out.PricePerHourAfter = p.out.PricePerHour
	for i := range p.out.Commands {
		p.out.PricePerHourAfter -= p.out.Commands[i].SavingsPerHour
	}
}

// keep says that nodes stay for which no command was found.
func (p *planner) keep(group []removal) {
	for _, r := range group {
		if v := p.verdictOf(r.Name); v != nil {
			v.Outcome, v.Method, v.Detail = WouldNotFit, r.method, "its pods would fit only if others moved first that wait for them"
			v.Disruption, v.PricePerHour = r.Disruption, r.PricePerHour
		}
	}
}

func (p *planner) verdictOf(node string) *Verdict {
	at, ok := slices.BinarySearchFunc(p.out.Verdicts, node, func(v Verdict, name string) int { return strings.Compare(v.Node, name) })
	if !ok {
		return nil
	}
	return &p.out.Verdicts[at]
}

// pairs puts every two groups together.
func pairs(groups [][]removal) [][]removal {
	var out [][]removal
	for pair := range slices.Chunk(groups, 2) {
		out = append(out, slices.Concat(pair...))
	}
	return out
}

// stepOf asks to give the nodes back, and to buy what their pods need of what is not bought yet. It saves so much an hour.
func (p *planner) stepOf(group []removal, bought map[string]bool) (q Question, saving float64) {
	q = p.exactly(members(group))
	needs := map[string]bool{}
	for _, node := range q.Moves {
		if _, ok := p.bought[node]; ok && !bought[node] {
			needs[node] = true
		}
	}
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		q.Buy = append(q.Buy, p.bought[name])
		sum += p.bought[name].PricePerHour
	}
	total := price(members(group))
	if group[0].method == eligibility.Consolidation && total > sum {
		q.MaxPrice = total
	}
	return q, total - sum
}

func members(group []removal) []*member {
	out := make([]*member, len(group))
	for i := range group {
		out[i] = group[i].member
	}
	return out
}

// groups are the nodes that go, in the order of the commands, with those together that are needed to save something.
func (p *planner) groups() [][]removal {
	var out [][]removal
	var empty, deleted, replaced []removal
	first := map[string]string{} // by node: the first by name of the new nodes that its pods go to
	for _, r := range p.gone {
		for _, pod := range r.node.Reschedulable() {
			if to := p.moved[pod]; p.bought[to].Name != "" && (first[r.Name] == "" || to < first[r.Name]) {
				first[r.Name] = to
			}
		}
		switch {
		case r.method == eligibility.Emptiness:
			empty = append(empty, r)
		case r.method != eligibility.Consolidation:
			out = append(out, []removal{r})
		case first[r.Name] == "":
			deleted = append(deleted, r)
		default:
			replaced = append(replaced, r)
		}
	}
	if len(empty) > 0 {
		out = append(out, empty)
	}
	rank := func(a, b removal) int {
		return cmp.Or(cmp.Compare(p.o.Ranker.Rank(b.Candidate), p.o.Ranker.Rank(a.Candidate)), strings.Compare(a.Name, b.Name))
	}
	slices.SortFunc(deleted, rank)
	for _, r := range deleted {
		out = append(out, []removal{r})
	}
	slices.SortFunc(replaced, func(a, b removal) int { return cmp.Or(strings.Compare(first[a.Name], first[b.Name]), rank(a, b)) })
	bought := map[string]bool{}
	var group []removal
	saving := 0.0
	for i, r := range replaced {
		group = append(group, r)
		saving += r.PricePerHour
		for _, pod := range r.node.Reschedulable() {
			if to := p.moved[pod]; p.bought[to].Name != "" && !bought[to] {
				bought[to] = true
				saving -= p.bought[to].PricePerHour
			}
		}
		if saving > tiny || i == len(replaced)-1 {
			out, group, saving = append(out, group), nil, 0
		}
	}
	return out
}

// command writes down what the group comes to.
func (p *planner) command(group []removal, a *Answer) {
	set := members(group)
	slices.SortFunc(set, func(a, b *member) int { return strings.Compare(a.Name, b.Name) })
	c := Command{Method: group[0].method, Kind: Delete, NewNodes: a.NewNodes, Placements: a.Placements, SavingsPerHour: price(set) - a.PricePerHour, Why: group[0].why, AtOnce: group[0].atOnce}
	if len(a.NewNodes) > 0 {
		c.Kind = Replace
	}
	if c.Why == "" {
		c.Why = together(a, len(set))
	}
	for _, m := range set {
		c.Nodes = append(c.Nodes, candidate(m.node, p.cluster.Now))
		c.Disruption += m.Disruption
	}
	detail := string(c.Method) + ": " + c.Why
	if len(c.NewNodes) > 0 {
		var names []string
		for _, n := range c.NewNodes {
			names = append(names, n.InstanceType)
		}
		slices.Sort(names)
		detail += fmt.Sprintf("; %d nodes are bought (%s)", len(c.NewNodes), strings.Join(slices.Compact(names), ", "))
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if v := p.verdictOf(n.Name); v != nil {
			v.Method, v.Detail, v.Disruption, v.PricePerHour = c.Method, detail, n.Disruption, n.PricePerHour
		}
	}
	p.out.Evictions += len(c.Placements)
	p.out.Commands = append(p.out.Commands, c)
}

// together says in words what takes the place of nodes.
func together(a *Answer, nodes int) string {
	switch {
	case len(a.NewNodes) == 0 && nodes == 1:
		return "its pods fit on other nodes"
	case len(a.NewNodes) == 0:
		return "their pods fit on other nodes"
	case len(a.NewNodes) == 1 && nodes == 1:
		return "a cheaper node holds its pods"
	case len(a.NewNodes) == 1:
		return fmt.Sprintf("one new node does the work of %d", nodes)
	case nodes == 1:
		return "smaller nodes hold its pods for less"
	}
	return fmt.Sprintf("%d new nodes do the work of %d", len(a.NewNodes), nodes)
}
