package plan

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Objective is what consolidation maximizes: the saving of a change over the horizon minus the
// price of its disruption. A change is made only if the result is positive. Savings are differences
// of CostPerHour, the cost that provisioning minimized. So a high price alone is no reason to give
// a node back if its cost in the objective is low. The zero value has the defaults of its fields.
type Objective struct {
	// Horizon is how long a saving counts, but not beyond the expiry of the node. 0 means the time
	// since a pod last came to the node or left it ([eligibility.Node.QuietSince]), but at least
	// two hours and at most a day. A node that changed a short time ago will probably change again
	// soon, and then the saving ends. If that time is unknown, or if the pool compares shares (see
	// Balanced), 0 means a day.
	Horizon time.Duration
	// DisruptionPrice is the price of one unit of disruption, about one eviction, see
	// [deprovision.Candidate.Disruption]. 0 means one cent. A negative price means that disruption
	// is free, so that any saving is taken, as Karpenter does. Pools with the policy Balanced still
	// compare shares, see Balanced.
	DisruptionPrice deprovision.Price
	// Balanced, if not 0, compares a change with its pool. A change that causes the fraction d of
	// the disruption of emptying the whole pool must save more than the fraction d/Balanced of the
	// pool's cost. So the price of one unit of disruption is (cost of the pool over the horizon) /
	// (Balanced x disruption of the pool), but at least DisruptionPrice. 0 means 2 for pools with
	// the policy Balanced, as in Karpenter, and no comparison for other pools.
	Balanced int
}

// defaultBalanced is Karpenter's factor for pools with the policy Balanced.
const defaultBalanced = 2

// The horizon of a quiet node, if the objective has none.
const (
	leastHorizon = 2 * time.Hour
	mostHorizon  = 24 * time.Hour
)

func (o Objective) defaults() Objective {
	o.DisruptionPrice = max(0, cmp.Or(o.DisruptionPrice, deprovision.Dollars(0.01)))
	return o
}

// poolSum is the cost of all nodes of a pool and the disruption of emptying them.
type poolSum struct {
	cost       deprovision.Price
	disruption float64
}

// balanced returns the factor with which the pool compares shares, or 0 if it does not.
func (p *planner) balanced(pool string) int {
	if k := p.o.Objective.Balanced; k != 0 {
		return k
	}
	if pool := p.pools[pool]; pool != nil && pool.Disruption.Policy == nodepool.Balanced {
		return defaultBalanced
	}
	return 0
}

// horizon returns how long a saving on the node counts, in hours, if the node does not expire
// before. It is the longest for a node that the plan would buy, because not buying it disturbs
// nothing.
func (p *planner) horizon(m *member) float64 {
	if h := p.o.Objective.Horizon; h != 0 {
		return h.Hours()
	}
	since := m.Node.QuietSince()
	if m.bought != nil || since.IsZero() || p.balanced(m.Pool) > 0 {
		return mostHorizon.Hours()
	}
	return min(mostHorizon, max(leastHorizon, p.cluster.Now.Sub(since))).Hours()
}

// unitPrices returns the price of one unit of disruption by pool.
func (p *planner) unitPrices() map[string]deprovision.Price {
	sums := map[string]poolSum{}
	for _, m := range p.members() {
		s := sums[m.Pool]
		sums[m.Pool] = poolSum{s.cost + m.CostPerHour, s.disruption + m.Disruption}
	}
	out := map[string]deprovision.Price{}
	for name, s := range sums {
		out[name] = p.o.Objective.DisruptionPrice
		if k := p.balanced(name); k > 0 && s.disruption > 0 {
			horizon := cmp.Or(p.o.Objective.Horizon, mostHorizon)
			out[name] = max(out[name], s.cost.Times(horizon.Hours()/(float64(k)*s.disruption)))
		}
	}
	return out
}

// balance is the saving of a change per hour, its saving over the horizon, the price of its
// disruption, and the horizon of the whole change in hours.
type balance struct {
	saving, earned, disrupted deprovision.Price
	horizon                   float64
}

func (w balance) net() deprovision.Price { return w.earned - w.disrupted }

// weigh returns the balance of giving back the set and buying new nodes of the given cost. Pods
// that the plan already moves are charged only once.
func (p *planner) weigh(set []*member, bought deprovision.Price) balance {
	var w balance
	total, lived := deprovision.Price(0), deprovision.Price(0)
	for _, m := range set {
		total += m.CostPerHour
		lived += m.CostPerHour.Times(min(p.horizon(m), m.RemainingLife.Hours()))
		if at := p.charged(m, len(set)); at != nil {
			w.disrupted += p.units[m.Pool].Times(at.Disruption)
		}
	}
	w.saving = total - bought
	if total > 0 {
		w.horizon = lived.Dollars() / total.Dollars()
		w.earned = lived - bought.Times(w.horizon)
	}
	return w
}

