package admission_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/admission"
)

func ExampleCluster_Pod() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}}
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
	}}}
	stored := admission.Cluster{}.Pod(pod)
	fmt.Println(stored.Spec.Containers[0].Resources.Requests.Cpu())
	// Output: 500m
}

func ExampleNewCluster() {
	usual := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "usual"}}
	usual.Spec.Limits = []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
	}}
	cluster := admission.NewCluster(nil, nil, []*corev1.LimitRange{usual})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}}
	pod.Spec.Containers = []corev1.Container{{}}
	fmt.Println(cluster.Pod(pod).Spec.Containers[0].Resources.Requests.Memory())
	// Output: 256Mi
}
