package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/availability"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/operator/shed"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/defaultspread"
	"github.com/joinery-sdk/joinery/scheduling/gang"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/overlay"
)

// view is the cluster at one moment, in the types of the library.
type view struct {
	scheduling.Snapshot
	objects simulate.Objects              // for package simulate
	claims  map[string]*karpv1.NodeClaim  // by name of the node or, before it joins, of the claim
	pools   map[string]knownPool          // by name
	busy    map[string]bool               // claims of running commands, by name, as of before the rest was read
	moving  map[types.UID]bool            // pods of leaving nodes, which need another place
	awaited map[string]bool               // claims that pending pods are planned for, by name
	repairs map[string]lifecycle.Decision // broken nodes, by name
	urgent  []string                      // broken nodes, the most urgent first
	buffers []*spare
	spread  func([]*corev1.Pod) []*corev1.Pod // gives pods the default spread
	costs   shed.Annotations                  // deletion costs of pods, where the operator writes them
	now     time.Time
}

// knownPool is a pool that can be planned with.
type knownPool struct {
	*karpv1.NodePool
	decoded   nodepool.NodePool
	classHash string
}

// cached returns the objects of a kind, shared with the cache, because the library never changes an
// argument. It adds an error to failed.
func cached[T client.Object](ctx context.Context, o *Operator, into client.ObjectList, failed *error) []T {
	out, err := list[T](ctx, o.client, into, client.UnsafeDisableDeepCopy)
	*failed = errors.Join(*failed, err)
	return out
}

// read makes a view from the caches. It leaves out invalid pools and claims, and joins their
// errors; such a view can be planned with. If the caches or a CapacityQuota cannot be read, the
// view is nil: what a quota allows is not known then.
func (o *Operator) read(ctx context.Context) (*view, error) {
	v := &view{claims: map[string]*karpv1.NodeClaim{}, pools: map[string]knownPool{}, moving: map[types.UID]bool{}, awaited: map[string]bool{}, repairs: map[string]lifecycle.Decision{}, now: time.Now()}
	o.locked(func(time.Time) { v.busy = maps.Clone(o.busy) })
	var failed error
	claims := cached[*karpv1.NodeClaim](ctx, o, &karpv1.NodeClaimList{}, &failed)
	v.Nodes = cached[*corev1.Node](ctx, o, &corev1.NodeList{}, &failed)
	v.Pods = cached[*corev1.Pod](ctx, o, &corev1.PodList{}, &failed)
	pools := cached[*karpv1.NodePool](ctx, o, &karpv1.NodePoolList{}, &failed)
	v.DaemonSets = cached[*appsv1.DaemonSet](ctx, o, &appsv1.DaemonSetList{}, &failed)
	v.Namespaces = cached[*corev1.Namespace](ctx, o, &corev1.NamespaceList{}, &failed)
	v.PersistentVolumes = cached[*corev1.PersistentVolume](ctx, o, &corev1.PersistentVolumeList{}, &failed)
	v.PersistentVolumeClaims = cached[*corev1.PersistentVolumeClaim](ctx, o, &corev1.PersistentVolumeClaimList{}, &failed)
	v.StorageClasses = cached[*storagev1.StorageClass](ctx, o, &storagev1.StorageClassList{}, &failed)
	v.CSINodes = cached[*storagev1.CSINode](ctx, o, &storagev1.CSINodeList{}, &failed)
	v.VolumeAttachments = cached[*storagev1.VolumeAttachment](ctx, o, &storagev1.VolumeAttachmentList{}, &failed)
	v.CSIDrivers = cached[*storagev1.CSIDriver](ctx, o, &storagev1.CSIDriverList{}, &failed)
	v.CSIStorageCapacities = cached[*storagev1.CSIStorageCapacity](ctx, o, &storagev1.CSIStorageCapacityList{}, &failed)
	v.PriorityClasses = cached[*schedulingv1.PriorityClass](ctx, o, &schedulingv1.PriorityClassList{}, &failed)
	v.RuntimeClasses = cached[*nodev1.RuntimeClass](ctx, o, &nodev1.RuntimeClassList{}, &failed)
	v.LimitRanges = cached[*corev1.LimitRange](ctx, o, &corev1.LimitRangeList{}, &failed)
	v.objects.PodDisruptionBudgets = cached[*policyv1.PodDisruptionBudget](ctx, o, &policyv1.PodDisruptionBudgetList{}, &failed)
	v.spread = func(pods []*corev1.Pod) []*corev1.Pod { return pods }
	if spread := o.options.Spread; len(spread) > 0 {
		v.spread = (&defaultspread.Defaults{
			Constraints: spread, Services: cached[*corev1.Service](ctx, o, &corev1.ServiceList{}, &failed),
			ReplicationControllers: cached[*corev1.ReplicationController](ctx, o, &corev1.ReplicationControllerList{}, &failed),
			ReplicaSets:            cached[*appsv1.ReplicaSet](ctx, o, &appsv1.ReplicaSetList{}, &failed),
			StatefulSets:           cached[*appsv1.StatefulSet](ctx, o, &appsv1.StatefulSetList{}, &failed),
		}).Pods
		v.Pods = v.spread(v.Pods)
	}
	if failed != nil {
		return nil, failed
	}
	if o.options.DeletionCosts {
		v.costs = shed.Take(v.Pods)
	}
	if v.Quotas, failed = optional(ctx, o, quotaKind, capacityquota.Decode); failed != nil {
		return nil, failed
	}
	groups, problems := o.readGroups(ctx, v.Pods)
	v.objects.Groups = groups
	problems = errors.Join(problems, o.readPools(ctx, v, pools), o.readClaims(v, claims), o.readBuffers(ctx, v))
	o.readRepairs(v)
	leaving := pipeline.Leaving(v.Snapshot)
	v.Staying = pipeline.Staying(v.Snapshot, v.objects.PodDisruptionBudgets, v.now)
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, p := range v.Pods {
		if leaving[p.Spec.NodeName] && eviction.Reschedulable(p) && v.Staying[eviction.Name(p)] == "" {
			v.moving[p.UID] = true
		}
		if place, ours := o.planned[p.UID]; ours && p.Spec.NodeName == "" { // we nominated it, and kube-scheduler may have refused it there
			v.awaited[place.claim] = true
			q := *p
			q.Status.NominatedNodeName, v.Pods[i] = "", &q
		}
	}
	return v, problems
}

