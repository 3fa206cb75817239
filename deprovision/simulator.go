package deprovision

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Simulator says what would become of a cluster if nodes were given back. It stands for one state of the cluster and never
// changes; an [Answer] gives the next. Plans ask it many times, so that a question should cost what it changes, not the cluster.
type Simulator interface {
	// Simulate answers the question, the same every time. An error, as that of the context, ends the plan.
	Simulate(context.Context, Question) (Answer, error)
	// Bound returns a cost an hour below which nothing that is bought can hold the pods of a question, even if all the room
	// that other nodes have left could be used, however scattered it is. Zero is always right; what is higher saves questions.
	Bound(Question) Price
	// Choose says which of the nodes to keep so that they and new ones hold the pods of all of them for the least, everything
	// in fractions: an answer for each of the cases. It is a hint, on which nothing relies but how good a plan is; nil is one
	// that knows nothing.
	Choose(nodes []Keeping, cases int) [][]bool
}

// Keeping is a node that a plan could keep.
type Keeping struct {
	Node string
	// Pods are those that would move if it went.
	Pods []*corev1.Pod
	// Costs are what keeping it costs an hour, by case: that of the node less what emptying it would cost.
	Costs []Price
}

// Question asks what would become of pods if nodes went.
type Question struct {
	// Remove are the names of the nodes that go.
	Remove []string
	// Pods are those that then need a place; whatever else runs on the nodes goes with them.
	Pods []*corev1.Pod
	// MaxNodes is how many nodes may be bought for them, 0 for none.
	MaxNodes int
	// MaxCost is what these must cost less than together in an hour; 0 asks nothing.
	MaxCost Price
	// CapacityTypes are those that may be bought; nil is all.
	CapacityTypes []string
	// Thorough says that the change is likely to be made, so that more work is worth it to buy for less.
	Thorough bool
	// Moves, where it is not nil, says where each of the pods goes, and Buy what is bought: the simulator does that in whatever
	// order is right, and looks for nothing else. With Elsewhere a pod that its place does not take may go somewhere else, and
	// pods that nobody can tell apart may change places, so that those of one node stay together.
	Moves     map[*corev1.Pod]string
	Buy       []NewNode
	Elsewhere bool
	// Explain asks for [Answer.Why].
	Explain bool
}

// Answer is what would become of them. The zero value says that nothing has to move.
type Answer struct {
	// Placements say where each pod goes, in an order in which each can be bound.
	Placements []Placement
	// NewNodes are to be bought.
	NewNodes []NewNode
	// Left are pods that find no place; then the rest says nothing, and Why says what stands in the way of the
	// first, where the question asked to explain.
	Left []*corev1.Pod
	Why  string
	// After is the cluster with the answer carried out, and Fresh the same as if it had just been read, so that a plan that
	// ends there finds nothing when it is made again. Both are nil where Left is not empty.
	After, Fresh func() Simulator
}

// OK reports whether every pod finds a place.
func (a *Answer) OK() bool { return len(a.Left) == 0 }

// cost is what the new nodes count for, and price what they cost.
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

// Placement is a pod and the node that it goes to.
type Placement struct {
	Pod  *corev1.Pod
	Node string
}

// NewNode is a node to buy.
type NewNode struct {
	// Name is one that no node has; the pods of later commands may be placed there.
	Name, Pool, InstanceType, Zone, CapacityType string
	// PricePerHour is what it costs, and CostPerHour what that counts for where plans are compared; 0 means its price.
	PricePerHour, CostPerHour Price
	Labels                    map[string]string
	Pods                      []*corev1.Pod
	// Daemons are pods that will run there besides, as DaemonSets make them: where the plan goes on to give this node back,
	// they are asked like those of other nodes.
	Daemons []*corev1.Pod
	// Alternatives would hold the same pods in the same place and still save money, cheapest first.
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
