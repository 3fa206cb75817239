package program

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
	lib "github.com/joinery-sdk/joinery/examples/plan/report"
)

// outcome is what a plan does with each pod, and what it costs.
type outcome struct {
	places  map[string]string
	dollars float64
	failed  bool
}

func (o *outcome) add(nodes []lib.Node, existing []lib.ExistingNode, ignored []lib.Ignored) {
	o.places = map[string]string{}
	for i := range nodes {
		n := &nodes[i]
		for _, pod := range n.Pods {
			o.places[pod] = strings.Join([]string{n.Name, n.NodePool, n.InstanceType, n.Zone, n.CapacityType}, " ")
		}
	}
	for _, n := range existing {
		for _, pod := range n.Pods {
			o.places[pod] = n.Name
		}
	}
	for _, i := range ignored {
		o.places[i.Pod] = "ignored: " + i.Why
	}
}

// planned is the outcome of the program, and its notes.
func planned(t *testing.T, dir string) (outcome, string) {
	t.Helper()
	res := run("", "--no-timing", "--fixes", "none", "-o", "json", "-f", dir)
	if res.stdout == "" {
		require.Equal(t, 2, res.code, res.stderr)
		return outcome{failed: true}, res.stderr
	}
	var r lib.Report
	require.NoError(t, json.Unmarshal([]byte(res.stdout), &r))
	out := outcome{dollars: r.Summary.PricePerHour}
	out.add(r.NewNodes, r.ExistingNodes, r.Ignored)
	for _, u := range r.Unschedulable {
		out.places[u.Pod] = "refused"
	}
	return out, res.stderr
}

// tested is the outcome of a scenario of the same files.
func tested(dir string) (outcome, string) {
	p, err := ruletest.Scenario{}.Files(dir).Solve()
	if err != nil {
		return outcome{failed: true}, err.Error()
	}
	r := lib.Of(p.Packed())
	out := outcome{dollars: r.Summary.PricePerHour}
	out.add(r.NewNodes, r.ExistingNodes, r.Ignored)
	for _, u := range r.Unschedulable {
		out.places[u.Pod] = "refused"
	}
	return out, strings.Join(p.Notes(), "\n")
}

