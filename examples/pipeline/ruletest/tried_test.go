package ruletest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
)

// manyRules draws a cluster with so many rules and types for sale that the listing of rules tries
// only some. Rule number without is left out. It returns how many rules the Deployments have.
func manyRules(seed uint64, without int) (s ruletest.Scenario, rules int) {
	rng := rand.New(rand.NewPCG(seed, 4))
	types := []ruletest.Object{}
	for i := range 5 {
		t := ruletest.Type(fmt.Sprint("t", i), "cpu", fmt.Sprint(1+i+rng.IntN(3)), "memory", fmt.Sprintf("%dGi", 4+4*i+rng.IntN(8)))
		for _, zone := range []string{"zone-a", "zone-b", "zone-c"} {
			t = t.Offer(zone, "on-demand", (0.05+0.05*float64(i))*(0.8+0.4*rng.Float64()))
		}
		types = append(types, t)
	}
	for i := range 400 { // types that no pool buys
		types = append(types, ruletest.Type(fmt.Sprint("dear", i), "cpu", "1", "memory", "1Gi").Offer("zone-a", "on-demand", 50+float64(i)))
	}
	s = ruletest.New(types...)
	for i := range 20 {
		s = s.Add(ruletest.Pool(fmt.Sprint("pool", i)))
	}
	has := func() bool { rules++; return rules-1 != without }
	for i := range 12 {
		w := ruletest.Deployment(fmt.Sprint("shop/w", i), 1+rng.IntN(4)).Label("app", fmt.Sprint("w", i)).
			Requests("cpu", fmt.Sprintf("%dm", 250+250*rng.IntN(6)), "memory", fmt.Sprintf("%dMi", 512+512*rng.IntN(8)))
		if has() {
			w = w.Spreads("zone", 1)
		}
		if has() {
			w = w.Apart("node")
		}
		s = s.Add(w)
	}
	return s, rules
}

// A demand on the cost of rules holds only if no plan that a user makes without one of the rules saves more.
func TestRulesCostHoldsOnlyIfEachRuleWasTried(t *testing.T) {
	seeds, step := uint64(3), 1
	if testing.Short() {
		seeds, step = 1, 4
	}
	held, broken := 0, 0
	for seed := range seeds {
		s, rules := manyRules(seed, -1)
		p, err := s.Solve()
		require.NoError(t, err)
		saved, names := make([]float64, rules), make([]string, rules)
		for i := 0; i < rules; i += step {
			less, _ := manyRules(seed, i)
			after, err := less.Solve()
			require.NoError(t, err)
			require.Empty(t, after.Packed().Unplaced())
			saved[i] = 730 * max(0, (p.Packed().Cost()-after.Packed().Cost()).Dollars())
			names[i] = fmt.Sprintf("Deployment shop/w%d: %s*", i/2, []string{"spread", "anti"}[i%2])
		}
		t.Log(saved)
		most := 0.0
		for i := 0; i < rules; i += step {
			cost := saved[i]
			most = max(most, cost)
			limit := max(0, cost-0.01)
			res := p.Check(ruletest.Rule{RulesCost: &ruletest.RulesCost{AtMostPerMonth: limit, Of: names[i]}})[0]
			assert.Equal(t, cost <= limit, res.Holds(), "seed %d: $%v a month: %s", seed, cost, res)
			if res.Holds() {
				held++
			} else {
				broken++
			}
		}
		if step > 1 {
			continue // the dearest rule may be one of the others
		}
		under := p.Check(ruletest.Rule{RulesCost: &ruletest.RulesCost{AtMostPerMonth: max(0, most-0.01), Of: "Deployment *"}})[0]
		assert.Equal(t, most == 0, under.Holds(), "seed %d: $%v a month: %s", seed, most, under)
	}
	t.Log(held, "held,", broken, "broken")
	assert.Positive(t, held)
	assert.Positive(t, broken)
}
