package eligibility

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Node is a node with everything that bears on giving it back. It is plain data and is only read. The zero value is of no
// use: Node must be set.
type Node struct {
	Node *corev1.Node
	// Pods are all that are bound to it, daemons and finished ones too.
	Pods []*corev1.Pod
	// Pool is the pool that it was bought for, nil where it is none of ours.
	Pool *nodepool.NodePool
	// InstanceType, Zone and CapacityType are what was bought, and PricePerHour what it costs now. Priced is false where the
	// market does not know, and then it is not consolidated.
	InstanceType, Zone, CapacityType string
	PricePerHour                     Price
	Priced                           bool
	// CostPerHour is what the node counts for where plans are compared, as with a part added for its licence; 0 means its
	// price.
	CostPerHour Price
	// Claim is what the controller's record of the node adds; the zero value where there is none.
	Claim Claim
	// Nominated is set while pending pods are about to go there.
	Nominated bool
	// Drifted are the reasons why it is not what would be bought now (package drift), and DriftedSince when that was seen,
	// the zero time where nobody said.
	Drifted      []string
	DriftedSince time.Time
	// Undecided is what could not be told about its drift, and why; it is only passed on.
	Undecided []string
}

// Claim is what a Machine or NodeClaim says beyond its node. The zero value says nothing.
type Claim struct {
	Created, Initialized, LastPodEvent  time.Time
	Deleting                            bool
	ExpireAfter, TerminationGracePeriod *time.Duration
	// Consolidatable is the condition of that name: nil where the claim does not have it.
	Consolidatable *bool
}

// Name is that of the node.
func (n *Node) Name() string { return n.Node.Name }

// PoolName is that of the pool, empty for nodes that are not ours.
func (n *Node) PoolName() string {
	if n.Pool == nil {
		return ""
	}
	return n.Pool.Name
}

// Reschedulable are the pods that need a new place if the node goes, in the order of Pods.
func (n *Node) Reschedulable() []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range n.Pods {
		if eviction.Reschedulable(p) {
			out = append(out, p)
		}
	}
	return out
}

// Empty reports whether nothing has to move if the node goes.
func (n *Node) Empty() bool {
	return !slices.ContainsFunc(n.Pods, eviction.Reschedulable)
}

// Leaving reports whether the node is on its way out already.
func (n *Node) Leaving() bool {
	if n.Node.DeletionTimestamp != nil || n.Claim.Deleting {
		return true
	}
	return slices.ContainsFunc(n.Node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == "karpenter.sh/disrupted" || t.Key == "karpenter.sh/disruption"
	})
}

// Ready reports whether the node says that it works; one without that condition is taken to.
func (n *Node) Ready() bool {
	for _, c := range n.Node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return true
}

// Initialized reports whether the node has once been ready for pods. Nodes without the label that says so count as
// initialized unless they are known to have only registered.
func (n *Node) Initialized() bool {
	switch n.Node.Labels["karpenter.sh/initialized"] {
	case "true":
		return true
	case "":
		return n.Node.Labels["karpenter.sh/registered"] != "true"
	}
	return false
}
