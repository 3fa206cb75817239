package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
)

// verdict returns a verdict for the node.
func (m *member) verdict(o Outcome, method eligibility.Method, detail string) Verdict {
	return Verdict{Node: m.Name, Outcome: o, Method: method, Detail: detail, Disruption: m.Disruption, PricePerHour: m.PricePerHour}
}

// after returns the verdict, completed with what an earlier one found before a later round decided.
func (v Verdict) after(old *Verdict) Verdict {
	out := *old
	out.Node, out.Outcome, out.Method, out.Disruption, out.PricePerHour = v.Node, v.Outcome, v.Method, v.Disruption, v.PricePerHour
	if v.Detail != "" {
		out.Detail = v.Detail
	}
	return out
}

// note records why a node stays, unless a verdict of higher precedence is known.
func (p *planner) note(v Verdict) {
	if old, ok := p.noted[v.Node]; ok {
		lead := precedence(old.Outcome) - precedence(v.Outcome)
		if lead > 0 || lead == 0 && old.Method == eligibility.Unhealthy && v.Method != old.Method { // why a broken node stays matters more
			return
		}
	}
	p.noted[v.Node] = v
}

// precedence is higher for outcomes that are closer to a command.
func precedence(o Outcome) int {
	switch o {
	case Chosen:
		return 6
	case Outranked:
		return 4
	case OverBudget:
		return 3
	case NoSaving, WouldNotFit:
		return 2
	case Blocked:
		return 1
	case NotAsked:
		return 0
	}
	return 0
}

// verdicts fills in the verdict of every node.
func (p *planner) verdicts() {
	for i := range p.cluster.Nodes {
		name := p.cluster.Nodes[i].Name()
		v, ok := p.noted[name]
		m := p.nodes[name]
		if m == nil { // its command adds the rest
			v, ok = Verdict{Node: name, Outcome: Chosen}, true
		}
		switch {
		case !ok && m != nil && p.asksFor(eligibility.Consolidation):
			v = p.explain(m)
		case !ok && m != nil:
			v = m.verdict(NotAsked, "", "none of the requested methods applies")
		}
		v.Notes = p.cluster.Nodes[i].Undecided
		p.out.Verdicts = append(p.out.Verdicts, v)
	}
	slices.SortFunc(p.out.Verdicts, func(a, b Verdict) int { return strings.Compare(a.Node, b.Node) })
}

// explain returns the verdict of a candidate for which no change gives it back.
func (p *planner) explain(m *member) Verdict {
	v := m.verdict(NoSaving, eligibility.Consolidation, "")
	set := p.tied(m)
	q, with := question(set), p.together(m.Name)
	v.BoundPerHour = p.bound(q)
	if cost := costOf(set); v.BoundPerHour >= cost {
		v.Detail = fmt.Sprintf("%sit costs $%.4f an hour, and nothing that holds its pods can cost less than $%.4f", with, cost.Dollars(), v.BoundPerHour.Dollars())
		return v
	}
	q.MaxNodes, q.Explain = len(set), true
	p.spotRules(set, &q)
	a := p.ask(q)
	switch {
	case !a.OK():
		v.Outcome, v.Detail = WouldNotFit, with+a.Why
		if q.CapacityTypes != nil {
			v.Detail += "; spot nodes are replaced by spot nodes only on request"
		}
	case len(a.NewNodes) == 0:
		v.Detail = with + "its pods would fit on other nodes, but giving it back saves nothing"
	case len(set) > 1:
		v.BestPricePerHour = a.price()
		v.Detail = fmt.Sprintf("%sthey cost $%.4f an hour, and new nodes for their pods would cost $%.4f", with, priceOf(set).Dollars(), a.price().Dollars())
	default:
		n := a.NewNodes[0]
		v.BestPricePerHour = a.price()
		v.Detail = fmt.Sprintf("it costs $%.4f an hour, and the cheapest that would hold its pods is %s in %s at $%.4f", m.PricePerHour.Dollars(), n.InstanceType, n.Zone, n.PricePerHour.Dollars())
	}
	return v
}