// readGroups finds the groups of pods that run only together. Kinds of PodGroups are read from the
// API server, because a cluster may have none of them, and only if a pod names one. A group whose
// PodGroup cannot be read waits.
func (o *Operator) readGroups(ctx context.Context, pods []*corev1.Pod) ([]gang.Group, error) {
	groups := pipeline.GroupsOf(nil, pods)
	if !slices.ContainsFunc(groups, func(g gang.Group) bool { return g.Waits != "" }) {
		return groups, nil
	}
	var objects []gang.PodGroup
	var problems []error
	for _, api := range []string{gang.Kubernetes, gang.Coscheduling, gang.Volcano} {
		decoded, err := optional(ctx, o, schema.GroupKind{Group: api, Kind: "PodGroup"}, gang.Decode)
		objects, problems = append(objects, decoded...), append(problems, err)
	}
	return pipeline.GroupsOf(objects, pods), errors.Join(problems...)
}

// optional reads the objects of a kind that a cluster may not have from the API server. The errors
// are of those that cannot be read.
func optional[T any](ctx context.Context, o *Operator, kind schema.GroupKind, decode func([]byte) (T, error)) ([]T, error) {
	mapping, err := o.client.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	var all []*unstructured.Unstructured
	if err == nil {
		var found unstructured.UnstructuredList
		found.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
		all, err = list[*unstructured.Unstructured](ctx, o.api, &found)
	}
	if err != nil {
		return nil, fmt.Errorf("%ss of %s: %w", kind.Kind, kind.Group, err)
	}
	var out []T
	var problems []error
	for _, object := range all {
		text, err := object.MarshalJSON()
		if err == nil {
			var decoded T
			if decoded, err = decode(text); err == nil {
				out = append(out, decoded)
				continue
			}
		}
		problems = append(problems, fmt.Errorf("%s %s: %w", kind.Kind, strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"), err))
	}
	return out, errors.Join(problems...)
}

// groupsOf names the groups with pods on nodes to buy, separated by commas.
func (v *view) groupsOf(nodes []plan.NewNode) string {
	var names []string
	for _, g := range v.objects.Groups {
		if slices.ContainsFunc(nodes, func(n plan.NewNode) bool { return slices.ContainsFunc(n.Pods, g.Member) }) {
			names = append(names, g.Name)
		}
	}
	return strings.Join(names, ",")
}

// readPools decodes the pools and asks the provider for their instance types.
func (o *Operator) readPools(ctx context.Context, v *view, pools []*karpv1.NodePool) error {
	var ledger availability.Ledger
	o.locked(func(time.Time) { ledger = o.ledger })
	// Overlays that cannot be read or contradict each other do nothing, and the problem says why.
	overlays, err := optional(ctx, o, schema.GroupKind{Group: "karpenter.sh", Kind: "NodeOverlay"}, overlay.Decode)
	if err != nil {
		overlays = nil
	}
	problems := []error{err}
	contradictions := map[string]bool{}
	offered := map[nodepool.NodeClassRef][]instancetypes.InstanceType{}
	type sale struct {
		class      nodepool.NodeClassRef
		correction string
	}
	sales := map[sale][]instancetypes.InstanceType{} // pools with the same types share a slice, which is compiled once
	for _, p := range pools {
		if p.DeletionTimestamp != nil {
			continue
		}
		decoded, err := nodepool.DecodeObject(p)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		decoded = nodepool.Apply(decoded, nodepool.LinuxByDefault)
		hash, err := o.classHash(ctx, p.Spec.Template.Spec.NodeClassRef)
		types, ok := offered[decoded.NodeClass]
		if err == nil && !ok {
			types, err = o.options.Provider.InstanceTypes(ctx, decoded)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("NodePool %s: %w", p.Name, err))
			continue
		}
		if !ok {
			types = ledger.Apply(types, v.now)
			offered[decoded.NodeClass] = types
		}
		correction, err := pipeline.CorrectionOf(&manifests.Snapshot{NodeOverlays: overlays}, decoded)
		if err != nil {
			correction = pipeline.Correction{}
			if !contradictions[err.Error()] {
				problems = append(problems, err)
			}
			contradictions[err.Error()] = true
		}
		own := sale{decoded.NodeClass, correction.Key}
		if _, ok := sales[own]; !ok {
			sales[own] = correction.Apply(types)
		}
		v.pools[p.Name] = knownPool{p, decoded, hash}
		v.Pools = append(v.Pools, scheduling.Pool{NodePool: decoded, Types: sales[own]})
	}
	return errors.Join(problems...)
}

// decodedClaim is a version of a claim, decoded, which takes a fraction of a millisecond; there may
// be thousands.
type decodedClaim struct {
	version string
	claim   nodeclaim.NodeClaim
}

// readClaims decodes the claims that have changed and joins all with their nodes. What a claim
// promises counts until its node is initialized: see scheduling.NodeClaim.
func (o *Operator) readClaims(v *view, claims []*karpv1.NodeClaim) error {
	var before map[types.UID]decodedClaim
	after := make(map[types.UID]decodedClaim, len(claims))
	o.locked(func(time.Time) { before = o.decoded })
	defer o.locked(func(time.Time) { o.decoded = after }) // replaced as a whole, because two may read at the same time
	byID := map[string]*corev1.Node{}
	for _, n := range v.Nodes {
		byID[n.Spec.ProviderID] = n
	}
	var problems []error
	for _, c := range claims {
		last, err := before[c.UID], error(nil)
		if last.version != c.ResourceVersion {
			last.version = c.ResourceVersion
			last.claim, err = nodeclaim.DecodeObject(c)
		}
		if err == nil {
			after[c.UID] = last
		}
		decoded, name := last.claim, c.Name
		if node := byID[c.Status.ProviderID]; node != nil && c.Status.ProviderID != "" {
			name, decoded.NodeName = node.Name, node.Name
		}
		counted := pipeline.NodeClaim(&decoded)
		if err == nil && c.Status.ProviderID == "" {
			var ask cloudprovider.NodeClaim
			if ask, err = readRequest(c); len(ask.Candidates) > 0 { // otherwise a user has just written it
				counted, err = pipeline.Promised(v.Pools, ask)
				counted.Deleting = decoded.Metadata.DeletionTimestamp != nil
			}
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		v.claims[name] = c
		v.objects.NodeClaims = append(v.objects.NodeClaims, decoded)
		v.NodeClaims = append(v.NodeClaims, counted)
	}
	return errors.Join(problems...)
}