// charged returns the state of the node whose disruption counts in a set of the given size. That is
// the node as it was at the start of the round, because pods that arrived since then move in any
// case. A node that the round buys costs nothing, so the result is nil. If such a node is alone in
// the set, its pods would move once more, so it counts as it is.
func (p *planner) charged(m *member, of int) *member {
	if at := p.start.nodes[m.Name]; at != nil || of > 1 {
		return at
	}
	return m
}

// worth returns how many nodes the commands give back because they must go, and what the other
// commands gain by the objective, in the state at the start of the plan.
func (p *planner) worth(start *state) (forced int, gain deprovision.Price) {
	at := planner{problem: p.problem, state: *start, start: *start}
	at.units = at.unitPrices()
	for i := range p.out.Commands {
		c := &p.out.Commands[i]
		var set []*member
		bought := deprovision.Price(0)
		for _, n := range c.Nodes {
			set = append(set, start.nodes[n.Name])
		}
		for k := range c.NewNodes {
			bought += c.NewNodes[k].cost()
		}
		if c.Saves() {
			gain += at.weigh(set, bought).net()
		} else {
			forced += len(set)
		}
	}
	return forced, gain
}

// orFirst returns the plan of q, which begins with the one node that gains most, if it gains and saves
// more than this plan. It asks only about nodes that could gain more by themselves than this plan does,
// so nothing about a large cluster.
func (p *planner) orFirst(q *planner) *planner {
	_, saves := p.worth(&q.state)
	q.units = q.unitPrices()
	if !slices.ContainsFunc(q.members(), func(m *member) bool { return q.weigh(q.tied(m), 0).net() > saves }) {
		return p
	}
	q.limited, q.single, q.least = true, true, saves
	return p.or(q, saves)
}

// orWithin returns the plan of q, which looks only for what the budgets allow, if it costs less
// afterwards than this plan. This plan buys nodes for pods of nodes that must go, while budgets keep
// other nodes, which may have room for them.
func (p *planner) orWithin(q *planner) *planner {
	q.limited = true
	return p.or(q, math.MinInt64)
}

// fork returns a planner that goes on from where this one is.
func (p *planner) fork() *planner {
	q := *p
	q.state, q.start = p.clone(), p.start.clone()
	q.noted, q.retained, q.losses, q.mates, q.purchases = maps.Clone(p.noted), maps.Clone(p.retained), maps.Clone(p.losses), maps.Clone(p.mates), maps.Clone(p.purchases)
	q.out.Verdicts, q.out.Commands = slices.Clone(p.out.Verdicts), slices.Clone(p.out.Commands)
	for i := range q.out.Commands { // later commands change the alternatives of what they fill
		q.out.Commands[i].NewNodes = slices.Clone(q.out.Commands[i].NewNodes)
	}
	return &q
}

// ways finds the commands of the round. If budgets hold nodes back, what they allow is used for what
// gains most now. So the way straight to the state of the round is compared with ways that leave it:
// from some command on, nodes are deleted first whose pods fit on nodes that only a later plan gives
// back.
func (p *planner) ways(start *state) (whole, held bool) {
	before := p.fork()
	whole, held = p.way(math.MaxInt)
	buys := 0
	for _, c := range p.out.Commands[len(before.out.Commands):] {
		if c.Saves() && len(c.NewNodes) > 0 {
			buys++
		}
	}
	if !held || buys == 0 {
		return whole, held
	}
	_, most := p.worth(start)
	for direct := range min(buys, few) {
		q := before.fork()
		w, h := q.way(direct)
		questions, avoided := p.out.Questions+q.out.Questions-before.out.Questions, p.out.Avoided+q.out.Avoided-before.out.Avoided
		if _, gain := q.worth(start); gain > most || q.err != nil {
			*p, whole, held, most = *q, w, h, gain
		}
		p.out.Questions, p.out.Avoided = questions, avoided
	}
	return whole, held
}

