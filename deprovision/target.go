package deprovision

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// consolidation looks for the state to end with. It goes from one to the next better one, each as if it had just been read,
// until none is found: then a plan that is made from there finds none either. What lies between is forgotten; pods move once.
func (p *planner) consolidation() {
	p.quiet = false
	for !p.ended() {
		before := p.clone()
		p.units = p.unitPrices()
		value := p.value()
		if !p.sets() {
			if !p.singles(nil) {
				p.quiet = true
				return
			}
			for p.singles(nil) {
			}
		}
		if p.straighten() && p.value() > value {
			continue
		}
		// Not all of it can be had at once with pods moving once. What can is taken node by node.
		p.state = before
		best := value
		p.singles(func() bool {
			if !p.straighten() || p.value() <= best {
				return false
			}
			best = p.value()
			return true
		})
		if best == value {
			return
		}
	}
}

// value is what the state has over the cluster as it was when the round began, over the horizon.
func (p *planner) value() Price {
	bought := Price(0)
	for _, n := range p.bought {
		bought += n.cost()
	}
	return p.weigh(members(p.gone), bought).net()
}

func reason(m *member) nodepool.Reason {
	if len(m.Pods) == 0 {
		return nodepool.Empty
	}
	return nodepool.Underutilized
}

// candidates are the nodes that consolidation may take within the budgets, in the order of the ranker; the others get their
// verdicts.
func (p *planner) candidates() []*member {
	var free []*member
	for _, m := range p.members() {
		if !p.block(m, eligibility.Consolidation) {
			free = append(free, m)
		}
	}
	ledger := p.ledger
	var out []*member
	for _, m := range p.ranked(free) {
		if m.node != nil {
			if ledger.Left(m.Pool, reason(m)) < 1 {
				p.overBudget(ledger.Why(m.Pool, reason(m)), m, eligibility.Consolidation)
				continue
			}
			ledger = ledger.Take(m.Pool, 1)
		}
		out = append(out, m)
	}
	return out
}

const (
	// Sets are chosen at so many prices of disruption: the first is dearest times what makes the disruption of all nodes cost as much
	// as they do, and each other is half of the one before, down to about a thousandth. Twice as many find no better answers.
	rates, dearest = 13, 4
	// hardly is the part of what all nodes cost over the horizon below which it is not worth to move many nodes at once. Single nodes
	// go for less. Without it one small gain would follow on the other, each with all sets looked at again.
	hardly = 500
)

// choices are sets of nodes that could go, from few evictions to many, up to all: what is left if it is decided in fractions what
// to keep at several prices of disruption, or the first of the ranking where the simulator cannot tell.
func (p *planner) choices(list []*member) [][]*member {
	disruption := 0.0
	for _, m := range list {
		disruption += m.Disruption
	}
	average := costOf(list).Times(1 / max(1, disruption))
	ask := make([]Keeping, len(list))
	for i, m := range list {
		ask[i] = Keeping{Node: m.Name, Pods: m.Pods, Costs: make([]Price, rates)}
		for k := range rates {
			unit := max(average.Times(math.Ldexp(dearest, -k)), p.units[m.Pool].Times(1/p.o.Objective.Horizon.Hours()))
			ask[i].Costs[k] = m.CostPerHour - unit.Times(m.Disruption)
		}
	}
	var sets [][]*member
	for _, keep := range p.sim.Choose(ask, rates) {
		var set []*member
		for i, m := range list {
			if !keep[i] {
				set = append(set, m)
			}
		}
		sets = append(sets, set)
	}
	for k := range rates {
		if len(sets) == k { // nothing is known
			sets = append(sets, list[:len(list)*(k+1)/rates])
		}
	}
	var out [][]*member
	most := 0
	for _, set := range append(sets, list) {
		moves := 0
		for _, m := range set {
			moves += len(m.Pods)
		}
		allowed := p.o.MaxEvictions == 0 || moves <= p.o.MaxEvictions-p.evictions()
		if n := len(out); len(set) > 1 && allowed && (n == 0 || moves > most || len(set) > len(out[n-1])) {
			out, most = append(out, set), moves
		}
	}
	return out
}

