package deprovision

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Plan looks for nodes to give back, method by method: interruption, expiration, drift, emptiness, consolidation. It first finds the
// state to end with and then the commands that lead there. A pod moves at most once, nodes that stay are not touched, and no node is
// bought to be given back. The result is the same for the same arguments. It costs some dozens of questions about sets of nodes and one
// or two about each candidate.
//
// Commands for interruption, expiration and drift come first and need not save anything. They may buy nodes that later commands share,
// so a plan that is stopped after them can cost more than replacing just their nodes would.
//
// It looks for that state without budgets, and the commands go as far as these allow; the plan that is made after them goes on. Where no
// command is as small as the budgets ask, one gives its nodes back in waves, see [Command.Waves]; where constraints between pods forbid
// waves, it looks for a state within the budgets.
//
// It plans in rounds. Each begins where the one before ended, until a round finds no change, or none without pods that have moved
// already, or budgets keep nodes back. So if the plan is made again after its commands, with the same options and budgets, its first command moves some pod a
// second time.
//
// The error is [ErrNoSimulator], [*UnknownMethodError], that of [Cluster.Validate], that of the simulator, or that of the context.
func Plan(ctx context.Context, c Cluster, sim Simulator, opts *Options) (Result, error) {
	if sim == nil {
		return Result{}, ErrNoSimulator
	}
	if err := c.Validate(); err != nil {
		return Result{}, err
	}
	p := newPlanner(ctx, c, sim, opts.defaults())
	for _, m := range p.o.Methods {
		if !slices.Contains(eligibility.Methods(), m) {
			return Result{}, &UnknownMethodError{m}
		}
	}
	for again := true; again && p.err == nil; {
		p.target()
		if p.out.Verdicts == nil {
			p.verdicts()
		}
		before := len(p.out.Commands)
		whole, held := p.way()
		if again = len(p.out.Commands) > before && (!p.quiet || !whole) && !held; again {
			var moves []Placement
			for _, c := range p.out.Commands[before:] {
				moves = append(moves, c.Placements...)
			}
			p.move(moves)
		}
		if held && !p.limited && len(p.out.Commands) == 0 {
			p.limited, again = true, true
		}
		p.advance()
	}
	if p.err != nil {
		return Result{}, p.err
	}
	p.budgets()
	return p.out, nil
}

// advance makes the state the start of the next round: bought nodes are there, and moved pods belong to their new nodes.
func (p *planner) advance() {
	p.earlier = p.evictions(nil)
	p.out.Evictions, p.out.PricePerHourAfter = len(p.done), 0
	for name, m := range p.nodes {
		p.out.PricePerHourAfter += m.PricePerHour
		if !m.there || len(m.arrived) > 0 {
			own := *m
			own.there, own.base, own.owed, own.evictions = true, m.Pods, m.Disruption, len(m.Pods)
			p.nodes[name] = &own
		}
	}
	p.gone, p.bought, p.moved, p.quiet = nil, map[string]NewNode{}, map[*corev1.Pod]string{}, false
	p.start = p.clone()
	p.tie()
}

// target finds the state that the round ends with. The forced methods and consolidation take turns until neither finds more, because
// the pods of an expired or drifted node may fit only on a node that consolidation buys.
func (p *planner) target() {
	for {
		before := len(p.gone)
		p.forced()
		p.emptiness()
		forced := len(p.gone)
		if before > 0 && forced == before {
			return
		}
		if forced > before {
			p.flatten()
		}
		if p.quiet = true; p.asksFor(eligibility.Consolidation) {
			p.consolidation()
		}
		if p.ended() || len(p.gone) == forced {
			return
		}
	}
}

func (p *planner) asksFor(m eligibility.Method) bool {
	return p.o.Methods == nil || slices.Contains(p.o.Methods, m)
}

// due is a node that goes at any cost.
type due struct {
	*member
	at     time.Time
	why    string
	atOnce bool
}

// forced replaces nodes that the cloud takes back, by deadline; nodes that have reached their age, oldest first; and drifted nodes:
// empty ones first, then those that drifted first. Interruptions and expiration ignore budgets, but count against them.
func (p *planner) forced() {
	var interrupted, expired, empty, drifted []due
	for _, i := range p.cluster.Interruptions {
		if m := p.nodes[i.Node]; m != nil {
			atOnce := i.Force || i.Deadline.Sub(p.cluster.Now) < p.o.LaunchTime
			interrupted = append(interrupted, due{m, i.Deadline, cmp.Or(i.Why, "the cloud takes the machine back"), atOnce})
		}
	}
	p.replace(eligibility.Interruption, interrupted)
	for _, m := range p.members() {
		if m.node == nil {
			continue
		}
		if at, ok := m.node.ExpiresAt(); ok && !p.cluster.Now.Before(at) {
			expired = append(expired, due{m, at, fmt.Sprintf("it was to live until %s", at.UTC().Format(time.RFC3339)), false})
		}
	}
	p.replace(eligibility.Expiration, expired)
	for _, m := range p.members() {
		if m.node == nil || len(m.node.Drifted) == 0 {
			continue
		}
		since := m.node.DriftedSince
		if since.IsZero() { // it is known to have drifted only now
			since = p.cluster.Now
		}
		d := due{m, since, strings.Join(m.node.Drifted, "; "), false}
		if len(m.Pods) == 0 {
			empty = append(empty, d)
		} else {
			drifted = append(drifted, d)
		}
	}
	p.replace(eligibility.Drift, empty)
	p.replace(eligibility.Drift, drifted)
}

