package buffer_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/scheduling/buffer"
)

func decode(t testing.TB, spec string) (buffer.Buffer, error) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte("apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: spare, namespace: shop}\nspec: " + spec))
	require.NoError(t, err)
	return buffer.Decode(data)
}

func template(cpu string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}},
	}
}

// A tenth of a workload of 25 replicas, at most two cpu.
func ExampleBuffer() {
	data, _ := yaml.YAMLToJSON([]byte(`
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: spare, namespace: shop}
spec:
  scalableRef: {apiGroup: apps, kind: Deployment, name: web}
  percentage: 10
  limits: {cpu: "2"}
`))
	b, err := buffer.Decode(data)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(b.String(), b.Scalable, b.Size(template("500m"), 25), b.Size(template("1"), 25))
	for _, p := range b.Pods(template("1"), 2) {
		of, _ := buffer.Of(p)
		fmt.Println(p.Name, of, p.Labels["app"])
	}
	// Output:
	// shop/spare Deployment web 3 2
	// capacity-buffer-spare-1 shop/spare web
	// capacity-buffer-spare-2 shop/spare web
}

func ExampleStanding() {
	for _, s := range []buffer.Standing{{Existing: 3}, {Existing: 1, New: 2}, {New: 2, Waiting: 1, Why: "pool general may buy no more nodes", Fix: "raise its limit of cpu to 20"}} {
		c := s.Condition()
		fmt.Println(c.Status, c.Reason, c.Message)
	}
	// Output:
	// True FitsExistingCapacity its pods fit on existing nodes: 3
	// False RequiresNewCapacity 2 of 3 pods need new nodes
	// False Infeasible 1 of 3 pods have no place: pool general may buy no more nodes; raise its limit of cpu to 20
}

func ExampleReference() {
	fmt.Println(buffer.Reference{Kind: "StatefulSet", Name: "db"})
	fmt.Println(buffer.Reference{Group: "argoproj.io", Kind: "Rollout", Name: "web"})
	// Output:
	// StatefulSet db
	// Rollout.argoproj.io web
}

func ExampleFieldError() {
	_, err := buffer.Decode([]byte(`{"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": {"name": "spare"}, "spec": {"podTemplateRef": {"name": "web"}, "replicas": -1}}`))
	fault := err.(interface{ Unwrap() []error }).Unwrap()[0].(*buffer.FieldError)
	fmt.Println(fault.Object, "|", fault.Path, "|", fault.Detail)
	// Output:
	// CapacityBuffer spare | spec.replicas | -1: must not be negative
}

func TestSize(t *testing.T) {
	for spec, want := range map[string]int{
		"{podTemplateRef: {name: a}}":                                                                     0,
		"{podTemplateRef: {name: a}, replicas: 3}":                                                        3,
		"{podTemplateRef: {name: a}, percentage: 50}":                                                     0, // of nothing
		"{podTemplateRef: {name: a}, replicas: 3, limits: {cpu: 1}}":                                      2,
		"{podTemplateRef: {name: a}, limits: {cpu: 1300m}}":                                               2,
		"{podTemplateRef: {name: a}, limits: {memory: 1Gi}}":                                              0, // of a resource that it does not request
		"{podTemplateRef: {name: a}, replicas: 3, limits: {memory: 1Gi}}":                                 3,
		"{podTemplateRef: {name: a}, replicas: 3, limits: {cpu: 100m}}":                                   0,
		"{scalableRef: {kind: Deployment, name: a}, percentage: 20}":                                      3, // of eleven
		"{scalableRef: {kind: Deployment, name: a}, percentage: 1}":                                       1,
		"{scalableRef: {kind: Deployment, name: a}, percentage: 0}":                                       0,
		"{scalableRef: {kind: Deployment, name: a}, percentage: 20, replicas: 2}":                         3,
		"{scalableRef: {kind: Deployment, name: a}, percentage: 20, replicas: 7}":                         7,
		"{scalableRef: {kind: Deployment, name: a}, replicas: 7, limits: {cpu: 2}}":                       4,
		"{podTemplateRef: {name: a}, replicas: 3, provisioningStrategy: example/of}":                      0,
		"{podTemplateRef: {name: a}, replicas: 3, provisioningStrategy: buffer.x-k8s.io/active-capacity}": 3,
	} {
		b, err := decode(t, spec)
		require.NoError(t, err, spec)
		assert.Equal(t, want, b.Size(template("500m"), 11), spec)
	}
	b, err := decode(t, "{scalableRef: {kind: Deployment, name: a}, percentage: 20}")
	require.NoError(t, err)
	assert.Zero(t, b.Size(template("1"), 0), "of no replicas")
	assert.Zero(t, (&buffer.Buffer{}).Size(nil, 3))
}

