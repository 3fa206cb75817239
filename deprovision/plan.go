// Package deprovision decides which nodes to give back: empty ones, nodes past their age, nodes that would not be bought again, and
// nodes that cost more than their pods need. It is a function of a snapshot and a moment, and changes nothing itself.
//
// [Rank] lists the nodes in the order in which they should go, with the price of each, the disruption of emptying it, the most that
// giving it back can save, and its blockers. It needs only the snapshot.
//
// [Plan] asks a [Simulator] where pods would go. It returns commands, each of which is right after those before it, and one [Verdict]
// for every node. Package eligibility decides which nodes may go, package eviction what pods allow, package budget what pools allow,
// package drift which nodes have drifted, and package drain how a node is emptied. Package execution carries commands out.
//
// Pods that move without a command, such as pending ones and those of nodes that leave, are up to the simulator: its answers must be
// right whenever they move. So are preferences of pods (preferred affinities, spreads with ScheduleAnyway): no plan fails because of
// them.
package deprovision

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Cluster is a cluster at one moment. It is plain data and is only read.
type Cluster struct {
	// Nodes are all nodes, those of no pool included.
	Nodes []eligibility.Node
	// Pools are at least those that nodes point to.
	Pools []nodepool.NodePool
	// PodDisruptionBudgets are those of all namespaces.
	PodDisruptionBudgets []*policyv1.PodDisruptionBudget
	// Groups are pods that run only together.
	Groups []eviction.Group
	// Interruptions are the machines that the cloud takes back.
	Interruptions []Interruption
	// Now is the moment to plan for.
	Now time.Time
}

// Interruption is a node whose machine the cloud takes back.
type Interruption struct {
	Node string
	// Deadline is when it goes; the zero time means at any moment.
	Deadline time.Time
	// Force says that the machine does not answer, so that it cannot be drained.
	Force bool
	// Why is the message of the cloud.
	Why string
}

// The errors of [Plan] and [Cluster.Validate].
var (
	// ErrNoSimulator says that the simulator is nil.
	ErrNoSimulator = errors.New("deprovision: the simulator is nil")
	// ErrNoTime says that Now is not set, as in the zero Cluster, so that ages and budgets would be wrong.
	ErrNoTime = errors.New("deprovision: the cluster has no time (Cluster.Now)")
	// ErrNoNode says that an element of Nodes has no Node.
	ErrNoNode = errors.New("deprovision: a node of the cluster is nil")
)

// MissingPoolError says that the pool of a node is not among those of the cluster, so that its budgets are unknown.
type MissingPoolError struct{ Node, Pool string }

func (e *MissingPoolError) Error() string {
	return fmt.Sprintf("deprovision: node %s is of pool %q, which is not in Cluster.Pools", e.Node, e.Pool)
}

// DuplicateNodeError says that two nodes of the cluster have one name.
type DuplicateNodeError struct{ Node string }

func (e *DuplicateNodeError) Error() string {
	return fmt.Sprintf("deprovision: two nodes of the cluster have the name %s", e.Node)
}

// UnknownMethodError says that [Options.Methods] names a method that there is not.
type UnknownMethodError struct{ Method eligibility.Method }

func (e *UnknownMethodError) Error() string {
	return fmt.Sprintf("deprovision: there is no method %q", e.Method)
}

// Validate returns the first of [ErrNoTime], [ErrNoNode], [*DuplicateNodeError] and [*MissingPoolError] that applies, or nil. A cluster
// without nodes is valid.
func (c *Cluster) Validate() error {
	if c.Now.IsZero() {
		return ErrNoTime
	}
	known := make(map[string]bool, len(c.Pools))
	for i := range c.Pools {
		known[c.Pools[i].Name] = true
	}
	names := make(map[string]bool, len(c.Nodes))
	for i := range c.Nodes {
		switch n := &c.Nodes[i]; {
		case n.Node == nil:
			return ErrNoNode
		case names[n.Name()]:
			return &DuplicateNodeError{n.Name()}
		case n.Pool != nil && !known[n.Pool.Name]:
			return &MissingPoolError{n.Name(), n.Pool.Name}
		}
		names[c.Nodes[i].Name()] = true
	}
	return nil
}

