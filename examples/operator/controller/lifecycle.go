package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
)

// reconcileClaim takes a claim one step further: launched, registered, initialized, or out of the world.
func (o *Operator) reconcileClaim(ctx context.Context, claim *karpv1.NodeClaim) (reconcile.Result, error) {
	result, err := o.stepClaim(ctx, claim)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // somebody was quicker: look again
		return reconcile.Result{RequeueAfter: 100 * time.Millisecond}, nil
	}
	return result, err
}

func (o *Operator) stepClaim(ctx context.Context, claim *karpv1.NodeClaim) (reconcile.Result, error) {
	if claim.DeletionTimestamp != nil {
		return o.terminate(ctx, claim)
	}
	if !controllerutil.ContainsFinalizer(claim, karpv1.TerminationFinalizer) {
		if err := o.write(ctx, claim, func() { controllerutil.AddFinalizer(claim, karpv1.TerminationFinalizer) }); err != nil {
			return reconcile.Result{}, err
		}
	}
	if !claim.StatusConditions().IsTrue(karpv1.ConditionTypeLaunched) {
		return reconcile.Result{}, o.launch(ctx, claim)
	}
	node, err := o.nodeOf(ctx, claim)
	registered := claim.StatusConditions().IsTrue(karpv1.ConditionTypeRegistered)
	switch {
	case err != nil || node == nil && !registered: // it will be there some time, or reviewed
		return reconcile.Result{}, err
	case node == nil:
		return reconcile.Result{}, o.lost(ctx, claim)
	case !registered:
		return reconcile.Result{}, o.register(ctx, claim, node)
	case !claim.StatusConditions().IsTrue(karpv1.ConditionTypeInitialized):
		return o.initialize(ctx, claim, node)
	}
	return reconcile.Result{}, nil
}

// lost gives a claim up whose node was there and has been deleted past its finalizer: no kubelet makes it again. Only the API server
// knows that for sure.
func (o *Operator) lost(ctx context.Context, claim *karpv1.NodeClaim) error {
	err := o.api.Get(ctx, client.ObjectKey{Name: claim.Status.NodeName}, &corev1.Node{})
	if apierrors.IsNotFound(err) {
		return o.giveUp(ctx, claim, "NodeGone", "its node was deleted")
	}
	return err
}

// launch buys the machine of a claim. The token makes it safe to ask again, whatever became of the answer.
func (o *Operator) launch(ctx context.Context, claim *karpv1.NodeClaim) error {
	ask, err := readRequest(claim)
	if err != nil {
		return err
	}
	if len(ask.Candidates) == 0 { // made by hand: look for what it could be, and write that down first
		return o.chooseCandidates(ctx, claim)
	}
	o.tried.LoadOrStore(claim.UID, time.Now())
	launched, err := o.options.Provider.Create(ctx, ask)
	if err != nil {
		return o.refused(ctx, claim, ask, err)
	}
	o.locked(func(now time.Time) { o.ledger = o.ledger.Launched(launched, now) })
	if err := o.write(ctx, claim, func() { claim.Labels = labels.Merge(claim.Labels, launched.Labels) }); err != nil {
		return err
	}
	err = o.writeStatus(ctx, claim, func() {
		claim.Status.ProviderID, claim.Status.ImageID = launched.ID, launched.ImageID
		claim.Status.Capacity, claim.Status.Allocatable = launched.Capacity, launched.Allocatable
		claim.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
		claim.StatusConditions().SetUnknown(karpv1.ConditionTypeRegistered)
		claim.StatusConditions().SetUnknown(karpv1.ConditionTypeInitialized)
	})
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info(fmt.Sprintf("launched %s of type %s, from %s", launched.ID, launched.Type, describe(ask)),
		"zone", claim.Labels[corev1.LabelTopologyZone], "capacity-type", claim.Labels[instancetypes.LabelCapacityType])
	o.events.Eventf(claim, nil, corev1.EventTypeNormal, "Launched", "Launch", "%s of type %s", launched.ID, launched.Type)
	claimsCreated.WithLabelValues(ask.Pool).Inc()
	return o.await(ctx, claim, is(karpv1.ConditionTypeLaunched)) // what wakes us next may be older than this
}

// chooseCandidates writes down what a claim that somebody made by hand can be launched as.
func (o *Operator) chooseCandidates(ctx context.Context, claim *karpv1.NodeClaim) error {
	c, err := nodeclaim.DecodeObject(claim)
	if err != nil {
		return err
	}
	types, err := o.options.Provider.InstanceTypes(ctx, nodepool.NodePool{Name: c.Pool, NodeClass: c.NodeClass})
	if err != nil {
		return err
	}
	const most = 60 // what one request to a cloud takes
	candidates := cloudprovider.CandidatesOf(types, c.Requirements, c.Requests, instancetypes.WellKnown())
	if len(candidates) == 0 {
		return o.giveUp(ctx, claim, "Unlaunchable", "no instance type satisfies the claim")
	}
	return errors.Join(o.write(ctx, claim, func() {
		err = writeRequest(claim, cloudprovider.NodeClaim{
			Pool: c.Pool, NodeClass: c.NodeClass, Requirements: c.Requirements, Requests: c.Requests,
			Candidates: candidates[:min(most, len(candidates))], Taints: c.Taints, StartupTaints: c.StartupTaints,
		})
	}), err)
}

