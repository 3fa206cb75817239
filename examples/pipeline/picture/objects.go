package picture

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// NodeOf returns the node of a cluster with the pods bound to it, except pods that have ended.
func NodeOf(n *corev1.Node, pods []*corev1.Pod) Node {
	out := Node{
		Name: n.Name, Pool: n.Labels[nodepool.LabelKey], Type: n.Labels[corev1.LabelInstanceTypeStable],
		Where: strings.Trim(n.Labels[corev1.LabelTopologyZone]+" · "+n.Labels[instancetypes.LabelCapacityType], " ·"),
		CPU:   resources.Capacity(corev1.ResourceCPU, n.Status.Allocatable[corev1.ResourceCPU]), Memory: resources.Capacity(corev1.ResourceMemory, n.Status.Allocatable[corev1.ResourceMemory]),
	}
	out.Type = cmp.Or(out.Type, out.Name)
	for _, p := range pods {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			out.Pods = append(out.Pods, PodOf(p))
		}
	}
	return out
}

// PodOf returns the pod with its requests. Its app comes from its labels, otherwise from its owner.
func PodOf(p *corev1.Pod) Pod {
	owner := ""
	if len(p.OwnerReferences) > 0 {
		owner = p.OwnerReferences[0].Name
	}
	asked := resources.OfPod(p, false)
	return Pod{
		App: cmp.Or(p.Labels["app.kubernetes.io/name"], p.Labels["app"], owner, p.Name),
		CPU: resources.Request(corev1.ResourceCPU, asked[corev1.ResourceCPU]), Memory: resources.Request(corev1.ResourceMemory, asked[corev1.ResourceMemory]),
	}
}
