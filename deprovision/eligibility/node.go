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

// Node is a node with all that matters for giving it back. It is plain data and is only read. Node must be set.
type Node struct {
	Node *corev1.Node
	// Pods are all pods bound to it, daemons and finished ones included.
	Pods []*corev1.Pod
	// Pool is the pool that bought it, nil if there is none.
	Pool *nodepool.NodePool
	// PricePerHour is the current price of this type in this zone and capacity type. Priced is false if it is unknown; then the node
	// is not consolidated.
	InstanceType, Zone, CapacityType string
	PricePerHour                     Price
	Priced                           bool
	// CostPerHour is the cost in the objective, for example with a licence added to the price; 0 means the price.
	CostPerHour Price
	// Claim is the NodeClaim or Machine of the node; the zero value if there is none.
	Claim Claim
	// Nominated says that pods are about to go there.
	Nominated bool
	// Drifted are the ways in which it has drifted (package drift), and DriftedSince when that was seen, the zero time if unknown.
	Drifted      []string
	DriftedSince time.Time
	// Undecided are questions about its drift that could not be decided; they are only passed on.
	Undecided []string
}

// FromNode is the node with the type, zone and capacity type of its labels. The pods are those bound to it. The price is for an hour, and
// 0 if it is unknown. Without a pool, as on a cluster of no provisioner, the node belongs to a pool without a name that consolidates at
// any time; for a plan it must be among the pools of the cluster.
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

// Claim is what a NodeClaim or Machine says beyond its node. The zero value says nothing.
type Claim struct {
	Created, Initialized, LastPodEvent time.Time
	Deleting                           bool
	// Rebooting is the condition of that name: Karpenter reboots the node to repair it.
	Rebooting                           bool
	ExpireAfter, TerminationGracePeriod *time.Duration
	// Decides says that nil ExpireAfter is never and nil TerminationGracePeriod no bound, whatever the pool has by now: a NodeClaim of
	// karpenter.sh/v1 has copies of both. Otherwise the pool has what is nil here.
	Decides bool
	// Consolidatable is the condition of that name, nil if the claim does not have it.
	Consolidatable *bool
}

// Name is that of the node.
func (n *Node) Name() string { return n.Node.Name }

// PoolName is that of the pool, empty for a node of no pool.
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

// Leaving reports whether the node is being deleted or is marked for it.
func (n *Node) Leaving() bool {
	if n.Node.DeletionTimestamp != nil || n.Claim.Deleting {
		return true
	}
	return slices.ContainsFunc(n.Node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == "karpenter.sh/disrupted" || t.Key == "karpenter.sh/disruption"
	})
}

// Rebooting reports whether the node is being rebooted as a repair: by its claim, or by the taint that it has until it is back.
func (n *Node) Rebooting() bool {
	return n.Claim.Rebooting || slices.ContainsFunc(n.Node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "karpenter.sh/rebooting" })
}

// Ready is the condition of that name, true if the node does not have it.
func (n *Node) Ready() bool {
	for _, c := range n.Node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return true
}

// Initialized reports whether the node has been ready for pods once. Nodes without the label karpenter.sh/initialized count as
// initialized unless they have the label karpenter.sh/registered.
func (n *Node) Initialized() bool {
	switch n.Node.Labels["karpenter.sh/initialized"] {
	case "true":
		return true
	case "":
		return n.Node.Labels["karpenter.sh/registered"] != "true"
	}
	return false
}
