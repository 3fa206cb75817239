package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// 0 -> 5 -> 0: what Karpenter orders is launched once each, joins, is used, and is given back when it is empty.
func TestInflate(t *testing.T) {
	app := inflate("web", 0, "500m")
	begin(t, pool("default"), app)
	scale(t, app, 5)
	now := running(t, 5)
	assert.Equal(t, counted{5, 5, 5, 5, 5}, now)
	var claims karpv1.NodeClaimList
	require.NoError(t, api.List(t.Context(), &claims))
	for _, m := range machines(t) {
		i := slices.IndexFunc(claims.Items, func(c karpv1.NodeClaim) bool { return string(c.UID) == m.Token })
		require.GreaterOrEqual(t, i, 0, "the token of %s is the UID of a claim", m.ID)
		assert.Equal(t, m.ID, claims.Items[i].Status.ProviderID)
		assert.Equal(t, m.Type, claims.Items[i].Labels[corev1.LabelInstanceTypeStable])
	}
	scale(t, app, 0)
	reach(t, "nothing is left", func(c counted) bool { return c == counted{} })
}

// Nodes that have become too large for their pods are replaced by fewer and cheaper ones.
func TestConsolidation(t *testing.T) {
	big, small := inflate("big", 3, "3"), inflate("small", 3, "200m")
	begin(t, pool("default", onDemand), big, small)
	running(t, 6)
	before := machines(t)
	require.Len(t, before, 3)
	require.NoError(t, api.Delete(t.Context(), big))
	reach(t, "every node is replaced by a smaller one", func(c counted) bool {
		list, err := under.machines(t.Context())
		return err == nil && c == counted{3, 3, 3, 3, 3} && !slices.ContainsFunc(list, func(m cloudprovider.Instance) bool {
			return slices.ContainsFunc(before, func(b cloudprovider.Instance) bool { return b.ID == m.ID })
		})
	})
	for _, m := range machines(t) {
		assert.Negative(t, m.Allocatable.Cpu().Cmp(*before[0].Allocatable.Cpu()), "%s instead of %s", m.Type, before[0].Type)
	}
	patch := client.MergeFrom(small.DeepCopy())
	small.Spec.Template.Spec.Affinity = nil // now they may share a node
	require.NoError(t, api.Patch(t.Context(), small, patch))
	reach(t, "one node is left", func(c counted) bool { return c == counted{3, 3, 1, 1, 1} })
}

// What the cloud has no more of is not planned with for a while, and then it is.
func TestInsufficientCapacity(t *testing.T) {
	app := inflate("web", 0, "500m")
	begin(t, pool("first", only("m6a.large", 10)), pool("second", only("r6a.xlarge", 1)), app)
	require.NoError(t, under.sell(t.Context(), "m6a.large", false))
	scale(t, app, 2)
	running(t, 2)
	for _, m := range machines(t) {
		assert.Equal(t, "r6a.xlarge", m.Type)
	}
	require.NoError(t, under.sell(t.Context(), "m6a.large", true))
	time.Sleep(withheld)
	scale(t, app, 4)
	running(t, 4)
	types := map[string]int{}
	for _, m := range machines(t) {
		types[m.Type]++
	}
	assert.Positive(t, types["m6a.large"], "%v", types)
}

// The cloud takes a machine: its pods run elsewhere, and nothing of it is left.
func TestInterruption(t *testing.T) {
	app := inflate("web", 2, "500m")
	begin(t, pool("default"), app)
	running(t, 2)
	gone := machines(t)[0].ID
	require.NoError(t, under.interrupt(t.Context(), gone))
	reach(t, "another machine is there", func(c counted) bool {
		list, err := under.machines(t.Context())
		return err == nil && c == counted{2, 2, 2, 2, 2} && !slices.ContainsFunc(list, func(m cloudprovider.Instance) bool { return m.ID == gone })
	})
}

// A machine that no claim owns, as after a launch whose answer came too late, is given back.
func TestAMachineOfNobody(t *testing.T) {
	begin(t)
	types, err := under.provider.InstanceTypes(t.Context(), nodepool.NodePool{})
	require.NoError(t, err)
	_, err = under.provider.Create(t.Context(), cloudprovider.NodeClaim{
		Name: "nobody", Token: fmt.Sprintf("token-of-%s", t.Name()), Candidates: cloudprovider.CandidatesOf(types, requirements.Set{}, nil, requirements.Keys{})[:1],
	})
	require.NoError(t, err)
	require.NotEmpty(t, machines(t))
}
