package program

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
)

const manifestsDir = "../../pipeline/manifests/testdata"

// Every malformed input ends with exit 2 or 3 and a line that says where and what, and nothing is planned.
func TestMalformed(t *testing.T) {
	paths, err := filepath.Glob(manifestsDir + "/malformed/*")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 40)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			start := time.Now()
			got := run("", "-f", path)
			assert.Contains(t, []int{2, 3}, got.code, got.stderr)
			if got.code == 2 {
				assert.Empty(t, got.stdout)
				assert.Contains(t, got.stderr, filepath.Base(path))
			}
			assert.Less(t, time.Since(start), 20*time.Second)
		})
	}
}

func TestMalformedFlagsAndCatalogues(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for name, args := range map[string][]string{
		"no such file":           {"-f", filepath.Join(dir, "none.yaml")},
		"no such catalogue":      {"--instance-types", filepath.Join(dir, "none.json")},
		"no such region":         {"--region", "us-east-9"},
		"no such strategy":       {"--strategy", "magic"},
		"no such preference":     {"--preferences", "respekt"},
		"no such output":         {"-o", "xml"},
		"no such pod":            {"--explain", "shop/wbe-0"},
		"stray argument":         {"now"},
		"catalogue is no JSON":   {"--instance-types", file("a.json", "{")},
		"catalogue is an object": {"--instance-types", file("b.json", "{}")},
		"negative price":         {"--instance-types", file("c.json", `[{"name":"a","architecture":"amd64","operatingSystems":["linux"],"resources":{"cpu":"1"},"offerings":[{"Price":-1,"Available":true,"Requirements":[]}]}]`)},
		"unknown field":          {"--instance-types", file("d.json", `[{"name":"a","architecture":"amd64","os":["linux"],"resources":{"cpu":"1"},"offerings":[]}]`)},
		"description is empty":   {"--describe-instance-types", file("e.json", "")},
		"description is a list":  {"--describe-instance-types", file("f.json", `[1]`)},
		"both catalogues":        {"--describe-instance-types", "x", "--instance-types", "y"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run("", args...)
			assert.Equal(t, 2, got.code, got.stdout)
			assert.NotEmpty(t, got.stderr)
			assert.Empty(t, got.stdout)
		})
	}
}

// Valid manifests of every version, live exports among them, are read as they are.
func TestValid(t *testing.T) {
	paths, err := filepath.Glob(manifestsDir + "/valid/*")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 30)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			got := run("", "-f", path, "-o", "json")
			assert.Contains(t, []int{0, 3}, got.code, got.stderr)
			var r report
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
			assert.Equal(t, r.Summary.Pods, r.Summary.Scheduled+r.Summary.Unschedulable+r.Summary.Ignored)
			placed := 0
			for _, n := range r.NewNodes {
				placed += len(n.Pods)
			}
			for _, n := range r.ExistingNodes {
				placed += len(n.Pods)
			}
			assert.Equal(t, r.Summary.Scheduled, placed)
			assert.Len(t, r.BindingOrder, placed)
			assert.Equal(t, r.Summary.Unschedulable > 0, got.code == 3)
		})
	}
}

// The same input gives the same bytes, whatever the order of documents and the number of cores.
func TestSameInputSameBytes(t *testing.T) {
	docs := strings.Split(sample, "\n---\n")
	want := run("", "--no-timing", "-o", "json")
	require.Contains(t, []int{0, 3}, want.code)
	rng := rand.New(rand.NewPCG(1, 2))
	runs := 20
	if testing.Short() {
		runs = 2
	}
	for i := range runs {
		old := runtime.GOMAXPROCS(1 + i%2)
		rng.Shuffle(len(docs), func(a, b int) { docs[a], docs[b] = docs[b], docs[a] })
		got := run(strings.Join(docs, "\n---\n"), "--no-timing", "-o", "json", "-f", "-")
		runtime.GOMAXPROCS(old)
		require.Equal(t, want.stdout, got.stdout, "run %d", i)
	}
}