// replace replaces nodes at any cost, by their times, if their pods fit somewhere, nodes that groups tie together. An interrupted node and an
// expired one of a v1 pool go in any case: the pods without another place are stranded.
func (p *planner) replace(method eligibility.Method, list []due) {
	if !p.asksFor(method) {
		return
	}
	slices.SortStableFunc(list, func(a, b due) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.Name, b.Name)) })
	ledger, listed := p.spent(), map[string]bool{}
	for _, d := range list {
		listed[d.Name] = true
	}
	for _, d := range list {
		m := p.nodes[d.Name] // pods may have arrived
		if m == nil || p.block(m, method) {
			continue
		}
		goes := unavoidable(m, method)
		set := []*member{m}
		if !goes {
			set = p.tied(m)
		}
		if at := slices.IndexFunc(set, func(mate *member) bool { return !listed[mate.Name] }); at >= 0 {
			v := m.verdict(Blocked, method, fmt.Sprintf("%s, but group %s needs all pods that would move, and runs on node %s, too, which does not have to go", d.why, p.gangs.ties[m.Name].group.Name, set[at].Name))
			v.By = []eligibility.Blocker{{Kind: eligibility.PodGroup, Text: v.Detail}}
			p.note(v)
			continue
		}
		rest, over := ledger, ""
		for _, mate := range set {
			if method == eligibility.Drift && over == "" && rest.Left(mate.Pool, nodepool.Drifted) < 1 {
				over = rest.Why(mate.Pool, nodepool.Drifted)
			}
			rest = rest.Take(mate.Pool, 1)
		}
		if over != "" {
			p.note(m.verdict(OverBudget, method, over))
			continue
		}
		q := question(set)
		q.MaxNodes, q.Explain = max(1, len(q.Pods)), true
		a := p.ask(q)
		why, stranded := d.why, []*corev1.Pod(nil)
		for goes && !a.OK() && !p.ended() { // the machine goes all the same, so what can move moves
			stuck := a.stuck()
			if stranded == nil {
				why += ", though " + a.Why
			}
			for _, pod := range q.Pods {
				if stuck([]*corev1.Pod{pod}) {
					stranded = append(stranded, pod)
				}
			}
			q.Pods = slices.DeleteFunc(q.Pods, func(pod *corev1.Pod) bool { return stuck([]*corev1.Pod{pod}) })
			a = p.ask(q)
		}
		if !a.OK() {
			p.note(m.verdict(WouldNotFit, method, d.why+", but "+a.Why))
			continue
		}
		sortPods(stranded)
		p.commit(method, set, &a, why)
		p.gone[len(p.gone)-1].atOnce, p.gone[len(p.gone)-1].stranded = d.atOnce, stranded // of a node that goes in any case, which is alone
		ledger = rest
	}
}

// emptiness gives back all nodes without pods that have to move, in one command.
func (p *planner) emptiness() {
	if !p.asksFor(eligibility.Emptiness) {
		return
	}
	var set []*member
	for _, m := range p.ranked(p.members()) {
		if len(m.Pods) == 0 && m.node != nil && !p.block(m, eligibility.Emptiness) {
			set = append(set, m)
		}
	}
	if len(set) == 0 {
		return
	}
	if a := p.ask(question(set)); a.OK() {
		p.commit(eligibility.Emptiness, set, &a, "nothing runs there that would have to move")
	}
}

// block notes the blockers of the node for the method, and reports whether there are any.
func (p *planner) block(m *member, method eligibility.Method) bool {
	by := p.blockers(m, method)
	if len(by) == 0 {
		by = p.tieBlockers(m, method)
	}
	if len(by) == 0 {
		return false
	}
	v := m.verdict(Blocked, method, by[0].String())
	v.By = by
	p.note(v)
	return true
}

// ranked is the members in the order of the ranker, then of their names.
func (p *planner) ranked(list []*member) []*member {
	out := slices.Clone(list)
	for i, m := range out {
		scored := *m
		scored.Score = p.o.Ranker.Rank(m.Candidate)
		out[i] = &scored
	}
	slices.SortStableFunc(out, func(a, b *member) int { return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Name, b.Name)) })
	return out
}
