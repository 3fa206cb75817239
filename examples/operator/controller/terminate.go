package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/deprovision/drain"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/pipeline"
)

// drainPause is the time between two steps of a drain. Changes of pods do not reconcile claims.
const drainPause = time.Second

// reconcileNode deletes the claim of a node that is being deleted, which drains it, and releases
// nodes without a claim.
func (o *Operator) reconcileNode(ctx context.Context, node *corev1.Node) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(node, karpv1.TerminationFinalizer) {
		return reconcile.Result{}, nil
	}
	claim, err := o.claimOf(ctx, node)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case claim == nil:
		return reconcile.Result{RequeueAfter: o.options.Poll}, o.release(ctx, node)
	case node.DeletionTimestamp != nil && claim.DeletionTimestamp == nil:
		return reconcile.Result{}, client.IgnoreNotFound(o.client.Delete(ctx, claim))
	}
	return reconcile.Result{}, nil
}

// release removes a node of ours that has no claim. While its machine lives, its pods run, so the
// review gives the machine back first. A machine without a token is not ours; its node is removed
// only if it is being deleted.
func (o *Operator) release(ctx context.Context, node *corev1.Node) error {
	machine, err := o.options.Provider.Get(ctx, node.Spec.ProviderID)
	if notFoundIsFine(err) != nil || err == nil && (machine.Token != "" || node.DeletionTimestamp == nil) {
		return err
	}
	return o.removeNode(ctx, node)
}

// removeNode deletes a node without a machine, and its pods, because no kubelet is left to report
// that they have ended.
func (o *Operator) removeNode(ctx context.Context, node *corev1.Node) error {
	pods, err := o.podsOn(ctx, node)
	for _, p := range pods {
		err = errors.Join(err, o.deletePod(ctx, p, 0))
	}
	if err == nil && node.DeletionTimestamp == nil {
		err = client.IgnoreNotFound(o.client.Delete(ctx, node))
	}
	if err == nil {
		err = client.IgnoreNotFound(o.removeFinalizer(ctx, node))
	}
	return err
}

func (o *Operator) podsOn(ctx context.Context, node *corev1.Node) ([]*corev1.Pod, error) {
	return list[*corev1.Pod](ctx, o.client, &corev1.PodList{}, client.MatchingFields{podNode: node.Name})
}

func (o *Operator) deletePod(ctx context.Context, p *corev1.Pod, grace time.Duration) error {
	return client.IgnoreNotFound(o.client.Delete(ctx, p, client.GracePeriodSeconds(grace/time.Second), client.Preconditions{UID: &p.UID}))
}

func (o *Operator) removeFinalizer(ctx context.Context, object client.Object) error {
	return o.write(ctx, object, func() { controllerutil.RemoveFinalizer(object, karpv1.TerminationFinalizer) })
}

// terminate ends a claim that is being deleted: taint, drain, volumes, machine, node, claim. Every
// step looks at the current state, so it continues wherever it was interrupted.
func (o *Operator) terminate(ctx context.Context, claim *karpv1.NodeClaim) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(claim, karpv1.TerminationFinalizer) {
		return reconcile.Result{}, nil
	}
	node, err := o.nodeOf(ctx, claim)
	if err != nil {
		return reconcile.Result{}, err
	}
	gone, err := o.machineGone(ctx, claim)
	switch {
	case err != nil:
	case !gone:
		if err = o.giveBack(ctx, claim, node); err == nil {
			return reconcile.Result{RequeueAfter: drainPause}, nil
		}
	case node != nil:
		err = o.removeNode(ctx, node)
	}
	if err == nil {
		err = o.removeFinalizer(ctx, claim)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	o.tried.Delete(claim.UID)
	o.asked.Delete(claim.UID)
	claimsTerminated.WithLabelValues(claim.Labels[karpv1.NodePoolLabelKey]).Inc()
	log.FromContext(ctx).Info("terminated", "provider-id", claim.Status.ProviderID)
	o.Wake() // its pods need a place, and its pool is further from its limit
	return reconcile.Result{}, nil
}

// machineGone reports whether there is no machine to give back. It finds a machine whose launch was
// not answered by its token; if the cloud's list does not show it yet, the review collects it later
// as an orphan.
func (o *Operator) machineGone(ctx context.Context, claim *karpv1.NodeClaim) (bool, error) {
	if claim.Status.ProviderID == "" {
		return pipeline.GiveBack(ctx, o.options.Provider, []cloudprovider.NodeClaim{{Token: string(claim.UID)}})
	}
	_, err := o.options.Provider.Get(ctx, claim.Status.ProviderID)
	if errors.Is(err, cloudprovider.ErrNotFound) { // readers may lag behind; Delete does not
		err = o.options.Provider.Delete(ctx, claim.Status.ProviderID)
	}
	return errors.Is(err, cloudprovider.ErrNotFound), notFoundIsFine(err)
}

