package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/utils/pretty"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	"github.com/joinery-sdk/joinery/deprovision/drift"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
)

// reconcileClaim takes a claim one step further: launched, registered, initialized, or terminated.
func (o *Operator) reconcileClaim(ctx context.Context, claim *karpv1.NodeClaim) (reconcile.Result, error) {
	result, err := o.stepClaim(ctx, claim)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // the claim was changed meanwhile
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
	case err == nil && is(karpv1.ConditionTypeRebooting)(claim):
		return o.reboot(ctx, claim, node)
	case err != nil || node == nil && !registered: // the node has not joined yet; the review ends claims that take too long
		return reconcile.Result{}, err
	case node == nil:
		return reconcile.Result{}, o.lost(ctx, claim)
	case !registered:
		return reconcile.Result{}, o.register(ctx, claim, node)
	case claim.StatusConditions().IsTrue(karpv1.ConditionTypeInitialized):
		return reconcile.Result{}, nil
	case hasTaint(node, karpv1.UnregisteredTaintKey):
		return o.open(ctx, claim) // the change of the node reconciles the claim again
	}
	return reconcile.Result{}, o.initialize(ctx, claim, node)
}

// lost deletes a claim whose registered node was deleted in spite of its finalizer, because no
// kubelet registers it again. The cache may be stale, so it asks the API server.
func (o *Operator) lost(ctx context.Context, claim *karpv1.NodeClaim) error {
	err := o.api.Get(ctx, client.ObjectKey{Name: claim.Status.NodeName}, &corev1.Node{})
	if apierrors.IsNotFound(err) {
		return o.giveUp(ctx, claim, "NodeGone", "its node was deleted")
	}
	return err
}

