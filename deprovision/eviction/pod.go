package eviction

import (
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/internal/toleration"
)

// Annotations by which pods and nodes speak about being moved.
const (
	// DoNotDisrupt on a pod is "true" or, since karpenter.sh/v1, a duration since the pod's start; on a node it is "true".
	DoNotDisrupt = "karpenter.sh/do-not-disrupt"
	// DoNotEvict is the older name for pods.
	DoNotEvict = "karpenter.sh/do-not-evict"
	// DeletionCost orders pods of one owner and adds to what their eviction costs.
	DeletionCost = "controller.kubernetes.io/pod-deletion-cost"
)

// Ended reports whether the pod has finished, so that it holds nothing any more.
func Ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Daemon reports whether a DaemonSet runs the pod: it goes with its node and comes with the next.
func Daemon(p *corev1.Pod) bool { return owned(p, "DaemonSet") }

// Mirror reports whether the pod stands for one that a kubelet runs from a file: it belongs to its node.
func Mirror(p *corev1.Pod) bool {
	_, ok := p.Annotations[corev1.MirrorPodAnnotationKey]
	return ok || owned(p, "Node")
}

// Unowned reports whether nobody would make the pod again once it is evicted: no controller owns it, and neither DaemonSet
// nor kubelet does.
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

// Reschedulable reports whether the pod will need a place elsewhere if its node goes: it runs and is neither a daemon's
// nor a kubelet's. A pod on its way out needs none, unless its StatefulSet makes it again.
func Reschedulable(p *corev1.Pod) bool {
	if Ended(p) || Daemon(p) || Mirror(p) {
		return false
	}
	return p.DeletionTimestamp == nil || owned(p, "StatefulSet")
}

// Cost is what it costs to evict the pod, in the reference's unit: 1 for a pod without any remark, more for a high
// priority or deletion cost, at most 10, and below zero for pods that ask to go first.
//
//	cost = clamp(1 + deletion cost / 2^27 + priority / 2^25, -10, 10)
//
// A deletion cost that is no number counts as none.
func Cost(p *corev1.Pod) float64 {
	deletion, priority := Parts(p)
	return math.Max(-10, math.Min(10, 1+deletion+priority))
}

// Parts are what the deletion cost and the priority of a pod add to its [Cost], before that is bounded.
func Parts(p *corev1.Pod) (deletion, priority float64) {
	if text, ok := p.Annotations[DeletionCost]; ok {
		var n int32
		if _, err := fmt.Sscanf(text, "%d", &n); err == nil {
			deletion = float64(n) / (1 << 27)
		}
	}
	if p.Spec.Priority != nil {
		priority = float64(*p.Spec.Priority) / (1 << 25)
	}
	return deletion, priority
}

// Disruption is what it costs to empty a node of the pods: 1 for the node and what each pod that must find a new place
// costs, none less than nothing. The sum is taken in the order of the list.
func Disruption(pods []*corev1.Pod) float64 {
	sum := 1.0
	for _, p := range pods {
		if Reschedulable(p) {
			sum += math.Max(0, Cost(p))
		}
	}
	return sum
}

// Protected says what in the pod's annotations forbids to disturb it at the given moment; it is empty if nothing does. A
// duration counts from the pod's start and protects a pod that has not started; what is neither "true" nor a positive
// duration protects nobody.
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

// Evictable reports whether a drain has to evict the pod: it runs, is not a kubelet's own, and does not tolerate the taint
// that marks nodes on their way out (then it stays until the node is gone).
func Evictable(p *corev1.Pod) bool {
	if Ended(p) || p.DeletionTimestamp != nil || Mirror(p) {
		return false
	}
	leaving := corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}
	return !toleration.Covers(p.Spec.Tolerations, leaving)
}

// Name is namespace/name.
func Name(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }
