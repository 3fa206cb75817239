package deprovision

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Cluster is what there is at one moment. It is plain data and is only read.
type Cluster struct {
	// Nodes are all nodes, those of others too.
	Nodes []eligibility.Node
	// Pools are those that nodes point to.
	Pools []nodepool.NodePool
	// PodDisruptionBudgets are those of all namespaces.
	PodDisruptionBudgets []*policyv1.PodDisruptionBudget
	// Interruptions are what the cloud has said about machines that it takes back.
	Interruptions []Interruption
	// Now is the moment for which to plan.
	Now time.Time
}

// Interruption is a node that goes whatever we do.
type Interruption struct {
	Node string
	// Deadline is when it goes; the zero time means at any moment.
	Deadline time.Time
	// Force is set where the machine does not answer, so that draining it is no use.
	Force bool
	// Why is what the cloud said.
	Why string
}

// The errors of [Plan] and [Cluster.Validate].
var (
	// ErrNoSimulator says that there is nobody to ask where pods would go.
	ErrNoSimulator = errors.New("deprovision: the simulator is nil")
	// ErrNoTime says that Now is not set, as in the zero Cluster: ages and budgets would be wrong.
	ErrNoTime = errors.New("deprovision: the cluster has no time (Cluster.Now)")
	// ErrNoNode says that an element of Nodes has no Node.
	ErrNoNode = errors.New("deprovision: a node of the cluster is nil")
)

// MissingPoolError says that a node points to a pool that is not among those of the cluster, so that its budgets are not known.
type MissingPoolError struct{ Node, Pool string }

func (e *MissingPoolError) Error() string {
	return fmt.Sprintf("deprovision: node %s is of pool %q, which is not in Cluster.Pools", e.Node, e.Pool)
}

// Validate returns [ErrNoTime], [ErrNoNode] or a [*MissingPoolError], the first that applies, and nil if none does. A cluster
// without nodes is valid.
func (c *Cluster) Validate() error {
	if c.Now.IsZero() {
		return ErrNoTime
	}
	known := make(map[string]bool, len(c.Pools))
	for i := range c.Pools {
		known[c.Pools[i].Name] = true
	}
	for i := range c.Nodes {
		switch n := &c.Nodes[i]; {
		case n.Node == nil:
			return ErrNoNode
		case n.Pool != nil && !known[n.Pool.Name]:
			return &MissingPoolError{n.Name(), n.Pool.Name}
		}
	}
	return nil
}

// Options are the choices that a cluster does not make. nil means defaults.
type Options struct {
	// Methods are those to use, in the fixed order of package eligibility whatever their order here; nil is all.
	Methods []eligibility.Method
	// Ranker orders candidates for consolidation; nil is [PriceRanker].
	Ranker Ranker
	// Objective says what is worth it.
	Objective Objective
	// MaxEvictions ends consolidation before more pods than that move; 0 means no bound. [Result.Frontier] shows what that costs.
	MaxEvictions int
	// MinSavings is what each consolidation must save an hour at least, whatever the objective says.
	MinSavings Price
	// SpotToSpot allows spot nodes to be replaced by cheaper spot nodes. One node alone then needs SpotFlexibility types to
	// choose from, so that it does not end on the one that is taken back next; 0 means 15.
	SpotToSpot      bool
	SpotFlexibility int
	// Rules are further rules of eligibility.
	Rules eligibility.Rules
	// LaunchTime is how long a new node takes: interruptions that leave less do not wait for it; 0 means a minute, which is less than
	// the two minutes of notice that clouds give of spot machines.
	LaunchTime time.Duration
}

// defaults are the options with what is not set filled in.
func (o *Options) defaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Ranker == nil {
		out.Ranker = PriceRanker{}
	}
	out.Objective = out.Objective.defaults()
	out.SpotFlexibility = cmp.Or(out.SpotFlexibility, 15)
	out.LaunchTime = cmp.Or(out.LaunchTime, time.Minute)
	return out
}

// Kind says what a command does.
type Kind string

// The kinds.
const (
	Delete  Kind = "delete"
	Replace Kind = "replace"
)

// Command is one change: buy the new nodes, move the pods, give the nodes back.
type Command struct {
	Method eligibility.Method
	Kind   Kind
	// Nodes go, in the order of their names.
	Nodes    []Candidate
	NewNodes []NewNode
	// Placements say where every pod goes, new nodes included.
	Placements []Placement
	// SavingsPerHour may be negative where a node has to be replaced whatever that costs.
	SavingsPerHour Price
	Disruption     float64
	// AtOnce says not to wait for the new nodes: the cloud takes the old one before they can be there.
	AtOnce bool
	// Why says what gave rise to the command.
	Why string
}

// Pods are those that move.
func (c *Command) Pods() []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range c.Placements {
		out = append(out, p.Pod)
	}
	return out
}

// Outcome is what becomes of a node, in one word.
type Outcome string

// The outcomes.
const (
	Chosen      Outcome = "chosen"        // a command takes it
	Blocked     Outcome = "blocked"       // something forbids it, see By
	WouldNotFit Outcome = "would-not-fit" // its pods find no place, or none that is cheaper
	NoSaving    Outcome = "no-saving"     // nothing that holds its pods is cheaper
	Outranked   Outcome = "outranked"     // what it would save is not worth the disruption
	OverBudget  Outcome = "budget"        // the pool's budgets allow no more
	NotAsked    Outcome = "not-asked"     // no method that was asked for applies, or the search ended before it
)

// Verdict is why a node goes or stays.
type Verdict struct {
	Node    string
	Outcome Outcome
	// Method is the one that took it or came nearest; empty where none applies.
	Method eligibility.Method
	// Detail is one sentence for people.
	Detail string
	// By is what stands in the way, where the node is blocked.
	By []eligibility.Blocker
	// Disruption is what emptying it costs, PricePerHour what it costs itself, 0 where that is not known.
	Disruption   float64
	PricePerHour Price
	// BestPricePerHour is the price of the cheapest replacement that was found, and BoundPerHour one below which nothing can
	// hold its pods; 0 where neither was looked for.
	BestPricePerHour, BoundPerHour Price
	// Notes are what could not be told about the node, such as whether it has drifted.
	Notes []string
	// Earned is what the best change that was found would earn over the horizon, and Cost what its disruption costs;
	// both are 0 where none was found.
	Earned, Cost Price
}

// Result is a plan.
type Result struct {
	// Commands are to be carried out in order.
	Commands []Command
	// Verdicts are one for each node of the cluster, by name.
	Verdicts []Verdict
	// PricePerHour is what the nodes cost before, those whose price is not known left out, and PricePerHourAfter what they
	// cost with all commands carried out. Evictions is the number of pods that move, each of them once.
	PricePerHour, PricePerHourAfter Price
	Evictions                       int
	// Questions is how many were put to the simulator, and Avoided how many were not because of bounds.
	Questions, Avoided int
	// Frontier are changes that were looked at from the start and what the first commands come to, from few evictions to many, each
	// with what it would save; none saves less than one with fewer evictions. The whole plan comes last, unless a beginning of it
	// saves as much, as where a node that has to go is replaced by a dearer one after that. It is empty if nothing is saved.
	Frontier []Point
	// After is the simulator of the cluster with all commands carried out.
	After Simulator
}

// Point is a change that could be made.
type Point struct {
	// SavingsPerHour is what it saves for so many Evictions, giving back so many Nodes.
	SavingsPerHour   Price
	Evictions, Nodes int
}