// sets gives nodes back together, as many as comes out best, with new nodes for the pods that find no room. It reports whether
// that is worth it.
func (p *planner) sets() bool {
	list := p.candidates()
	if len(list) < 2 {
		return false
	}
	if !p.o.SpotToSpot && slices.ContainsFunc(list, func(m *member) bool { return m.CapacityType == "spot" }) {
		// Spot nodes can only be emptied onto what there is: that is for one at a time.
		list = slices.DeleteFunc(list, func(m *member) bool { return m.CapacityType == "spot" })
	}
	var best Answer
	var set []*member
	most := costOf(p.members()).Times(p.o.Objective.Horizon.Hours() / hardly)
	for _, of := range p.choices(list) {
		if !p.first && p.weigh(of, p.sim.Bound(question(of))).net() <= most {
			p.out.Avoided++
			continue
		}
		a, w, of, ok := p.most(of)
		if ok && p.first {
			p.point(of, &a)
		}
		if ok && w.net() > most {
			best, set, most = a, of, w.net()
		}
	}
	p.first = false
	if len(set) == 0 || p.ended() {
		return false
	}
	for again := p.spare(set, &best); len(again) < len(set); again = p.spare(set, &best) { // nodes that would only be bought again stay
		a, w, ok := p.try(again, len(question(again).Pods), false)
		if !ok || w.net() < most {
			break
		}
		best, set, most = a, again, w.net()
	}
	if len(best.NewNodes) > 0 {
		if a, w, ok := p.try(set, len(question(set).Pods), true); ok && w.net() > most {
			best = a
		}
	}
	p.commit(eligibility.Consolidation, slices.Clone(set), &best, "")
	return true
}

// most is try, without the nodes of pods that find no place: those stay where they are.
func (p *planner) most(set []*member) (Answer, worth, []*member, bool) {
	for {
		a, w, ok := p.try(set, len(question(set).Pods), false)
		if ok || len(a.Left) == 0 {
			return a, w, set, ok
		}
		stuck := map[*corev1.Pod]bool{}
		for _, pod := range a.Left {
			stuck[pod] = true
		}
		rest := slices.DeleteFunc(slices.Clone(set), func(m *member) bool {
			return slices.ContainsFunc(m.Pods, func(pod *corev1.Pod) bool { return stuck[pod] })
		})
		if len(rest) == len(set) || len(rest) < 2 || p.ended() {
			return a, w, set, false
		}
		set = rest
	}
}

// point notes a change for the frontier.
func (p *planner) point(set []*member, a *Answer) {
	x := Point{SavingsPerHour: priceOf(set) + priceOf(members(p.gone)) - a.price(), Nodes: len(set) + len(p.gone), Evictions: p.evictions()}
	for _, n := range p.bought {
		x.SavingsPerHour -= n.PricePerHour
	}
	for _, m := range set {
		x.Evictions += m.evictions
	}
	p.out.Frontier = append(p.out.Frontier, x)
}

// frontier keeps those changes that no other beats: of those that were looked at, and of what the first commands come to. It drops changes
// that would save more than the whole plan does, because no commands lead there.
func (p *planner) frontier() {
	list := slices.DeleteFunc(p.out.Frontier, func(x Point) bool { return x.SavingsPerHour >= p.out.PricePerHour-p.out.PricePerHourAfter })
	var x Point
	for i := range p.out.Commands {
		c := &p.out.Commands[i]
		x = Point{x.SavingsPerHour + c.SavingsPerHour, x.Evictions + len(c.Placements), x.Nodes + len(c.Nodes)}
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Evictions, b.Evictions), cmp.Compare(b.SavingsPerHour, a.SavingsPerHour))
	})
	p.out.Frontier = nil
	most := Price(0)
	for _, x := range list {
		if x.SavingsPerHour > most {
			p.out.Frontier, most = append(p.out.Frontier, x), x.SavingsPerHour
		}
	}
}

