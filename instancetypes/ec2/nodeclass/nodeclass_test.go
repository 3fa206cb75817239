package nodeclass_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// file reads a sample as JSON; each replacement is made once and must be possible.
func file(t testing.TB, name string, replacements ...string) json.RawMessage {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	text := string(data)
	for i := 0; i < len(replacements); i += 2 {
		require.Contains(t, text, replacements[i])
		text = strings.Replace(text, replacements[i], replacements[i+1], 1)
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err, text)
	return raw
}

func TestTemplate(t *testing.T) {
	got, err := nodeclass.Decode(file(t, "template.yaml"))
	require.NoError(t, err)
	assert.Equal(t, nodeclass.NodeClass{
		Kind: "AWSNodeTemplate", APIVersion: "karpenter.k8s.aws/v1alpha1", Name: "default", Family: ec2.Bottlerocket,
		AMIs:            []nodeclass.Term{{Names: []string{"my-image"}, Owners: []string{"self", "amazon"}, Tags: []nodeclass.Tag{{Key: "team", Values: []string{"blue"}}}}},
		Subnets:         []nodeclass.Term{{IDs: []string{"subnet-0a1", "subnet-0b2"}, Tags: []nodeclass.Tag{{Key: "karpenter.sh/discovery", Values: []string{"*"}}}}},
		SecurityGroups:  []nodeclass.Term{{Tags: []nodeclass.Tag{{Key: "Name", Values: []string{"nodes", "nodes-extra"}}}}},
		InstanceProfile: "node-profile", UserData: "[settings.kubernetes]", Context: "some-context", DetailedMonitoring: true,
		Tags:     map[string]string{"team": "blue", "kubernetes": "yes"},
		Metadata: nodeclass.MetadataOptions{Endpoint: "enabled", IPv6: "enabled", HopLimit: 3, Tokens: "optional"},
		BlockDevices: []nodeclass.BlockDevice{{
			Device: "/dev/xvdb", Bytes: 50 << 30, Type: "gp3", IOPS: 4000, Throughput: 200, Encrypted: new(true),
			DeleteOnTermination: new(true), KMSKeyID: "alias/disk", Snapshot: "snap-012",
		}},
	}, got)
	assert.Equal(t, ec2.Settings{Family: ec2.Bottlerocket, BlockDevices: []ec2.BlockDevice{{Device: "/dev/xvdb", Bytes: 50 << 30}}}, got.Settings())
}

func TestBeta(t *testing.T) {
	got, err := nodeclass.Decode(file(t, "beta.yaml"))
	require.NoError(t, err)
	assert.Equal(t, ec2.Ubuntu, got.Family)
	assert.Equal(t, []nodeclass.Term{{Names: []string{"my-image"}, Owners: []string{"self"}}, {IDs: []string{"ami-0123"}}}, got.AMIs)
	assert.Equal(t, "node-role", got.Role)
	assert.True(t, got.RAID0)
	assert.Equal(t, new(false), got.AssociatePublicIP)
	assert.Equal(t, nodeclass.MetadataOptions{Endpoint: "enabled", IPv6: "disabled", HopLimit: 2, Tokens: "optional"}, got.Metadata)
	assert.Equal(t, []nodeclass.BlockDevice{{Device: "/dev/sda1", Root: true, Bytes: 100e9, Type: "gp3"}}, got.BlockDevices)
	assert.Equal(t, []string{"us-east-1a", "us-east-1b"}, got.Zones())
	assert.Equal(t, []string{"ami-0123"}, got.Status.AMIs)
	assert.Equal(t, []string{"sg-1"}, got.Status.SecurityGroups)
}

