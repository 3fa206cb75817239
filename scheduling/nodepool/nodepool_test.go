package nodepool_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// fromYAML decodes a pool that is written as people write it.
func fromYAML(t *testing.T, text string) (nodepool.NodePool, error) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	return nodepool.Decode(data)
}

func duration(t *testing.T, text string) *time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return &d
}

func ptr[T any](v T) *T { return &v }

func TestProvisioner(t *testing.T) {
	p, err := fromYAML(t, `
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: batch, annotations: {owner: me}, uid: u-1}
spec:
  labels: {team: batch}
  annotations: {example.com/note: x}
  taints: [{key: dedicated, value: batch, effect: NoSchedule}]
  startupTaints: [{key: agent, effect: NoExecute}]
  requirements:
  - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m]}
  - {key: beta.kubernetes.io/arch, operator: NotIn, values: [arm64]}
  limits: {resources: {cpu: "100", nvidia.com/gpu: 8}}
  weight: 50
  kubeletConfiguration:
    clusterDNS: [10.0.1.100]
    containerRuntime: containerd
    maxPods: 110
    podsPerCore: 10
    systemReserved: {cpu: 100m}
    kubeReserved: {memory: 1Gi}
    evictionHard: {memory.available: 5%}
    evictionSoft: {nodefs.available: 15%}
    evictionSoftGracePeriod: {nodefs.available: 1m30s}
    evictionMaxPodGracePeriod: 60
    imageGCHighThresholdPercent: 85
    imageGCLowThresholdPercent: 80
    cpuCFSQuota: false
  ttlSecondsAfterEmpty: 30
  ttlSecondsUntilExpired: 3600
  providerRef: {apiVersion: karpenter.k8s.aws/v1alpha1, kind: AWSNodeTemplate, name: batch}
status: {resources: {cpu: "3"}, anything: [1]}
`)
	require.NoError(t, err)
	assert.Equal(t, "u-1", string(p.Metadata.UID))
	assert.Equal(t, "karpenter.k8s.aws/instance-category in (c,m), kubernetes.io/arch notin (arm64)", p.Requirements.String())
	gpus := p.Limits["nvidia.com/gpu"]
	assert.Equal(t, int64(8), gpus.Value())
	p.Metadata, p.Requirements, p.Limits = nodepool.NodePool{}.Metadata, requirements.Set{}, nil
	assert.Equal(t, nodepool.NodePool{
		Name: "batch", APIVersion: nodepool.V1Alpha5, Kind: "Provisioner", Weight: 50,
		Labels: map[string]string{"team": "batch"}, Annotations: map[string]string{"example.com/note": "x"},
		Taints:        []corev1.Taint{{Key: "dedicated", Value: "batch", Effect: corev1.TaintEffectNoSchedule}},
		StartupTaints: []corev1.Taint{{Key: "agent", Effect: corev1.TaintEffectNoExecute}},
		Kubelet: &nodepool.Kubelet{
			ClusterDNS: []string{"10.0.1.100"}, ContainerRuntime: ptr("containerd"), MaxPods: ptr[int32](110), PodsPerCore: ptr[int32](10),
			SystemReserved: corev1.ResourceList{"cpu": resource.MustParse("100m")}, KubeReserved: corev1.ResourceList{"memory": resource.MustParse("1Gi")},
			EvictionHard: map[string]string{"memory.available": "5%"}, EvictionSoft: map[string]string{"nodefs.available": "15%"},
			EvictionSoftGracePeriod:   map[string]time.Duration{"nodefs.available": 90 * time.Second},
			EvictionMaxPodGracePeriod: ptr[int32](60), ImageGCHighThresholdPercent: ptr[int32](85), ImageGCLowThresholdPercent: ptr[int32](80),
			CPUCFSQuota: ptr(false),
		},
		Disruption: nodepool.Disruption{Policy: nodepool.WhenEmpty, ConsolidateAfter: duration(t, "30s"), ExpireAfter: duration(t, "1h")},
		NodeClass:  nodepool.NodeClassRef{Group: "karpenter.k8s.aws", Kind: "AWSNodeTemplate", Name: "batch"},
	}, p)
}

