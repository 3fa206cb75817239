package resources_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func text(l corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range l {
		out[string(name)] = q.String()
	}
	return out
}

func TestArithmetic(t *testing.T) {
	a := list("cpu", "2", "memory", "4Gi", "pods", "10")
	b := list("cpu", "500m", "memory", "1Gi", "nvidia.com/gpu", "1")
	before := []map[string]string{text(a), text(b)}

	assert.Equal(t, map[string]string{"cpu": "2500m", "memory": "5Gi", "pods": "10", "nvidia.com/gpu": "1"}, text(resources.Add(a, b)))
	assert.Equal(t, map[string]string{"cpu": "1500m", "memory": "3Gi", "pods": "10", "nvidia.com/gpu": "-1"}, text(resources.Sub(a, b)))
	assert.Equal(t, map[string]string{"cpu": "2", "memory": "4Gi", "pods": "10", "nvidia.com/gpu": "1"}, text(resources.Max(a, b)))
	assert.Equal(t, before, []map[string]string{text(a), text(b)}, "arguments stay as they were")
	assert.Equal(t, []corev1.ResourceName{"cpu", "memory", "pods"}, resources.Names(a))
}

func TestArithmeticOfNothing(t *testing.T) {
	for name, f := range map[string]func(a, b corev1.ResourceList) corev1.ResourceList{
		"Add": resources.Add, "Sub": resources.Sub, "Max": resources.Max,
	} {
		got := f(nil, nil)
		assert.NotNil(t, got, name)
		assert.Empty(t, got, name)
		assert.Equal(t, text(list("cpu", "1")), text(f(list("cpu", "1"), nil)), name)
	}
}

func TestArithmeticSaturates(t *testing.T) {
	huge := list("cpu", "9223372036854775807", "memory", "9223372036854775807")
	sum := resources.Add(huge, huge)
	for _, name := range []corev1.ResourceName{"cpu", "memory"} {
		assert.Equal(t, int64(math.MaxInt64), resources.Capacity(name, sum[name]), name)
		got, want := sum[name], resources.Quantity(name, math.MaxInt64)
		assert.Zero(t, want.Cmp(got), "%s: the quantity itself saturates", name)
	}
	low := resources.Sub(resources.Sub(corev1.ResourceList{}, huge), huge)
	for _, name := range []corev1.ResourceName{"cpu", "memory"} {
		assert.Equal(t, int64(math.MinInt64), resources.Capacity(name, low[name]), name)
	}
}

// A result never shares storage with an argument, even for quantities beyond int64, which hold pointers.
func TestResultsAreFresh(t *testing.T) {
	big := resource.MustParse("9223372036854775807")
	big.Add(big)
	a := corev1.ResourceList{"memory": big}
	want := big.String()
	for name, f := range map[string]func(a, b corev1.ResourceList) corev1.ResourceList{
		"Add": resources.Add, "Sub": resources.Sub, "Max": resources.Max,
	} {
		for _, got := range []corev1.ResourceList{f(a, nil), f(nil, a)} {
			q := got["memory"]
			q.Add(resource.MustParse("1"))
			held := a["memory"]
			assert.Equal(t, want, held.String(), name)
		}
	}
}
