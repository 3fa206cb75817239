package podclass

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MadeAnew is the UID of a pod that does not exist yet: a controller creates it when the existing
// pod is gone.
const MadeAnew types.UID = "made anew"

// Ended reports whether the pod has finished and takes no resources.
func Ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Moves reports whether a pod is created again elsewhere when its node is removed. Pods of
// DaemonSets and static pods are not. Of terminating pods, only those of StatefulSets are.
func Moves(p *corev1.Pod) bool {
	sticky := false
	for _, o := range p.OwnerReferences {
		switch o.Kind {
		case "DaemonSet", "Node":
			return false
		case "StatefulSet":
			sticky = true
		}
	}
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return false
	}
	return p.DeletionTimestamp == nil || sticky
}

// NotOurs says why the pending pod is not planned: it has a scheduling gate or another scheduler,
// belongs to a DaemonSet or is static, or claims devices. It is empty for pods to plan.
func NotOurs(p *corev1.Pod) string {
	if gates := p.Spec.SchedulingGates; len(gates) > 0 {
		return fmt.Sprintf("scheduling gate %q", gates[0].Name)
	}
	if s := p.Spec.SchedulerName; s != "" && s != corev1.DefaultSchedulerName {
		return fmt.Sprintf("scheduler %q places it", s)
	}
	for _, o := range p.OwnerReferences {
		switch {
		case o.Controller != nil && !*o.Controller:
		case o.Kind == "DaemonSet":
			return fmt.Sprintf("DaemonSet %q runs it on every node", o.Name)
		case o.Kind == "Node":
			return "a mirror of a static pod"
		}
	}
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return "a mirror of a static pod"
	}
	if claims := p.Spec.ResourceClaims; len(claims) > 0 {
		return fmt.Sprintf("resource claim %q: dynamic resource allocation is not supported", claims[0].Name)
	}
	return ""
}
