package deprovision

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// way derives the commands from the start of the round to the target: forced nodes one by one, empty nodes, nodes whose pods fit on
// nodes that stay, then the others in the smallest groups that save something. Nodes with pods that an earlier round moved stay. The
// state becomes that after the commands, except that no pod has moved yet. It reports whether they reach the whole target, and whether
// budgets keep nodes back.
func (p *planner) way() (whole, held bool) {
	target := p.state
	p.state = p.start.clone()
	p.units = p.unitPrices()
	var fresh func() Simulator
	step := func(group []removal) (left []removal) {
		for len(group) > 0 && p.torn(group) == nil {
			q, cost := p.stepOf(group, &target)
			if group[0].method == eligibility.Consolidation && !p.pays(group, cost) {
				break
			}
			a := p.ask(q)
			if !a.OK() { // it may be right without the nodes of unplaced pods
				rest, out := p.unstuck(group, a.stuck())
				if len(out) == 0 {
					break
				}
				group, left = rest, append(left, out...)
				continue
			}
			p.carryOut([][]removal{group}, &a)
			fresh = a.Rebased
			return left
		}
		return append(left, group...)
	}
	var over [][]removal
	waiting := slices.DeleteFunc(slices.Clone(target.gone), p.movesAgain)
	groups := p.groups(waiting, &target)
	whole = len(waiting) == len(target.gone) // otherwise the state is another than the search ended with
	for len(groups) > 0 && !p.ended() {
		var left []removal
		for _, group := range groups {
			now, later := p.allowed(group)
			if len(later) > 0 {
				over = append(over, later)
			}
			if len(now) > 0 {
				left = append(left, step(now)...)
			}
		}
		switch {
		case len(left) < len(waiting):
			waiting = left
			groups = p.groups(waiting, &target)
		default: // nodes may have to go together because of constraints between pods or shared new nodes
			joined := pairs(groups)
			if len(joined) == len(groups) {
				for _, group := range groups { // the commands before them are right without them
					p.stay(group, &target)
				}
				joined, whole = nil, false
			}
			groups = joined
		}
	}
	held = len(over) > 0
	for _, group := range largestFirst(over) {
		if len(p.out.Commands) > 0 || p.ended() {
			break
		}
		if a, waves, ok := p.inWaves(group, &target); ok {
			p.carryOut(waves, &a)
			fresh = a.Rebased
		}
	}
	p.out.After = p.sim
	if fresh != nil {
		p.sim = fresh()
	}
	return whole, held
}

// carryOut makes the answer a command, and the budgets are charged with its first wave.
func (p *planner) carryOut(waves [][]removal, a *Answer) {
	group := slices.Concat(waves...)
	p.command(group, waves, a)
	for _, r := range waves[0] {
		p.ledger = p.ledger.Take(r.Pool, 1)
	}
	from := len(p.gone)
	p.remove(group[0].method, members(group), a, "")
	copy(p.gone[from:], group)
}

// largestFirst is the groups joined to one for each method, then halves of these, and so on down to the groups.
func largestFirst(groups [][]removal) [][]removal {
	joined := pairs(groups)
	if len(joined) == len(groups) {
		return groups
	}
	return append(largestFirst(joined), groups...)
}

// inWaves is the answer for a group that is larger than a budget, and the waves in which its nodes leave: each holds as many as the
// budgets allow at once, and is right while the nodes of later waves are there, cordoned. Everything is bought first. A node whose pods
// are refused waits until others have gone, and stays if that does not help. It reports whether what remains of the group pays.
func (p *planner) inWaves(group []removal, target *state) (a Answer, waves [][]removal, ok bool) {
	before, reached := p.clone(), *target
	reached.moved = maps.Clone(target.moved)
	var order []Placement
	var refused []removal
	whole, _ := p.stepOf(group, target)
	for progress := true; (len(group) > 0 || progress && len(refused) > 0) && !p.ended(); {
		if len(group) == 0 {
			group, refused, progress = refused, nil, false
		}
		ledger := p.ledger
		var wave, later []removal
		for _, r := range group {
			if of := budgetReason(r.method, len(r.base)); ledger.Left(r.Pool, of) < 1 {
				later = append(later, r)
				continue
			}
			ledger = ledger.Take(r.Pool, 1)
			wave = append(wave, r)
		}
		if len(wave) == 0 { // its pool allows none
			break
		}
		if g := p.tornLater(slices.Concat(waves...), wave); g != nil { // it moves in one wave or not at all
			group = p.without(g, group)
			continue
		}
		q, _ := p.stepOf(wave, target)
		q.Elsewhere, q.MaxCost, q.Cordon = true, 0, question(members(slices.Concat(later, refused))).Remove
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
		p.remove(group[0].method, members(wave), &part, "")
		group, progress = later, true
	}
	p.state = before
	if len(waves) == 0 {
		return a, nil, false
	}
	all := slices.Concat(waves...)
	q, cost := p.stepOf(all, &reached)
	if all[0].method == eligibility.Consolidation && !p.pays(all, cost) {
		return a, nil, false
	}
	a = p.ask(q)
	a.Placements = order
	return a, waves, a.OK()
}

