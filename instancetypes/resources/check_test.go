package resources_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// Requests and limits are compared as an API server stores them, and stay as they are.
func TestWrongRequest(t *testing.T) {
	for _, c := range []struct {
		name           corev1.ResourceName
		request, limit string
		wrong          string
	}{
		{"cpu", "34m", "33300u", ""}, // from a limit of 33.3m, which is rounded up
		{"cpu", "33300u", "33300u", ""},
		{"cpu", "34m", "33m", "the request 34m exceeds the limit 33m"},
		{"cpu", "0.1", "100m", ""},
		{"memory", "1Gi", "1024Mi", ""},
		{"example.com/card", "1", "2", "the request 1 differs from the limit 2, which example.com/card does not allow"},
		{"example.com/card", "2", "2", ""},
		{"hugepages-2Mi", "2Mi", "4Mi", "the request 2Mi differs from the limit 4Mi, which hugepages-2Mi does not allow"},
	} {
		r := &corev1.ResourceRequirements{Requests: corev1.ResourceList{c.name: resource.MustParse(c.request)}, Limits: corev1.ResourceList{c.name: resource.MustParse(c.limit)}}
		before := r.DeepCopy()
		assert.Equal(t, c.wrong, resources.WrongRequest(c.name, r), "%s of %s", c.request, c.limit)
		assert.Equal(t, before, r)
	}
}
