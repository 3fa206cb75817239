package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

func TestGate(t *testing.T) {
	for _, c := range []struct {
		name     string
		args     []string
		code     int
		out, err string
	}{
		{"help has the exit codes", []string{"-h"}, inputs.ExitOK, "Exit codes: 0 the change may pass,", ""},
		{"nothing to compare", []string{"-before", "", "-after", ""}, inputs.ExitInput, "", "-before: want the current manifests, a folder or a file\n-after: want the changed manifests, a folder or a file\n"},
		{"nothing to compare with", []string{"-before", "testdata/before", "-after", ""}, inputs.ExitInput, "", "-after: want the changed manifests, a folder or a file\n"},
		{"one pod, and the pool that came closest", []string{"-after", "testdata/refused"}, inputs.ExitNotAll, "no place for 1 pod of Deployment shop/cart: pool \"general\"", ""},
		{"help", []string{"--help"}, inputs.ExitOK, "Usage of gate:", ""},
		{"no such flag", []string{"--hepl"}, inputs.ExitInput, "", "see gate --help"},
		{"the word help", []string{"help"}, inputs.ExitOK, "Usage of gate:", ""},
		{"version", []string{"--version"}, inputs.ExitOK, "gate ", ""},
		{"the word version", []string{"version"}, inputs.ExitOK, "gate ", ""},
		{"another word", []string{"hepl"}, inputs.ExitInput, "", "see gate --help"},
		{"a word too many", []string{"version", "now"}, inputs.ExitInput, "", "see gate --help"},
		{"nothing changed", []string{"-after", "testdata/before"}, inputs.ExitOK, "+0.00, the limit is +0.00\n", ""},
		{"dearer", []string{"-after", "testdata/after"}, inputs.ExitDearer, "Deployment shop/web ", ""},
		{"dearer within the limit", []string{"-after", "testdata/after", "-max-dearer", "127"}, inputs.ExitOK, "+126.14, the limit is +127.00\n", ""},
		{"dearer by more than the limit", []string{"-after", "testdata/after", "-max-dearer", "126"}, inputs.ExitDearer, "", ""},
		{"a place is lost", []string{"-after", "testdata/lost"}, inputs.ExitNotAll, "no place for 2 pods of Deployment shop/cart: pool \"general\"", ""},
		{"cheaper", []string{"-before", "testdata/after", "-after", "testdata/before"}, inputs.ExitOK, ": -126.14,", ""},
		{"what is waited for is not survived", []string{"-after", "testdata/before", "-survives", "zone"}, inputs.ExitNotAll, "it waits for a node to be bought", ""},
		{"what may be waited for is", []string{"-after", "testdata/before", "-survives", "zone,node", "-may-wait"}, inputs.ExitOK, "", ""},
		{"no such failure", []string{"-survives", "zones"}, inputs.ExitInput, "", "did you mean \"zone\""},
		{"a rule is too dear", []string{"-after", "testdata/before", "-max-rule-cost", "1"}, inputs.ExitNotAll, "a month, verified by a plan without it, want at most $1.00", ""},
		{"no rule is too dear", []string{"-after", "testdata/before", "-max-rule-cost", "500"}, inputs.ExitOK, "the dearest costs $", ""},
		{"the rules of a file", []string{"-after", "testdata/before", "-assert", "testdata/rules.yaml"}, inputs.ExitNotAll, `rule "no rule but these is dear" (testdata/rules.yaml:2) holds`, ""},
		{"a day that is not recorded", []string{"-after", "testdata/before", "-max-above-bound", "20"}, inputs.ExitNotAll, "none is given", ""},
		{"a day that cost too much", []string{"-after", "testdata/before", "-max-above-bound", "20", "-log", "../regret/sample.jsonl"}, inputs.ExitNotAll, "that any policy must pay that knows only the present, want at most 20%", ""},
		{"a day that did not", []string{"-after", "testdata/before", "-max-above-bound", "900", "-log", "../regret/sample.jsonl"}, inputs.ExitOK, "its past cost at most 900% above the bound holds: $", ""},
		{"no such log", []string{"-after", "testdata/before", "-max-above-bound", "20", "-log", "testdata/none"}, inputs.ExitInput, "", "testdata/none"},
		{"no number of dollars", []string{"-max-dearer", "NaN"}, inputs.ExitInput, "", "-max-dearer NaN: want dollars a month, 0 or more\n"},
		{"a negative limit", []string{"-max-dearer", "-1"}, inputs.ExitInput, "", "-max-dearer -1: want dollars a month, 0 or more\n"},
		{"no limit", []string{"-max-dearer", "Inf"}, inputs.ExitInput, "", "-max-dearer +Inf: want dollars a month, 0 or more\n"},
		{"rules of no price", []string{"-max-rule-cost", "NaN"}, inputs.ExitInput, "", "-max-rule-cost NaN: want dollars a month"},
		{"rules of any price", []string{"-max-rule-cost", "-1"}, inputs.ExitInput, "", "-max-rule-cost -1: want dollars a month"},
		{"a past of any price", []string{"-max-above-bound", "-Inf", "-max-rule-cost", "Inf"}, inputs.ExitInput, "", "-max-rule-cost +Inf: want dollars a month, 0 or more\n-max-above-bound -Inf: want percent, 0 or more\n"},
		{"waiting after nothing", []string{"-may-wait"}, inputs.ExitInput, "", "-may-wait: want -survives, too"},
		{"a past that nothing asks for", []string{"-log", "../regret/sample.jsonl"}, inputs.ExitInput, "", "want -max-above-bound"},
		{"a past that no rule asks for", []string{"-log", "../regret/sample.jsonl", "-assert", "testdata/placed.yaml"}, inputs.ExitInput, "", "want -max-above-bound"},
		{"two pasts", []string{"-max-above-bound", "20", "-log", "../regret/sample.jsonl", "-snapshots", "day"}, inputs.ExitInput, "", "-snapshots and -log exclude each other"},
		{"no such rules", []string{"-after", "testdata/before", "-assert", "testdata/none"}, inputs.ExitInput, "", "testdata/none"},
		{"no such folder", []string{"-after", "testdata/none"}, inputs.ExitInput, "", "testdata/none"},
		{"no such flag", []string{"-price"}, inputs.ExitInput, "", "-price"},
		{"no such region", []string{"-region", "moon-base-1"}, inputs.ExitInput, "", "moon-base-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, problems bytes.Buffer
			assert.Equal(t, c.code, run(t.Context(), append([]string{"-before", "testdata/before", "-after", "testdata/before"}, c.args...), &out, &problems))
			assert.Contains(t, out.String(), c.out)
			assert.Contains(t, problems.String(), c.err)
		})
	}
}