// allowed is the group as far as the budgets allow it now, and the rest: as many empty nodes as they do, and no part of another group,
// because that would not pay. It sets the verdicts of the rest.
func (p *planner) allowed(group []removal) (now, later []removal) {
	if forceful(group[0].method) {
		return group, nil
	}
	ledger := p.ledger
	for _, r := range group {
		if ledger.Left(r.Pool, budgetReason(r.method, len(r.base))) < 1 {
			later = append(later, r)
			continue
		}
		ledger = ledger.Take(r.Pool, 1)
		now = append(now, r)
	}
	if len(later) > 0 && group[0].method != eligibility.Emptiness {
		now, later = nil, group
	}
	for _, r := range later {
		if v := p.verdictOf(r.Name); v != nil {
			v.Outcome, v.Method, v.Disruption, v.PricePerHour = OverBudget, r.method, r.Disruption, r.PricePerHour
		}
	}
	return now, later
}

// forceful reports whether the method gives nodes back whatever budgets say.
func forceful(m eligibility.Method) bool {
	return m == eligibility.Interruption || m == eligibility.Expiration
}

// budgets fills in the details of the nodes that budgets keep, now that it is known how many nodes the plan takes.
func (p *planner) budgets() {
	for i := range p.cluster.Nodes {
		n := &p.cluster.Nodes[i]
		if v := p.verdictOf(n.Name()); v.Outcome == OverBudget {
			v.Detail = p.together(n.Name()) + p.ledger.Why(n.PoolName(), budgetReason(v.Method, len(n.Reschedulable())))
		}
	}
}

// budgetReason is the reason under which budgets count a node with so many pods that the method gives back.
func budgetReason(method eligibility.Method, pods int) nodepool.Reason {
	switch {
	case method == eligibility.Drift:
		return nodepool.Drifted
	case pods == 0:
		return nodepool.Empty
	}
	return nodepool.Underutilized
}

// movesAgain reports whether giving back the node moves a pod a second time, or gives back a node that the plan bought.
func (p *planner) movesAgain(r removal) bool {
	return r.node == nil || slices.ContainsFunc(r.base, func(pod *corev1.Pod) bool { return p.done[pod] })
}

