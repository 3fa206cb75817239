package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
)

// way derives the commands that lead from the start of the round to the state that was found. First
// come forced nodes one by one, then empty nodes, then nodes whose pods fit on nodes that stay. The
// others follow in the smallest groups that save something. Nodes with pods that an earlier round
// moved stay. After so many direct commands that buy for a saving, nodes are deleted before others
// are bought, see planner.deletions.
//
// The state becomes that after the commands, except that no pod has moved yet. whole says whether
// they reach the whole state, and held whether budgets keep nodes back.
func (p *planner) way(direct int) (whole, held bool) {
	list, to := p.fromStart(), p.destination()
	p.state, p.stuck = p.start.clone(), nil
	p.units = p.unitPrices()
	p.rebased = nil
	step := func(v move) (left []move) {
		for len(v.nodes) > 0 && p.torn(v) == nil {
			q := p.stepOf(v, &to)
			if !p.accepts(v, q.Buy) {
				break
			}
			a := p.ask(q)
			if a.OK() && len(a.NewNodes) >= len(q.Buy) {
				if !p.accepts(v, to.lasting(a.NewNodes)) { // this command alone leaves fewer types to choose from
					break
				}
				p.carryOut(v, [][]*member{v.nodes}, &a)
				return left
			}
			rest, out := p.unstuck(v.nodes, a.stuck()) // it may be right without the nodes of unplaced pods
			if len(out) == 0 {
				break
			}
			v.nodes, left = rest, append(left, pieces([]move{v.of(out)})...)
		}
		return append(left, pieces([]move{v})...)
	}
	moved := p.movedAlready()
	waiting := slices.DeleteFunc(slices.Clone(list), func(v move) bool { // a pod would move a second time, or the node was bought
		return v.nodes[0].bought != nil || slices.ContainsFunc(v.nodes[0].Pods, func(pod *corev1.Pod) bool { return moved[pod] })
	})
	whole = len(waiting) == len(list) // otherwise the state differs from the one that the search ended with
	var over []move
	tried := -1 // how many commands there were when deletions were tried
	for groups := p.groups(waiting, &to); len(groups) > 0 && !p.ended(); {
		left, again := []move(nil), false
		for i, v := range groups {
			buys := v.method == eligibility.Consolidation && len(p.stepOf(v, &to).Buy) > 0
			if buys && direct <= 0 && tried < len(p.out.Commands) {
				left = append(left, p.deletions(groups[i:], left, &to)...)
				tried, again = len(p.out.Commands), true
				break
			}
			now, later := p.allowed(v)
			if len(later) > 0 {
				over = append(over, v.of(later))
			}
			made := len(p.out.Commands)
			if len(now) > 0 {
				left = append(left, step(v.of(now))...)
			}
			if buys && len(p.out.Commands) > made {
				direct--
			}
		}
		if left = p.withoutHosts(left, &to); again || len(left) < len(waiting) {
			waiting = left
			groups = p.groups(waiting, &to)
			continue
		}
		joined := pairs(groups, false) // nodes may have to go together because of constraints between pods or shared new nodes
		if len(joined) == len(groups) {
			joined = pairs(groups, true)
		}
		if len(joined) == len(groups) {
			for _, v := range groups { // the earlier commands are right without them
				if p.stay(v, &to); !saves(v.method) {
					p.stuck = append(p.stuck, question(v.nodes).Remove...)
				}
			}
			joined, whole = nil, false
		}
		groups = joined
	}
	held, whole = len(over) > 0, whole && len(to.hosts) == 0
	for _, v := range largestFirst(over) {
		if len(p.out.Commands) > 0 || p.ended() {
			break
		}
		if a, waves, ok := p.inWaves(v, &to); ok {
			p.carryOut(v, waves, &a)
		}
	}
	p.keepFor(list, &to)
	p.out.After = p.sim
	if p.rebased != nil {
		p.sim = p.rebased()
	}
	return whole, held
}

// lasting returns the new nodes with the alternatives that also hold what later commands place there.
func (to *destination) lasting(list []NewNode) []NewNode {
	out := slices.Clone(list)
	for i := range out {
		if all := to.bought[out[i].Name]; len(all.Pods) > len(out[i].Pods) {
			out[i].Alternatives = both(out[i].Alternatives, all.Alternatives)
		}
	}
	return out
}

// both returns the alternatives of the first list whose types the second has, too.
func both(list, also []Alternative) []Alternative {
	return slices.DeleteFunc(slices.Clone(list), func(a Alternative) bool {
		return !slices.ContainsFunc(also, func(b Alternative) bool { return a.InstanceType == b.InstanceType })
	})
}

