package deprovision

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Plan looks for nodes to give back, method by method: interruption, expiration, drift, emptiness, consolidation. The
// result is the same for the same arguments. It costs a few questions for each candidate and pass; see [Options].
func Plan(c Cluster, sim Simulator, opts *Options) Result {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Ranker == nil {
		o.Ranker = PriceRanker{}
	}
	if o.Policy == nil {
		o.Policy = AnySaving{}
	}
	if o.SpotFlexibility == 0 {
		o.SpotFlexibility = 15
	}
	if o.LaunchTime == 0 {
		o.LaunchTime = 2 * time.Minute
	}
	p := newPlanner(c, sim, o)
	var other *planner
	if o.Search != SearchKarpenter && o.MaxQuestions == 0 && p.asksFor(eligibility.Consolidation) {
		other = p.fork()
		other.o.Search = SearchKarpenter
	}
	p.turns()
	if other != nil {
		p = p.best(other)
	}
	p.verdicts()
	if p.ended {
		p.out.Cursor.Seen = slices.Sorted(maps.Keys(p.seen))
	}
	p.out.After = p.sim
	return p.out
}

// turns goes through the methods. What consolidation buys may be where an expired or drifted node's pods fit at last; so they
// take turns until nothing more is found.
func (p *planner) turns() {
	for {
		before := len(p.out.Commands)
		for _, m := range []eligibility.Method{eligibility.Interruption, eligibility.Expiration, eligibility.Drift, eligibility.Emptiness} {
			p.by(m)
		}
		if before > 0 && len(p.out.Commands) == before {
			break
		}
		forced := len(p.out.Commands)
		if p.begun == nil {
			p.begun, p.first = p.fork(), forced
		}
		p.by(eligibility.Consolidation)
		if p.ended || p.o.Passes > 0 || len(p.out.Commands) == forced {
			break
		}
	}
}

func (p *planner) asksFor(m eligibility.Method) bool {
	return p.o.Methods == nil || slices.Contains(p.o.Methods, m)
}

// by looks for nodes by one method, if it was asked for.
func (p *planner) by(m eligibility.Method) {
	if !p.asksFor(m) {
		return
	}
	switch m {
	case eligibility.Interruption:
		p.interruptions()
	case eligibility.Expiration:
		p.expiration()
	case eligibility.Drift:
		p.drift()
	case eligibility.Emptiness:
		p.emptiness()
	case eligibility.Consolidation:
		p.consolidation()
	}
}

// interruptions replaces what the cloud takes, soonest first. Budgets and pods have no say in it.
func (p *planner) interruptions() {
	list := slices.Clone(p.cluster.Interruptions)
	slices.SortStableFunc(list, func(a, b Interruption) int {
		return cmp.Or(a.Deadline.Compare(b.Deadline), strings.Compare(a.Node, b.Node))
	})
	var names []string
	for _, i := range list {
		names = append(names, i.Node)
	}
	defer p.closed(names)()
	for _, i := range list {
		m := p.nodes[i.Node]
		if m == nil || p.block(m, eligibility.Interruption) {
			continue
		}
		why := cmp.Or(i.Why, "the cloud takes the machine back")
		if cmd := p.must(eligibility.Interruption, m, why); cmd != nil {
			cmd.AtOnce = i.Force || i.Deadline.Sub(p.cluster.Now) < p.o.LaunchTime
		}
	}
}

// expiration replaces nodes that have reached their age, oldest first. Budgets are not asked, but pay.
func (p *planner) expiration() {
	type due struct {
		m  *member
		at time.Time
	}
	var list []due
	for _, m := range p.members() {
		if m.node == nil {
			continue
		}
		if at, ok := m.node.ExpiresAt(); ok && !p.cluster.Now.Before(at) {
			list = append(list, due{m, at})
		}
	}
	slices.SortStableFunc(list, func(a, b due) int { return a.at.Compare(b.at) })
	var names []string
	for _, d := range list {
		names = append(names, d.m.Name)
	}
	defer p.closed(names)()
	for _, d := range list {
		if !p.block(d.m, eligibility.Expiration) {
			p.must(eligibility.Expiration, d.m, fmt.Sprintf("it was to live until %s", d.at.UTC().Format(time.RFC3339)))
		}
	}
}