// The keys that scripts rely on are there.
func TestContract(t *testing.T) {
	got := run("", "--sample", "refusals", "-o", "json")
	var r map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
	has := func(v any, keys ...string) {
		t.Helper()
		m, ok := v.(map[string]any)
		require.True(t, ok, v)
		for _, k := range keys {
			assert.Contains(t, m, k)
		}
	}
	first := func(v any) any {
		t.Helper()
		list, ok := v.([]any)
		require.True(t, ok, v)
		require.NotEmpty(t, list)
		return list[0]
	}
	has(r, "summary", "newNodes", "existingNodes", "unschedulable", "ignored", "bindingOrder")
	has(r["summary"], "pods", "scheduled", "unschedulable", "newNodes", "pricePerHour", "lowerBoundPerHour", "gapPercent", "boundKind", "strategy", "prices", "seconds")
	has(r["summary"].(map[string]any)["seconds"], "read", "compile", "solve")
	has(first(r["newNodes"]), "name", "provisioner", "nodePool", "instanceType", "zone", "capacityType", "pricePerHour", "labels", "taints",
		"requests", "daemonSets", "allocatable", "alternatives", "pods")
	has(first(r["existingNodes"]), "name", "pods")
	refusal := first(r["unschedulable"])
	has(refusal, "pod", "message", "reasons", "fix")
	has(first(refusal.(map[string]any)["reasons"]), "nodePool", "stage", "detail")
	has(refusal.(map[string]any)["fix"], "change", "verified", "kind")
	assert.NotContains(t, refusal.(map[string]any)["fix"], "pods", "thousands of pods may share a fix")
	fixes, kinds := r["fixes"].([]any), map[any]map[string]any{}
	for _, f := range fixes {
		kinds[f.(map[string]any)["kind"]] = f.(map[string]any)
	}
	has(kinds["AllowType"], "allow", "nodePool", "value")
	has(kinds["DropSelector"], "key", "pods")
	has(first(r["ignored"]), "pod", "why")
}

func TestYAMLIsTheSameAnswer(t *testing.T) {
	types := fewTypes(t)
	asJSON, asYAML := run(combinedInput, "-f", "-", "--instance-types", types, "-o", "json", "--no-timing"), run(combinedInput, "-f", "-", "--instance-types", types, "-o", "yaml", "--no-timing")
	require.Equal(t, 3, asYAML.code)
	require.True(t, strings.HasPrefix(asYAML.stdout, "bindingOrder:\n"), "block style, keys in order")
	back, err := yaml.YAMLToJSON([]byte(asYAML.stdout))
	require.NoError(t, err)
	require.JSONEq(t, asJSON.stdout, string(back))
}

// Flags that this program once had say where they went, whatever else is asked.
func TestFlagsOfLaunch(t *testing.T) {
	for _, args := range [][]string{{"--launch"}, {"--dry-run", "--cluster", "harbour"}, {"--endpoint=http://127.0.0.1:1"}, {"--lag", "3s"}} {
		got := run("", args...)
		assert.Equal(t, 2, got.code, args)
		assert.Contains(t, got.stderr, "go run ./examples/launch")
		assert.Empty(t, got.stdout)
	}
	assert.NotContains(t, run("", "--help").stdout, "--dry-run")
}

// Where no file is named, people are told that they look at a sample, and manifests that are piped in are not passed over in silence.
func TestSampleIsSaidToBeOne(t *testing.T) {
	for _, args := range [][]string{{}, {"--explain", "shop/web-0"}, {"-o", "wide"}} {
		got := run("", args...)
		assert.True(t, strings.HasPrefix(got.stdout, "built-in sample;"), "%v: %s%s", args, got.stdout, got.stderr)
		got = run("kind: Pod", args...)
		assert.Equal(t, 2, got.code)
		assert.Contains(t, got.stderr, "add -f -")
	}
}