// first gives back the node that gains most by itself now, if it gains more than least. Its command
// is possible, because the answer is about the cluster as it is.
func (p *planner) first() {
	p.units = p.unitPrices()
	moved, most := p.movedAlready(), p.least
	var best move
	var answer Answer
	for _, m := range p.candidates() {
		set := p.tied(m)
		if p.weigh(set, 0).net() <= most || len(p.within(set)) < len(set) || p.block(m, eligibility.Consolidation) || slices.ContainsFunc(set, func(m *member) bool {
			return m.bought != nil || slices.ContainsFunc(m.Pods, func(pod *corev1.Pod) bool { return moved[pod] })
		}) {
			continue
		}
		if a, w, ok := p.try(set, most, false); ok && w.net() > most {
			best, answer, most = move{method: eligibility.Consolidation, nodes: set}, a, w.net()
		}
	}
	if len(best.nodes) > 0 && !p.ended() {
		p.commit(best, &answer)
	}
}

// movedAlready returns the pods that the commands so far move.
func (p *planner) movedAlready() map[*corev1.Pod]bool {
	out := map[*corev1.Pod]bool{}
	for i := range p.out.Commands {
		for _, pl := range p.out.Commands[i].Placements {
			out[pl.Pod] = true
		}
	}
	return out
}

// carryOut makes a command of the answer and charges the budgets.
func (p *planner) carryOut(v move, waves [][]*member, a *Answer) {
	v.nodes = slices.Concat(waves...)
	for name, alternatives := range a.Filled { // a launch may choose any of them
		if at, ok := p.purchases[name]; ok {
			n := &p.out.Commands[at[0]].NewNodes[at[1]]
			n.Alternatives = both(n.Alternatives, alternatives)
		}
	}
	p.command(v, waves, a)
	for k := range a.NewNodes {
		p.purchases[a.NewNodes[k].Name] = [2]int{len(p.out.Commands) - 1, k}
	}
	p.ledger = p.ledger.chargedInWaves(v.method, waves)
	p.remove(v, a)
	p.rebased = a.Rebased
}

// largestFirst returns the groups merged into one for each method, then halves of these, and so on
// down to the groups.
func largestFirst(groups []move) []move {
	joined := pairs(groups, false)
	if len(joined) == len(groups) {
		return groups
	}
	return append(largestFirst(joined), groups...)
}

// inWaves returns the answer for a move that is larger than a budget, and the waves in which its
// nodes leave. Everything is bought first. Each wave has as many nodes as the budgets allow at once
// when those before it have gone, and is right while the nodes of later waves exist but are cordoned.
// A node whose pods are refused waits until others have gone, and stays if that does not help. ok says
// whether the rest of the move pays.
func (p *planner) inWaves(v move, to *destination) (a Answer, waves [][]*member, ok bool) {
	before, reached := p.clone(), destination{maps.Clone(to.moved), to.bought, to.hosts}
	var order []Placement
	var refused []*member
	group, budgets := v.nodes, p.ledger
	whole := p.stepOf(v, to)
	for progress := true; (len(group) > 0 || progress && len(refused) > 0) && !p.ended(); {
		if len(group) == 0 {
			group, refused, progress = refused, nil, false
		}
		wave, later := budgets.split(v.method, group)
		if len(wave) == 0 { // its pool allows none
			break
		}
		if g := p.tornLater(slices.Concat(waves...), v.of(wave)); g != nil { // it moves in one wave or not at all
			group = p.without(g, group)
			continue
		}
		q := p.stepOf(v.of(wave), to)
		q.Elsewhere, q.MaxCost, q.Cordon = true, 0, question(slices.Concat(later, refused)).Remove
		if len(waves) == 0 {
			q.Buy = whole.Buy
		}
		part := p.ask(q)
		if !part.OK() {
			rest, out := p.unstuck(wave, part.stuck())
			if len(out) == 0 {
				rest, out = nil, wave
			}
			group, refused = slices.Concat(rest, later), append(refused, out...)
			continue
		}
		for _, pl := range part.Placements {
			reached.moved[pl.Pod] = pl.Node
		}
		order, waves = append(order, part.Placements...), append(waves, wave)
		p.remove(v.of(wave), &part)
		group, progress, budgets = later, true, budgets.gone(wave)
	}
	p.state = before
	if v.nodes = slices.Concat(waves...); len(v.nodes) == 0 {
		return a, nil, false
	}
	q := p.stepOf(v, &reached)
	if !p.accepts(v, q.Buy) {
		return a, nil, false
	}
	a = p.ask(q)
	a.Placements = order
	return a, waves, a.OK() && p.accepts(v, to.lasting(a.NewNodes))
}

