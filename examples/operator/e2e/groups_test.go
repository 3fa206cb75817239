package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/examples/operator/sandbox"
)

// podGroups is the kind of the coscheduling plugin, as far as tests need it.
func podGroups() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name": "podgroups.scheduling.x-k8s.io", "annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for a test"},
		},
		"spec": map[string]any{
			"group": "scheduling.x-k8s.io", "scope": "Namespaced",
			"names": map[string]any{"kind": "PodGroup", "listKind": "PodGroupList", "plural": "podgroups", "singular": "podgroup"},
			"versions": []any{map[string]any{
				"name": "v1alpha1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

// A job of eight under a limit for four waits and costs nothing, and its pods are told why. When the limit is raised, it runs whole.
func TestJobWaitsUntilItIsWhole(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	kind, n := podGroups(), int32(8)
	require.NoError(t, world.Client.Create(ctx, kind))
	t.Cleanup(func() { require.NoError(t, world.Client.Delete(ctx, kind)) })
	group := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"name": "train", "namespace": "default"},
		"spec": map[string]any{"minMember": int64(n)},
	}}
	job := sandbox.Inflate("train", n, "1500m", "1Gi", func(p *corev1.PodTemplateSpec) { p.Labels["scheduling.x-k8s.io/pod-group"] = "train" })
	pool := sandbox.Pool("default", func(p *karpv1.NodePool) {
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements, sandbox.Require(corev1.LabelInstanceTypeStable, "m6a.large"))
		p.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("8")} // for four machines
	})
	begin(t, fast(), pool, job)
	eventually(t, func() error {
		return hasEvent(t, "FailedScheduling", "its PodGroup of scheduling.x-k8s.io does not exist")
	})
	eventually(t, func() error { return world.Client.Create(ctx, group.DeepCopy()) }) // the API server serves a new kind a moment later
	eventually(t, func() error {
		return hasEvent(t, "FailedScheduling", "group default/train needs 8 of its pods at once")
	})
	steady(t, 5*time.Second, func() error {
		if s, err := world.State(ctx); err != nil || s.Claims+s.Machines > 0 || s.Cost > 0 {
			return fmt.Errorf("nothing is to be bought yet, and there is: %s (%w)", s, err)
		}
		return nil
	})
	require.NoError(t, world.Client.Get(ctx, client.ObjectKeyFromObject(pool), pool))
	before := pool.DeepCopy()
	pool.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("16")}
	require.NoError(t, world.Client.Patch(ctx, pool, client.MergeFrom(before)))
	s := running(t, int(n))
	require.Equal(t, 8, s.Machines)
	t.Logf("the job runs whole on %d machines for $%.3f an hour", s.Machines, s.Cost)
}

// A static pool has as many nodes as its replicas, whatever pods there are.
func TestReplicas(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	n := int64(3)
	pool := sandbox.Pool("default", func(p *karpv1.NodePool) { p.Spec.Replicas = &n })
	begin(t, fast(), pool)
	for _, n := range []int64{3, 5, 2} {
		require.NoError(t, world.Client.Get(ctx, client.ObjectKeyFromObject(pool), pool))
		before := pool.DeepCopy()
		pool.Spec.Replicas = &n
		require.NoError(t, world.Client.Patch(ctx, pool, client.MergeFrom(before)))
		want := int(n)
		s := reach(t, fmt.Sprintf("%d nodes", n), func(s sandbox.State) bool { return s.Nodes == want && s.Claims == want && s.Machines == want })
		t.Logf("replicas %d: %s", n, s)
		steady(t, 3*time.Second, func() error {
			if now, err := world.State(ctx); err != nil || now.Machines != want {
				return fmt.Errorf("want %d machines: %s (%w)", n, now, err)
			}
			return nil
		})
	}
}
