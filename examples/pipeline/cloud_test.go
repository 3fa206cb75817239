package pipeline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/scheduling"
)

func parsed(t *testing.T, docs ...string) *manifests.Snapshot {
	t.Helper()
	m, err := manifests.Parse([]manifests.File{{Name: "a.yaml", Data: []byte(strings.Join(docs, "\n---\n"))}}, &manifests.Options{Classes: pipeline.NodeClassDecoders()})
	require.NoError(t, err)
	return m
}

// poolOf is a NodePool with a reference to its class and requirements, each in flow style.
func poolOf(version, ref, requirements string) string {
	return fmt.Sprintf("{apiVersion: karpenter.sh/%s, kind: NodePool, metadata: {name: main}, spec: {template: {spec: {nodeClassRef: {%s}, requirements: [%s]}}}}", version, ref, requirements)
}

func sold(t *testing.T, docs ...string) (scheduling.Pool, []string) {
	t.Helper()
	market, err := pipeline.EC2Market("us-east-2")
	require.NoError(t, err)
	pools, notes, err := market.Pools(parsed(t, docs...))
	require.NoError(t, err)
	return pools[0], notes
}

// Windows costs more than the prices of the catalogue, which are those of Linux. That is said of each pool
// whose class boots it, and of no other.
func TestWindowsHasALicence(t *testing.T) {
	for image, want := range map[string]bool{"windows2019@latest": true, "windows2022@latest": true, "al2023@latest": false, "bottlerocket@latest": false} {
		class := "{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: desk}, spec: {amiSelectorTerms: [{alias: '" + image + "'}], role: r, subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}]}}"
		pool, notes := sold(t, class, poolOf("v1", "group: karpenter.k8s.aws, kind: EC2NodeClass, name: desk", ""))
		assert.NotEmpty(t, pool.Types, image)
		assert.Equal(t, want, slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "the licence of Windows is not in them") }), "%s: %v", image, notes)
	}
}

// A pool of another cloud buys nothing of EC2, whatever its class is called, and that is said once.
func TestPoolsOfOtherClouds(t *testing.T) {
	ec2Class := "{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: shared}, spec: {amiSelectorTerms: [{alias: al2023@latest}], role: r, subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}]}}"
	for _, c := range []struct{ version, ref, requirement, want string }{
		{"v1", "group: karpenter.azure.com, kind: AKSNodeClass, name: shared", "", "karpenter.azure.com"},
		{"v1", "group: karpenter.k8s.gcp, kind: GCENodeClass, name: shared", "", "karpenter.k8s.gcp"},
		{"v1", "group: oci.oraclecloud.com, kind: OCINodeClass, name: shared", "", "oci.oraclecloud.com"},
		{"v1", "group: karpenter.cluster.x-k8s.io, kind: ClusterAPINodeClass, name: shared", "", "karpenter.cluster.x-k8s.io"},
		{"v1", "group: karpenter.kwok.sh, kind: KWOKNodeClass, name: shared", "", "karpenter.kwok.sh"},
		{"v1", "group: karpenter.of-our.own, kind: RackClass, name: shared", "", "karpenter.of-our.own"},
		{"v1beta1", "kind: AKSNodeClass, name: shared", "", "AKSNodeClass"},
		{"v1beta1", "name: shared", "{key: karpenter.azure.com/sku-cpu, operator: Lt, values: ['17']}", "karpenter.azure.com"},
		{"v1beta1", "name: shared", "{key: cloud.google.com/machine-family, operator: In, values: [n4]}", "cloud.google.com"},
	} {
		pool, notes := sold(t, ec2Class, poolOf(c.version, c.ref, c.requirement))
		assert.Empty(t, pool.Types, c.ref)
		require.Len(t, notes, 1, c.ref)
		assert.Contains(t, notes[0], "NodePool main: nodes of "+c.want+" are not bought")
	}
	for _, c := range [][3]string{
		{"v1", "group: karpenter.k8s.aws, kind: EC2NodeClass, name: shared", "{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ['3']}"},
		{"v1beta1", "name: shared", "{key: example.com/team, operator: In, values: [a]}"},
		{"v1beta1", "name: other", "{key: cloud.example.com/zone, operator: In, values: [a]}"},
	} {
		pool, notes := sold(t, ec2Class, poolOf(c[0], c[1], c[2]))
		assert.NotEmpty(t, pool.Types, c)
		assert.Empty(t, notes, c)
	}
}

// What holds for many pools is said once, with their names.
func TestRemarksOnManyPools(t *testing.T) {
	var docs []string
	for i := range 7 {
		docs = append(docs, fmt.Sprintf("{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: p%d}, spec: {provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}}", i))
	}
	docs = append(docs, strings.Replace(poolOf("v1", "group: karpenter.azure.com, kind: AKSNodeClass, name: a", ""), "main", "one", 1), strings.Replace(poolOf("v1", "group: karpenter.azure.com, kind: AKSNodeClass, name: a", ""), "main", "two", 1))
	_, notes := sold(t, docs...)
	require.Equal(t, []string{
		"NodePool one, two: nodes of karpenter.azure.com are not bought, because this catalogue is EC2's (give that of their cloud with --instance-types)",
		"Provisioner p0, p1, p2, p3, p4 and 2 more: soft eviction thresholds count, as for karpenter.sh/v1alpha5",
		"Provisioner p0, p1, p2, p3, p4 and 2 more: nodes carry karpenter.k8s.aws/instance-pods",
	}, notes)
}

