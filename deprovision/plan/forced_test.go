package plan_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// picky is the toy in which some pods have no other place.
type picky struct {
	plan.Simulator
	stuck map[string]bool
}

func (s picky) Simulate(ctx context.Context, q plan.Question) (plan.Answer, error) {
	for _, p := range q.Pods {
		if s.stuck[p.Name] { // only one of them is told
			return plan.Answer{Unplaced: []*corev1.Pod{p}, Why: p.Name + " fits nowhere"}, nil
		}
	}
	a, err := s.Simulator.Simulate(ctx, q)
	if a.After != nil {
		after := a.After
		a.After = func() plan.Simulator { return picky{after(), s.stuck} }
		a.Rebased = a.After
	}
	return a, err
}

// A machine that goes in any case goes whichever of its pods have no other place: the others move, and these are named.
func TestMachinesThatGoInAnyCase(t *testing.T) {
	hour := time.Hour
	for _, method := range []eligibility.Method{eligibility.Interruption, eligibility.Expiration} {
		for which := range 1 << 3 {
			w := newWorld("a 4 3", "b 8 1")
			sim := picky{w.toy, map[string]bool{}}
			var stranded []string
			for i := range 3 {
				if name := fmt.Sprintf("a-%d", i); which>>i&1 == 1 {
					sim.stuck[name] = true
					stranded = append(stranded, name)
				}
			}
			if method == eligibility.Interruption {
				w.Interruptions = []deprovision.Interruption{{Node: "a", Deadline: now().Add(2 * time.Minute)}}
			} else {
				w.node("a").Claim.ExpireAfter = &hour
			}
			for _, methods := range [][]eligibility.Method{nil, {method}} {
				r := planned(w.Cluster, sim, &plan.Options{Methods: methods})
				require.NotEmpty(t, r.Commands, "%s of %v", method, stranded)
				c := r.Commands[0]
				assert.Equal(t, method, c.Method)
				assert.Len(t, c.Placements, 3-len(stranded))
				var names []string
				for _, p := range c.Stranded {
					names = append(names, p.Name)
				}
				assert.Equal(t, stranded, names)
				v := verdict(t, r, "a")
				assert.Equal(t, plan.Chosen, v.Outcome)
				if len(stranded) > 0 {
					assert.Contains(t, v.Detail, stranded[0]+" fits nowhere")
				}
			}
		}
	}
}

// What forced methods move uses up nothing of what consolidation may move.
func TestMaxEvictionsAreOfConsolidation(t *testing.T) {
	for forced := range 6 {
		w := newWorld(fmt.Sprintf("a 5 %d", forced), "b 10 1", "c 12 4")
		w.Interruptions = []deprovision.Interruption{{Node: "a", Deadline: now().Add(time.Hour)}}
		r := w.plan(plan.Options{MaxEvictions: 3})
		assert.Contains(t, commands(r), "consolidation delete -b", "%d forced", forced)
		moved := 0
		for i := range r.Commands {
			moved += len(r.Commands[i].Placements)
		}
		assert.Equal(t, moved, r.Evictions)
	}
}

// A command has the nodes of one method, whatever waits for what.
func TestCommandsHaveOneMethod(t *testing.T) {
	for drifted := range 1 << 4 {
		w := newWorld("a 4 4", "b 9 1", "c 4 1", "d 8 4")
		for i := range w.Nodes {
			if drifted>>i&1 == 1 {
				w.Nodes[i].Drifted = []string{"x"}
			}
		}
		r := planned(w.Cluster, moody{w.toy, func(q plan.Question) bool { return exactly(q) && len(q.Remove) < 2 }}, nil)
		for i := range r.Commands {
			for _, n := range r.Commands[i].Nodes {
				assert.Equal(t, r.Commands[i].Method == eligibility.Drift, len(w.node(n.Name).Drifted) > 0, "%b: %v", drifted, commands(r))
			}
		}
	}
}

// A saving that just reaches the minimum is enough, for a deletion as for a replacement.
func TestLeastSavings(t *testing.T) {
	for _, w := range []*world{newWorld("a 8 3"), newWorld("a 5 1", "b 4 3")} {
		if len(w.Nodes) > 1 {
			w.node("b").Pool = nil // it stays
		}
		for excess, want := range []int{1, 0} {
			o := plan.Options{MinSavings: deprovision.Dollars(0.05) + deprovision.Price(excess), Objective: policy.AnySaving()}
			assert.Len(t, w.plan(o).Commands, want, "%d billionths above what is saved", excess)
		}
	}
}

// A node that drifted at an unknown time is not older than one of a known time.
func TestDriftOfUnknownAge(t *testing.T) {
	for unknown := range 3 {
		w := newWorld("a 2 2", "b 2 2", "c 2 2")
		for i := range w.Nodes {
			w.Nodes[i].Drifted = []string{"x"}
			if i != unknown {
				w.Nodes[i].DriftedSince = now().Add(-time.Duration(3-i) * time.Hour)
			}
		}
		w.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: 2}}
		r := w.plan(plan.Options{Methods: []eligibility.Method{eligibility.Drift}})
		require.Len(t, r.Commands, 2)
		assert.Equal(t, plan.OverBudget, verdict(t, r, w.Nodes[unknown].Name()).Outcome)
	}
}