func TestV1(t *testing.T) {
	got, err := nodeclass.Decode(file(t, "v1.yaml"))
	require.NoError(t, err)
	assert.Equal(t, ec2.AL2, got.Family, "the alias names the family")
	assert.Equal(t, int64(1), got.Metadata.HopLimit)
	assert.Equal(t, []nodeclass.Term{{IDs: []string{"cr-0123"}}, {Owners: []string{"123456789012"}, MatchCriteria: "targeted", Tags: []nodeclass.Tag{{Key: "purpose", Values: []string{"batch"}}}}}, got.CapacityReservations)
	assert.Equal(t, &nodeclass.PlacementGroup{Name: "near"}, got.PlacementGroup)
	assert.Equal(t, &nodeclass.ConnectionTracking{TCPEstablished: 600, UDPStream: 60, UDP: 30}, got.ConnectionTracking)
	assert.Equal(t, "enabled", got.NestedVirtualization)
	assert.Equal(t, new(int32(2)), got.IPPrefixCount)
	assert.Nil(t, got.Zones(), "no status yet")

	s := got.Settings()
	assert.True(t, s.RAID0)
	assert.Equal(t, int64(2), s.EFAOnly)
	assert.Equal(t, int64(1), s.EFAOnlyFirstCard)
	assert.Equal(t, new(int32(40)), s.Kubelet.MaxPods)
	assert.Equal(t, int64(200), resources.Request(corev1.ResourceCPU, s.Kubelet.KubeReserved[corev1.ResourceCPU]))
	assert.Equal(t, "5%", s.Kubelet.EvictionHard["memory.available"])
	assert.NoError(t, s.Validate())
}

// Since the kubelet's settings are an open map, all that a KubeletConfiguration has may be set. Misspelt ones stay errors.
func TestFurtherKubeletSettings(t *testing.T) {
	got, err := nodeclass.Decode(file(t, "v1.yaml", "  kubelet:\n", "  kubelet:\n    containerLogMaxSize: 50Mi\n    reservedSystemCPUs: 0-1\n    featureGates: {A: true}\n"))
	require.NoError(t, err)
	assert.Equal(t, map[string]json.RawMessage{
		"containerLogMaxSize": json.RawMessage(`"50Mi"`), "reservedSystemCPUs": json.RawMessage(`"0-1"`), "featureGates": json.RawMessage(`{"A":true}`),
	}, got.Kubelet.Further)
	assert.Equal(t, []string{"reservedSystemCPUs"}, got.Kubelet.Unplanned())
	assert.Equal(t, new(int32(40)), got.Kubelet.MaxPods)
	for name, want := range map[string]string{
		"containerLogMaxSizes": `spec.kubelet.containerLogMaxSizes: no such field (did you mean "containerLogMaxSize"?)`,
		"maxPod":               `spec.kubelet.maxPod: no such field (did you mean "maxPods"?)`,
		"apiVersion":           `spec.kubelet.apiVersion: no such field`,
	} {
		_, err := nodeclass.Decode(file(t, "v1.yaml", "  kubelet:\n", "  kubelet:\n    "+name+": x\n"))
		assert.ErrorContains(t, err, want)
	}
	got, err = nodeclass.Decode(file(t, "v1.yaml"))
	require.NoError(t, err)
	assert.Nil(t, got.Kubelet.Further)
	assert.Empty(t, got.Kubelet.Unplanned())
}

func TestCustomMayUseAnyAlias(t *testing.T) {
	got, err := nodeclass.Decode(file(t, "v1.yaml", "  kubelet:", "  amiFamily: Custom\n  kubelet:"))
	require.NoError(t, err)
	assert.Equal(t, ec2.Custom, got.Family)
}

// TestTermsBesideSoundOnes has terms that Karpenter's schema takes because another of the list is sound: what should stand alone counts.
func TestTermsBesideSoundOnes(t *testing.T) {
	got, err := nodeclass.Decode(file(t, "beta.yaml", "    - name: nodes", "    - name: nodes\n      tags: {a: b}\n    - id: sg-1\n      name: x", "    - id: subnet-0a1", "    - id: subnet-0a1\n      tags: {a: b}"))
	require.NoError(t, err)
	assert.Equal(t, []nodeclass.Term{{Names: []string{"nodes"}}, {IDs: []string{"sg-1"}}, {Tags: []nodeclass.Tag{{Key: "team", Values: []string{"*"}}}}}, got.SecurityGroups)
	assert.Equal(t, nodeclass.Term{IDs: []string{"subnet-0a1"}}, got.Subnets[1])
	got, err = nodeclass.Decode(file(t, "v1.yaml", "alias: al2@latest", "id: ami-1\n      ssmParameter: /my/image", "  kubelet:", "  amiFamily: AL2\n  kubelet:"))
	require.NoError(t, err)
	assert.Equal(t, []nodeclass.Term{{IDs: []string{"ami-1"}}}, got.AMIs)
}

