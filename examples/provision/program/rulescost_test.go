package program

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/plan/rulecost"
)

// The same costs stand in the table, in the JSON and on the page.
func TestRulesCost(t *testing.T) {
	var report struct {
		Summary   struct{ PricePerHour float64 }
		RulesCost rulecost.Report
	}
	text, input := "", []string(nil) // the sample
	if testing.Short() {
		text, input = strings.Join(strings.Split(combinedInput, "---")[:3], "---"), []string{"-f", "-", "--instance-types", fewTypes(t)}
	}
	got := run(text, append(input, "--rules-cost", "--no-timing", "-o", "json")...)
	require.Zero(t, got.code, got.stderr)
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	assert.InDelta(t, report.Summary.PricePerHour, report.RulesCost.PerHour, 1e-6)
	require.NotEmpty(t, report.RulesCost.Rules)
	dearest := report.RulesCost.Rules[0]
	assert.Equal(t, rulecost.Verified, dearest.State)
	assert.Positive(t, dearest.PerHour)
	table := run(text, append(input, "--rules-cost", "--no-timing")...)
	require.Zero(t, table.code, table.stderr)
	assert.Contains(t, strings.Split(table.stdout, "\n")[1], dearest.Rules[0].String())
	assert.Contains(t, table.stdout, monthly(dearest.PerHour))
	if testing.Short() { // each run of the sample takes seconds
		return
	}
	assert.Equal(t, table.stdout, run("", "--rules-cost", "--no-timing").stdout, "the same bytes")
	page := run("", "--rules-cost", "--no-timing", "-o", "html")
	require.Zero(t, page.code, page.stderr)
	assert.Contains(t, page.stdout, "What rules cost")
	assert.Contains(t, page.stdout, monthly(dearest.PerHour)+" a month")
	assert.NotContains(t, run("", "--no-timing", "-o", "html").stdout, "What rules cost")
}
