package program

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/golden"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

const at = "--now=2026-01-15T12:00:00Z"

func run(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return golden.Run(t, Command(strings.NewReader(stdin)), args...)
}

func TestSample(t *testing.T) {
	for name, args := range map[string][]string{
		"sample.txt":      nil,
		"wide.txt":        {"-o", "wide"},
		"rank.txt":        {"--rank"},
		"rules-cost.txt":  {"--rules-cost"},
		"rank.json":       {"--rank", "-o", "json"},
		"sample.json":     {"-o", "json"},
		"few.txt":         {"--max-evictions", "3"},
		"balanced.txt":    {"--policy", "balanced"},
		"default.txt":     {"--policy", "default"},
		"emptiness.txt":   {"--method", "emptiness"},
		"minimum.txt":     {"--min-savings", "0.5", "--method", "consolidation"},
		"young.txt":       {"--min-age", "200h", "--interrupted", "node-a"},
		"interrupted.txt": {"--interrupted", "node-a=2026-01-15T12:30:00Z", "--interrupted", "node-d", "--method", "interruption"},
		"page.html":       {"-o", "html"},
		"per-node.txt":    {"--per-node", "1"},
		"factor.txt":      {"--factor", "karpenter.k8s.aws/instance-family=m5: 9"},
		"expired.txt":     {"--now=2026-02-15T12:00:00Z", "--method", "expiration"},
	} {
		out, _, code := run(t, "", append([]string{at, "--no-timing"}, args...)...)
		assert.Equal(t, inputs.ExitOK, code, name)
		golden.Equal(t, filepath.Join("testdata", name), out)
		if testing.Short() && !strings.HasPrefix(name, "sample.") {
			continue
		}
		again, _, _ := run(t, "", append([]string{at, "--no-timing"}, args...)...)
		assert.Equal(t, out, again, "the same bytes every time")
	}
	out, _, code := run(t, "", at, "--no-timing", "--policy", "payback") // another name of default
	assert.Equal(t, inputs.ExitOK, code)
	golden.Equal(t, filepath.Join("testdata", "default.txt"), out)
}

// A drifted node of a static pool is replaced, so what the pool must buy again is no saving.
func TestDriftInAStaticPool(t *testing.T) {
	out, _, code := run(t, "", at, "--no-timing", "-f", filepath.Join("testdata", "static.yaml"))
	assert.Equal(t, inputs.ExitOK, code)
	golden.Equal(t, "testdata/static.txt", out)
}

// A drifted node of a static pool that may have no other node stays, unless it may go first. Then the
// table and the JSON say so.
func TestADriftedNodeGoesFirst(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "static.yaml"))
	require.NoError(t, err)
	limited := strings.Replace(string(data), "  replicas: 2\n", "  replicas: 2\n  limits: {nodes: \"2\"}\n", 1)
	args := []string{at, "--no-timing", "-f", "-"}
	out, _, code := run(t, limited, args...)
	assert.Equal(t, inputs.ExitOK, code)
	assert.NotContains(t, out, "goes first")
	out, _, code = run(t, limited, append(args, "--terminate-first")...)
	assert.Equal(t, inputs.ExitOK, code)
	assert.Contains(t, out, "; goes first: pool default has as many nodes as it may have (limits.nodes: 2)")
	out, _, _ = run(t, limited, append(args, "--terminate-first", "-o", "json")...)
	var r report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Len(t, r.Commands, 1)
	assert.True(t, r.Commands[0].TerminateFirst)
	assert.Equal(t, "replace", r.Commands[0].Kind)
	assert.Len(t, r.Commands[0].Replacements, 1)
	out, _, code = run(t, limited, append(args, "--terminate-first", "-o", "html")...)
	assert.Equal(t, inputs.ExitOK, code)
	assert.Contains(t, out, "goes first: pool default")
}

// One node for every blocker, every verdict and every way to go.
func TestEverything(t *testing.T) {
	args := []string{at, "--no-timing", "-f", filepath.Join("testdata", "everything.yaml")}
	out, _, code := run(t, "", args...)
	assert.Equal(t, inputs.ExitOK, code)
	golden.Equal(t, "testdata/everything.txt", out)
	out, _, _ = run(t, "", append(args, "-o", "json")...)
	golden.Equal(t, "testdata/everything.json", out)
	var r report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	seen := map[string]bool{}
	for _, v := range r.Verdicts {
		seen[v.Verdict] = true
	}
	assert.Len(t, seen, 6, "every verdict")
	seen = map[string]bool{}
	for _, c := range r.Commands {
		seen[c.Method], seen[c.Kind] = true, true
	}
	for _, want := range []string{"drift", "emptiness", "consolidation", "delete", "replace"} {
		assert.Contains(t, seen, want)
	}
}

// The sample is planned for a moment of its own, so that it shows the same whenever it is run.
func TestSampleHasItsOwnTime(t *testing.T) {
	out, _, _ := run(t, "", "--no-timing")
	golden.Equal(t, "testdata/sample.txt", out)
}

