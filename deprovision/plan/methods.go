package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
)

// Make looks for nodes to give back, method by method: interruption, expiration, repair, drift,
// emptiness, consolidation. In each round it first finds the state to end with and then the
// commands that lead there. A pod moves at most once, nodes that stay are not touched, and no node
// is bought only to be given back. The result is the same for the same arguments, in whatever order
// the cluster lists its nodes, their pods, interruptions and PodDisruptionBudgets. Make asks some
// dozens of questions about sets of nodes and one or two about each candidate.
//
// Commands for interruption, expiration, repair and drift come first and need not save anything.
// They may buy nodes that later commands share. So a caller that carries out only these commands
// may pay more than for replacements of their nodes alone.
//
// Make looks for the final state without budgets. The commands then go as far as the budgets allow,
// and the next plan continues from there. Meanwhile nodes are deleted if their pods fit on nodes
// that can go later and that gains more. If every command is larger than the budgets allow, one
// command gives its nodes back in waves, see [Command.Waves]. If constraints between pods forbid
// waves, Make looks for a state within the budgets. If no command leads to any of these states, for
// example because a pool's limit forbids buying before nodes go, Make gives back the one node with
// the greatest net saving, and continues from there.
//
// In two cases Make makes a second plan and returns the better of the two. If no budget holds nodes
// back, and one node alone could save more than the whole plan, the second plan begins with that
// node. If budgets hold nodes back, and the plan buys nodes for pods of nodes that must go, the
// second plan keeps to the budgets, because the nodes that stay may have room for these pods.
//
// Each round begins where the one before ended. Make ends when a round finds no change, when every
// further change would move a pod again, or when budgets hold nodes back. So after all commands of
// a plan, a new plan with the same options is usually empty. Otherwise its first command does one
// of two things: it moves a pod that this plan has already moved, or it gives back a node whose
// verdict says that its pods would fit. This presumes that no outcome is [OverBudget] and no command
// has waves, and that pods that move without a command still have the simulator's places.
//
// Some broken or drifted nodes must go before their successors can be bought, see
// [Command.TerminateFirst]. Their commands come last, but the budgets are reserved for them first.
// If several such nodes need the same slot, one of them goes and the next plan continues.
//
// The error is [ErrNoSimulator], [*UnknownMethodError], that of [deprovision.Cluster.Validate],
// that of the simulator, or that of the context; or it names a negative option.
func Make(ctx context.Context, c deprovision.Cluster, sim Simulator, opts *Options) (Result, error) {
	if sim == nil {
		return Result{}, ErrNoSimulator
	}
	if err := c.Validate(); err != nil {
		return Result{}, err
	}
	if err := opts.check(ctx); err != nil {
		return Result{}, err
	}
	p := newPlanner(ctx, c, sim, opts.defaults())
	q := p.fork()
	p.rounds()
	switch buys := func(c Command) bool { return !c.Saves() && len(c.NewNodes) > 0 }; {
	case p.held && slices.ContainsFunc(p.out.Commands, buys):
		p = p.orWithin(q)
	case len(p.out.Commands) > 0 && !p.held && p.asksFor(eligibility.Consolidation): // without commands, each was tried
		p = p.orFirst(q)
	}
	return p.out, p.err
}

// rounds makes the plan.
func (p *planner) rounds() {
	start := p.clone()
	p.terminateFirst(start, true)
	for again := true; again && p.err == nil; {
		alone, quiet, retained := len(p.stuck) > 0, p.target(), len(p.retained)
		quiet = !p.retain() && quiet
		p.verdicts()
		before := len(p.out.Commands)
		whole, held := p.ways(&start)
		made := p.out.Commands[before:]
		var moved []Placement
		for i := range made {
			moved = append(moved, made[i].Placements...)
		}
		p.move(moved)
		if p.short, p.held = p.short || held || !whole, p.held || held; alone && len(made) == 0 {
			p.stuck = nil
		}
		switch again = len(made) > 0 && (!quiet || !whole) && !held; {
		case len(p.stuck) > 0:
			again = true
		case len(made) > 0:
			p.limited, p.single = p.limited && !p.single, false
		case !held && len(p.retained) > retained: // retained for nothing
			again = true
		case held && !p.limited && before == 0:
			p.limited, again = true, true
		case (held || !whole || !quiet) && !p.single && p.asksFor(eligibility.Consolidation):
			p.limited, p.single, again = true, true, true
		}
		p.moves, p.start = nil, state{p.sim, maps.Clone(p.nodes), nil}
		p.tie()
	}
	p.ledger = p.taken() // the rest is for those that can go
	p.terminateFirst(start, false)
	if p.err != nil {
		p.out = Result{}
		return
	}
	for _, m := range p.nodes {
		p.out.PricePerHourAfter += m.PricePerHour
	}
	p.out.Evictions = len(p.movedAlready())
	p.explanations()
	p.budgets()
}

