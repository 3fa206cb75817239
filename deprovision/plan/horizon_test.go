package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
)

// Without a horizon of its own, a saving counts for as long as the node has been quiet, at least two hours and at most a day. A node with four pods,
// which is five units of disruption, is replaced by one that costs two cents an hour less: at a cent a unit, that pays after two and a half hours.
func TestSavingsCountAsLongAsNodesWereQuiet(t *testing.T) {
	of := func(quiet time.Duration, o plan.Objective, set func(*world)) []string {
		w := newWorld("a 6 4")
		w.node("a").Claim.LastPodEvent = now().Add(-quiet)
		if set != nil {
			set(w)
		}
		return commands(w.plan(plan.Options{Objective: o}))
	}
	replaced := []string{"consolidation replace -a +t4"}
	for _, quiet := range []time.Duration{0, time.Minute, 2 * time.Hour, 149 * time.Minute} {
		assert.Empty(t, of(quiet, plan.Objective{}, nil), quiet)
	}
	for _, quiet := range []time.Duration{151 * time.Minute, 24 * time.Hour, 1000 * time.Hour} {
		assert.Equal(t, replaced, of(quiet, plan.Objective{}, nil), quiet)
	}
	assert.Equal(t, replaced, of(time.Minute, plan.Objective{}, func(w *world) {
		w.node("a").Node.CreationTimestamp.Time, w.node("a").Claim.LastPodEvent = time.Time{}, time.Time{}
	}), "nothing is known")
	share := func(w *world) { w.node("a").PricePerHour = deprovision.Dollars(0.064) } // three eighths of it are saved
	assert.Empty(t, of(time.Minute, plan.Objective{}, share))
	assert.Equal(t, replaced, of(time.Minute, policy.Balanced(3), share), "shares are compared, not hours")
	assert.Empty(t, of(1000*time.Hour, plan.Objective{}, func(w *world) { w.node("a").PricePerHour = deprovision.Dollars(0.041) }), "a day at most")
	// A saving may also begin after the first two hours.
	assert.Equal(t, replaced, of(time.Minute, plan.Objective{}, func(w *world) { w.node("a").PricePerHour = deprovision.Dollars(0.066) }), "two hours at least")
}
