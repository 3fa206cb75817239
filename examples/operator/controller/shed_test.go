package controller

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
)

// Pods on the nodes that should go have the lowest deletion costs, and those on others none; a pass without a change writes nothing.
func TestPodsThatShouldGoFirst(t *testing.T) {
	var objects []client.Object
	replica := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}}
		p.Annotations = map[string]string{eviction.DeletionCost: "7", "other": "stays"}
	}
	for i := range 3 {
		name := fmt.Sprintf("n%d", i)
		one := claim(name, name, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized)
		if i == 0 {
			one.DeletionTimestamp = new(metav1.Now())
		}
		objects = append(objects, one, pod("on-"+name, name, replica), node(name, name, func(n *corev1.Node) {
			n.Labels = map[string]string{karpv1.NodePoolLabelKey: "default", karpv1.NodeRegisteredLabelKey: "true", karpv1.NodeInitializedLabelKey: "true"}
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			if i == 1 {
				n.Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
			}
		}))
	}
	patched := 0
	o, _ := operate(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, x client.Object, p client.Patch, opts ...client.PatchOption) error {
		if _, ok := x.(*corev1.Pod); ok {
			patched++
		}
		return c.Patch(ctx, x, p, opts...)
	}}, append(objects, pool("default"))...)
	pass := func() map[string]string {
		v, err := o.read(t.Context())
		require.NoError(t, err)
		_, err = o.planDisruption(t.Context(), v)
		require.NoError(t, err)
		out := map[string]string{}
		for i := range 3 {
			p := get(t, o, pod(fmt.Sprintf("on-n%d", i), ""))
			require.Equal(t, "stays", p.Annotations["other"])
			out[p.Name] = p.Annotations[eviction.DeletionCost]
		}
		return out
	}
	require.Equal(t, map[string]string{"on-n0": "7", "on-n1": "7", "on-n2": "7"}, pass(), "it is off by default")
	o.options.DeletionCosts = true
	want := map[string]string{"on-n0": "-2147483648", "on-n1": "", "on-n2": ""}
	require.Equal(t, want, pass())
	require.Equal(t, 3, patched)
	require.Equal(t, want, pass())
	require.Equal(t, 3, patched)
}