// target finds the state that the round ends with. The forced methods and consolidation take turns
// until neither finds more, because the pods of an expired or drifted node may fit only on a node
// that consolidation buys. It reports whether the search ended because nothing more was found.
func (p *planner) target() (quiet bool) {
	for quiet = true; ; {
		before := p.going()
		p.forced()
		if len(p.stuck) > 0 && p.going() > before {
			return false
		}
		if p.single {
			if p.going() > before {
				p.replay()
			}
			p.first()
			return false
		}
		p.emptiness()
		forced := p.going()
		if before > 0 && forced == before {
			return quiet
		}
		if forced > before {
			p.replay()
		}
		quiet = !p.asksFor(eligibility.Consolidation) || p.consolidation()
		if p.ended() || p.going() == forced {
			return quiet
		}
	}
}

// due is a node that goes at any cost.
type due struct {
	*member
	at     time.Time
	why    string
	atOnce bool
}

// forced replaces nodes that must go, in this order:
//
//   - nodes that the cloud takes back, by deadline
//   - nodes that have reached their age, oldest first
//   - broken nodes, the longest due first
//   - drifted nodes: empty ones first, then those that drifted first
//
// Interruptions and expiration ignore budgets but count against them.
func (p *planner) forced() {
	var interrupted, expired []due
	for _, i := range p.cluster.Interruptions {
		if m := p.nodes[i.Node]; m != nil {
			atOnce := i.Force || i.Deadline.Sub(p.cluster.Now) < p.o.LaunchTime
			interrupted = append(interrupted, due{m, i.Deadline, cmp.Or(i.Why, "the cloud takes the machine back"), atOnce})
		}
	}
	p.replace(eligibility.Interruption, interrupted)
	for _, m := range p.members() {
		if m.bought != nil {
			continue
		}
		if at, ok := m.Node.ExpiresAt(); ok && !p.cluster.Now.Before(at) {
			expired = append(expired, due{m, at, fmt.Sprintf("its lifetime ended at %s", at.UTC().Format(time.RFC3339)), false})
		}
	}
	p.replace(eligibility.Expiration, expired)
	p.replace(eligibility.Unhealthy, p.dueFor(eligibility.Unhealthy))
	p.drift(p.dueFor(eligibility.Drift))
}

// dueFor returns the nodes of this state that are broken or have drifted, in order of time.
func (p *planner) dueFor(method eligibility.Method) (out []due) {
	for _, m := range p.members() {
		switch {
		case m.bought != nil:
		case method == eligibility.Unhealthy && m.Node.Repair != nil:
			out = append(out, due{m, m.Node.Repair.Since, m.Node.Repair.Why, false})
		case method == eligibility.Drift && len(m.Node.Drifted) > 0:
			since := m.Node.DriftedSince
			if since.IsZero() { // the drift has only been noticed now
				since = p.cluster.Now
			}
			out = append(out, due{m, since, strings.Join(m.Node.Drifted, "; "), false})
		}
	}
	sortDue(out)
	return out
}

// drift replaces drifted nodes, in one zone only if the options ask for that.
func (p *planner) drift(list []due) {
	in := func(zone string, empty bool) (out []due) {
		for _, d := range list {
			if (len(d.Pods) == 0) == empty && (!p.o.DriftByZone || d.Zone == zone) {
				out = append(out, d)
			}
		}
		return out
	}
	zones, first := p.driftZones(list)
	for _, zone := range zones {
		before := p.going()
		p.replace(eligibility.Drift, in(zone, true))
		p.replace(eligibility.Drift, in(zone, false))
		if first != "" || p.going() > before {
			first = cmp.Or(first, zone)
			break
		}
	}
	for _, d := range list {
		if p.o.DriftByZone && first != "" && d.Zone != first && p.nodes[d.Name] != nil && !p.block(p.nodes[d.Name], eligibility.Drift) {
			p.note(d.verdict(OverBudget, eligibility.Drift, fmt.Sprintf("%s, but drift goes zone by zone, and zone %s comes first", d.why, first)))
		}
	}
}

// driftZones returns the zones of drifted nodes in the order in which they are tried, and the one
// where drifted nodes are leaving already; empty for none. All nodes are in one if the options do not
// ask for zones.
func (p *planner) driftZones(list []due) (zones []string, first string) {
	if !p.o.DriftByZone {
		return []string{""}, ""
	}
	for _, d := range slices.SortedFunc(slices.Values(list), func(a, b due) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.Zone, b.Zone)) }) {
		if !slices.Contains(zones, d.Zone) {
			zones = append(zones, d.Zone)
		}
	}
	leaving := func(zone string) { first = cmp.Or(first, zone) }
	for i := range p.cluster.Nodes {
		if n := &p.cluster.Nodes[i]; n.Leaving() && len(n.Drifted) > 0 {
			leaving(n.Zone)
		}
	}
	for i := range p.out.Commands {
		if c := &p.out.Commands[i]; c.Method == eligibility.Drift {
			leaving(c.Nodes[0].Zone)
		}
	}
	for _, v := range p.moves {
		if v.method == eligibility.Drift {
			leaving(v.nodes[0].Zone)
		}
	}
	if first != "" {
		return []string{first}, first
	}
	return zones, ""
}

