package resources

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// OfPod is what the scheduler counts for a pod: the sum of its containers and sidecars or, where that is more, the
// largest of its init steps, replaced by what the pod asks for as a whole, with overhead, and one slot. Of a running pod,
// what the kubelet has granted a container, or the pod as a whole, counts as well. The rules are those of the Kubernetes documentation ("Resource
// sharing within containers", sidecars; "Assign pod-level resources"; "Resize container resources").
func OfPod(p *corev1.Pod, running bool) corev1.ResourceList {
	var states, initStates []corev1.ContainerStatus
	if running {
		states, initStates = p.Status.ContainerStatuses, p.Status.InitContainerStatuses
	}
	total := corev1.ResourceList{}
	for i := range p.Spec.Containers {
		add(total, granted(p, &p.Spec.Containers[i], states))
	}
	if len(p.Spec.InitContainers) > 0 {
		sidecars, peak := initSteps(p, initStates)
		total = Max(Add(total, sidecars), peak)
	}
	if whole := p.Spec.Resources; whole != nil {
		effective := whole.Requests
		if held, ok := heldByPod(p); ok && running {
			if effective = held; !infeasible(p) {
				effective = Max(whole.Requests, held)
			}
		}
		for name := range whole.Requests {
			if podLevel(name) {
				total[name] = effective[name]
			}
		}
	}
	add(total, p.Spec.Overhead)
	add(total, corev1.ResourceList{corev1.ResourcePods: Quantity(corev1.ResourcePods, 1)})
	return total
}

// InStatus reports whether the status of a running pod bears on what it takes, as it does while the pod is resized in place.
func InStatus(p *corev1.Pod) bool {
	if len(p.Status.ContainerStatuses)+len(p.Status.InitContainerStatuses) > 0 {
		return true
	}
	_, held := heldByPod(p)
	return held
}

// heldByPod is what the kubelet has allocated to the pod as a whole or what the pod runs with, whichever is more; false if its status does
// not say. The fields came with k8s.io/api v0.35 and this module compiles with v0.34, so they are found by name.
func heldByPod(p *corev1.Pod) (corev1.ResourceList, bool) {
	if p.Spec.Resources == nil {
		return nil, false
	}
	field := func(name string) any {
		if f := reflect.ValueOf(&p.Status).Elem().FieldByName(name); f.IsValid() {
			return f.Interface()
		}
		return nil
	}
	actual, _ := field("Resources").(*corev1.ResourceRequirements)
	if actual == nil {
		return nil, false
	}
	allocated, _ := field("AllocatedResources").(corev1.ResourceList)
	return Max(actual.Requests, allocated), true
}

// initSteps returns what the sidecars take together, and the most that the pod takes while it starts: each init container
// that ends runs beside the sidecars that are listed before it.
func initSteps(p *corev1.Pod, states []corev1.ContainerStatus) (sidecars, peak corev1.ResourceList) {
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars = Add(sidecars, granted(p, c, states))
		} else {
			peak = Max(peak, Add(c.Resources.Requests, sidecars))
		}
	}
	return sidecars, peak
}

// granted returns what a container counts for. While it is resized in place that is the largest of what it asks for, what
// the kubelet has allocated and what it runs with; a request that the kubelet can never meet doesn't count.
func granted(p *corev1.Pod, c *corev1.Container, states []corev1.ContainerStatus) corev1.ResourceList {
	i := slices.IndexFunc(states, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
	if i < 0 || states[i].Resources == nil {
		return c.Resources.Requests
	}
	held := Max(states[i].Resources.Requests, states[i].AllocatedResources)
	if infeasible(p) {
		return held
	}
	return Max(c.Resources.Requests, held)
}

// infeasible reports whether the kubelet has said that the resize that the pod waits for can't be had on its node.
func infeasible(p *corev1.Pod) bool {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending })
	return i >= 0 && p.Status.Conditions[i].Reason == corev1.PodReasonInfeasible
}

// podLevel reports whether a pod can ask for the resource as a whole.
func podLevel(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}
