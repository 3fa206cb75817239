package karpenter_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	autoscalingv1beta1 "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	"sigs.k8s.io/karpenter/pkg/controllers/capacitybuffer"
	"sigs.k8s.io/karpenter/pkg/state/virtualpods"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/scheduling/buffer"
)

type noTrigger struct{}

func (noTrigger) Trigger(types.UID) {}
func (noTrigger) TriggerReconcile() {}

// Karpenter's controller gives 1,000 random buffers the sizes that package buffer does.
func TestBuffersHaveKarpentersSizes(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	require.NoError(t, appsv1.AddToScheme(scheme))
	scheme.AddKnownTypes(schema.GroupVersion{Group: autoscalingv1beta1.Group, Version: "v1beta1"}, &autoscalingv1beta1.CapacityBuffer{}, &autoscalingv1beta1.CapacityBufferList{})
	rng := rand.New(rand.NewPCG(45, 1))
	maybe := func(n int) *int32 {
		if rng.IntN(2) == 0 {
			return nil
		}
		return new(rng.Int32N(int32(n)))
	}
	amount := func(texts ...string) resource.Quantity { return resource.MustParse(texts[rng.IntN(len(texts))]) }
	sizes := map[int]int{}
	for range 1000 {
		template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}}}}
		requests := template.Spec.Containers[0].Resources.Requests
		if rng.IntN(4) > 0 {
			requests[corev1.ResourceCPU] = amount("100m", "333m", "1", "2")
		}
		if rng.IntN(2) == 0 {
			requests[corev1.ResourceMemory] = amount("0", "1Gi", "1500M")
		}
		if rng.IntN(4) == 0 {
			always := corev1.ContainerRestartPolicyAlways
			template.Spec.InitContainers = []corev1.Container{{Name: "side", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: amount("50m", "3")}}}}
		}
		replicas := maybe(30)
		web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: replicas, Template: template}}
		theirs := &autoscalingv1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "spare"}}
		theirs.Spec.Replicas, theirs.Spec.Percentage = maybe(9), maybe(150)
		from := &corev1.PodTemplate{ObjectMeta: web.ObjectMeta, Template: template}
		if rng.IntN(2) == 0 {
			theirs.Spec.PodTemplateRef = &autoscalingv1beta1.LocalObjectRef{Name: "web"}
		} else {
			theirs.Spec.ScalableRef = &autoscalingv1beta1.ScalableRef{APIGroup: []string{"", "apps"}[rng.IntN(2)], Kind: "Deployment", Name: "web"}
		}
		if rng.IntN(2) == 0 {
			theirs.Spec.Limits = autoscalingv1beta1.Limits{corev1.ResourceCPU: amount("0", "999m", "1", "7", "50")}
		}
		if rng.IntN(3) == 0 {
			theirs.Spec.Limits = autoscalingv1beta1.Limits{corev1.ResourceMemory: amount("512Mi", "3Gi", "40G"), "example.com/gpu": amount("1")}
		}
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(web, from, theirs).WithStatusSubresource(theirs).Build()
		c := capacitybuffer.NewController(api, noTrigger{}, virtualpods.NewVirtualPodCache(api))
		_, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(theirs)})
		require.NoError(t, err)
		got := &autoscalingv1beta1.CapacityBuffer{}
		require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(theirs), got))
		require.NotNil(t, got.Status.Replicas)

		theirs.TypeMeta = metav1.TypeMeta{APIVersion: "autoscaling.x-k8s.io/v1beta1", Kind: "CapacityBuffer"}
		text, err := yaml.Marshal(theirs)
		require.NoError(t, err)
		data, err := yaml.YAMLToJSON(text)
		require.NoError(t, err)
		ours, err := buffer.Decode(data)
		require.NoError(t, err)
		asked := int32(1)
		if replicas != nil {
			asked = *replicas
		}
		size := ours.Size(&template, asked)
		sizes[size]++
		assert.Equal(t, int(*got.Status.Replicas), size, "%s\n%v", text, requests)
	}
	fmt.Printf("sizes of 1000 buffers: %v\n", sizes)
}
