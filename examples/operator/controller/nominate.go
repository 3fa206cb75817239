package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// planned is where the last plan has a pod.
type planned struct {
	claim string
	pod   types.NamespacedName
	again bool // it was pointed to its open node a second time
	runs  bool
}

// nominate tells a pod by an event which node is meant for it, and remembers it.
func (o *Operator) nominate(v *view, claim *karpv1.NodeClaim, pod *corev1.Pod) {
	if v.moving[pod.UID] { // it runs, and what comes in its place is told
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.planned[pod.UID].claim != claim.Name {
		o.planned[pod.UID] = planned{claim: claim.Name, pod: client.ObjectKeyFromObject(pod)}
		o.events.Eventf(pod, claim, corev1.EventTypeNormal, "Nominated", "Nominate", "pod should go to the node of NodeClaim %s", claim.Name)
	}
}

// started notes, once, how long a pod that was planned took until it ran.
func (o *Operator) started(pod *corev1.Pod, claim *karpv1.NodeClaim) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if plan, ok := o.planned[pod.UID]; ok && !plan.runs {
		plan.runs = true
		o.planned[pod.UID] = plan
		podStartSeconds.WithLabelValues(claim.Labels[karpv1.NodePoolLabelKey]).Observe(time.Since(pod.CreationTimestamp.Time).Seconds())
	}
}

// forget drops pods that are no more.
func (o *Operator) forget(v *view) {
	there := make(map[types.UID]bool, len(v.Pods))
	for _, p := range v.Pods {
		there[p.UID] = true
	}
	o.locked(func(time.Time) {
		maps.DeleteFunc(o.planned, func(uid types.UID, _ planned) bool { return !there[uid] })
	})
}

// patience is for how long after its initialization a node is held for the pods that are planned there: longer than
// kube-scheduler lets a pod wait between two tries.
const patience = 15 * time.Second

// point reports whether a pod that fits nowhere yet is on its way to the node that is planned for it, and helps it on. By
// status.nominatedNodeName, which is there for that, kube-scheduler tries that node first and keeps its room. It clears the field
// whenever a try fails. The first may have been before the node was open, so the pod is pointed there once more; then others have
// taken the room, and the pod needs another plan.
func (o *Operator) point(ctx context.Context, pod *corev1.Pod) bool {
	o.mu.Lock()
	plan := o.planned[pod.UID]
	o.mu.Unlock()
	nominated := pod.Status.NominatedNodeName // of a pod that was not planned, kube-scheduler knows why: it may be making room there
	var claim karpv1.NodeClaim
	if plan.claim == "" || o.client.Get(ctx, client.ObjectKey{Name: plan.claim}, &claim) != nil || claim.DeletionTimestamp != nil {
		return false
	}
	at := since(&claim, karpv1.ConditionTypeInitialized)
	switch {
	case at.IsZero():
		return true
	case time.Since(at) > patience:
		if nominated != "" && nominated == claim.Status.NodeName {
			o.patchNomination(ctx, client.ObjectKeyFromObject(pod), "")
		}
		return false
	case nominated == "" && (plan.again || !keepsRoom(pod)):
		return false
	case nominated == "" && !o.crowded(ctx):
		o.mu.Lock()
		plan.pod, plan.again = client.ObjectKeyFromObject(pod), true
		o.planned[pod.UID] = plan
		o.mu.Unlock()
		o.patchNomination(ctx, plan.pod, claim.Status.NodeName)
	}
	return true
}

// keepsRoom reports whether nominating a pod helps it. When kube-scheduler tries a node, it counts the pods that are nominated there,
// but not those nominated elsewhere: pods that are to be spread evenly would keep each other out for good.
func keepsRoom(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.DoNotSchedule
	})
}

// mostNominated is how many pods wait on nodes that they are nominated for, about: whenever kube-scheduler looks at a node for any pod,
// it works out what the node is like with all that are nominated there. Of 10,000 pods it bound 20 a second while hundreds were.
const mostNominated = 100

// crowded reports whether no more pods should be nominated.
func (o *Operator) crowded(ctx context.Context) bool {
	var pods corev1.PodList
	err := o.client.List(ctx, &pods, client.MatchingFields{podNominated: "true"}, client.UnsafeDisableDeepCopy)
	return err != nil || len(pods.Items) >= mostNominated
}

// pointAll points the pods that are planned for a claim to its node, which has just joined. Of thousands of pods only some are.
func (o *Operator) pointAll(ctx context.Context, claim, node string) {
	var pods []types.NamespacedName
	o.mu.Lock()
	for _, p := range o.planned {
		if p.claim == claim {
			pods = append(pods, p.pod)
		}
	}
	o.mu.Unlock()
	workqueue.ParallelizeUntil(ctx, workers, len(pods), func(i int) {
		var pod corev1.Pod
		if o.client.Get(ctx, pods[i], &pod) == nil && pod.Spec.NodeName == "" && keepsRoom(&pod) && !o.crowded(ctx) {
			o.patchNomination(ctx, pods[i], node)
		}
	})
}

// patchNomination nominates a pod for a node, or for none if that is empty. It is a hint: where it fails, the pod finds its place without.
func (o *Operator) patchNomination(ctx context.Context, pod types.NamespacedName, node string) {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"nominatedNodeName":%q}}`, node))
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	err := o.client.Status().Patch(ctx, object, patch)
	if client.IgnoreNotFound(err) != nil && !apierrors.IsInvalid(err) && ctx.Err() == nil { // invalid: it is bound by now
		log.FromContext(ctx).Info("nomination failed", "pod", pod.String(), "error", err.Error())
	}
}
