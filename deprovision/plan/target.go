package plan

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
)

// consolidation is a local search: it moves from one state to a better one until it finds none.
// Each state is replayed so that pods move only once, and rebased so that a plan made from there
// finds nothing more either. It reports whether it ended because nothing more was found.
func (p *planner) consolidation() (quiet bool) {
	for !p.ended() {
		before := p.clone()
		p.units = p.unitPrices()
		start := p.gain()
		if !p.sets() {
			if !p.singles(nil) {
				return true
			}
			for p.singles(nil) {
			}
		}
		if p.replay() && p.gain() > start {
			continue
		}
		// The state cannot be reached with each pod moving once, so single nodes are tried instead.
		p.state = before
		best := start
		p.singles(func() bool {
			if !p.replay() || p.gain() <= best {
				return false
			}
			best = p.gain()
			return true
		})
		if best == start {
			return false
		}
	}
	return false
}

func (p *planner) asksFor(m eligibility.Method) bool {
	return p.o.Methods == nil || slices.Contains(p.o.Methods, m)
}

// gain returns the value of the objective for the state, compared with the start of the round.
func (p *planner) gain() deprovision.Price {
	bought := deprovision.Price(0)
	for name, m := range p.nodes {
		if p.start.nodes[name] == nil {
			bought += m.CostPerHour
		}
	}
	return p.weigh(nodesOf(p.moves), bought).net()
}

// spent returns the ledger after the moves of this state. At first only forced moves count:
// consolidation looks for the state that the cluster could have without budgets, and the commands
// go as far as the budgets allow.
func (p *planner) spent() ledger {
	ledger := p.ledger
	for _, v := range p.moves {
		for _, m := range v.nodes {
			if p.limited || !saves(v.method) {
				ledger, _ = ledger.charged(v.method, m)
			}
		}
	}
	return ledger
}

// within returns the set without the nodes that exceed the budgets, if budgets limit the search.
func (p *planner) within(set []*member) []*member {
	if !p.limited {
		return set
	}
	now, _ := p.spent().split(eligibility.Consolidation, set)
	return p.untorn(now)
}

// candidates returns the nodes that consolidation may give back, in the order of the ranker. It
// records why the others stay.
func (p *planner) candidates() []*member {
	ledger := p.spent()
	return slices.DeleteFunc(p.ranked(p.members()), func(m *member) bool {
		if p.block(m, eligibility.Consolidation) {
			return true
		}
		_, over := ledger.split(eligibility.Consolidation, []*member{m})
		for range over {
			p.note(m.verdict(OverBudget, eligibility.Consolidation, ""))
		}
		return len(over) > 0
	})
}

const (
	// Sets are chosen at this many prices of disruption. The first price is dearest times the price
	// at which the disruption of all nodes costs as much as the nodes. Each further price is a quarter
	// of the one before. Twice as many prices between the same ends save no more: 62.95% instead of
	// 62.96% on 110 fragmented clusters of 6 to 150 nodes.
	rates, dearest = 7, 4
	// Where budgets limit the search, sets begin at this many places of the ranking.
	places = 13
	// Giving back many nodes at once must gain 1/leastShare of the cost of all nodes over the
	// horizon; single nodes may gain less. Otherwise many small gains would follow each other, and
	// each requires examining all sets.
	leastShare = 500
	// Up to this many moves are tried one by one at the end. For more this would cost more than it
	// finds: on 20 fragmented clusters of 20 nodes it saved one purchase of 144 with half as many
	// questions again.
	few = 8
)

