package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/policy"
)

func pools(p ...deprovision.PoolTotals) deprovision.Move {
	m := deprovision.Move{Pools: p}
	for _, x := range p {
		m.SavingsPerHour += x.SavingsPerHour
		m.Disruption += x.MoveDisruption
	}
	return m
}

func pool(savings, price, disruption, total float64, balanced bool) deprovision.PoolTotals {
	return deprovision.PoolTotals{Name: "p", PricePerHour: price, SavingsPerHour: savings, MoveDisruption: disruption, Disruption: total, Balanced: balanced}
}

func TestBalanced(t *testing.T) {
	for name, c := range map[string]struct {
		policy policy.Balanced
		move   deprovision.Move
		ok     bool
		score  float64
	}{
		"half":                           {policy.Balanced{}, pools(pool(5, 100, 10, 100, true)), true, 0.5},
		"less than half":                 {policy.Balanced{}, pools(pool(4.9, 100, 10, 100, true)), false, 0.49},
		"a third is enough for k 3":      {policy.Balanced{K: 3}, pools(pool(4, 100, 10, 100, true)), true, 0.4},
		"all of it for k 1":              {policy.Balanced{K: 1}, pools(pool(9, 100, 10, 100, true)), false, 0.9},
		"each pool must agree":           {policy.Balanced{}, pools(pool(50, 100, 10, 100, true), pool(1, 100, 10, 100, true)), false, 0.1},
		"a pool that does not ask":       {policy.Balanced{Only: true}, pools(pool(0.1, 100, 50, 100, false)), true, 0.1},
		"nothing saved":                  {policy.Balanced{}, pools(pool(0, 100, 10, 100, true)), false, 0},
		"a pool without price or burden": {policy.Balanced{}, pools(pool(1, 0, 10, 0, true)), false, 0},
	} {
		j := c.policy.Judge(c.move)
		assert.Equal(t, c.ok, j.OK, name)
		assert.InDelta(t, c.score, j.Score, 1e-9, name)
		assert.Equal(t, c.ok, j.Why == "", name)
	}
}

func TestPayback(t *testing.T) {
	move := func(savings, disruption float64, life time.Duration) deprovision.Move {
		return deprovision.Move{SavingsPerHour: savings, Disruption: disruption, Nodes: []deprovision.Candidate{{RemainingLife: life}}}
	}
	p := policy.Payback{}
	assert.True(t, p.Judge(move(0.01, 24, 1<<62)).OK, "24 cents in a day for 24 units")
	assert.False(t, p.Judge(move(0.01, 25, 1<<62)).OK)
	assert.False(t, p.Judge(move(0.01, 24, 12*time.Hour)).OK, "it goes in half a day anyway")
	assert.False(t, p.Judge(move(0, 0, 1<<62)).OK, "nothing is no saving")
	assert.True(t, policy.Payback{CostPerDisruption: 0.001, Horizon: time.Hour}.Judge(move(0.01, 10, 1<<62)).OK)
}

func TestLifetime(t *testing.T) {
	c := deprovision.Candidate{PricePerHour: 1, Disruption: 11, Lifetime: 1}
	young := policy.Lifetime{}.Rank(c)
	c.Lifetime = 0.1
	assert.Greater(t, policy.Lifetime{}.Rank(c), young, "what is soon to go anyway goes first")
}

func ExampleBalanced() {
	j := policy.Balanced{}.Judge(deprovision.Move{Pools: []deprovision.PoolTotals{{
		Name: "default", PricePerHour: 10, Disruption: 100, SavingsPerHour: 0.1, MoveDisruption: 10,
	}}})
	fmt.Println(j.OK, j.Why)
	// Output: false it would save 1.00% of what pool default costs for 10.00% of its disruption: score 0.10, at least 0.50 is wanted
}

func ExamplePayback() {
	j := policy.Payback{}.Judge(deprovision.Move{SavingsPerHour: 0.001, Disruption: 20, Nodes: []deprovision.Candidate{{RemainingLife: time.Hour}}})
	fmt.Println(j.OK, j.Why)
	// Output: false it would earn $0.0010 in 1h0m0s, and its disruption costs $0.2000
}
