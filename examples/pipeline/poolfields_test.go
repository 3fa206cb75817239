package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
)

// poolSpec is what the three API versions of a pool have in common, in YAML; empty fields are left out.
type poolSpec struct {
	name, weight, limits, labels, taints, startupTaints, requirements, class, kubelet, replicas string
}

// manifest is the pool in an API version.
func (p poolSpec) manifest(version string) string {
	line := func(key, value string) string {
		if value == "" {
			return ""
		}
		return key + ": " + value + ", "
	}
	inner := line("taints", p.taints) + line("startupTaints", p.startupTaints) + "requirements: [" + p.requirements + "], "
	class := p.class
	if class == "" {
		class = "default"
	}
	outer := line("weight", p.weight) + line("replicas", p.replicas)
	switch version {
	case "v1alpha5":
		inner += line("labels", p.labels) + line("kubeletConfiguration", p.kubelet) + "providerRef: {name: " + class + "}, "
		if p.limits != "" {
			inner += "limits: {resources: " + p.limits + "}, "
		}
		return fmt.Sprintf("---\napiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: %s}\nspec: {%s%s}\n", p.name, outer, inner)
	case "v1beta1":
		inner += line("kubelet", p.kubelet) + "nodeClassRef: {name: " + class + "}"
	default:
		inner += "nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: " + class + "}"
	}
	outer += line("limits", p.limits)
	template := "spec: {" + inner + "}"
	if p.labels != "" {
		template = "metadata: {labels: " + p.labels + "}, " + template
	}
	return fmt.Sprintf("---\napiVersion: karpenter.sh/%s\nkind: NodePool\nmetadata: {name: %s}\nspec: {%stemplate: {%s}}\n", version, p.name, outer, template)
}

// poolCase is one field of a pool.
type poolCase struct {
	field         string
	versions      []string // all three if nil
	ec2           bool     // buys from EC2 in place of the small market
	spec          string   // of the pods
	pods          int
	before, after poolSpec
	around, rule  string
}

func (c *poolCase) plan(t *testing.T, version string, pool poolSpec) *ruletest.Plan {
	t.Helper()
	pool.name = "tried"
	spec := c.spec
	if !strings.Contains(spec, "containers:") {
		spec = strings.TrimSpace(spec + "\n" + oneCPU)
	}
	text := c.around + pool.manifest(version) + "---" + deployment("web", max(c.pods, 1), spec)
	s := fieldMarket()
	if c.ec2 {
		s = ruletest.Scenario{}
	}
	p, err := s.Manifests(text).Solve()
	require.NoError(t, err)
	return p
}

