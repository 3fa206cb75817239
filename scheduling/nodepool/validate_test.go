package nodepool_test

import (
	"errors"
	"fmt"
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

// The same mistake has the same text in a manifest and in Go. Only the path of a requirement differs:
// a manifest has positions, and Go has keys.
func TestGoPoolsAreCheckedLikeManifests(t *testing.T) {
	quantity := func(name corev1.ResourceName, q string) func(*nodepool.NodePool) {
		return func(p *nodepool.NodePool) { p.Limits = corev1.ResourceList{name: resource.MustParse(q)} }
	}
	requires := func(rs ...requirements.Requirement) func(*nodepool.NodePool) {
		return func(p *nodepool.NodePool) { p.Requirements = requirements.MustOf(rs...) }
	}
	budget := func(b nodepool.Budget) func(*nodepool.NodePool) {
		return func(p *nodepool.NodePool) { p.Disruption.Budgets = []nodepool.Budget{b} }
	}
	at := func(key, field string) string {
		return fmt.Sprintf("spec.template.spec.requirements[%q].%s", key, field)
	}
	const first = "spec.template.spec.requirements[0]."
	for name, c := range map[string]struct {
		manifest string // of the spec
		edit     func(*nodepool.NodePool)
		goPath   string // if it is not that of the manifest; the latter is then relative to first
	}{
		"limit CPU":            {`limits: {CPU: "4"}`, quantity("CPU", "4"), ""},
		"limit ndoes":          {`limits: {ndoes: "1"}`, quantity("ndoes", "1"), ""},
		"limit gpu":            {`limits: {gpu: "1"}`, quantity("gpu", "1"), ""},
		"negative limit":       {`limits: {cpu: "-1"}`, quantity("cpu", "-1"), ""},
		"part of a node":       {`limits: {nodes: 1500m}`, quantity("nodes", "1500m"), ""},
		"weight":               {`weight: 101`, func(p *nodepool.NodePool) { p.Weight = 101 }, ""},
		"negative weight":      {`weight: -1`, func(p *nodepool.NodePool) { p.Weight = -1 }, ""},
		"replicas":             {`replicas: -1`, func(p *nodepool.NodePool) { p.Replicas = new(int64(-1)) }, ""},
		"replicas and weight":  {"replicas: 1\nweight: 5", func(p *nodepool.NodePool) { p.Replicas, p.Weight = new(int64(1)), 5 }, ""},
		"replicas and limits":  {"replicas: 1\nlimits: {cpu: 1}", func(p *nodepool.NodePool) { p.Replicas = new(int64(1)); quantity("cpu", "1")(p) }, ""},
		"policy":               {`disruption: {consolidationPolicy: WhenEmtpy}`, func(p *nodepool.NodePool) { p.Disruption.Policy = "WhenEmtpy" }, ""},
		"old policy":           {`disruption: {consolidationPolicy: WhenUnderutilized}`, func(p *nodepool.NodePool) { p.Disruption.Policy = "WhenUnderutilized" }, ""},
		"reason":               {`disruption: {budgets: [{nodes: "1", reasons: [Drfited]}]}`, budget(nodepool.Budget{Nodes: 1, Reasons: []nodepool.Reason{"Drfited"}}), ""},
		"schedule":             {`disruption: {budgets: [{nodes: "1", schedule: "@dayly", duration: 1h}]}`, budget(nodepool.Budget{Nodes: 1, Schedule: "@dayly", Duration: time.Hour}), ""},
		"schedule alone":       {`disruption: {budgets: [{nodes: "1", schedule: "@daily"}]}`, budget(nodepool.Budget{Nodes: 1, Schedule: "@daily"}), ""},
		"duration alone":       {`disruption: {budgets: [{nodes: "1", duration: 1h}]}`, budget(nodepool.Budget{Nodes: 1, Duration: time.Hour}), ""},
		"label key":            {`template: {metadata: {labels: {"a b": c}}}`, func(p *nodepool.NodePool) { p.Labels = map[string]string{"a b": "c"} }, ""},
		"label value":          {`template: {metadata: {labels: {a: "b c"}}}`, func(p *nodepool.NodePool) { p.Labels = map[string]string{"a": "b c"} }, ""},
		"label of the pool":    {`template: {metadata: {labels: {karpenter.sh/nodepool: z}}}`, func(p *nodepool.NodePool) { p.Labels = map[string]string{"karpenter.sh/nodepool": "z"} }, ""},
		"annotation":           {`template: {metadata: {annotations: {"a b": c}}}`, func(p *nodepool.NodePool) { p.Annotations = map[string]string{"a b": "c"} }, ""},
		"taint without key":    {`template: {spec: {taints: [{effect: NoSchedule}]}}`, func(p *nodepool.NodePool) { p.Taints = []corev1.Taint{{Effect: "NoSchedule"}} }, ""},
		"taint effect":         {`template: {spec: {startupTaints: [{key: a, effect: NoSchedul}]}}`, func(p *nodepool.NodePool) { p.StartupTaints = []corev1.Taint{{Key: "a", Effect: "NoSchedul"}} }, ""},
		"class without name":   {`template: {spec: {nodeClassRef: {group: g, kind: K}}}`, func(p *nodepool.NodePool) { p.NodeClass = nodepool.NodeClassRef{Group: "g", Kind: "K"} }, ""},
		"class without group":  {`template: {spec: {nodeClassRef: {kind: K, name: m}}}`, func(p *nodepool.NodePool) { p.NodeClass = nodepool.NodeClassRef{Kind: "K", Name: "m"} }, ""},
		"key of a requirement": {`template: {spec: {requirements: [{key: a b, operator: Exists}]}}`, requires(requirements.Exists("a b")), at("a b", "key")},
		"Karpenter's key":      {`template: {spec: {requirements: [{key: karpenter.sh/capcity-type, operator: Exists}]}}`, requires(requirements.Exists("karpenter.sh/capcity-type")), at("karpenter.sh/capcity-type", "key")},
		"hostname":             {`template: {spec: {requirements: [{key: kubernetes.io/hostname, operator: Exists}]}}`, requires(requirements.Exists("kubernetes.io/hostname")), at("kubernetes.io/hostname", "key")},
		"value":                {`template: {spec: {requirements: [{key: a, operator: In, values: [b c]}]}}`, requires(requirements.In("a", "b c")), "spec.template.spec.requirements.a.values[0]"},
		"excluded value":       {`template: {spec: {requirements: [{key: a, operator: NotIn, values: [b c]}]}}`, requires(requirements.NotIn("a", "b c")), "spec.template.spec.requirements.a.values[0]"},
		"capacity type":        {`template: {spec: {requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [ondemand]}]}}`, requires(requirements.In("karpenter.sh/capacity-type", "ondemand")), at("karpenter.sh/capacity-type", "values")},
		"minValues":            {`template: {spec: {requirements: [{key: a, operator: Exists, minValues: 51}]}}`, func(p *nodepool.NodePool) { p.MinValues = map[string]int{"a": 51} }, "spec.template.spec.requirements.a.minValues"},
		"minValues over values": {`template: {spec: {requirements: [{key: a, operator: In, values: [b], minValues: 2}]}}`, func(p *nodepool.NodePool) {
			requires(requirements.In("a", "b"))(p)
			p.MinValues = map[string]int{"a": 2}
		}, "spec.template.spec.requirements.a.minValues"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: p}\nspec:\n  " + strings.ReplaceAll(c.manifest, "\n", "\n  ")
			data, err := yaml.YAMLToJSON([]byte(text))
			require.NoError(t, err)
			_, err = nodepool.Decode(data)
			var manifest, made *nodepool.FieldError
			require.ErrorAs(t, err, &manifest)
			p := nodepool.New("p")
			require.NoError(t, p.Validate())
			c.edit(&p)
			require.ErrorAs(t, p.Validate(), &made)
			assert.Equal(t, manifest.Detail, made.Detail)
			assert.Equal(t, manifest.Object, made.Object)
			want := manifest.Path
			if c.goPath != "" {
				assert.True(t, strings.HasPrefix(manifest.Path, first), manifest.Path)
				want = c.goPath
			}
			assert.Equal(t, want, made.Path)
		})
	}
}

