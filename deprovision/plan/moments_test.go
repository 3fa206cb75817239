package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// atEachMoment carries out the commands in a random order, where a wave starts when the one before it has gone and commands wait for nothing
// else. It returns an error if more nodes of a group are on their way than the budget allows of those that have not gone. Bought nodes do not
// count. group names the group of a node: its zone, or one name for all.
func atEachMoment(rng *rand.Rand, nodes map[string]string, commands []plan.Command, b nodepool.Budget) error {
	stays, leaving, at := map[string]int{}, map[string]int{}, make([]int, len(commands))
	for _, group := range nodes {
		stays[group]++
	}
	waves := make([][][]string, len(commands))
	for i := range commands {
		if waves[i] = commands[i].Waves; waves[i] == nil {
			waves[i] = [][]string{nil}
			for _, n := range commands[i].Nodes {
				waves[i][0] = append(waves[i][0], n.Name)
			}
		}
	}
	for {
		var open []int
		for i := range commands {
			if at[i] <= len(waves[i]) {
				open = append(open, i)
			}
		}
		if len(open) == 0 {
			return nil
		}
		i := open[rng.IntN(len(open))]
		if at[i] > 0 {
			for _, name := range waves[i][at[i]-1] {
				leaving[nodes[name]]--
				stays[nodes[name]]--
			}
		}
		if at[i]++; at[i] > len(waves[i]) {
			continue
		}
		for _, name := range waves[i][at[i]-1] {
			leaving[nodes[name]]++
		}
		for group, n := range leaving {
			if allowed := b.Allowed(stays[group]); n > allowed {
				return fmt.Errorf("wave %d of command %d: %d of %d nodes of %s leave, and %d may", at[i]-1, i, n, stays[group], group, allowed)
			}
		}
	}
}

// While a plan is carried out, the nodes that are on their way are never more than a budget of the pool, or of each zone, allows of the nodes
// that are left then.
func TestBudgetsAtEachMoment(t *testing.T) {
	waves := 0
	for draw := range 400 {
		rng := rand.New(rand.NewPCG(uint64(draw), 41))
		var nodes []string
		for i := range 4 + rng.IntN(20) {
			nodes = append(nodes, fmt.Sprintf("n%02d %d %d", i, 3+rng.IntN(6), 1+rng.IntN(3)))
		}
		w, groups := newWorld(nodes...), map[string]string{}
		budget := nodepool.Budget{Nodes: 5 + rng.IntN(70), Percent: rng.IntN(4) > 0}
		if !budget.Percent {
			budget.Nodes = 1 + rng.IntN(4)
		}
		options, zones := plan.Options{}, draw%3 == 2
		if zones {
			options.ZoneBudgets = []nodepool.Budget{budget}
		} else {
			w.Pools[0].Disruption.Budgets = []nodepool.Budget{budget}
		}
		for i := range w.Nodes {
			n := &w.Nodes[i]
			n.Zone, n.PricePerHour = string(rune('a'+rng.IntN(3))), n.PricePerHour+deprovision.Dollars(0.02*float64(rng.IntN(3)))
			if rng.IntN(20) == 0 {
				n.Drifted = []string{"x"}
			}
			if groups[n.Name()] = "the pool"; zones {
				groups[n.Name()] = n.Zone
			}
		}
		least := budget.Allowed(len(nodes)) + rng.IntN(4) // fewer cannot go by themselves
		r := planned(w.Cluster, moody{w.toy, func(q plan.Question) bool { return exactly(q) && len(q.Remove) < least }}, &options)
		for i := range r.Commands {
			if len(r.Commands[i].Waves) > 1 {
				waves++
			}
		}
		for range 20 {
			require.NoError(t, atEachMoment(rng, groups, r.Commands, budget), "draw %d, %+v, zones %v: %v", draw, budget, zones, commands(r))
		}
	}
	assert.Greater(t, waves, 100)
	t.Logf("%d commands in waves", waves)
}