func TestJSONHasTheFixedKeys(t *testing.T) {
	out, _, _ := run(t, "", at, "-o", "json")
	var r map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	summary := r["summary"].(map[string]any)
	for _, key := range []string{"nodes", "pricePerHour", "pricePerHourAfter", "evictions"} {
		assert.Contains(t, summary, key)
	}
	for _, key := range []string{"read", "compile", "rank", "plan"} {
		assert.Contains(t, summary["seconds"], key)
	}
	for _, c := range r["commands"].([]any) {
		for _, key := range []string{"method", "kind", "nodes", "replacements", "placements", "savingsPerHour", "disruptionCost", "pods"} {
			assert.Contains(t, c, key)
		}
	}
	verdicts := r["verdicts"].([]any)
	assert.Len(t, verdicts, 8, "one for every node")
	for _, v := range verdicts {
		for _, key := range []string{"node", "verdict", "detail", "disruptionCost", "by"} {
			assert.Contains(t, v, key)
		}
		assert.Contains(t, []string{"blocked", "would-not-fit", "no-saving", "outranked", "budget", "not-asked", "chosen"}, v.(map[string]any)["verdict"])
	}
}

// Nodes that a static pool has above its replicas are named, the cheapest to disturb first.
func TestSurplusOfStaticPools(t *testing.T) {
	text := "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: base}\nspec: {replicas: 1, template: {spec: {requirements: []}}}\n"
	for _, name := range []string{"a", "b", "c"} {
		text += "---\napiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", labels: {karpenter.sh/nodepool: base, topology.kubernetes.io/zone: us-east-1a}}\n" +
			"status: {capacity: {cpu: 2, memory: 8Gi, pods: 20}}\n"
	}
	text += "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {nodeName: a, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}\n"
	_, errs, code := run(t, text, at, "-f", "-")
	assert.Equal(t, inputs.ExitOK, code, errs)
	assert.Contains(t, errs, "note: pool base keeps a fixed number of nodes (1), and has 2 more; these go first: b, c\n")
}

func TestBadUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--policy", "balancd"}, `--policy "balancd": want one of karpenter, balanced, default, payback (did you mean "balanced"?)`},
		{[]string{"--method", "drfit"}, `did you mean "drift"?`},
		{[]string{"--max-evictions", "-1"}, "--max-evictions -1: want a number of pods, at least 0"},
		{[]string{"--now", "noon"}, `--now "noon": want a time such as`},
		{[]string{"--min-savings", "-1"}, "at least 0"},
		{[]string{"--min-savings", "NaN"}, "--min-savings NaN: want dollars an hour"},
		{[]string{"--min-savings", "Inf"}, "--min-savings +Inf: want dollars an hour"},
		{[]string{"--min-age", "-1h"}, "--min-age -1h0m0s: want a duration such as 1h, at least 0"},
		{[]string{"--interrupted", "node-z"}, "there is no such node"},
		{[]string{"--interrupted", "node-a=soon"}, "want NODE=TIME"},
		{[]string{"--rnak"}, `did you mean "--rank"?`},
		{[]string{"cluster.yaml"}, "name files with -f"},
		{[]string{"--rank", "--method", "drift", "--interrupted", "a"}, "--rank only ranks nodes: leave out --method and --interrupted"},
		{[]string{"--rank", "--max-evictions", "1", "--min-savings", "1", "--spot-to-spot"}, "leave out --max-evictions, --min-savings and --spot-to-spot"},
		{[]string{"--rank", "--zone-budget", "1", "--drift-by-zone", "--terminate-first", "--rules-cost"}, "leave out --zone-budget, --drift-by-zone, --terminate-first and --rules-cost"},
		{[]string{"--rank", "-o", "html"}, "--rank only ranks nodes: want -o table, json or yaml"},
		{[]string{"--rules-cost", "-o", "wide"}, "want -o table, json, yaml or html"},
		{[]string{"--pods", "Rollout.a=spec"}, "--pods is about objects of files: want -f, too"},
		{[]string{"--method", "emptiness", "--max-evictions", "1", "--min-savings", "1", "--spot-to-spot"}, "--max-evictions is for --method consolidation: add it, or leave out --max-evictions\n--min-savings is for"},
		{[]string{"--method", "consolidation", "--drift-by-zone", "--terminate-first"}, "--drift-by-zone is for --method drift: add it, or leave out --drift-by-zone\n--terminate-first is for"},
		{[]string{"--interruption-rates", "testdata/static.yaml"}, "--interruption-rates: want --interruption-cost, too"},
	} {
		out, errs, code := run(t, "", c.args...)
		assert.Equal(t, inputs.ExitInput, code, c.args)
		assert.Contains(t, errs, c.want)
		assert.Empty(t, out)
	}
}

// A node that no requested method is about has the outcome of the library, not "no-saving".
func TestNoMethodApplies(t *testing.T) {
	args := []string{at, "--no-timing", "--method", "interruption"}
	out, _, code := run(t, "", args...)
	assert.Equal(t, inputs.ExitOK, code)
	assert.Contains(t, out, "and no requested method applies")
	assert.NotContains(t, out, "no-saving")
	out, _, _ = run(t, "", append(args, "-o", "json")...)
	var r report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	for _, v := range r.Verdicts {
		assert.Equal(t, "not-asked", v.Verdict)
	}
}

