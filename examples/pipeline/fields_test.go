package pipeline_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
)

// These are the tests that scheduling/FIELDS.md names. Each field is shown to bear on placement: the same cluster is
// planned without the field (or with another value) and with it, and a rule that is broken before is kept after.

// fieldCase is one field of a pod's spec.
type fieldCase struct {
	field string
	// around is what else the cluster holds; pods are named web-0, web-1 and so on.
	around string
	pods   int
	labels string
	// before and after are the spec of the pods, in YAML, without its containers unless it says them.
	before, after string
	// noPool leaves out the pool that may buy everything.
	noPool bool
	rule   string
}

func fieldMarket() ruletest.Scenario {
	return ruletest.New(
		ruletest.Type("a.4", "cpu", "4", "memory", "16Gi").Offer("zone-a", "on-demand", 0.20).Offer("zone-a", "spot", 0.08).Offer("zone-b", "on-demand", 0.22),
		ruletest.Type("a.16", "cpu", "16", "memory", "64Gi").Offer("zone-a", "on-demand", 0.90).Offer("zone-b", "on-demand", 0.95),
	)
}

const oneCPU = "containers: [{name: main, image: i, resources: {requests: {cpu: 1}}}]"

func (c *fieldCase) plan(t *testing.T, spec string) *ruletest.Plan {
	t.Helper()
	if !strings.Contains(spec, "containers: [") || strings.Contains(spec, "initContainers: [") && strings.Count(spec, "ontainers: [") == 1 {
		spec = strings.TrimSpace(spec + "\n" + oneCPU)
	}
	labels := "app: web"
	if c.labels != "" {
		labels += ", " + c.labels
	}
	text := c.around + fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {%s}}
    spec:
%s
`, max(c.pods, 1), labels, indent(spec))
	if !c.noPool {
		text += "---" + anyPool
	}
	p, err := fieldMarket().Manifests(text).PreferencePrice(math.Inf(1)).Solve()
	require.NoError(t, err)
	return p
}

// decides fails unless the rule is broken before and kept after.
func decides(t *testing.T, before, after *ruletest.Plan, rule string) {
	t.Helper()
	rules, err := ruletest.Parse(manifests.File{Name: "rule", Data: []byte(rule)})
	require.NoError(t, err)
	for _, r := range before.Check(rules...) {
		assert.False(t, r.Holds(), "before: %s", r)
	}
	for _, r := range after.Check(rules...) {
		assert.True(t, r.Holds(), "after: %s", r)
	}
}

// single is a pod named by itself, in YAML.
func single(namespace, name, labels, spec string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {namespace: %s, name: %s, labels: {%s}}
spec: {%s, containers: [{name: main, image: i, resources: {requests: {cpu: 1}}}]}
`, namespace, name, labels, spec)
}