// A pod that is not pending has a neighbour by name: in another namespace, or with nearly its name.
func TestExplainSuggestsNames(t *testing.T) {
	pod := func(name string) string {
		return "---\n{apiVersion: v1, kind: Pod, metadata: {name: web-0, namespace: " + name + "}, spec: {containers: [{name: a, image: a}]}}\n"
	}
	path := filepath.Join(t.TempDir(), "pods.yaml")
	require.NoError(t, os.WriteFile(path, []byte(pod("shop")+pod("yard")), 0o600))
	for asked, want := range map[string]string{
		"web-0": `did you mean "shop/web-0" or "yard/web-0"?`, "default/web-0": `did you mean "shop/web-0" or "yard/web-0"?`,
		"web": `did you mean "shop/web" or "yard/web"?`, "deployment/web": `did you mean "shop/web" or "yard/web"?`, "shop/wbe-0": `did you mean "shop/web-0"?`, "shop/database": "no pending pod or workload has this name; there are shop/web-0, yard/web-0\n",
	} {
		got := run("", "-f", path, "--explain", asked)
		assert.Equal(t, 2, got.code)
		assert.Contains(t, got.stderr, want)
	}
}

// The name of a workload, as tables print it, as its owner has it or with a kind, tells of its first pods of each fate.
func TestExplainTakesWorkloads(t *testing.T) {
	const pool = "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: default}, spec: {limits: {nodes: 2}, template: {spec: {}}}}\n"
	apart := func(kind, namespace, more, spec string) string {
		return "---\n{apiVersion: apps/v1, kind: " + kind + ", metadata: {name: web, namespace: " + namespace + "}, spec: {replicas: 12, selector: {matchLabels: {a: " + namespace + "}}, template: {metadata: {labels: {a: " + namespace + "}}, spec: {" + spec +
			" containers: [{name: a, image: a}]" + more + "}}}}\n"
	}
	const alone = ", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {a: shop}}}]}}"
	path := filepath.Join(t.TempDir(), "pods.yaml")
	text := pool + apart("Deployment", "shop", alone, "") + apart("StatefulSet", "default", "", "schedulerName: other,") +
		"---\n{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly, namespace: batch}, spec: {schedule: '@daily', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}}\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	types := fewTypes(t)
	for _, c := range []struct {
		asked string
		code  int
		want  []string
	}{
		{"batch/nightly", 0, []string{"batch/nightly-0 asks only", "goes to new node"}},
		{"batch/cronjob/nightly", 0, []string{"batch/nightly-0 asks"}},
		{"shop/web", 3, []string{"shop/web: 12 pending pods, 2 with a place, 10 without a place\n", "shop/web-0 asks", "goes to new node", "shop/web-2 asks", "shop/web-2 can't be placed"}},
		{"shop/deploy/web", 3, []string{"shop/deploy/web: 12 pending pods", "shop/web-0 asks", "shop/web-2 can't be placed"}},
		{"shop/Deployment/web", 3, []string{"shop/web-0 asks"}},
		{"web", 0, []string{"web: 12 pending pods, 12 not ours to place\n", `default/web-0 is not ours to place: scheduler "other" places it`}},
		{"sts/web", 0, []string{"default/web-0 is not ours to place"}},
		{"default/web", 0, []string{"default/web-0 is not ours to place"}},
		{"web-3", 0, []string{"default/web-3 is not ours to place"}},
		{"shop/sts/web", 2, []string{`no pending pod or workload has this name (did you mean "default/web" or "shop/web"?); there are batch/nightly, default/web, shop/web`}},
		{"batch/nigthly", 2, []string{`did you mean "batch/nightly"?`}},
	} {
		got := run("", "--no-timing", "-f", path, "--instance-types", types, "--explain", c.asked)
		assert.Equal(t, c.code, got.code, c.asked)
		for _, want := range c.want {
			assert.Contains(t, got.stdout+got.stderr, want, c.asked)
		}
	}
}