// drift replaces nodes that are not what would be bought now: empty ones first, then those that drifted first.
func (p *planner) drift() {
	var list []*member
	for _, m := range p.members() {
		if m.node != nil && len(m.node.Drifted) > 0 {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b *member) int {
		return cmp.Or(cmp.Compare(min(1, len(a.Pods)), min(1, len(b.Pods))), a.node.DriftedSince.Compare(b.node.DriftedSince))
	})
	var names []string
	for _, m := range list {
		names = append(names, m.Name)
	}
	defer p.closed(names)()
	for _, m := range list {
		if p.block(m, eligibility.Drift) || p.overBudget(m, eligibility.Drift, nodepool.Drifted) {
			continue
		}
		p.must(eligibility.Drift, m, strings.Join(m.node.Drifted, "; "))
	}
}

// closed keeps pods off nodes that are to go next, until the function that it returns is called.
func (p *planner) closed(names []string) (open func()) {
	closer, ok := p.sim.(Closer)
	if !ok || len(names) < 2 {
		return func() {}
	}
	p.sim = closer.Close(names)
	return func() {
		if closer, ok := p.sim.(Closer); ok {
			p.sim = closer.Close(nil)
		}
	}
}

// must replaces a node whatever that costs, as soon as its pods fit somewhere.
func (p *planner) must(method eligibility.Method, m *member, why string) *Command {
	q := question([]*member{m})
	q.MaxNodes, q.Explain = max(1, len(q.Pods)), true
	a := p.ask(q)
	if !a.OK() {
		p.refuse(Verdict{Node: m.Name, Outcome: WouldNotFit, Method: method, Detail: why + ", but " + a.Why, Disruption: m.Disruption, PricePerHour: m.PricePerHour})
		return nil
	}
	return p.commit(method, []*member{m}, a, why)
}

// emptiness gives back all nodes on which nothing has to move, in one command.
func (p *planner) emptiness() {
	var set []*member
	ledger := p.ledger
	for _, m := range p.ranked(p.members()) {
		if len(m.Pods) > 0 || m.node == nil || p.block(m, eligibility.Emptiness) {
			continue
		}
		if ledger.Left(m.Pool, nodepool.Empty) < 1 {
			p.refuse(Verdict{Node: m.Name, Outcome: OverBudget, Method: eligibility.Emptiness, Detail: ledger.Why(m.Pool, nodepool.Empty), Disruption: m.Disruption, PricePerHour: m.PricePerHour})
			continue
		}
		ledger = ledger.Take(m.Pool, 1)
		set = append(set, m)
	}
	if len(set) == 0 {
		return
	}
	if a := p.ask(question(set)); a.OK() {
		p.commit(eligibility.Emptiness, set, a, "nothing runs there that would have to move")
	}
}

// block notes what stands in the way of the method, and reports whether anything does.
func (p *planner) block(m *member, method eligibility.Method) bool {
	by := p.blockers(m, method)
	if len(by) == 0 {
		return false
	}
	p.refuse(Verdict{Node: m.Name, Outcome: Blocked, Method: method, Detail: by[0].String(), By: by, Disruption: m.Disruption, PricePerHour: m.PricePerHour})
	return true
}

func (p *planner) overBudget(m *member, method eligibility.Method, r nodepool.Reason) bool {
	if p.ledger.Left(m.Pool, r) > 0 {
		return false
	}
	p.refuse(Verdict{Node: m.Name, Outcome: OverBudget, Method: method, Detail: p.ledger.Why(m.Pool, r), Disruption: m.Disruption, PricePerHour: m.PricePerHour})
	return true
}

// ranked puts members in the order of the ranker, those that an earlier search has seen last.
func (p *planner) ranked(list []*member) []*member {
	type scored struct {
		m    *member
		rank float64
	}
	out := make([]scored, len(list))
	for i, m := range list {
		out[i] = scored{m, p.o.Ranker.Rank(m.Candidate)}
	}
	earlier := map[string]bool{}
	for _, name := range p.o.Cursor.Seen {
		earlier[name] = true
	}
	slices.SortStableFunc(out, func(a, b scored) int {
		if x, y := earlier[a.m.Name], earlier[b.m.Name]; x != y {
			if x {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(b.rank, a.rank), strings.Compare(a.m.Name, b.m.Name))
	})
	ms := make([]*member, len(out))
	for i := range out {
		ms[i] = out[i].m
	}
	return ms
}