// An amount above the limit never looks like the limit.
func TestAmountsAreToldApart(t *testing.T) {
	for _, c := range []struct {
		amount, other float64
		want          string
	}{{126.14, 127, "+126.14"}, {0, 0, "+0.00"}, {0.001, 0, "+0.001"}, {0, 0.001, "+0.000"}, {-126.14, 0, "-126.14"}, {50.0049, 50, "+50.005"}} {
		assert.Equal(t, c.want, beside(c.amount, c.other))
	}
}

// With a checker the plan must convince it, and one that never is convinced stops every change.
func TestGateDemandsACheckedPlan(t *testing.T) {
	checker := filepath.Join(t.TempDir(), "check")
	text, err := exec.CommandContext(t.Context(), "go", "build", "-o", checker, "../check").CombinedOutput()
	require.NoError(t, err, "%s", text)
	stubborn := filepath.Join(t.TempDir(), "stubborn")
	require.NoError(t, os.WriteFile(stubborn, []byte("#!/bin/sh\ncat >/dev/null; echo no proof is enough >&2; exit 3\n"), 0o700))
	for _, c := range []struct {
		name, checker string
		after         string
		code          int
		out, err      string
	}{
		{"confirmed", checker, "before", inputs.ExitOK, "holds: ", ""},
		{"confirmed and dearer", checker, "after", inputs.ExitDearer, "holds: ", ""},
		{"confirmed, and a place is lost", checker, "lost", inputs.ExitNotAll, "holds: ", ""},
		{"not confirmed", stubborn, "before", inputs.ExitNotAll, "", "no proof is enough"},
		{"no such program", checker + "er", "before", inputs.ExitNotAll, "", "checker"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, problems bytes.Buffer
			assert.Equal(t, c.code, run(t.Context(), []string{"-before", "testdata/before", "-after", "testdata/" + c.after, "-check", c.checker}, &out, &problems))
			assert.Contains(t, out.String(), c.out)
			assert.Contains(t, problems.String(), c.err)
		})
	}
}

