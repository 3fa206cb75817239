package podclass_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling/podclass"
)

func pod(name, cpu string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	return p
}

func ExampleGroup() {
	pods := []*corev1.Pod{pod("web-10", "1"), pod("db-0", "2"), pod("web-9", "1000m")}
	for _, class := range podclass.Group(pods) {
		for _, p := range class {
			fmt.Print(podclass.Name(p), " ")
		}
		total := podclass.Requests(class[0], false)
		fmt.Println("take", total.Cpu(), "each")
	}
	// Output:
	// shop/db-0 take 2 each
	// shop/web-9 shop/web-10 take 1 each
}

// Replicas that share the memory of an ephemeral volume have claims of their own nevertheless.
func TestPodsWithEphemeralVolumesAreNeverTheSame(t *testing.T) {
	a, b := pod("a", "1"), pod("b", "1")
	b.Spec = a.Spec
	assert.True(t, podclass.SameTemplate(a, b))
	a.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	b.Spec = a.Spec
	assert.False(t, podclass.SameTemplate(a, b))
	assert.Len(t, podclass.Group([]*corev1.Pod{a, b}), 2)
}

func TestPrioritiesKeepPodsApart(t *testing.T) {
	a, b, c := pod("a", "1"), pod("b", "1"), pod("c", "1")
	zero := int32(0)
	b.Spec.Priority = &zero
	c.Spec.PriorityClassName = "high"
	assert.Len(t, podclass.Group([]*corev1.Pod{a, b, c}), 3)
}

func TestNaturalOrder(t *testing.T) {
	for _, names := range [][2]string{{"web-2", "web-10"}, {"web-09", "web-10"}, {"a", "b"}, {"web", "web-0"}, {"web-01", "web-1"}} {
		assert.Negative(t, podclass.Compare(pod(names[0], "1"), pod(names[1], "1")), names)
		assert.Positive(t, podclass.Compare(pod(names[1], "1"), pod(names[0], "1")), names)
	}
}