// choices returns sets of nodes that could go, from few evictions to many; the last is all nodes.
// They are the complements of fractional choices at several prices of disruption. If the simulator
// has no hint, they are the first nodes of the ranking.
func (p *planner) choices(list []*member) [][]*member {
	disruption := 0.0
	for _, m := range list {
		disruption += m.Disruption
	}
	average := costOf(list).Times(1 / max(1, disruption))
	ask := make([]NodeChoice, len(list))
	for i, m := range list {
		ask[i] = NodeChoice{Node: m.Name, Pods: m.Pods, Costs: make([]deprovision.Price, rates)}
		for k := range rates {
			unit := max(average.Times(math.Ldexp(dearest, -2*k)), p.units[m.Pool].Times(1/p.horizon(m)))
			ask[i].Costs[k] = m.CostPerHour - unit.Times(m.Disruption)
		}
	}
	var sets [][]*member
	for _, retain := range p.hint(ask) {
		var set []*member
		for i, m := range list {
			if !retain[i] {
				set = append(set, m)
			}
		}
		sets = append(sets, set)
	}
	for k := range rates {
		if len(sets) == k { // no hint
			sets = append(sets, list[:len(list)*(k+1)/rates])
		}
	}
	for k := range sets {
		sets[k] = p.closed(sets[k], list)
	}
	var out [][]*member
	most := 0
	if sets = append(sets, list); p.limited {
		sets = nil // as many nodes as the budgets allow, from several places of the ranking
		for k := range places {
			at := len(list) * k / places
			sets = append(sets, p.within(slices.Concat(list[at:], list[:at])))
		}
	}
	for _, set := range sets {
		moves := 0
		for _, m := range set {
			moves += len(m.Pods)
		}
		allowed := p.o.MaxEvictions == 0 || moves <= p.o.MaxEvictions-p.evictions()
		if n := len(out); len(set) > 1 && allowed && (n == 0 || p.limited || moves > most || len(set) > len(out[n-1])) {
			out, most = append(out, set), moves
		}
	}
	return out
}

// sets gives back the best set of nodes, with new nodes for pods that do not fit elsewhere. It
// reports whether there is a set that pays.
func (p *planner) sets() bool {
	list := p.candidates()
	if len(list) == 0 {
		return false
	}
	if !p.o.SpotToSpot && slices.ContainsFunc(list, p.spot) {
		// No spot node may be bought for spot nodes alone, so singles handles them.
		list = slices.DeleteFunc(list, p.spot)
	}
	var best Answer
	var set []*member
	most := deprovision.Price(0)
	for _, m := range p.members() {
		most += m.CostPerHour.Times(p.horizon(m) / leastShare)
	}
	for _, of := range slices.Backward(p.choices(list)) { // large sets first, because they rule out small ones
		if a, w, of, ok := p.feasible(of, most); ok && w.net() > most {
			best, set, most = a, of, w.net()
		}
	}
	// A few nodes may be in a state that only a change of all of them can improve. For many nodes
	// this would cost more than everything before. It would hardly find anything, because there are
	// many small changes.
	if len(set) == 0 && !p.limited && len(list) <= window {
		if a, w, ok := p.try(list, most, true); ok && w.net() > most {
			best, set, most = a, list, w.net()
		}
	}
	if len(set) == 0 || p.ended() {
		return false
	}
	for again := p.withoutRebought(set, &best); len(again) < len(set); again = p.withoutRebought(set, &best) {
		a, w, ok := p.try(again, 0, false)
		if !ok || w.net() < most {
			break
		}
		best, set, most = a, again, w.net()
	}
	// For more nodes this saves next to nothing (docs/decisions/target-first.md).
	if len(best.NewNodes) > 0 && len(set) <= window {
		if a, w, ok := p.try(set, most, true); ok && w.net() > most {
			best = a
		}
	}
	p.commit(move{method: eligibility.Consolidation, nodes: set}, &best)
	return true
}

// feasible tries the set, and repeats that without the nodes of unplaced pods until all pods have
// places.
func (p *planner) feasible(set []*member, most deprovision.Price) (Answer, balance, []*member, bool) {
	for {
		a, w, ok := p.try(set, most, false)
		if ok || len(a.Unplaced) == 0 {
			return a, w, set, ok
		}
		stuck := a.stuck()
		rest := p.untorn(slices.DeleteFunc(slices.Clone(set), func(m *member) bool { return stuck(m.Pods) }))
		if len(rest) == len(set) || len(rest) < 2 || p.ended() {
			return a, w, set, false
		}
		set = rest
	}
}

