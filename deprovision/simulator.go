package deprovision

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Simulator says what a cluster would become without some of its nodes. It stands for one state of the cluster and is immutable; an
// [Answer] gives the next state. A plan asks it many times, so a question should cost what it changes, not the cluster.
type Simulator interface {
	// Simulate answers the question, the same every time. An error, such as that of the context, ends the plan.
	Simulate(context.Context, Question) (Answer, error)
	// Bound returns a lower bound of the cost an hour of new nodes that hold the pods of a question together with all that other
	// nodes have free. Zero is always right; a higher bound saves questions.
	Bound(Question) Price
	// Choose returns, for each of the cases, which of the nodes to retain: the cheapest fractional choice of them and of new nodes
	// that holds all their pods. It is a hint, so only the quality of a plan depends on it; nil means that there is none.
	Choose(nodes []NodeChoice, cases int) [][]bool
}

// NodeChoice is a node that a plan may retain or give back.
type NodeChoice struct {
	Node string
	// Pods are those that move if the node goes.
	Pods []*corev1.Pod
	// Costs are the costs an hour of retaining it, by case: its own less what emptying it would cost.
	Costs []Price
}

// Question asks where pods would go if nodes went.
type Question struct {
	// Remove are the names of the nodes that go.
	Remove []string
	// Cordon are the names of nodes that stay, and take no pods from now on, in this answer and in those that follow it.
	Cordon []string
	// Pods are those that need a place. Other pods of the removed nodes end.
	Pods []*corev1.Pod
	// MaxNodes bounds how many nodes are bought; 0 means none.
	MaxNodes int
	// MaxCost is an exclusive upper bound of their total cost an hour; 0 means no bound.
	MaxCost Price
	// CapacityTypes are those that may be bought; nil means all.
	CapacityTypes []string
	// Thorough asks for more work to buy for less, because the change is likely to be made.
	Thorough bool
	// Moves, if it is not nil, maps each pod to its node, and Buy are the nodes to buy: the simulator only looks for a right order.
	// With Elsewhere a pod that its node refuses may go to another one, and indistinguishable pods may change places, so that the
	// pods of one node go to few others.
	Moves     map[*corev1.Pod]string
	Buy       []NewNode
	Elsewhere bool
	// Explain asks for [Answer.Why].
	Explain bool
}

// Answer is where pods would go. The zero value says that none has to move.
type Answer struct {
	// Placements are the places of all pods, in an order in which each can be bound.
	Placements []Placement
	// NewNodes are the nodes to buy.
	NewNodes []NewNode
	// Forgone is the price of preferences that the pods have where they are and lose by moving, which a change must save besides. 0 prices none.
	Forgone Price
	// Unplaced are pods without a place. If there are any, only Why means something besides: what keeps the first of them from every
	// node, if the question asks to explain.
	Unplaced []*corev1.Pod
	Why      string
	// After returns the cluster with the answer carried out. Rebased returns the same cluster as if it had just been read, so that a
	// plan which ends there finds nothing when it is made again. Both are nil if pods are unplaced.
	After, Rebased func() Simulator
}

// OK reports whether every pod has a place.
func (a *Answer) OK() bool { return len(a.Unplaced) == 0 }

// cost is the total cost of the new nodes, and price their total price.
func (a *Answer) cost() (sum Price) {
	for i := range a.NewNodes {
		sum += a.NewNodes[i].cost()
	}
	return sum
}

func (a *Answer) price() (sum Price) {
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
	// Name is a name that no node has. Later commands may place pods there.
	Name, Pool, InstanceType, Zone, CapacityType string
	// PricePerHour is its price. CostPerHour is its cost in the objective; 0 means the price.
	PricePerHour, CostPerHour Price
	Labels                    map[string]string
	Pods                      []*corev1.Pod
	// Daemons are the pods that DaemonSets will run there. They block later commands of the same plan like those of other nodes.
	Daemons []*corev1.Pod
	// Alternatives are other types that would hold the same pods in the same zone and still save money, cheapest first.
	Alternatives []Alternative
}

func (n *NewNode) cost() Price {
	if n.CostPerHour != 0 {
		return n.CostPerHour
	}
	return n.PricePerHour
}

// Alternative is another type for a node to buy.
type Alternative struct {
	InstanceType string
	PricePerHour Price
}
