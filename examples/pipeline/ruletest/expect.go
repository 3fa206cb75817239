package ruletest

import (
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/examples/plan/survive"
)

// TB is the part of a test to which demands report; *testing.T and *testing.B implement it.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Pods are the pods of a plan that a test makes demands about. It is a value. Every demand reports
// to the test itself, and returns the pods so that calls can be chained. [Plan.Pods] returns it for
// a plan of [Scenario.Plan].
type Pods struct {
	plan *Plan
	rule Rule
}

// Pods returns the pods with the given names: "shop/web-*"; see [Rule].Pods. The plan must come
// from [Scenario.Plan], which knows the test. Pods panics if the plan comes from [Scenario.Solve]
// or [NewPlan]; use [Plan.Check] for the rules of such a plan.
func (p *Plan) Pods(names string) Pods {
	p.testing().Helper()
	return Pods{p, Rule{Pods: names}}
}

// Labelled restricts the pods by a label selector: "app=web,tier!=cache".
func (p Pods) Labelled(selector string) Pods {
	p.rule.Labels = selector
	return p
}

// Called names the demands that follow. A failure starts with the name.
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

// AreTogether demands that all pods share one node, zone or other label: "node", "zone" or a label
// key.
func (p Pods) AreTogether(by string) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.Together = &Company{By: by} })
}

// AreNear demands that each pod shares its node, zone or other label with one of the named pods.
func (p Pods) AreNear(by, names string) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.Together = &Company{By: by, With: names} })
}

// AreApart demands that no two pods share a node, zone or other label.
func (p Pods) AreApart(by string) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.Apart = &Company{By: by} })
}

// AreSpread demands that at most the given number of the pods share a node, zone or other label.
// For how even they are, see [Pods.SpreadOver].
func (p Pods) AreSpread(by string, most int) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.Apart = &Company{By: by, Most: most} })
}

// SpreadOver demands that the pods are on at least the given number of nodes, zones or values of
// another label. Of the values that have pods, the fullest may have at most skew more than the
// emptiest. 0 demands nothing.
func (p Pods) SpreadOver(by string, atLeast, skew int) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.Spread = &Spread{By: by, AtLeast: atLeast, Skew: skew} })
}

// NodeOf returns the name of the node of a pod, "namespace/name", or false if it has no place or
// does not exist.
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

// AvoidPods demands that no pod shares its node, zone or other label with one of the named pods.
func (p Pods) AvoidPods(by, names string) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.Apart = &Company{By: by, With: names} })
}

// CostAtMost demands that the new nodes of the pods together cost at most this many US dollars an
// hour.
func (p Pods) CostAtMost(perHour float64) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.AtMostPerHour = &perHour })
}

// AreRefused demands that no pod gets a place, and that the reason matches.
func (p Pods) AreRefused(because Refusal) Pods {
	p.plan.testing().Helper()
	return p.demand(func(r *Rule) { r.Refused = &because })
}

// Survive demands that the pods have places at once if any single thing of these kinds is lost:
// zone, spot-pool, reservation, node, instance-family.
func (p Pods) Survive(kinds ...survive.Kind) Pods {
	p.plan.testing().Helper()
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return p.demand(func(r *Rule) { r.Survives = strings.Join(names, ", ") })
}

// RulesCostAtMost demands that no rule of the cluster costs more than this many dollars a month,
// see [RulesCost]. It panics in the same cases as Pods.
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

// Keep checks rules, from a file or made by hand, and reports each broken one to the test. It
// panics in the same cases as Pods.
func (p *Plan) Keep(rules ...Rule) {
	tb := p.testing()
	tb.Helper()
	for _, res := range p.Check(rules...) {
		if !res.Holds() {
			tb.Errorf("%s", res)
		}
	}
}

// testing returns the test that the plan belongs to. It panics if there is none, because the caller
// has used Solve instead of Plan.
func (p *Plan) testing() TB {
	if p.tb == nil {
		panic("ruletest: demands of pods need a test to report to: make the plan with Scenario.Plan, or use Plan.Check")
	}
	return p.tb
}