// replace replaces nodes at any cost, in the order of their times, if their pods fit somewhere.
// Nodes that groups tie together go together. A static pool buys a node in the place of each that it
// needs, before that goes if the method can wait. An interrupted node and an expired node of a v1 pool
// go in any case: their pods without another place are stranded. After a round whose forced moves
// were stuck it replaces one node, whose pods go to nodes that need not leave if these have room.
func (p *planner) replace(method eligibility.Method, list []due) {
	if !p.asksFor(method) {
		return
	}
	sortDue(list)
	listed := map[string]bool{}
	for _, d := range list {
		listed[d.Name] = true
	}
	for _, d := range list {
		m := p.nodes[d.Name] // pods may have arrived
		if m == nil || len(p.stuck) > 0 && len(p.moves) > 0 || p.block(m, method) {
			continue
		}
		ledger, goes := p.spent(), unavoidable(m, method)
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
		if _, over := ledger.split(method, set); len(over) > 0 {
			p.note(m.verdict(OverBudget, method, "")) // budgets says which
			continue
		}
		if held, _ := p.heldByPool(set); held != "" && !goes {
			v := m.verdict(Blocked, method, d.why+", but "+held)
			v.By = []eligibility.Blocker{{Kind: eligibility.StaticPool, Text: held}}
			p.note(v)
			continue
		}
		q := question(set)
		q.MaxNodes, q.Explain, q.Replacements, q.Cordon = max(1, len(q.Pods)), true, p.replacements(set), p.stuck
		a := p.askDue(&q)
		why, stranded := d.why, []*corev1.Pod(nil)
		for goes && !a.OK() && !p.ended() { // the machine goes in any case, so move the pods that can move
			stuck := a.stuck()
			p.losses[a.Unplaced[0]] = a.Why + p.unbought(q, &a)
			for _, pod := range q.Pods {
				if stuck([]*corev1.Pod{pod}) {
					stranded = append(stranded, pod)
				}
			}
			q.Pods = slices.DeleteFunc(q.Pods, func(pod *corev1.Pod) bool { return stuck([]*corev1.Pod{pod}) })
			a = p.ask(q)
		}
		if !a.OK() {
			p.note(m.verdict(WouldNotFit, method, d.why+", but "+a.Why+p.unbought(q, &a)))
			continue
		}
		if pool := a.lacks(q.Replacements); pool != "" {
			lack := fmt.Sprintf("pool %s cannot buy a node in its place now", pool)
			if !goes {
				p.note(m.verdict(WouldNotFit, method, d.why+", but "+lack))
				continue
			}
			why += ", though " + lack
		}
		sortPods(stranded)
		p.commit(move{method: method, nodes: set, why: why, atOnce: d.atOnce, leaves: q.LeaveDomains, stranded: stranded}, &a)
	}
}

