// Package capacityquota reads CapacityQuotas of autoscaling.x-k8s.io. They limit the sum over the
// nodes that a label selector chooses, such as 8 nodes of a team, or 1,000 cores of spot capacity
// over all pools.
//
// Every node, existing or to be bought, counts towards each quota that its labels match. A node is
// bought only if it exceeds none of these quotas and no limit of its pool. A quota that is already
// exceeded forbids further nodes, but removes none.
//
// The object is described by the API types of cluster-autoscaler
// (cluster-autoscaler/apis/capacityquota, v1beta1) and at
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/proposals/granular-resource-limits.md.
// The status is not read: what a quota has used is counted from the nodes.
package capacityquota

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
)

// Nodes is the resource that counts nodes, one each.
const Nodes corev1.ResourceName = "nodes"

// Quota is a CapacityQuota. The zero value limits nothing. It is plain data; its methods only read
// it, and may run at the same time.
type Quota struct {
	Name string
	// Selector chooses the nodes that count, by their labels; nil or an empty one chooses all.
	Selector *metav1.LabelSelector
	// Limits limits the sum of each resource of the capacity of these nodes, and, as [Nodes], their
	// number.
	Limits corev1.ResourceList
}

// Misspelt says which resource the name of a limit was probably meant to be, which would limit
// nothing as it is; empty if it is none. The limits of pools are checked in the same way.
func Misspelt(name corev1.ResourceName) string {
	near := resources.Meant(name, "cpu", "memory", "ephemeral-storage", "pods", string(Nodes))
	if near == "" {
		return ""
	}
	return fmt.Sprintf("unknown resource (did you mean %q?)", near)
}

// Matches reports whether a node with the labels counts. A selector that an API server would refuse
// matches no node; [Decode] refuses it.
func (q *Quota) Matches(node map[string]string) bool {
	if q.Selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(q.Selector)
	return err == nil && s.Matches(labels.Set(node))
}

// Requirements returns the selector as a set of nodes. Without a selector it is the zero Set, which
// every node meets. If no node can match the selector, the Set is impossible.
func (q *Quota) Requirements() requirements.Set {
	if q.Selector == nil {
		return requirements.Set{}
	}
	var exprs []corev1.NodeSelectorRequirement
	for key, value := range q.Selector.MatchLabels {
		exprs = append(exprs, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
	}
	for _, e := range q.Selector.MatchExpressions {
		exprs = append(exprs, corev1.NodeSelectorRequirement{Key: e.Key, Operator: corev1.NodeSelectorOperator(e.Operator), Values: e.Values})
	}
	set, _ := kube.FromExpressions(exprs) // with an error it is impossible
	return set
}

// May reports whether some node of the set may count. A label key that the set does not mention is
// absent.
func (q *Quota) May(node requirements.Set) bool {
	return q.Requirements().Compatible(node, requirements.Keys{})
}

// Amount returns how much of the named resource a node with this capacity adds to a quota, in the
// units of package resources.
func Amount(name corev1.ResourceName, capacity corev1.ResourceList) int64 {
	if name == Nodes {
		return 1
	}
	q, ok := capacity[name]
	if !ok {
		return 0
	}
	return resources.Request(name, q)
}
