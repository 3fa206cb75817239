package eviction

import (
	"cmp"
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/internal/toleration"
)

// Annotations of pods and nodes about disruption.
const (
	// DoNotDisrupt on a pod is "true" or, since karpenter.sh/v1, a duration since the pod's start.
	// On a node it is "true".
	DoNotDisrupt = "karpenter.sh/do-not-disrupt"
	// DoNotEvict is the older annotation of pods.
	DoNotEvict = "karpenter.sh/do-not-evict"
	// DeletionCost orders the pods of one owner, and is part of the cost of an eviction.
	DeletionCost = "controller.kubernetes.io/pod-deletion-cost"
	// DisruptionCost replaces DeletionCost in the cost of an eviction, since Karpenter v1.15.
	DisruptionCost = "karpenter.sh/disruption-cost"
)

// Ended reports whether the pod has finished.
func Ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Daemon reports whether a DaemonSet owns the pod.
func Daemon(p *corev1.Pod) bool { return owned(p, "DaemonSet") }

// Mirror reports whether the pod mirrors a static pod of its kubelet.
func Mirror(p *corev1.Pod) bool {
	_, ok := p.Annotations[corev1.MirrorPodAnnotationKey]
	return ok || owned(p, "Node")
}

// Unowned reports whether no controller would recreate the pod after its eviction.
func Unowned(p *corev1.Pod) bool {
	for _, o := range p.OwnerReferences {
		if o.Controller == nil || *o.Controller {
			return false
		}
	}
	return !Mirror(p)
}

func owned(p *corev1.Pod, kind string) bool {
	for _, o := range p.OwnerReferences {
		if o.Kind == kind && (o.Controller == nil || *o.Controller) {
			return true
		}
	}
	return false
}

// Reschedulable reports whether the pod needs another place if its node goes. Finished pods,
// daemons and mirror pods do not. A terminating pod does only if a StatefulSet recreates it.
func Reschedulable(p *corev1.Pod) bool {
	if Ended(p) || Daemon(p) || Mirror(p) {
		return false
	}
	return p.DeletionTimestamp == nil || owned(p, "StatefulSet")
}

// Cost returns the cost of evicting the pod in Karpenter's unit. It is 1 for an ordinary pod, more
// for a high priority or deletion cost, at most 10, and negative for pods that ask to go first.
//
//	cost = clamp(1 + deletion cost / 2^27 + priority / 2^25, -10, 10)
//
// The deletion cost is the annotation [DisruptionCost], or else [DeletionCost]. A value that is not
// a 32-bit integer counts as 0.
func Cost(p *corev1.Pod) float64 {
	deletion, priority := Parts(p)
	return math.Max(-10, math.Min(10, 1+deletion+priority))
}

// Parts returns the shares of deletion cost and priority in [Cost], before it is clamped.
func Parts(p *corev1.Pod) (deletion, priority float64) {
	text, ok := p.Annotations[DisruptionCost]
	if !ok {
		text = p.Annotations[DeletionCost]
	}
	if text != "" {
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			deletion = float64(n) / (1 << 27)
		}
	}
	if p.Spec.Priority != nil {
		priority = float64(*p.Spec.Priority) / (1 << 25)
	}
	return deletion, priority
}

// Disruption returns the disruption of emptying a node with these pods: 1 for the node, plus the
// [Cost] of each pod that needs a new place. A negative cost counts as 0. The sum is taken in the
// order of the list.
func Disruption(pods []*corev1.Pod) float64 {
	sum := 1.0
	for _, p := range pods {
		if Reschedulable(p) {
			sum += math.Max(0, Cost(p))
		}
	}
	return sum
}

// Protected returns the annotation that forbids disrupting the pod at the given moment, or an empty
// string. A duration counts from the start of the pod; a pod that has not started is protected.
// Values other than "true" and positive durations are ignored.
func Protected(p *corev1.Pod, now time.Time) string {
	if Ended(p) {
		return ""
	}
	if p.Annotations[DoNotEvict] == "true" {
		return DoNotEvict + "=true"
	}
	text, ok := p.Annotations[DoNotDisrupt]
	if !ok {
		return ""
	}
	if text == "true" {
		return DoNotDisrupt + "=true"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return ""
	}
	if start := p.Status.StartTime; start != nil && !now.Before(start.Add(d)) {
		return ""
	}
	return DoNotDisrupt + "=" + text
}

// Evictable reports whether a drain evicts the pod. It does not evict finished, terminating and
// mirror pods. Nor does it evict pods that tolerate the taint karpenter.sh/disrupted, which stay
// until the node is gone.
func Evictable(p *corev1.Pod) bool {
	if Ended(p) || p.DeletionTimestamp != nil || Mirror(p) {
		return false
	}
	leaving := corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}
	return !toleration.Covers(p.Spec.Tolerations, leaving)
}

// Name returns namespace/name.
func Name(p *corev1.Pod) string { return cmp.Or(p.Namespace, corev1.NamespaceDefault) + "/" + p.Name }
