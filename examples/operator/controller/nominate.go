package controller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// planned is the claim that the last plan has for a pod that does not run yet.
type planned struct {
	claim string
	pod   types.NamespacedName
}

// nominate records which claims are planned for pods, with an event for each that is new, and drops
// what an earlier plan had for pods that are gone or have no place now.
func (o *Operator) nominate(v *view, p *plan.Plan) {
	known := map[types.UID]bool{}
	for _, q := range v.Pods {
		known[q.UID] = q.Spec.NodeName != ""
	}
	o.locked(func(time.Time) {
		for _, b := range p.Bindings() {
			known[b.Pod.UID] = true
			claim := v.claims[b.Node]
			if claim != nil && !v.moving[b.Pod.UID] && o.planned[b.Pod.UID].claim != claim.Name { // of one that moves, the successor will be nominated
				o.planned[b.Pod.UID] = planned{claim: claim.Name, pod: client.ObjectKeyFromObject(b.Pod)}
				o.events.Eventf(b.Pod, claim, corev1.EventTypeNormal, "Nominated", "Nominate", "pod should go to the node of NodeClaim %s", claim.Name)
			}
		}
		maps.DeleteFunc(o.planned, func(pod types.UID, _ planned) bool { return !known[pod] })
	})
}

const (
	// openAfter is how long a node keeps the unregistered taint because nodes are not ready:
	// itself, or others of the plan. It may be waiting for daemons that do not tolerate the taint,
	// such as those of its network.
	openAfter = 5 * time.Second
	// mostNominated is how many pods may wait for their nodes if they are to be nominated: whenever
	// kube-scheduler looks at a node for any pod, it works out what the node is like with all pods
	// that are nominated there. With thousands it bound 20 pods a second.
	mostNominated = 500
)

// open removes the unregistered taint of the node of a claim, and of all ready nodes that pods are
// planned for, after nominating those pods. It does so when all of them are ready, or openAfter
// after the claim was registered. A node that is open before the others would be filled with pods
// that are planned for those, and whenever one is opened, kube-scheduler tries all waiting pods
// again.
func (o *Operator) open(ctx context.Context, claim *karpv1.NodeClaim) (reconcile.Result, error) {
	o.opening.Lock()
	defer o.opening.Unlock()
	pods := map[string][]types.NamespacedName{claim.Name: nil} // by claim
	o.locked(func(time.Time) {
		for _, p := range o.planned {
			pods[p.claim] = append(pods[p.claim], p.pod)
		}
	})
	left := openAfter - time.Since(since(claim, karpv1.ConditionTypeRegistered))
	var shut []*corev1.Node
	var hints []planned
	for name := range pods {
		var c karpv1.NodeClaim
		if o.client.Get(ctx, client.ObjectKey{Name: name}, &c) != nil || c.DeletionTimestamp != nil || is(karpv1.ConditionTypeInitialized)(&c) {
			continue
		}
		node, err := o.nodeOf(ctx, &c)
		ready := node != nil && is(karpv1.ConditionTypeRegistered)(&c) && lifecycle.Works(node)
		if err != nil || !ready && left > 0 {
			return reconcile.Result{RequeueAfter: left}, err
		}
		if node != nil && (ready || name == claim.Name) && hasTaint(node, karpv1.UnregisteredTaintKey) {
			for _, pod := range pods[name] {
				hints = append(hints, planned{node.Name, pod})
			}
			shut = append(shut, node)
		}
	}
	workqueue.ParallelizeUntil(ctx, workers, len(hints), func(i int) { o.hint(ctx, hints[i].pod, hints[i].claim) })
	errs := make([]error, len(shut))
	workqueue.ParallelizeUntil(ctx, workers, len(shut), func(i int) {
		errs[i] = retry.RetryOnConflict(retry.DefaultRetry, func() error { // the kubelet has just begun to report, and the others are open
			if err := o.api.Get(ctx, client.ObjectKeyFromObject(shut[i]), shut[i]); err != nil {
				return err
			}
			return o.untaint(ctx, shut[i], karpv1.UnregisteredTaintKey)
		})
	})
	return reconcile.Result{}, errors.Join(errs...)
}

// hint nominates an unschedulable pod to a node: kube-scheduler tries that node first, and keeps
// the place free for as long. Errors do not matter. If kube-scheduler tries the pod before the node
// is open, it drops the nomination; then [Operator.reconcilePod] gives it again.
func (o *Operator) hint(ctx context.Context, name types.NamespacedName, node string) {
	many := false
	o.locked(func(time.Time) { many = len(o.planned) > mostNominated })
	var pod corev1.Pod
	if many || o.client.Get(ctx, name, &pod) != nil || !unschedulable(&pod) {
		return
	}
	if slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == corev1.DoNotSchedule }) {
		return // kube-scheduler counts pods nominated to the node that it tries, but to no other: they would keep each other out
	}
	_ = o.writeStatus(ctx, &pod, func() { pod.Status.NominatedNodeName = node })
}

// place returns the claim that a pod is planned for; nil if there is none, or it is being deleted.
func (o *Operator) place(ctx context.Context, pod *corev1.Pod) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{}
	o.locked(func(time.Time) { claim.Name = o.planned[pod.UID].claim })
	if claim.Name == "" || o.client.Get(ctx, client.ObjectKeyFromObject(claim), claim) != nil || claim.DeletionTimestamp != nil {
		return nil
	}
	return claim
}
