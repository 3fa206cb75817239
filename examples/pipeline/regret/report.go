package regret

import (
	"time"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
)

// Amount is money over time: billionths of a dollar an hour, times seconds. Sums are exact, so the
// parts of a report add up to the last digit.
type Amount int64

// Dollars returns the amount in dollars, for display.
func (a Amount) Dollars() float64 { return float64(a) / 3600e9 }

// over returns the amount that a price adds up to over a number of seconds.
func over(p deprovision.Price, seconds int64) Amount { return Amount(int64(p) * seconds) }

// Bill is what the same time cost, or must cost.
type Bill struct {
	// Paid is the actual bill, for the nodes whose price is known.
	Paid Amount
	// Policy is the bill of the policy on the same arrivals, starting with the cluster of the first
	// observation.
	Policy Amount
	// Present and Bound are lower bounds. Present is for any policy that knows only the present and
	// buys at once for waiting pods. Bound is for any policy, even one that knows the future. Such
	// a policy may let the same pods wait as the history did.
	Present, Bound Amount
}

func (b *Bill) add(x Bill) {
	b.Paid, b.Policy, b.Present, b.Bound = b.Paid+x.Paid, b.Policy+x.Policy, b.Present+x.Present, b.Bound+x.Bound
}

// Hour is the bill of a clock hour. The first and the last one may be parts of an hour.
type Hour struct {
	From    time.Time
	Seconds int64
	Bill
}

// Kind says what was decided.
type Kind string

// The kinds of decisions.
const (
	// Bought is a purchase in the time of the history that was dearer than necessary when it was
	// made.
	Bought Kind = "bought"
	// Kept is a node whose pods had a cheaper place later. For a node that is older than the
	// history, the beginning of the history counts as later, too.
	Kept Kind = "kept"
	// Empty is a node that was paid for while no pod ran on it.
	Empty Kind = "empty"
	// Together is a node for whose pods no cheaper place was found while all other nodes stayed as
	// they were.
	Together Kind = "together"
	// Protected is a node that was kept or empty, and that a do-not-disrupt annotation forbids to give
	// back.
	Protected Kind = "protected"
	// Waited are pods that waited in the history while they ran under the policy. Spare are nodes
	// without pods that only the policy has.
	Waited Kind = "waited"
	Spare  Kind = "spare"
)

// Decision is a part of the difference between the bills: a machine, from when it was first seen
// until it was gone. A later machine of the same name is another decision.
type Decision struct {
	// Kind is empty for decisions that were not examined.
	Kind Kind
	// Node is empty for Waited and Spare, whose amounts belong to no node of the history.
	Node, InstanceType, Zone, CapacityType string
	From, To                               time.Time
	// Bill is the cost of the node, the cost of its pods under the policy, and the lower bounds of
	// that cost. The bills of all decisions add up to that of the report. Pods share costs by what
	// they take of a node.
	Bill
	// Idle is the part of Paid while no pod ran on the node.
	Idle Amount
	// Used is the mean fraction of the node that its pods took, in their dominant resource.
	Used float64
	// Better is what would have been better at the moment At, and Saves is the saving in dollars an
	// hour. It was verified by planning again, with all other nodes and pods as they were. It is
	// empty if nothing better was found.
	Better string
	At     time.Time
	Saves  float64
	// Keeps is what forbids Better if the kind is Protected.
	Keeps string
}

// Regret returns how much more the decision cost than the policy.
func (d *Decision) Regret() Amount { return d.Paid - d.Policy }

// Report is what a history could have cost. It is immutable.
type Report struct {
	From, To time.Time
	// Bill is the sum of Hours, and of Decisions.
	Bill
	Hours []Hour
	// Decisions are sorted by their regret, then by node.
	Decisions []Decision
	// Evictions and Launches are those of the policy. MostWaiting is the largest number of its pods
	// without a place.
	Evictions, Launches, MostWaiting int
	// NoPods says that the history has no pods, as with Karpenter's log alone. Then only Paid is
	// known.
	NoPods bool
	// Unpriced are the nodes whose price is unknown. They and the pods on them are left out of all
	// bills.
	Unpriced []string
	// Ours is the cluster as the policy would have had it.
	Ours *history.History
	// Notes say what the report leaves out, and where the model does not agree with the history.
	Notes []string
}