// nodeIn is an existing node with room for so many CPUs.
func nodeIn(name, zone, cpu, taints string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Node
metadata: {name: %s, labels: {kubernetes.io/hostname: %s, topology.kubernetes.io/zone: %s}}
spec: {taints: [%s]}
status: {capacity: {cpu: %q, memory: 64Gi, pods: 100}, allocatable: {cpu: %q, memory: 64Gi, pods: 100}, conditions: [{type: Ready, status: "True"}]}
`, name, name, zone, taints, cpu, cpu)
}

// heavyPool is preferred over the other one by its weight.
func heavyPool(spec string) string {
	return fmt.Sprintf(`
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: heavy}
spec: {weight: 10, template: {%s}}
`, spec)
}

const classRef = "nodeClassRef: {group: g.example.com, kind: C, name: c}"

func required(expression string) string {
	return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + expression + "]}}}"
}

func preferred(terms string) string {
	return "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [" + terms + "]}}"
}

func podTerm(kind, terms string) string { return "affinity: {" + kind + ": {" + terms + "}}" }

const (
	inZoneB = "- landsOn: {zone: zone-b}\n  pods: web-*"
	always  = "requiredDuringSchedulingIgnoredDuringExecution"
	softly  = "preferredDuringSchedulingIgnoredDuringExecution"
	atB     = "nodeSelector: {topology.kubernetes.io/zone: zone-b}"
	atA     = "nodeSelector: {topology.kubernetes.io/zone: zone-a}"
)

func byZone(selector, more string) string {
	return fmt.Sprintf("{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {%s}}%s}", selector, more)
}

func spreadOf(more string) string {
	return "topologySpreadConstraints: [{" + more + "}]"
}

func TestNodeFields(t *testing.T) {
	teamed := heavyPool("metadata: {labels: {team: x}}, spec: {requirements: [], " + classRef + "}")
	large := heavyPool("spec: {requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [a.16]}], " + classRef + "}")
	two := nodeIn("n1", "zone-a", "8", "") + nodeIn("n2", "zone-a", "8", "")
	runFields(t, []fieldCase{
		{field: "nodeSelector", after: atB, rule: inZoneB},
		{field: "matchExpressions", after: required("{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-b]}]}"), rule: inZoneB},
		{
			field: "key", before: required("{matchExpressions: [{key: karpenter.sh/capacity-type, operator: NotIn, values: [zone-a]}]}"),
			after: required("{matchExpressions: [{key: topology.kubernetes.io/zone, operator: NotIn, values: [zone-a]}]}"), rule: inZoneB,
		},
		{
			field: "operator In", before: required("{matchExpressions: [{key: topology.kubernetes.io/zone, operator: Exists}]}"),
			after: required("{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-b]}]}"), rule: inZoneB,
		},
		{
			field: "operator NotIn", before: required("{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-a]}]}"),
			after: required("{matchExpressions: [{key: topology.kubernetes.io/zone, operator: NotIn, values: [zone-a]}]}"), rule: inZoneB,
		},
		{
			field: "operator Exists", around: strings.ReplaceAll(teamed, "weight: 10, ", ""), after: required("{matchExpressions: [{key: team, operator: Exists}]}"),
			rule: "- landsOn: {pool: heavy}\n  pods: web-*",
		},
		{
			field: "operator DoesNotExist", around: teamed, after: required("{matchExpressions: [{key: team, operator: DoesNotExist}]}"),
			rule: "- landsOn: {pool: default}\n  pods: web-*",
		},
		{
			field: "operator Gt", after: required("{matchExpressions: [{key: karpenter.kwok.sh/instance-cpu, operator: Gt, values: ['4']}]}"),
			rule: "- landsOn: {instanceType: a.16}\n  pods: web-*",
		},
		{
			field: "operator Lt", around: large, after: required("{matchExpressions: [{key: karpenter.kwok.sh/instance-cpu, operator: Lt, values: ['16']}]}"),
			rule: "- landsOn: {instanceType: a.4}\n  pods: web-*",
		},
		{
			field: "values", before: required("{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-a]}]}"),
			after: required("{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-b]}]}"), rule: inZoneB,
		},
		{
			field: "nodeSelectorTerms", before: required("{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-z]}]}"),
			after: required("{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-z]}]}, {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-b]}]}"), rule: inZoneB,
		},
		{
			field: "matchFields", around: two, after: required("{matchFields: [{key: metadata.name, operator: In, values: [n2]}]}"),
			rule: "- landsOn: {node: n2}\n  pods: web-*",
		},
		{field: "preference", after: preferred("{weight: 1, preference: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-b]}]}}"), rule: inZoneB},
		{
			field:  "weight of a preference",
			before: preferred("{weight: 5, preference: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-b]}]}}, {weight: 9, preference: {matchExpressions: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]}}"),
			after:  preferred("{weight: 9, preference: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-b]}]}}, {weight: 5, preference: {matchExpressions: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]}}"),
			rule:   inZoneB,
		},
	})
}

// runFields plans each case without and with its field.
func runFields(t *testing.T, cases []fieldCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.field, func(t *testing.T) { decides(t, c.plan(t, c.before), c.plan(t, c.after), c.rule) })
	}
}

func TestTolerationFields(t *testing.T) {
	tainted := heavyPool("spec: {taints: [{key: dedicated, value: batch, effect: NoSchedule}], requirements: [], " + classRef + "}")
	onHeavy := "- landsOn: {pool: heavy}\n  pods: web-*"
	runFields(t, []fieldCase{
		{field: "tolerations", around: tainted, after: "tolerations: [{operator: Exists}]", rule: onHeavy},
		{field: "key", around: tainted, before: "tolerations: [{key: other, operator: Exists}]", after: "tolerations: [{key: dedicated, operator: Exists}]", rule: onHeavy},
		{field: "operator", around: tainted, before: "tolerations: [{key: dedicated}]", after: "tolerations: [{key: dedicated, operator: Exists}]", rule: onHeavy},
		{field: "value", around: tainted, before: "tolerations: [{key: dedicated, value: other}]", after: "tolerations: [{key: dedicated, value: batch}]", rule: onHeavy},
		{field: "effect", around: tainted, before: "tolerations: [{key: dedicated, operator: Exists, effect: NoExecute}]", after: "tolerations: [{key: dedicated, operator: Exists, effect: NoSchedule}]", rule: onHeavy},
		{field: "PreferNoSchedule", around: strings.ReplaceAll(tainted, "NoSchedule", "PreferNoSchedule"), after: "tolerations: [{key: dedicated, operator: Exists}]", rule: onHeavy},
	})
}

func TestPodAffinityFields(t *testing.T) {
	db := single("default", "db", "app: db", atB)
	far := single("far", "db", "app: db", atB) + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: far, labels: {team: data}}\n"
	versions := single("default", "db-1", "tier: db, version: '1'", atB) + single("default", "db-2", "tier: db, version: '2'", atA)
	near := func(terms string) string { return podTerm("podAffinity", always+": ["+terms+"]") }
	apart := func(terms string) string { return podTerm("podAntiAffinity", always+": ["+terms+"]") }
	loud := single("default", "loud", "app: loud", atA)
	soft := func(a, b int) string {
		return podTerm("podAffinity", fmt.Sprintf("%s: [{weight: %d, podAffinityTerm: %s}, {weight: %d, podAffinityTerm: %s}]", softly,
			a, byZone("version: '1'", ""), b, byZone("version: '2'", "")))
	}
	runFields(t, []fieldCase{
		{field: "podAffinity", pods: 4, around: db, after: near(byZone("app: db", "")), rule: inZoneB},
		{field: "labelSelector", pods: 4, around: db, before: near(byZone("app: nobody", "")), after: near(byZone("app: db", "")), rule: inZoneB},
		{field: "topologyKey", pods: 4, around: db, before: near("{topologyKey: kubernetes.io/os, labelSelector: {matchLabels: {app: db}}}"), after: near(byZone("app: db", "")), rule: inZoneB},
		{field: "namespaces", pods: 4, around: far, before: near(byZone("app: db", "")), after: near(byZone("app: db", ", namespaces: [far]")), rule: inZoneB},
		{field: "namespaceSelector", pods: 4, around: far, before: near(byZone("app: db", ", namespaceSelector: {matchLabels: {team: none}}")), after: near(byZone("app: db", ", namespaceSelector: {matchLabels: {team: data}}")), rule: inZoneB},
		{field: "matchLabelKeys", pods: 4, labels: "version: '1'", around: versions, before: near(byZone("tier: db", "")), after: near(byZone("tier: db", ", matchLabelKeys: [version]")), rule: inZoneB},
		{field: "mismatchLabelKeys", pods: 4, labels: "version: '2'", around: versions, before: near(byZone("tier: db", "")), after: near(byZone("tier: db", ", mismatchLabelKeys: [version]")), rule: inZoneB},
		{field: "podAffinity preferred", pods: 4, around: db, after: podTerm("podAffinity", softly+": [{weight: 1, podAffinityTerm: "+byZone("app: db", "")+"}]"), rule: inZoneB},
		{field: "weight of a preference", pods: 4, around: versions, before: soft(1, 9), after: soft(9, 1), rule: inZoneB},
		{field: "podAntiAffinity", around: loud, after: apart(byZone("app: loud", "")), rule: inZoneB},
		{field: "podAntiAffinity preferred", around: nodeIn("n1", "zone-a", "1", "") + single("default", "loud", "app: loud", "nodeName: n1"), after: podTerm("podAntiAffinity", softly+": [{weight: 1, podAffinityTerm: "+byZone("app: loud", "")+"}]"), rule: inZoneB},
	})
	t.Run("podAntiAffinity of others", func(t *testing.T) {
		quiet := fieldCase{around: nodeIn("n1", "zone-a", "1", "") + single("default", "loud", "app: loud", "nodeName: n1")}
		kept := fieldCase{around: nodeIn("n1", "zone-a", "1", "") + single("default", "loud", "app: loud", "nodeName: n1, "+apart(byZone("app: web", "")))}
		decides(t, quiet.plan(t, ""), kept.plan(t, ""), inZoneB)
	})
}

func TestSpreadFields(t *testing.T) {
	even := "- pods: web-*\n  apart: {by: zone, most: 2}"
	both := nodeIn("n1", "zone-a", "8", "") + nodeIn("n2", "zone-b", "8", "")
	full := nodeIn("n1", "zone-a", "8", "") + nodeIn("n2", "zone-b", "0", "")
	tainted := nodeIn("n1", "zone-a", "8", "") + nodeIn("n2", "zone-b", "8", "{key: a, effect: NoSchedule}")
	spread := func(more string) string {
		return spreadOf("maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}" + more)
	}
	old := both + single("default", "old-1", "app: web, version: '1'", "nodeName: n1") + single("default", "old-2", "app: web, version: '1'", "nodeName: n1")
	runFields(t, []fieldCase{
		{field: "topologySpreadConstraints", pods: 4, after: spread(""), rule: even},
		{field: "maxSkew", pods: 4, before: strings.ReplaceAll(spread(""), "maxSkew: 1", "maxSkew: 4"), after: spread(""), rule: even},
		{field: "topologyKey", pods: 4, before: strings.ReplaceAll(spread(""), "topology.kubernetes.io/zone", "kubernetes.io/os"), after: spread(""), rule: even},
		{
			field: "whenUnsatisfiable", pods: 4, around: full, noPool: true, before: strings.ReplaceAll(spread(""), "DoNotSchedule", "ScheduleAnyway"), after: spread(""),
			rule: "- pods: web-3\n  refused: excluded by other pods",
		},
		{field: "labelSelector", pods: 4, before: strings.ReplaceAll(spread(""), "app: web", "app: none"), after: spread(""), rule: even},
		{
			field: "minDomains", pods: 2, before: spread("") + "\n" + atA, after: spread(", minDomains: 2") + "\n" + atA,
			rule: "- pods: web-1\n  refused: {stage: topology}",
		},
		{
			field: "nodeAffinityPolicy", pods: 2, around: both, noPool: true, before: spread("") + "\n" + atA, after: spread(", nodeAffinityPolicy: Ignore") + "\n" + atA,
			rule: "- pods: web-1\n  refused: {stage: topology}",
		},
		{field: "nodeTaintsPolicy", pods: 2, around: tainted, noPool: true, before: spread(""), after: spread(", nodeTaintsPolicy: Honor"), rule: "- pods: web-*\n  placed: true"},
		{field: "matchLabelKeys", pods: 2, labels: "version: '2'", around: old, noPool: true, before: spread(""), after: spread(", matchLabelKeys: [version]"), rule: "- pods: web-*\n  apart: zone"},
	})
}

func TestSizeFields(t *testing.T) {
	large := "- landsOn: {instanceType: a.16}\n  pods: web-*"
	kata := "---\napiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: kata}\nhandler: kata\n"
	init := func(more string) string {
		return "initContainers: [{name: init, image: i, " + more + "resources: {requests: {cpu: 2}}}]\ncontainers: [{name: main, image: i, resources: {requests: {cpu: 3}}}]"
	}
	rivals := "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a-rival}\nspec: {replicas: 4, selector: {matchLabels: {app: r}}, template: {metadata: {labels: {app: r}}, spec: {" + oneCPU + "}}}\n" +
		"---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n" +
		strings.Replace(heavyPool("spec: {requirements: [], "+classRef+"}"), "weight: 10", "limits: {cpu: 4}", 1)
	runFields(t, []fieldCase{
		{field: "requests", after: "containers: [{name: main, image: i, resources: {requests: {cpu: 5}}}]", rule: large},
		{field: "limits", after: "containers: [{name: main, image: i, resources: {limits: {cpu: 5}}}]", rule: large},
		{field: "containers", after: "containers: [{name: main, image: i, resources: {requests: {cpu: 3}}}, {name: second, image: i, resources: {requests: {cpu: 3}}}]", rule: large},
		{field: "initContainers", after: "initContainers: [{name: init, image: i, resources: {requests: {cpu: 5}}}]\n" + oneCPU, rule: large},
		{field: "restartPolicy of an init container", before: init(""), after: init("restartPolicy: Always, "), rule: large},
		{field: "resources", after: "resources: {requests: {cpu: 5}}", rule: large},
		{field: "overhead", around: kata + "overhead: {podFixed: {cpu: 4}}\n", before: "", after: "runtimeClassName: kata\noverhead: {cpu: 4}", rule: large},
		{field: "runtimeClassName", around: kata + "overhead: {podFixed: {cpu: 4}}\n", after: "runtimeClassName: kata", rule: large},
		{field: "runtimeClassName scheduling", around: kata + "scheduling: {nodeSelector: {topology.kubernetes.io/zone: zone-b}}\n", after: "runtimeClassName: kata", rule: inZoneB},
		{field: "priority", pods: 4, noPool: true, around: rivals, after: "priority: 1000", rule: "- pods: web-*\n  placed: true"},
		{field: "priorityClassName", pods: 4, noPool: true, around: rivals, after: "priorityClassName: high", rule: "- pods: web-*\n  placed: true"},
	})
}

func TestPortFields(t *testing.T) {
	port := func(text string) string {
		return "containers: [{name: main, image: i, ports: [{" + text + "}], resources: {requests: {cpu: 1}}}]"
	}
	apart := "- pods: web-*\n  apart: node"
	other := "---\napiVersion: v1\nkind: Pod\nmetadata: {name: other}\nspec: {" + port("containerPort: 80, hostIP: 10.0.0.1, hostPort: 8080") + "}\n"
	beside := "- pods: web-*\n  together: {by: node, with: other}"
	runFields(t, []fieldCase{
		{field: "hostPort", pods: 2, before: port("containerPort: 80"), after: port("containerPort: 80, hostPort: 8080"), rule: apart},
		{field: "hostIP", around: other, before: port("containerPort: 80, hostPort: 8080"), after: port("containerPort: 80, hostIP: 10.0.0.2, hostPort: 8080"), rule: beside},
		{field: "protocol", around: other, before: port("containerPort: 80, hostPort: 8080"), after: port("containerPort: 80, hostPort: 8080, protocol: UDP"), rule: beside},
		{field: "hostNetwork", pods: 2, before: port("containerPort: 80"), after: "hostNetwork: true\n" + port("containerPort: 80"), rule: apart},
	})
}

// Some fields need a feature of the kubelet, which nodes declare in their status. n1 has room and would be taken first.
func TestNodeFeatureFields(t *testing.T) {
	declares := func(node, features string) string {
		return strings.Replace(node, "status: {", "status: {declaredFeatures: ["+features+"], ", 1)
	}
	around := declares(nodeIn("n1", "zone-a", "8", ""), "GuaranteedQoSPodCPUResize") +
		declares(nodeIn("n2", "zone-a", "8", ""), "RestartAllContainersOnContainerExits, UserNamespacesHostNetworkSupport")
	onSecond := "- landsOn: {node: n2}\n  pods: web-*"
	exits := func(action string) string {
		return "containers: [{name: main, image: i, restartPolicy: Never, restartPolicyRules: [{action: " + action +
			", exitCodes: {operator: In, values: [42]}}], resources: {requests: {cpu: 1}}}]"
	}
	runFields(t, []fieldCase{
		{field: "hostUsers", noPool: true, around: around, before: "hostNetwork: true\nhostUsers: true", after: "hostNetwork: true\nhostUsers: false", rule: onSecond},
		{field: "restartPolicyRules", noPool: true, around: around, before: exits("Restart"), after: exits("RestartAllContainers"), rule: onSecond},
	})
}

func TestVolumeFields(t *testing.T) {
	claim := `
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  claimRef: {namespace: default, name: data}
  csi: {driver: disk.example.com, volumeHandle: d}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-b]}]}]}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], volumeName: disk, storageClassName: "", resources: {requests: {storage: 1Gi}}}
