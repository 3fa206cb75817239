// Package controller is a node provisioner for Kubernetes, built from the packages of Joinery: it
// buys nodes for unschedulable pods and gives back nodes that cost more than they are good for.
//
// It reads and writes Karpenter's own resources (NodePool and NodeClaim of karpenter.sh/v1), so
// existing manifests and habits keep working. Each file is one concept; the README says which.
//
// All state is in the API server and in the cloud: the process may end between any two calls, and
// the next process continues.
package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/availability"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// Options are the choices of an operator. Provider is required; the zero value of every other field
// is its default.
type Options struct {
	// Provider is the cloud.
	Provider cloudprovider.Provider
	// BatchIdle and BatchMax say when a batch of pods is planned: when no pod has arrived for
	// BatchIdle, or BatchMax after its first pod. 0 means 1 second and 10 seconds.
	BatchIdle, BatchMax time.Duration
	// Poll is how often the cloud is asked and disruption is planned. 0 means 10 seconds.
	Poll time.Duration
	// Validate is how long a saving must last before it is carried out. 0 means 15 seconds.
	Validate time.Duration
	// Timeouts bound the launch and the registration of claims.
	Timeouts lifecycle.Timeouts
	// Spread is what pods without topology spread constraints get, as kube-scheduler or Karpenter
	// is configured; see package defaultspread.
	Spread []corev1.TopologySpreadConstraint
	// Disruption are the options of every plan of disruption; Rules.Placeable is filled in.
	Disruption giveback.Options
	// DeletionCosts lets the operator write the annotation pod-deletion-cost of all pods that
	// ReplicaSets control, so that a workload that is scaled down gives up its pods on nodes that
	// should go. The annotation then counts for nothing in plans. See package deletioncost.
	DeletionCosts bool
	// Confirm, if set, is asked before any node of a plan is bought for pods; its error keeps all
	// of them from being bought, and the pods are planned again after Poll. It is not asked about
	// the replicas of static pools, nodes for CapacityBuffers, nor about replacements that a plan
	// of disruption buys.
	Confirm func(context.Context, *plan.Plan) error
	// MetricsAddress and HealthAddress are listen addresses; empty means not served.
	MetricsAddress, HealthAddress string
	// LeaderElection lets one of several replicas work. Namespace holds its lease.
	LeaderElection bool
	Namespace      string
	// NewClient makes the writing client; nil means that of the manager. Tests inject faults with
	// it.
	NewClient client.NewClientFunc
}

func (o Options) withDefaults() Options {
	o.BatchIdle, o.BatchMax = cmp.Or(o.BatchIdle, time.Second), cmp.Or(o.BatchMax, 10*time.Second)
	o.Poll, o.Validate = cmp.Or(o.Poll, 10*time.Second), cmp.Or(o.Validate, 15*time.Second)
	return o
}

// Operator is the controller. Make one by [New]. What it keeps in memory may be lost at any time.
type Operator struct {
	options Options
	manager manager.Manager
	client  client.Client // reads from the caches
	api     client.Reader // reads from the API server
	events  events.EventRecorder
	wake    chan struct{} // pods have to be planned

	asked    sync.Map   // by UID of a claim, the time when this process first asked to reboot it
	tried    sync.Map   // by UID of a claim, the time when this process first tried to launch it
	deciding sync.Mutex // held from reading the caches until they show what was decided
	opening  sync.Mutex // no node is opened before the pods of all are nominated

	mu          sync.Mutex
	ledger      availability.Ledger   // what the cloud refused
	busy        map[string]bool       // claims of commands under way, old and new, by name
	planned     map[types.UID]planned // by pod
	decoded     map[types.UID]decodedClaim
	provisioned time.Time          // when pods were last planned
	prices      map[string]float64 // by node, in dollars an hour
}

// The indexes of the caches.
const (
	podNode       = "spec.nodeName"
	nodeProvider  = "spec.providerID"
	claimProvider = "status.providerID"
)

