package nodeclaim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
)

func fromYAML(t *testing.T, text string) (nodeclaim.NodeClaim, error) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	return nodeclaim.Decode(data)
}

func TestNodeClaim(t *testing.T) {
	c, err := fromYAML(t, `
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: default-x, labels: {karpenter.sh/nodepool: default}, creationTimestamp: "2026-03-01T10:00:00Z"}
spec:
  expireAfter: 720h
  terminationGracePeriod: 1h
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
  startupTaints: [{key: agent, effect: NoSchedule}]
  requirements:
  - {key: karpenter.sh/nodepool, operator: In, values: [default]}
  - {key: beta.kubernetes.io/instance-type, operator: In, values: [a, b], minValues: 2}
  resources: {requests: {cpu: 1150m, pods: "5"}}
status:
  allocatable: {cpu: 1930m}
  capacity: {cpu: "2"}
  conditions:
  - {type: Launched, status: "True", reason: Launched, message: m, lastTransitionTime: "2026-03-01T10:00:10Z", observedGeneration: 1}
  - {type: Drifted, status: "False"}
  imageID: ami-1
  lastPodEventTime: "2026-03-01T12:00:00Z"
  nodeName: n1
  providerID: aws:///a/i-1
  later: [1]
`)
	require.NoError(t, err)
	assert.Equal(t, "default", c.Pool)
	assert.Equal(t, "karpenter.sh/nodepool in (default), node.kubernetes.io/instance-type in (a,b)", c.Requirements.String())
	assert.Equal(t, map[string]int{"node.kubernetes.io/instance-type": 2}, c.MinValues)
	assert.Equal(t, nodepool.NodeClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}, c.NodeClass)
	assert.Equal(t, 720*time.Hour, *c.ExpireAfter)
	assert.Equal(t, time.Hour, *c.TerminationGracePeriod)
	assert.Equal(t, "n1 aws:///a/i-1 ami-1", c.NodeName+" "+c.ProviderID+" "+c.ImageID)
	assert.Equal(t, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), c.LastPodEvent.UTC())
	assert.Equal(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC), c.Metadata.CreationTimestamp.UTC())
	assert.True(t, c.Is(nodeclaim.Launched))
	assert.False(t, c.Is(nodeclaim.Drifted))
	assert.False(t, c.Is(nodeclaim.Registered))
	launched := meta.FindStatusCondition(c.Conditions, nodeclaim.Launched)
	require.NotNil(t, launched)
	assert.Equal(t, "m", launched.Message)
}

func TestMachine(t *testing.T) {
	c, err := fromYAML(t, `
apiVersion: karpenter.sh/v1alpha5
kind: Machine
metadata: {name: m, labels: {karpenter.sh/provisioner-name: old}}
spec:
  machineTemplateRef: {apiVersion: karpenter.k8s.aws/v1alpha1, kind: AWSNodeTemplate, name: default}
  kubelet: {maxPods: 20}
`)
	require.NoError(t, err)
	assert.Equal(t, "old", c.Pool)
	assert.Equal(t, "karpenter.k8s.aws", c.NodeClass.Group)
	assert.Nil(t, c.ExpireAfter)
}

func TestErrors(t *testing.T) {
	_, err := fromYAML(t, `
apiVersion: karpenter.sh/v1alpha5
kind: Machine
metadata: {}
spec:
  nodeClassRef: {name: x}
  machineTemplateRef: {}
  expireAfter: soon
  requirements: [{key: a, operator: Exists, minValues: 1}]
  resources: {requests: {cpu: -1}}
  taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}]
  image: x
`)
	assert.EqualError(t, err, `nodepool: Machine: spec.image: unknown field "image"
nodepool: Machine: metadata.name: the object needs a name
nodepool: Machine: spec.requirements[0].minValues: unknown field "minValues": only pools and claims since karpenter.sh/v1beta1 have it
nodepool: Machine: spec.taints[1]: taint a:NoSchedule is already listed (spec.taints[0])
nodepool: Machine: spec.resources.requests.cpu: -1: must not be negative
nodepool: Machine: spec.expireAfter: "soon": want hours, minutes and seconds such as 1h30m, or Never
nodepool: Machine: spec.nodeClassRef: unknown field: did you mean "spec.machineTemplateRef"?
nodepool: Machine: spec.machineTemplateRef.name: the reference needs a name`)
	_, err = nodeclaim.Decode([]byte(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}`))
	assert.EqualError(t, err, `nodepool: Pod a: apiVersion: "v1" "Pod" is neither a Machine of karpenter.sh/v1alpha5 nor a NodeClaim of karpenter.sh/v1beta1 or karpenter.sh/v1`)
	for _, text := range []string{"", "null", "[]"} {
		_, err = nodeclaim.Decode([]byte(text))
		assert.Error(t, err, text)
	}
}

// FuzzDecode reads anything without panic, and a claim that is accepted has a name and a possible set.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"karpenter.sh/v1","kind":"NodeClaim","metadata":{"name":"a"},"spec":{"requirements":[{"key":"a","operator":"Gt","values":["1"]}]},"status":{"conditions":[{"type":"Ready"}]}}`))
	f.Add([]byte(`{"apiVersion":"karpenter.sh/v1alpha5","kind":"Machine","metadata":{"name":"a"},"spec":{"machineTemplateRef":{"name":"b"},"expireAfter":"Never"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := nodeclaim.Decode(data); err == nil {
			require.NotEmpty(t, c.Name)
			require.False(t, c.Requirements.IsImpossible())
		}
	})
}
