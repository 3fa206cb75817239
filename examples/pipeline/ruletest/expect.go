package ruletest

import (
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/examples/plan/survive"
)

// TB is what a test gives to report to; *testing.T and *testing.B are.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Pods are the pods of a plan that a test speaks of. It is a value; every demand reports to the test by itself and gives
// the pods back, for chains. [Plan.Pods] makes it, of a plan that [Scenario.Plan] made.
type Pods struct {
	plan *Plan
	rule Rule
}

// Pods are those with the given names: "shop/web-*"; see [Rule].Pods. The plan must have come from [Scenario.Plan], which
// knows the test; it panics if the plan is of [Scenario.Solve] or [NewPlan], whose rules [Plan.Check] checks.
func (p *Plan) Pods(names string) Pods {
	p.testing().Helper()
	return Pods{p, Rule{Pods: names}}
}

// Labelled narrows the pods by a label selector: "app=web,tier!=cache".
func (p Pods) Labelled(selector string) Pods {
	p.rule.Labels = selector
	return p
}

// Called gives the demands that follow a name, which a failure starts with.
func (p Pods) Called(name string) Pods {
	p.rule.Name = name
	return p
}

// ArePlaced demands that every pod has a place.
func (p Pods) ArePlaced() Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.Placed = true })
}

// AreAllOrNothing demands that all pods have a place, or none; see [Rule].AllOrNothing.
func (p Pods) AreAllOrNothing() Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.AllOrNothing = true })
}

// LandOn demands that every pod is on one of these nodes.
func (p Pods) LandOn(places ...Place) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.LandsOn = places })
}

// NeverLandOn demands that no pod is on one of these nodes.
func (p Pods) NeverLandOn(places ...Place) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.NeverOn = places })
}

// AreTogether demands that all pods share one node, zone or other label: "node", "zone" or a label key.
func (p Pods) AreTogether(by string) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.Together = &Company{By: by} })
}

// AreNear demands that each pod shares its node, zone or other label with one of the pods named.
func (p Pods) AreNear(by, names string) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.Together = &Company{By: by, With: names} })
}

// AreApart demands that no two pods share a node, zone or other label.
func (p Pods) AreApart(by string) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.Apart = &Company{By: by} })
}

// AreSpread demands that at most so many of the pods share a node, zone or other label. How even they are is for [Pods.SpreadOver].
func (p Pods) AreSpread(by string, most int) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.Apart = &Company{By: by, Most: most} })
}

// SpreadOver demands that the pods are over so many nodes, zones or values of another label at least, and that of the values with
// any of them the fullest has at most skew more than the emptiest; 0 asks nothing.
func (p Pods) SpreadOver(by string, atLeast, skew int) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.Spread = &Spread{By: by, AtLeast: atLeast, Skew: skew} })
}

// NodeOf is the name of the node that a pod, "namespace/name", is on; false for one that has no place, or is not there.
func (p *Plan) NodeOf(pod string) (string, bool) {
	if !strings.Contains(pod, "/") {
		pod = "default/" + pod
	}
	for _, m := range slices.Concat(p.members, p.running) {
		if m.name == pod && m.site != nil {
			return m.site.name, true
		}
	}
	return "", false
}

// AvoidPods demands that no pod shares its node, zone or other label with one of the pods named.
func (p Pods) AvoidPods(by, names string) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.Apart = &Company{By: by, With: names} })
}

// CostAtMost demands that the new nodes that the pods are on cost together at most so many US dollars an hour.
func (p Pods) CostAtMost(perHour float64) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.AtMostPerHour = &perHour })
}

// AreRefused demands that no pod gets a place, and that the reason is the one described.
func (p Pods) AreRefused(because Refusal) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.Refused = &because })
}

// Survive demands that the pods have places at once if any one of what is named is lost: zone, spot-pool, reservation, node, instance-family.
func (p Pods) Survive(kinds ...survive.Kind) Pods {
	p.plan.testing().Helper()
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return p.demand(func(r *Rule) { r.Survives = strings.Join(names, ", ") })
}

// RulesCostAtMost demands that no rule of the cluster costs more than so many dollars a month; see [RulesCost]. It panics where Pods does.
func (p *Plan) RulesCostAtMost(perMonth float64) {
	p.testing().Helper()
	p.Keep(Rule{RulesCost: &RulesCost{AtMostPerMonth: perMonth}})
}

func (p Pods) demand(what func(*Rule)) Pods {
	tb := p.plan.testing()
	tb.Helper()
	rule := p.rule
	what(&rule)
	for _, res := range p.plan.Check(rule) {
		if !res.Holds() {
			tb.Errorf("%s", res)
		}
	}
	return p
}

// Keep checks rules of a file, or made by hand, and reports each broken one to the test. It panics where Pods does.
func (p *Plan) Keep(rules ...Rule) {
	tb := p.testing()
	tb.Helper()
	for _, res := range p.Check(rules...) {
		if !res.Holds() {
			tb.Errorf("%s", res)
		}
	}
}

// testing is the test that the plan belongs to. It panics where there is none: the caller has mistaken Solve for Plan.
func (p *Plan) testing() TB {
	if p.tb == nil {
		panic("ruletest: demands of pods need a test to report to: make the plan with Scenario.Plan, or use Plan.Check")
	}
	return p.tb
}
