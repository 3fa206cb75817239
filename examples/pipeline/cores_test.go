package pipeline_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// Work is shared out among the cores; what comes of it is the same on any number of them.
func TestPlansDoNotDependOnCores(t *testing.T) {
	s := snapshot(t, deployments(3000, 600, true))
	daemon := func(name, cpu string, selector map[string]string) *appsv1.DaemonSet {
		ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: name}}
		ds.Spec.Template.Spec.NodeSelector = selector
		ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}
		return ds
	}
	s.DaemonSets = []*appsv1.DaemonSet{
		daemon("agent", "100m", nil), daemon("cache", "200m", map[string]string{corev1.LabelTopologyZone: "us-east-1a"}),
	}
	run := func(cores int) *plan.Plan {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		packed, err := plan.Make(t.Context(), s, &plan.Options{Packing: &binpack.Options{Effort: binpack.EffortFast}})
		require.NoError(t, err)
		return packed
	}
	want := run(1)
	require.Len(t, want.Bindings(), 3000)
	require.Greater(t, len(want.Problem.Shapes), 300)
	for _, cores := range []int{2, 5} {
		got := run(cores)
		require.Equal(t, want.Problem.Shapes, got.Problem.Shapes)
		require.Equal(t, want.Packing, got.Packing)
		require.Len(t, got.Unplaced(), len(want.Unplaced()))
		require.Equal(t, want.Bindings(), got.Bindings())
		nodes := got.NewNodes()
		require.Len(t, nodes, len(want.NewNodes()))
		for i, n := range want.NewNodes() {
			require.Equal(t, n.Labels, nodes[i].Labels)
			require.Equal(t, n.Alternatives, nodes[i].Alternatives)
		}
	}
}