// A class is found by group, kind and name: namesakes of another group or kind say nothing.
func TestClassesAreFoundByGroupAndKind(t *testing.T) {
	pods := func(n int) string { return fmt.Sprintf("kubelet: {maxPods: %d}", n) }
	class := func(more string) string {
		return "{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: shared}, spec: {amiSelectorTerms: [{alias: al2023@latest}], role: r, subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}], " + more + "}}"
	}
	template := "{apiVersion: karpenter.k8s.aws/v1alpha1, kind: AWSNodeTemplate, metadata: {name: shared}, spec: {amiFamily: Bottlerocket, subnetSelector: {a: b}, securityGroupSelector: {a: b}, blockDeviceMappings: [{deviceName: /dev/xvdb, ebs: {volumeSize: 77Gi}}]}}"
	auto := "{apiVersion: eks.amazonaws.com/v1, kind: NodeClass, metadata: {name: shared}, spec: {ephemeralStorage: {size: 99Gi}}}"
	old := "{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: old}, spec: {providerRef: {name: shared}}}"
	for _, c := range []struct{ pool, resource, want string }{
		{poolOf("v1", "group: karpenter.k8s.aws, kind: EC2NodeClass, name: shared", ""), "pods", "13"},
		{poolOf("v1beta1", "name: shared", ""), "pods", "13"},
		{old, "ephemeral-storage", "77Gi"},
		{poolOf("v1", "group: eks.amazonaws.com, kind: NodeClass, name: shared", ""), "ephemeral-storage", "99Gi"},
		{poolOf("v1", "group: eks.amazonaws.com, kind: NodeClass, name: other", ""), "ephemeral-storage", "80Gi"},
	} {
		for _, order := range [][]string{{template, class(pods(13)), auto}, {auto, class(pods(13)), template}} {
			pool, _ := sold(t, append(order, c.pool)...)
			found := false
			for _, it := range pool.Types {
				if it.Name == "m5.large" {
					for name, q := range it.Capacity {
						if string(name) == c.resource {
							assert.Equal(t, c.want, q.String(), c.pool)
							found = true
						}
					}
				}
			}
			assert.True(t, found, c.pool)
		}
	}
}

// What a pool lists and nothing has is said, with what was probably meant or where it is sold.
func TestValuesThatNoTypeHas(t *testing.T) {
	ref := "group: karpenter.k8s.aws, kind: EC2NodeClass, name: default"
	for requirement, want := range map[string]string{
		"{key: node.kubernetes.io/instance-type, operator: In, values: [c6i.larg, c6i.xlarge]}":                                            `NodePool main: no type of this catalogue has node.kubernetes.io/instance-type c6i.larg (did you mean "c6i.large"?)`,
		"{key: karpenter.k8s.aws/instance-family, operator: In, values: [r6g, r6gg]}":                                                      `NodePool main: no type of this catalogue has karpenter.k8s.aws/instance-family r6gg`,
		"{key: karpenter.k8s.aws/instance-family, operator: In, values: [r6gg]}":                                                           `NodePool main: no type of this catalogue has karpenter.k8s.aws/instance-family r6gg (did you mean "r6g"?)`,
		"{key: topology.kubernetes.io/zone, operator: In, values: [us-east-2a, eu-north-1b]}":                                              `NodePool main: eu-north-1b is a zone of region eu-north-1; this plan is for us-east-2 (--region eu-north-1)`,
		"{key: karpenter.k8s.aws/instance-cpu, operator: Lt, values: ['17']}":                                                              "",
		"{key: karpenter.k8s.aws/instance-cpu, operator: In, values: ['7']}":                                                               `NodePool main: no type of this catalogue has karpenter.k8s.aws/instance-cpu 7`,
		"{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ['3']}":                                                               "",
		"{key: karpenter.k8s.aws/instance-family, operator: NotIn, values: [zz9]}":                                                         "",
		"{key: example.com/team, operator: In, values: [a]}":                                                                               "",
		"{key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}":                                                       "",
		"{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5, c5]}, {key: kubernetes.io/os, operator: In, values: [linux]}": "",
	} {
		_, notes := sold(t, poolOf("v1", ref, requirement))
		if want == "" {
			assert.Empty(t, notes, requirement)
			continue
		}
		assert.Equal(t, []string{want}, notes)
	}
}