// An annotation that only the pool has is drift, and keeps no node from being replaced.
func TestAnnotationOfThePool(t *testing.T) {
	w := newWorld("a 2 2")
	w.Pools[0].Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
	w.node("a").Drifted = []string{"the template has another annotation"}
	assert.Equal(t, []string{"drift replace -a +t2"}, commands(w.plan(plan.Options{})))
	w.node("a").Node.Annotations = w.Pools[0].Annotations
	assert.Empty(t, w.plan(plan.Options{}).Commands)
}

func TestMistakesOfTheCaller(t *testing.T) {
	w := newWorld("a 4 0", "b 4 4", "a 4 0")
	_, err := plan.Make(t.Context(), w.Cluster, w.toy, nil)
	require.EqualError(t, err, "deprovision: two nodes of the cluster have the name a")
	w = newWorld("a 4 0")
	_, err = plan.Make(t.Context(), w.Cluster, w.toy, &plan.Options{Methods: append(slices.Clone(eligibility.Methods()), "consolidate")})
	require.EqualError(t, err, `deprovision: there is no method "consolidate"`)
}

// Broken nodes are replaced before drifted ones, the longest due first, within the budgets for Unhealthy; no budget counts those that were
// never ready. Annotations of the node do not keep it, and pods that hold on to it do only without a bound on the drain.
func TestRepairs(t *testing.T) {
	never, now0 := map[string]string{"karpenter.sh/registered": "true"}, new(time.Duration)
	for name, c := range map[string]struct {
		change  func(*world)
		budgets []nodepool.Budget
		want    []string
		stays   plan.Outcome // of b
	}{
		"both, then what drifted": {budgets: nil, want: []string{"unhealthy delete -b", "unhealthy delete -a", "drift delete -c"}, stays: plan.Chosen},
		"one":                     {budgets: []nodepool.Budget{{Nodes: 1}}, want: []string{"unhealthy delete -b"}, stays: plan.Chosen},
		"none":                    {budgets: []nodepool.Budget{{Nodes: 0, Reasons: []nodepool.Reason{nodepool.Unhealthy}}}, want: []string{"drift delete -c"}, stays: plan.OverBudget},
		"none of what was ready": {change: func(w *world) {
			w.node("b").Node.Labels = never
		}, budgets: []nodepool.Budget{{Nodes: 0}}, want: []string{"unhealthy delete -b"}, stays: plan.Chosen},
		"it may not be disrupted": {change: func(w *world) {
			w.node("b").Node.Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
		}, budgets: []nodepool.Budget{{Nodes: 1}}, want: []string{"unhealthy delete -b"}, stays: plan.Chosen},
		"a pod may not": {change: func(w *world) {
			w.node("b").Pods[0].Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
		}, budgets: []nodepool.Budget{{Nodes: 1}}, want: []string{"unhealthy delete -a"}, stays: plan.Blocked},
		"a pod may not, for a time": {change: func(w *world) {
			w.node("b").Pods[0].Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
			w.node("b").Repair.Grace = now0
		}, budgets: []nodepool.Budget{{Nodes: 1}}, want: []string{"unhealthy delete -b"}, stays: plan.Chosen},
		"pods are coming": {change: func(w *world) {
			w.node("b").Nominated = true
		}, budgets: []nodepool.Budget{{Nodes: 1}}, want: []string{"unhealthy delete -a"}, stays: plan.Blocked},
	} {
		w := newWorld("a 2 1", "b 2 1", "c 2 1", "d 9 0")
		w.node("a").Repair = &eligibility.Repair{Since: now().Add(-time.Minute), Why: "its disk fails"}
		w.node("b").Repair = &eligibility.Repair{Since: now().Add(-time.Hour), Why: "its disk fails"}
		w.node("c").Drifted = []string{"x"}
		w.Pools[0].Disruption.Budgets = c.budgets
		w.node("d").Pool = nil
		if c.change != nil {
			c.change(w)
		}
		r := w.plan(plan.Options{Methods: []eligibility.Method{eligibility.Unhealthy, eligibility.Drift}})
		assert.Equal(t, c.want, commands(r), name)
		assert.Equal(t, c.stays, verdict(t, r, "b").Outcome, name)
	}
	w := newWorld("a 2 1", "b 4 4")
	w.node("a").Repair = &eligibility.Repair{Why: "its disk fails"}
	w.node("b").Pool = nil
	r := planned(w.Cluster, picky{w.toy, map[string]bool{"a-0": true}}, nil)
	assert.Empty(t, r.Commands)
	assert.Equal(t, "its disk fails, but a-0 fits nowhere", verdict(t, r, "a").Detail, "whatever consolidation says")
	assert.Equal(t, []string{"unhealthy replace -a +t1"}, commands(w.plan(plan.Options{})))
	assert.Len(t, w.plan(plan.Options{Rules: eligibility.Rules{MinimumAge: 2 * time.Hour}}).Commands, 1, "its youth does not keep it")
	w.node("a").Pods[0].Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
	assert.Equal(t, eligibility.Unhealthy, verdict(t, w.plan(plan.Options{}), "a").Method, "the same keeps it from consolidation")
}