func TestProvisionerSwitches(t *testing.T) {
	for spec, want := range map[string]nodepool.Disruption{
		"{}":                                {},
		"{consolidation: {enabled: false}}": {},
		"{consolidation: {enabled: true}}":  {Policy: nodepool.WhenEmptyOrUnderutilized, ConsolidateAfter: duration(t, "0s")},
		"{ttlSecondsAfterEmpty: 0}":         {Policy: nodepool.WhenEmpty, ConsolidateAfter: duration(t, "0s")},
		"{ttlSecondsAfterEmpty: 5, consolidation: {enabled: false}}": {Policy: nodepool.WhenEmpty, ConsolidateAfter: duration(t, "5s")},
		"{ttlSecondsUntilExpired: 60}":                               {ExpireAfter: duration(t, "1m")},
	} {
		p, err := fromYAML(t, "{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: a}, spec: "+spec+"}")
		require.NoError(t, err, spec)
		assert.Equal(t, want, p.Disruption, spec)
	}
}

func TestInlineProvider(t *testing.T) {
	p, err := fromYAML(t, "{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: a}, spec: {provider: {x: [1, null]}}}")
	require.NoError(t, err)
	assert.JSONEq(t, `{"x": [1, null]}`, string(p.Provider))
	assert.True(t, p.NodeClass.IsZero())
	_, err = fromYAML(t, "{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: a}, spec: {provider: name}}")
	assert.EqualError(t, err, "nodepool: Provisioner a: spec.provider: want an object, got a string")
}

func TestV1(t *testing.T) {
	p, err := fromYAML(t, `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    metadata: {labels: {team: shop}, annotations: {a: b}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      expireAfter: Never
      terminationGracePeriod: 48h
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: Exists, minValues: 5}
      - {key: beta.kubernetes.io/instance-type, operator: NotIn, values: [m5.large], minValues: 7}
  disruption:
    consolidationPolicy: Balanced
    consolidateAfter: 1m30s
    budgets:
    - {nodes: "0", reasons: [Drifted], schedule: "0 9 * * mon-fri", duration: 8h0m0s}
    - {reasons: [Empty]}
    - {reasons: [Unhealthy, Drifted], nodes: 20%}
    - {nodes: 100%}
  limits: {nodes: 10, cpu: 5}
  weight: 1
`)
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"node.kubernetes.io/instance-type": 7}, p.MinValues)
	assert.Equal(t, duration(t, "48h"), p.TerminationGracePeriod)
	assert.Equal(t, nodepool.Disruption{
		Policy: nodepool.Balanced, ConsolidateAfter: duration(t, "90s"),
		Budgets: []nodepool.Budget{
			{Nodes: 0, Reasons: []nodepool.Reason{nodepool.Drifted}, Schedule: "0 9 * * mon-fri", Duration: 8 * time.Hour},
			{Nodes: 10, Percent: true, Reasons: []nodepool.Reason{nodepool.Empty}},
			{Nodes: 20, Percent: true, Reasons: []nodepool.Reason{nodepool.Unhealthy, nodepool.Drifted}},
			{Nodes: 100, Percent: true},
		},
	}, p.Disruption)
	assert.Equal(t, map[string]string{"team": "shop", nodepool.LabelKey: "default", nodepool.ProvisionerLabelKey: "default"}, p.PoolLabels())
	assert.Equal(t, "karpenter.sh/nodepool in (default), node.kubernetes.io/instance-type, node.kubernetes.io/instance-type notin (m5.large), team in (shop)",
		p.NodeRequirements().String())
	assert.False(t, p.IsStatic())
}

// TestDefaultsOfVersions has what a cluster fills in.
func TestDefaultsOfVersions(t *testing.T) {
	tenth := []nodepool.Budget{{Nodes: 10, Percent: true}}
	want := nodepool.Disruption{Policy: nodepool.WhenEmptyOrUnderutilized, ConsolidateAfter: duration(t, "0s"), ExpireAfter: duration(t, "720h"), Budgets: tenth}
	for _, version := range []string{nodepool.V1, nodepool.V1Beta1} {
		p, err := fromYAML(t, "{apiVersion: "+version+", kind: NodePool, metadata: {name: a}, spec: {template: {spec: {requirements: []}}}}")
		require.NoError(t, err)
		assert.Equal(t, want, p.Disruption, version)
		assert.Nil(t, p.Limits)
		assert.Zero(t, p.Weight)
		p, err = fromYAML(t, "{apiVersion: "+version+", kind: NodePool, metadata: {name: a}, spec: {disruption: {consolidateAfter: Never, budgets: []}}}")
		require.NoError(t, err)
		assert.Nil(t, p.Disruption.ConsolidateAfter)
		assert.Empty(t, p.Disruption.Budgets)
	}
}

