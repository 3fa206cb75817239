package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// view is the cluster at one moment, as the packages of the library read it.
type view struct {
	scheduling.Snapshot
	objects simulate.Objects             // what package simulate reads beside it
	claims  map[string]*karpv1.NodeClaim // by name of the node or, before it is there, of the claim
	pools   map[string]*karpv1.NodePool  // by name
	classes map[string]string            // by name of the pool: the hash of its node class
	leaving map[string]bool              // nodes of ours on their way out
	moving  map[types.UID]bool           // pods that need another place for that
	now     time.Time
}

// read makes a view from the caches. Objects are shared with the caches, for nothing in the library changes what it is given.
// What cannot be read, a pool with a mistake, is left out and told in the error, which joins all of them; the view is good then.
func (o *Operator) read(ctx context.Context) (*view, error) {
	v := &view{claims: map[string]*karpv1.NodeClaim{}, pools: map[string]*karpv1.NodePool{}, classes: map[string]string{}, leaving: map[string]bool{}, moving: map[types.UID]bool{}, now: time.Now()}
	var pods corev1.PodList
	var nodes corev1.NodeList
	var daemons appsv1.DaemonSetList
	var namespaces corev1.NamespaceList
	var volumes corev1.PersistentVolumeList
	var volumeClaims corev1.PersistentVolumeClaimList
	var storageClasses storagev1.StorageClassList
	var csiNodes storagev1.CSINodeList
	var budgets policyv1.PodDisruptionBudgetList
	var priorities schedulingv1.PriorityClassList
	var runtimes nodev1.RuntimeClassList
	var ranges corev1.LimitRangeList
	var pools karpv1.NodePoolList
	var claims karpv1.NodeClaimList
	for _, list := range []client.ObjectList{
		&claims, &nodes, &pods, &pools, &daemons, &namespaces, &volumes, &volumeClaims, &storageClasses, &csiNodes, &budgets, &priorities, &runtimes, &ranges,
	} {
		if err := o.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("controller: %w", err)
		}
	}
	v.DaemonSets, v.Namespaces = pointers(daemons.Items), pointers(namespaces.Items)
	v.PersistentVolumes, v.PersistentVolumeClaims = pointers(volumes.Items), pointers(volumeClaims.Items)
	v.StorageClasses, v.CSINodes = pointers(storageClasses.Items), pointers(csiNodes.Items)
	v.PriorityClasses, v.RuntimeClasses, v.LimitRanges = pointers(priorities.Items), pointers(runtimes.Items), pointers(ranges.Items)
	v.objects.PodDisruptionBudgets = pointers(budgets.Items)
	problems := errors.Join(o.readPools(ctx, v, pools.Items), v.readNodes(nodes.Items, claims.Items))
	for i := range pods.Items {
		p := &pods.Items[i]
		v.Pods = append(v.Pods, p)
		if v.leaving[p.Spec.NodeName] && eviction.Reschedulable(p) {
			v.moving[p.UID] = true
		}
	}
	return v, problems
}

// readPools decodes the pools and asks the provider what each can buy.
func (o *Operator) readPools(ctx context.Context, v *view, pools []karpv1.NodePool) error {
	o.mu.Lock()
	ledger := o.ledger
	o.mu.Unlock()
	var problems []error
	shared := map[nodepool.NodeClassRef][]instancetypes.InstanceType{} // pools of one class share a slice, which saves compiling it twice
	for i := range pools {
		p := &pools[i]
		if p.DeletionTimestamp != nil {
			continue
		}
		pool, err := decodePool(p)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if v.classes[p.Name], err = classHash(ctx, o.client, p.Spec.Template.Spec.NodeClassRef); err != nil {
			problems = append(problems, fmt.Errorf("NodePool %s: its node class: %w", p.Name, err))
			continue
		}
		offered, ok := shared[pool.NodeClass]
		if !ok {
			if offered, err = o.options.Provider.InstanceTypes(ctx, pool); err != nil {
				problems = append(problems, fmt.Errorf("NodePool %s: %w", p.Name, err))
				continue
			}
			offered = ledger.Apply(offered, v.now)
			shared[pool.NodeClass] = offered
		}
		v.pools[p.Name] = p
		v.Pools = append(v.Pools, scheduling.Pool{NodePool: pool, Types: offered})
	}
	return errors.Join(problems...)
}