// The flags of the EBS driver are those of its DaemonSet.
func TestFlagsOfTheDriver(t *testing.T) {
	driver := "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: ebs-csi-node, namespace: kube-system}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: ebs-plugin, image: i, args: [node, %s]}]}}}}"
	for flag, want := range map[string]string{"--reserved-volume-attachments=5": "20", "--volume-attach-limit=7": "7", "--v=2": "24"} {
		pool, _ := sold(t, fmt.Sprintf(driver, flag), poolOf("v1", "group: karpenter.k8s.aws, kind: EC2NodeClass, name: default", ""))
		for _, it := range pool.Types {
			if it.Name == "m5.large" {
				q := it.Capacity["attachable-volumes-csi-ebs.csi.aws.com"]
				assert.Equal(t, want, q.String(), flag)
			}
		}
	}
}

func TestRegionOf(t *testing.T) {
	node := func(name, id, labels string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {%s}}, spec: {providerID: %q}}", name, labels, id)
	}
	ref := "group: karpenter.k8s.aws, kind: EC2NodeClass, name: main"
	zones := func(list string) string {
		return poolOf("v1", ref, "{key: topology.kubernetes.io/zone, operator: In, values: ["+list+"]}")
	}
	class := "{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: main}, spec: {amiSelectorTerms: [{alias: al2023@latest}], role: r, subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}]}, status: {subnets: [{id: subnet-1, zone: ca-central-1b}]}}"
	for name, c := range map[string]struct {
		docs       []string
		want, fail string
	}{
		"nothing":                {[]string{zones("rack-1")}, "", ""},
		"label of a node":        {[]string{node("a", "", "topology.kubernetes.io/region: sa-east-1")}, "sa-east-1", ""},
		"older label":            {[]string{node("a", "", "failure-domain.beta.kubernetes.io/region: sa-east-1")}, "sa-east-1", ""},
		"zone of a node":         {[]string{node("a", "", "topology.kubernetes.io/zone: ap-south-1c")}, "ap-south-1", ""},
		"local zone":             {[]string{node("a", "", "topology.kubernetes.io/zone: us-west-2-lax-1a")}, "us-west-2", ""},
		"provider id":            {[]string{node("a", "aws:///eu-west-2c/i-1", "")}, "eu-west-2", ""},
		"another cloud's":        {[]string{node("a", "azure:///x", "topology.kubernetes.io/region: eu-west-2"), zones("eu-west-3a")}, "eu-west-3", ""},
		"other spelling":         {[]string{node("a", "", "topology.kubernetes.io/region: europe-west4")}, "", ""},
		"pool":                   {[]string{zones("eu-west-3a, eu-west-3b")}, "eu-west-3", ""},
		"region of a pool":       {[]string{poolOf("v1", ref, "{key: topology.kubernetes.io/region, operator: In, values: [us-west-1]}")}, "us-west-1", ""},
		"excluded zone":          {[]string{poolOf("v1", ref, "{key: topology.kubernetes.io/zone, operator: NotIn, values: [us-west-1a]}")}, "", ""},
		"subnets of a class":     {[]string{class, poolOf("v1", ref, "")}, "ca-central-1", ""},
		"nodes before pools":     {[]string{node("a", "", "topology.kubernetes.io/region: sa-east-1"), zones("eu-west-3a")}, "sa-east-1", ""},
		"pool of another cloud":  {[]string{poolOf("v1", "group: karpenter.azure.com, kind: AKSNodeClass, name: x", "{key: topology.kubernetes.io/zone, operator: In, values: [eu-west-3a]}")}, "", ""},
		"pools of several":       {[]string{zones("eu-west-3a, us-west-2b")}, "", "the pools are in several regions: choose one of eu-west-3, us-west-2"},
		"nodes of several":       {[]string{node("a", "", "topology.kubernetes.io/region: sa-east-1"), node("b", "", "topology.kubernetes.io/region: us-east-2")}, "", "the nodes are in several regions"},
		"zone of the CSI driver": {[]string{poolOf("v1", ref, "{key: topology.ebs.csi.aws.com/zone, operator: In, values: [us-west-2b]}")}, "us-west-2", ""},
	} {
		got, err := pipeline.RegionOf(parsed(t, c.docs...))
		assert.Equal(t, c.want, got, name)
		if c.fail != "" {
			assert.ErrorContains(t, err, c.fail, name)
		} else {
			assert.NoError(t, err, name)
		}
	}
}

// What a kubelet is told and sizes do not show is said; what bears on no size is not.
func TestKubeletSettingsThatAreNotPlannedWith(t *testing.T) {
	for kubelet, want := range map[string][]string{
		"maxPods: 20, containerLogMaxSize: 50Mi":            nil,
		"reservedSystemCPUs: 0-1, cpuManagerPolicy: static": {"NodePool main: sizes of nodes do not depend on the kubelet's cpuManagerPolicy, reservedSystemCPUs of EC2NodeClass shared"},
	} {
		_, notes := sold(t, "{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: shared}, spec: {amiSelectorTerms: [{alias: al2023@latest}], role: r, "+
			"subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}], kubelet: {"+kubelet+"}}}", poolOf("v1", "group: karpenter.k8s.aws, kind: EC2NodeClass, name: shared", ""))
		assert.Equal(t, want, notes)
	}
}
