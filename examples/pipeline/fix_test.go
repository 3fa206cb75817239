package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each kind of refusal that one change can mend: the fix is offered, and whoever does what it says sees the pod placed.
func TestFixesAreVerified(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2", "gpu.8 8 zone-a on-demand 2")
	pool := func(spec, template string) string {
		return strings.NewReplacer("spec: {template", "spec: {"+spec+"template", "requirements: []", template).Replace(anyPool)
	}
	term := func(app string) string {
		return fmt.Sprintf("{topologyKey: %s, labelSelector: {matchLabels: {app: %s}}}", zoneKey, app)
	}
	affinity := func(kind, app string, hard bool) string {
		if hard {
			return fmt.Sprintf("affinity: {%s: {requiredDuringSchedulingIgnoredDuringExecution: [%s]}}\n", kind, term(app))
		}
		return fmt.Sprintf("affinity: {%s: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: %s}]}}\n", kind, term(app))
	}
	apart := "minDomains: 2, "
	spread := func(extra, when string) string {
		return fmt.Sprintf("topologySpreadConstraints: [{maxSkew: 1, %stopologyKey: %s, whenUnsatisfiable: %s, labelSelector: {matchLabels: {app: web}}}]\n", extra, zoneKey, when)
	}
	loud := deployment("loud", 1, container("1"))
	cases := map[string]struct{ text, want, mended string }{
		"a taint": {
			pool("", "taints: [{key: batch, effect: NoSchedule}], requirements: []") + deployment("web", 1, container("1")),
			`would fit if it tolerated batch:NoSchedule of pool "default"`,
			pool("", "taints: [{key: batch, effect: NoSchedule}], requirements: []") + deployment("web", 1, "tolerations: [{key: batch, effect: NoSchedule}]\n"+container("1")),
		},
		"too large": {
			anyPool + deployment("web", 1, container("9")), "would fit if it requested no more than 8 cpu, as gpu.8 has",
			anyPool + deployment("web", 1, container("8")),
		},
		"shut out": {
			pool("", "requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [a.4]}]") + deployment("web", 1, container("6")),
			`would fit if pool "default" allowed node.kubernetes.io/instance-type gpu.8`,
			pool("", "requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [a.4, gpu.8]}]") + deployment("web", 1, container("6")),
		},
		"a label of nobody": {
			anyPool + deployment("web", 1, "nodeSelector: {disk: fast}\n"+container("1")), `would fit if pool "default" had the label disk=fast`,
			strings.Replace(anyPool, "{template: {", "{template: {metadata: {labels: {disk: fast}}, ", 1) + deployment("web", 1, "nodeSelector: {disk: fast}\n"+container("1")),
		},
		"a zone of nobody": {
			anyPool + deployment("web", 1, "nodeSelector: {topology.kubernetes.io/zone: zone-z}\n"+container("1")), "would fit if it did not require topology.kubernetes.io/zone",
			anyPool + deployment("web", 1, container("1")),
		},
		"a limit": {
			pool("limits: {cpu: 4}, ", "requirements: []") + deployment("web", 2, container("3")), `would fit if pool "default" had a limit of 8 cpu`,
			pool("limits: {cpu: 8}, ", "requirements: []") + deployment("web", 2, container("3")),
		},
		"a spread": {
			anyPool + deployment("web", 3, spread(apart, "DoNotSchedule")+container("1")), "would fit if its spread over " + zoneKey + " were ScheduleAnyway",
			anyPool + deployment("web", 3, spread("", "ScheduleAnyway")+container("1")),
		},
		"anti-affinity": {
			anyPool + deployment("web", 2, affinity("podAntiAffinity", "web", true)+container("1")), "would fit if its anti-affinity by " + zoneKey + " were preferred",
			anyPool + deployment("web", 2, affinity("podAntiAffinity", "web", false)+container("1")),
		},
		"affinity": {
			anyPool + deployment("web", 1, affinity("podAffinity", "cache", true)+container("1")), "would fit if its affinity to app=cache by " + zoneKey + " were preferred",
			anyPool + deployment("web", 1, affinity("podAffinity", "cache", false)+container("1")),
		},
		"anti-affinity of others": {
			anyPool + loud + deployment("quiet", 1, affinity("podAntiAffinity", "loud", true)+container("2")), "would fit if",
			anyPool + loud + deployment("quiet", 1, affinity("podAntiAffinity", "loud", false)+container("2")),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := pack(t, market, c.text)
			require.Len(t, p.Unplaced(), 1)
			u := p.Unplaced()[0]
			fix := p.Fix(u.Class, u.Reasons(), false)
			require.NotEmpty(t, fix.Text)
			all, untried := p.Fixes(t.Context(), u)
			assert.Zero(t, untried)
			assert.Contains(t, all, fix, "it is one of all that help")
			for _, f := range all {
				assert.NotEmpty(t, f.Kind, f.Text)
				assert.NotEqual(t, f.Pool+f.Key, "", f.Text)
			}
			assert.Contains(t, fix.Text, c.want)
			assert.Empty(t, pack(t, market, c.mended).Unplaced(), "whoever does what the fix says sees the pods placed")
		})
	}
	// Where no single change helps, none is offered. A label is no name of a node.
	byName := "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [gone]}]}]}}}\n"
	for _, text := range []string{
		pool("", "taints: [{key: batch, effect: NoSchedule}], requirements: []") + deployment("web", 1, container("9")),
		anyPool + deployment("web", 1, byName+container("1")),
	} {
		p := pack(t, market, text)
		u := p.Unplaced()[0]
		assert.Empty(t, p.Fix(u.Class, u.Reasons(), false).Text)
	}
	// A label that an agent sets on each node is nothing that a pool could say of all.
	for _, key := range []string{"topology.csi.example.com/zone", "topology.ebs.csi.aws.com/outpost-id", "nvidia.com/gpu.product", "topology.example.com/rack", "kubernetes.azure.com/cluster"} {
		p := pack(t, market, anyPool+deployment("web", 1, "nodeSelector: {"+key+": a}\n"+container("1")))
		u := p.Unplaced()[0]
		assert.NotContains(t, p.Fix(u.Class, u.Reasons(), false).Text, "had the label", key)
	}
}

