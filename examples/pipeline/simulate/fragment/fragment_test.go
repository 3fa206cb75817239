package fragment_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
)

// No node holds more than it has, and constraints hold before anything is scaled down.
func TestNodesAreNotOverfull(t *testing.T) {
	c, err := fragment.Generate(fragment.Options{Nodes: 30, Constrained: true})
	require.NoError(t, err)
	cpu := map[string]int64{}
	for _, p := range c.Snapshot.Pods {
		cpu[p.Spec.NodeName] += p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	}
	used := 0
	for _, n := range c.Snapshot.Nodes {
		assert.LessOrEqual(t, cpu[n.Name], n.Status.Allocatable.Cpu().MilliValue(), n.Name)
		assert.NotEmpty(t, n.Labels[corev1.LabelInstanceTypeStable])
		if cpu[n.Name] > 0 {
			used++
		}
	}
	assert.Greater(t, used, 20)
}

func ExampleGenerate() {
	a, _ := fragment.Generate(fragment.Options{Nodes: 10, Seed: 7})
	b, _ := fragment.Generate(fragment.Options{Nodes: 10, Seed: 7})
	fmt.Println(len(a.Snapshot.Nodes), len(a.Snapshot.Pods) > 50, len(a.Snapshot.Pods) == len(b.Snapshot.Pods))
	// Output: 10 true true
}
