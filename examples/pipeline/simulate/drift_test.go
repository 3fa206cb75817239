package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/drift"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
)

const driftPool = `apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: node
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {cluster: shop}}]
  securityGroupSelectorTerms: [{tags: {cluster: shop}}]
status:
  amis:
  - {id: ami-22222222222222222, name: new, requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    metadata: {labels: {team: shop}}
    spec:
      expireAfter: Never
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: Never, budgets: [{nodes: "100%%"}]}
---
apiVersion: v1
kind: Node
metadata:
  name: node-a
  creationTimestamp: "2026-01-13T12:00:00Z"
  labels: {karpenter.sh/nodepool: default, team: shop, node.kubernetes.io/instance-type: m5.large, topology.kubernetes.io/zone: us-east-1a, karpenter.sh/capacity-type: on-demand, kubernetes.io/arch: amd64, kubernetes.io/os: linux, kubernetes.io/hostname: node-a}
spec: {providerID: "aws:///us-east-1a/i-1"}
status: {allocatable: {cpu: 1900m, memory: 7Gi, pods: "29"}, capacity: {cpu: "2", memory: 8Gi, pods: "29"}}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: default-a, labels: {karpenter.sh/nodepool: default}, annotations: {karpenter.sh/nodepool-hash: "%s", karpenter.sh/nodepool-hash-version: %s}}
spec:
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
  requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]
status: {nodeName: node-a, imageID: %s, providerID: "aws:///us-east-1a/i-1"}
`

// drifted reads the manifests with these of the claim, and has the node given back by drift where it has drifted.
func drifted(t *testing.T, hash, version, image string) (deprovision.Cluster, *simulate.Simulator) {
	t.Helper()
	text := fmt.Sprintf(driftPool, hash, version, image)
	m, err := manifests.Parse([]manifests.File{{Name: "all.yaml", Data: []byte(text)}}, &manifests.Options{Classes: pipeline.NodeClassDecoders()})
	require.NoError(t, err)
	market, err := pipeline.EC2Market("us-east-1")
	require.NoError(t, err)
	s, _, err := pipeline.Snapshot(m, market)
	require.NoError(t, err)
	sim, nominated, err := simulate.New(s)
	require.NoError(t, err)
	return simulate.Cluster(m, s, nominated, fragment.Now()), sim
}

func TestDriftFromManifests(t *testing.T) {
	c, _ := drifted(t, "1", "v3", "ami-22222222222222222")
	now, ok := drift.Hash(&c.Pools[0])
	require.True(t, ok)
	for name, x := range map[string]struct {
		hash, version, image string
		want, notes          []string
	}{
		"as bought":       {now, "v3", "ami-22222222222222222", nil, nil},
		"an older image":  {now, "v3", "ami-11111111111111111", []string{"image ami-11111111111111111 is not one that new nodes get now"}, nil},
		"older settings":  {"1", "v3", "ami-22222222222222222", []string{"the settings of pool default have changed (hash 1, now " + now + ")"}, nil},
		"an older hasher": {"1", "v2", "ami-22222222222222222", nil, []string{`it is not known whether the settings of pool default have changed: the node's hash has version "v2", the pool's has "v3"`}},
	} {
		c, sim := drifted(t, x.hash, x.version, x.image)
		assert.Equal(t, x.want, c.Nodes[0].Drifted, name)
		r := planned(t, c, sim)
		assert.Equal(t, len(x.want), len(r.Commands), name)
		assert.Equal(t, x.notes, r.Verdicts[0].Notes, name)
		if len(r.Commands) > 0 {
			assert.Equal(t, eligibility.Drift, r.Commands[0].Method, name)
			assert.Equal(t, x.want[0], r.Commands[0].Why, name)
		}
	}
}

// What a cloud says of its machines is a reason of drift like any other.
func TestDriftFromTheCloud(t *testing.T) {
	c, sim := drifted(t, "1", "v2", "ami-22222222222222222")
	since := time.Date(2026, 1, 14, 0, 0, 0, 0, time.UTC)
	told := simulate.Drifted(c, map[string]cloudprovider.Drift{"node-a": {Reason: "SubnetDrift", Detail: "subnet subnet-1 is not selected any more"}, "other": {Reason: "AMIDrift"}}, since)
	assert.Empty(t, c.Nodes[0].Drifted, "the argument is left alone")
	assert.Equal(t, []string{"SubnetDrift: subnet subnet-1 is not selected any more"}, told.Nodes[0].Drifted)
	assert.Equal(t, since, told.Nodes[0].DriftedSince)
	assert.Empty(t, planned(t, c, sim).Commands)
	assert.Len(t, planned(t, told, sim).Commands, 1)
}

// A claim is what was bought. Others write into the labels of a node, and settings of a pool change: neither is drift, a price, or an end.
func TestClaimsDecide(t *testing.T) {
	const text = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      expireAfter: 24h
      terminationGracePeriod: 1h
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}, {key: team, operator: In, values: [shop]}]
---
apiVersion: v1
kind: Node
metadata:
  name: node-a
  creationTimestamp: "2026-01-01T12:00:00Z"
  labels: {karpenter.sh/nodepool: default, team: other, node.kubernetes.io/instance-type: relabelled, topology.kubernetes.io/zone: hall-7, karpenter.sh/capacity-type: leased}
spec: {providerID: "aws:///us-east-1a/i-1"}
status: {allocatable: {cpu: 1900m, memory: 7Gi, pods: "29"}, capacity: {cpu: "2", memory: 8Gi, pods: "29"}}
---
apiVersion: %s
kind: NodeClaim
metadata:
  name: default-a
  creationTimestamp: "2026-01-01T12:00:00Z"
  labels: {karpenter.sh/nodepool: default, team: shop, node.kubernetes.io/instance-type: m5.large, topology.kubernetes.io/zone: us-east-1a, karpenter.sh/capacity-type: on-demand}
spec:
  %s
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
  requirements: []
status: {nodeName: node-a, providerID: "aws:///us-east-1a/i-1"}
`
	market, err := pipeline.EC2Market("us-east-1")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		version, expires string
		ends             bool
	}{
		"never": {"karpenter.sh/v1", "expireAfter: Never", false}, "as an API server has it": {"karpenter.sh/v1", "", true},
		"the pool's, as of old": {"karpenter.sh/v1beta1", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			given := strings.ReplaceAll(fmt.Sprintf(text, c.version, c.expires), "  \n", "")
			if c.version != "karpenter.sh/v1" {
				given = strings.ReplaceAll(given, "{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n  requirements: []", "{name: default}\n  requirements: []")
			}
			m, err := manifests.Parse([]manifests.File{{Name: "all.yaml", Data: []byte(given)}}, &manifests.Options{Classes: pipeline.NodeClassDecoders()})
			require.NoError(t, err)
			s, _, err := pipeline.Snapshot(m, market)
			require.NoError(t, err)
			n := simulate.Cluster(m, s, nil, fragment.Now()).Nodes[0]
			assert.Empty(t, n.Drifted)
			assert.True(t, n.Priced)
			assert.Equal(t, []string{"m5.large", "us-east-1a", "on-demand"}, []string{n.InstanceType, n.Zone, n.CapacityType})
			_, ends := n.ExpiresAt()
			assert.Equal(t, c.ends, ends)
			assert.Equal(t, c.version == "karpenter.sh/v1", n.Claim.Decides)
		})
	}
}
