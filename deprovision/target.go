package deprovision

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/deprovision/budget"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// consolidation is a local search: it goes from state to better state until none is found, each flattened so that pods move once and
// rebased so that a plan made from there finds none either.
func (p *planner) consolidation() {
	p.quiet = false
	for !p.ended() {
		before := p.clone()
		p.units = p.unitPrices()
		start := p.gain()
		if !p.sets() {
			if !p.singles(nil) {
				p.quiet = true
				return
			}
			for p.singles(nil) {
			}
		}
		if p.flatten() && p.gain() > start {
			continue
		}
		// The state cannot be reached with pods moving once. Single nodes are tried instead.
		p.state = before
		best := start
		p.singles(func() bool {
			if !p.flatten() || p.gain() <= best {
				return false
			}
			best = p.gain()
			return true
		})
		if best == start {
			return
		}
	}
}

// gain is the objective of the state against the start of the round.
func (p *planner) gain() Price {
	bought := Price(0)
	for _, n := range p.bought {
		bought += n.cost()
	}
	return p.weigh(members(p.gone), bought).net()
}

func reason(m *member) nodepool.Reason { return budgetReason(eligibility.Consolidation, len(m.Pods)) }

// spent is the ledger after nodes that go in this state. At first only forced ones count: consolidation looks for the state that the
// cluster could have without budgets, and the commands go as far as these allow.
func (p *planner) spent() budget.Ledger {
	ledger := p.ledger
	for _, r := range p.gone {
		if r.node != nil && (p.limited || !saves(r.method)) {
			ledger = ledger.Take(r.Pool, 1)
		}
	}
	return ledger
}

// within is the set without the nodes that the budgets do not allow besides those before them, if budgets limit the search.
func (p *planner) within(set []*member) []*member {
	if !p.limited {
		return set
	}
	ledger := p.spent()
	var out []*member
	for _, m := range set {
		if m.node != nil {
			if ledger.Left(m.Pool, reason(m)) < 1 {
				continue
			}
			ledger = ledger.Take(m.Pool, 1)
		}
		out = append(out, m)
	}
	return p.untorn(out)
}

// candidates are the nodes that consolidation may give back, in the order of the ranker. It notes why the others stay.
func (p *planner) candidates() []*member {
	var free []*member
	for _, m := range p.members() {
		if !p.block(m, eligibility.Consolidation) {
			free = append(free, m)
		}
	}
	ledger := p.spent()
	return slices.DeleteFunc(p.ranked(free), func(m *member) bool {
		over := m.node != nil && ledger.Left(m.Pool, reason(m)) < 1
		if over {
			p.note(m.verdict(OverBudget, eligibility.Consolidation, ledger.Why(m.Pool, reason(m))))
		}
		return over
	})
}

const (
	// Sets are chosen at this many prices of disruption. The first is dearest times the price at which the disruption of all nodes
	// costs as much as they do, and each other is half of the one before. Twice as many find no better answers.
	rates, dearest = 13, 4
	// Giving back many nodes at once must gain 1/leastShare of the cost of all nodes over the horizon; single nodes may gain less.
	// Otherwise many small gains would follow each other, and each costs a look at all sets.
	leastShare = 500
)

// choices are sets of nodes that could go, from few evictions to many, the last of all nodes. They are the complements of fractional
// choices at several prices of disruption, or heads of the ranking if the simulator has none.
func (p *planner) choices(list []*member) [][]*member {
	disruption := 0.0
	for _, m := range list {
		disruption += m.Disruption
	}
	average := costOf(list).Times(1 / max(1, disruption))
	ask := make([]NodeChoice, len(list))
	for i, m := range list {
		ask[i] = NodeChoice{Node: m.Name, Pods: m.Pods, Costs: make([]Price, rates)}
		for k := range rates {
			unit := max(average.Times(math.Ldexp(dearest, -k)), p.units[m.Pool].Times(1/p.o.Objective.Horizon.Hours()))
			ask[i].Costs[k] = m.CostPerHour - unit.Times(m.Disruption)
		}
	}
	var sets [][]*member
	for _, retain := range p.sim.Choose(ask, rates) {
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
		for k := range rates {
			at := len(list) * k / rates
			sets = append(sets, p.within(slices.Concat(list[at:], list[:at])))
		}
	}
	for _, set := range sets {
		moves := 0
		for _, m := range set {
			moves += len(m.Pods)
		}
		allowed := p.o.MaxEvictions == 0 || moves <= p.o.MaxEvictions-p.evictions(nil)
		if n := len(out); len(set) > 1 && allowed && (n == 0 || p.limited || moves > most || len(set) > len(out[n-1])) {
			out, most = append(out, set), moves
		}
	}
	return out
}