status: {phase: Bound}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: zonal}
provisioner: disk.example.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [zone-b]}]}]
`
	runFields(t, []fieldCase{
		{field: "persistentVolumeClaim", around: claim, after: "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]", rule: inZoneB},
		{field: "ephemeral", around: claim, after: "volumes: [{name: data, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: zonal, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]", rule: inZoneB},
	})
}

// Pods that somebody else places, or nobody yet.
func TestFieldsThatMakePodsOthers(t *testing.T) {
	for field, spec := range map[string]string{
		"schedulerName": "schedulerName: other", "schedulingGates": "schedulingGates: [{name: wait}]", "resourceClaims": "resourceClaims: [{name: gpu, resourceClaimName: gpu}]",
	} {
		t.Run(field, func(t *testing.T) {
			c := fieldCase{}
			assert.Empty(t, c.plan(t, "").Packed().Problem.Ignored)
			ignored := c.plan(t, spec).Packed().Problem.Ignored
			require.Len(t, ignored, 1)
			assert.NotEmpty(t, ignored[0].Why)
		})
	}
	t.Run("nodeName", func(t *testing.T) {
		c := fieldCase{around: nodeIn("n1", "zone-b", "4", "") + single("default", "db", "app: db", "priority: 0")}
		assert.Len(t, c.plan(t, "").Packed().Bindings(), 2)
		c.around = nodeIn("n1", "zone-b", "1", "") + single("default", "db", "app: db", "nodeName: n1")
		p := c.plan(t, "")
		require.Len(t, p.Packed().Bindings(), 1, "db runs there already")
		assert.True(t, p.Packed().Bindings()[0].New, "and takes all of its room")
	})
}

// Users of one claim need one volume between them, so a node that can attach no more takes them all, also where another runs
// already.
func TestUsersOfAClaimAttachOneVolume(t *testing.T) {
	const node = `
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: n1}
spec: {drivers: [{name: disk.example.com, nodeID: n1, allocatable: {count: 1}}]}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], claimRef: {namespace: default, name: data}, csi: {driver: disk.example.com, volumeHandle: d}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteMany], volumeName: disk, storageClassName: "", resources: {requests: {storage: 1Gi}}}
status: {phase: Bound}
`
	const volumes = "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"
	c := fieldCase{around: node + nodeIn("n1", "zone-a", "8", ""), pods: 3, noPool: true}
	require.Len(t, c.plan(t, volumes).Packed().Bindings(), 3)
	c.around += single("default", "db", "app: db", "nodeName: n1, "+volumes)
	require.Len(t, c.plan(t, volumes).Packed().Bindings(), 3)
	c.around += single("default", "other", "app: other", "volumes: [{name: data, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: made, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]") + `
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: made}
provisioner: disk.example.com
volumeBindingMode: WaitForFirstConsumer
`
	require.Len(t, c.plan(t, volumes).Packed().Bindings(), 3, "another volume is one too many")
}