// Whoever makes the offered change in the manifests and plans again sees the refused pods placed, and no other pod loses its place.
func TestFixesHoldAnew(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2", "a.4 4 zone-b on-demand 0.2")
	pool := func(spec, template string) string {
		return strings.NewReplacer("spec: {template: {", "spec: {"+spec+"template: {"+template).Replace(anyPool)
	}
	limit := func(limits string) string { return pool("limits: {"+limits+"}, ", "") }
	pod := func(name, cpu string) string {
		return "---\n{apiVersion: v1, kind: Pod, metadata: {name: " + name + "}, spec: {containers: [{name: c, image: x, resources: {requests: {cpu: " + cpu + "}}}]}}\n"
	}
	terms := func(all string) string {
		return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + all + "]}}}\n"
	}
	unlabelled := terms("{matchExpressions: [{key: disk, operator: DoesNotExist}]}")
	two := pod("a", "3") + pod("b", "2500m")
	deployments := deployment("api", 4, container("3")) + deployment("web", 3, container("2500m"))
	labelled := deployment("web", 1, unlabelled+container("1")) + deployment("db", 1, "nodeSelector: {disk: ssd}\n"+container("1"))
	db := deployment("web", 1, unlabelled+container("1")) + deployment("db", 1, container("1"))
	alone := func(name string, hard bool) string {
		term := "{topologyKey: " + zoneKey + ", labelSelector: {matchLabels: {app: web}}}"
		rule := "requiredDuringSchedulingIgnoredDuringExecution: [" + term + "]"
		if !hard {
			rule = "preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: " + term + "}]"
		}
		return "---\n{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", labels: {app: web}}, spec: {affinity: {podAntiAffinity: {" + rule + "}}, containers: [{name: c, image: x, resources: {requests: {cpu: 1}}}]}}\n"
	}
	apartIn := func(name, cpu, rest string) string {
		return "---\n{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", labels: {app: web}}, spec: {" + rest + ", nodeSelector: {" + zoneKey + ": zone-a}, affinity: {podAntiAffinity: " +
			"{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: " + zoneKey + ", labelSelector: {matchLabels: {app: web}}}]}}, containers: [{name: c, image: x, resources: {requests: {cpu: " + cpu + "}}}]}}\n"
	}
	tolerating := "tolerations: [{key: batch, effect: NoSchedule}]\n"
	tainted := pool("limits: {cpu: 4}, ", "") // its taint is added below
	tainted = strings.Replace(tainted, "requirements: []", "taints: [{key: batch, effect: NoSchedule}], requirements: []", 1)
	cases := map[string]struct {
		text   string
		want   string // of the last class; empty if no change may be offered
		price  float64
		mended string
	}{
		"two pods and one limit":       {limit("cpu: 2") + two, `would fit if pool "default" had a limit of 8 cpu`, 0.4, limit("cpu: 8") + two},
		"two pods and one number":      {limit("nodes: 0") + two, `would fit if pool "default" had a limit of 2 nodes`, 0.4, limit("nodes: 2") + two},
		"one node":                     {limit("nodes: 0") + pod("a", "3"), `would fit if pool "default" had a limit of 1 node`, 0.2, limit("nodes: 1") + pod("a", "3")},
		"two workloads, partly placed": {limit("cpu: 8") + deployments, `would fit if pool "default" had a limit of 28 cpu`, 1, limit("cpu: 28") + deployments},
		"one quota":                    {anyPool + quota("all", "", "nodes: 2") + deployments, `would fit if quota "all" had a limit of 7 nodes`, 1, anyPool + quota("all", "", "nodes: 7") + deployments},
		"a label that others avoid":    {anyPool + labelled, "would fit if it did not require disk", 0, anyPool + db},
		"pods that keep apart": {
			anyPool + alone("web-0", true) + alone("web-1", true) + alone("web-2", true),
			"would fit if its anti-affinity by " + zoneKey + " were preferred (also for 2 placed pods like it)", 0,
			anyPool + alone("web-0", false) + alone("web-1", false) + alone("web-2", false),
		},
		"a term that matches nothing": {anyPool + deployment("web", 1, terms("{}, {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [gone]}]}")+container("1")), "", 0, ""},
		"another alternative": {
			anyPool + deployment("web", 1, terms("{matchExpressions: [{key: karpenter.sh/capacity-type, operator: In, values: [gone]}]}, {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [gone]}]}")+container("1")),
			"", 0, "",
		},
		"a limit whose room a pod of higher priority takes": {
			limit("cpu: 2") + apartIn("a", "1", "priority: 10") + apartIn("b", "1500m", "priority: 0"), "", 0, "",
		},
		"a toleration that takes others' places": {
			tainted + deployment("first", 1, container("3")) + deployment("second", 1, tolerating+container("3")), "", 0, "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := pack(t, market, c.text)
			fixes := p.FirstFixes(false)
			require.NotEmpty(t, fixes)
			fix := fixes[len(fixes)-1]
			assert.Equal(t, c.want, fix.What)
			if c.want == "" {
				return
			}
			assert.InDelta(t, c.price, fix.PerHour, 1e-9)
			for _, u := range p.Unplaced() {
				assert.Contains(t, fix.Classes, u.Class)
			}
			assert.Empty(t, pack(t, market, c.mended).Unplaced(), "whoever does what the fix says sees the pods placed")
		})
	}
	// Where only one of two workloads would fit, the change is not offered for both at once.
	p := pack(t, market, tainted+deployment("first", 1, container("3"))+deployment("second", 1, container("2500m")))
	for i, fix := range p.FirstFixes(false) {
		assert.Equal(t, "would fit if it tolerated batch:NoSchedule of pool \"default\"", fix.What)
		assert.Equal(t, []int{p.Unplaced()[i].Class}, fix.Classes)
	}
}
