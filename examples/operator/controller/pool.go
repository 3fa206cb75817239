package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/deprovision/drift"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// reconcilePool writes a pool's status: conditions, number of nodes, resources. The garbage collector of Kubernetes deletes the claims of a
// deleted pool, because the pool owns them.
func (o *Operator) reconcilePool(ctx context.Context, pool *karpv1.NodePool) (reconcile.Result, error) {
	if pool.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	decoded, invalid := nodepool.DecodeObject(pool)
	if decoded.IsStatic() {
		invalid = errors.New("spec.replicas: pools of a fixed number of nodes are not supported; leave it out")
	}
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
	if pool.ResourceVersion != before { // conditions have the generation, so this is so after every change of the spec, and pods may fit now
		o.Wake()
		if invalid != nil {
			o.events.Eventf(pool, nil, corev1.EventTypeWarning, "Invalid", "Validate", "%s", invalid)
		}
	}
	return reconcile.Result{RequeueAfter: o.options.Poll}, client.IgnoreNotFound(err)
}

// classHash returns a hash of the spec of a node class of any kind. A node whose claim has another hash has drifted.
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