// stay sets the verdicts of nodes for which there is no command, or none that pays.
func (p *planner) stay(group []removal, target *state) {
	for _, r := range group {
		if v := p.verdictOf(r.Name); v != nil {
			v.Outcome, v.Method, v.Detail = WouldNotFit, r.method, p.together(r.Name)+"its pods would fit only if others moved first that wait for them"
			if g := p.torn(group); g != nil {
				v.Detail = fmt.Sprintf("group %s would fall below its minimum, and not all of its pods can move with those of the node", g.Name)
			}
			if _, cost := p.stepOf(group, target); r.method == eligibility.Consolidation && !p.pays(group, cost) {
				v.Outcome, v.Detail = Outranked, p.together(r.Name)+"by itself it would save less than its disruption costs, or than is asked"
			}
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

// pairs joins every two neighbours of one method. Interruptions are not joined: each has its own deadline.
func pairs(groups [][]removal) [][]removal {
	var out [][]removal
	for i := 0; i < len(groups); i++ {
		group := groups[i]
		if i+1 < len(groups) && group[0].method == groups[i+1][0].method && !forceful(group[0].method) {
			i++
			group = slices.Concat(group, groups[i])
		}
		out = append(out, group)
	}
	return out
}

// pays reports whether giving back the nodes for new ones of this cost pays by itself.
func (p *planner) pays(group []removal, bought Price) bool {
	w := p.weigh(members(group), bought)
	return p.saves(w) && w.net() > 0
}

// stepOf asks to give back the nodes and to buy the target's nodes that their pods need and that are not there yet, and returns what
// these cost.
func (p *planner) stepOf(group []removal, target *state) (q Question, cost Price) {
	q = p.moveQuestion(group, target.moved)
	needs := map[string]bool{}
	for _, node := range q.Moves {
		if _, ok := target.bought[node]; ok && p.nodes[node] == nil {
			needs[node] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		n := target.bought[name]
		q.Buy = append(q.Buy, n)
		cost += n.cost()
	}
	if total := costOf(members(group)); group[0].method == eligibility.Consolidation && total > cost {
		q.MaxCost = total
	}
	return q, cost
}

// groups are the nodes of one command each, in the order of the commands.
func (p *planner) groups(list []removal, target *state) [][]removal {
	var out [][]removal
	var empty, deleted, replaced []removal
	needs := map[string][]string{} // by node: the new nodes that its pods go to, sorted
	for _, r := range list {
		for _, pod := range r.base {
			if to := target.moved[pod]; target.bought[to].Name != "" && p.nodes[to] == nil {
				needs[r.Name] = append(needs[r.Name], to)
			}
		}
		slices.Sort(needs[r.Name])
		needs[r.Name] = slices.Compact(needs[r.Name])
		switch {
		case r.method == eligibility.Emptiness:
			empty = append(empty, r)
		case r.method != eligibility.Consolidation:
			out = append(out, []removal{r})
		case len(needs[r.Name]) == 0:
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
	slices.SortFunc(replaced, rank)
	bought := map[string]bool{}
	var group []removal
	cost := Price(0)
	for len(replaced) > 0 { // greedily: the one that saves most with the nodes bought so far
		best, most := 0, Price(0)
		for i, r := range replaced[:min(window, len(replaced))] {
			saves := r.CostPerHour
			for _, to := range needs[r.Name] {
				if n := target.bought[to]; !bought[to] {
					saves -= n.cost()
				}
			}
			if i == 0 || saves > most {
				best, most = i, saves
			}
		}
		for _, to := range needs[replaced[best].Name] {
			bought[to] = true
		}
		group, cost = append(group, replaced[best]), cost+replaced[best].CostPerHour-most
		replaced = slices.Delete(replaced, best, best+1)
		if len(replaced) == 0 || p.pays(group, cost) {
			out, group, cost = append(out, group), nil, 0
		}
	}
	return p.joined(out)
}

// window bounds how many nodes groups compares at each step, and how many sets looks at thoroughly.
const window = 64

// command adds the command that gives back the group.
func (p *planner) command(group []removal, waves [][]removal, a *Answer) {
	set := members(group)
	slices.SortFunc(set, func(a, b *member) int { return strings.Compare(a.Name, b.Name) })
	c := Command{Method: group[0].method, Kind: Delete, NewNodes: a.NewNodes, Placements: a.Placements, SavingsPerHour: priceOf(set) - a.price(), Why: group[0].why, AtOnce: group[0].atOnce, Stranded: group[0].stranded}
	if len(a.NewNodes) > 0 {
		c.Kind = Replace
	}
	if c.Why == "" {
		c.Why = reasonOf(a, len(set))
	}
	if names, text := p.fallen(group); len(names) > 0 {
		c.Groups, c.Why = names, c.Why+text
	}
	if len(waves) > 1 {
		for _, wave := range waves {
			var names []string
			for _, r := range wave {
				names = append(names, r.Name)
			}
			c.Waves = append(c.Waves, names)
		}
		c.Why += fmt.Sprintf("; budgets ask for %d waves", len(waves))
	}
	for _, m := range set {
		c.Nodes = append(c.Nodes, candidate(m.node, p.cluster.Now))
		c.Disruption += c.Nodes[len(c.Nodes)-1].Disruption
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
			v.Outcome, v.Method, v.Detail, v.Disruption, v.PricePerHour = Chosen, c.Method, detail, n.Disruption, n.PricePerHour
		}
	}
	for _, pl := range c.Placements {
		p.done[pl.Pod] = true
	}
	p.out.Commands = append(p.out.Commands, c)
}

// reasonOf says in words what replaces the nodes.
func reasonOf(a *Answer, nodes int) string {
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