// workers is how many objects of a kind are reconciled at the same time, so that machines do not
// wait for each other.
const workers = 20

// New returns an operator for the cluster of a config. Its Manager's Start starts it.
func New(cfg *rest.Config, options Options) (*Operator, error) {
	if options.Provider == nil {
		return nil, fmt.Errorf("controller: Options.Provider is nil; memory.New makes one")
	}
	options = options.withDefaults()
	skipNames := true // tests start several operators in one process
	mgr, err := manager.New(cfg, manager.Options{
		Scheme:                        scheme.Scheme, // the module of karpenter.sh/v1 adds itself to this one
		Cache:                         cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		NewClient:                     options.NewClient,
		Metrics:                       server.Options{BindAddress: cmp.Or(options.MetricsAddress, "0")},
		HealthProbeBindAddress:        cmp.Or(options.HealthAddress, "0"),
		LeaderElection:                options.LeaderElection,
		LeaderElectionID:              "joinery-operator",
		LeaderElectionNamespace:       options.Namespace,
		LeaderElectionReleaseOnCancel: true,
		Controller:                    config.Controller{SkipNameValidation: &skipNames},
	})
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	o := &Operator{
		options: options, manager: mgr, client: mgr.GetClient(), api: mgr.GetAPIReader(), events: &herald{mgr.GetEventRecorder("joinery"), flowcontrol.NewTokenBucketRateLimiter(20, 100)}, wake: make(chan struct{}, 1),
		busy: map[string]bool{}, planned: map[types.UID]planned{},
	}
	err = errors.Join(indexes(mgr.GetFieldIndexer().IndexField), o.watch())
	for _, loop := range []manager.RunnableFunc{o.provisionLoop, o.disruptLoop, o.noticeLoop, o.reviewLoop} {
		err = errors.Join(err, mgr.Add(loop))
	}
	ready := func(r *http.Request) error {
		if !mgr.GetCache().WaitForCacheSync(r.Context()) {
			return fmt.Errorf("the caches are not filled yet")
		}
		return nil
	}
	if err := errors.Join(err, mgr.AddReadyzCheck("caches", ready), mgr.AddHealthzCheck("ping", healthz.Ping)); err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	return o, nil
}

// herald writes events, and drops those of pods above a rate: each pod of a deployment of ten
// thousand is nominated, and an API server that is busy with events delays bindings.
type herald struct {
	events.EventRecorder

	pods flowcontrol.PassiveRateLimiter
}

// Eventf is [events.EventRecorder]'s. It cuts notes to the length that the API allows.
func (h *herald) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	const most = 1000
	if text := fmt.Sprintf(note, args...); len(text) > most {
		note, args = "%s ...", []any{text[:most]}
	}
	if _, pod := regarding.(*corev1.Pod); !pod || h.pods.TryAccept() {
		h.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
	}
}

// Manager returns the manager that runs the operator.
func (o *Operator) Manager() manager.Manager { return o.manager }

// Prices returns the prices of nodes in dollars an hour, by name, as of the last plan of
// disruption.
func (o *Operator) Prices() (prices map[string]float64) {
	o.locked(func(time.Time) { prices = o.prices })
	return prices
}

// locked calls change with the lock held.
func (o *Operator) locked(change func(now time.Time)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(time.Now())
}

// indexes adds the indexes of the caches.
func indexes(index func(ctx context.Context, object client.Object, field string, value client.IndexerFunc) error) error {
	ctx := context.Background()
	one := func(value string) []string {
		if value == "" {
			return nil
		}
		return []string{value}
	}
	return errors.Join(
		index(ctx, &corev1.Pod{}, podNode, func(x client.Object) []string { return one(x.(*corev1.Pod).Spec.NodeName) }),
		index(ctx, &corev1.Node{}, nodeProvider, func(x client.Object) []string { return one(x.(*corev1.Node).Spec.ProviderID) }),
		index(ctx, &karpv1.NodeClaim{}, claimProvider, func(x client.Object) []string { return one(x.(*karpv1.NodeClaim).Status.ProviderID) }),
	)
}