// Options are the choices of the caller. nil means defaults.
type Options struct {
	// Methods are the methods to use; their order does not matter. nil means all.
	Methods []eligibility.Method
	// Ranker orders candidates for consolidation; nil is [PriceRanker].
	Ranker Ranker
	// Objective is what consolidation maximizes.
	Objective Objective
	// MaxEvictions bounds how many pods consolidation moves; 0 means no bound. Pods that forced methods move do not count. [Frontier] shows what
	// a bound costs.
	MaxEvictions int
	// MinSavings is the least saving an hour of each consolidation.
	MinSavings Price
	// SpotToSpot allows cheaper spot nodes to replace spot nodes. A new spot node must then have SpotFlexibility types to choose
	// from, because the cheapest one alone is likely to be interrupted next; 0 means 15.
	SpotToSpot      bool
	SpotFlexibility int
	// Rules are further rules of eligibility.
	Rules eligibility.Rules
	// LaunchTime is how long a new node takes. Interruptions with less notice do not wait for it. 0 means a minute, less than the two
	// minutes of notice that clouds give of spot machines.
	LaunchTime time.Duration
}

// defaults are the options with defaults filled in.
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

// Kind is whether a command buys nodes.
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
	Nodes []Candidate
	// Waves are the names of the nodes that leave together, one wave after the other has gone, where budgets allow fewer nodes at once
	// than the command gives back. Whoever carries the command out may let a later wave wait longer. nil means that all leave together.
	Waves    [][]string
	NewNodes []NewNode
	// Placements are the new places of all pods that move, in an order in which each can be bound.
	Placements []Placement
	// Stranded are pods that have no other place and end with a node that goes in any case. Their controllers make them again.
	Stranded []*corev1.Pod
	// Groups are the names of the groups that fall below their minimum, sorted: all of their pods move in this command, except where the nodes go
	// in any case.
	Groups []string
	// SavingsPerHour may be negative if the node has to go in any case.
	SavingsPerHour Price
	Disruption     float64
	// AtOnce says not to wait for the new nodes, because the cloud takes the old one first.
	AtOnce bool
	// Why is the reason, one sentence.
	Why string
}

// Pods returns the pods that move.
func (c *Command) Pods() []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range c.Placements {
		out = append(out, p.Pod)
	}
	return out
}

// Outcome is what happens to a node, in one word.
type Outcome string

// The outcomes.
const (
	Chosen      Outcome = "chosen"        // a command gives it back
	Blocked     Outcome = "blocked"       // it has blockers, see By
	WouldNotFit Outcome = "would-not-fit" // its pods have no other place, or none that is cheaper
	NoSaving    Outcome = "no-saving"     // no cheaper node holds its pods
	Outranked   Outcome = "outranked"     // its disruption costs more than it saves
	OverBudget  Outcome = "budget"        // the budgets of its pool allow no more
	NotAsked    Outcome = "not-asked"     // none of the methods applies, or the search ended earlier
)

// Verdict says why a node goes or stays.
type Verdict struct {
	Node    string
	Outcome Outcome
	// Method is the method that chose the node or came nearest to it; empty if none applies.
	Method eligibility.Method
	// Detail is one sentence for people.
	Detail string
	// By are the blockers of a blocked node.
	By []eligibility.Blocker
	// Disruption is that of emptying the node, and PricePerHour its price, 0 if it is unknown.
	Disruption   float64
	PricePerHour Price
	// BestPricePerHour is the price of the cheapest replacement found, and BoundPerHour a lower bound for any replacement; 0 if
	// none was looked for.
	BestPricePerHour, BoundPerHour Price
	// Notes are questions about the node that could not be decided, such as whether it has drifted.
	Notes []string
	// Earned is the saving of the best change found over the horizon, and Cost the price of its disruption; both are 0 if none was
	// found.
	Earned, Cost Price
}

// Result is a plan.
type Result struct {
	// Commands are to be carried out in order.
	Commands []Command
	// Verdicts has one verdict for each node of the cluster, by name.
	Verdicts []Verdict
	// PricePerHour is the price of all nodes before, unknown prices left out, and PricePerHourAfter the same with all commands carried
	// out. Evictions is the number of pods that move, each of them once.
	PricePerHour, PricePerHourAfter Price
	Evictions                       int
	// Questions is the number of questions to the simulator, and Avoided the number that bounds made unnecessary.
	Questions, Avoided int
	// After is the cluster with all commands carried out.
	After Simulator
}
