package resources_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

func pod(name, cpu string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name = name
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
	return p
}

func ExampleOfPod() {
	p := pod("web", "500m")
	p.Spec.InitContainers = pod("init", "2").Spec.Containers // runs before the others
	list := resources.OfPod(p, false)
	fmt.Println(list.Cpu(), list.Pods())
	// Output: 2 1
}

// The cases of the documentation, each by hand; examples/judges/semantics compares random pods with Kubernetes' own sum.
func TestRequestsByHand(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	step := func(name, cpu string) corev1.Container {
		c := pod("x", cpu).Spec.Containers[0]
		c.Name = name
		return c
	}
	sidecar := func(name, cpu string) corev1.Container {
		c := step(name, cpu)
		c.RestartPolicy = &always
		return c
	}
	cpu := func(q string) corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse(q)} }
	resized := func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{step("main", "2")}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "main", AllocatedResources: cpu("3"), Resources: &corev1.ResourceRequirements{Requests: cpu("1")}},
		}
	}
	for _, c := range []struct {
		name             string
		change           func(*corev1.Pod)
		pending, running string
	}{
		{"containers run together", func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, step("b", "2")) }, "3", "3"},
		{"the largest init step", func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{step("i", "4"), step("j", "3")} }, "4", "4"},
		{"a sidecar before it", func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{sidecar("s", "2"), step("i", "4")} }, "6", "6"},
		{"a sidecar after it", func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{step("i", "4"), sidecar("s", "2")} }, "4", "4"},
		{"sidecars stay", func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{sidecar("s", "2"), sidecar("r", "3")} }, "6", "6"},
		{"the pod as a whole, and its overhead", func(p *corev1.Pod) {
			p.Spec.Resources, p.Spec.Overhead = &corev1.ResourceRequirements{Requests: cpu("5")}, cpu("250m")
		}, "5250m", "5250m"},
		{"a resize under way", resized, "2", "3"},
		{"a resize that is not to be had", func(p *corev1.Pod) {
			resized(p)
			p.Spec.Containers[0].Resources.Requests = cpu("64")
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}}
		}, "64", "3"},
	} {
		p := pod("a", "1")
		c.change(p)
		before := p.DeepCopy()
		for running, want := range map[bool]string{false: c.pending, true: c.running} {
			got := resources.OfPod(p, running)
			assert.Equal(t, want, got.Cpu().String(), "%s, running: %t", c.name, running)
			assert.Equal(t, "1", got.Pods().String())
		}
		assert.Equal(t, before, p)
	}
}