// A block without consolidateAfter is valid since Karpenter v1.15; an API server fills in what a reader of files must know.
func TestConsolidateAfterIsOptional(t *testing.T) {
	for _, policy := range []nodepool.Policy{nodepool.WhenEmpty, nodepool.WhenEmptyOrUnderutilized, nodepool.Balanced} {
		p, err := fromYAML(t, "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: a}, spec: {disruption: {consolidationPolicy: "+string(policy)+"}}}")
		require.NoError(t, err)
		assert.Equal(t, policy, p.Disruption.Policy)
		assert.Equal(t, duration(t, "0s"), p.Disruption.ConsolidateAfter)
	}
}

// What a version does not have yet is refused with the version that has it.
func TestReasonsOfOtherVersions(t *testing.T) {
	for version, reasons := range map[string]map[string]string{
		nodepool.V1Beta1: {
			"Unhealthy": `"Unhealthy": want one of Underutilized, Empty, Drifted, Expired; pools of karpenter.sh/v1 have it since Karpenter v1.15`, "Expired": "",
		},
		nodepool.V1: {"Unhealthy": "", "Expired": `"Expired": want one of Underutilized, Empty, Drifted, Unhealthy`, "unhealthy": `(did you mean "Unhealthy"?)`},
	} {
		for reason, want := range reasons {
			_, err := fromYAML(t, "{apiVersion: "+version+", kind: NodePool, metadata: {name: a}, spec: {disruption: {budgets: [{reasons: ["+reason+"]}]}}}")
			if want == "" {
				require.NoError(t, err, reason)
			} else {
				require.ErrorContains(t, err, want)
			}
		}
	}
}

// TestErrors lists one object's problems all at once; the many single ones are in the manifests of examples/pipeline.
func TestErrors(t *testing.T) {
	_, err := fromYAML(t, `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: Default_, namespace: kube-system}
spec:
  template:
    metadata: {labels: {"a b": c, zone: "-"}, annotations: {"a,b": x}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws/v1}
      requirements:
      - {operator: In, values: [a]}
      - {key: karpenter.sh/provisioner-name, operator: Exists}
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot, x], minValues: 2}
      taints: [{key: a b, value: c d, effect: NoSchedule}]
  disruption: {budgets: [{nodes: "x"}, {nodes: "%"}, {nodes: "99999999999"}, {nodes: "1", duration: 1h}, {nodes: "1", schedule: "TZ=Europe/Berlin * * * * *", duration: 1h}, {nodes: "1", schedule: "@every 1h", duration: 1.5h}]}
  limits: {nodes: 1500m}
  replicas: -1
`)
	require.Error(t, err)
	var got []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var f *nodepool.FieldError
		require.ErrorAs(t, e, &f)
		assert.Equal(t, "NodePool Default_", f.Object)
		path, detail := f.Field()
		text, _, _ := strings.Cut(detail, ", regex")
		text, _, _ = strings.Cut(text, " must consist")
		text, _, _ = strings.Cut(text, " must be an empty")
		got = append(got, path+": "+text)
	}
	assert.ElementsMatch(t, []string{
		`metadata.name: "Default_": a lowercase RFC 1123 subdomain`,
		`spec.template.spec.requirements[0].key: the requirement needs a key`,
		`spec.template.spec.requirements[1].key: "karpenter.sh/provisioner-name" is set by the pool's own name and must not be listed`,
		`spec.template.spec.requirements[2].minValues: 2: only 1 of the values are capacity types`,
		`spec.template.metadata.labels["a b"]: key "a b": name part`,
		`spec.template.metadata.labels.zone: "-": a valid label`,
		`spec.template.metadata.annotations["a,b"]: key "a,b": name part`,
		`spec.template.spec.taints[0].key: "a b": name part`,
		`spec.template.spec.taints[0].value: "c d": a valid label`,
		`spec.limits.nodes: 1500m: want a whole number of nodes`,
		`spec.replicas: -1: want 0 to 2147483648`,
		`spec.template.spec.nodeClassRef.name: the reference needs a name`,
		`spec.template.spec.nodeClassRef.kind: the reference needs a kind since karpenter.sh/v1`,
		`spec.template.spec.nodeClassRef.group: "karpenter.k8s.aws/v1": a group has no version (did you mean "karpenter.k8s.aws"?)`,
		`spec.disruption.budgets[0].nodes: "x": want a count such as "5" or a share such as "10%"`,
		`spec.disruption.budgets[1].nodes: "%": want a count such as "5" or a share such as "10%"`,
		`spec.disruption.budgets[2].nodes: "99999999999": want a count such as "5" or a share such as "10%"`,
		`spec.disruption.budgets[3].schedule: a budget with a duration needs a schedule`,
		`spec.disruption.budgets[4].schedule: schedule "TZ=Europe/Berlin * * * * *": time zones are not supported, the schedule is in UTC`,
		`spec.disruption.budgets[5].schedule: schedule "@every 1h": want one of @annually, @yearly, @monthly, @weekly, @daily, @midnight, @hourly or five fields`,
		`spec.disruption.budgets[5].duration: "1.5h": want hours and minutes such as 8h or 1h30m`,
	}, got)
}

