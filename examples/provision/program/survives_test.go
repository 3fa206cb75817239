package program

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The same survival stands in the table, in the JSON and on the page, and what it says can be applied.
func TestSurvival(t *testing.T) {
	var report struct {
		Survival struct {
			Holds    bool
			Failures []struct {
				Kind, Name string
				Displaced  int
				Waiting    []string
			}
			Headroom struct {
				Nodes                           []struct{ InstanceType, Zone string }
				PricePerHour, LowerBoundPerHour float64
				Objects                         []struct {
					Kind string
					Spec struct{ Replicas int }
				}
			}
		}
	}
	got := run("", "--survives", "zone", "--no-timing", "-o", "json")
	require.Zero(t, got.code, got.stderr)
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	s := report.Survival
	require.NotEmpty(t, s.Failures)
	assert.False(t, s.Holds)
	assert.LessOrEqual(t, s.Headroom.LowerBoundPerHour, s.Headroom.PricePerHour+1e-9)
	nodes := 0
	for _, o := range s.Headroom.Objects {
		nodes += o.Spec.Replicas
	}
	assert.Equal(t, len(s.Headroom.Nodes), nodes)
	table := run("", "--survives", "zone", "--no-timing")
	require.Zero(t, table.code, table.stderr)
	assert.Contains(t, table.stdout, "zone "+s.Failures[0].Name)
	assert.Contains(t, table.stdout, monthly(s.Headroom.PricePerHour)+" a month")
	bad := run("", "--survives", "zoen")
	assert.NotZero(t, bad.code)
	assert.Contains(t, bad.stderr, `did you mean "zone"`)
	if testing.Short() { // each answer takes seconds
		return
	}
	assert.Equal(t, table.stdout, run("", "--survives", "zone", "--no-timing").stdout, "the same bytes")
	page := run("", "--survives", "zone", "--no-timing", "-o", "html")
	require.Zero(t, page.code, page.stderr)
	assert.Contains(t, page.stdout, "What it would live through")
	assert.NotContains(t, run("", "--no-timing", "-o", "html").stdout, "What it would live through")
}

// Nodes that --headroom buys are there when a failure is rehearsed.
func TestSurvivalCountsHeadroom(t *testing.T) {
	waits := func(args ...string) bool {
		got := run("", append(args, "--survives", "zone", "--no-timing")...)
		require.Zero(t, got.code, got.stderr)
		return strings.Contains(got.stdout, "Deployment shop/web")
	}
	assert.True(t, waits())
	assert.False(t, waits("--headroom", "shop/Deployment/web=6"))
}