// terminateFirst lets nodes go before their successors are bought, as the last commands of the plan:
// nodes that must be replaced and cannot be, neither at the start of the plan nor now, although their
// pods have a place once they are gone. Of the nodes that need the same place one goes at a time. No
// command before it has touched the node, and none after it relies on its successor. If ahead, the plan
// begins: the nodes that would go now are charged to the budgets, which no saving may use up, and take
// no more pods.
func (p *planner) terminateFirst(start state, ahead bool) {
	if _, over := p.ledger.split(eligibility.Consolidation, p.members()); ahead && len(over) == 0 {
		return // there is enough for all
	}
	taken, waiting, touched := map[string]string{}, map[string]int{}, map[string]bool{}
	for i := range p.out.Commands {
		for _, name := range p.out.Commands[i].Touches() {
			touched[name] = true
		}
	}
	for _, method := range []eligibility.Method{eligibility.Unhealthy, eligibility.Drift} {
		if !p.asksFor(method) || !slices.Contains(p.o.TerminateFirst, method) {
			continue
		}
		list := p.dueFor(method)
		for _, d := range list {
			m := p.nodes[d.Name]
			if m == nil || touched[d.Name] || p.ended() || len(p.blockers(m, method)) > 0 || len(p.tied(m)) > 1 {
				continue
			}
			if _, zone := p.driftZones(list); method == eligibility.Drift && zone != "" && zone != m.Zone {
				continue
			}
			a, ok := p.freed(m, start)
			if !ok && !ahead && a.Why != "" {
				if v := p.verdictOf(m.Name); v.Outcome == WouldNotFit && v.Method == method {
					v.Detail = d.why + ", but " + a.Why
				}
			}
			if !ok {
				continue
			}
			refuse := func(o Outcome, why string, by ...eligibility.Blocker) {
				v := m.verdict(o, method, fmt.Sprintf("%s, but nothing can be bought before it goes (%s), and %s", d.why, strings.Join(a.Freed, "; "), why))
				if v.By = by; !ahead {
					*p.verdictOf(m.Name) = v
				}
			}
			if at := slices.IndexFunc(a.Freed, func(text string) bool { return taken[text] != "" }); at >= 0 {
				refuse(WouldNotFit, fmt.Sprintf("node %s goes before it", taken[a.Freed[at]]))
				continue
			}
			if _, over := p.ledger.split(method, []*member{m}); len(over) > 0 {
				refuse(OverBudget, "the budgets allow no more") // budgets says which
				continue
			}
			if why := p.keptRunning(m.Pods, waiting); why != "" {
				refuse(Blocked, why, eligibility.Blocker{Kind: eligibility.PodBudget, Text: why})
				continue
			}
			for _, text := range a.Freed {
				taken[text] = m.Name
			}
			if ahead {
				p.ledger = p.ledger.keep(method, m)
				if a := p.ask(Question{Cordon: []string{m.Name}}); a.After != nil {
					p.sim = a.After()
					p.start.sim = p.sim
				}
				continue
			}
			p.carryOut(move{method: method, why: d.why + "; goes first: " + strings.Join(a.Freed, "; "), first: true}, [][]*member{{m}}, &a)
			p.out.After = p.sim
			for _, name := range p.out.Commands[len(p.out.Commands)-1].Touches() {
				touched[name] = true
			}
		}
	}
}

// freed returns the answer that uses what the node frees, and whether there is one while the node
// cannot be replaced otherwise.
func (p *planner) freed(m *member, start state) (Answer, bool) {
	set := []*member{m}
	held, limited := p.heldByPool(set)
	q := question(set)
	q.MaxNodes, q.Replacements, q.Thorough = max(1, len(q.Pods)), p.replacements(set), true
	sims := []Simulator{start.sim}
	if len(p.out.Commands) > 0 {
		sims = append(sims, p.sim)
	}
	for _, sim := range sims {
		if a := p.askOf(sim, q); held == "" && a.OK() && a.lacks(q.Replacements) == "" {
			return Answer{}, false
		}
	}
	pools, _ := p.staticPools(set)
	if held != "" && !limited || slices.ContainsFunc(pools, func(name string) bool { return p.population(name).Leaving > 0 }) {
		return Answer{}, false
	}
	q.Freed, q.Explain = true, true
	a := p.ask(q)
	return a, a.OK() && len(a.Freed) > 0 && a.lacks(q.Replacements) == ""
}

// keptRunning says which PodDisruptionBudget forbids that all the pods wait at once; empty if none
// does. waiting counts, by budget, the pods that wait already, and then these, too.
func (p *planner) keptRunning(pods []*corev1.Pod, waiting map[string]int) string {
	own := map[string]int{}
	for _, pod := range pods {
		if p.pdbs.Free(pod) {
			continue
		}
		if r := p.pdbs.Check(pod); r.Text != "" {
			return fmt.Sprintf("pod %s would wait, but %s", eviction.Name(pod), r.Text)
		}
		for _, name := range p.pdbs.Of(pod) {
			own[name]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if allowed := p.pdbs.Allowed(name) - waiting[name]; own[name] > allowed {
			return fmt.Sprintf("more pods of PodDisruptionBudget %s would wait at once (%d) than it allows (%d)", name, own[name], max(0, allowed))
		}
	}
	for name, n := range own {
		waiting[name] += n
	}
	return ""
}

// emptiness gives back all nodes without pods that have to move, in one command.
func (p *planner) emptiness() {
	if !p.asksFor(eligibility.Emptiness) {
		return
	}
	set, ledger := []*member(nil), p.spent()
	for _, m := range p.ranked(p.members()) {
		if len(m.Pods) > 0 || m.bought != nil || p.block(m, eligibility.Emptiness) {
			continue
		}
		if _, over := ledger.split(eligibility.Emptiness, []*member{m}); len(over) > 0 {
			p.note(m.verdict(OverBudget, eligibility.Emptiness, ""))
			continue
		}
		set = append(set, m)
	}
	if set = p.within(set); len(set) == 0 {
		return
	}
	if a := p.ask(question(set)); a.OK() {
		p.commit(move{method: eligibility.Emptiness, nodes: set}, &a)
	}
}
