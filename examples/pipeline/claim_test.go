package pipeline_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/examples/pipeline"
)

// A plan is bought from the cloud in memory: what it sells is what was planned, and a claim that is handed in twice buys
// once.
func TestAPlanIsBought(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2", "a.4 4 zone-b on-demand 0.2", "a.8 8 zone-a on-demand 0.5")
	packed := pack(t, market, anyPool+deployment("web", 6, spreadBy(zoneKey)+container("1")))
	nodes := packed.NewNodes()
	require.NotEmpty(t, nodes)
	cloud, err := memcloud.New(memcloud.Config{Types: nodes[0].Pool.Types})
	require.NoError(t, err)
	for i := range nodes {
		claim := pipeline.Claim(&nodes[i], "token-of-"+nodes[i].Name)
		require.NoError(t, claim.Validate())
		for range 2 {
			launch, err := cloud.Create(t.Context(), claim)
			require.NoError(t, err)
			assert.Equal(t, nodes[i].InstanceType.Name, launch.Type)
			assert.Equal(t, nodes[i].Zone, launch.Labels[corev1.LabelTopologyZone])
		}
	}
	instances, err := cloud.List(t.Context())
	require.NoError(t, err)
	assert.Len(t, instances, len(nodes))
}

// Where the planned offering has run out, an alternative that keeps every domain of the plan is bought; where nothing is
// left, the error says so.
func TestAlternativesAreBought(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2", "b.4 4 zone-a on-demand 0.3", "a.4 4 zone-b on-demand 0.2")
	packed := pack(t, market, anyPool+deployment("web", 1, "nodeSelector: {topology.kubernetes.io/zone: zone-a}\n"+container("3")))
	nodes := packed.NewNodes()
	require.Len(t, nodes, 1)
	var empty []memcloud.Pool
	for _, typ := range nodes[0].Pool.Types {
		for _, o := range typ.Offerings {
			if typ.Name == "a.4" {
				empty = append(empty, memcloud.Pool{Type: typ.Name, Offering: o.Requirements})
			}
		}
	}
	cloud, err := memcloud.New(memcloud.Config{Types: nodes[0].Pool.Types, Pools: empty})
	require.NoError(t, err)
	launch, err := cloud.Create(t.Context(), pipeline.Claim(&nodes[0], "one"))
	require.NoError(t, err)
	assert.Equal(t, "b.4", launch.Type)
	assert.Equal(t, "zone-a", launch.Labels[corev1.LabelTopologyZone])

	only := nodes[0]
	only.Alternatives = nil
	_, err = cloud.Create(t.Context(), pipeline.Claim(&only, "two"))
	require.ErrorIs(t, err, cloudprovider.ErrInsufficientCapacity)
	var detail *cloudprovider.Error
	require.True(t, errors.As(err, &detail))
	assert.NotEmpty(t, detail.Refused)
}

// Where the planned offering has run out, what is bought instead keeps within the pool's limits, whatever it is for each node of the plan.
func TestAlternativesKeepWithinLimits(t *testing.T) {
	const limited = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\nspec: {limits: {cpu: %d}, template: {spec: {nodeClassRef: {group: g.example.com, kind: C, name: c}}}}\n---\n"
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2", "b.4 4 zone-a on-demand 0.3", "c.8 8 zone-a on-demand 0.5")
	both, one := []string{"b.4", "c.8"}, []string{"b.4"}
	for _, c := range []struct {
		pool string
		want [][]string // by node
	}{
		{anyPool, [][]string{both, both}},
		{fmt.Sprintf(limited, 16), [][]string{both, both}},
		{fmt.Sprintf(limited, 15), [][]string{both, one}},
		{fmt.Sprintf(limited, 11), [][]string{one, one}},
		{fmt.Sprintf(limited, 7), [][]string{one}},
	} {
		packed := pack(t, market, c.pool+deployment("web", 2, container("3")))
		var got [][]string
		for _, n := range packed.NewNodes() {
			var types []string
			for _, a := range n.Alternatives {
				types = append(types, a.InstanceType)
			}
			got = append(got, types)
		}
		assert.Equal(t, c.want, got)
	}
}

// What pods ask of labels that neither type nor offering decides reaches the provider, and the node has the labels that were planned.
func TestClaimsAskForTheLabelsOfThePlan(t *testing.T) {
	text := `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec: {template: {metadata: {labels: {owner: shop}}, spec: {nodeClassRef: {group: g.example.com, kind: C, name: c}, requirements: [
  {key: team, operator: In, values: [blue, red]}]}}}
---
`
	for team, selector := range map[string]string{"blue": "", "red": "nodeSelector: {team: red}\n"} {
		packed := pack(t, catalogue(t, "a.4 4 zone-a on-demand 0.2", "b.4 4 zone-a on-demand 0.3"), text+deployment("web", 1, selector+container("1")))
		n := packed.NewNodes()[0]
		require.Equal(t, team, n.Labels["team"])
		require.NotEmpty(t, n.Alternatives)
		cloud, err := memcloud.New(memcloud.Config{Types: n.Pool.Types})
		require.NoError(t, err)
		claim := pipeline.Claim(&n, "one")
		launch, err := cloud.Create(t.Context(), claim)
		require.NoError(t, err)
		got := pipeline.InFlight(claim, launch.Instance)
		for key, value := range n.Labels {
			if key != "karpenter.sh/provisioner-name" {
				assert.Equal(t, value, got.Node().Labels[key], key)
			}
		}
	}
}
