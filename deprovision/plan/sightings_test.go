package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/plan"
)

func going(m eligibility.Method, nodes ...string) plan.Command {
	c := plan.Command{Method: m}
	for _, n := range nodes {
		c.Nodes = append(c.Nodes, deprovision.Candidate{Name: n})
	}
	return c
}

// A saving is taken once it has lasted for the wait without a break; other commands do not wait.
func TestSightings(t *testing.T) {
	start := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	var s plan.Sightings
	for _, step := range []struct {
		at       int
		commands []plan.Command
		ready    string
		next     int // 0 = never
	}{
		{0, []plan.Command{going(eligibility.Emptiness, "a", "b"), going(eligibility.Expiration, "x")}, "x ", 15},
		{10, []plan.Command{going(eligibility.Emptiness, "a"), going(eligibility.Consolidation, "b")}, "", 15},
		{15, []plan.Command{going(eligibility.Emptiness, "a"), going(eligibility.Consolidation, "b")}, "a ", 25},
		{20, nil, "", 0},
		{25, []plan.Command{going(eligibility.Consolidation, "b")}, "", 40},
		{30, []plan.Command{going(eligibility.Consolidation, "b", "c")}, "", 45},
		{45, []plan.Command{going(eligibility.Consolidation, "b", "c"), going(eligibility.Drift, "c")}, "b c ", 0},
	} {
		now := start.Add(time.Duration(step.at) * time.Second)
		seen, ready, next := s.Look(step.commands, now, 15*time.Second)
		again, _, _ := s.Look(step.commands, now, 15*time.Second)
		assert.Equal(t, seen, again, "the value before is as it was")
		s = seen
		text, want := "", time.Time{}
		for _, c := range ready {
			for _, n := range c.Nodes {
				text += n.Name + " "
			}
		}
		if step.next != 0 {
			want = start.Add(time.Duration(step.next) * time.Second)
		}
		assert.Equal(t, step.ready, text, "at %d", step.at)
		assert.Equal(t, want, next, "at %d", step.at)
	}
}

// What builds on a command that waits, waits too: here for a node that the first one buys.
func TestSightingsKeepOrder(t *testing.T) {
	first := going(eligibility.Consolidation, "a")
	first.NewNodes = []plan.NewNode{{Name: "new"}}
	second := going(eligibility.Drift, "b")
	second.Placements = []plan.Placement{{Node: "new"}}
	_, ready, _ := plan.Sightings{}.Look([]plan.Command{first, second}, time.Unix(0, 0), time.Minute)
	assert.Empty(t, ready)
}

func ExampleSightings() {
	start := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	commands := []plan.Command{{Method: eligibility.Emptiness, Nodes: []deprovision.Candidate{{Name: "node-a"}}}}
	var s plan.Sightings
	for _, at := range []time.Duration{0, 10 * time.Second, 15 * time.Second} {
		var ready []plan.Command
		s, ready, _ = s.Look(commands, start.Add(at), 15*time.Second)
		fmt.Println(at, len(ready))
	}
	// Output:
	// 0s 0
	// 10s 0
	// 15s 1
}
