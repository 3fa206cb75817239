package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
)

// drainPause is how long a drain waits before it looks again: what it waits for are pods, whose changes do not wake a claim.
const drainPause = time.Second

// reconcileNode hands the deletion of a node on to its claim, which drains it, and lets nodes go that have no claim any more.
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

// release lets a node of ours go whose claim is gone. The cache may be behind: only the API server's own answer counts.
func (o *Operator) release(ctx context.Context, node *corev1.Node) error {
	var claims karpv1.NodeClaimList
	if err := o.api.List(ctx, &claims); err != nil {
		return err
	}
	if slices.ContainsFunc(claims.Items, func(c karpv1.NodeClaim) bool { return c.Status.ProviderID == node.Spec.ProviderID }) {
		return nil
	}
	return o.removeNode(ctx, node)
}

// removeNode takes a node whose machine is gone out of the cluster.
func (o *Operator) removeNode(ctx context.Context, node *corev1.Node) error {
	if node.DeletionTimestamp == nil {
		if err := o.client.Delete(ctx, node); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return client.IgnoreNotFound(o.removeFinalizer(ctx, node))
}

func (o *Operator) removeFinalizer(ctx context.Context, object client.Object) error {
	return o.write(ctx, object, func() { controllerutil.RemoveFinalizer(object, karpv1.TerminationFinalizer) })
}

// terminate ends a claim that is being deleted: taint, drain, volumes, machine, node, claim. Every step looks at what is there,
// so it goes on wherever it was interrupted.
func (o *Operator) terminate(ctx context.Context, claim *karpv1.NodeClaim) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(claim, karpv1.TerminationFinalizer) {
		return reconcile.Result{}, nil
	}
	node, err := o.nodeOf(ctx, claim)
	if err != nil {
		return reconcile.Result{}, err
	}
	gone, err := o.machineGone(ctx, claim)
	if err != nil {
		return reconcile.Result{}, err
	}
	if node != nil {
		if gone {
			if err := o.bury(ctx, node); err != nil {
				return reconcile.Result{}, err
			}
		} else if waits, err := o.empty(ctx, claim, node); err != nil || waits {
			return reconcile.Result{RequeueAfter: drainPause}, err
		}
	}
	if !gone {
		if err := o.options.Provider.Delete(ctx, claim.Status.ProviderID); err != nil && !errors.Is(err, cloudprovider.ErrNotFound) {
			return reconcile.Result{}, err
		}
		if err := o.setCondition(ctx, claim, karpv1.ConditionTypeInstanceTerminating); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: drainPause}, nil
	}
	if node != nil {
		if err := o.removeNode(ctx, node); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := o.removeFinalizer(ctx, claim); err != nil {
		return reconcile.Result{}, err
	}
	pool := claim.Labels[karpv1.NodePoolLabelKey]
	claimsTerminated.WithLabelValues(pool).Inc()
	log.FromContext(ctx).Info("terminated", "provider-id", claim.Status.ProviderID)
	o.Wake() // its pods need a place, and its pool's limit has room again
	return reconcile.Result{}, nil
}

// machineGone reports whether there is no machine to give back. A launch whose answer was lost is asked for once more: the
// token leads to its machine, if there is one.
func (o *Operator) machineGone(ctx context.Context, claim *karpv1.NodeClaim) (bool, error) {
	if claim.Status.ProviderID != "" {
		_, err := o.options.Provider.Get(ctx, claim.Status.ProviderID)
		if errors.Is(err, cloudprovider.ErrNotFound) { // readers may lag behind; Delete does not
			err = o.options.Provider.Delete(ctx, claim.Status.ProviderID)
		}
		return errors.Is(err, cloudprovider.ErrNotFound), notFoundIsFine(err)
	}
	instances, err := o.options.Provider.List(ctx)
	if err != nil {
		return false, err
	}
	for _, i := range instances {
		if i.Token == string(claim.UID) {
			return false, notFoundIsFine(o.options.Provider.Delete(ctx, i.ID))
		}
	}
	return true, nil // one that the list does not show yet is an orphan, which the review collects
}

func notFoundIsFine(err error) error {
	if errors.Is(err, cloudprovider.ErrNotFound) {
		return nil
	}
	return err
}