// Pods that are refused alike stand together with all their names, and with what the fix costs for all of them.
func TestRefusalsOfSeveralWorkloads(t *testing.T) {
	const pool = "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: default}, spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]}}}}\n"
	types := fewTypes(t)
	for n, want := range map[int]string{
		1: "default/w0-0 can't be placed", 2: "default/w0 and default/w1 can't be placed", 6: "default/w0, default/w1, default/w2, default/w3 and 2 more workloads, 6 pods in all, can't be placed",
	} {
		text := pool
		for i := range n {
			text += fmt.Sprintf("---\n{apiVersion: v1, kind: Pod, metadata: {name: w%d-0}, spec: {nodeSelector: {disk: nvme}, containers: [{name: c, image: x, resources: {requests: {cpu: %d}}}]}}\n", i, 1+i)
		}
		path := filepath.Join(t.TempDir(), "pods.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		got := run("", "-f", path, "--instance-types", types)
		assert.Contains(t, got.stdout, want)
		var report struct {
			Unschedulable []struct {
				Fix struct{ PricePerHour float64 }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(run("", "-f", path, "-o", "json", "--instance-types", types).stdout), &report))
		for _, u := range report.Unschedulable { // the change was tried once for all of them
			assert.Contains(t, got.stdout, fmt.Sprintf("for at most %v/h more", binpack.Dollars(u.Fix.PricePerHour)))
		}
	}
}

// Other sizes are planned only where somebody asks for them, and a size that is cheaper than the plan is named.
func TestSizes(t *testing.T) {
	assert.NotContains(t, run("", "-o", "wide").stdout, "NODES OF AT MOST")
	assert.Contains(t, run("", "--sizes").stdout, "NODES OF AT MOST")
	assert.Equal(t, 2, run("", "--now", "yesterday").code)
	assert.Contains(t, run("", "--now", "yesterday").stderr, `--now "yesterday": want a time such as`)
	assert.Contains(t, run("", "--now", "2026-01-31T12:00:00Z").stderr, "--now is when a rehearsal begins: want --rehearse, too")
	assert.Equal(t, 2, run("", "--sizes", "-o", "json").code)
	r := report{curve: []curvePoint{{maxCPU: 2, placed: 1, price: 1}, {maxCPU: 4, placed: 3, price: 2}, {maxCPU: 8, placed: 3, price: 2.5}, {maxCPU: 16, placed: 3, price: 3}}}
	r.Summary.Scheduled, r.Summary.NewNodes = 3, 1
	for price, want := range map[float64]string{3: "--max-node-cpu 4 finds a plan that is $1.000/h cheaper", 2: ""} {
		r.Summary.PricePerHour = price
		var text strings.Builder
		require.NoError(t, r.writeCurve(&text, terminal.Style{}))
		if want == "" {
			assert.NotContains(t, text.String(), "cheaper")
			continue
		}
		assert.Contains(t, text.String(), want)
	}
}

// Scripts and the page have a group as one thing, too.
func TestGangsElsewhere(t *testing.T) {
	s := readScenario(t, filepath.Join("testdata", "gangs.txt"))
	path := filepath.Join(t.TempDir(), "in.yaml")
	require.NoError(t, os.WriteFile(path, []byte(s.parts["in.yaml"]), 0o600))
	var got report
	require.NoError(t, json.Unmarshal([]byte(run("", "-f", path, "-o", "json").stdout), &got))
	require.Len(t, got.Gangs, 2)
	late, train := got.Gangs[0], got.Gangs[1]
	assert.Equal(t, 6, late.Waiting)
	assert.Contains(t, late.Why, "group lab/late needs 6 of its pods at once")
	assert.Equal(t, "us-east-1a", train.Domain)
	assert.Len(t, train.Nodes, train.NewNodes)
	assert.InDelta(t, train.PricePerHour, train.LowerBoundPerHour, 1e-9)
	page := run("", "-f", path, "-o", "html").stdout
	assert.Contains(t, page, "<dt>lab/late</dt><dd>6 waiting</dd>")
	assert.Contains(t, page, "<dt>lab/train</dt><dd>8 placed on 4 nodes, 4 of them to be bought for $1.224/h, all in topology.kubernetes.io/zone us-east-1a"+
		`<br><span class="hint">no nodes that hold it in one topology.kubernetes.io/zone cost less than $1.224/h</span></dd>`)
	assert.Equal(t, 1, strings.Count(page, "<dt>lab/late-"), "one notice for all of it")
}
