package plan

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
)

// Simulator says what a cluster would look like without some of its nodes. It represents one state
// of the cluster and is immutable; an [Answer] gives the next state. A plan asks many questions, so
// the cost of a question should depend on the change, not on the size of the cluster.
type Simulator interface {
	// Simulate answers the question, with the same answer every time. An error, such as that of the
	// context, ends the plan.
	Simulate(context.Context, Question) (Answer, error)
}

// CostBound is an optional ability of a [Simulator]. Without it, a plan asks more questions.
type CostBound interface {
	// Bound returns a lower bound of the cost per hour of new nodes for the pods of the question.
	// The pods may be divided between these new nodes and all free capacity of the nodes that stay.
	// Zero is always right; a higher bound saves questions.
	Bound(Question) deprovision.Price
}

// RetentionHint is an optional ability of a [Simulator]. Without it, a plan tries the first nodes
// of the ranking.
type RetentionHint interface {
	// Choose says which of the nodes to retain. It computes the cheapest fractional mix of these
	// nodes and of new nodes that holds all pods of these nodes, and rounds it. It does so for
	// several cases, which differ in the costs of the nodes: [NodeChoice.Costs] has one cost for
	// each case. result[k][i] says whether to retain nodes[i] in case k. Only the quality of a plan
	// depends on the result. nil means that there is no hint.
	Choose(nodes []NodeChoice, cases int) [][]bool
}

// NodeChoice is a node that a plan may retain or give back.
type NodeChoice struct {
	Node string
	// Pods are the pods that move if the node goes.
	Pods []*corev1.Pod
	// Costs has one entry for each case of [RetentionHint]. Costs[k] is what it costs per hour to
	// retain the node in case k: its own cost minus the cost of emptying it. It may be negative.
	Costs []deprovision.Price
}

// Question asks where pods would go if some nodes went.
type Question struct {
	// Remove are the names of the nodes that go.
	Remove []string
	// Cordon are the names of nodes that stay but accept no pods from now on, in this answer and in
	// those that follow it.
	Cordon []string
	// Pods are the pods that need a place. Other pods of the removed nodes are deleted.
	Pods []*corev1.Pod
	// MaxNodes limits how many nodes are bought; 0 means none.
	MaxNodes int
	// MaxCost is an exclusive upper bound of the total cost per hour of the nodes bought; 0 means
	// no bound.
	MaxCost deprovision.Price
	// Replacements are names of static pools. A pool is listed once for each node that it must buy,
	// even if no pod goes there. These nodes are there before pods move, and count neither against
	// MaxNodes nor MaxCost. If a pool cannot buy so many, the answer has fewer of its nodes.
	Replacements []string
	// Freed says that the removed nodes are gone before anything is bought. So what they use may be
	// bought again: their slots of reservations and counted offerings, their share of the limits of
	// pools, of quotas and of the nodes of a static pool. The answer must not use what another
	// leaving node frees, or what pending pods would take. A plan sets Freed only if the same
	// question without it has no answer. See [Answer.Freed].
	Freed bool
	// Thorough asks the simulator to work longer for an answer, or for a cheaper one, because the
	// change is likely to be made.
	Thorough bool
	// Moves, if not nil, maps each pod to its node, and Buy lists the nodes to buy. The simulator
	// then only looks for a right order. With Elsewhere, a pod that its node refuses may go to
	// another node. Indistinguishable pods may then also swap places, so that the pods of one node
	// go to few others.
	Moves     map[*corev1.Pod]string
	Buy       []NewNode
	Elsewhere bool
	// LeaveDomains says that spreads count only zones and other domains with nodes, as
	// kube-scheduler does. Otherwise they also count those in which a node for the pod is for sale,
	// so that giving back nodes does not undo what a plan for pending pods did. Pods that move
	// without a command may lose the places that the simulator keeps for them. A plan sets
	// LeaveDomains for nodes that must go, if their pods have no place otherwise.
	LeaveDomains bool
	// Explain asks for [Answer.Why].
	Explain bool
}

// Answer is where pods would go. The zero value says that no pod has to move.
type Answer struct {
	// Placements are the places of all pods, in an order in which they can be bound one after the
	// other.
	Placements []Placement
	// NewNodes are the nodes to buy.
	NewNodes []NewNode
	// Filled has the nodes that earlier answers bought and that get pods now, by name: the
	// alternatives that hold all their pods.
	Filled map[string][]Alternative
	// Freed is for questions with Freed set. It lists what the new nodes use and could not have
	// used while the removed nodes were there. It is sorted. Each text says why nothing could be
	// bought before, such as "reservation cr-1 is full". If the answers for two nodes have a text
	// in common, both nodes need the same slot, so only one of them goes at a time. If Freed is
	// empty, the plan assumes that the simulator does not support Question.Freed, and gives back no
	// node before its successor is bought.
	Freed []string
	// Forgone is the price of the preferences that the pods lose by moving. A change must save this
	// amount in addition. 0 means that preferences have no price.
	Forgone deprovision.Price
	// Unplaced are the pods without a place. If there are any, the only other meaningful fields are
	// Inflexible, Why and Unsold. If the question has Explain set, Why says what keeps the first of
	// them from every node, and Unsold what keeps the pools from buying a node for it; empty if they
	// could.
	Unplaced    []*corev1.Pod
	Why, Unsold string
	// Inflexible, if pods are unplaced, says that new nodes would hold them, but not meet the
	// minValues of their pool.
	Inflexible string
	// After returns the cluster after the answer has been carried out. Rebased returns the same
	// cluster as if it had just been read. The next round of a plan starts from Rebased, as a new
	// plan of the resulting cluster would. So that new plan usually finds nothing more to do;
	// [Make] lists the exceptions. After and Rebased are nil if pods are unplaced.
	After, Rebased func() Simulator
}

// OK reports whether every pod has a place.
func (a *Answer) OK() bool { return len(a.Unplaced) == 0 }

// cost returns the total cost of the new nodes.
func (a *Answer) cost() (sum deprovision.Price) {
	for i := range a.NewNodes {
		sum += a.NewNodes[i].cost()
	}
	return sum
}

func (a *Answer) price() (sum deprovision.Price) {
	for i := range a.NewNodes {
		sum += a.NewNodes[i].PricePerHour
	}
	return sum
}

// Placement is a pod and its node.
type Placement struct {
	Pod  *corev1.Pod
	Node string
}

// NewNode is a node to buy.
type NewNode struct {
	// Name is a name that no other node has. Later commands may place pods on it.
	Name, Pool, InstanceType, Zone, CapacityType string
	// PricePerHour is the node's price. CostPerHour is its cost in the objective; 0 means the
	// price.
	PricePerHour, CostPerHour deprovision.Price
	// Labels are the labels that the node will have. A plan only passes them on.
	Labels map[string]string
	// Pods are the pods of the answer that are placed on the node.
	Pods []*corev1.Pod
	// Daemons are the pods that DaemonSets will run on the node. If a later command of the same
	// plan would give the node back, they are checked for blockers (annotations, disruption
	// budgets) like the daemons of any other node.
	Daemons []*corev1.Pod
	// Alternatives are other types that would hold the same pods in the same zone and still save
	// money, cheapest first. In a plan they also hold the pods that later commands place there.
	Alternatives []Alternative
}

func (n *NewNode) cost() deprovision.Price {
	if n.CostPerHour != 0 {
		return n.CostPerHour
	}
	return n.PricePerHour
}

// Alternative is another type for a node to buy.
type Alternative struct {
	InstanceType string
	PricePerHour deprovision.Price
}