func TestNotAPool(t *testing.T) {
	for text, want := range map[string]string{
		`{`:    "nodepool: line 1: the text ends before or within a value",
		`[]`:   "nodepool: want an object, got a list",
		`{}`:   `nodepool: apiVersion: "" "" is neither a Provisioner of karpenter.sh/v1alpha5 nor a NodePool of karpenter.sh/v1beta1 or karpenter.sh/v1`,
		`null`: "nodepool: want an object, got null",
		`{"apiVersion":"karpenter.sh/v1","kind":"Provisioner"}`:                            `nodepool: Provisioner: apiVersion: "karpenter.sh/v1" has no Provisioner (did you mean "karpenter.sh/v1alpha5"?)`,
		`{"apiVersion":"karpenter.sh/v1alpha5","kind":"NodePool","metadata":{"name":"a"}}`: `nodepool: NodePool a: apiVersion: "karpenter.sh/v1alpha5" has no NodePool (did you mean "karpenter.sh/v1" or "karpenter.sh/v1beta1"?)`,
		`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"a"}}`:       "nodepool: NodePool a: spec: the object has no spec",
	} {
		_, err := nodepool.Decode([]byte(text))
		require.Error(t, err, text)
		assert.Contains(t, err.Error(), want, text)
	}
}

func TestTooManyRequirements(t *testing.T) {
	list := strings.Repeat(`{"key":"a","operator":"Exists"},`, 101)
	_, err := nodepool.Decode([]byte(`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"a"},"spec":{"template":{"spec":{"requirements":[` + strings.TrimSuffix(list, ",") + `]}}}}`))
	assert.EqualError(t, err, "nodepool: NodePool a: spec.template.spec.requirements: 101 requirements: at most 100")
}

func TestCompareIsTotal(t *testing.T) {
	pools := []nodepool.NodePool{{Name: "b"}, {Name: "a", Kind: "Provisioner"}, {Name: "z", Weight: 10}, {Name: "a", Kind: "NodePool"}}
	slices.SortFunc(pools, nodepool.Compare)
	var got []string
	for _, p := range pools {
		got = append(got, p.Name+p.Kind)
	}
	assert.Equal(t, []string{"z", "aNodePool", "aProvisioner", "b"}, got)
}

func TestRequireByDefault(t *testing.T) {
	hook := nodepool.RequireByDefault(requirements.In("kubernetes.io/arch", "amd64"), requirements.In("kubernetes.io/os", "linux"))
	for _, c := range []struct {
		pool nodepool.NodePool
		want string
	}{
		{nodepool.NodePool{}, "kubernetes.io/arch in (amd64), kubernetes.io/os in (linux)"},
		{nodepool.NodePool{Requirements: requirements.MustParse("kubernetes.io/arch")}, "kubernetes.io/arch, kubernetes.io/os in (linux)"},
		{nodepool.NodePool{Labels: map[string]string{"beta.kubernetes.io/os": "windows"}}, "kubernetes.io/arch in (amd64)"},
	} {
		assert.Equal(t, c.want, nodepool.Apply(c.pool, hook).Requirements.String())
	}
	clash := nodepool.RequireByDefault(requirements.In("a", "1"), requirements.In("a", "2"))
	assert.True(t, clash(nodepool.NodePool{}).Requirements.IsImpossible())
	assert.Equal(t, "kubernetes.io/os in (linux)", nodepool.LinuxByDefault(nodepool.NodePool{}).Requirements.String())
}

