package plan_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// moody is the toy without places for the pods of some questions.
type moody struct {
	plan.Simulator
	refuses func(plan.Question) bool
}

func (m moody) Simulate(ctx context.Context, q plan.Question) (plan.Answer, error) {
	if m.refuses(q) {
		return plan.Answer{Unplaced: q.Pods, Why: "it is in a mood"}, nil
	}
	a, err := m.Simulator.Simulate(ctx, q)
	if a.After != nil {
		after := a.After
		a.After = func() plan.Simulator { return moody{after(), m.refuses} }
		a.Rebased = a.After
	}
	return a, err
}

func exactly(q plan.Question) bool { return q.Moves != nil && !q.Elsewhere }

// Nodes whose pods wait for each other go with one command, and with no more of them than that takes.
func TestNodesThatWaitForEachOther(t *testing.T) {
	w := newWorld("a 4 1", "b 4 1", "c 4 1", "d 8 4")
	r := planned(w.Cluster, moody{w.toy, func(q plan.Question) bool { return exactly(q) && len(q.Remove) < 2 }}, nil)
	require.NotEmpty(t, r.Commands)
	for i := range r.Commands {
		assert.Len(t, r.Commands[i].Nodes, 2)
	}
}

// Where nodes have to go with one command and a budget is smaller, all that go by such commands leave in waves, none larger than the budget.
func TestWaves(t *testing.T) {
	for _, allowed := range []int{0, 1, 2} {
		w := newWorld("a 4 1", "b 4 1", "c 4 1", "d 8 4")
		w.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: allowed}}
		for i := range w.Nodes {
			w.Nodes[i].PricePerHour += deprovision.Dollars(0.02) // none of them is as good as a new one
		}
		r := planned(w.Cluster, moody{w.toy, func(q plan.Question) bool { return exactly(q) && len(q.Remove) < 2 }}, nil)
		if allowed == 0 {
			assert.Empty(t, r.Commands)
			continue
		}
		c := r.Commands[0]
		if allowed == 2 {
			require.Len(t, c.Nodes, 2)
			assert.Empty(t, c.Waves)
			continue
		}
		require.Len(t, r.Commands, 1)
		require.Len(t, c.Nodes, 4)
		require.Len(t, c.Waves, 4)
		for i := range c.Nodes {
			assert.Contains(t, c.Waves, []string{c.Nodes[i].Name})
			assert.Equal(t, plan.Chosen, verdict(t, r, c.Nodes[i].Name).Outcome)
		}
		assert.Contains(t, c.Why, "budgets require 4 waves")
	}
}

// A node that no wave may give back before others have gone waits for them.
func TestWavesInTheirOrder(t *testing.T) {
	for _, first := range []string{"a", "b"} {
		w := newWorld("a 4 1", "b 4 1", "d 8 4")
		w.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: 1}}
		w.node("d").Pool = nil // it stays
		r := planned(w.Cluster, moody{w.toy, func(q plan.Question) bool {
			return exactly(q) && len(q.Remove) < 2 || slices.Contains(q.Cordon, first)
		}}, nil)
		require.Len(t, r.Commands, 1)
		require.Len(t, r.Commands[0].Waves, 2)
		assert.Equal(t, []string{first}, r.Commands[0].Waves[0])
	}
}

// A node for which no command is found stays, and its verdict says so; nothing is carried out by halves.
func TestNoWay(t *testing.T) {
	w := newWorld("a 4 1", "b 4 3")
	r := planned(w.Cluster, moody{w.toy, exactly}, nil)
	assert.Empty(t, r.Commands)
	assert.Equal(t, r.PricePerHour, r.PricePerHourAfter)
	assert.Zero(t, r.Evictions)
	v := verdict(t, r, "a")
	assert.Equal(t, plan.NotAsked, v.Outcome)
	assert.Equal(t, "its pods would fit elsewhere now, but the search ended without a command for it", v.Detail)
}

