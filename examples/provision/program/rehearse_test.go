package program

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file of --rehearse that makes no sense buys nothing and says where and what.
func TestMalformedRehearsals(t *testing.T) {
	for text, want := range map[string]string{
		"":            "the file limits nothing",
		"capacity: 1": "capacity",
		"- a":         "scarce.yaml: want an object, got a list",
		"capacity:\n- {match: 'a in (', free: 0}": "capacity[0].match: ",
		"capacity:\n- {match: a}":                 "capacity[0].free: want the number of machines",
		"capacity:\n- {matches: a, free: 1}":      `did you mean "match"?`,
		"quotas:\n- {match: a, limit: 3}":         "quotas[0].name: want a name",
		"quotas:\n- {name: q, match: a}":          "quotas[0].limit: want a quantity",
	} {
		file := filepath.Join(t.TempDir(), "scarce.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		got := run("", "--rehearse", file)
		assert.Equal(t, 2, got.code, text)
		assert.Contains(t, got.stderr, want)
		assert.Contains(t, got.stderr, "scarce.yaml")
		assert.Empty(t, got.stdout)
	}
	assert.Equal(t, 2, run("", "--rehearse", "/nowhere.yaml").code)
	assert.Contains(t, run("", "--rehearse", "x", "--diff", "y").stderr, "--diff compares two plans, and prints no more of them: leave out --rehearse")
}

// What was refused is in the answer for scripts, and every pending pod is still in exactly one list.
func TestRehearsalForScripts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scarce.yaml")
	require.NoError(t, os.WriteFile(file, []byte("capacity:\n- {match: karpenter.sh/capacity-type in (spot), free: 0}\n"), 0o600))
	var planned, got report
	require.NoError(t, json.Unmarshal([]byte(run("", "-o", "json").stdout), &planned))
	answer := run("", "-o", "json", "--rehearse", file, "--now", "2026-01-31T12:00:00Z")
	require.NoError(t, json.Unmarshal([]byte(answer.stdout), &got))
	assert.Equal(t, planned.Summary.Pods, got.Summary.Pods)
	assert.Equal(t, len(got.BindingOrder), got.Summary.Scheduled)
	assert.Greater(t, got.Summary.Plans, 1)
	require.NotEmpty(t, got.Refused)
	for _, r := range got.Refused {
		assert.Contains(t, r.Where, "spot")
		assert.Equal(t, "2026-01-31T12:03:00Z", r.Until)
	}
	for _, n := range got.NewNodes {
		assert.Equal(t, "on-demand", n.CapacityType)
	}
}

// CapacityBuffers, of files or of --headroom, are planned in the cluster after the purchase, around what was refused.
func TestBuffersOfARehearsal(t *testing.T) {
	scarce := filepath.Join(t.TempDir(), "scarce.yaml")
	require.NoError(t, os.WriteFile(scarce, []byte("capacity:\n- {match: karpenter.sh/capacity-type in (spot), free: 0}\n"), 0o600))
	pods := filepath.Join(t.TempDir(), "pods.yaml")
	require.NoError(t, os.WriteFile(pods, []byte(`
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: default}, spec: {template: {spec: {requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, resources: {requests: {cpu: "1"}}}]}}}}
`), 0o600))
	withBuffer := filepath.Join(t.TempDir(), "buffer.yaml")
	require.NoError(t, os.WriteFile(withBuffer, []byte("{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: spare}, spec: {replicas: 4, scalableRef: {apiGroup: apps, kind: Deployment, name: web}}}\n"), 0o600))
	for _, args := range [][]string{{"-f", withBuffer}, {"--headroom", "Deployment/web=4"}} {
		answer := run("", append(args, "-f", pods, "-o", "json", "--rehearse", scarce, "--now", "2026-01-31T12:00:00Z")...)
		var got report
		require.NoError(t, json.Unmarshal([]byte(answer.stdout), &got), answer.stderr)
		require.Len(t, got.Buffers, 1)
		b := got.Buffers[0]
		assert.Equal(t, 4, b.Existing+b.New)
		assert.Positive(t, b.New)
		require.NotEmpty(t, b.Nodes)
		for _, n := range b.Nodes {
			assert.Equal(t, "on-demand", n.CapacityType)
		}
		assert.Contains(t, answer.stderr, "not bought")
		answer = run("", append(args, "-f", pods, "--rehearse", scarce, "--now", "2026-01-31T12:00:00Z")...)
		assert.Contains(t, answer.stdout, b.Buffer)
	}
}
