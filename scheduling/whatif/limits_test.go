package whatif_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// stocked is a cluster of nodes with a pod each, of a type of which no more can be bought.
func stocked(nodes ...string) (scheduling.Snapshot, []*corev1.Pod) {
	full := instancetypes.Offer("z1", "on-demand", 1).Stock("block", 0)
	typ := instancetypes.New("big", nil, corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi")}, full)
	pool := scheduling.Pool{NodePool: nodepool.New("default"), Types: []instancetypes.InstanceType{typ}}
	s := scheduling.Snapshot{Pools: []scheduling.Pool{pool}}
	for _, name := range nodes {
		s.Nodes = append(s.Nodes, typ.Node(name, full, pool.PoolLabels()))
		s.Pods = append(s.Pods, pod("p"+name, name, "5"))
	}
	return s, s.Pods
}

// What a removed node was bought by can be bought once more, only if the question says so, and only
// while no other node that is removed or leaving frees the same.
func TestFreed(t *testing.T) {
	s, pods := stocked("a", "b")
	c, err := whatif.Compile(s, nil)
	require.NoError(t, err)
	ask := func(c *whatif.Cluster, node string, pods []*corev1.Pod, freed bool) whatif.Answer {
		return c.Ask(t.Context(), whatif.Question{Remove: []string{node}, Pods: pods, MaxNodes: 1, Freed: freed, Explain: true})
	}
	assert.False(t, func() bool { a := ask(c, "a", pods[:1], false); return a.OK() }())
	first := ask(c, "a", pods[:1], true)
	require.True(t, first.OK(), first.Why)
	assert.Equal(t, []string{"stock block is full"}, first.Freed)
	require.Len(t, first.Bought, 1)
	again := ask(c, "a", pods[:1], true)
	assert.Equal(t, first.Bought, again.Bought, "a question changes nothing")
	for _, after := range []*whatif.Cluster{first.After(), first.After().Rebase()} {
		second := ask(after, "b", pods[1:], true)
		assert.True(t, second.OK(), second.Why)
		lost := ask(after, "b", pods[1:], false)
		assert.False(t, lost.OK())
	}

	gone := ask(c, "a", nil, false) // its pod ends
	require.True(t, gone.OK())
	for _, after := range []*whatif.Cluster{gone.After(), gone.After().Rebase()} {
		waits := ask(after, "b", pods[1:], true)
		require.False(t, waits.OK())
		assert.Equal(t, "node a, which is being removed, frees the same", waits.Why)
	}

	s, pods = stocked("a", "b")
	s.Pods = append(s.Pods, pod("q", "", "6"))
	c, err = whatif.Compile(s, nil)
	require.NoError(t, err)
	rival := ask(c, "a", pods[:1], true)
	require.False(t, rival.OK())
	assert.Equal(t, "pod shop/q has no place, and would take what is bought", rival.Why)
}