// spare is the set without nodes that the answer would only buy once more: of several that are alike those that disrupt most.
func (p *planner) spare(set []*member, a *Answer) []*member {
	type kind struct{ pool, instanceType, zone, capacityType string }
	buys := map[kind]int{}
	for _, n := range a.NewNodes {
		buys[kind{n.Pool, n.InstanceType, n.Zone, n.CapacityType}]++
	}
	stays := map[*member]bool{}
	byCost := slices.Clone(set)
	slices.Reverse(byCost) // of equals the last of the ranking stays
	slices.SortStableFunc(byCost, func(a, b *member) int { return cmp.Compare(b.owed, a.owed) })
	for _, m := range byCost {
		k := kind{m.Pool, m.InstanceType, m.Zone, m.CapacityType}
		if buys[k] > 0 {
			buys[k]--
			stays[m] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(set), func(m *member) bool { return stays[m] })
}

// singles goes through the candidates one by one, and reports whether it gave any back. After each it asks whether that can
// stay, if there is a question.
func (p *planner) singles(stays func() bool) bool {
	found := false
	for _, m := range p.candidates() {
		if p.ended() {
			break
		}
		if m = p.nodes[m.Name]; m == nil { // another way to the same state bought other nodes
			continue
		}
		if m.node != nil && p.ledger.Left(m.Pool, reason(m)) < 1 || p.block(m, eligibility.Consolidation) {
			continue
		}
		set := []*member{m.settled()}
		a, w, ok := p.try(set, len(m.Pods), false)
		if !ok || w.net() <= 0 {
			if ok {
				p.refuse(Verdict{
					Node: m.Name, Outcome: Outranked, Method: eligibility.Consolidation, Disruption: m.Disruption, PricePerHour: m.PricePerHour, BestPricePerHour: a.price(),
					Earned: w.earned, Cost: w.disrupted,
					Detail: fmt.Sprintf("it would earn $%.4f in %s, and its disruption costs $%.4f", w.earned.Dollars(), p.o.Objective.Horizon, w.disrupted.Dollars()),
				})
			}
			continue
		}
		before := p.state
		if stays != nil {
			before = p.clone()
		}
		p.commit(eligibility.Consolidation, set, &a, "")
		if stays != nil && !stays() {
			p.state = before
			continue
		}
		found = true
	}
	return found
}

// try asks what giving back the set would bring, with at most so many new nodes, and whether it is allowed and saves anything.
func (p *planner) try(set []*member, most int, thorough bool) (Answer, worth, bool) {
	q := question(set)
	if q.MaxNodes, q.Thorough = most, thorough; most > 0 {
		q.MaxCost = costOf(set) - max(p.o.MinSavings, 0)
		if !set[0].there { // which gets no verdict: an answer that does not pay is not wanted
			q.MaxCost -= p.weigh(set, 0).disrupted.Times(1 / p.o.Objective.Horizon.Hours())
		}
		p.spotRules(set, &q)
		if q.MaxCost <= 0 {
			return Answer{}, worth{}, false
		}
	}
	if p.o.MaxEvictions > 0 {
		evictions := p.evictions()
		for _, m := range set {
			evictions += m.evictions
		}
		if evictions > p.o.MaxEvictions {
			return Answer{}, worth{}, false
		}
	}
	least := p.sim.Bound(q)
	if most == 0 && least > 0 || most > 0 && least >= q.MaxCost || p.weigh(set, least).net() <= 0 && len(set) > 1 {
		p.out.Avoided++
		return Answer{}, worth{}, false
	}
	a := p.ask(q)
	if !a.OK() || len(set) == 1 && len(p.spare(set, &a)) == 0 || !p.flexible(set, &a) {
		return a, worth{}, false
	}
	w := p.weigh(set, a.cost())
	return a, w, p.saves(w)
}

// saves reports whether a change saves anything, and as much as the options ask.
func (p *planner) saves(w worth) bool { return w.saving > 0 && w.saving >= p.o.MinSavings }

// evictions is how many pods move so far.
func (p *planner) evictions() int {
	n := p.out.Evictions
	for i := range p.gone {
		n += p.gone[i].evictions
	}
	return n
}

// spotRules narrows what may be bought in place of the set: spot nodes are replaced by spot nodes only where the caller asked
// for it.
func (p *planner) spotRules(set []*member, q *Question) {
	if !p.o.SpotToSpot && !slices.ContainsFunc(set, func(m *member) bool { return m.CapacityType != "spot" }) {
		q.CapacityTypes = []string{"on-demand", "reserved"}
	}
}

// flexible asks that spot nodes which take the place of spot nodes leave enough types to choose from.
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
				p.refuse(Verdict{
					Node: set[0].Name, Outcome: NoSaving, Method: eligibility.Consolidation, Disruption: set[0].Disruption, PricePerHour: set[0].PricePerHour,
					Detail: fmt.Sprintf("only %d types of spot capacity would be cheaper, and %d are wanted so that it does not move from one scarce type to the next", len(types), p.o.SpotFlexibility), BestPricePerHour: a.price(),
				})
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
