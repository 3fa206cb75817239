package podclass

import (
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// Requests is what the scheduler counts for a pod: the largest of its init steps and the sum of its containers, with
// sidecars, overhead and pod-level resources, and one slot. For running pods what the kubelet has granted counts too.
func Requests(p *corev1.Pod, running bool) corev1.ResourceList {
	list := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: running})
	return resources.Add(list, corev1.ResourceList{corev1.ResourcePods: resources.Quantity(corev1.ResourcePods, 1)})
}
