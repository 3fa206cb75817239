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

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan/survive"
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
	text, input := "", []string(nil) // the sample
	if testing.Short() {
		text, input = strings.Join(strings.Split(combinedInput, "---")[:3], "---"), []string{"-f", "-", "--instance-types", fewTypes(t)}
	}
	got := run(text, append(input, "--survives", "zone", "--no-timing", "-o", "json")...)
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
	table := run(text, append(input, "--survives", "zone", "--no-timing")...)
	require.Zero(t, table.code, table.stderr)
	assert.Contains(t, table.stdout, "zone "+s.Failures[0].Name)
	assert.Contains(t, table.stdout, monthly(s.Headroom.PricePerHour)+" a month")
	bad := run("", "--survives", "zoen")
	assert.NotZero(t, bad.code)
	assert.Contains(t, bad.stderr, `did you mean "zone"`)
	if testing.Short() { // each answer of the sample takes seconds
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

// A table that is not the plan says why pods have no place, because the exit code says that there are some.
func TestQuestionsAboutThePlanTellRefusals(t *testing.T) {
	pool := `{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: main}, spec: {limits: {cpu: 8}, template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m6a.xlarge]}]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: %d, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 3}}}]}}}}
`
	types := fewTypes(t)
	for _, flags := range [][]string{{"--survives", "node"}, {"--rules-cost"}} {
		got := run(fmt.Sprintf(pool, 3), append(flags, "-f", "-", "--instance-types", types)...)
		assert.Equal(t, inputs.ExitNotAll, got.code, got.stderr)
		assert.Contains(t, got.stdout, `default/web-2 can't be placed: pool "main": the limit of 8 cpu leaves 0`)
		assert.NotContains(t, run(fmt.Sprintf(pool, 2), append(flags, "-f", "-", "--instance-types", types)...).stdout, "can't be placed")
	}
	assert.Contains(t, run(fmt.Sprintf(pool, 2), "--survives", "node", "-f", "-", "--instance-types", types).stdout, "pods still wait after the loss of node main-0, and after 1 more of these losses.")
}

// A wrong value is told with the flag or file that has it, and without the packages that read it.
func TestWrongValuesNameNoPackage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wrong")
	require.NoError(t, os.WriteFile(path, []byte("vm"), 0o600))
	for flag, value := range map[string]string{"--survives": "planet", "--region": "planet", "--scheduler-config": path, "--instance-types": path, "--describe-instance-types": path} {
		got := run("", flag, value)
		assert.Equal(t, inputs.ExitInput, got.code, flag)
		assert.NotRegexp(t, `survive:|catalogue:|defaultspread:|kwok:|describe:|: :`, got.stderr)
		assert.NotEmpty(t, got.stderr)
	}
}

// A displaced pod that is not planned is named with the reason, in every format, and the verdict does not count it.
func TestSurvivalNamesWhoIsNotOurs(t *testing.T) {
	const cluster = `
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1, topology.kubernetes.io/zone: us-east-1a}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "20"}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: train-0, namespace: lab}
spec: {nodeName: n1, schedulerName: batch, containers: [{name: main, image: train, resources: {requests: {cpu: "1"}}}]}
status: {phase: Running}
`
	for format, want := range map[string]string{
		"table": "This does not count 1 displaced pod not ours to place.\nlab/train-0 is not ours to place: scheduler \"batch\" places it\n",
		"json":  `"notOurs": [`, "html": "not ours to place: scheduler",
	} {
		got := run(cluster, "-f", "-", "--survives", "node", "--no-timing", "-o", format)
		assert.Zero(t, got.code, got.stderr)
		assert.Contains(t, got.stdout, want, format)
	}
}

// The reasons for losses have lines that fit a terminal, whatever they say, and each stands once.
func TestReasonsOfLossesAreWrapped(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("pool \"general\": 626 types are too small; ", 20))
	s := survival{}
	for i := range 6 {
		why := long
		if i == 5 {
			why = "another reason"
		}
		s.Failures = append(s.Failures, rehearsedFailure{Failure: survive.Failure{Kind: survive.Zone, Name: fmt.Sprint("zone-", i)}, Lost: []string{"a/b"}, Why: why})
	}
	var out strings.Builder
	require.NoError(t, s.write(&out, terminal.Style{}))
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, len(line), 101, line)
	}
	words := strings.Join(strings.Fields(out.String()), " ")
	assert.Equal(t, 1, strings.Count(words, long))
	assert.Contains(t, words, "lost after the loss of zone zone-0, zone zone-1, zone zone-2, 2 more: pool")
	assert.Contains(t, words, "lost after the loss of zone zone-5: another reason")
}