func TestPoolFields(t *testing.T) {
	tried := "- landsOn: {pool: tried}\n  pods: web-*"
	placed := "- placed: true\n  pods: web-*"
	short := "- refused: {stage: resource}\n  pods: web-*"
	limited := "- refused: {stage: limit}\n  pods: web-1"
	plain := poolSpec{name: "default"}.manifest("v1")
	apart := "affinity: {podAntiAffinity: {" + always + ": [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}"
	old := []string{"v1alpha5", "v1beta1"}
	small := "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}, {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}"
	kubelet := func(text string) poolSpec { return poolSpec{requirements: small, kubelet: text} }
	memory := "containers: [{name: main, image: i, resources: {requests: {memory: 4Gi}}}]"
	tiny := "containers: [{name: main, image: i, resources: {requests: {cpu: 10m}}}]"
	class := `
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: zonal}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: r, subnetSelectorTerms: [{tags: {a: b}}], securityGroupSelectorTerms: [{tags: {a: b}}]}
status: {subnets: [{id: subnet-1, zone: us-east-1c}]}
`
	for _, c := range []poolCase{
		{field: "weight", around: plain, after: poolSpec{weight: "10"}, rule: tried},
		{field: "limits", pods: 2, spec: apart, after: poolSpec{limits: "{cpu: 4}"}, rule: limited},
		{field: "limits nodes", versions: []string{"v1"}, pods: 2, spec: apart, after: poolSpec{limits: "{nodes: 1}"}, rule: limited},
		{field: "labels", spec: "nodeSelector: {team: x}", after: poolSpec{labels: "{team: x}"}, rule: placed},
		{field: "taints", after: poolSpec{taints: "[{key: dedicated, value: batch, effect: NoSchedule}]"}, rule: "- refused: {stage: taint}\n  pods: web-*"},
		{field: "startupTaints", before: poolSpec{taints: "[{key: booting, effect: NoSchedule}]"}, after: poolSpec{startupTaints: "[{key: booting, effect: NoSchedule}]"}, rule: placed},
		{field: "requirements", after: poolSpec{requirements: "{key: topology.kubernetes.io/zone, operator: In, values: [zone-b]}"}, rule: inZoneB},
		{
			field: "key", before: poolSpec{requirements: "{key: karpenter.sh/capacity-type, operator: NotIn, values: [zone-a]}"},
			after: poolSpec{requirements: "{key: topology.kubernetes.io/zone, operator: NotIn, values: [zone-a]}"}, rule: inZoneB,
		},
		{
			field: "operator", before: poolSpec{requirements: "{key: topology.kubernetes.io/zone, operator: In, values: [zone-a]}"},
			after: poolSpec{requirements: "{key: topology.kubernetes.io/zone, operator: NotIn, values: [zone-a]}"}, rule: inZoneB,
		},
		{
			field: "values", before: poolSpec{requirements: "{key: topology.kubernetes.io/zone, operator: In, values: [zone-a]}"},
			after: poolSpec{requirements: "{key: topology.kubernetes.io/zone, operator: In, values: [zone-b]}"}, rule: inZoneB,
		},
		{
			field: "minValues", versions: []string{"v1beta1", "v1"}, spec: "containers: [{name: main, image: i, resources: {requests: {cpu: 5}}}]",
			after: poolSpec{requirements: "{key: node.kubernetes.io/instance-type, operator: Exists, minValues: 2}"}, rule: "- refused: {}\n  pods: web-*",
		},
		{field: "replicas", versions: []string{"v1"}, pods: 2, spec: apart, after: poolSpec{replicas: "1"}, rule: "- refused: {}\n  pods: web-1"},
		{field: "nodeClassRef", versions: []string{"v1beta1", "v1"}, ec2: true, around: class, after: poolSpec{class: "zonal"}, rule: "- landsOn: {zone: us-east-1c}\n  pods: web-*"},
		{field: "maxPods", versions: old, ec2: true, pods: 12, spec: tiny, before: kubelet(""), after: kubelet("{maxPods: 4}"), rule: "- apart: {by: node, most: 4}\n  pods: web-*"},
		{field: "podsPerCore", versions: old, ec2: true, pods: 12, spec: tiny, before: kubelet(""), after: kubelet("{podsPerCore: 2}"), rule: "- apart: {by: node, most: 4}\n  pods: web-*"},
		{field: "kubeReserved", versions: old, ec2: true, before: kubelet(""), after: kubelet("{kubeReserved: {cpu: 1500m}}"), rule: short},
		{field: "systemReserved", versions: old, ec2: true, before: kubelet(""), after: kubelet("{systemReserved: {cpu: 1500m}}"), rule: short},
		{field: "evictionHard", versions: old, ec2: true, spec: memory, before: kubelet(""), after: kubelet("{evictionHard: {memory.available: 5Gi}}"), rule: short},
		{
			field: "evictionSoft", versions: []string{"v1alpha5"}, ec2: true, spec: memory, before: kubelet(""),
			after: kubelet("{evictionSoft: {memory.available: 5Gi}, evictionSoftGracePeriod: {memory.available: 1m}}"), rule: short,
		},
	} {
		t.Run(c.field, func(t *testing.T) {
			versions := c.versions
			if versions == nil {
				versions = []string{"v1alpha5", "v1beta1", "v1"}
			}
			if testing.Short() && c.ec2 { // each plan takes from a whole region
				versions = versions[len(versions)-1:]
			}
			for _, v := range versions {
				t.Run(v, func(t *testing.T) { decides(t, c.plan(t, v, c.before), c.plan(t, v, c.after), c.rule) })
			}
		})
	}
	t.Run("name", func(t *testing.T) {
		c := poolCase{spec: "nodeSelector: {karpenter.sh/nodepool: tried}", around: plain}
		other, err := fieldMarket().Manifests(plain + "---" + deployment("web", 1, c.spec+"\n"+oneCPU)).Solve()
		require.NoError(t, err)
		decides(t, other, c.plan(t, "v1", poolSpec{}), placed)
	})
	t.Run("providerRef", func(t *testing.T) {
		template := "\n---\napiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\nmetadata: {name: %s}\nspec: {amiFamily: AL2, subnetSelector: {a: b}, securityGroupSelector: {a: b}%s}\n"
		disk := ", blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 200Gi}}]"
		c := poolCase{ec2: true, around: fmt.Sprintf(template, "default", "") + fmt.Sprintf(template, "large", disk), spec: "containers: [{name: main, image: i, resources: {requests: {ephemeral-storage: 50Gi}}}]"}
		decides(t, c.plan(t, "v1alpha5", poolSpec{requirements: small}), c.plan(t, "v1alpha5", poolSpec{requirements: small, class: "large"}), placed)
	})
	t.Run("provider", func(t *testing.T) {
		pool := func(more string) string {
			return "---\napiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: tried}\nspec: {requirements: [" + small + "]" + more + "}\n---" + deployment("web", 1, "containers: [{name: main, image: i, resources: {requests: {ephemeral-storage: 50Gi}}}]")
		}
		disk := ", provider: {amiFamily: AL2, subnetSelector: {a: b}, securityGroupSelector: {a: b}, blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 200Gi}}]}"
		before, err := ruletest.Scenario{}.Manifests(pool("")).Solve()
		require.NoError(t, err)
		after, err := ruletest.Scenario{}.Manifests(pool(disk)).Solve()
		require.NoError(t, err)
		decides(t, before, after, placed)
	})
}

// Nodes of a pool have the label GROUP/KIND=NAME of their class in every version of the API.
func TestNodesNameTheirClass(t *testing.T) {
	for version, manifest := range map[string]string{
		"v1":       "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: tried}\nspec: {template: {spec: {requirements: [], nodeClassRef: {group: %s, kind: %s, name: c}}}}\n",
		"v1beta1":  "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: tried}\nspec: {template: {spec: {requirements: [], nodeClassRef: {apiVersion: %s/v1, kind: %s, name: c}}}}\n",
		"v1alpha5": "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: tried}\nspec: {requirements: [], providerRef: {apiVersion: %s/v1, kind: %s, name: c}}\n",
	} {
		t.Run(version, func(t *testing.T) {
			plan := func(group, kind string) *ruletest.Plan {
				p, err := fieldMarket().Manifests(fmt.Sprintf(manifest, group, kind) + "---" + deployment("web", 1, "nodeSelector: {a.example.com/rack: c}\n"+oneCPU)).Solve()
				require.NoError(t, err)
				return p
			}
			placed := "- placed: true\n  pods: web-*"
			decides(t, plan("b.example.com", "Rack"), plan("a.example.com", "Rack"), placed)
			decides(t, plan("a.example.com", "Hall"), plan("a.example.com", "Rack"), placed)
		})
	}
}