// What no manifest can say is a fault, too.
func TestPoolsThatNoManifestCanState(t *testing.T) {
	for want, edit := range map[string]func(*nodepool.NodePool){
		`metadata.name: "a/b": a valid label`:                                                          func(p *nodepool.NodePool) { p.Name = "a/b" },
		"spec.template.spec.expireAfter: -1h0m0s: must not be negative":                                func(p *nodepool.NodePool) { p.Disruption.ExpireAfter = new(-time.Hour) },
		"spec.disruption.consolidateAfter: -1h0m0s: must not be negative":                              func(p *nodepool.NodePool) { p.Disruption.ConsolidateAfter = new(-time.Hour) },
		"spec.template.spec.terminationGracePeriod: -1h0m0s: must not be negative":                     func(p *nodepool.NodePool) { p.TerminationGracePeriod = new(-time.Hour) },
		"spec.disruption.budgets[0].nodes: 101: want a count of 0 or more, or a share of at most 100%": func(p *nodepool.NodePool) { p.Disruption.Budgets = []nodepool.Budget{{Nodes: 101, Percent: true}} },
		"spec.disruption.budgets[0].nodes: -1: want a count of 0 or more, or a share of at most 100%":  func(p *nodepool.NodePool) { p.Disruption.Budgets = []nodepool.Budget{{Nodes: -1}} },
		"spec.disruption.budgets[0].duration: 1s: want hours and minutes such as 8h or 1h30m": func(p *nodepool.NodePool) {
			p.Disruption.Budgets = []nodepool.Budget{{Schedule: "@daily", Duration: time.Second}}
		},
		`apiVersion: "karpenter.sh/v2" has no NodePool (did you mean "karpenter.sh/v1" or "karpenter.sh/v1beta1"?)`: func(p *nodepool.NodePool) { p.APIVersion = "karpenter.sh/v2" },
	} {
		p := nodepool.New("p")
		edit(&p)
		require.ErrorContains(t, p.Validate(), want)
	}
	impossible := nodepool.New("p", requirements.In("a", "b"), requirements.In("a", "c"))
	require.NoError(t, impossible.Validate(), "no type meets it, and a refusal says so")
	group := nodepool.New("Node_Group.1")
	group.Labels = map[string]string{"karpenter.sh/initialized": "true"}
	require.NoError(t, group.Validate(), "it stands for nodes of another tool")
}

