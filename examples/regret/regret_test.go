package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/golden"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

func run(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return golden.Run(t, command(strings.NewReader(stdin)), append(args, "--no-timing")...)
}

func TestSample(t *testing.T) {
	for name, args := range map[string][]string{
		"sample.txt":   nil,
		"wide.txt":     {"-o", "wide"},
		"sample.json":  {"-o", "json"},
		"page.html":    {"-o", "html"},
		"balanced.txt": {"--policy", "balanced", "--top", "1"},
		"startup.txt":  {"--policy", "default", "--startup", "0s", "--top", "0"},
	} {
		out, errs, code := run(t, "", args...)
		require.Equal(t, inputs.ExitOK, code, errs)
		golden.Equal(t, filepath.Join("testdata", name), out)
		again, _, _ := run(t, "", args...)
		assert.Equal(t, out, again, "the same bytes each time")
	}
}

// Payback is another name of the policy default, as in consolidate.
func TestPaybackIsDefault(t *testing.T) {
	want, errs, code := run(t, "", "--policy", "default", "--top", "0")
	require.Equal(t, inputs.ExitOK, code, errs)
	out, errs, code := run(t, "", "--policy", "payback", "--top", "0")
	require.Equal(t, inputs.ExitOK, code, errs)
	assert.Equal(t, want, out)
}

// Whoever adds up a bill by hand must know how long the last moment counts.
func TestHelpSaysHowLongTheLastMomentCounts(t *testing.T) {
	out, errs, code := run(t, "", "--help")
	require.Equal(t, inputs.ExitOK, code, errs)
	assert.Contains(t, strings.Join(strings.Fields(out), " "), "the last snapshot for as long as the one before it, an only one for an hour,")
}

// The hours and the decisions of the JSON add up to its sums, to a millionth.
func TestJSONAddsUp(t *testing.T) {
	out, _, code := run(t, "", "-o", "json")
	require.Equal(t, inputs.ExitOK, code)
	var r report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	paid, more := 0.0, r.Others
	for _, h := range r.Hours {
		paid += h.Paid
		assert.LessOrEqual(t, h.Bound, h.BoundPresent)
		assert.LessOrEqual(t, h.BoundPresent, h.Policy)
		assert.LessOrEqual(t, h.Policy, h.Paid)
	}
	for _, d := range r.Decisions {
		more += d.Regret
	}
	assert.InDelta(t, r.Summary.Paid, paid, 1e-5)
	assert.InDelta(t, r.Summary.Paid-r.Summary.Policy, more, 1e-5)
}

// Snapshots of a cluster with a managed node group, as kubectl writes them. A pod waits in the first.
func TestSnapshots(t *testing.T) {
	out, errs, code := run(t, "", "--snapshots", "testdata/snapshots")
	require.Equal(t, inputs.ExitOK, code, errs)
	golden.Equal(t, "testdata/snapshots.txt", out+"\n"+errs)
}

// Pods that are not planned are named, because our policy and the bounds do not pay for them.
func TestPodsThatAreNotPlannedAreNamed(t *testing.T) {
	for _, c := range []struct{ node, is, want string }{
		{"nodeName: ng-2, ", "schedulerName: batch, ", `(shop/job-0: scheduler "batch" places it), left out of the bounds, and of our policy's bill while they wait: at most 1`},
		{"", "schedulingGates: [{name: quota}], ", `(shop/job-0: scheduling gate "quota")`},
	} {
		dir := t.TempDir()
		for _, name := range []string{"2026-01-15T08-00-00Z.yaml", "2026-01-15T08-20-00Z.yaml"} {
			text, err := os.ReadFile(filepath.Join("testdata/snapshots", name))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.NewReplacer("nodeName: ng-2, ", c.node, "containers: [{name: job", c.is+"containers: [{name: job").Replace(string(text))), 0o600))
		}
		out, errs, code := run(t, "", "--snapshots", dir)
		require.Equal(t, inputs.ExitOK, code, errs)
		assert.Contains(t, out+errs, c.want)
	}
}

// Karpenter's log alone says the bill.
func TestKarpentersLogAlone(t *testing.T) {
	out, errs, code := run(t, "", "--log", "testdata/karpenter.log", "-f", "sample.yaml")
	require.Equal(t, inputs.ExitOK, code, errs)
	golden.Equal(t, "testdata/karpenter.txt", out+"\n"+errs)
}

func TestBadInput(t *testing.T) {
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"--snapshots", "a", "--log", "b"}, "--snapshots has its own pools, pods and times: leave out --log"},
		{[]string{"--snapshots", "a", "-f", "b"}, "has its own pools"},
		{[]string{"-f", "sample.yaml"}, "but no history"},
		{[]string{"--snapshots", "nowhere"}, "nowhere"},
		{[]string{"--log", "nowhere"}, "--log: open nowhere"},
		{[]string{"--log", "sample.yaml", "-f", "sample.yaml"}, "sample.yaml: YAML without a ResourcePatch"},
		{[]string{"--policy", "karpentr"}, `did you mean "karpenter"?`},
		{[]string{"--step", "0s", "--startup", "-1s", "--top", "-1"}, "--step 0s"},
		{[]string{"--until", "noon"}, `"noon" for "--until" flag: want a time such as 2026-01-15T12:00:00Z`},
		{[]string{"--max-above-bound", "NaN"}, "--max-above-bound NaN: want percent, 0 or more"},
		{[]string{"--max-above-bound", "Inf"}, "--max-above-bound +Inf: want percent, 0 or more"},
		{[]string{"--max-above-bound", "-1"}, "--max-above-bound -1: want percent, 0 or more"},
		{[]string{"--snapshots", "a", "--step", "5m"}, "leave out --step"},
		{[]string{"--snapshots", "a", "--scheduler-config", "c", "--pods", "Rollout.a=spec"}, "leave out --pods and --scheduler-config"},
		{[]string{"--from", "2026-01-15T08:00:00Z"}, "--from says when recordings of logs began: want --log, too"},
		{[]string{"--pods", "Rollout.a=spec"}, "want -f or --log, too"},
		{[]string{"--instance-types", "a", "--region", "b"}, "cannot be combined"},
		{[]string{"-o", "svg"}, "--output"},
		{[]string{"--region", "mars-1"}, "--region"},
	} {
		_, errs, code := run(t, "", x.args...)
		assert.Equal(t, inputs.ExitInput, code, x.args)
		assert.Contains(t, errs, x.want)
	}
	_, errs, code := run(t, "kind: Pod")
	assert.Equal(t, inputs.ExitInput, code)
	assert.Contains(t, errs, "standard input")
}

// A day that cost too much ends with 4, after all has been said of it.
func TestADayMayNotCostTooMuch(t *testing.T) {
	out, errs, code := run(t, "", "--max-above-bound", "10")
	assert.Equal(t, inputs.ExitDearer, code)
	assert.Contains(t, errs, "any policy must pay that knows only the present, want at most 10%")
	plain, _, code := run(t, "", "--max-above-bound", "400")
	assert.Equal(t, inputs.ExitOK, code)
	assert.Equal(t, plain, out)
	_, errs, code = run(t, "", "--log", "testdata/karpenter.log", "-f", "sample.yaml", "--max-above-bound", "400")
	assert.Equal(t, inputs.ExitDearer, code, "nothing is known")
	assert.Contains(t, errs, "no pods")
}

// What would have been better is broken to the width of a terminal.
func TestBroken(t *testing.T) {
	assert.Equal(t, []string{"one two", "three", "seventeen"}, broken("one two three seventeen", 8))
	assert.Equal(t, []string{"one two three"}, broken("one two three", 0))
}
