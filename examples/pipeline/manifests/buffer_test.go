package manifests_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// Buffers have the pods of their templates or workloads, or say what is missing. No pod of a buffer is a pod of the cluster.
func TestBuffers(t *testing.T) {
	const web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 5, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: web}]}}}\n---\n" +
		"apiVersion: v1\nkind: PodTemplate\nmetadata: {name: room, namespace: shop}\ntemplate: {spec: {containers: [{name: main, image: web}]}}\n---\n" +
		"apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: spare%s}\nspec: %s\n"
	for spec, want := range map[string][2]string{
		"{scalableRef: {kind: Deployment, name: web}, percentage: 50}":                        {"default/spare", "3"},
		"{scalableRef: {kind: Deployment, name: api}, percentage: 50}":                        {"default/spare", "there is no Deployment api"},
		"{scalableRef: {apiGroup: argoproj.io, kind: Rollout, name: web}, replicas: 1}":       {"default/spare", "Rollout.argoproj.io web: want a Deployment, ReplicaSet or StatefulSet"},
		"{podTemplateRef: {name: room}, replicas: 2}":                                         {"shop/spare", "2"},
		"{podTemplateRef: {name: rom}, replicas: 2}":                                          {"shop/spare", `there is no PodTemplate "rom"`},
		"{podTemplateRef: {name: room}, replicas: 2000000}":                                   {"shop/spare", "it has 2000000 pods"},
		"{podTemplateRef: {name: room}, replicas: 2, provisioningStrategy: example.com/lazy}": {"shop/spare", `the strategy "example.com/lazy" is not planned`},
	} {
		namespace := ""
		if want[0] == "shop/spare" {
			namespace = ", namespace: shop"
		}
		m, err := manifests.Parse([]manifests.File{{Name: "a.yaml", Data: fmt.Appendf(nil, web, namespace, spec)}}, nil)
		require.NoError(t, err, spec)
		assert.Equal(t, 5, m.CountPods(), spec)
		require.Len(t, m.Buffers, 1)
		b := m.Buffers[0]
		assert.Equal(t, want[0], b.String(), spec)
		if got := fmt.Sprint(len(b.Pods)); b.Why == "" {
			assert.Equal(t, want[1], got, spec)
		} else {
			assert.Contains(t, b.Why, want[1], spec)
			assert.Empty(t, b.Pods, spec)
		}
		assert.Empty(t, m.Notes, spec)
	}
}
