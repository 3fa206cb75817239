package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Without a horizon of its own, a saving counts for as long as the node has been quiet, at least an hour and at most a day. A node with four pods,
// which is five units of disruption, is replaced by one that costs two cents an hour less: at a cent a unit, that pays after two and a half hours.
func TestSavingsCountAsLongAsNodesWereQuiet(t *testing.T) {
	of := func(quiet time.Duration, set func(*world)) []string {
		w := newWorld("a 6 4")
		w.node("a").Claim.LastPodEvent = now().Add(-quiet)
		if set != nil {
			set(w)
		}
		return commands(w.plan(plan.Options{}))
	}
	replaced := []string{"consolidation replace -a +t4"}
	for _, quiet := range []time.Duration{0, time.Minute, time.Hour, 149 * time.Minute} {
		assert.Empty(t, of(quiet, nil), quiet)
	}
	for _, quiet := range []time.Duration{151 * time.Minute, 24 * time.Hour, 1000 * time.Hour} {
		assert.Equal(t, replaced, of(quiet, nil), quiet)
	}
	assert.Equal(t, replaced, of(time.Minute, func(w *world) {
		w.node("a").Node.CreationTimestamp.Time, w.node("a").Claim.LastPodEvent = time.Time{}, time.Time{}
	}), "nothing is known")
	half := func(w *world) { w.node("a").PricePerHour = deprovision.Dollars(0.09) } // more than half is saved, and no more in an hour than it costs
	assert.Empty(t, of(time.Minute, half))
	assert.Equal(t, replaced, of(time.Minute, func(w *world) {
		half(w)
		w.Pools[0].Disruption.Policy = nodepool.Balanced
	}), "shares are compared, not hours")
	assert.Empty(t, of(1000*time.Hour, func(w *world) { w.node("a").PricePerHour = deprovision.Dollars(0.041) }), "a day at most")
	// A saving may also begin after the first hour.
	assert.Equal(t, replaced, of(time.Minute, func(w *world) { w.node("a").PricePerHour = deprovision.Dollars(0.095) }), "an hour at least")
}
