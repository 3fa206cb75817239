package controller

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// planned is the claim that the last plan has for a pod.
type planned struct {
	claim string
	runs  bool
}

// nominate records the claim that is planned for a pod and writes an event that names it.
func (o *Operator) nominate(v *view, claim *karpv1.NodeClaim, pod *corev1.Pod) {
	if v.moving[pod.UID] { // it still runs; the pod that replaces it will be nominated
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.planned[pod.UID].claim != claim.Name {
		o.planned[pod.UID] = planned{claim: claim.Name}
		o.events.Eventf(pod, claim, corev1.EventTypeNormal, "Nominated", "Nominate", "pod should go to the node of NodeClaim %s", claim.Name)
	}
}

// started observes, once a pod, the time from its creation until it runs.
func (o *Operator) started(pod *corev1.Pod, claim *karpv1.NodeClaim) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if plan, ok := o.planned[pod.UID]; ok && !plan.runs {
		plan.runs = true
		o.planned[pod.UID] = plan
		podStartSeconds.WithLabelValues(claim.Labels[karpv1.NodePoolLabelKey]).Observe(time.Since(pod.CreationTimestamp.Time).Seconds())
	}
}

// awaited returns the names of the claims that pending pods are planned for. Their nodes stay, even if the pods would fit elsewhere,
// because kube-scheduler may bind them there at any moment.
func (o *Operator) awaited(v *view) map[string]bool {
	out := map[string]bool{}
	o.locked(func(time.Time) {
		for _, p := range v.Pods {
			if plan, ok := o.planned[p.UID]; ok && p.Spec.NodeName == "" {
				out[plan.claim] = true
			}
		}
	})
	return out
}

// forget drops pods that no longer exist.
func (o *Operator) forget(v *view) {
	there := make(map[types.UID]bool, len(v.Pods))
	for _, p := range v.Pods {
		there[p.UID] = true
	}
	o.locked(func(time.Time) {
		maps.DeleteFunc(o.planned, func(uid types.UID, _ planned) bool { return !there[uid] })
	})
}

// expected reports whether an unschedulable pod is planned for a node that is not initialized yet. If it is still unschedulable
// afterwards, other pods have taken its place, and it is planned again.
func (o *Operator) expected(ctx context.Context, pod *corev1.Pod) bool {
	o.mu.Lock()
	name := o.planned[pod.UID].claim
	o.mu.Unlock()
	var claim karpv1.NodeClaim
	if name == "" || o.client.Get(ctx, client.ObjectKey{Name: name}, &claim) != nil || claim.DeletionTimestamp != nil {
		return false
	}
	return !is(karpv1.ConditionTypeInitialized)(&claim)
}