func TestNodeRequirementsOfHandMadePool(t *testing.T) {
	p := nodepool.NodePool{Name: "a", Labels: map[string]string{"zone": "x"}, Requirements: requirements.MustParse("zone in (y)")}
	assert.True(t, p.NodeRequirements().IsImpossible())
	assert.Equal(t, map[string]string{"zone": "x"}, p.Labels)
}

func TestBudgetActive(t *testing.T) {
	at := func(text string) time.Time {
		moment, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return moment
	}
	office := nodepool.Budget{Schedule: "0 9 * * mon-fri", Duration: 8 * time.Hour}
	daily := nodepool.Budget{Schedule: "@daily", Duration: 24 * time.Hour}
	never := nodepool.Budget{Schedule: "0 0 30 2 *", Duration: time.Hour}
	for _, c := range []struct {
		budget nodepool.Budget
		now    string
		want   bool
	}{
		{nodepool.Budget{}, "2026-03-02T09:00:00Z", true},
		{office, "2026-03-02T08:59:59Z", false}, // a Monday
		{office, "2026-03-02T09:00:00Z", true},
		{office, "2026-03-02T16:59:59Z", true},
		{office, "2026-03-02T17:00:00Z", false}, // the next strike after nine is tomorrow's
		{office, "2026-03-07T10:00:00Z", false}, // a Saturday
		{office, "2026-03-02T10:00:00+02:00", false},
		{office, "2026-03-02T11:00:00+02:00", true},
		{daily, "2026-03-02T12:00:00Z", true},
		{never, "2026-03-02T12:00:00Z", false},
	} {
		got, err := c.budget.Active(at(c.now))
		require.NoError(t, err)
		assert.Equal(t, c.want, got, "%v at %s", c.budget, c.now)
	}
	_, err := nodepool.Budget{Schedule: "TZ=0"}.Active(at("2026-03-02T12:00:00Z"))
	assert.EqualError(t, err, `nodepool: schedule "TZ=0": time zones are not supported, the schedule is in UTC`)
}

func TestBudgetAllowed(t *testing.T) {
	for _, c := range []struct {
		budget nodepool.Budget
		nodes  int
		want   int
	}{
		{nodepool.Budget{}, 10, 0},
		{nodepool.Budget{Nodes: 3}, 10, 3},
		{nodepool.Budget{Nodes: 5, Percent: true}, 10, 1},
		{nodepool.Budget{Nodes: 10, Percent: true}, 10, 1},
		{nodepool.Budget{Nodes: 10, Percent: true}, 11, 2},
		{nodepool.Budget{Nodes: 100, Percent: true}, 7, 7},
		{nodepool.Budget{Nodes: 29, Percent: true}, 100, 29}, // 0.29*100 would be 28.999... in floating point
		{nodepool.Budget{Nodes: 10, Percent: true}, 0, 0},
	} {
		assert.Equal(t, c.want, c.budget.Allowed(c.nodes), "%v", c)
	}
	assert.True(t, nodepool.Budget{}.Counts(nodepool.Empty))
	assert.False(t, nodepool.Budget{Reasons: []nodepool.Reason{nodepool.Drifted}}.Counts(nodepool.Empty))
}

// FuzzDecode holds what a pool that was accepted promises.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := nodepool.Decode(data)
		if err != nil {
			require.NotEmpty(t, err.Error())
			require.Empty(t, p.Name)
			return
		}
		require.NotEmpty(t, p.Name)
		require.True(t, json.Valid(data))
		require.False(t, p.NodeRequirements().IsImpossible())
		require.GreaterOrEqual(t, p.Weight, int32(0))
		require.LessOrEqual(t, p.Weight, int32(100))
		for _, q := range p.Limits {
			require.GreaterOrEqual(t, q.Sign(), 0)
		}
		for _, b := range p.Disruption.Budgets {
			_, err := b.Active(time.Unix(1_800_000_000, 0))
			require.NoError(t, err)
			require.GreaterOrEqual(t, b.Allowed(100), 0)
		}
		again, err := nodepool.Decode(data)
		require.NoError(t, err)
		require.Equal(t, p, again)
	})
}