// withoutRebought returns the set without nodes that the answer would buy again, and without nodes
// that go only together with one of these. Of equal nodes, those with most disruption stay. If
// keeping one node would keep all others, that node goes.
func (p *planner) withoutRebought(set []*member, a *Answer) []*member {
	type offering struct{ pool, instanceType, zone, capacityType string }
	buys := map[offering]int{}
	for _, n := range a.NewNodes {
		buys[offering{n.Pool, n.InstanceType, n.Zone, n.CapacityType}]++
	}
	disruption := func(m *member) float64 {
		if m = p.charged(m, len(set)); m != nil {
			return m.Disruption
		}
		return 0
	}
	byCost, stays := slices.Clone(set), map[*member]bool{}
	slices.Reverse(byCost) // of equal ones the last of the ranking stays
	slices.SortStableFunc(byCost, func(a, b *member) int { return cmp.Compare(disruption(b), disruption(a)) })
	for _, m := range byCost {
		k := offering{m.Pool, m.InstanceType, m.Zone, m.CapacityType}
		if buys[k] == 0 || stays[m] {
			continue
		}
		with := p.tiedTo(m, set, stays)
		if len(with) > 1 && len(stays)+len(with) == len(set) {
			continue
		}
		buys[k]--
		for _, mate := range with {
			stays[mate] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(set), func(m *member) bool { return stays[m] })
}

// retain undoes moves for a saving that the state does not need: with their nodes it buys less, for the
// same or a lower cost of all. So no empty node goes while another one is replaced by its like, and of
// two states that save as much the one that buys fewer nodes and evicts fewer pods is reached. Nodes
// that the state buys again are tried together; of few moves also each, and the cheapest of them. It
// returns true if several nodes were kept in one step, because not all of them may be needed.
func (p *planner) retain() (together bool) {
	for again := true; again && !p.ended(); {
		var all []*member
		for _, v := range p.fromStart() {
			if m := v.nodes[0]; saves(v.method) && m.bought == nil && len(p.tied(m)) == 1 && !p.retained[m.Name] && m.RemainingLife.Hours() >= p.horizon(m) {
				all = append(all, m)
			}
		}
		var a Answer
		for _, n := range p.destination().bought {
			a.NewNodes = append(a.NewNodes, n)
		}
		rest := p.withoutRebought(all, &a)
		again = len(rest) < len(all) && p.undo(slices.DeleteFunc(slices.Clone(all), func(m *member) bool { return slices.Contains(rest, m) }))
		if again || len(a.NewNodes) == 0 || len(all) > few {
			continue
		}
		slices.SortStableFunc(all, func(a, b *member) int { return cmp.Compare(a.CostPerHour, b.CostPerHour) })
		for i := 0; i < len(all) && !again; i++ {
			if again = p.undo(all[i : i+1]); !again && i > 0 {
				again = p.undo(all[:i+1])
				together = together || again
			}
		}
	}
	return together
}

// undo replaces the state by one in which the nodes stay, if that costs no more and buys fewer nodes or
// evicts fewer pods. It reports whether it did.
func (p *planner) undo(stays []*member) bool {
	list := slices.DeleteFunc(p.fromStart(), func(v move) bool { return slices.Contains(stays, v.nodes[0]) })
	all, bought, cost := join(list...), p.destination().bought, -costOf(stays)
	for _, n := range bought {
		cost += n.cost()
	}
	q := p.moveQuestion(all.nodes, all.stranded, nil)
	q.Moves, q.MaxCost, q.LeaveDomains = nil, cost+1, all.leaves
	if cost > 0 {
		q.MaxNodes = len(bought)
	}
	ofSpot := !p.o.SpotToSpot && slices.ContainsFunc(list, func(v move) bool { return saves(v.method) && p.spot(v.nodes[0]) })
	before := p.clone()
	p.state = p.start.clone()
	q.Replacements = p.replacements(all.nodes)
	if cost < 0 || len(all.nodes) > 0 && p.bound(q) > cost {
		p.state = before
		return false
	}
	a := p.ask(q)
	evicted := slices.ContainsFunc(stays, func(m *member) bool { return len(m.Pods) > 0 })
	if p.ended() || !a.OK() || a.cost()+a.Forgone > cost || len(a.NewNodes) > len(bought) || len(a.NewNodes) == len(bought) && !evicted || a.lacks(q.Replacements) != "" || p.inflexible(all.nodes, &a) != "" || ofSpot && p.forSpot(a.NewNodes) {
		p.state = before
		return false
	}
	p.commit(all, &a)
	p.moves = list
	if a.Rebased != nil {
		p.sim = a.Rebased()
	}
	for _, m := range stays {
		p.retained[m.Name] = true
	}
	return true
}

// singles tries the candidates one by one and reports whether it gave any back. If accept is not
// nil, a change is undone unless accept returns true.
func (p *planner) singles(accept func() bool) bool {
	found, tried := false, map[string]bool{}
	for _, m := range p.candidates() {
		if p.ended() {
			break
		}
		if m = p.nodes[m.Name]; m == nil { // accept may have changed which nodes are bought
			continue
		}
		set := p.tied(m)
		with := strings.Join(question(set).Remove, " ")
		if tried[with] || len(p.within(set)) < len(set) || p.block(m, eligibility.Consolidation) {
			continue
		}
		tried[with] = true
		a, w, ok := p.try(set, 0, false)
		if !ok || w.net() <= 0 {
			if ok {
				for _, mate := range set {
					p.note(p.outranked(mate, w, a.price()))
				}
			}
			continue
		}
		before := p.state
		if accept != nil {
			before = p.clone()
		}
		p.commit(move{method: eligibility.Consolidation, nodes: set}, &a)
		if accept != nil && !accept() {
			p.state = before
			continue
		}
		found = true
	}
	return found
}

// try asks to give back the set. It returns the answer, its balance, and whether the options allow
// it and it saves. Several nodes must be able to gain more than most.
func (p *planner) try(set []*member, most deprovision.Price, thorough bool) (Answer, balance, bool) {
	q := question(set)
	if q.MaxNodes, q.Thorough = len(q.Pods), thorough; q.MaxNodes > 0 {
		if q.MaxCost = costOf(set); p.o.MinSavings > 0 {
			q.MaxCost -= p.o.MinSavings - 1 // the bound is exclusive, and savings may equal the minimum
		}
		if p.start.nodes[set[0].Name] == nil { // no verdict needs an answer that does not pay
			w := p.weigh(set, 0)
			q.MaxCost -= w.disrupted.Times(1 / max(w.horizon, 1.0/60)) // a node that expires now earns nothing
		}
		if q.MaxCost <= 0 {
			return Answer{}, balance{}, false
		}
	}
	if p.o.MaxEvictions > 0 && p.evictions(set...) > p.o.MaxEvictions {
		return Answer{}, balance{}, false
	}
	least := p.bound(q)
	if least > 0 && least >= q.MaxCost || len(set) > 1 && p.weigh(set, least).net() <= most {
		p.out.Avoided++
		return Answer{}, balance{}, false
	}
	a := p.ask(q)
	if !a.OK() || len(set) == 1 && len(p.withoutRebought(set, &a)) == 0 {
		return a, balance{}, false
	}
	if !p.o.SpotToSpot && p.spotForSpot(set, a.NewNodes) {
		return a, balance{}, false
	}
	if why := p.inflexible(set, &a); why != "" {
		if len(set) == 1 {
			v := set[0].verdict(NoSaving, eligibility.Consolidation, why)
			v.BestPricePerHour = a.price()
			p.note(v)
		}
		return a, balance{}, false
	}
	w := p.weigh(set, a.cost()+a.Forgone)
	return a, w, p.saves(w)
}

// saves reports whether a change saves at least what the options require.
func (p *planner) saves(w balance) bool { return w.saving > 0 && w.saving >= p.o.MinSavings }

// evictions returns the number of pods that consolidation moves so far, plus those of the set. Pods
// of forced methods do not count.
func (p *planner) evictions(set ...*member) int {
	n := 0
	for i := range p.out.Commands {
		if c := &p.out.Commands[i]; c.Saves() {
			n += len(c.Placements)
		}
	}
	count := func(set []*member) {
		for _, m := range set {
			if m = p.charged(m, len(set)); m != nil {
				n += len(m.Pods)
			}
		}
	}
	count(set)
	for _, v := range p.moves {
		if saves(v.method) {
			count(v.nodes)
		}
	}
	return n
}
