package program

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// What scripts read of the rules stands beside the plan, and is the same as JSON and as YAML.
func TestAssertionsAsData(t *testing.T) {
	s := readScenario(t, "testdata/assert-broken.txt")
	dir := t.TempDir()
	for _, n := range []string{"rules.yaml", "pods.yaml", "types.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, n), []byte(s.parts[n]), 0o600))
	}
	args := []string{"--no-timing", "-f", dir + "/pods.yaml", "--instance-types", dir + "/types.json", "--assert", dir + "/rules.yaml", "-o"}
	type data struct {
		Summary    summary     `json:"summary"`
		Assertions []assertion `json:"assertions"`
	}
	var got, same data
	res := run("", append(args, "json")...)
	assert.Equal(t, 3, res.code)
	require.NoError(t, json.Unmarshal([]byte(res.stdout), &got))
	require.NoError(t, yaml.Unmarshal([]byte(run("", append(args, "yaml")...).stdout), &same))
	assert.Equal(t, got, same)
	assert.Equal(t, 4, got.Summary.Scheduled)
	require.Len(t, got.Assertions, 4)
	first := got.Assertions[0]
	assert.Equal(t, "one zone is enough", first.Rule)
	assert.Equal(t, dir+"/rules.yaml:1", first.At)
	assert.False(t, first.Holds)
	assert.Equal(t, 4, first.Pods)
	require.Len(t, first.Broken, 2)
	assert.Equal(t, "default/web-1", first.Broken[0].Pod)
	require.Len(t, first.MovedBy, 1)
	assert.Contains(t, first.MovedBy[0], "topology spread of app=web")
	assert.True(t, got.Assertions[3].Holds)
}

// The fix of a broken rule has the fields of every fix, and is among all fixes once.
func TestFixesOfBrokenRules(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"pods.yaml": `
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: default}, spec: {template: {spec: {}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, resources: {requests: {cpu: "3000"}}}]}}
`,
		"rules.yaml": "- {pods: web, placed: true}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, fixes := range []string{"some", "none"} {
		res := run("", "--no-timing", "-f", dir+"/pods.yaml", "--assert", dir+"/rules.yaml", "-o", "json", "--fixes", fixes)
		var got struct {
			Fixes      []fixJSON   `json:"fixes"`
			Assertions []assertion `json:"assertions"`
		}
		require.NoError(t, json.Unmarshal([]byte(res.stdout), &got), res.stderr)
		require.Len(t, got.Fixes, 1, res.stdout)
		fix := got.Fixes[0]
		pods := fix.Pods
		fix.Pods = nil
		require.Len(t, got.Assertions, 1)
		assert.Equal(t, &fix, got.Assertions[0].Fix)
		assert.Equal(t, []string{"default/web"}, pods)
	}
}

func TestAssertRefusesWhatMakesNoSense(t *testing.T) {
	for _, args := range [][]string{{"--assert", "missing.yaml"}, {"--assert", "testdata"}, {"--assert", "testdata/assert-kept.txt"}, {"--assert", "x", "--diff", "y"}, {"--assert", "x", "--explain", "y"}} {
		res := run("", args...)
		assert.Equal(t, 2, res.code, "%q", args)
		assert.NotEmpty(t, res.stderr, "%q", args)
		assert.Empty(t, res.stdout, "%q", args)
	}
}