// allowed splits the nodes of the move into those that the budgets allow now and the others, and
// sets the verdicts of the others. Empty nodes can be split. Any other move goes as a whole or not
// at all, because a part would not pay.
func (p *planner) allowed(v move) (now, later []*member) {
	now, later = p.ledger.split(v.method, v.nodes)
	if len(later) > 0 && v.method != eligibility.Emptiness {
		now, later = nil, v.nodes
	}
	for _, m := range later {
		held := m.verdict(OverBudget, v.method, "").after(p.verdictOf(m.Name))
		held.Detail = "" // budgets says which
		*p.verdictOf(m.Name), p.mates[m.Name] = held, nil
		if v.method != eligibility.Emptiness {
			p.mates[m.Name] = question(v.nodes).Remove
		}
	}
	return now, later
}

// stay sets the verdicts of nodes for which there is no command, or none that pays.
func (p *planner) stay(v move, to *destination) {
	outcome, detail := WouldNotFit, "its pods would fit only if pods that wait for them moved first"
	torn := p.torn(v)
	if torn != nil {
		detail = fmt.Sprintf("group %s would fall below its minimum, and not all of its pods can move with those of the node", torn.Name)
	}
	outranked := !p.pays(v, p.stepOf(v, to).Buy)
	if torn == nil && !outranked && v.method == eligibility.Consolidation {
		outcome, detail = "", "" // explanations asks what holds its pods now
	}
	if outranked {
		outcome, detail = Outranked, "by itself it would save less than its disruption costs, or less than the required minimum"
	}
	for _, m := range v.nodes {
		with := p.together(m.Name)
		if torn != nil && !outranked {
			with = ""
		}
		*p.verdictOf(m.Name) = m.verdict(outcome, v.method, with+detail).after(p.verdictOf(m.Name))
	}
}

// verdictOf returns the verdict of a node of the cluster, and an empty one for any other node.
func (p *planner) verdictOf(node string) *Verdict {
	at, found := slices.BinarySearchFunc(p.out.Verdicts, node, func(v Verdict, name string) int { return strings.Compare(v.Node, name) })
	if !found {
		return &Verdict{Node: node}
	}
	return &p.out.Verdicts[at]
}

// pairs joins neighbours of the same method in pairs. Interruptions and expirations are joined only
// if all is set, because each has its own deadline.
func pairs(groups []move, all bool) []move {
	var out []move
	for i := 0; i < len(groups); i++ {
		v := groups[i]
		if i+1 < len(groups) && v.method == groups[i+1].method && (all || !forceful(v.method)) {
			i++
			v = join(v, groups[i])
		}
		out = append(out, v)
	}
	return out
}

// accepts reports whether the move, with these new nodes, may be a command by itself: it must be
// made, or its nodes are empty, or it pays and respects the rules for spot nodes.
func (p *planner) accepts(v move, bought []NewNode) bool {
	return v.method != eligibility.Consolidation || p.pays(v, bought) && !p.spotForSpot(v.nodes, bought)
}

// pays reports whether the move, with these new nodes, saves enough, if saving is its purpose
// and its nodes are not empty.
func (p *planner) pays(v move, bought []NewNode) bool {
	a := Answer{NewNodes: bought}
	w := p.weigh(v.nodes, a.cost())
	return v.method != eligibility.Consolidation || p.saves(w) && w.net() > 0
}

// stepOf asks to give back the nodes and to buy the missing nodes that their pods need.
func (p *planner) stepOf(v move, to *destination) Question {
	q := p.moveQuestion(v.nodes, v.stranded, to.moved)
	q.LeaveDomains = v.leaves
	for _, name := range p.withReplacements(p.needs(q.Pods, to), v.nodes, to) {
		q.Buy = append(q.Buy, to.bought[name])
	}
	if a := (&Answer{NewNodes: q.Buy}); v.method == eligibility.Consolidation && costOf(v.nodes) > a.cost() {
		q.MaxCost = costOf(v.nodes)
	}
	return q
}