// giveBack drains the node of a claim, if it has one, and then gives the machine back.
func (o *Operator) giveBack(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) error {
	if node != nil {
		if waits, err := o.empty(ctx, claim, node); err != nil || waits {
			return err
		}
	}
	if err := o.options.Provider.Delete(ctx, claim.Status.ProviderID); notFoundIsFine(err) != nil {
		return err
	}
	return o.writeStatus(ctx, claim, func() { claim.StatusConditions().SetTrue(karpv1.ConditionTypeInstanceTerminating) })
}

func notFoundIsFine(err error) error {
	if errors.Is(err, cloudprovider.ErrNotFound) {
		return nil
	}
	return err
}

// empty takes a drain one step further and reports whether it has to wait.
func (o *Operator) empty(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) (waits bool, err error) {
	if err := o.close(ctx, node, true); err != nil {
		return true, err
	}
	deadline, now := drainEnd(claim), time.Now()
	pods, done, err := o.drain(ctx, claim, node, deadline, "it is given back")
	if err != nil || !done {
		return true, err
	}
	if !claim.StatusConditions().IsTrue(karpv1.ConditionTypeDrained) { // look once more: the cache may not show the pod that was bound last
		return true, o.writeStatus(ctx, claim, func() { claim.StatusConditions().SetTrue(karpv1.ConditionTypeDrained) })
	}
	attachments, err := list[*storagev1.VolumeAttachment](ctx, o.client, &storagev1.VolumeAttachmentList{}, client.UnsafeDisableDeepCopy)
	claims, unknown := list[*corev1.PersistentVolumeClaim](ctx, o.client, &corev1.PersistentVolumeClaimList{}, client.UnsafeDisableDeepCopy)
	err = errors.Join(err, unknown)
	attached := drain.Attached(node.Name, attachments, pods, claims)
	if err != nil || len(attached) > 0 && (deadline.IsZero() || now.Before(deadline)) {
		o.events.Eventf(node, claim, corev1.EventTypeNormal, "AwaitingVolumeDetachment", "Drain", "attached still: %v", attached)
		return true, err
	}
	return false, o.writeStatus(ctx, claim, func() { claim.StatusConditions().SetTrue(karpv1.ConditionTypeVolumesDetached) })
}

// drain evicts the pods of a node whose turn it is, and reports whether none is left that has to
// go. Those whose time is up are forced.
func (o *Operator) drain(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node, deadline time.Time, why string) (pods []*corev1.Pod, done bool, err error) {
	pods, err = o.podsOn(ctx, node)
	budgets, unknown := list[*policyv1.PodDisruptionBudget](ctx, o.client, &policyv1.PodDisruptionBudgetList{}, client.UnsafeDisableDeepCopy)
	if err := errors.Join(err, unknown); err != nil {
		return nil, false, err
	}
	plan := drain.Of(pods, eviction.NewBudgets(budgets), time.Now(), deadline)
	var errs []error // an error of one pod does not stop the others
	for _, f := range plan.Forced {
		o.events.Eventf(f.Pod, node, corev1.EventTypeWarning, "Disrupted", "Delete", "the time of node %s to drain is up", node.Name)
		errs = append(errs, o.deletePod(ctx, f.Pod, f.Grace))
	}
	for _, p := range plan.Now() {
		errs = append(errs, o.evict(ctx, p, node, why))
	}
	if len(plan.Steps) > 0 && len(plan.Now())+len(plan.Ending) == 0 { // the drain is stuck
		o.events.Eventf(node, claim, corev1.EventTypeWarning, "FailedDraining", "Drain", "pods left: %d; %s waits: %s", len(plan.Steps), eviction.Name(plan.Steps[0].Pod), plan.Steps[0].Wait)
	}
	return pods, plan.Done(), errors.Join(errs...)
}

// close taints a node against new pods. A node that is being drained is also excluded from load
// balancers; one that waits for its replacements still serves.
func (o *Operator) close(ctx context.Context, node *corev1.Node, drained bool) error {
	return o.write(ctx, node, func() {
		if !hasTaint(node, karpv1.DisruptedTaintKey) {
			node.Spec.Taints = append(node.Spec.Taints, karpv1.DisruptedNoScheduleTaint)
		}
		if drained {
			metav1.SetMetaDataLabel(&node.ObjectMeta, corev1.LabelNodeExcludeBalancers, "karpenter")
		}
	})
}

// evict calls the eviction API, which enforces budgets. Too many requests is no error: the next
// step tries again.
func (o *Operator) evict(ctx context.Context, p *corev1.Pod, node *corev1.Node, why string) error {
	err := o.client.SubResource("eviction").Create(ctx, p, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}, DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}},
	})
	switch {
	case err == nil:
		evictions.Inc()
		o.events.Eventf(p, node, corev1.EventTypeNormal, "Evicted", "Evict", "node %s: %s", node.Name, why)
	case apierrors.IsTooManyRequests(err):
		o.events.Eventf(p, node, corev1.EventTypeWarning, "EvictionRefused", "Evict", "%s", err.Error())
	case !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
		return fmt.Errorf("eviction of %s: %w", eviction.Name(p), err)
	}
	return nil
}