// refused acts on an error of Create by the table of [cloudprovider.Advise]: another plan without what was refused, or the same again.
// That is so for what no retry mends, too: a new claim would be refused like this one, at once and again and again.
func (o *Operator) refused(ctx context.Context, claim *karpv1.NodeClaim, ask cloudprovider.NodeClaim, err error) error {
	if advice := cloudprovider.Advise(err); advice.Retry != cloudprovider.RetryElsewhere && !errors.Is(err, cloudprovider.ErrNotFound) {
		o.events.Eventf(claim, nil, corev1.EventTypeWarning, "LaunchFailed", "Launch", "%s", err.Error())
		said := o.writeStatus(ctx, claim, func() { // once: clouds number their errors, and a change has the claim looked at again
			if x := claim.StatusConditions().Get(karpv1.ConditionTypeLaunched); x == nil || x.Reason != "LaunchFailed" {
				claim.StatusConditions().SetUnknownWithReason(karpv1.ConditionTypeLaunched, "LaunchFailed", err.Error())
			}
		})
		return errors.Join(err, said) // the queue asks again, later and later
	}
	o.locked(func(now time.Time) { o.ledger = o.ledger.Learn(err, now) })
	launchesRefused.WithLabelValues(ask.Pool).Inc()
	return o.giveUp(ctx, claim, "LaunchRefused", err.Error())
}

// register makes the node that has joined what its claim says: labels, taints, finalizer.
func (o *Operator) register(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) error {
	err := o.write(ctx, node, func() {
		node.Labels, node.Annotations = labels.Merge(node.Labels, claim.Labels), labels.Merge(node.Annotations, claim.Annotations)
		delete(node.Annotations, requestAnnotation)
		if node.Labels[karpv1.NodeRegisteredLabelKey] != "true" { // once: who takes off a startup taint later means it
			for _, t := range slices.Concat(claim.Spec.Taints, claim.Spec.StartupTaints) {
				if !slices.ContainsFunc(node.Spec.Taints, func(have corev1.Taint) bool { return have.MatchTaint(&t) }) {
					node.Spec.Taints = append(node.Spec.Taints, t)
				}
			}
		}
		metav1.SetMetaDataLabel(&node.ObjectMeta, karpv1.NodeRegisteredLabelKey, "true")
		controllerutil.AddFinalizer(node, karpv1.TerminationFinalizer)
		node.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: claim.Name, UID: claim.UID}}
	})
	if err != nil {
		return err
	}
	if err := o.writeStatus(ctx, claim, func() {
		claim.Status.NodeName = node.Name
		claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
	}); err != nil {
		return err
	}
	o.events.Eventf(claim, nil, corev1.EventTypeNormal, "Registered", "Register", "as node %s", node.Name)
	return o.await(ctx, claim, is(karpv1.ConditionTypeRegistered))
}

// openAfter is how long a node that has joined but does not work yet stays closed to all pods. It is opened then for daemons that
// it may be waiting for, such as those of its network.
const openAfter = 5 * time.Second

// initialize opens a node to pods, and says when it is ready for them.
func (o *Operator) initialize(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) (reconcile.Result, error) {
	if hasTaint(node, karpv1.UnregisteredTaintKey) {
		if left := openAfter - time.Since(since(claim, karpv1.ConditionTypeRegistered)); left > 0 && !lifecycle.Works(node) {
			return reconcile.Result{RequeueAfter: left}, nil
		}
	}
	lacks := lifecycle.Lacks(node, claim.Spec.StartupTaints, claim.Spec.Resources.Requests, claim.Status.Capacity)
	if hook, ok := o.options.Provider.(cloudprovider.RegistrationHook); ok && lacks == "" {
		if err := hook.Registered(ctx, claim.Status.ProviderID, node.DeepCopy()); err != nil {
			return reconcile.Result{}, err
		}
	}
	err := o.write(ctx, node, func() {
		node.Spec.Taints = withoutTaint(node.Spec.Taints, karpv1.UnregisteredTaintKey)
		if lacks == "" {
			metav1.SetMetaDataLabel(&node.ObjectMeta, karpv1.NodeInitializedLabelKey, "true")
		}
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	err = o.writeStatus(ctx, claim, func() {
		if lacks != "" { // a change of the node wakes us
			claim.StatusConditions().SetUnknownWithReason(karpv1.ConditionTypeInitialized, "Waiting", lacks)
			return
		}
		claim.Status.Capacity, claim.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
		claim.StatusConditions().SetTrue(karpv1.ConditionTypeInitialized)
	})
	if err == nil && lacks == "" {
		o.events.Eventf(claim, nil, corev1.EventTypeNormal, "Initialized", "Initialize", "node %s is ready for pods", node.Name)
		nodeReadySeconds.WithLabelValues(claim.Labels[karpv1.NodePoolLabelKey]).Observe(time.Since(claim.CreationTimestamp.Time).Seconds())
		err = o.await(ctx, claim, is(karpv1.ConditionTypeInitialized))
	}
	return reconcile.Result{}, err
}

func withoutTaint(taints []corev1.Taint, key string) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == key })
}

func hasTaint(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}
