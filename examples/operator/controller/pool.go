package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/drift"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// reconcilePool writes a pool's status: conditions, number of nodes, resources. The garbage
// collector of Kubernetes deletes the claims of a deleted pool, because the pool owns them.
func (o *Operator) reconcilePool(ctx context.Context, pool *karpv1.NodePool) (reconcile.Result, error) {
	if pool.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	decoded, invalid := nodepool.DecodeObject(pool)
	if hash, ok := drift.Hash(&decoded); ok && invalid == nil {
		if err := o.write(ctx, pool, func() {
			metav1.SetMetaDataAnnotation(&pool.ObjectMeta, karpv1.NodePoolHashAnnotationKey, hash)
			metav1.SetMetaDataAnnotation(&pool.ObjectMeta, karpv1.NodePoolHashVersionAnnotationKey, drift.HashVersion)
		}); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	claims, err := list[*karpv1.NodeClaim](ctx, o.client, &karpv1.NodeClaimList{}, client.MatchingLabels{karpv1.NodePoolLabelKey: pool.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return reconcile.Result{}, err
	}
	nodes := int64(len(claims))
	sum := corev1.ResourceList{"nodes": *resource.NewQuantity(nodes, resource.DecimalSI), "cpu": {}, "memory": {}, "pods": {}, "ephemeral-storage": {}}
	for _, c := range claims {
		sum = resources.Add(sum, c.Status.Capacity)
	}
	_, missing := o.classHash(ctx, pool.Spec.Template.Spec.NodeClassRef)
	before := pool.ResourceVersion
	err = o.writeStatus(ctx, pool, func() {
		say := func(kind, reason string, err error) {
			if err == nil {
				pool.StatusConditions().SetTrue(kind)
			} else {
				pool.StatusConditions().SetFalse(kind, reason, err.Error())
			}
		}
		say(karpv1.ConditionTypeValidationSucceeded, "Invalid", invalid)
		say(karpv1.ConditionTypeNodeClassReady, "NodeClassNotFound", missing)
		pool.Status.Nodes, pool.Status.Resources = &nodes, sum
	})
	if decoded.IsStatic() && nodes != *decoded.Replicas {
		o.Wake()
	}
	if pool.ResourceVersion != before { // conditions have the generation, so this is so after every change of the spec, and pods may fit now
		o.Wake()
		if invalid != nil {
			o.events.Eventf(pool, nil, corev1.EventTypeWarning, "Invalid", "Validate", "%s", invalid)
		}
	}
	return reconcile.Result{RequeueAfter: o.options.Poll}, client.IgnoreNotFound(err)
}

// keepReplicas creates the claims that static pools lack, and deletes those that they have too
// many: first those whose nodes are not there, then the nodes that are the cheapest to disturb. It
// returns how many it created.
func (o *Operator) keepReplicas(ctx context.Context, v *view) (created int, err error) {
	var cluster deprovision.Cluster
	var errs []error
	for i := range v.Pools {
		pool := &v.Pools[i]
		if !pool.IsStatic() {
			continue
		}
		var now nodepool.Population
		var coming []*karpv1.NodeClaim
		for _, node := range slices.Sorted(maps.Keys(v.claims)) {
			claim := v.claims[node]
			if claim.Labels[karpv1.NodePoolLabelKey] != pool.Name {
				continue
			}
			at := slices.IndexFunc(v.Nodes, func(n *corev1.Node) bool { return n.Name == node })
			if claim.DeletionTimestamp != nil || at >= 0 && hasTaint(v.Nodes[at], karpv1.DisruptedTaintKey) {
				now.Leaving++
				continue
			}
			if now.Staying++; at < 0 {
				coming = append(coming, claim)
			}
		}
		surplus := int(pool.Surplus(now))
		for _, claim := range coming[:min(surplus, len(coming))] {
			errs = append(errs, o.giveUp(ctx, claim, "Surplus", "its pool has more nodes than its replicas"))
		}
		if surplus > len(coming) {
			if cluster.Nodes == nil {
				cluster = v.objects.Cluster(v.Snapshot, nil, v.now)
			}
			for _, n := range eligibility.Surplus(pool.NodePool, cluster.Nodes, v.now) {
				if claim := v.claims[n.Name()]; claim != nil {
					errs = append(errs, o.giveUp(ctx, claim, "Surplus", "its pool has more nodes than its replicas"))
				}
			}
		}
		lacks := int(pool.Deficit(now))
		ask := cloudprovider.NodeClaim{
			Name: "planned", Pool: pool.Name, NodeClass: pool.NodeClass, Requirements: pool.NodeRequirements(), Labels: pool.PoolLabels(), Taints: pool.Taints, StartupTaints: pool.StartupTaints,
		}
		if ask.Candidates = cloudprovider.CandidatesOf(pool.Types, ask.Requirements, nil, instancetypes.WellKnown()); lacks > 0 && len(ask.Candidates) == 0 {
			errs = append(errs, fmt.Errorf("NodePool %s lacks nodes (%d), but no type on sale meets its requirements", pool.Name, lacks))
			continue
		}
		ask.Candidates = ask.Candidates[:min(mostCandidates, len(ask.Candidates))]
		allowed, err := v.withinQuotas(ask, lacks)
		errs = append(errs, err)
		for range allowed {
			_, err := o.createClaim(ctx, v, ask, "", fmt.Sprintf("for the replicas of its pool (%d)", *pool.Replicas))
			errs = append(errs, err)
			created++
		}
	}
	return created, errors.Join(errs...)
}

// classHash returns a hash of the spec of a node class of any kind. A node whose claim has another
// hash has drifted.
func (o *Operator) classHash(ctx context.Context, ref *karpv1.NodeClassReference) (string, error) {
	if ref == nil {
		return "", fmt.Errorf("there is no reference to a node class")
	}
	var class unstructured.Unstructured
	mapping, err := o.client.RESTMapper().RESTMapping(schema.GroupKind{Group: ref.Group, Kind: ref.Kind})
	if err == nil {
		class.SetGroupVersionKind(mapping.GroupVersionKind)
		err = o.api.Get(ctx, client.ObjectKey{Name: ref.Name}, &class) // without the right to read a kind, its cache would never be filled
	}
	if err != nil {
		return "", fmt.Errorf("its node class: %w", err)
	}
	spec, err := json.Marshal(class.Object["spec"]) // with sorted keys
	sum := sha256.Sum256(spec)
	return hex.EncodeToString(sum[:8]), err
}

// quotaKind is the kind of CapacityQuotas, which most clusters do not have.
var quotaKind = schema.GroupKind{Group: "autoscaling.x-k8s.io", Kind: "CapacityQuota"}

// withinQuotas is how many of so many nodes for a static pool the CapacityQuotas allow, by the
// first candidate. The error names the quota that keeps the others away.
func (v *view) withinQuotas(ask cloudprovider.NodeClaim, nodes int) (int, error) {
	if len(v.Quotas) == 0 || nodes == 0 {
		return nodes, nil
	}
	claim, err := pipeline.Promised(v.Pools, ask)
	if err != nil {
		return 0, err
	}
	allowed, quota := pipeline.WithinQuotas(v.Snapshot, claim, int64(nodes))
	if int(allowed) < nodes {
		return int(allowed), fmt.Errorf("NodePool %s lacks nodes (%d), but quota %q allows %d", ask.Pool, nodes, quota, allowed)
	}
	return nodes, nil
}