func TestProvider(t *testing.T) {
	got, err := nodeclass.DecodeProvider(json.RawMessage(`{"apiVersion": "extensions.karpenter.sh/v1alpha1", "kind": "AWS", "amiFamily": "Bottlerocket",
	  "subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}, "instanceProfile": "p"}`))
	require.NoError(t, err)
	assert.Equal(t, ec2.Bottlerocket, got.Family)
	assert.Equal(t, "p", got.InstanceProfile)

	_, err = nodeclass.DecodeProvider(json.RawMessage(`{"userdata": "x", "subnetSelector": {"a": ""}}`))
	assert.ErrorContains(t, err, "spec.provider.userdata: no such field")
	assert.ErrorContains(t, err, "spec.provider.subnetSelector")
	assert.ErrorContains(t, err, "spec.provider.securityGroupSelector: missing")
}

func TestLaunchTemplateStandsAlone(t *testing.T) {
	_, err := nodeclass.Decode(json.RawMessage(`{"apiVersion": "karpenter.k8s.aws/v1alpha1", "kind": "AWSNodeTemplate", "metadata": {"name": "x"},
	  "spec": {"launchTemplate": "mine", "subnetSelector": {"a": "b"}}}`))
	require.NoError(t, err)
	_, err = nodeclass.Decode(file(t, "template.yaml", "  userData:", "  launchTemplate: mine\n  userData:"))
	for _, field := range []string{"amiFamily", "amiSelector", "blockDeviceMappings", "instanceProfile", "metadataOptions", "securityGroupSelector", "userData"} {
		assert.ErrorContains(t, err, "spec."+field+": cannot be set beside launchTemplate")
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		file    string
		replace []string
		want    string
	}{
		"kind":                  {"v1.yaml", []string{"kind: EC2NodeClass", "kind: EC2NodeClas"}, `did you mean "EC2NodeClass"?`},
		"version":               {"v1.yaml", []string{"aws/v1", "aws/v2"}, "want AWSNodeTemplate of"},
		"no name":               {"v1.yaml", []string{"  name: default", "  namespace: x"}, "metadata.name: missing"},
		"unknown field":         {"v1.yaml", []string{"ipPrefixCount", "ipPrefixCounts"}, `spec.ipPrefixCounts: no such field (did you mean "ipPrefixCount"?)`},
		"top field":             {"v1.yaml", []string{"spec:", "specs: {}\nspec:"}, `specs: no such field (did you mean "spec"?)`},
		"case":                  {"v1.yaml", []string{"userData", "userdata"}, `did you mean "userData"?`},
		"v1 has no Ubuntu":      {"v1.yaml", []string{"alias: al2@latest", "id: ami-1", "  kubelet:", "  amiFamily: Ubuntu\n  kubelet:"}, `spec.amiFamily: "Ubuntu": want one of`},
		"no family":             {"v1.yaml", []string{"alias: al2@latest", "id: ami-1"}, "spec.amiFamily: missing"},
		"alias family":          {"v1.yaml", []string{"al2@latest", "al3@latest"}, `did you mean "al2"?`},
		"alias form":            {"v1.yaml", []string{"al2@latest", "al2"}, "want family@version"},
		"alias of windows":      {"v1.yaml", []string{"al2@latest", "windows2022@v1"}, "want windows2022@latest"},
		"alias alone":           {"v1.yaml", []string{"    - alias: al2@latest", "    - alias: al2@latest\n    - id: ami-1"}, "an alias must be the only term"},
		"alias and tags":        {"v1.yaml", []string{"alias: al2@latest", "alias: al2@latest\n      tags: {a: b}"}, "alias cannot be combined with tags"},
		"alias against family":  {"v1.yaml", []string{"  kubelet:", "  amiFamily: AL2023\n  kubelet:"}, "the alias is of AL2"},
		"no image":              {"v1.yaml", []string{"amiSelectorTerms:\n    - alias: al2@latest", "amiSelectorTerms: []"}, "spec.amiSelectorTerms: missing"},
		"owner only":            {"beta.yaml", []string{"- name: my-image\n", "-\n"}, "spec.amiSelectorTerms[0]: selects nothing"},
		"image id":              {"beta.yaml", []string{"ami-0123", "img-0123"}, "spec.amiSelectorTerms[1].id"},
		"beta has no alias":     {"beta.yaml", []string{"id: ami-0123", "alias: al2@latest"}, "spec.amiSelectorTerms[1].alias: no such field"},
		"beta has no kubelet":   {"beta.yaml", []string{"  role: node-role", "  role: node-role\n  kubelet: {}"}, "spec.kubelet: no such field"},
		"beta family":           {"beta.yaml", []string{"  amiFamily: Ubuntu\n", ""}, "spec.amiFamily: missing"},
		"role and profile":      {"v1.yaml", []string{"instanceProfile: profile", "instanceProfile: profile\n  role: r"}, "want either role or instanceProfile"},
		"no subnets":            {"v1.yaml", []string{"subnetSelectorTerms:\n    - tags: {karpenter.sh/discovery: cluster}", "subnetSelectorTerms: []"}, "spec.subnetSelectorTerms: missing"},
		"subnet id":             {"beta.yaml", []string{"    - id: subnet-0a1", "    - id: sn-1"}, "want an id of a subnet"},
		"group by two":          {"beta.yaml", []string{"    - name: nodes", "    - name: nodes\n      id: sg-1", "    - tags: {team: \"*\"}\n", ""}, "securityGroupSelectorTerms[0]: id cannot be combined with name"},
		"empty tag":             {"v1.yaml", []string{"{karpenter.sh/discovery: cluster}", "{a: ''}"}, "want no empty key or value"},
		"reserved tag":          {"v1.yaml", []string{"tags: {team: blue}", "tags: {karpenter.sh/nodepool: x}"}, "the controller sets this tag itself"},
		"cluster tag":           {"v1.yaml", []string{"tags: {team: blue}", "tags: {kubernetes.io/cluster/x: owned}"}, "the controller sets this tag itself"},
		"volume size":           {"v1.yaml", []string{"volumeSize: 50Gi", "volumeSize: 50"}, "want 1Gi to 64T"},
		"no quantity":           {"v1.yaml", []string{"volumeSize: 50Gi", "volumeSize: big"}, "want a quantity"},
		"slow quantity":         {"v1.yaml", []string{"volumeSize: 50Gi", "volumeSize: '1e-99999999'"}, "want a quantity"},
		"no volume":             {"v1.yaml", []string{"volumeSize: 50Gi, snapshotID: snap-1, volumeInitializationRate: 200", "iops: 1"}, "want volumeSize or snapshotID"},
		"rate without snapshot": {"v1.yaml", []string{"snapshotID: snap-1, ", ""}, "needs snapshotID"},
		"rate":                  {"v1.yaml", []string{"Rate: 200", "Rate: 2000"}, "want 100 to 300"},
		"volume type":           {"beta.yaml", []string{"volumeType: gp3", "volumeType: gp5"}, `did you mean "gp2"?`},
		"two roots":             {"beta.yaml", []string{"    - deviceName: /dev/sda1", "    - {deviceName: /dev/sdb, rootVolume: true, ebs: {volumeSize: 1Gi}}\n    - deviceName: /dev/sda1"}, "want at most one"},
		"root in v1alpha1":      {"template.yaml", []string{"    - deviceName: /dev/xvdb", "    - rootVolume: true\n      deviceName: /dev/xvdb"}, "no such field in this version"},
		"device in v1alpha1":    {"template.yaml", []string{"    - deviceName: /dev/xvdb\n      ebs:", "    - ebs:"}, "deviceName: missing"},
		"store policy":          {"v1.yaml", []string{"RAID0", "RAID1"}, `did you mean "RAID0"?`},
		"hop limit":             {"template.yaml", []string{"HopLimit: 3", "HopLimit: 65"}, "want 1 to 64"},
		"tokens":                {"template.yaml", []string{"httpTokens: optional", "httpTokens: maybe"}, "want one of required, optional"},
		"family of v1alpha1":    {"template.yaml", []string{"Bottlerocket", "AL2023"}, `want one of AL2, Bottlerocket, Custom, Ubuntu`},
		"custom without image":  {"template.yaml", []string{"Bottlerocket", "Custom", "  amiSelector:\n    aws::name: my-image\n    aws::owners: self,amazon\n    team: blue\n", ""}, "spec.amiSelector: missing"},
		"selector of ids":       {"template.yaml", []string{"subnet-0a1", "sn-1"}, "want an id of a subnet"},
		"empty selector":        {"template.yaml", []string{"nodes, nodes-extra", ""}, "want no empty key or value"},
		"wrong type":            {"v1.yaml", []string{"maxPods: 40", "maxPods: many"}, `spec.kubelet.maxPods: want a whole number, got "many"`},
		"list for text":         {"v1.yaml", []string{"context: some-context", "context: [a]"}, "spec.context: want a string, got a list"},
		"text for list":         {"v1.yaml", []string{"clusterDNS: [10.0.0.10]", "clusterDNS: 10.0.0.10"}, "spec.kubelet.clusterDNS: want a list"},
		"negative pods":         {"v1.yaml", []string{"maxPods: 40", "maxPods: -1"}, "spec.kubelet.maxPods: -1"},
		"negative reserve":      {"v1.yaml", []string{"cpu: 200m", "cpu: -200m"}, "want no negative quantity"},
		"reserved resource":     {"v1.yaml", []string{"{cpu: 100m}", "{cpus: 100m}"}, `did you mean "cpu"?`},
		"signal":                {"v1.yaml", []string{"{memory.available: 5%", "{memory.availble: 5%"}, `did you mean "memory.available"?`},
		"threshold":             {"v1.yaml", []string{"memory.available: 5%", "memory.available: 500%"}, "want a percentage"},
		"soft without grace":    {"v1.yaml", []string{"evictionSoftGracePeriod: {memory.available: 1m}", "evictionSoftGracePeriod: {}"}, "has no evictionSoftGracePeriod"},
		"grace without soft":    {"v1.yaml", []string{"evictionSoft: {memory.available: 500Mi}", "evictionSoft: {}"}, "has no evictionSoft"},
		"image thresholds":      {"v1.yaml", []string{"LowThresholdPercent: 80", "LowThresholdPercent: 90"}, "want more than imageGCLowThresholdPercent"},
		"image threshold":       {"v1.yaml", []string{"HighThresholdPercent: 85", "HighThresholdPercent: 185"}, "want 0 to 100"},
		"no primary":            {"v1.yaml", []string{"{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}", "{networkCardIndex: 3, deviceIndex: 0, interfaceType: interface}"}, "want a primary interface"},
		"interface twice":       {"v1.yaml", []string{"{networkCardIndex: 2, deviceIndex: 1", "{networkCardIndex: 0, deviceIndex: 1"}, "card 0 has device 1 twice"},
		"interface type":        {"v1.yaml", []string{"efa-only}", "efa}"}, "interfaceType"},
		"tracking":              {"v1.yaml", []string{"udpTimeout: 30", "udpTimeout: 3"}, "want 30 to 60"},
		"group selector":        {"v1.yaml", []string{"{name: near}", "{name: near, id: pg-1}"}, "want either name or id"},
		"reservation id":        {"v1.yaml", []string{"cr-0123", "res-1"}, "want an id of a capacity reservation"},
		"owner of reservation":  {"v1.yaml", []string{`"123456789012"`, `"12"`}, "want an account of twelve digits"},
		"match criteria":        {"v1.yaml", []string{"targeted", "any"}, "want one of open, targeted"},
		"nested":                {"v1.yaml", []string{"nestedVirtualization: enabled", "nestedVirtualization: on"}, "nestedVirtualization"},
		"prefix count":          {"v1.yaml", []string{"ipPrefixCount: 2", "ipPrefixCount: -2"}, "want 0 or more"},
	} {
		_, err := nodeclass.Decode(file(t, c.file, c.replace...))
		var fault *nodeclass.FieldError
		if assert.ErrorAs(t, err, &fault, name) {
			assert.ErrorContains(t, err, c.want, name)
			assert.NotEmpty(t, fault.Object, name)
		}
	}
}

