package karpenter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	karpscheduling "sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/utils/daemonset"
	"sigs.k8s.io/karpenter/pkg/utils/nodepool"
)

// wellKnown guards karpv1.WellKnownLabels, a set that Karpenter keeps in a variable and reads while
// it solves.
var wellKnown sync.RWMutex

// Solve plans the input once. It does not modify the input and may be called concurrently.
//
// Unplaced has the pods that fit nowhere, and the pods that Karpenter's own validation refuses,
// with its reason. An error means that Karpenter could not read the state, or that the context
// ended. After a deadline, the result still has the plan made so far, because Karpenter's
// provisioner uses it too.
func Solve(ctx context.Context, in Input) (Result, error) {
	know(in.WellKnownLabels)
	wellKnown.RLock()
	defer wellKnown.RUnlock()

	policy := options.MinValuesPolicyStrict
	if in.BestEffortMinValues {
		policy = options.MinValuesPolicyBestEffort
	}
	ctx = log.IntoContext(injection.WithControllerName(ctx, "provisioner"), logr.Discard())
	ctx = options.ToContext(ctx, &options.Options{
		IgnoreDRARequests: true,
		MinValuesPolicy:   policy,
		FeatureGates:      options.FeatureGates{ReservedCapacity: true},
	})
	opts := []scheduling.Options{
		scheduling.DisableReservedCapacityFallback,
		scheduling.NumConcurrentReconciles(cmp.Or(in.Workers, 2)),
		scheduling.MinValuesPolicy(policy),
	}
	if in.IgnorePreferences {
		opts = append(opts, scheduling.IgnorePreferences)
	}

	c, err := newCluster(ctx, in)
	if err != nil {
		return Result{}, err
	}
	start := time.Now()
	scheduler, pods, refused, err := c.scheduler(ctx, opts)
	if err != nil {
		return Result{}, fmt.Errorf("karpenter: %w", err)
	}
	ready := time.Now()
	results, err := scheduler.Solve(ctx, pods)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return Result{}, fmt.Errorf("karpenter: %w", err)
	}
	results = results.TruncateInstanceTypes(ctx, scheduling.MaxInstanceTypes)
	end := time.Now()

	r := Result{Unplaced: refused, Compile: ready.Sub(start), Solve: end.Sub(ready)}
	for _, claim := range results.NewNodeClaims {
		n, ok := newNode(claim)
		if !ok {
			for _, pod := range n.Pods {
				r.Unplaced = append(r.Unplaced, Unplaced{Pod: pod, Err: errors.New("no offering is left of the node's instance types")})
			}
			continue
		}
		r.NewNodes = append(r.NewNodes, n)
	}
	slices.SortFunc(r.NewNodes, func(a, b NewNode) int {
		return cmp.Or(cmp.Compare(a.NodePool, b.NodePool), compareNames(a.Pods[0], b.Pods[0]))
	})
	for _, n := range results.ExistingNodes {
		if len(n.Pods) == 0 {
			continue
		}
		p := Placement{Node: n.Name()}
		for _, pod := range n.Pods {
			p.Pods = append(p.Pods, nameOf(pod))
		}
		slices.SortFunc(p.Pods, compareNames)
		r.Existing = append(r.Existing, p)
	}
	slices.SortFunc(r.Existing, func(a, b Placement) int { return cmp.Compare(a.Node, b.Node) })
	for pod, why := range results.PodErrors {
		r.Unplaced = append(r.Unplaced, Unplaced{Pod: nameOf(pod), Err: why})
	}
	slices.SortFunc(r.Unplaced, func(a, b Unplaced) int { return compareNames(a.Pod, b.Pod) })
	if err != nil {
		return r, fmt.Errorf("karpenter: %w", err)
	}
	return r, nil
}

func know(keys []string) {
	wellKnown.RLock()
	all := karpv1.WellKnownLabels.HasAll(keys...)
	wellKnown.RUnlock()
	if all {
		return
	}
	wellKnown.Lock()
	defer wellKnown.Unlock()
	karpv1.WellKnownLabels.Insert(keys...)
}

// cluster is the input in Karpenter's own terms, on copies.
type cluster struct {
	store   *store
	state   *state.Cluster
	pods    []*corev1.Pod
	pools   []*karpv1.NodePool
	types   map[string][]*cloudprovider.InstanceType
	daemons []*corev1.Pod
	clock   clock.Clock
}