// needs returns the names of the nodes that have to be bought for the pods, sorted.
func (p *planner) needs(pods []*corev1.Pod, to *destination) []string {
	names := map[string]bool{}
	for _, pod := range pods {
		if name := to.moved[pod]; to.bought[name].Name != "" && p.nodes[name] == nil {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// groups joins moves of single nodes into moves of one command each, in the order of the commands.
func (p *planner) groups(list []move, to *destination) []move {
	var out, empty, deleted, replaced []move
	needs := map[string][]string{} // by node
	for _, v := range list {
		m := v.nodes[0]
		needs[m.Name] = p.needs(m.Pods, to)
		switch {
		case v.method == eligibility.Emptiness:
			empty = append(empty, v)
		case v.method != eligibility.Consolidation:
			out = append(out, v)
		case len(needs[m.Name]) == 0:
			deleted = append(deleted, v)
		default:
			replaced = append(replaced, v)
		}
	}
	if len(empty) > 0 {
		out = append(out, join(empty...))
	}
	rank := func(a, b move) int {
		x, y := a.nodes[0], b.nodes[0]
		return cmp.Or(cmp.Compare(p.o.Ranker.Rank(y.Candidate), p.o.Ranker.Rank(x.Candidate)), strings.Compare(x.Name, y.Name))
	}
	slices.SortFunc(deleted, rank)
	out = append(out, deleted...)
	slices.SortFunc(replaced, rank)
	number, nodes := map[string]int{}, []NewNode{} // to buy
	buys := make([][]int, len(replaced))
	for i, v := range replaced {
		for _, name := range needs[v.nodes[0].Name] {
			if _, ok := number[name]; !ok {
				number[name], nodes = len(nodes), append(nodes, to.bought[name])
			}
			buys[i] = append(buys[i], number[name])
		}
	}
	var near []int // the first moves that are in no group
	var group []move
	var bought []NewNode // for the group
	there := make([]bool, len(nodes))
	for next := 0; next < len(replaced) || len(near) > 0; { // greedily: the one that saves most with the nodes bought so far
		for ; len(near) < window && next < len(replaced); next++ {
			near = append(near, next)
		}
		best, most := 0, deprovision.Price(0)
		for i, at := range near {
			saves := replaced[at].nodes[0].CostPerHour
			for _, k := range buys[at] {
				if !there[k] {
					saves -= nodes[k].cost()
				}
			}
			if i == 0 || saves > most {
				best, most = i, saves
			}
		}
		at := near[best]
		near = slices.Delete(near, best, best+1)
		for _, k := range buys[at] {
			if !there[k] { // bought once
				bought, there[k] = append(bought, nodes[k]), true
			}
		}
		group = append(group, replaced[at])
		if len(near) == 0 && next == len(replaced) || p.accepts(join(group...), bought) {
			out, group, bought = append(out, join(group...)), nil, nil
		}
	}
	return p.joined(out)
}

// window limits how many nodes groups compares at each step, and how many sets examines thoroughly.
const window = 64

// command adds the command that gives back the nodes of the move.
func (p *planner) command(v move, waves [][]*member, a *Answer) {
	set := slices.Clone(v.nodes)
	slices.SortFunc(set, func(a, b *member) int { return strings.Compare(a.Name, b.Name) })
	c := Command{Method: v.method, Kind: Delete, NewNodes: a.NewNodes, Placements: a.Placements, SavingsPerHour: priceOf(set) - a.price(), Why: v.why, AtOnce: v.atOnce, TerminateFirst: v.first, Stranded: v.stranded}
	if len(a.NewNodes) > 0 {
		c.Kind = Replace
	}
	if c.Why == "" {
		c.Why = reasonOf(a, len(set))
	}
	if names, text := p.fallen(v.nodes); len(names) > 0 {
		c.Groups, c.Why = names, c.Why+text
	}
	if len(waves) > 1 {
		for _, wave := range waves {
			c.Waves = append(c.Waves, question(wave).Remove)
		}
		c.Why += fmt.Sprintf("; budgets require %d waves", len(waves))
	}
	c.Why += p.strand(&c) + lost(&c) + p.lingers(set, a)
	detail := string(c.Method) + ": " + c.Why
	if len(c.NewNodes) > 0 {
		var names []string
		for _, n := range c.NewNodes {
			names = append(names, n.InstanceType)
		}
		slices.Sort(names)
		when := ""
		if c.TerminateFirst {
			when = " then"
		}
		detail += fmt.Sprintf("; nodes to buy%s: %d (%s)", when, len(c.NewNodes), strings.Join(slices.Compact(names), ", "))
	}
	for _, m := range set {
		own := member{Candidate: deprovision.NewCandidate(m.Node, p.cluster.Now)} // without the pods that arrived
		c.Nodes = append(c.Nodes, own.Candidate)
		c.Disruption += own.Disruption
		*p.verdictOf(m.Name) = own.verdict(Chosen, c.Method, detail).after(p.verdictOf(m.Name))
	}
	p.out.Commands = append(p.out.Commands, c)
}

// reasonOf says in words what replaces the nodes.
func reasonOf(a *Answer, nodes int) string {
	switch {
	case len(a.NewNodes)+len(a.Placements) == 0:
		return "nothing runs there that would have to move"
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