func TestDecodeNamesEveryFault(t *testing.T) {
	_, err := nodeclass.Decode(json.RawMessage(`{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "x"}, "spec": {"tag": {}, "userData": 1}}`))
	for _, want := range []string{"EC2NodeClass x: spec.tag:", "spec.userData:", "spec.amiSelectorTerms:", "spec.subnetSelectorTerms:", "spec.securityGroupSelectorTerms:", "spec: want either role"} {
		assert.ErrorContains(t, err, want)
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"template.yaml", "beta.yaml", "v1.yaml"} {
		f.Add([]byte(file(f, name)))
	}
	f.Add([]byte(`{"apiVersion":"karpenter.k8s.aws/v1","kind":"EC2NodeClass","metadata":{"name":"x"},"spec":{"kubelet":{"maxPods":99999999999}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := nodeclass.Decode(raw)
		if err == nil {
			require.NotEmpty(t, c.Name)
			require.NoError(t, c.Settings().Validate())
		}
		if c, err = nodeclass.DecodeProvider(raw); err == nil {
			require.NoError(t, c.Settings().Validate())
		}
	})
}

func ExampleDecode() {
	c, err := nodeclass.Decode(json.RawMessage(`{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"}, "spec": {
	  "amiSelectorTerms": [{"alias": "bottlerocket@latest"}], "role": "nodes",
	  "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}]}}`))
	fmt.Println(c.Name, c.Family, c.Metadata.HopLimit, err)

	_, err = nodeclass.Decode(json.RawMessage(`{"apiVersion": "karpenter.k8s.aws/v1alpha1", "kind": "AWSNodeTemplate", "metadata": {"name": "default"}, "spec": {
	  "subnetSelectors": {"a": "b"}, "subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}}}`))
	fmt.Println(err)
	// Output:
	// default Bottlerocket 1 <nil>
	// nodeclass: AWSNodeTemplate default: spec.subnetSelectors: no such field (did you mean "subnetSelector"?)
}

func ExampleDecodeProvider() {
	c, err := nodeclass.DecodeProvider(json.RawMessage(`{"subnetSelector": {"team": "blue"}, "securityGroupSelector": {"team": "blue"}}`))
	fmt.Println(c.Family, err)
	// Output: AL2 <nil>
}

func ExampleNodeClass_Settings() {
	c := nodeclass.NodeClass{Family: ec2.AL2, BlockDevices: []nodeclass.BlockDevice{{Device: "/dev/xvda", Bytes: 50 << 30}}}
	fmt.Println(c.Settings().Family, c.Settings().BlockDevices[0].Bytes>>30)
	// Output: AL2 50
}

func TestDecodeAuto(t *testing.T) {
	c, err := nodeclass.DecodeAuto([]byte(`{"apiVersion": "eks.amazonaws.com/v1", "kind": "NodeClass", "metadata": {"name": "batch"},
		"spec": {"ephemeralStorage": {"size": "120Gi"}, "of-tomorrow": 1}, "status": {"subnets": [{"id": "subnet-1", "zone": "eu-west-3b"}]}}`))
	require.NoError(t, err)
	assert.Equal(t, "batch", c.Name)
	assert.Equal(t, int64(120<<30), c.BlockDevices[0].Bytes)
	assert.Equal(t, []string{"eu-west-3b"}, c.Zones())
	_, err = nodeclass.DecodeAuto([]byte(`{"spec": {"ephemeralStorage": {"size": "large"}}}`))
	assert.ErrorContains(t, err, "spec.ephemeralStorage.size")
	_, err = nodeclass.DecodeAuto([]byte(`{"spec": {"ephemeralStorage": 5}}`))
	assert.Error(t, err)
}
