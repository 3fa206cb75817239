package ruletest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
)

// brokenRules returns a plan for a market of so many types, and rules that it breaks in different
// ways.
func brokenRules(t *testing.T, types, rules int) (*ruletest.Plan, []ruletest.Rule) {
	s := base()
	for i := range types {
		s = s.Add(ruletest.Type(fmt.Sprint("t", i), "cpu", "4", "memory", "16Gi").Offer("zone-a", "spot", 5+float64(i)).Offer("zone-b", "on-demand", 9+float64(i)))
	}
	var broken []ruletest.Rule
	nothing := 0.0
	for i := range rules {
		name := fmt.Sprint("shop/w", i)
		s = s.Add(ruletest.Deployment(name, 2).Label("app", fmt.Sprint("w", i)).Requests("cpu", "1").Spreads("zone", 1).Tolerates("dedicated"))
		r := ruletest.Rule{Pods: name + "-*"}
		switch i % 4 {
		case 0:
			r.LandsOn = []ruletest.Place{{Zone: "zone-b", CapacityType: "spot"}}
		case 1:
			r.AtMostPerHour = &nothing
		case 2:
			r.NeverOn = []ruletest.Place{{Zone: "zone-a"}, {Zone: "zone-b"}}
		case 3:
			r.Together = &ruletest.Company{By: "zone"}
		}
		broken = append(broken, r)
	}
	p, err := s.Solve()
	require.NoError(t, err)
	return p, broken
}

// All explanations together take at most a few times the work of the plan, however many rules are
// broken. What was not tried for a rule is named.
func TestExplanationsShareABudget(t *testing.T) {
	for _, rules := range []int{1, 4, 12} {
		for _, types := range []int{1, 400, 3000} {
			p, broken := brokenRules(t, types, rules)
			results := p.Check(broken...)
			plans, most := p.PlansAgain()
			assert.LessOrEqual(t, plans, most, "%d rules, %d types", rules, types)
			untried := 0
			for _, r := range results {
				require.NotEmpty(t, r.Breaches)
				untried += len(r.Untried)
				assert.True(t, len(r.MovedBy) > 0 || len(r.Untried) > 0, "%d rules, %d types: %s", rules, types, r)
				if len(r.Untried) > 0 {
					assert.Contains(t, r.String(), "not tried, because the work for explanations is limited: "+r.Untried[0])
					for _, m := range r.MovedBy { // what was not tried may be to blame
						assert.NotRegexp(t, "^nothing:|no manifest asks|no setting of a pool makes|setting of a pool($|, and)", m, "%d rules, %d types: %s", rules, types, r)
					}
				}
			}
			if types == 1 {
				assert.Zero(t, untried, "%d rules", rules)
			}
			if types == 3000 && rules > 1 {
				assert.Positive(t, untried, "%d rules: %d plans of %d", rules, plans, most)
			}
		}
	}
}