// watch adds the controllers of claims, nodes, pools and pods.
func (o *Operator) watch() error {
	many := controller.Options{
		MaxConcurrentReconciles: workers,
		// Drains have deadlines, so the backoff is short.
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, 10*time.Second),
	}
	return errors.Join(
		ctrl.NewControllerManagedBy(o.manager).Named("nodeclaim").For(&karpv1.NodeClaim{}).WithOptions(many).
			Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(o.claimsOfNode)).
			Complete(reconcile.AsReconciler(o.client, reconcile.TypedFunc[*karpv1.NodeClaim](o.reconcileClaim))),
		ctrl.NewControllerManagedBy(o.manager).Named("node").For(&corev1.Node{}).WithOptions(many).
			Complete(reconcile.AsReconciler(o.client, reconcile.TypedFunc[*corev1.Node](o.reconcileNode))),
		ctrl.NewControllerManagedBy(o.manager).Named("nodepool").For(&karpv1.NodePool{}).
			Complete(reconcile.AsReconciler(o.client, reconcile.TypedFunc[*karpv1.NodePool](o.reconcilePool))),
		ctrl.NewControllerManagedBy(o.manager).Named("pod").For(&corev1.Pod{}).WithOptions(many).
			Complete(reconcile.AsReconciler(o.client, reconcile.TypedFunc[*corev1.Pod](o.reconcilePod))),
	)
}

// claimsOfNode maps a node to its claim.
func (o *Operator) claimsOfNode(ctx context.Context, node client.Object) []reconcile.Request {
	claim, err := o.claimOf(ctx, node.(*corev1.Node))
	if err != nil || claim == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(claim)}}
}

// claimOf returns the claim of a node, or nil.
func (o *Operator) claimOf(ctx context.Context, node *corev1.Node) (*karpv1.NodeClaim, error) {
	return first[*karpv1.NodeClaim](ctx, o.client, &karpv1.NodeClaimList{}, client.MatchingFields{claimProvider: node.Spec.ProviderID})
}

// nodeOf returns the node of a claim, nil if it has not joined or was deleted.
func (o *Operator) nodeOf(ctx context.Context, claim *karpv1.NodeClaim) (*corev1.Node, error) {
	return first[*corev1.Node](ctx, o.client, &corev1.NodeList{}, client.MatchingFields{nodeProvider: claim.Status.ProviderID})
}

// list returns the objects of one kind.
func list[T client.Object](ctx context.Context, from client.Reader, into client.ObjectList, options ...client.ListOption) (out []T, err error) {
	if err := from.List(ctx, into, options...); err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	return out, meta.EachListItem(into, func(x runtime.Object) error { out = append(out, x.(T)); return nil })
}

// first returns the first of them, or nil.
func first[T client.Object](ctx context.Context, from client.Reader, into client.ObjectList, options ...client.ListOption) (out T, err error) {
	all, err := list[T](ctx, from, into, options...)
	if len(all) > 0 {
		out = all[0]
	}
	return out, err
}

// write changes an object and patches it if the change made a difference. It fails with a conflict
// if the object was changed meanwhile, so that the decision is made again.
func (o *Operator) write(ctx context.Context, object client.Object, change func()) error {
	before := object.DeepCopyObject().(client.Object)
	if change(); equality.Semantic.DeepEqual(before, object) {
		return nil
	}
	return o.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// writeStatus does the same for the status. It never conflicts, because each field of a status has
// one writer.
func (o *Operator) writeStatus(ctx context.Context, object client.Object, change func()) error {
	before := object.DeepCopyObject().(client.Object)
	if change(); equality.Semantic.DeepEqual(before, object) {
		return nil
	}
	return o.client.Status().Patch(ctx, object, client.MergeFrom(before))
}
