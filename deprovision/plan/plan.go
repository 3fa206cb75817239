// Package plan decides which nodes of a cluster go, when they go, and where their pods go.
//
// [Make] asks a [Simulator] where pods would go. It returns commands and one [Verdict] for every
// node. Each command is right once the commands before it have been carried out. All changes are
// represented in the same way, whether they give back nodes that must go (interrupted, expired,
// broken, drifted), empty nodes, a set of nodes or a single node. The same test decides for each of
// them whether it becomes a command.
//
// Some pods move without a command, such as pending pods and pods of nodes that are leaving. The
// simulator has to deal with them: its answers must be right whenever these pods move. The
// simulator also deals with preferences of pods (preferred affinities, spreads with
// ScheduleAnyway): no plan fails because of a preference.
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// ErrNoSimulator says that the simulator is nil.
var ErrNoSimulator = errors.New("deprovision: the simulator is nil")

// UnknownMethodError says that [Options.Methods] names a method that does not exist.
type UnknownMethodError struct{ Method eligibility.Method }

// Error returns a sentence with the method.
func (e *UnknownMethodError) Error() string {
	return fmt.Sprintf("deprovision: there is no method %q", e.Method)
}

// Options are the caller's choices. nil means defaults.
type Options struct {
	// Methods are the methods to use; their order does not matter. nil means all.
	Methods []eligibility.Method
	// Ranker orders candidates for consolidation; nil is [deprovision.PriceRanker].
	Ranker deprovision.Ranker
	// Objective is what consolidation maximizes.
	Objective Objective
	// MaxEvictions limits how many pods consolidation moves; 0 means no limit. Pods that move
	// because of interruption, expiration, repair or drift do not count. [Frontier] shows what a
	// limit costs.
	MaxEvictions int
	// MinSavings is the smallest saving per hour that each consolidation must have.
	MinSavings deprovision.Price
	// SpotToSpot allows cheaper spot nodes to replace spot nodes. A new spot node must then have at
	// least SpotFlexibility types to choose from, because the cheapest type alone is likely to be
	// interrupted next. A SpotFlexibility of 0 means 15. Without SpotToSpot, consolidation of spot
	// nodes alone buys no spot node, nor an on-demand node where its pool allows spot nodes, because
	// the next plan would replace that by a spot node. Nodes that must go may be replaced by spot
	// nodes in any case.
	SpotToSpot      bool
	SpotFlexibility int
	// Rules are additional rules of eligibility.
	Rules eligibility.Rules
	// ZoneBudgets limit how many nodes of each zone may leave at once, across all pools, in
	// addition to the budgets of the pools. They have the same form as the budgets of pools. nil
	// limits nothing.
	ZoneBudgets []nodepool.Budget
	// DriftByZone replaces drifted nodes zone by zone: first in the zone where some are leaving
	// already, otherwise in the zone where a node drifted first. The next zone follows when no
	// drifted node of the current zone can go.
	DriftByZone bool
	// TerminateFirst are the methods that may give a node back before its successor is bought, see
	// [Command.TerminateFirst]: [eligibility.Unhealthy] and [eligibility.Drift]; others have no
	// effect. nil means Unhealthy alone. An empty list means no method, as Karpenter does by
	// default (its gates are TerminateFirstRepair and TerminateFirstDrift).
	//
	// The pods of a broken node lose nothing by waiting. The pods of a drifted node run until it
	// goes, and the freed capacity could be lost to others, so Drift is used only on request.
	TerminateFirst []eligibility.Method
	// LaunchTime is how long a new node takes to start. If an interruption leaves less time, its
	// command does not wait for new nodes (see [Command.AtOnce]). 0 means a minute, which is less
	// than the two minutes of notice that clouds give for spot machines.
	LaunchTime time.Duration
}

// defaults returns the options with defaults filled in.
func (o *Options) defaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Ranker == nil {
		out.Ranker = deprovision.PriceRanker{}
	}
	out.Objective = out.Objective.defaults()
	if out.TerminateFirst == nil {
		out.TerminateFirst = []eligibility.Method{eligibility.Unhealthy}
	}
	out.SpotFlexibility = cmp.Or(out.SpotFlexibility, 15)
	out.LaunchTime = cmp.Or(out.LaunchTime, time.Minute)
	return out
}

// check reports the context if it is nil, and every option that is negative but must not be.
func (o *Options) check(ctx context.Context) error {
	var errs []error
	if ctx == nil {
		errs = append(errs, errors.New("deprovision: the context is nil; pass context.Background() for none"))
	}
	if o == nil {
		return errors.Join(errs...)
	}
	for _, m := range o.Methods {
		if !slices.Contains(eligibility.Methods(), m) {
			errs = append(errs, &UnknownMethodError{m})
		}
	}
	for _, option := range []struct {
		name     string
		negative bool
		value    any
	}{
		{"MaxEvictions", o.MaxEvictions < 0, o.MaxEvictions},
		{"MinSavings", o.MinSavings < 0, o.MinSavings},
		{"SpotFlexibility", o.SpotFlexibility < 0, o.SpotFlexibility},
		{"LaunchTime", o.LaunchTime < 0, o.LaunchTime},
		{"Objective.Horizon", o.Objective.Horizon < 0, o.Objective.Horizon},
		{"Objective.Balanced", o.Objective.Balanced < 0, o.Objective.Balanced},
		{"Rules.MinimumAge", o.Rules.MinimumAge < 0, o.Rules.MinimumAge},
	} {
		if option.negative {
			errs = append(errs, fmt.Errorf("deprovision: Options.%s is %v: want 0 or more", option.name, option.value))
		}
	}
	return errors.Join(errs...)
}

// Kind says whether a command buys nodes.
type Kind string

// The kinds.
const (
	Delete  Kind = "delete"
	Replace Kind = "replace"
)

// Command is one change: buy the new nodes, move the pods, give the nodes back. With TerminateFirst
// the node is given back before the new node is bought.
type Command struct {
	Method eligibility.Method
	Kind   Kind
	// Nodes are the nodes that go, in the order of their names.
	Nodes []deprovision.Candidate
	// Waves are the names of the nodes that leave together. A wave starts when the one before it
	// has left. A command has waves if the budgets allow fewer nodes at once than it gives back. A
	// percentage counts the nodes that are left when a wave begins, without bought ones. The caller
	// may let a later wave wait longer. nil means that all nodes leave together.
	Waves [][]string
	// NewNodes are the nodes to buy. Later commands may place pods on them.
	NewNodes []NewNode
	// Placements are the new places of all pods that move, in an order in which each can be bound
	// once all nodes of the command are gone. With Waves, the placements are grouped by wave. The
	// pods of a wave can be bound, in this order, once the nodes of that wave and of all earlier
	// waves are gone, while the nodes of later waves still run their own pods and accept no others.
	// If all waves leave together, the order may be wrong.
	Placements []Placement
	// Stranded are the pods that have no other place and end with their node, which goes in any
	// case. Their controllers, if they have any, recreate them.
	Stranded []*corev1.Pod
	// Groups are the names of the groups that fall below their minimum, sorted. All pods of such a
	// group move in this command. Only a command whose nodes go in any case may tear a group.
	Groups []string
	// SavingsPerHour is the price of Nodes minus that of NewNodes; unknown prices count as 0. It
	// may be negative if the nodes have to go in any case.
	SavingsPerHour deprovision.Price
	// Disruption is the sum of the disruptions of Nodes, see [deprovision.Candidate.Disruption].
	Disruption float64
	// AtOnce says not to wait for the new nodes, because the cloud takes the old node first.
	AtOnce bool
	// TerminateFirst says that the node goes before its successor in NewNodes can be bought,
	// because buying the successor takes what the node itself uses, such as its slot of a full
	// reservation. So the node is drained and given back first, and the successor is bought once
	// the machine is gone. The pods of the node wait meanwhile. If the purchase fails, the pods are
	// pending like any others.
	TerminateFirst bool
	// Why is the reason, as one sentence.
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

// Outcome is what happens to a node.
type Outcome string

// The outcomes.
const (
	Chosen      Outcome = "chosen"        // a command gives it back
	Blocked     Outcome = "blocked"       // it has blockers, see By
	WouldNotFit Outcome = "would-not-fit" // its pods have no other place, even if nodes are bought
	NoSaving    Outcome = "no-saving"     // no cheaper node holds its pods
	Outranked   Outcome = "outranked"     // its disruption costs more than it saves
	OverBudget  Outcome = "budget"        // the budgets of its pool or zone, or MaxEvictions, allow no more
	NotAsked    Outcome = "not-asked"     // no method applies, or the plan ended before a command for it
)

// Verdict says why a node goes or stays.
type Verdict struct {
	Node    string
	Outcome Outcome
	// Method is the method that chose the node or came closest to choosing it. It is empty if none
	// applies.
	Method eligibility.Method
	// Detail is one sentence of explanation.
	Detail string
	// By are the blockers of a blocked node.
	By []eligibility.Blocker
	// Disruption is the disruption of emptying the node. PricePerHour is its price, or 0 if it is
	// unknown.
	Disruption   float64
	PricePerHour deprovision.Price
	// BestPricePerHour is the price of the cheapest replacement found. BoundPerHour is a lower
	// bound for any replacement. Both are 0 if no replacement was looked for.
	BestPricePerHour, BoundPerHour deprovision.Price
	// Notes are questions about the node that could not be answered, such as whether it has
	// drifted.
	Notes []string
	// Earned is the saving of the best change found, over the horizon. Cost is the price of its
	// disruption. Both are 0 if no change was found.
	Earned, Cost deprovision.Price
}

// Result is a plan.
type Result struct {
	// Commands are to be carried out in order.
	Commands []Command
	// Verdicts has one verdict for each node of the cluster, sorted by name.
	Verdicts []Verdict
	// PricePerHour is the price of all nodes before the plan; unknown prices are left out.
	// PricePerHourAfter is the same after all commands. Evictions is the number of different pods
	// that move.
	PricePerHour, PricePerHourAfter deprovision.Price
	Evictions                       int
	// Questions is the number of questions to the simulator. Avoided is the number of questions
	// that bounds made unnecessary.
	Questions, Avoided int
	// After is the cluster after all commands.
	After Simulator
}