// The same files give the same plan in a program and in a test, whatever the files leave out and however they lie.
func TestRulesAreTestedOnTheSamePlan(t *testing.T) {
	const (
		pool    = "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: general}, spec: {template: {spec: {%s}}}}"
		general = "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: general}, spec: {template: {spec: {}}}}"
		web     = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 5, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {MORE containers: [{name: c, image: i, resources: {requests: {cpu: 900m, memory: 1Gi}}}]}}}}"
		db      = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: shop}, spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 900m}}}]}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {MORE accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}"
	)
	with := func(text, more string) string { return strings.Replace(text, "MORE", more, 1) }
	in := func(zone string) string {
		return strings.Replace(pool, "%s", "requirements: [{key: topology.kubernetes.io/zone, operator: In, values: ["+zone+"]}]", 1)
	}
	for name, files := range map[string]map[string]string{
		"usual storage class":      {"a.yaml": general, "b.yaml": with(db, "storageClassName: gp3,")},
		"storage class of nobody":  {"a.yaml": general, "b.yaml": with(db, "storageClassName: ours,")},
		"default storage class":    {"a.yaml": general, "b.yaml": with(db, "")},
		"no claim":                 {"a.yaml": general, "b.yaml": with(web, "volumes: [{name: v, persistentVolumeClaim: {claimName: gone}}],")},
		"priority class":           {"a.yaml": general, "b.yaml": with(web, "priorityClassName: batch,")},
		"misspelt priority class":  {"a.yaml": general + "\n---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: important}, value: 5}", "b.yaml": with(web, "priorityClassName: importnat,")},
		"runtime class":            {"a.yaml": general, "b.yaml": with(web, "runtimeClassName: gvisor,")},
		"service account":          {"a.yaml": general, "b.yaml": with(web, "serviceAccountName: gone,")},
		"node class":               {"a.yaml": strings.Replace(pool, "%s", "nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gone}", 1), "b.yaml": with(web, "")},
		"namespace":                {"a.yaml": general, "b.yaml": with(web, "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {}, namespaceSelector: {matchLabels: {team: red}}}]}},")},
		"region of a pool":         {"a.yaml": in("eu-west-1b"), "b.yaml": with(web, "")},
		"region of nodes":          {"a.yaml": general, "b.yaml": with(web, ""), "n.yaml": "{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: us-west-2a}}, status: {allocatable: {cpu: \"2\", memory: 4Gi, pods: \"9\"}, conditions: [{type: Ready, status: 'True'}]}}"},
		"several regions":          {"a.yaml": in("eu-west-1b, us-west-2a"), "b.yaml": with(web, "")},
		"no pool":                  {"b.yaml": with(web, "")},
		"nothing":                  {"b.yaml": "# empty\n"},
		"no file":                  {"b.txt": general},
		"default spread's service": {"a.yaml": general, "b.yaml": with(web, "") + "\n---\n{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {a: b}}}"},
		"static pool":              {"a.yaml": "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: fixed}, spec: {replicas: 2, template: {spec: {}}}}", "b.yaml": with(web, "")},
		"buffer without workload":  {"a.yaml": general, "b.yaml": with(web, "") + "\n---\n{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: spare, namespace: shop}, spec: {podTemplateRef: {name: gone}, replicas: 3}}"},
		"hidden directories":       {"a.yaml": general, "b.yaml": with(web, ""), ".git/b.yaml": "{"},
		"capital letters":          {"a.YAML": general, "b.Yml": with(web, "")},
		"the last object counts":   {"a.yaml": in("us-east-1a"), "a/z.yaml": in("us-east-1b"), "b.yaml": with(web, "")},
		"values of a chart":        {"a.yaml": general, "b.yaml": with(web, ""), "values.yaml": "replicas: 3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range files {
				at := filepath.Join(dir, filepath.FromSlash(file))
				require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
				require.NoError(t, os.WriteFile(at, []byte(text), 0o600))
			}
			want, said := planned(t, dir)
			got, notes := tested(dir)
			assert.Equal(t, want, got)
			if !want.failed {
				for note := range strings.Lines(said) {
					assert.Contains(t, notes, strings.TrimSpace(strings.TrimPrefix(note, "note: ")))
				}
			}
		})
	}
	samples := []string{"../../rules/testdata/pools.yaml", "../../gate/testdata"}
	valid, err := filepath.Glob(manifestsDir + "/valid/*")
	require.NoError(t, err)
	if testing.Short() {
		valid = valid[:3]
	}
	for _, path := range append(samples, valid...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			want, said := planned(t, path)
			got, notes := tested(path)
			assert.Equal(t, want, got, "%s\n%s", said, notes)
		})
	}
}

// Rules that hold for pods without a place say so, on the terminal and for scripts.
func TestAssertionsNamePodsWithoutAPlace(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"pods.yaml":  "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: general}, spec: {template: {spec: {}}}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: a-0, namespace: shop}, spec: {nodeSelector: {disk: fast}, containers: [{name: c}]}}\n",
		"rules.yaml": "- {rule: apart, pods: shop/a-*, apart: node}\n- {rule: cheap, pods: shop/a-*, atMostPerHour: 0.01}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	const note = `shop/a-0 has no place: pool "general": it requires disk in (fast), a label that nothing in the pool has`
	args := []string{"--no-timing", "-f", dir + "/pods.yaml", "--assert", dir + "/rules.yaml", "-o"}
	assert.Equal(t, 2, strings.Count(run("", append(args, "wide")...).stdout, "holds for 1 pod; "+note+"\n"))
	var got struct {
		Assertions []assertion `json:"assertions"`
	}
	require.NoError(t, json.Unmarshal([]byte(run("", append(args, "json")...).stdout), &got))
	require.Len(t, got.Assertions, 2)
	for _, a := range got.Assertions {
		assert.True(t, a.Holds)
		assert.Equal(t, []string{note}, a.Notes)
	}
}
