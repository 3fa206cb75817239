package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	autoscaling "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/examples/operator/sandbox"
	"github.com/joinery-sdk/joinery/scheduling/buffer"
)

// The room of a buffer is bought, and kept although nothing runs there. Pods take it at once, it is filled again, and it goes with the buffer.
func TestBufferIsTakenAndFilledAgain(t *testing.T) {
	app := sandbox.Inflate("web", 2, "1500m", "1Gi")
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Template: app.Spec.Template}
	spare := &autoscaling.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Name: "spare", Namespace: "default"}}
	spare.Spec = autoscaling.CapacityBufferSpec{PodTemplateRef: &autoscaling.LocalObjectRef{Name: "web"}, Replicas: new(int32(2))}
	begin(t, fast(), sandbox.Pool("default", func(p *karpv1.NodePool) {
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements, sandbox.Require(corev1.LabelInstanceTypeStable, "m6a.xlarge"))
	}), template, spare)
	full := func() {
		t.Helper()
		eventually(t, func() error {
			var now autoscaling.CapacityBuffer
			if err := world.Client.Get(t.Context(), client.ObjectKeyFromObject(spare), &now); err != nil {
				return err
			}
			c := meta.FindStatusCondition(now.Status.Conditions, autoscaling.ProvisioningCondition)
			if c == nil || c.Reason != buffer.FitsExisting || now.Status.Replicas == nil || *now.Status.Replicas != 2 {
				return fmt.Errorf("status %v", now.Status)
			}
			return nil
		})
	}
	full()
	before := machines()
	require.Len(t, before, 1)
	steady(t, 6*time.Second, func() error {
		if n := len(world.Cloud.Truth()); n != 1 || len(pods(t)) > 0 {
			return fmt.Errorf("%d machines, and %d pods", n, len(pods(t)))
		}
		return nil
	})
	at := nodes(t)[0].Name
	require.NoError(t, world.Apply(t.Context(), app))
	running(t, 2)
	for _, p := range pods(t) {
		require.Equal(t, at, p.Spec.NodeName, "the room was there")
	}
	reach(t, "the room is filled again", func(s sandbox.State) bool { return s.Nodes == 2 && s.Machines == 2 && s.Running == 2 })
	full()
	require.NoError(t, world.Client.Delete(t.Context(), spare))
	reach(t, "the room goes with its buffer", func(s sandbox.State) bool { return s.Nodes == 1 && s.Machines == 1 && s.Running == 2 })
}

// A NodeOverlay decides what is cheapest.
func TestOverlayChooses(t *testing.T) {
	overlay := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": map[string]any{"name": "negotiated"},
		"spec": map[string]any{"price": "0.001", "requirements": []any{map[string]any{"key": corev1.LabelInstanceTypeStable, "operator": "In", "values": []any{"m5.2xlarge"}}}},
	}}
	begin(t, fast(), sandbox.Pool("default", quiet), overlay, sandbox.Inflate("web", 1, "500m", "512Mi"))
	running(t, 1)
	require.Equal(t, "m5.2xlarge", nodes(t)[0].Labels[corev1.LabelInstanceTypeStable])
}

// Pods without a spread get the one that kube-scheduler is said to be configured with: their nodes are bought in as many zones as there are pods.
func TestDefaultSpread(t *testing.T) {
	options := fast()
	options.Spread = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule}}
	begin(t, options, sandbox.Pool("default", quiet), sandbox.Inflate("web", 3, "300m", "256Mi"))
	running(t, 3)
	zones := map[string]bool{}
	for _, n := range nodes(t) {
		zones[n.Labels[corev1.LabelTopologyZone]] = true
	}
	require.Len(t, zones, 3)
}
