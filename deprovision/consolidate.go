package deprovision

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// consolidation goes through the candidates in passes until one finds nothing. Every pass starts from the state as if it had
// just been read, so that a plan for the cluster that the last one leaves finds nothing either.
func (p *planner) consolidation() {
	if p.o.Search == SearchKarpenter {
		p.reference()
		return
	}
	p.thorough()
}

const (
	// tiny is below any price difference that matters, in dollars an hour.
	tiny = 1e-9
	// window is how many nodes are repacked together at most. More nodes at once find little more, and cost more to ask.
	window = 16
	// promising is the share of the price of a set above which the bound must not be for the set to be repacked: what can save
	// less than that is left to single nodes.
	promising = 0.9
	// repaying is the share of its price that repacking a set must save. For less, too many pods move: on clusters of 50 nodes
	// 0.05 saves 0.3% more in the end, and evicts a sixth more.
	repaying = 0.3
	// splittable is the share of a price below which the bound must be for several smaller nodes to be tried.
	splittable = 0.9
	// pieces is how many nodes one may be split into.
	pieces = 4
)

// thorough is the search for nodes and sets of nodes of any make-up.
func (p *planner) thorough() {
	before := len(p.out.Commands)
	start := p.fork()
	p.once()
	if p.o.Passes == 1 && len(p.out.Commands) > before {
		if c, ok := p.sim.(Closer); ok { // that was the pass
			p.sim = c.Close(nil)
		}
		return
	}
	p.passes(p.pass)
	if p.o.Passes == 0 && p.o.MaxQuestions == 0 {
		p.tidy(start, before)
	}
}

func (p *planner) passes(pass func()) {
	for n := 0; p.o.Passes == 0 || n < p.o.Passes; n++ {
		p.settle()
		before := len(p.out.Commands)
		pass()
		if p.ended || len(p.out.Commands) == before {
			return
		}
	}
}

// settle has the state put in order as if it had just been read.
func (p *planner) settle() {
	if s, ok := p.sim.(Settler); ok {
		p.sim = s.Settled()
	}
	p.recount()
}

// fork is a copy of the planner that can go another way.
func (p *planner) fork() *planner {
	out := *p
	out.nodes = make(map[string]*member, len(p.nodes))
	for name, m := range p.nodes {
		c := *m
		out.nodes[name] = &c
	}
	out.order = slices.Clone(p.order)
	out.sums = maps.Clone(p.sums)
	out.out.Commands = slices.Clone(p.out.Commands)
	out.refused = make(map[string]Verdict, len(p.refused))
	maps.Copy(out.refused, p.refused)
	out.seen = map[string]bool{}
	maps.Copy(out.seen, p.seen)
	return &out
}

// candidates are the nodes that consolidation may take, in the order of the ranker; the others get their verdicts.
func (p *planner) candidates() []*member {
	var out []*member
	for _, m := range p.members() {
		if !p.block(m, eligibility.Consolidation) {
			out = append(out, m)
		}
	}
	return p.ranked(out)
}

func reason(m *member) nodepool.Reason {
	if len(m.Pods) == 0 {
		return nodepool.Empty
	}
	return nodepool.Underutilized
}

// pass deletes what fits elsewhere, node by node, and then repacks what is left in sets: those first that cost most beyond
// what their pods are worth.
func (p *planner) pass() {
	p.deletions(p.candidates())
	p.repack(p.candidates())
	if p.ended || len(p.nodes) == 0 {
		return
	}
	p.prefixes()
}

// deletions gives back nodes whose pods fit on others.
func (p *planner) deletions(list []*member) {
	for _, m := range list {
		if p.ended {
			return
		}
		if p.overBudget(m, eligibility.Consolidation, reason(m)) {
			continue
		}
		p.seen[m.Name] = true
		set := []*member{m}
		if a, _, ok := p.try(set, 0); ok {
			p.commit(eligibility.Consolidation, set, a, "its pods fit on other nodes")
		}
	}
}

// keepable is the share of its price from which on the pods of a node make it worth keeping, for the purpose of guessing which
// nodes will stay.
const keepable = 0.85

