// Package controller is a node provisioner for Kubernetes, made of the packages of Joinery: pods that find no place get nodes,
// and nodes that are not worth their price are given back.
//
// It reads and writes Karpenter's own resources (NodePool and NodeClaim of karpenter.sh/v1), so existing manifests and habits
// keep working. Each file is one concept; the README says which.
//
// All state is in the API server and in the cloud: the process may end between any two calls, and the next one goes on.
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
	"github.com/joinery-sdk/joinery/deprovision"
)

// Options are the choices of an operator. Provider is required; the zero value of every other field is its default.
type Options struct {
	// Provider is the cloud.
	Provider cloudprovider.Provider
	// BatchIdle is how long no pod may have come before a batch is planned, and BatchMax the longest that a batch waits. 0 = 1
	// second and 10 seconds.
	BatchIdle, BatchMax time.Duration
	// Poll is how often the cloud is asked and disruption is planned. 0 = 10 seconds.
	Poll time.Duration
	// Validate is how long a consolidation waits before it is looked at again and carried out. 0 = 15 seconds.
	Validate time.Duration
	// Timeouts are how long claims may take.
	Timeouts lifecycle.Timeouts
	// Disruption are the options of every plan of disruption; Rules.Placeable is filled in.
	Disruption deprovision.Options
	// MetricsAddress and HealthAddress are where these are served; empty = nowhere.
	MetricsAddress, HealthAddress string
	// LeaderElection lets one of several copies work; Namespace is where its lease is.
	LeaderElection bool
	Namespace      string
	// NewClient makes the client that writes; nil = the manager's. Tests put faults there.
	NewClient client.NewClientFunc
}

func (o Options) withDefaults() Options {
	o.BatchIdle, o.BatchMax = cmp.Or(o.BatchIdle, time.Second), cmp.Or(o.BatchMax, 10*time.Second)
	o.Poll, o.Validate = cmp.Or(o.Poll, 10*time.Second), cmp.Or(o.Validate, 15*time.Second)
	return o
}

// Operator is the controller at work. Make one by [New]; everything that it knows beyond the API server and the cloud is what
// may be forgotten.
type Operator struct {
	options Options
	manager manager.Manager
	client  client.Client // reads from the caches
	api     client.Reader // reads from the API server
	events  events.EventRecorder
	wake    chan struct{} // a batch of pods has something to look at

	tried sync.Map // by UID of a claim, the time when this process first tried to launch it

	deciding sync.Mutex // held from reading the caches until what was decided on them is in the caches

	mu          sync.Mutex
	ledger      availability.Ledger   // what the cloud refused
	busy        map[string]bool       // claims of commands under way, old and new, by name
	planned     map[types.UID]planned // by pod: where the last plan had it
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

// workers is how many calls of a kind are on their way to the API server and the cloud: machines do not wait for each other.
const workers = 20

// New is an operator for the cluster of a config; Start of its Manager starts it.
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
	err = indexes(func(object client.Object, field string, value client.IndexerFunc) error {
		return mgr.GetFieldIndexer().IndexField(context.Background(), object, field, value)
	})
	err = errors.Join(err, o.watch())
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

// herald writes events, but of pods no more than so many a second, and drops the others: a deployment may have ten thousand, each of
// which is nominated, and an API server that is busy with their events has no time for their bindings.
type herald struct {
	events.EventRecorder

	pods flowcontrol.PassiveRateLimiter
}

// Eventf is that of [events.EventRecorder]. A note is cut to what an event takes.
func (h *herald) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	const most = 1000
	if text := fmt.Sprintf(note, args...); len(text) > most {
		note, args = "%s ...", []any{text[:most]}
	}
	if _, pod := regarding.(*corev1.Pod); !pod || h.pods.TryAccept() {
		h.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
	}
}

// Manager is what runs the operator.
func (o *Operator) Manager() manager.Manager { return o.manager }

// Prices are what nodes cost as of the last plan of disruption, by name, in dollars an hour.
func (o *Operator) Prices() map[string]float64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.prices
}

// locked changes what the operator remembers.
func (o *Operator) locked(change func(now time.Time)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(time.Now())
}

// indexes are the questions that are asked of the caches.
func indexes(index func(object client.Object, field string, value client.IndexerFunc) error) error {
	one := func(value string) []string {
		if value == "" {
			return nil
		}
		return []string{value}
	}
	return errors.Join(
		index(&corev1.Pod{}, podNode, func(x client.Object) []string { return one(x.(*corev1.Pod).Spec.NodeName) }),
		index(&corev1.Node{}, nodeProvider, func(x client.Object) []string { return one(x.(*corev1.Node).Spec.ProviderID) }),
		index(&karpv1.NodeClaim{}, claimProvider, func(x client.Object) []string { return one(x.(*karpv1.NodeClaim).Status.ProviderID) }),
	)
}

// watch starts the controllers: of claims, which follow their nodes; of nodes, which follow their claims; of pools; and the pods
// wake the provisioner.
func (o *Operator) watch() error {
	many := controller.Options{
		MaxConcurrentReconciles: workers,
		// Drains have deadlines, and an API server that was away comes back: nothing waits for minutes after a failure.
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

// claimsOfNode is the claim of a node.
func (o *Operator) claimsOfNode(ctx context.Context, node client.Object) []reconcile.Request {
	claim, err := o.claimOf(ctx, node.(*corev1.Node))
	if err != nil || claim == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(claim)}}
}

// claimOf is the claim of a node, nil if it has none.
func (o *Operator) claimOf(ctx context.Context, node *corev1.Node) (*karpv1.NodeClaim, error) {
	return first[*karpv1.NodeClaim](ctx, o.client, &karpv1.NodeClaimList{}, client.MatchingFields{claimProvider: node.Spec.ProviderID})
}

// nodeOf is the node of a claim, nil if it has not joined or is gone.
func (o *Operator) nodeOf(ctx context.Context, claim *karpv1.NodeClaim) (*corev1.Node, error) {
	return first[*corev1.Node](ctx, o.client, &corev1.NodeList{}, client.MatchingFields{nodeProvider: claim.Status.ProviderID})
}

// list is what a client or a cache has of a kind.
func list[T client.Object](ctx context.Context, from client.Reader, into client.ObjectList, options ...client.ListOption) (out []T, err error) {
	if err := from.List(ctx, into, options...); err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	return out, meta.EachListItem(into, func(x runtime.Object) error { out = append(out, x.(T)); return nil })
}

// first is the first of them, nil if there is none.
func first[T client.Object](ctx context.Context, from client.Reader, into client.ObjectList, options ...client.ListOption) (out T, err error) {
	all, err := list[T](ctx, from, into, options...)
	if len(all) > 0 {
		out = all[0]
	}
	return out, err
}

// write makes a change to an object and writes what it came to, if anything. It fails where somebody else has written meanwhile: what
// was decided about an old object is decided again.
func (o *Operator) write(ctx context.Context, object client.Object, change func()) error {
	before := object.DeepCopyObject().(client.Object)
	if change(); equality.Semantic.DeepEqual(before, object) {
		return nil
	}
	return o.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// writeStatus does the same with the status, of whose parts each has one writer.
func (o *Operator) writeStatus(ctx context.Context, object client.Object, change func()) error {
	before := object.DeepCopyObject().(client.Object)
	if change(); equality.Semantic.DeepEqual(before, object) {
		return nil
	}
	return o.client.Status().Patch(ctx, object, client.MergeFrom(before))
}