// Without nodes no method was passed over.
func TestWithoutNodesNoChangePays(t *testing.T) {
	const pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: base}\nspec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: []}}}\n"
	out, problems, code := run(t, pool, at, "--no-timing", "-f", "-")
	assert.Equal(t, inputs.ExitOK, code, problems)
	assert.Contains(t, out, "0 nodes at $0.000/h, and no change pays")
}

// Broken nodes are replaced only if that is asked for, and not those that have been so for a short
// time.
func TestUnhealthyNodes(t *testing.T) {
	node := func(name, since string) string {
		return "---\napiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", creationTimestamp: 2026-01-10T08:00:00Z, labels: {karpenter.sh/nodepool: base, topology.kubernetes.io/zone: us-east-1a, " +
			"node.kubernetes.io/instance-type: m5.large, karpenter.sh/capacity-type: on-demand}}\nstatus: {allocatable: {cpu: 1900m, memory: 7Gi, pods: 29}, capacity: {cpu: 2, memory: 8Gi, pods: 29}, " +
			"conditions: [{type: Ready, status: Unknown, lastTransitionTime: '" + since + "'}]}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p-" + name +
			", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: u, controller: true}]}\nspec: {nodeName: " + name + ", containers: [{name: c, image: i, resources: {requests: {cpu: 1500m}}}]}\n"
	}
	text := "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: base}\nspec: {template: {spec: {requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}]}}}\n" +
		node("old", "2026-01-15T11:00:00Z")
	for range 5 {
		text += strings.ReplaceAll(strings.ReplaceAll(node("fine-", "2026-01-15T11:00:00Z"), "fine-", fmt.Sprint("fine-", len(text))), "status: Unknown", "status: 'True'")
	}
	for args, want := range map[string]string{"unhealthy": "unhealthy", "drift": ""} {
		out, errs, code := run(t, text, at, "--no-timing", "-f", "-", "--method", args)
		assert.Equal(t, inputs.ExitOK, code, errs)
		if want == "" {
			assert.Contains(t, out, "nothing to give back")
			continue
		}
		assert.Contains(t, out, "unhealthy  old        m5.large us-east-1a spot")
		assert.Contains(t, out, "6 -> 6 nodes")
	}
	out, _, _ := run(t, strings.Replace(text, "'2026-01-15T11:00:00Z'", "'2026-01-15T11:45:00Z'", 1), at, "--no-timing", "-f", "-", "--method", "unhealthy")
	assert.Contains(t, out, "no requested method applies")
	_, errs, _ := run(t, strings.ReplaceAll(text, "status: 'True'", "status: Unknown"), at, "--no-timing", "-f", "-", "--method", "unhealthy")
	assert.Contains(t, errs, "note: node old is broken and is not replaced: more than a fifth of the nodes of its pool are not well, so the fault is elsewhere\n")
}

func TestNothingToDo(t *testing.T) {
	out, errs, code := run(t, "apiVersion: v1\nkind: Node\nmetadata: {name: node-x}\n", at, "-f", "-", "--no-timing")
	assert.Equal(t, inputs.ExitOK, code, errs)
	assert.Contains(t, out, "nothing to give back")
	assert.Contains(t, out, "it belongs to none of the given pools")
}

// Pods that lose their places are in every form of the output: in the reason of the command, in the table of moves, in the summary and
// in JSON.
func TestStrandedPodsAreListed(t *testing.T) {
	text := "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: base}\nspec: {limits: {cpu: 2}, template: {spec: {requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}]}}}\n" +
		"---\napiVersion: v1\nkind: Node\nmetadata: {name: old, labels: {karpenter.sh/nodepool: base, topology.kubernetes.io/zone: us-east-1a, node.kubernetes.io/instance-type: m5.large, karpenter.sh/capacity-type: on-demand}}\n" +
		"status: {allocatable: {cpu: 1900m, memory: 7Gi, pods: 29}, capacity: {cpu: 2, memory: 8Gi, pods: 29}, conditions: [{type: Ready, status: 'True'}]}\n"
	for _, name := range []string{"a", "b"} {
		text += "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: u, controller: true}]}\n" +
			"spec: {nodeName: old, containers: [{name: c, image: i, resources: {requests: {cpu: 500m}}}]}\n"
	}
	args := []string{at, "--no-timing", "-f", "-", "--interrupted", "old=2026-01-15T12:30:00Z", "-o"}
	out, errs, code := run(t, text, append(args, "wide")...)
	assert.Equal(t, inputs.ExitOK, code, errs)
	assert.Contains(t, out, "though 2 pods lose their places: default/a: there are no other nodes; nothing can be bought before it goes: pool base is at its limit of cpu")
	assert.Contains(t, out, "1  no place <- default/a, default/b\n")
	assert.Contains(t, out, "0 pods move, 2 pods lose their places\n")
	out, _, _ = run(t, text, append(args, "json")...)
	var r report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	assert.Equal(t, 2, r.Summary.Stranded)
	assert.Equal(t, []string{"default/a", "default/b"}, r.Commands[0].Stranded)
}