// Of all pools that refuse a pod, the one that placed it before says what has changed.
func TestThePoolOfBeforeSaysWhy(t *testing.T) {
	const pools = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: [
  {key: karpenter.sh/capacity-type, operator: In, values: [%s]}, {key: karpenter.k8s.aws/instance-family, operator: In, values: [m6a]}]}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: another}
spec: {template: {spec: {nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}, requirements: []}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {nodeSelector: {karpenter.sh/capacity-type: spot}, containers: [{name: main, image: web, resources: {requests: {cpu: "1"}}}]}
`
	dir := t.TempDir()
	for name, types := range map[string]string{"before": "spot, on-demand", "after": "on-demand"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".yaml"), fmt.Appendf(nil, pools, types), 0o600))
	}
	var out, problems bytes.Buffer
	assert.Equal(t, inputs.ExitNotAll, run(t.Context(), []string{"-before", filepath.Join(dir, "before.yaml"), "-after", filepath.Join(dir, "after.yaml")}, &out, &problems))
	assert.Contains(t, out.String(), `no place for 4 pods of Deployment shop/web: pool "general": it requires karpenter.sh/capacity-type in (spot)`)
}

// Pods of one workload that are refused for the same reason are one line, also if they differ.
func TestRefusalsAreNamedOnce(t *testing.T) {
	pool, err := os.ReadFile("testdata/before/pool.yaml")
	require.NoError(t, err)
	text := string(pool)
	for i, zone := range []string{"a", "b"} {
		text += fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: db-%d, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: db, controller: true}]}
spec: {nodeSelector: {disk: fast, topology.kubernetes.io/zone: us-east-1%s}, containers: [{name: main, image: db, resources: {requests: {cpu: "1"}}}]}
`, i, zone)
	}
	file := filepath.Join(t.TempDir(), "db.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	var out, problems bytes.Buffer
	assert.Equal(t, inputs.ExitNotAll, run(t.Context(), []string{"-before", "testdata/before", "-after", file}, &out, &problems), problems.String())
	assert.Contains(t, out.String(), "no place for 2 pods of StatefulSet shop/db: ")
}

// Pods that had a place and are not planned any more stop a change; new ones that wait on purpose do not.
func TestPodsThatAreNotPlannedAreNamed(t *testing.T) {
	pool, err := os.ReadFile("testdata/before/pool.yaml")
	require.NoError(t, err)
	const web = `
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {%s containers: [{name: main, image: web, resources: {requests: {cpu: "1"}}}]}
`
	for _, c := range []struct {
		name, before, after string
		code                int
		out                 string
	}{
		{"another scheduler", fmt.Sprintf(web, ""), fmt.Sprintf(web, "schedulerName: batch,"), inputs.ExitNotAll, `no place any more for 4 pods of Deployment shop/web, not planned because: scheduler "batch" places it`},
		{"a gate", fmt.Sprintf(web, ""), fmt.Sprintf(web, "schedulingGates: [{name: quota}],"), inputs.ExitNotAll, `scheduling gate "quota"`},
		{"a claim for devices", fmt.Sprintf(web, ""), fmt.Sprintf(web, "resourceClaims: [{name: gpu, resourceClaimName: gpu}],"), inputs.ExitNotAll, `resource claim "gpu"`},
		{"no pool", fmt.Sprintf(web, ""), fmt.Sprintf(web, "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: karpenter.sh/nodepool, operator: DoesNotExist}]}]}}},"), inputs.ExitNotAll, "it opted out of every pool"},
		{"new and gated", "", fmt.Sprintf(web, "schedulingGates: [{name: quota}],"), inputs.ExitOK, `not ours to place: 4 pods of Deployment shop/web: scheduling gate "quota"`},
		{"as before", fmt.Sprintf(web, "schedulerName: batch,"), fmt.Sprintf(web, "schedulerName: batch,"), inputs.ExitOK, `not ours to place: 4 pods of Deployment shop/web: scheduler "batch" places it`},
		{"planned now", fmt.Sprintf(web, "schedulerName: batch,"), fmt.Sprintf(web, ""), inputs.ExitDearer, "Deployment shop/web "},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"before": c.before, "after": c.after} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name+".yaml"), append(slices.Clone(pool), text...), 0o600))
			}
			var out, problems bytes.Buffer
			assert.Equal(t, c.code, run(t.Context(), []string{"-before", filepath.Join(dir, "before.yaml"), "-after", filepath.Join(dir, "after.yaml")}, &out, &problems), problems.String())
			assert.Contains(t, out.String(), c.out)
		})
	}
}
