package simulate_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
	"github.com/joinery-sdk/joinery/instancetypes"
)

// Nodes of a reservation in the status of their class cost nothing more, so they stay under every policy, whatever is left of the
// reservation. What is left is for other nodes: the one that runs does not count against it again.
func TestReservedNodesOfAClassStay(t *testing.T) {
	market, err := pipeline.EC2Market("us-east-1")
	require.NoError(t, err)
	for count, moves := range map[string]int{"": 0, ", availableInstanceCount: 0": 0, ", availableInstanceCount: 1": 1, ", availableInstanceCount: 2": 2, ", availableInstanceCount: 3": 2} {
		m, err := manifests.Parse([]manifests.File{{Name: "in.yaml", Data: fmt.Appendf(nil, `apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: c}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: r, subnetSelectorTerms: [{tags: {a: b}}], securityGroupSelectorTerms: [{tags: {a: b}}], capacityReservationSelectorTerms: [{id: cr-1}]}
status: {capacityReservations: [{id: cr-1, instanceType: m5.xlarge, availabilityZone: us-east-1a%s}]}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      expireAfter: Never
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: c}
      requirements:
      - {key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [reserved, on-demand]}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s, budgets: [{nodes: "100%%"}]}
`, count)}}, pipeline.ReadOptions())
		require.NoError(t, err)
		s, _, err := pipeline.Snapshot(m, market)
		require.NoError(t, err)
		for name, objective := range policies() {
			x := &told{m, s}
			x.node(t, "own", "m5.xlarge", "reserved", 1, "1", "2Gi")
			x.s.Nodes[0].Labels[instancetypes.LabelReservationID] = "cr-1"
			c := simulate.Cluster(x.m, x.s, nil, fragment.Now())
			assert.True(t, c.Nodes[0].Priced, "%q", count)
			assert.Zero(t, c.Nodes[0].PricePerHour)
			assert.Empty(t, x.plan(t, giveback.Options{Objective: objective}).Commands, "%q: %s", count, name)

			for _, other := range []string{"a", "b"} {
				x.node(t, other, "m5.xlarge", "on-demand", 1, "3500m", "2Gi")
			}
			into := 0
			for _, command := range x.plan(t, giveback.Options{Objective: objective}).Commands {
				for _, n := range command.Nodes {
					assert.NotEqual(t, "own", n.Name, "%q: %s", count, name)
				}
				for _, n := range command.NewNodes {
					assert.Equal(t, "reserved", n.CapacityType)
					into++
				}
			}
			assert.Equal(t, moves, into, "%q: %s", count, name)
		}
	}
}