// once makes the first pass in a way that moves pods only once as far as it can: it guesses which nodes will go in the end, by
// deleting on a copy and by what the pods that are left would be worth on new nodes, closes these to pods that move, and
// then gives them back.
func (p *planner) once() {
	closer, ok := p.sim.(Closer)
	if !ok {
		return
	}
	guess := p.fork()
	guess.o.MaxQuestions = 0
	guess.deletions(guess.candidates())
	p.out.Questions, p.out.Avoided = guess.out.Questions, guess.out.Avoided
	if len(guess.out.Commands) == len(p.out.Commands) {
		return // nearly done: what is left is for the passes
	}
	goes := map[string]bool{}
	for _, m := range p.candidates() {
		goes[m.Name] = guess.nodes[m.Name] == nil
	}
	for _, m := range guess.candidates() {
		if worth, _ := guess.bound(question([]*member{m})); worth > 0 && worth < keepable*m.PricePerHour {
			goes[m.Name] = true
		}
	}
	var names []string
	var list []*member
	for _, m := range p.candidates() {
		if goes[m.Name] {
			names, list = append(names, m.Name), append(list, m)
		}
	}
	p.sim = closer.Close(names)
	p.deletions(list)
	list = slices.DeleteFunc(list, func(m *member) bool { return p.nodes[m.Name] == nil })
	p.repack(p.ranked(list))
}

// repack takes the candidates in sets. Where a set does not pay, its halves are tried, down to single nodes.
func (p *planner) repack(candidates []*member) {
	type rated struct {
		m     *member
		share float64 // of its price that its pods would cost at least on new nodes
	}
	var list []rated
	for _, m := range candidates {
		worth, _ := p.bound(question([]*member{m}))
		list = append(list, rated{m, worth / max(m.PricePerHour, tiny)})
	}
	slices.SortStableFunc(list, func(a, b rated) int { return cmp.Compare(a.share, b.share) })
	for i := 0; i < len(list) && !p.ended; {
		ledger := p.ledger
		var set []*member
		for i < len(list) && len(set) < window {
			if len(set) > 0 && list[i].share >= promising {
				break // it cannot save by itself, so it is looked at by itself
			}
			m, share := list[i].m, list[i].share
			i++
			if p.nodes[m.Name] == nil {
				continue
			}
			if ledger.Left(m.Pool, reason(m)) < 1 {
				p.overBudgetAt(ledger.Why(m.Pool, reason(m)), m)
				continue
			}
			ledger = ledger.Take(m.Pool, 1)
			set = append(set, m)
			if share >= promising {
				break
			}
		}
		if len(set) > 0 {
			p.split(set)
		}
	}
}

func (p *planner) overBudgetAt(why string, m *member) {
	p.refuse(Verdict{Node: m.Name, Outcome: OverBudget, Method: eligibility.Consolidation, Detail: why, Disruption: m.Disruption, PricePerHour: m.PricePerHour})
}

func (p *planner) split(set []*member) {
	if p.ended {
		return
	}
	if len(set) == 1 {
		p.single(set[0])
		return
	}
	if a, used, ok := p.try(set, len(set)); ok {
		p.commit(eligibility.Consolidation, used, a, together(&a, used))
		return
	}
	p.split(set[:len(set)/2])
	p.split(set[len(set)/2:])
}

// single tries to replace one node by one, then by several smaller ones.
func (p *planner) single(m *member) {
	set := []*member{m}
	p.seen[m.Name] = true
	one, _, found := p.try(set, 1)
	limit := m.PricePerHour
	if found {
		limit = one.PricePerHour
	}
	if worth, _ := p.bound(question(set)); len(m.Pods) > 1 && worth < splittable*limit && (!found || len(one.NewNodes) > 0) {
		if a, _, ok := p.try(set, min(pieces, len(m.Pods))); ok && (!found || a.PricePerHour < one.PricePerHour-tiny) {
			p.commit(eligibility.Consolidation, set, a, "smaller nodes hold its pods for less")
			return
		}
	}
	if found {
		p.commit(eligibility.Consolidation, set, one, "a cheaper node holds its pods")
	}
}