// fond is the toy in which every pod that moves loses a preference of this price.
type fond struct {
	plan.Simulator
	price deprovision.Price
}

func (s fond) Simulate(ctx context.Context, q plan.Question) (plan.Answer, error) {
	a, err := s.Simulator.Simulate(ctx, q)
	a.Forgone = s.price * deprovision.Price(len(q.Pods))
	if a.After != nil {
		after := a.After
		a.After = func() plan.Simulator { return fond{after(), s.price} }
		a.Rebased = a.After
	}
	return a, err
}

// What was bought for a preference is given back only if that saves more than the preference is worth.
func TestPreferencesCountAgainstSavings(t *testing.T) {
	for _, dear := range []bool{false, true} {
		w := newWorld("a 4 1", "b 8 1")
		price := w.node("a").PricePerHour / 2
		if dear {
			price = w.node("b").PricePerHour
		}
		plan, err := plan.Make(t.Context(), w.Cluster, fond{w.toy, price}, nil)
		require.NoError(t, err)
		assert.Equal(t, !dear, len(plan.Commands) > 0, "the preference costs $%g", price.Dollars())
	}
}

// A pod that would have a place only on a node that goes as well is stranded by the command of its own node.
func TestPodsStrandedWhereTheyMovedTo(t *testing.T) {
	w := newWorld("a 1 1", "b 16 9")
	hour := time.Hour
	w.Pools[0].Disruption.ExpireAfter = &hour
	w.node("a").Node.CreationTimestamp.Time = now().Add(-2 * time.Hour)
	r := planned(w.Cluster, moody{w.toy, func(q plan.Question) bool {
		return q.Moves == nil && len(q.Pods) > 0 && slices.Contains(q.Remove, "b")
	}}, nil)
	require.Len(t, r.Commands, 2)
	assert.Empty(t, r.Commands[0].Placements)
	assert.Len(t, r.Commands[0].Stranded, 1)
	assert.Len(t, r.Commands[1].Stranded, 9)
}

// Budgets are spent on nodes that must go before any is spent on a saving, also on those that go before their successors are bought.
func TestWhatMustGoIsChargedFirst(t *testing.T) {
	first, others := 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 5))
		var nodes []string
		for i := range 3 + r.IntN(4) {
			size := 1 << (1 + r.IntN(3))
			nodes = append(nodes, fmt.Sprintf("n%d %d %d", i, size, r.IntN(size+1)))
		}
		w := newWorld(nodes...)
		w.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: 1 + r.IntN(2)}}
		for i := range w.Nodes {
			if r.IntN(4) == 0 {
				departure(w, []eligibility.Method{eligibility.Drift, eligibility.Unhealthy}[r.IntN(2)], w.Nodes[i].Name())
			}
		}
		sim := freeing{toy: w.toy, slots: []string{"cr-1"}}
		if r.IntN(4) == 0 {
			sim.slots = nil
		}
		p := planned(w.Cluster, sim, &plan.Options{TerminateFirst: []eligibility.Method{eligibility.Drift, eligibility.Unhealthy}})
		var saving []string
		for i := range p.Commands {
			if c := &p.Commands[i]; c.Saves() {
				saving = commands(p)
				others++
			} else if c.TerminateFirst {
				first++
			}
		}
		for _, v := range p.Verdicts {
			if v.Outcome == plan.OverBudget && (v.Method == eligibility.Drift || v.Method == eligibility.Unhealthy) {
				assert.Empty(t, saving, "seed %d, %v: %s: %s", seed, nodes, v.Node, v.Detail)
			}
		}
	}
	require.Greater(t, first, 100)
	require.Greater(t, others, 100)
}

// A place in a budget that is kept for a node which goes first, and then does not, is not lost, and nothing says that it was taken.
func TestPlacesThatAreKept(t *testing.T) {
	w := newWorld("a 8 8", "b 4 1", "c 4 1")
	w.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: 1}}
	departure(w, eligibility.Unhealthy, "a")
	sim := freeing{toy: w.toy, slots: []string{"cr-1"}}
	r := planned(w.Cluster, sim, nil)
	require.Equal(t, []string{"unhealthy replace -a +t2"}, commands(r))
	assert.True(t, r.Commands[0].TerminateFirst)
	assert.Equal(t, "budgets[0] of pool default allows 1 of 3 nodes at once; this plan takes 1", verdict(t, r, "b").Detail)
	for _, o := range []plan.Options{{TerminateFirst: []eligibility.Method{}}, {Methods: []eligibility.Method{eligibility.Consolidation}}} {
		assert.Equal(t, []string{"consolidation delete -b"}, commands(planned(w.Cluster, sim, &o)))
	}
	w.Pools[0].Disruption.Budgets[0].Nodes = 2
	assert.Equal(t, []string{"consolidation delete -b", "unhealthy replace -a +t6"}, commands(planned(w.Cluster, sim, nil)))
}