// Where pods cannot be moved once for all changes together, those are made that can be.
func TestNotAllAtOnce(t *testing.T) {
	w := newWorld("a 4 1", "b 4 1", "c 4 1", "d 8 5")
	r := planned(w.Cluster, moody{w.toy, func(q plan.Question) bool { return q.Elsewhere && len(q.Remove) > 1 }}, nil)
	require.NotEmpty(t, r.Commands)
	moved := map[*corev1.Pod]bool{}
	for i := range r.Commands {
		assert.Len(t, r.Commands[i].Nodes, 1)
		for _, p := range r.Commands[i].Pods() {
			assert.False(t, moved[p])
			moved[p] = true
		}
	}
	assert.Less(t, r.PricePerHourAfter, r.PricePerHour)
}

// fickle accepts a pod on old only after it has moved.
type fickle struct {
	daemon *corev1.Pod
	moved  bool
}

func (f fickle) Simulate(_ context.Context, q plan.Question) (plan.Answer, error) {
	if q.Moves == nil && (q.MaxNodes == 0 && !f.moved || f.moved && q.Remove[0] == "old") {
		return plan.Answer{Unplaced: q.Pods, Why: "no room"}, nil
	}
	to, a := "old", plan.Answer{}
	if n := (plan.NewNode{Name: "new", Pool: "default", InstanceType: "t1", PricePerHour: deprovision.Dollars(0.01), Daemons: []*corev1.Pod{f.daemon}}); q.Moves == nil && !f.moved || len(q.Buy) > 0 {
		to, a.NewNodes = "new", []plan.NewNode{n}
	}
	for _, p := range q.Pods {
		a.Placements = append(a.Placements, plan.Placement{Pod: p, Node: to})
	}
	a.After = func() plan.Simulator { return fickle{daemon: f.daemon, moved: true} }
	a.Rebased = a.After
	return a, nil
}

// A node that the search would buy is given up again for something better, unless what DaemonSets will run there forbids it.
func TestDaemonsOfNewNodes(t *testing.T) {
	yes := true
	daemon := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "agent", OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", Controller: &yes}}}}
	w := newWorld("a 4 1", "old 4 4")
	w.node("old").Pool = nil // it stays
	assert.Equal(t, []string{"consolidation delete -a"}, commands(planned(w.Cluster, fickle{daemon: daemon}, nil)))
	daemon.Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
	assert.Equal(t, []string{"consolidation replace -a +t1"}, commands(planned(w.Cluster, fickle{daemon: daemon}, nil)))
}

// Each command pays by itself and saves as much as the options ask: a node that pays only together with others stays.
func TestEachCommandPays(t *testing.T) {
	w := newWorld("a 10 1", "b 4 4", "c 20 10")
	w.node("c").Pool = nil // it stays
	cent := policy.Payback(deprovision.Dollars(0.01), time.Hour)
	for _, o := range []plan.Options{{Objective: cent}, {Objective: policy.AnySaving(), MinSavings: deprovision.Dollars(0.05)}} {
		assert.Equal(t, []string{"consolidation delete -a"}, commands(w.plan(o)), "%+v", o)
	}
	assert.Len(t, commands(w.plan(plan.Options{Objective: policy.AnySaving()})), 2)
}

// A command disrupts what its nodes do, whatever the search had put on them in between.
func TestDisruptionOfCommands(t *testing.T) {
	w := newWorld("a 4 1", "b 4 1", "c 8 2")
	half := 30 * time.Minute
	w.Pools[0].Disruption.ExpireAfter = &half
	w.node("c").Pool = nil // it stays
	r := planned(w.Cluster, moody{w.toy, func(q plan.Question) bool { return q.Elsewhere }}, nil)
	require.NotEmpty(t, r.Commands)
	for i := range r.Commands {
		sum := 0.0
		for _, n := range r.Commands[i].Nodes {
			sum += n.Disruption
		}
		assert.InDelta(t, sum, r.Commands[i].Disruption, 1e-9)
	}
}
