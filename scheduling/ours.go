package scheduling

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Ignored is a pending pod that is not ours to place, and why.
type Ignored struct {
	Pod *corev1.Pod
	Why string
}

// terminal reports whether the pod has ended and takes nothing any more.
func terminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// notOurs says why somebody else, or nobody yet, places the pending pod; the empty text means that we do.
func notOurs(p *corev1.Pod) string {
	if gates := p.Spec.SchedulingGates; len(gates) > 0 {
		return fmt.Sprintf("scheduling gate %q", gates[0].Name)
	}
	if s := p.Spec.SchedulerName; s != "" && s != corev1.DefaultSchedulerName {
		return fmt.Sprintf("scheduler %q places it", s)
	}
	if n := p.Status.NominatedNodeName; n != "" {
		return fmt.Sprintf("nominated to node %q, it waits for room there", n)
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
		return fmt.Sprintf("resource claim %q: dynamic resource allocation is not understood", claims[0].Name)
	}
	return ""
}

// optedOut says whether the pod refuses every node of a pool, which is how users keep pods away from provisioning.
func optedOut(required requirements.Alternatives) bool {
	absent := requirements.DoesNotExist(nodepool.LabelKey)
	for s := range required.All() {
		if !s.Get(nodepool.LabelKey).Subset(absent) {
			return false
		}
	}
	return required.Len() > 0
}
