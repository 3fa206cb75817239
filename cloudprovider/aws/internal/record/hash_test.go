package record_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/record"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func hashCases() ([]nodeclass.NodeClass, []cloudprovider.NodeClaim) {
	yes, n := true, int32(7)
	full := nodeclass.NodeClass{
		Kind: "EC2NodeClass", APIVersion: "karpenter.k8s.aws/v1", Name: "full", Family: ec2.Bottlerocket, AMIs: []nodeclass.Term{{Alias: "bottlerocket@latest"}},
		PlacementGroup: &nodeclass.PlacementGroup{Name: "racks"}, Role: "node", UserData: "a < b & \"c\" > d", Context: "ctx", Tags: map[string]string{"team": "blue", "a": "b"},
		BlockDevices: []nodeclass.BlockDevice{{Device: "/dev/xvda", Root: true, Bytes: 20 << 30, Type: "gp3", IOPS: 3000, Throughput: 125, InitializationRate: 100, KMSKeyID: "key", Snapshot: "snap-1", Encrypted: &yes, DeleteOnTermination: &yes}},
		RAID0:        true, Metadata: nodeclass.MetadataOptions{Endpoint: "enabled", IPv6: "disabled", HopLimit: 2, Tokens: "required"}, DetailedMonitoring: true, AssociatePublicIP: &yes, IPPrefixCount: &n,
		NetworkInterfaces: []nodeclass.NetworkInterface{{Card: 0, Device: 0, Type: "interface"}, {Card: 1, Device: 1, Type: "efa-only"}}, ConnectionTracking: &nodeclass.ConnectionTracking{TCPEstablished: 60, UDP: 30},
		NestedVirtualization: "enabled",
		Kubelet: &nodeclass.Kubelet{
			ClusterDNS: []string{"10.0.0.10"}, MaxPods: &n, KubeReserved: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("1Gi")},
			EvictionHard: map[string]string{"memory.available": "5%"}, EvictionMaxPodGracePeriod: &n, ImageGCHighThresholdPercent: &n, CPUCFSQuota: &yes,
		},
	}
	classes := []nodeclass.NodeClass{
		{},
		{Name: "plain", Family: ec2.AL2023, Role: "node", AMIs: []nodeclass.Term{{Alias: "al2023@latest"}}, Metadata: nodeclass.MetadataOptions{Endpoint: "enabled", IPv6: "disabled", HopLimit: 1, Tokens: "required"}},
		{Kind: "AWSNodeTemplate", Family: ec2.AL2, LaunchTemplate: "theirs", InstanceProfile: "nodes"},
		full,
	}
	offering := requirements.MustParse("karpenter.sh/capacity-type=spot, topology.kubernetes.io/zone=us-east-1a")
	claims := []cloudprovider.NodeClaim{
		{Name: "a", Token: "t", Candidates: []cloudprovider.Candidate{{Type: "m5.large", Offering: offering}}},
		{
			Name: "b", Token: "u", Pool: "web", NodeClass: nodepool.NodeClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "full"}, Requirements: requirements.MustParse("kubernetes.io/arch in (amd64, arm64), team=blue"),
			Requests:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("1Gi"), "vpc.amazonaws.com/efa": resource.MustParse("1")},
			Candidates: []cloudprovider.Candidate{{Type: "m5.large", Offering: offering}, {Type: "c5.large", Offering: offering}}, Labels: map[string]string{"team": "blue", "app": "shop"},
			Taints: []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}, StartupTaints: []corev1.Taint{{Key: "s", Effect: corev1.TaintEffectNoExecute}},
		},
	}
	return classes, claims
}

// Machines carry these hashes for years. The file was written by the first version and is never written again: if this fails, machines of every user
// would drift.
func TestHashesStayValid(t *testing.T) {
	want, err := os.ReadFile("testdata/hashes.golden")
	require.NoError(t, err)
	classes, claims := hashCases()
	var b strings.Builder
	for i, c := range classes {
		fmt.Fprintf(&b, "class %d %s\n", i, record.ClassHash(c))
	}
	for i, c := range claims {
		fmt.Fprintf(&b, "claim %d %s\n", i, record.Identity(c))
	}
	assert.Equal(t, string(want), b.String())
}

// What is looked at decides on the shape, what is not does not.
func TestShape(t *testing.T) {
	_, claims := hashCases()
	c := claims[1]
	want := record.Shape(c)
	other := c.Clone()
	other.Name, other.Token, other.Requests = "x", "y", nil
	other.Candidates[0], other.Candidates[1] = other.Candidates[1], other.Candidates[0]
	assert.Equal(t, want, record.Shape(other))
	assert.NotEqual(t, record.Identity(c), record.Identity(other))
	assert.NotEqual(t, want, record.Shape(c, "vpc.amazonaws.com/efa"))
	for name, change := range map[string]func(c *cloudprovider.NodeClaim){
		"label": func(c *cloudprovider.NodeClaim) { c.Labels["team"] = "red" }, "taint": func(c *cloudprovider.NodeClaim) { c.Taints = nil },
		"pool": func(c *cloudprovider.NodeClaim) { c.Pool = "db" }, "candidates": func(c *cloudprovider.NodeClaim) { c.Candidates = c.Candidates[:1] },
		"requirements": func(c *cloudprovider.NodeClaim) { c.Requirements = requirements.Set{} },
	} {
		changed := c.Clone()
		change(&changed)
		assert.NotEqual(t, want, record.Shape(changed), name)
	}
}