// sets gives back the best set of nodes, with new nodes for pods that do not fit elsewhere. It reports whether there is one that pays.
func (p *planner) sets() bool {
	list := p.candidates()
	if len(list) < 2 {
		return false
	}
	if !p.o.SpotToSpot && slices.ContainsFunc(list, func(m *member) bool { return m.CapacityType == "spot" }) {
		// No node may be bought for spot nodes, so singles handles them.
		list = slices.DeleteFunc(list, func(m *member) bool { return m.CapacityType == "spot" })
	}
	var best Answer
	var set []*member
	most := costOf(p.members()).Times(p.o.Objective.Horizon.Hours() / leastShare)
	for _, of := range p.choices(list) {
		if p.weigh(of, p.sim.Bound(question(of))).net() <= most {
			p.out.Avoided++
			continue
		}
		a, w, of, ok := p.feasible(of)
		if ok && w.net() > most {
			best, set, most = a, of, w.net()
		}
	}
	// Few nodes may be in a state from which only a change of all of them leads on. For many this would cost more than all before, and
	// would hardly find anything, because there are many small changes.
	if len(set) == 0 && !p.limited && len(list) <= window && p.weigh(list, p.sim.Bound(question(list))).net() > most {
		if a, w, ok := p.try(list, true); ok && w.net() > most {
			best, set, most = a, list, w.net()
		}
	}
	if len(set) == 0 || p.ended() {
		return false
	}
	for again := p.withoutRebought(set, &best); len(again) < len(set); again = p.withoutRebought(set, &best) {
		a, w, ok := p.try(again, false)
		if !ok || w.net() < most {
			break
		}
		best, set, most = a, again, w.net()
	}
	if len(best.NewNodes) > 0 {
		if a, w, ok := p.try(set, true); ok && w.net() > most {
			best = a
		}
	}
	p.commit(eligibility.Consolidation, slices.Clone(set), &best, "")
	return true
}