func newCluster(ctx context.Context, in Input) (*cluster, error) {
	c := &cluster{store: newStore(), clock: clock.RealClock{}, types: map[string][]*cloudprovider.InstanceType{}}
	seen := map[types.NamespacedName]bool{}
	var errs []error
	for i, pod := range copies(in.Pods) {
		if key := nameOf(pod); seen[key] {
			errs = append(errs, fmt.Errorf("pods[%d]: a second pod %q", i, key))
		}
		seen[nameOf(pod)] = true
		c.pods = append(c.pods, identified(pod))
	}
	names := map[string]bool{}
	for i, pool := range copies(in.NodePools) {
		if names[pool.Name] {
			errs = append(errs, fmt.Errorf("nodePools[%d]: a second pool %q", i, pool.Name))
		}
		names[pool.Name] = true
		if nodepool.IsStatic(pool) || !pool.DeletionTimestamp.IsZero() {
			continue
		}
		if pool.Spec.Template.Spec.NodeClassRef == nil {
			// It only makes a label; a pool that an API server has seen always has one.
			pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "example.com", Kind: "NodeClass", Name: "default"}
		}
		c.pools = append(c.pools, pool)
		if len(in.InstanceTypes[pool.Name]) > 0 {
			c.types[pool.Name] = slices.Clone(in.InstanceTypes[pool.Name])
		}
	}
	nodepool.OrderByWeight(c.pools)
	for _, d := range copies(in.DaemonSets) {
		d.Namespace = nameOf(d).Namespace
		c.daemons = append(c.daemons, daemonset.PodForDaemonSet(d))
	}

	running := copies(in.Running)
	for i := range running {
		running[i] = identified(running[i])
	}
	nodes := copies(in.Nodes)
	for _, n := range nodes {
		registered(n)
	}
	namespaces := copies(in.Namespaces)
	for _, ns := range namespaces {
		metav1.SetMetaDataLabel(&ns.ObjectMeta, corev1.LabelMetadataName, ns.Name)
		seen[types.NamespacedName{Name: ns.Name}] = true
	}
	for _, pod := range slices.Concat(c.pods, running) {
		if key := (types.NamespacedName{Name: pod.Namespace}); !seen[key] {
			seen[key] = true
			namespaces = append(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: pod.Namespace, Labels: map[string]string{corev1.LabelMetadataName: pod.Namespace},
			}})
		}
	}
	pvcs := copies(in.PVCs)
	for _, pvc := range pvcs {
		pvc.Namespace = nameOf(pvc).Namespace
	}
	addAll(c.store, running)
	addAll(c.store, nodes)
	addAll(c.store, namespaces)
	addAll(c.store, pvcs)
	addAll(c.store, copies(in.PVs))
	addAll(c.store, copies(in.StorageClasses))
	addAll(c.store, copies(in.CSINodes))
	c.store.sort()

	c.state = state.NewCluster(c.clock, c.store, provider{})
	for _, n := range nodes {
		errs = append(errs, c.state.UpdateNode(ctx, n))
	}
	for _, pod := range running {
		// Anti-affinity of running pods is known to the state by pod, not by node.
		errs = append(errs, c.state.UpdatePod(ctx, pod))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("karpenter: %w", err)
	}
	return c, nil
}

// scheduler does what Karpenter's provisioner does between the pending pods and a scheduler.
func (c *cluster) scheduler(ctx context.Context, opts []scheduling.Options) (*scheduling.Scheduler, []*corev1.Pod, []Unplaced, error) {
	provisioner := provisioning.NewProvisioner(c.store, recorder{}, provider{}, c.state, c.clock, nil, nil)
	volumes := scheduling.NewVolumeTopology(c.store)
	requirements := map[types.UID][]karpscheduling.Requirements{}
	var pods []*corev1.Pod
	var refused []Unplaced
	for _, pod := range c.pods {
		if len(pod.Spec.SchedulingGates) > 0 {
			// Karpenter looks only at pods that kube-scheduler has tried, and it does not try
			// these.
			refused = append(refused, Unplaced{Pod: nameOf(pod), Err: errors.New("the pod has scheduling gates")})
			continue
		}
		if err := provisioner.Validate(ctx, pod); err != nil {
			refused = append(refused, Unplaced{Pod: nameOf(pod), Err: err})
			continue
		}
		volume, err := volumes.GetRequirements(ctx, pod)
		if err != nil {
			refused = append(refused, Unplaced{Pod: nameOf(pod), Err: err})
			continue
		}
		if len(volume) > 0 {
			requirements[pod.UID] = volume
		}
		pods = append(pods, pod)
	}
	nodes := c.state.DeepCopyNodes().Active()
	topology, err := scheduling.NewTopology(ctx, c.store, c.state, nodes, c.pools, c.types, pods, opts...)
	if err != nil {
		return nil, nil, nil, err
	}
	return scheduling.NewScheduler(ctx, c.store, c.pools, c.state, nodes, topology, c.types, c.daemons, recorder{}, c.clock,
		requirements, nil, opts...), pods, refused, nil
}

// registered completes a node as Karpenter and the kubelet do. No NodeClaims are made: the
// scheduler looks at a node's claim only for what the node itself does not say yet.
func registered(n *corev1.Node) {
	if n.Spec.ProviderID == "" {
		n.Spec.ProviderID = "node:///" + n.Name
	}
	if n.Status.Capacity == nil {
		n.Status.Capacity = n.Status.Allocatable.DeepCopy()
	}
	if n.Labels[karpv1.NodePoolLabelKey] != "" {
		metav1.SetMetaDataLabel(&n.ObjectMeta, karpv1.NodeRegisteredLabelKey, "true")
		metav1.SetMetaDataLabel(&n.ObjectMeta, karpv1.NodeInitializedLabelKey, "true")
	}
}

// identified gives a pod the namespace and the UID that an API server would have given it;
// Karpenter keys its caches by UID.
func identified(pod *corev1.Pod) *corev1.Pod {
	key := nameOf(pod)
	pod.Namespace = key.Namespace
	if pod.UID == "" {
		pod.UID = types.UID(key.String())
	}
	return pod
}

func copies[T interface {
	DeepCopy() T
	client.Object
}](in []T) []T {
	out := make([]T, 0, len(in))
	for _, o := range in {
		out = append(out, o.DeepCopy())
	}
	return out
}

// provider is a cloud of which the scheduler asks nothing: types are handed to it, and nothing is
// launched.
type provider struct{ cloudprovider.CloudProvider }

// recorder drops events.
type recorder struct{}

// Publish drops them.
func (recorder) Publish(...events.Event) {}
