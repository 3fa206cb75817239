package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/examples/operator/sandbox"
)

// A CapacityQuota of two pools holds for both together: with three nodes allowed, no fourth is bought for pods of either, and once the quota is
// gone the others run, too.
func TestQuotaOverTwoPools(t *testing.T) {
	apart := func(name string) func(*corev1.PodTemplateSpec) {
		return func(p *corev1.PodTemplateSpec) {
			p.Spec.NodeSelector = map[string]string{karpv1.NodePoolLabelKey: name}
			p.Spec.TopologySpreadConstraints = nil
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
		}
	}
	quota := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityQuota", "metadata": map[string]any{"name": "both"},
		"spec": map[string]any{
			"selector": map[string]any{"matchExpressions": []any{map[string]any{"key": karpv1.NodePoolLabelKey, "operator": "In", "values": []any{"red", "blue"}}}},
			"limits":   map[string]any{"resources": map[string]any{"nodes": "3"}},
		},
	}}
	t.Cleanup(func() { _ = world.Client.Delete(context.WithoutCancel(t.Context()), quota) })
	begin(t, fast(), quota, sandbox.Pool("red"), sandbox.Pool("blue"), sandbox.Inflate("red", 3, "500m", "256Mi", apart("red")), sandbox.Inflate("blue", 3, "500m", "256Mi", apart("blue")))
	reach(t, "three pods run", func(s sandbox.State) bool { return s.Running == 3 && s.Pods == 6 })
	eventually(t, func() error { return hasEvent(t, "FailedScheduling", `quota "both"`) })
	steady(t, 20*time.Second, func() error {
		if n := len(claims(t)); n > 3 {
			return fmt.Errorf("%d machines, and the quota allows 3", n)
		}
		return nil
	})
	require.NoError(t, world.Client.Delete(t.Context(), quota))
	running(t, 6)
}
