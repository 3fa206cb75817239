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
	"github.com/joinery-sdk/joinery/examples/pipeline"
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
	run := func(cores int) *pipeline.Packed {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		packed, err := pipeline.Run(s, nil, &binpack.Options{Effort: binpack.EffortFast})
		require.NoError(t, err)
		return packed
	}
	want := run(1)
	require.Len(t, want.Result.Order, 3000)
	require.Greater(t, len(want.Problem.Shapes), 300)
	for _, cores := range []int{2, 5} {
		got := run(cores)
		require.Equal(t, want.Problem.Shapes, got.Problem.Shapes)
		require.Equal(t, want.Plan, got.Plan)
		require.Equal(t, want.Result.Unplaced, got.Result.Unplaced)
		for i := range want.Result.Order {
			require.Same(t, want.Result.Order[i], got.Result.Order[i])
		}
		require.Len(t, got.Result.Bins, len(want.Result.Bins))
		for i, b := range want.Result.Bins {
			require.Equal(t, [3]int{b.Bin, b.Shape, b.Offering}, [3]int{got.Result.Bins[i].Bin, got.Result.Bins[i].Shape, got.Result.Bins[i].Offering})
			for k := range b.Pods {
				require.Same(t, b.Pods[k], got.Result.Bins[i].Pods[k])
			}
		}
	}
}