// launch buys the machine of a claim. The token makes a retry safe even if an answer was lost.
func (o *Operator) launch(ctx context.Context, claim *karpv1.NodeClaim) error {
	ask, err := readRequest(claim)
	if err != nil {
		return err
	}
	if len(ask.Candidates) == 0 { // written by a user
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
	return o.await(ctx, claim, is(karpv1.ConditionTypeLaunched)) // the next event may be older than this write
}

// mostCandidates bounds the candidates of one request that no plan has made.
const mostCandidates = 60

// chooseCandidates writes the candidates of a claim that a user wrote into its annotation.
func (o *Operator) chooseCandidates(ctx context.Context, claim *karpv1.NodeClaim) error {
	c, err := nodeclaim.DecodeObject(claim)
	if err != nil {
		return err
	}
	types, err := o.options.Provider.InstanceTypes(ctx, nodepool.NodePool{Name: c.Pool, NodeClass: c.NodeClass})
	if err != nil {
		return err
	}
	candidates := cloudprovider.CandidatesOf(types, c.Requirements, c.Requests, instancetypes.WellKnown())
	if len(candidates) == 0 {
		return o.giveUp(ctx, claim, "Unlaunchable", "no instance type satisfies the claim")
	}
	return errors.Join(o.write(ctx, claim, func() {
		err = writeRequest(claim, cloudprovider.NodeClaim{
			Pool: c.Pool, NodeClass: c.NodeClass, Requirements: c.Requirements, Requests: c.Requests,
			Candidates: candidates[:min(mostCandidates, len(candidates))], Taints: c.Taints, StartupTaints: c.StartupTaints,
		})
	}), err)
}

// refused acts on an error of Create as [cloudprovider.Advise] says. Refused capacity is remembered
// and the claim is deleted, so that its pods are planned anew. For every other error the claim
// stays and is retried, even if no retry helps: a new claim would fail the same way, in a tight
// loop.
func (o *Operator) refused(ctx context.Context, claim *karpv1.NodeClaim, ask cloudprovider.NodeClaim, err error) error {
	if advice := cloudprovider.Advise(err); advice.Retry != cloudprovider.RetryElsewhere && !errors.Is(err, cloudprovider.ErrNotFound) {
		o.events.Eventf(claim, nil, corev1.EventTypeWarning, "LaunchFailed", "Launch", "%s", err.Error())
		said := o.writeStatus(ctx, claim, func() { // once: texts of errors differ by request ids, and every change reconciles the claim again
			if x := claim.StatusConditions().Get(karpv1.ConditionTypeLaunched); x == nil || x.Reason != "LaunchFailed" {
				claim.StatusConditions().SetUnknownWithReason(karpv1.ConditionTypeLaunched, "LaunchFailed", err.Error())
			}
		})
		return errors.Join(err, said) // the queue retries with backoff
	}
	o.locked(func(now time.Time) { o.ledger = o.ledger.Learn(err, now) })
	launchesRefused.WithLabelValues(ask.Pool).Inc()
	return o.giveUp(ctx, claim, "LaunchRefused", err.Error())
}

// register copies labels, annotations and taints of the claim to the node that has joined, and adds
// the finalizer.
func (o *Operator) register(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) error {
	err := o.write(ctx, node, func() {
		node.Labels, node.Annotations = labels.Merge(node.Labels, claim.Labels), labels.Merge(node.Annotations, claim.Annotations)
		delete(node.Annotations, requestAnnotation)
		if node.Labels[karpv1.NodeRegisteredLabelKey] != "true" { // once: a startup taint that is removed later stays removed
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

// initialize marks the open node of a claim, and the claim, as initialized when nothing is lacking.
func (o *Operator) initialize(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) error {
	if lacks := lifecycle.Lacks(node, claim.Spec.StartupTaints, claim.Spec.Resources.Requests, claim.Status.Capacity); lacks != "" {
		return o.writeStatus(ctx, claim, func() { // a change of the node reconciles the claim again
			claim.StatusConditions().SetUnknownWithReason(karpv1.ConditionTypeInitialized, "Waiting", lacks)
		})
	}
	if hook, ok := o.options.Provider.(cloudprovider.RegistrationHook); ok {
		if err := hook.Registered(ctx, claim.Status.ProviderID, node.DeepCopy()); err != nil {
			return err
		}
	}
	if err := o.write(ctx, node, func() { metav1.SetMetaDataLabel(&node.ObjectMeta, karpv1.NodeInitializedLabelKey, "true") }); err != nil {
		return err
	}
	if err := o.writeStatus(ctx, claim, func() {
		claim.Status.Capacity, claim.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
		claim.StatusConditions().SetTrue(karpv1.ConditionTypeInitialized)
	}); err != nil {
		return err
	}
	o.events.Eventf(claim, nil, corev1.EventTypeNormal, "Initialized", "Initialize", "node %s is ready for pods", node.Name)
	if claim.StatusConditions().Get(karpv1.ConditionTypeRebooting) != nil { // the metric is of new nodes
		return o.await(ctx, claim, is(karpv1.ConditionTypeInitialized))
	}
	nodeReadySeconds.WithLabelValues(claim.Labels[karpv1.NodePoolLabelKey]).Observe(time.Since(claim.CreationTimestamp.Time).Seconds())
	return o.await(ctx, claim, is(karpv1.ConditionTypeInitialized))
}

func (o *Operator) untaint(ctx context.Context, node *corev1.Node, key string) error {
	return o.write(ctx, node, func() {
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
	})
}

func hasTaint(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

const (
	// requestAnnotation holds the launch request, as JSON of a cloudprovider.NodeClaim. The spec
	// has lists of types and of zones, but neither which type in which zone nor the order. A retry
	// of a launch must ask for exactly the same, so the request is written down before the cloud is
	// asked.
	requestAnnotation = "joinery-sdk.dev/request"
	// classHashAnnotation is the hash of the node class's spec when the claim was made.
	classHashAnnotation = "joinery-sdk.dev/nodeclass-hash"
	// groupsAnnotation names the groups of pods in the plan that the claim is of. Until they run,
	// the pods of that plan may change places.
	groupsAnnotation = "joinery-sdk.dev/groups"
)

// newClaim returns the NodeClaim of a node to buy, in a plan with these groups.
func (v *view) newClaim(ask cloudprovider.NodeClaim, groups string) (*karpv1.NodeClaim, error) {
	pool := v.pools[ask.Pool]
	hash, _ := drift.Hash(&pool.decoded)
	claim := pool.Spec.Template.ToNodeClaim().DeepCopy()
	claim.GenerateName, claim.Finalizers = ask.Pool+"-", []string{karpv1.TerminationFinalizer}
	claim.Labels = labels.Merge(ask.Labels, labels.Set{karpv1.NodeClassLabelKey(claim.Spec.NodeClassRef.GroupKind()): claim.Spec.NodeClassRef.Name})
	claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pool, schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"})}
	claim.Annotations = labels.Merge(claim.Annotations, labels.Set{
		classHashAnnotation: pool.classHash, karpv1.NodePoolHashAnnotationKey: hash, karpv1.NodePoolHashVersionAnnotationKey: drift.HashVersion,
	})
	if groups != "" {
		claim.Annotations[groupsAnnotation] = groups
	}
	claim.Spec.Resources.Requests = ask.Requests
	claim.Spec.Requirements = specOf(ask, pool.Spec.Template.Spec.Requirements)
	return claim, writeRequest(claim, ask)
}

// specOf returns the requirements of a claim: types, zones and capacity types of the candidates,
// every other label that the plan decided, and the pool's requirements for the remaining labels.
func specOf(ask cloudprovider.NodeClaim, pool []karpv1.NodeSelectorRequirementWithMinValues) []karpv1.NodeSelectorRequirementWithMinValues {
	in := ask.Values()
	var out []karpv1.NodeSelectorRequirementWithMinValues
	for _, key := range slices.Sorted(maps.Keys(in)) {
		out = append(out, karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: in[key]})
	}
	for _, r := range pool {
		if in[r.Key] == nil {
			r.MinValues = nil // the plan has met it
			out = append(out, r)
		}
	}
	return out
}

func writeRequest(claim *karpv1.NodeClaim, ask cloudprovider.NodeClaim) error {
	text, err := json.Marshal(ask)
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, requestAnnotation, string(text))
	return err
}

// readRequest returns the launch request of a claim, which is the same on every retry. A claim
// written by a user has no candidates.
func readRequest(claim *karpv1.NodeClaim) (ask cloudprovider.NodeClaim, err error) {
	if text := claim.Annotations[requestAnnotation]; text != "" {
		if err = json.Unmarshal([]byte(text), &ask); err != nil {
			err = fmt.Errorf("NodeClaim %s: annotation %s: %w", claim.Name, requestAnnotation, err)
		}
	}
	ask.Name, ask.Token = claim.Name, string(claim.UID)
	return ask, err
}

// describe returns the types of a request, shortened for the log.
func describe(ask cloudprovider.NodeClaim) string {
	var types []string
	for _, c := range ask.Candidates {
		if !slices.Contains(types, c.Type) {
			types = append(types, c.Type)
		}
	}
	return "types " + pretty.Slice(types, 5)
}
