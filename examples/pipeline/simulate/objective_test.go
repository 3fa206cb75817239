package simulate_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/deprovision"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
)

// planFor is the plan of a cluster with the costs of the objective.
func planFor(t *testing.T, x *told, o *plan.Objective) giveback.Result {
	t.Helper()
	sim, nominated, err := simulate.NewFor(x.s, &plan.Options{Objective: o})
	require.NoError(t, err)
	r, err := giveback.Make(t.Context(), simulate.Counted(simulate.Cluster(x.m, x.s, nominated, fragment.Now()), o), sim, nil)
	require.NoError(t, err)
	return r
}

// A node that was bought because the objective says so is not given back for the price alone, and what is shown stays the price.
func TestTheSameObjectiveAsProvisioning(t *testing.T) {
	slow := &plan.Objective{Factors: []plan.Factor{{Match: requirements.MustOf(requirements.In("karpenter.k8s.aws/instance-family", "c4")), Times: 1.3}}}
	x := tell(t, families("c4, c5"), onDemand)
	x.node(t, "a", "c5.4xlarge", "on-demand", 10, "1500m", "2Gi")
	assert.Empty(t, planFor(t, x, slow).Commands)

	perNode := &plan.Objective{PerNode: 0.5}
	x = tell(t, families("m5"), onDemand)
	for _, name := range []string{"a", "b", "c"} {
		x.node(t, name, "m5.large", "on-demand", 1, "1500m", "6Gi")
	}
	assert.Empty(t, planFor(t, x, nil).Commands, "one large node costs as much as three small ones")
	r := planFor(t, x, perNode)
	require.NotEmpty(t, r.Commands)
	gone, bought := 0, 0
	for _, cmd := range r.Commands {
		gone, bought = gone+len(cmd.Nodes), bought+len(cmd.NewNodes)
		saved := deprovision.Price(0)
		for _, n := range cmd.Nodes {
			saved += n.PricePerHour
		}
		for _, n := range cmd.NewNodes {
			saved -= n.PricePerHour
			assert.Equal(t, n.PricePerHour+deprovision.Dollars(0.5), n.CostPerHour)
		}
		assert.Equal(t, saved, cmd.SavingsPerHour, "prices that are shown are prices")
	}
	assert.Less(t, bought, gone, "fewer licences")
}

// Interruption weighs on spot nodes: what is saved by moving there is less than what it counts for.
func TestInterruptionCounts(t *testing.T) {
	x := tell(t, families("m5"))
	x.node(t, "a", "m5.xlarge", "on-demand", 3, "1", "3Gi")
	r := planFor(t, x, nil)
	require.Len(t, r.Commands, 1)
	assert.Equal(t, "spot", r.Commands[0].NewNodes[0].CapacityType)
	assert.Empty(t, planFor(t, x, &plan.Objective{Interruption: 5}).Commands)
}

// withGPU makes the pods of a node ask for a GPU each.
func withGPU(x *told, node string) {
	for _, p := range x.s.Pods {
		if p.Spec.NodeName == node {
			p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1")
		}
	}
}

// No question is asked about a full node with GPUs, because no purchase holds its pods for less.
func TestGPUsAreWorthSomething(t *testing.T) {
	x := tell(t, families("m5, g4dn"), onDemand)
	x.node(t, "a", "g4dn.12xlarge", "on-demand", 4, "1", "2Gi")
	x.node(t, "b", "m5.xlarge", "on-demand", 3, "1", "2Gi")
	withGPU(x, "a")
	sim, nominated, err := simulate.New(x.s)
	require.NoError(t, err)
	c := simulate.Cluster(x.m, x.s, nominated, fragment.Now())
	least := map[string]deprovision.Price{}
	for i := range c.Nodes {
		least[c.Nodes[i].Name()] = sim.Bound(giveback.Question{Remove: []string{c.Nodes[i].Name()}, Pods: c.Nodes[i].Reschedulable()})
	}
	assert.Greater(t, least["a"].Dollars(), 1.5, "four GPUs")
	assert.Less(t, least["b"].Dollars(), 0.2)
	for _, cmd := range planned(t, c, sim).Commands {
		for _, n := range cmd.NewNodes {
			assert.Contains(t, n.InstanceType, "g4dn", "only the GPUs are too many CPUs")
		}
	}
}

// What a plan buys is asked for as planned, with the alternatives behind.
func TestClaim(t *testing.T) {
	x := tell(t, families("m5"), onDemand)
	x.node(t, "a", "m5.4xlarge", "on-demand", 3, "1", "3Gi")
	n := x.plan(t, giveback.Options{}).Commands[0].NewNodes[0]
	claim, err := simulate.Claim(x.s, &n, "token-1")
	require.NoError(t, err)
	assert.Equal(t, []string{n.Name, "token-1", "default"}, []string{claim.Name, claim.Token, claim.Pool})
	assert.Equal(t, n.InstanceType, claim.Candidates[0].Type)
	assert.Len(t, claim.Candidates, 1+len(n.Alternatives))
	assert.True(t, claim.Candidates[0].Offering.Get(corev1.LabelTopologyZone).Contains("us-east-1a"))
	cpu := claim.Requests[corev1.ResourceCPU]
	assert.Equal(t, "3", cpu.String())

	n.Labels = maps.Clone(n.Labels)
	n.Labels["team"] = "blue"
	x.s.Pools[0].Limits = corev1.ResourceList{corev1.ResourceCPU: *claim.Requests.Cpu()}
	claim, err = simulate.Claim(x.s, &n, "token-2")
	require.NoError(t, err)
	assert.Equal(t, "blue", claim.Requirements.Labels()["team"], "what pods ask for and the cloud does not know")
	assert.False(t, claim.Requirements.Has(corev1.LabelInstanceTypeStable), "the candidates say it")
	assert.Len(t, claim.Candidates, 1, "larger ones would break the limits")
	require.NoError(t, claim.Validate())

	n.Pool = "other"
	_, err = simulate.Claim(x.s, &n, "token-2")
	require.EqualError(t, err, `simulate: node `+n.Name+` is of pool "other", which the snapshot does not have`)
	n.Pool, n.InstanceType = "default", "m9.huge"
	_, err = simulate.Claim(x.s, &n, "token-3")
	require.ErrorContains(t, err, `pool "default" has no offering of m9.huge in us-east-1a as on-demand`)
}

// A controller that has objects, and no manifests, makes a cluster of them.
func ExampleObjects_Cluster() {
	c, err := fragment.Generate(fragment.Options{Nodes: 2, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	live := c.Snapshot // nodes, pods, pools with their types
	claims := []nodeclaim.NodeClaim{{NodeName: "node-00000", LastPodEvent: fragment.Now()}}
	cluster := simulate.Objects{NodeClaims: claims}.Cluster(live, nil, fragment.Now())
	list, err := deprovision.Rank(cluster, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range list {
		fmt.Printf("%s: $%.3f an hour\n", n.Name, n.PricePerHour.Dollars())
	}
	// Output:
	// node-00001: $2.040 an hour
	// node-00000: $2.040 an hour
}