// bury deletes the pods of a machine that is gone: nobody is left there to say that they have ended.
func (o *Operator) bury(ctx context.Context, node *corev1.Node) error {
	pods, err := o.podsOn(ctx, node.Name)
	for _, p := range pods {
		err = errors.Join(err, client.IgnoreNotFound(o.client.Delete(ctx, p, client.GracePeriodSeconds(0), client.Preconditions{UID: &p.UID})))
	}
	return err
}

// empty moves the drain of a node on, and reports whether something is left to wait for.
func (o *Operator) empty(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) (waits bool, err error) {
	if err := o.close(ctx, node); err != nil {
		return true, err
	}
	pods, err := o.podsOn(ctx, node.Name)
	if err != nil {
		return true, err
	}
	var list policyv1.PodDisruptionBudgetList
	if err := o.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return true, err
	}
	var deadline time.Time
	if grace := claim.Spec.TerminationGracePeriod; grace != nil {
		deadline = claim.DeletionTimestamp.Add(grace.Duration)
	}
	now := time.Now()
	plan := drain.Of(pods, eviction.NewBudgets(pointers(list.Items)), now, deadline)
	var errs []error // one pod's do not hold up the others
	for _, f := range plan.Forced {
		seconds := int64(f.Grace / time.Second)
		o.events.Eventf(f.Pod, node, corev1.EventTypeWarning, "Disrupted", "Delete", "the time of node %s to drain is up", node.Name)
		errs = append(errs, client.IgnoreNotFound(o.client.Delete(ctx, f.Pod, client.GracePeriodSeconds(seconds), client.Preconditions{UID: &f.Pod.UID})))
	}
	for _, p := range plan.Now() {
		errs = append(errs, o.evict(ctx, p, node))
	}
	if err := errors.Join(errs...); err != nil || !plan.Done() {
		return true, err
	}
	if !claim.StatusConditions().IsTrue(karpv1.ConditionTypeDrained) { // look once more: a pod that was bound last may not be in the caches yet
		return true, o.setCondition(ctx, claim, karpv1.ConditionTypeDrained)
	}
	var attachments storagev1.VolumeAttachmentList
	var claims corev1.PersistentVolumeClaimList
	err = errors.Join(o.client.List(ctx, &attachments, client.UnsafeDisableDeepCopy), o.client.List(ctx, &claims, client.UnsafeDisableDeepCopy))
	attached := drain.Attached(node.Name, pointers(attachments.Items), pods, pointers(claims.Items))
	if err != nil || len(attached) > 0 && (deadline.IsZero() || now.Before(deadline)) {
		return true, err
	}
	return false, o.setCondition(ctx, claim, karpv1.ConditionTypeVolumesDetached)
}

// close keeps new pods away from a node.
func (o *Operator) close(ctx context.Context, node *corev1.Node) error {
	return o.write(ctx, node, func() {
		if !hasTaint(node, karpv1.DisruptedTaintKey) {
			node.Spec.Taints = append(node.Spec.Taints, karpv1.DisruptedNoScheduleTaint)
			metav1.SetMetaDataLabel(&node.ObjectMeta, corev1.LabelNodeExcludeBalancers, "karpenter")
		}
	})
}

// evict asks the eviction API, which knows best what budgets allow. A refusal for now is no error.
func (o *Operator) evict(ctx context.Context, p *corev1.Pod, node *corev1.Node) error {
	err := o.client.SubResource("eviction").Create(ctx, p, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}, DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}},
	})
	switch {
	case err == nil:
		evictions.Inc()
		o.events.Eventf(p, node, corev1.EventTypeNormal, "Evicted", "Evict", "node %s is given back", node.Name)
	case apierrors.IsTooManyRequests(err):
		o.events.Eventf(p, node, corev1.EventTypeWarning, "EvictionRefused", "Evict", "%s", shorten(err.Error()))
	case !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
		return fmt.Errorf("eviction of %s: %w", eviction.Name(p), err)
	}
	return nil
}

// setCondition sets a condition of a claim, once.
func (o *Operator) setCondition(ctx context.Context, claim *karpv1.NodeClaim, condition string) error {
	_, err := o.writeStatus(ctx, claim, func() { claim.StatusConditions().SetTrue(condition) })
	return err
}