// feasible is try for the set without the nodes of unplaced pods, repeated until all pods have places.
func (p *planner) feasible(set []*member) (Answer, balance, []*member, bool) {
	for {
		a, w, ok := p.try(set, false)
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

// withoutRebought is the set without nodes that the answer would buy again, and without those that go only with one of them; of equal ones those of
// most disruption stay. Where all others would stay for the sake of one, that one goes.
func (p *planner) withoutRebought(set []*member, a *Answer) []*member {
	type offering struct{ pool, instanceType, zone, capacityType string }
	buys := map[offering]int{}
	for _, n := range a.NewNodes {
		buys[offering{n.Pool, n.InstanceType, n.Zone, n.CapacityType}]++
	}
	byCost, stays := slices.Clone(set), map[*member]bool{}
	slices.Reverse(byCost) // ties: the last of the ranking stays
	slices.SortStableFunc(byCost, func(a, b *member) int { return cmp.Compare(b.owed, a.owed) })
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

// singles tries the candidates one by one, and reports whether it gave any back. If accept is not nil, a change is undone unless it
// returns true.
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
		own := *m
		if !m.there { // as the next plan sees what this one buys: emptying it would move all its pods once more
			own.owed, own.evictions = m.Disruption, len(m.Pods)
		}
		if len(set) == 1 {
			set = []*member{&own}
		}
		tried[with] = true
		a, w, ok := p.try(set, false)
		if !ok || w.net() <= 0 {
			if ok {
				for _, mate := range set {
					v := mate.verdict(Outranked, eligibility.Consolidation, fmt.Sprintf("%sit would earn $%.4f in %s, and its disruption costs $%.4f", p.together(mate.Name), w.earned.Dollars(), p.o.Objective.Horizon, w.disrupted.Dollars()))
					v.BestPricePerHour, v.Earned, v.Cost = a.price(), w.earned, w.disrupted
					p.note(v)
				}
			}
			continue
		}
		before := p.state
		if accept != nil {
			before = p.clone()
		}
		p.commit(eligibility.Consolidation, set, &a, "")
		if accept != nil && !accept() {
			p.state = before
			continue
		}
		found = true
	}
	return found
}

// try asks to give back the set. It returns the answer and its balance, and whether the options allow it and it saves.
func (p *planner) try(set []*member, thorough bool) (Answer, balance, bool) {
	q := question(set)
	if q.MaxNodes, q.Thorough = len(q.Pods), thorough; q.MaxNodes > 0 {
		if q.MaxCost = costOf(set); p.o.MinSavings > 0 {
			q.MaxCost -= p.o.MinSavings - 1 // the bound is exclusive, and savings may just reach the minimum
		}
		if !set[0].there { // no verdict needs an answer that does not pay
			q.MaxCost -= p.weigh(set, 0).disrupted.Times(1 / p.o.Objective.Horizon.Hours())
		}
		p.spotRules(set, &q)
		if q.MaxCost <= 0 {
			return Answer{}, balance{}, false
		}
	}
	if p.o.MaxEvictions > 0 && p.evictions(set) > p.o.MaxEvictions {
		return Answer{}, balance{}, false
	}
	least := p.sim.Bound(q)
	if least > 0 && least >= q.MaxCost || p.weigh(set, least).net() <= 0 && len(set) > 1 {
		p.out.Avoided++
		return Answer{}, balance{}, false
	}
	a := p.ask(q)
	if !a.OK() || len(set) == 1 && len(p.withoutRebought(set, &a)) == 0 || !p.flexible(set, &a) {
		return a, balance{}, false
	}
	w := p.weigh(set, a.cost()+a.Forgone)
	return a, w, p.saves(w)
}

// saves reports whether a change saves at least what the options ask.
func (p *planner) saves(w balance) bool { return w.saving > 0 && w.saving >= p.o.MinSavings }

// evictions is the number of pods that consolidation moves so far, and with the set. Pods of forced methods do not count.
func (p *planner) evictions(set []*member) int {
	n := p.earlier
	for _, r := range p.gone {
		if saves(r.method) {
			n += r.evictions
		}
	}
	for _, m := range set {
		n += m.evictions
	}
	return n
}

// spotRules forbids to buy spot nodes for a set of spot nodes, unless the options allow it.
func (p *planner) spotRules(set []*member, q *Question) {
	if !p.o.SpotToSpot && !slices.ContainsFunc(set, func(m *member) bool { return m.CapacityType != "spot" }) {
		q.CapacityTypes = []string{"on-demand", "reserved"}
	}
}

// flexible reports whether spot nodes that replace spot nodes have enough types to choose from.
func (p *planner) flexible(set []*member, a *Answer) bool {
	if !slices.ContainsFunc(set, func(m *member) bool { return m.CapacityType == "spot" }) {
		return true
	}
	for _, n := range a.NewNodes {
		types := map[string]bool{n.InstanceType: true}
		for _, alt := range n.Alternatives {
			types[alt.InstanceType] = true
		}
		if n.CapacityType == "spot" && len(types) < p.o.SpotFlexibility {
			if len(set) == 1 {
				v := set[0].verdict(NoSaving, eligibility.Consolidation, fmt.Sprintf("only %d types of spot capacity would be cheaper, and %d are wanted so that it does not move from one scarce type to the next", len(types), p.o.SpotFlexibility))
				v.BestPricePerHour = a.price()
				p.note(v)
			}
			return false
		}
	}
	return true
}

func members(group []removal) []*member {
	out := make([]*member, len(group))
	for i := range group {
		out[i] = group[i].member
	}
	return out
}
