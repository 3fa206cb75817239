package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/admission"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/volume"
)

// view is the cluster at one moment, as the packages of the library read it.
type view struct {
	scheduling.Snapshot
	objects manifests.Snapshot           // what package simulate reads beside it
	claims  map[string]*karpv1.NodeClaim // by name of the node in Nodes
	pools   map[string]*karpv1.NodePool  // by name
	moving  map[*corev1.Pod]bool         // pending only because their node is leaving
	now     time.Time
}

// read makes a view from the caches. Objects are shared with the caches, for nothing in the library changes what it is given.
// What cannot be read, a pool with a mistake, is left out and told in the error, which joins all of them; the view is good then.
func (o *Operator) read(ctx context.Context) (*view, error) {
	v := &view{claims: map[string]*karpv1.NodeClaim{}, pools: map[string]*karpv1.NodePool{}, moving: map[*corev1.Pod]bool{}, now: time.Now()}
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
	v.Volumes = volume.Objects{
		Persistent: pointers(volumes.Items), Claims: pointers(volumeClaims.Items), Classes: pointers(storageClasses.Items), CSINodes: pointers(csiNodes.Items),
	}
	v.Admission = admission.NewCluster(pointers(priorities.Items), pointers(runtimes.Items), pointers(ranges.Items))
	v.objects.PodDisruptionBudgets = pointers(budgets.Items)
	problems := errors.Join(o.readPools(ctx, v, pools.Items), v.readNodes(nodes.Items, claims.Items))
	leaving := map[string]bool{}
	for _, n := range v.Nodes {
		leaving[n.Name] = n.Spec.Unschedulable && v.claims[n.Name] != nil && isLeaving(n, v.claims[n.Name])
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if leaving[p.Spec.NodeName] && eviction.Reschedulable(p) { // its place is needed before it goes
			pending := *p
			pending.Spec.NodeName = ""
			p = &pending
			v.moving[p] = true
		}
		v.Pods = append(v.Pods, p)
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
		types, ok := shared[pool.NodeClass]
		if !ok {
			if types, err = o.options.Provider.InstanceTypes(ctx, pool); err != nil {
				problems = append(problems, fmt.Errorf("NodePool %s: %w", p.Name, err))
				continue
			}
			types = ledger.Apply(types, v.now)
			shared[pool.NodeClass] = types
		}
		v.pools[p.Name] = p
		v.Pools = append(v.Pools, scheduling.Pool{NodePool: pool, Types: types})
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

// readNodes joins nodes and claims. A claim whose node is not ready for pods yet counts as the node that it promises: pods wait
// for it, so it must not be bought again. A node that is leaving takes no more pods.
func (v *view) readNodes(nodes []corev1.Node, claims []karpv1.NodeClaim) error {
	byID := map[string]*corev1.Node{}
	for i := range nodes {
		if id := nodes[i].Spec.ProviderID; id != "" {
			byID[id] = &nodes[i]
		}
	}
	var problems []error
	taken := map[string]bool{}
	for i := range claims {
		c := &claims[i]
		var node *corev1.Node
		if c.Status.ProviderID != "" {
			node = byID[c.Status.ProviderID]
		}
		switch {
		case node != nil && c.StatusConditions().IsTrue(karpv1.ConditionTypeInitialized):
		case c.DeletionTimestamp != nil && node == nil:
			continue
		default:
			promise, err := v.promised(c, node)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			node = promise
		}
		if isLeaving(node, c) {
			closed := *node
			closed.Spec.Unschedulable = true
			closed.Spec.Taints = append(slices.Clone(node.Spec.Taints), karpv1.DisruptedNoScheduleTaint)
			node = &closed
		}
		taken[node.Name] = true
		v.claims[node.Name] = c
		v.Nodes = append(v.Nodes, node)
		decoded, err := decodeClaim(c)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		decoded.NodeName = node.Name
		v.objects.NodeClaims = append(v.objects.NodeClaims, decoded)
	}
	for i := range nodes {
		if !taken[nodes[i].Name] {
			v.Nodes = append(v.Nodes, &nodes[i])
		}
	}
	return errors.Join(problems...)
}

// isLeaving reports whether a node of ours is on its way out.
func isLeaving(node *corev1.Node, claim *karpv1.NodeClaim) bool {
	return claim.DeletionTimestamp != nil || node.DeletionTimestamp != nil ||
		slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpv1.DisruptedTaintKey })
}

// promised is the node that a claim will be: what the provider has launched or, before that, what it is asked for first. Startup
// taints are ignored, for somebody will take them off. What the node itself says already goes before.
func (v *view) promised(claim *karpv1.NodeClaim, node *corev1.Node) (*corev1.Node, error) {
	labels, capacity, allocatable := maps.Clone(claim.Labels), claim.Status.Capacity, claim.Status.Allocatable
	if claim.Status.ProviderID == "" {
		ask, err := askOf(claim)
		if err != nil {
			return nil, err
		}
		t, ok := v.typeOf(ask.Pool, ask.Candidates[0].Type)
		if !ok {
			return nil, fmt.Errorf("NodeClaim %s: its pool has no instance type %q any more", claim.Name, ask.Candidates[0].Type)
		}
		if labels, err = cloudprovider.NodeLabels(ask, t, ask.Candidates[0].Offering); err != nil {
			return nil, fmt.Errorf("NodeClaim %s: %w", claim.Name, err)
		}
		capacity, allocatable = t.Capacity, t.Allocatable()
	}
	out := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Labels: labels, Annotations: claim.Annotations, CreationTimestamp: claim.CreationTimestamp},
		Spec:       corev1.NodeSpec{ProviderID: claim.Status.ProviderID, Taints: slices.Clone(claim.Spec.Taints)},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: allocatable, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	if node != nil {
		out.Name, out.DeletionTimestamp = node.Name, node.DeletionTimestamp
		maps.Copy(labels, node.Labels)
		for _, t := range node.Spec.Taints {
			if t.Key == karpv1.DisruptedTaintKey {
				out.Spec.Taints = append(out.Spec.Taints, t)
			}
		}
	}
	if labels[corev1.LabelHostname] == "" {
		labels[corev1.LabelHostname] = out.Name
	}
	// An existing node that has registered only is told from one that takes pods by this label.
	labels[karpv1.NodeRegisteredLabelKey] = "true"
	return out, nil
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
