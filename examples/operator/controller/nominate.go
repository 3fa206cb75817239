package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// planned is where the last plan has a pod.
type planned struct {
	claim string
	pod   types.NamespacedName
	runs  bool
}

// nominate tells a pod by an event which node is meant for it, and remembers it.
func (o *Operator) nominate(v *view, claim *karpv1.NodeClaim, pod *corev1.Pod) {
	if v.moving[pod.UID] { // it runs, and what comes in its place is told
		return
	}
	o.mu.Lock()
	last := o.planned[pod.UID]
	o.planned[pod.UID] = planned{claim: claim.Name, pod: client.ObjectKeyFromObject(pod)}
	o.mu.Unlock()
	if last.claim != claim.Name {
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
	o.mu.Lock()
	defer o.mu.Unlock()
	for uid := range o.planned {
		if !there[uid] {
			delete(o.planned, uid)
		}
	}
}

// patience is for how long after its initialization a node is held for the pods that are planned there: longer than
// kube-scheduler lets a pod wait between two tries.
const patience = 15 * time.Second

// point tells kube-scheduler which node to try first, and to keep its room: status.nominatedNodeName, which is there for that.
// The scheduler clears it whenever a try fails, so it is set just before the node is opened, and set again while the node has not
// been ready for long. After that others have taken the room: the nomination is withdrawn, and the pod needs another plan, which
// false says.
func (o *Operator) point(ctx context.Context, pod *corev1.Pod) bool {
	o.mu.Lock()
	name := o.planned[pod.UID].claim
	o.mu.Unlock()
	if name == "" && pod.Status.NominatedNodeName != "" { // planned by a former process, perhaps
		var node corev1.Node
		if o.client.Get(ctx, client.ObjectKey{Name: pod.Status.NominatedNodeName}, &node) == nil {
			if claim, err := o.claimOf(ctx, &node); err == nil && claim != nil {
				name = claim.Name
			}
		}
	}
	var claim karpv1.NodeClaim
	if name == "" || o.client.Get(ctx, client.ObjectKey{Name: name}, &claim) != nil || claim.DeletionTimestamp != nil {
		return false
	}
	at := since(&claim, karpv1.ConditionTypeInitialized)
	switch nominated := pod.Status.NominatedNodeName; {
	case at.IsZero():
		return true
	case time.Since(at) > patience:
		if nominated == claim.Status.NodeName {
			o.patchNomination(ctx, client.ObjectKeyFromObject(pod), "")
		}
		return false
	case nominated == "":
		o.patchNomination(ctx, client.ObjectKeyFromObject(pod), claim.Status.NodeName)
	}
	return true
}

// pointAll points all pods that are planned for a claim to its node, which has just joined.
func (o *Operator) pointAll(ctx context.Context, claim, node string) {
	var pods []types.NamespacedName
	o.mu.Lock()
	for _, p := range o.planned {
		if p.claim == claim {
			pods = append(pods, p.pod)
		}
	}
	o.mu.Unlock()
	for _, p := range pods {
		var pod corev1.Pod
		if o.client.Get(ctx, p, &pod) == nil && pod.Spec.NodeName == "" {
			o.patchNomination(ctx, p, node)
		}
	}
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

// Planned is the NodeClaim that a pod was last planned for, empty if none was.
func (o *Operator) Planned(pod types.UID) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.planned[pod].claim
}
