package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// What keeps a node is named, whatever else would be a reason: budgets that allow more are none.
func TestTheLimitOfEvictionsIsNamed(t *testing.T) {
	for _, budgets := range [][]nodepool.Budget{nil, {{Nodes: 100, Percent: true}}} {
		w := newWorld("a 4 1", "b 4 1", "c 4 1", "d 4 2")
		w.Pools[0].Disruption.Budgets = budgets
		r := w.plan(plan.Options{MaxEvictions: 1, Objective: policy.AnySaving()})
		assert.Equal(t, []string{"consolidation delete -a"}, commands(r))
		for node, want := range map[string]string{
			"c": "it would save $0.0400 an hour, but evictions are limited to 1, this plan makes 1 for savings, and emptying it would make 1 more",
			"d": "it would save $0.0400 an hour, but evictions are limited to 1, this plan makes 1 for savings, and emptying it would make 2 more",
		} {
			v := verdict(t, r, node)
			assert.Equal(t, plan.OverBudget, v.Outcome)
			assert.Equal(t, want, v.Detail)
		}
	}
	w := newWorld("a 4 1", "b 4 1", "c 4 1")
	w.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: 1}}
	r := w.plan(plan.Options{MaxEvictions: 1, Objective: policy.AnySaving()})
	assert.Contains(t, verdict(t, r, "c").Detail, "budgets[0] of pool default allows 1 of 3 nodes at once", "both keep it")
}

// A drifted node that waits for another zone says so, though its pool has budgets.
func TestTheZoneOfDriftIsNamed(t *testing.T) {
	w := newWorld("a 4 1", "b 4 1")
	w.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: 100, Percent: true}}
	w.node("a").Drifted, w.node("b").Drifted = []string{"x"}, []string{"x"}
	w.node("b").Zone = "y"
	r := w.plan(plan.Options{DriftByZone: true, Methods: []eligibility.Method{eligibility.Drift}})
	assert.Equal(t, "x, but drift goes zone by zone, and zone y comes first", verdict(t, r, "a").Detail)
}

// A lower price is no saving if the objective counts more, and the verdict says that.
func TestALowerPriceThatCostsMore(t *testing.T) {
	w := newWorld("a 4 3")
	w.node("a").CostPerHour = deprovision.Dollars(0.025)
	v := verdict(t, w.plan(plan.Options{}), "a")
	assert.Equal(t, plan.NoSaving, v.Outcome)
	assert.Equal(t, "it costs $0.0400 an hour, and the cheapest found for its pods is t3 in z at $0.0300; what the objective counts would be $0.0300 instead of $0.0250", v.Detail)
}

// A node past its lifetime goes in any case, so consolidation saves nothing with it.
func TestConsolidationOfAnExpiredNode(t *testing.T) {
	w := newWorld("a 4 1", "b 4 1")
	hour := time.Hour
	w.node("a").Claim.ExpireAfter = &hour
	w.node("b").Pool = nil
	v := verdict(t, w.plan(plan.Options{Methods: []eligibility.Method{eligibility.Consolidation}}), "a")
	assert.Equal(t, plan.Outranked, v.Outcome)
	assert.Equal(t, "its lifetime has ended, so consolidation saves nothing: expiration gives it back", v.Detail)
}

// A pod that nothing recreates ends, and the command says so.
func TestPodsThatNothingRecreates(t *testing.T) {
	w := newWorld("a 4 2", "b 4 2")
	w.node("b").Pool = nil
	assert.Equal(t, "its pods fit on other nodes", w.plan(plan.Options{}).Commands[0].Why)
	w.node("a").Pods[1].OwnerReferences = nil
	assert.Equal(t, "its pods fit on other nodes; shop/a-1 ends, because no controller recreates it, and its place is for one that is created anew", w.plan(plan.Options{}).Commands[0].Why)
	w.node("a").Pods[0].OwnerReferences = nil
	assert.Equal(t, "its pods fit on other nodes; shop/a-0 and 1 more end, because no controller recreates them, and their places are for pods that are created anew", w.plan(plan.Options{}).Commands[0].Why)
}

// The verdict of a spot node says what replacing spot by spot would find, and only then. Whether
// that holds is seen in the plan with that option.
func TestSpotOnRequestIsNamed(t *testing.T) {
	const rule = "; spot nodes are replaced by spot nodes only on request (option spot-to-spot)"
	for name, c := range map[string]struct {
		nodes       []string
		price       float64 // of each node
		o           plan.Options
		outcome     plan.Outcome
		want, never string
		finds       bool // a cheaper spot node, but it has too few types
	}{
		"a cheaper spot node":            {nodes: []string{"a 8 3"}, price: 0.02, o: plan.Options{SpotFlexibility: 1}, outcome: plan.WouldNotFit, want: "no room anywhere" + rule + ": then t3 in z would do at $0.0150"},
		"none is cheaper":                {nodes: []string{"a 3 3"}, price: 0.015, o: plan.Options{SpotFlexibility: 1}, outcome: plan.NoSaving, never: "spot nodes"},
		"too few types":                  {nodes: []string{"a 8 3"}, price: 0.02, outcome: plan.WouldNotFit, want: rule + ": then too few types of spot capacity would be cheaper (1): 15 are required", finds: true},
		"it would save too little":       {nodes: []string{"a 8 3"}, price: 0.02, o: plan.Options{SpotFlexibility: 1, MinSavings: deprovision.Dollars(0.006)}, outcome: plan.WouldNotFit, want: rule + ": then none found would save enough", finds: true},
		"an on-demand node saves less":   {nodes: []string{"a 8 3"}, price: 0.031, o: plan.Options{SpotFlexibility: 1, MinSavings: deprovision.Dollars(0.01)}, outcome: plan.WouldNotFit, want: rule + ": then t3 in z would do at $0.0150"},
		"an on-demand node does not pay": {nodes: []string{"a 8 3"}, price: 0.031, o: plan.Options{SpotFlexibility: 1, Objective: plan.Objective{DisruptionPrice: deprovision.Dollars(0.08)}}, outcome: plan.WouldNotFit, want: rule + ": then t3 in z would do at $0.0150"},
	} {
		w := newWorld(c.nodes...)
		w.spot = true
		for i := range w.Nodes {
			w.Nodes[i].CapacityType, w.Nodes[i].PricePerHour = "spot", deprovision.Dollars(c.price)
		}
		v := verdict(t, w.plan(c.o), "a")
		assert.Equal(t, c.outcome, v.Outcome, name)
		assert.Contains(t, v.Detail, c.want, name)
		if c.never != "" {
			assert.NotContains(t, v.Detail, c.never, name)
		}
		c.o.SpotToSpot = true
		assert.Equal(t, c.want != "" && !c.finds, len(w.plan(c.o).Commands) > 0, name)
	}
}