// A pool that was read is valid, with any default of a caller.
func TestPoolsThatWereReadAreValid(t *testing.T) {
	for _, text := range []string{
		`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"p"},"spec":{"disruption":{"budgets":[{"nodes":"0","schedule":"@daily","duration":"0m"},{"nodes":"5"}]}}}`,
		`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"p"},"spec":{"replicas":3,"limits":{"nodes":"4"}}}`,
		`{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool","metadata":{"name":"p"},"spec":{"disruption":{"budgets":[{"nodes":"5","reasons":["Expired"]}]},"template":{"spec":{"nodeClassRef":{"name":"n"}}}}}`,
		`{"apiVersion":"karpenter.sh/v1alpha5","kind":"Provisioner","metadata":{"name":"p"},"spec":{"weight":1,"ttlSecondsAfterEmpty":5,"providerRef":{"name":"n"},"requirements":[{"key":"cpu","operator":"Gt","values":["3"]},{"key":"x","operator":"NotIn","values":["1"]}]}}`,
	} {
		p, err := nodepool.Decode([]byte(text))
		require.NoError(t, err)
		require.NoError(t, nodepool.Apply(p, nodepool.LinuxByDefault).Validate())
		active := 0
		for _, b := range p.Disruption.Budgets {
			if ok, err := b.Active(time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)); err == nil && ok {
				active++
			}
		}
		assert.Len(t, p.Disruption.Budgets, active, "a budget that is never active is left out")
	}
	require.True(t, errors.As(nodepool.NodePool{}.Validate(), new(*nodepool.FieldError)), "it has no name")
}
