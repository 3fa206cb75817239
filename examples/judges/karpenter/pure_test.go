package karpenter_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/examples/judges/karpenter"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
)

func TestInputIsLeftAlone(t *testing.T) {
	fresh := func() karpenter.Input {
		in := input(scenario.Diverse(50, 1), nil, pool("default"))
		in.Nodes = []*corev1.Node{node("b1", "zone-b", "4", func(n *corev1.Node) { n.Labels[karpv1.NodePoolLabelKey] = "default" })}
		in.Running = pods(1, "old", "1", func(p *corev1.Pod) { p.Spec.NodeName = "b1" })
		return in
	}
	in, before := fresh(), fresh()
	_, err := karpenter.Solve(t.Context(), in)
	require.NoError(t, err)
	assert.Equal(t, before, in)
}

func TestConcurrentCalls(t *testing.T) {
	in := input(scenario.Diverse(100, 1), scenario.Linear(50), pool("default"))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			got, err := karpenter.Solve(t.Context(), in)
			assert.NoError(t, err)
			assert.Equal(t, 100, got.Placed())
		})
	}
	group.Wait()
}

func TestMistakesAreReported(t *testing.T) {
	in := input(append(pods(1, "web", "1"), pods(1, "web", "1")...), nil, pool("default"), pool("default"))
	_, err := karpenter.Solve(t.Context(), in)
	require.ErrorContains(t, err, `pods[1]: a second pod "default/web-0"`)
	require.ErrorContains(t, err, `nodePools[1]: a second pool "default"`)
}

func TestAPoolWithoutTypesOpensNothing(t *testing.T) {
	all := pods(1, "web", "1")
	got, err := karpenter.Solve(t.Context(), input(all, nil, pool("default")))
	require.NoError(t, err)
	require.Len(t, got.Unplaced, 1)
	assert.Equal(t, namesOf(all), []types.NamespacedName{got.Unplaced[0].Pod})
}