func TestFaults(t *testing.T) {
	for spec, want := range map[string]string{
		"{}": "spec: want podTemplateRef or scalableRef",
		"{podTemplateRef: {name: a}, scalableRef: {kind: Deployment, name: b}}": "set either podTemplateRef or scalableRef, not both",
		"{podTemplateRef: {}}":                           "spec.podTemplateRef.name: it is empty",
		"{scalableRef: {kind: Deployment}}":              "spec.scalableRef: want the kind and name",
		"{podTemplateRef: {name: a}, percentage: -5}":    "spec.percentage: -5",
		"{podTemplateRef: {name: a}, replica: 5}":        `did you mean "replicas"?`,
		"{podTemplateRef: {name: a}, limits: {cpu: -1}}": "must not be negative",
	} {
		_, err := decode(t, spec)
		assert.ErrorContains(t, err, want, spec)
	}
	_, err := buffer.Decode([]byte(`{"apiVersion": "v1", "kind": "Pod"}`))
	assert.ErrorContains(t, err, `"v1" "Pod" is not a CapacityBuffer of autoscaling.x-k8s.io/v1beta1`)
	_, err = buffer.Decode([]byte("kind: CapacityBuffer"))
	assert.ErrorContains(t, err, "buffer: ")
}

func TestPods(t *testing.T) {
	b, err := decode(t, "{podTemplateRef: {name: a}, replicas: 2}")
	require.NoError(t, err)
	from := template("500m")
	from.Spec.NodeName = "n1"
	from.Spec.Volumes = []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	before := from.DeepCopy()
	pods := b.Pods(from, 2)
	assert.Equal(t, before, from, "an argument is not modified")
	require.Len(t, pods, 2)
	assert.Empty(t, pods[0].Spec.NodeName)
	require.Len(t, pods[0].Spec.Volumes, 1, "no claim is made for room")
	assert.Equal(t, "tmp", pods[0].Spec.Volumes[0].Name)
	_, ok := buffer.Of(&corev1.Pod{})
	assert.False(t, ok)
	assert.Equal(t, buffer.Empty, buffer.Standing{}.Condition().Reason)
}

// What is written is what was read, with every field.
func TestWrittenIsRead(t *testing.T) {
	n, share := int32(3), int32(20)
	for _, b := range []buffer.Buffer{
		{Namespace: "shop", Name: "a", Strategy: buffer.ActiveCapacity, Template: "web", Replicas: &n, Limits: corev1.ResourceList{"cpu": resource.MustParse("3")}},
		{Name: "b", Scalable: buffer.Reference{Group: "apps", Kind: "Deployment", Name: "web"}, Percentage: &share},
	} {
		text, err := json.Marshal(b)
		require.NoError(t, err)
		read, err := buffer.Decode(text)
		require.NoError(t, err, "%s", text)
		assert.Equal(t, b, read)
	}
}

// Without a template there are no pods, and of none there is a negative number.
func TestNoPods(t *testing.T) {
	two := int32(2)
	b := buffer.Buffer{Name: "a", Replicas: &two}
	assert.Zero(t, b.Size(nil, 3))
	assert.Empty(t, b.Pods(nil, 2))
	assert.Empty(t, b.Pods(template("1"), -1))
	assert.Empty(t, b.Pods(nil, -1))
}
