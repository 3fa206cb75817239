package eligibility

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Node is a node with everything that matters for giving it back. It is plain data and is only
// read. The field Node must be set.
type Node struct {
	Node *corev1.Node
	// Pods are all pods bound to the node, including daemons and finished pods.
	Pods []*corev1.Pod
	// Pool is the pool that bought the node, or nil if there is none.
	Pool *nodepool.NodePool
	// PricePerHour is the current price of the node's type in its zone and capacity type. Priced is
	// false if the price is unknown; then the node is not consolidated.
	InstanceType, Zone, CapacityType string
	PricePerHour                     Price
	Priced                           bool
	// CostPerHour is the cost in the objective, for example the price plus a licence; 0 means the
	// price.
	CostPerHour Price
	// Claim is the NodeClaim or Machine of the node. The zero value means that there is none.
	Claim Claim
	// Nominated says that pending pods are about to be bound to the node.
	Nominated bool
	// Drifted lists the ways in which the node has drifted (see package drift). DriftedSince is
	// when that was first seen, or the zero time if unknown.
	Drifted      []string
	DriftedSince time.Time
	// Repair says what is wrong with the node. It is nil for a healthy node.
	Repair *Repair
	// Undecided lists questions about drift that could not be answered. They are only passed on.
	Undecided []string
}

// Repair says why a node has to be replaced by a healthy one. The zero value is a repair that has
// no reason and has always been due.
type Repair struct {
	// Since is when the repair became due. The earliest repair comes first, so a caller can set a
	// priority by changing Since.
	Since time.Time
	// Why is the reason, as text for people.
	Why string
	// Grace limits how long the node's pods may take to leave, in addition to the claim's own
	// limit. nil means no limit; 0 means not to wait for them.
	Grace *time.Duration
}

// FromNode returns a Node with the type, zone and capacity type of n's labels. pods are the pods
// bound to n. price is its price per hour; 0 means unknown. If pool is nil, as on a cluster without
// a provisioner, the node gets a pool with an empty name that consolidates at any time. To plan
// with such nodes, add that pool to the pools of the cluster.
func FromNode(n *corev1.Node, pods []*corev1.Pod, pool *nodepool.NodePool, price Price) Node {
	if pool == nil {
		pool = &nodepool.NodePool{APIVersion: nodepool.V1, Disruption: nodepool.Disruption{Policy: nodepool.WhenEmptyOrUnderutilized, ConsolidateAfter: new(time.Duration)}}
	}
	labels := requirements.KubernetesAliases().Labels(n.Labels)
	return Node{
		Node: n, Pods: pods, Pool: pool, PricePerHour: price, Priced: price > 0,
		InstanceType: labels[corev1.LabelInstanceTypeStable], Zone: labels[corev1.LabelTopologyZone], CapacityType: labels[instancetypes.LabelCapacityType],
	}
}

// Claim is what a NodeClaim or Machine says in addition to its node. A zero time means unknown. The
// zero value says nothing.
type Claim struct {
	Created, Initialized, LastPodEvent time.Time
	Deleting                           bool
	// Rebooting is the condition of that name: Karpenter reboots the node to repair it.
	Rebooting                           bool
	ExpireAfter, TerminationGracePeriod *time.Duration
	// Decides says that the claim alone decides: nil ExpireAfter means never and nil
	// TerminationGracePeriod means no limit, whatever the pool has now. A NodeClaim of
	// karpenter.sh/v1 has copies of both. If Decides is false, the pool's value replaces a nil
	// value of the claim.
	Decides bool
	// Consolidatable is the condition of that name, or nil if the claim does not have it.
	Consolidatable *bool
}

// Name returns the node's name.
func (n *Node) Name() string { return n.Node.Name }

// PoolName returns the name of the node's pool, or an empty string if it has none.
func (n *Node) PoolName() string {
	if n.Pool == nil {
		return ""
	}
	return n.Pool.Name
}

// Reschedulable returns the pods that need a new place if the node goes, in the order of Pods.
func (n *Node) Reschedulable() []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range n.Pods {
		if eviction.Reschedulable(p) {
			out = append(out, p)
		}
	}
	return out
}

// Empty reports whether no pod needs a new place if the node goes.
func (n *Node) Empty() bool {
	return !slices.ContainsFunc(n.Pods, eviction.Reschedulable)
}

// Leaving reports whether the node is being deleted or is marked for deletion.
func (n *Node) Leaving() bool {
	if n.Node.DeletionTimestamp != nil || n.Claim.Deleting {
		return true
	}
	return slices.ContainsFunc(n.Node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == "karpenter.sh/disrupted" || t.Key == "karpenter.sh/disruption"
	})
}

// Rebooting reports whether the node is being rebooted as a repair. It is if its claim says so, or
// if it has the taint karpenter.sh/rebooting, which it keeps until it is back.
func (n *Node) Rebooting() bool {
	return n.Claim.Rebooting || slices.ContainsFunc(n.Node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "karpenter.sh/rebooting" })
}

// Ready returns the condition of that name, or true if the node does not have it.
func (n *Node) Ready() bool {
	for _, c := range n.Node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return true
}

// Initialized reports whether the node has ever been ready for pods. A node without the label
// karpenter.sh/initialized counts as initialized unless it has the label karpenter.sh/registered.
func (n *Node) Initialized() bool {
	switch n.Node.Labels["karpenter.sh/initialized"] {
	case "true":
		return true
	case "":
		return n.Node.Labels["karpenter.sh/registered"] != "true"
	}
	return false
}
