package budget_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/deprovision/budget"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// noon is a Thursday.
func noon() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) }

func left(t *testing.T, u budget.Usage, at time.Time, r nodepool.Reason, list ...nodepool.Budget) int {
	t.Helper()
	p := nodepool.NodePool{Name: "default", Disruption: nodepool.Disruption{Budgets: list}}
	return budget.New([]nodepool.NodePool{p}, map[string]budget.Usage{"default": u}, at).Left("default", r)
}

func TestLeft(t *testing.T) {
	ten := budget.Usage{Nodes: 10}
	assert.Equal(t, budget.Unlimited, left(t, ten, noon(), nodepool.Empty), "no budgets, no limit")
	assert.Equal(t, 0, left(t, ten, noon(), nodepool.Empty, nodepool.Budget{}))
	assert.Equal(t, 1, left(t, ten, noon(), nodepool.Empty, nodepool.Budget{Nodes: 5, Percent: true}), "shares round up")
	assert.Equal(t, 2, left(t, ten, noon(), nodepool.Empty, nodepool.Budget{Nodes: 5}, nodepool.Budget{Nodes: 2}), "the smallest decides")
	assert.Equal(t, 3, left(t, budget.Usage{Nodes: 10, Leaving: 2}, noon(), nodepool.Empty, nodepool.Budget{Nodes: 5}))
	assert.Equal(t, 0, left(t, budget.Usage{Nodes: 10, Leaving: 9}, noon(), nodepool.Empty, nodepool.Budget{Nodes: 5}), "never below none")
	drifted := nodepool.Budget{Nodes: 0, Reasons: []nodepool.Reason{nodepool.Drifted}}
	assert.Equal(t, 0, left(t, ten, noon(), nodepool.Drifted, drifted))
	assert.Equal(t, budget.Unlimited, left(t, ten, noon(), nodepool.Empty, drifted))
}

func TestSchedules(t *testing.T) {
	office := nodepool.Budget{Nodes: 0, Schedule: "0 9 * * mon-fri", Duration: 8 * time.Hour}
	for at, want := range map[time.Time]int{
		noon(): 0, noon().Add(-3 * time.Hour): 0, noon().Add(-3*time.Hour - time.Minute): budget.Unlimited,
		noon().Add(5*time.Hour + time.Minute): budget.Unlimited, noon().AddDate(0, 0, 2): budget.Unlimited,
		noon().In(time.FixedZone("", 5*3600)): 0,
	} {
		assert.Equal(t, want, left(t, budget.Usage{Nodes: 10}, at, nodepool.Underutilized, office), at)
	}
	assert.Equal(t, 0, left(t, budget.Usage{Nodes: 10}, noon(), nodepool.Empty, nodepool.Budget{Nodes: 5, Schedule: "whenever"}), "what cannot be read allows nothing")
}

func TestUnknownPool(t *testing.T) {
	assert.Equal(t, 0, budget.Ledger{}.Left("none", nodepool.Empty))
	assert.Empty(t, budget.Ledger{}.Why("none", nodepool.Empty))
}

func ExampleLedger_Take() {
	pool := nodepool.NodePool{Name: "default", Disruption: nodepool.Disruption{Budgets: []nodepool.Budget{{Nodes: 20, Percent: true}}}}
	l := budget.New([]nodepool.NodePool{pool}, map[string]budget.Usage{"default": {Nodes: 11}}, time.Time{})
	after := l.Take("default", 3)
	fmt.Println(l.Left("default", nodepool.Drifted), after.Left("default", nodepool.Empty))
	fmt.Println(after.Why("default", nodepool.Empty))
	// Output:
	// 3 0
	// budgets[0] of pool default allows 20% (3) of 11 nodes at once; this plan takes 3
}