// try asks what giving back the set would bring, with at most so many new nodes, and reports whether it is allowed and worth
// it. The set comes back without nodes that turned out to be bought again.
func (p *planner) try(set []*member, most int) (Answer, []*member, bool) {
	q := question(set)
	q.MaxNodes = most
	total := price(set)
	if most > 0 {
		q.MaxPrice = total - max(p.o.MinSavings, 0)
		p.spotRules(set, &q)
		if q.MaxPrice <= 0 {
			q.MaxNodes, q.MaxPrice = 0, 0
		}
	}
	_, least := p.bound(q)
	if q.MaxNodes == 0 && least > 0 || q.MaxNodes > 0 && least >= q.MaxPrice || len(set) > 1 && most > 1 && least > promising*total {
		p.out.Avoided++
		return Answer{}, set, false
	}
	a := p.ask(q)
	if !a.OK() {
		return a, set, false
	}
	if again := boughtAgain(set, a.NewNodes); again >= 0 {
		if len(set) == 1 {
			return a, set, false
		}
		return p.try(slices.Delete(slices.Clone(set), again, again+1), most-1)
	}
	if !p.flexible(set, &a) {
		return a, set, false
	}
	move := p.move(set, &a)
	j := p.o.Policy.Judge(move)
	if move.SavingsPerHour < p.o.MinSavings {
		j = Judgement{Score: move.SavingsPerHour, Threshold: p.o.MinSavings, Why: fmt.Sprintf("it would save $%.4f an hour, and the minimum is $%.4f", move.SavingsPerHour, p.o.MinSavings)}
	}
	if move.SavingsPerHour <= tiny || most > 1 && move.SavingsPerHour < repaying*total {
		return a, set, false
	}
	if !j.OK {
		if len(set) == 1 {
			p.refuse(Verdict{
				Node: set[0].Name, Outcome: Outranked, Method: eligibility.Consolidation, Detail: j.Why, Disruption: set[0].Disruption,
				PricePerHour: set[0].PricePerHour, BestPricePerHour: a.PricePerHour, Judgement: j,
			})
		}
		return a, set, false
	}
	return a, set, true
}

// spotRules narrows what may be bought in place of the set: spot nodes are replaced by spot nodes only where the caller asked
// for it.
func (p *planner) spotRules(set []*member, q *Question) {
	if !p.o.SpotToSpot && !slices.ContainsFunc(set, func(m *member) bool { return m.CapacityType != "spot" }) {
		q.CapacityTypes = []string{"on-demand", "reserved"}
	}
}

// flexible asks that one spot node replaced by another leaves enough types to choose from.
func (p *planner) flexible(set []*member, a *Answer) bool {
	if len(set) > 1 || set[0].CapacityType != "spot" {
		return true
	}
	for _, n := range a.NewNodes {
		types := map[string]bool{n.InstanceType: true}
		for _, alt := range n.Alternatives {
			types[alt.InstanceType] = true
		}
		if n.CapacityType == "spot" && len(types) < p.o.SpotFlexibility {
			p.refuse(Verdict{
				Node: set[0].Name, Outcome: NoSaving, Method: eligibility.Consolidation, Disruption: set[0].Disruption, PricePerHour: set[0].PricePerHour,
				Detail: fmt.Sprintf("only %d types of spot capacity would be cheaper, and %d are wanted so that it does not move from one scarce type to the next", len(types), p.o.SpotFlexibility), BestPricePerHour: a.PricePerHour,
			})
			return false
		}
	}
	return true
}

// boughtAgain is the position of a node of the set that the new nodes would only buy once more; -1 if there is none. Of
// several the one with most to evict is named.
func boughtAgain(set []*member, bought []NewNode) int {
	at := -1
	for i, m := range set {
		same := slices.ContainsFunc(bought, func(n NewNode) bool {
			return n.InstanceType == m.InstanceType && n.Pool == m.Pool && n.CapacityType == m.CapacityType && n.PricePerHour >= m.PricePerHour
		})
		if same && (at < 0 || m.Disruption > set[at].Disruption) {
			at = i
		}
	}
	return at
}

// move describes the change to policies.
func (p *planner) move(set []*member, a *Answer) Move {
	total := price(set)
	m := Move{NewNodes: a.NewNodes, SavingsPerHour: total - a.PricePerHour, Evictions: len(a.Placements)}
	for _, x := range set {
		m.Nodes = append(m.Nodes, x.Candidate)
		m.Disruption += x.Disruption
		at := slices.IndexFunc(m.Pools, func(t PoolTotals) bool { return t.Name == x.Pool })
		if at < 0 {
			at = len(m.Pools)
			m.Pools = append(m.Pools, p.totals(x.Pool))
		}
		if total > 0 {
			m.Pools[at].SavingsPerHour += m.SavingsPerHour * x.PricePerHour / total
		}
		m.Pools[at].MoveDisruption += x.Disruption
	}
	slices.SortFunc(m.Pools, func(a, b PoolTotals) int { return strings.Compare(a.Name, b.Name) })
	return m
}

func (p *planner) totals(pool string) PoolTotals {
	t := PoolTotals{Name: pool}
	if np := p.pools[pool]; np != nil {
		t.Balanced = np.Disruption.Policy == nodepool.Balanced
	}
	t.PricePerHour, t.Disruption = p.sums[pool].PricePerHour, p.sums[pool].Disruption
	return t
}
