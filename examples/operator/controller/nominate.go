package controller

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// planned is the claim that the last plan has for a pod that does not run yet.
type planned struct {
	claim string
	pod   types.NamespacedName
}

// nominate records the claim that is planned for a pod and writes an event that names it.
func (o *Operator) nominate(v *view, claim *karpv1.NodeClaim, pod *corev1.Pod) {
	if v.moving[pod.UID] { // it still runs; the pod that replaces it will be nominated
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.planned[pod.UID].claim != claim.Name {
		o.planned[pod.UID] = planned{claim: claim.Name, pod: client.ObjectKeyFromObject(pod)}
		o.events.Eventf(pod, claim, corev1.EventTypeNormal, "Nominated", "Nominate", "pod should go to the node of NodeClaim %s", claim.Name)
	}
}

// started observes, once a pod, the time from its creation until it runs.
func (o *Operator) started(pod *corev1.Pod, claim *karpv1.NodeClaim) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.planned[pod.UID]; ok {
		delete(o.planned, pod.UID)
		podStartSeconds.WithLabelValues(claim.Labels[karpv1.NodePoolLabelKey]).Observe(time.Since(pod.CreationTimestamp.Time).Seconds())
	}
}

// mostNominated is how many pods may wait for their nodes if they are to be nominated: whenever kube-scheduler looks at a node for any
// pod, it works out what the node is like with all pods that are nominated there. With thousands it bound 20 pods a second.
const mostNominated = 500

// point nominates the pods that are planned for a claim to its node, which is about to be opened: kube-scheduler tries that node first and
// keeps the place free for as long. It is a hint, so errors do not matter; a pod that does not get there is planned again, see read.
func (o *Operator) point(ctx context.Context, claim, node string) {
	var pods []types.NamespacedName
	o.locked(func(time.Time) {
		for _, p := range o.planned {
			if p.claim == claim && len(o.planned) <= mostNominated {
				pods = append(pods, p.pod)
			}
		}
	})
	workqueue.ParallelizeUntil(ctx, workers, len(pods), func(i int) {
		var pod corev1.Pod
		if o.client.Get(ctx, pods[i], &pod) != nil || !unschedulable(&pod) {
			return
		}
		if slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == corev1.DoNotSchedule }) {
			return // kube-scheduler counts pods nominated to the node that it tries, but to no other: they would keep each other out
		}
		_ = o.writeStatus(ctx, &pod, func() { pod.Status.NominatedNodeName = node })
	})
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
