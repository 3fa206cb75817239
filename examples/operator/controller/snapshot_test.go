package controller

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// priced is a NodeOverlay that gives m5.2xlarge another price in some pools.
func priced(price, operator, pool string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": map[string]any{"name": "negotiated"},
		"spec": map[string]any{"price": price, "requirements": []any{
			map[string]any{"key": corev1.LabelInstanceTypeStable, "operator": "In", "values": []any{"m5.2xlarge"}},
			map[string]any{"key": karpv1.NodePoolLabelKey, "operator": operator, "values": []any{pool}},
		}},
	}}
}

// wanted are the values of a label that the claims ask for, in the order of claims.
func wanted(t *testing.T, o *Operator, key string) []string {
	t.Helper()
	var out []string
	for _, c := range standing(t, o) {
		for _, r := range c.Spec.Requirements {
			if r.Key == key {
				out = append(out, r.Values...)
			}
		}
	}
	return out
}

// NodeOverlays decide what is cheapest. One that cannot be read changes nothing, is told, and stops no pod.
func TestOverlaysChoose(t *testing.T) {
	two := pool("default", func(p *karpv1.NodePool) {
		p.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
			{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"m6a.large", "m5.2xlarge"}},
			{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand"}},
		}
	})
	for _, c := range []struct {
		overlay []client.Object
		first   string
		fails   string
	}{
		{nil, "m6a.large", ""},
		{[]client.Object{priced("0.001", "In", "default")}, "m5.2xlarge", ""},
		{[]client.Object{priced("0.001", "NotIn", "other")}, "m5.2xlarge", ""},
		{[]client.Object{priced("0.001", "In", "other")}, "m6a.large", ""},
		{[]client.Object{priced("0.001", "NotIn", "default")}, "m6a.large", ""},
		{[]client.Object{priced("cheap", "In", "default")}, "m6a.large", "NodeOverlay negotiated"},
	} {
		o, _ := operate(t, interceptor.Funcs{}, append([]client.Object{two.DeepCopy(), pod("web", "")}, c.overlay...)...)
		v, err := o.read(t.Context())
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails)
		} else {
			require.NoError(t, err)
		}
		require.Len(t, v.Pools, 1)
		_, _ = o.provision(t.Context())
		require.Len(t, standing(t, o), 1)
		assert.Equal(t, c.first, wanted(t, o, corev1.LabelInstanceTypeStable)[0])
	}
}

// Pods without a spread get that of the options, by the selectors of their Services.
func TestPodsWithoutSpreadGetTheDefault(t *testing.T) {
	objects := []client.Object{pair(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}},
	}}
	for i := range 6 {
		objects = append(objects, pod(fmt.Sprint("web-", i), "", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} }))
	}
	o, _ := operate(t, interceptor.Funcs{}, objects...)
	o.options.Spread = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule}}
	_, err := o.provision(t.Context())
	require.NoError(t, err)
	zones := map[string]int{}
	for _, zone := range wanted(t, o, corev1.LabelTopologyZone) {
		zones[zone]++
	}
	least := 6
	for _, n := range zones {
		least = min(least, n)
	}
	assert.GreaterOrEqual(t, len(zones), 3, "%v", zones)
	assert.Equal(t, 1, 6/len(zones)/least, "%v", zones)
	stored := get(t, o, objects[2].(*corev1.Pod).DeepCopy())
	assert.Empty(t, stored.Spec.TopologySpreadConstraints, "nothing is written")
}