// decodePool reads a pool as package nodepool does it for every version.
func decodePool(p *karpv1.NodePool) (nodepool.NodePool, error) {
	typed := *p
	typed.APIVersion, typed.Kind = nodepool.V1, "NodePool" // caches drop them
	data, err := json.Marshal(&typed)
	if err != nil {
		return nodepool.NodePool{}, fmt.Errorf("NodePool %s: %w", p.Name, err)
	}
	pool, err := nodepool.Decode(data)
	if err != nil {
		return nodepool.NodePool{}, err
	}
	return nodepool.Apply(pool, nodepool.LinuxByDefault), nil
}

// readNodes joins nodes and claims. What a claim promises counts until its node is initialized: see scheduling.NodeClaim.
func (v *view) readNodes(nodes []corev1.Node, claims []karpv1.NodeClaim) error {
	byID := map[string]*corev1.Node{}
	for i := range nodes {
		v.Nodes = append(v.Nodes, &nodes[i])
		if id := nodes[i].Spec.ProviderID; id != "" {
			byID[id] = &nodes[i]
		}
	}
	var problems []error
	for i := range claims {
		c := &claims[i]
		decoded, err := decodeClaim(c)
		if err == nil {
			decoded.Metadata.Labels, decoded.Capacity, decoded.Allocatable, err = v.promise(c)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		name := c.Name
		if node := byID[c.Status.ProviderID]; node != nil {
			name, decoded.NodeName = node.Name, node.Name
			if isLeaving(node, c) {
				v.leaving[name] = true
			}
		}
		v.claims[name] = c
		v.objects.NodeClaims = append(v.objects.NodeClaims, decoded)
		v.NodeClaims = append(v.NodeClaims, scheduling.NodeClaim{
			Name: c.Name, NodeName: decoded.NodeName, ProviderID: c.Status.ProviderID, Labels: decoded.Metadata.Labels,
			Taints: c.Spec.Taints, StartupTaints: c.Spec.StartupTaints, Capacity: decoded.Capacity, Allocatable: decoded.Allocatable,
			Initialized: c.StatusConditions().IsTrue(karpv1.ConditionTypeInitialized), Deleting: c.DeletionTimestamp != nil,
		})
	}
	return errors.Join(problems...)
}

// isLeaving reports whether a node of ours is on its way out.
func isLeaving(node *corev1.Node, claim *karpv1.NodeClaim) bool {
	return claim.DeletionTimestamp != nil || node.DeletionTimestamp != nil ||
		hasTaint(node, karpv1.DisruptedTaintKey)
}

// promise is what a claim's node will have: what the provider has launched or, before that, what it is asked for first.
func (v *view) promise(claim *karpv1.NodeClaim) (labels map[string]string, capacity, allocatable corev1.ResourceList, err error) {
	if claim.Status.ProviderID != "" {
		return claim.Labels, claim.Status.Capacity, claim.Status.Allocatable, nil
	}
	ask, err := readRequest(claim)
	if err != nil || len(ask.Candidates) == 0 { // made by hand a moment ago
		return claim.Labels, nil, nil, err
	}
	t, ok := v.typeOf(ask.Pool, ask.Candidates[0].Type)
	if !ok {
		return nil, nil, nil, fmt.Errorf("NodeClaim %s: its pool has no instance type %q any more", claim.Name, ask.Candidates[0].Type)
	}
	labels, err = cloudprovider.NodeLabels(ask, t, ask.Candidates[0].Offering)
	return labels, t.Capacity, t.Allocatable(), err
}

// pool is a pool by its name.
func (v *view) pool(name string) (*scheduling.Pool, bool) {
	i := slices.IndexFunc(v.Pools, func(p scheduling.Pool) bool { return p.Name == name })
	if i < 0 {
		return nil, false
	}
	return &v.Pools[i], true
}

// typeOf is an instance type as a pool has it.
func (v *view) typeOf(pool, name string) (instancetypes.InstanceType, bool) {
	p, ok := v.pool(pool)
	if !ok {
		return instancetypes.InstanceType{}, false
	}
	i := slices.IndexFunc(p.Types, func(t instancetypes.InstanceType) bool { return t.Name == name })
	if i < 0 {
		return instancetypes.InstanceType{}, false
	}
	return p.Types[i], true
}