// deletions gives back nodes of the list without a purchase, those that gain most first, as far as the
// budgets allow. A pod whose node would still have to be bought goes to a node that only a later plan
// gives back, if possible to one that the budgets keep in any case. Such a node then stays in this
// plan, because its pods would move twice. It must be able to go later: what is put on other nodes
// stays there, and the cluster would end dearer. left are the moves that remain. due are moves of
// nodes that must go.
func (p *planner) deletions(list, due []move, to *destination) (left []move) {
	list = p.joined(pieces(list))
	gain := func(v move) deprovision.Price { return p.weigh(v.nodes, 0).net() / deprovision.Price(len(v.nodes)) }
	slices.SortStableFunc(list, func(a, b move) int { return cmp.Compare(gain(b), gain(a)) })
	closed := nodesOf(due)
	for _, m := range p.members() {
		if slices.ContainsFunc(p.blockers(m, eligibility.Consolidation), lasting) {
			closed = append(closed, m)
		}
	}
	for i, v := range list {
		a, ok := Answer{}, false
		if !to.hosting(v) {
			a, ok = p.deletion(v, list[i+1:], closed, to)
		}
		if !ok {
			left = append(left, pieces([]move{v})...)
			continue
		}
		for _, pl := range a.Placements {
			to.moved[pl.Pod], to.hosts[pl.Node] = pl.Node, true
		}
		p.carryOut(v, [][]*member{v.nodes}, &a)
	}
	return left
}

// hosting reports whether a node of the move is one of to.hosts.
func (to *destination) hosting(v move) bool {
	return slices.ContainsFunc(v.nodes, func(m *member) bool { return to.hosts[m.Name] })
}

// withoutHosts returns the moves of the nodes that are not in to.hosts, and sets the verdicts of the
// others, because explanations asks what holds their pods.
func (p *planner) withoutHosts(list []move, to *destination) []move {
	return slices.DeleteFunc(pieces(list), func(v move) bool {
		hosts := to.hosting(v)
		if hosts {
			m := v.nodes[0]
			*p.verdictOf(m.Name) = m.verdict("", v.method, "").after(p.verdictOf(m.Name))
		}
		return hosts
	})
}

// deletion returns the answer that gives back the nodes of the move now without a purchase, and
// whether that is possible and pays. The other moves come later. closed are nodes that take no pods
// but those that the state of the round puts there.
func (p *planner) deletion(v move, later []move, closed []*member, to *destination) (Answer, bool) {
	ledger := p.ledger
	for _, m := range v.nodes {
		var allowed bool
		if ledger, allowed = ledger.charged(v.method, m); !allowed {
			return Answer{}, false
		}
	}
	if p.torn(v) != nil || !p.pays(v, nil) || len(p.replacements(v.nodes)) > 0 {
		return Answer{}, false
	}
	q := p.moveQuestion(v.nodes, nil, to.moved)
	meant, shut := map[string]bool{}, map[string]bool{}
	for pod, name := range q.Moves {
		if p.nodes[name] == nil {
			q.Moves[pod] = ""
		}
		meant[q.Moves[pod]] = true
	}
	for _, m := range closed {
		shut[m.Name] = true
	}
	others := slices.DeleteFunc(slices.Clone(closed), func(m *member) bool { return meant[m.Name] })
	next, _ := ledger.split(v.method, nodesOf(later))
	for _, cordon := range [][]*member{slices.Concat(others, next), others, slices.Concat(closed, next), closed} {
		q.Elsewhere, q.Cordon = true, question(cordon).Remove
		a := p.ask(q)
		if !a.OK() || slices.ContainsFunc(a.Placements, func(pl Placement) bool { return shut[pl.Node] && q.Moves[pl.Pod] != pl.Node }) {
			continue
		}
		exact := q
		exact.Moves, exact.Elsewhere, exact.Cordon = map[*corev1.Pod]string{}, false, nil // these nodes take pods again
		for _, pl := range a.Placements {
			exact.Moves[pl.Pod] = pl.Node
		}
		a = p.ask(exact)
		return a, a.OK() && p.saves(p.weigh(v.nodes, a.Forgone))
	}
	return Answer{}, false
}

// lasting reports whether the blocker may keep a node for long.
func lasting(b eligibility.Blocker) bool {
	return !slices.Contains([]eligibility.Kind{eligibility.TooEarly, eligibility.MinimumAge, eligibility.Nominated, eligibility.Uninitialized, eligibility.Rebooting}, b.Kind)
}

// or makes the plan of q and returns it if it gives back as many nodes that must go, costs less
// afterwards, and gains more than least.
func (p *planner) or(q *planner, least deprovision.Price) *planner {
	start := q.clone()
	forced, _ := p.worth(&start)
	q.rounds()
	if p.err = q.err; p.err == nil {
		if again, gain := q.worth(&start); again == forced && gain > least && q.out.PricePerHourAfter < p.out.PricePerHourAfter {
			p, q = q, p
		}
	}
	p.out.Questions += q.out.Questions
	p.out.Avoided += q.out.Avoided
	return p
}
