package deprovision

import (
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

// Search is how consolidation looks for nodes.
type Search string

// The searches.
const (
	// SearchAll tries single nodes and sets of nodes of any make-up, for any number of new ones. It is the default. It makes the
	// plan of SearchKarpenter as well and goes on from there, so that it never saves less on the same cluster; and of plans
	// within a fiftieth of the price it takes the one with the fewest evictions. A search that MaxQuestions bounds is not
	// compared.
	SearchAll Search = "all"
	// SearchKarpenter tries what the reference does: prefixes of the ranking, then one node at a time, for one new node at
	// most. Other than the reference it asks about no single node again before all others have had their turn.
	SearchKarpenter Search = "karpenter"
)

// Options are the choices that a cluster does not make. nil means defaults.
type Options struct {
	// Methods are those to use, in the fixed order of package eligibility whatever their order here; nil is all.
	Methods []eligibility.Method
	// Ranker orders candidates for consolidation; nil is [PriceRanker].
	Ranker Ranker
	// Policy decides what is worth it; nil is [AnySaving].
	Policy Policy
	// Search is how consolidation looks; empty is [SearchAll].
	Search Search
	// MinSavings is what a consolidation must save at least, in dollars an hour, whatever the policy says.
	MinSavings float64
	// SpotToSpot allows spot nodes to be replaced by cheaper spot nodes. One node alone then needs SpotFlexibility types to
	// choose from, so that it does not end on the one that is taken back next; 0 means 15.
	SpotToSpot      bool
	SpotFlexibility int
	// Rules are further rules of eligibility.
	Rules eligibility.Rules
	// LaunchTime is how long a new node takes: interruptions that leave less do not wait for it; 0 means two minutes.
	LaunchTime time.Duration
	// Passes bounds how often all candidates are gone through; 0 means until nothing more is found.
	Passes int
	// MaxQuestions ends the search after so many questions; 0 means never. Cursor says where to go on.
	MaxQuestions int
	// Cursor is that of an earlier plan that ended early: candidates that it looked at come last.
	Cursor Cursor
}

// Cursor remembers which candidates a search has looked at, so that one that ends early goes on with the others. The zero
// value has looked at none.
type Cursor struct {
	// Seen are names of nodes, sorted.
	Seen []string
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
	SavingsPerHour float64
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
	Outranked   Outcome = "outranked"     // the policy finds it not worth it
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
	Disruption, PricePerHour float64
	// BestPricePerHour is the price of the cheapest replacement that was found, and BoundPerHour one below which nothing can
	// hold its pods; 0 where neither was looked for.
	BestPricePerHour, BoundPerHour float64
	// Notes are what could not be told about the node, such as whether it has drifted.
	Notes []string
	// Judgement is what the policy said of the best move; the zero value where it was not asked.
	Judgement Judgement
}

// Result is a plan.
type Result struct {
	// Commands are to be carried out in order.
	Commands []Command
	// Verdicts are one for each node of the cluster, by name.
	Verdicts []Verdict
	// PricePerHour is what the nodes cost before, those whose price is not known left out, and PricePerHourAfter what they
	// cost with all commands carried out. Evictions is the number of pods that move, each as often as it does.
	PricePerHour, PricePerHourAfter float64
	Evictions                       int
	// Questions is how many were put to the simulator, and Avoided how many were not because of bounds.
	Questions, Avoided int
	// Cursor is where to go on if the search ended early; the zero value if it did not.
	Cursor Cursor
	// After is the simulator of the cluster with all commands carried out.
	After Simulator
}
