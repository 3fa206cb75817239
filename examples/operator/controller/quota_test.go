package controller

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// capped is a CapacityQuota of all nodes.
func capped(resource, most string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityQuota", "metadata": map[string]any{"name": "all"},
		"spec": map[string]any{"limits": map[string]any{"resources": map[string]any{resource: most}}},
	}}
}

// A quota holds over all pools, machines on their way count, and without the right to know it nothing is bought.
func TestQuotasHold(t *testing.T) {
	apart := func(name string) client.Object { // two of them do not fit one node
		return pod(name, "", func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
		})
	}
	for _, c := range []struct {
		quota *unstructured.Unstructured
		most  int
		fails string
	}{
		{capped("nodes", "2"), 2, ""},
		{capped("nodes", "0"), 0, ""},
		{capped("cpu", "500m"), 0, "CapacityQuota all"},
	} {
		objects := []client.Object{pool("red"), pool("blue"), c.quota}
		for i := range 4 {
			objects = append(objects, apart(fmt.Sprint("web-", i)))
		}
		o, _ := operate(t, interceptor.Funcs{}, objects...)
		_, err := o.read(t.Context())
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails)
		} else {
			require.NoError(t, err)
		}
		for range 3 { // claims of the first pass count in the others
			_, _ = o.provision(t.Context())
		}
		assert.LessOrEqual(t, len(standing(t, o)), c.most)
		if c.most == 2 {
			assert.Len(t, standing(t, o), 2)
		}
	}
}

// Static pools get as many of their nodes as quotas allow.
func TestStaticPoolsKeepToQuotas(t *testing.T) {
	o, _ := operate(t, interceptor.Funcs{}, pool("default", func(p *karpv1.NodePool) { p.Spec.Replicas = new(int64(3)) }), capped("nodes", "2"))
	var told error
	for range 2 {
		v, err := o.read(t.Context())
		require.NoError(t, err)
		_, told = o.keepReplicas(t.Context(), v)
	}
	assert.Len(t, standing(t, o), 2)
	assert.ErrorContains(t, told, `quota "all" allows 0`)
}
