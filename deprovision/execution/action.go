package execution

import "github.com/joinery-sdk/joinery/deprovision/plan"

// Kind says what an [Action] does.
type Kind string

// The kinds, and the facts that report their results. A node may be drained without an earlier
// Cordon, because a command that waits for nothing drains at once.
const (
	Cordon   Kind = "cordon"    // keep new pods off the node until it is drained; no fact reports it
	Buy      Kind = "buy"       // buy the node: Ready, or Failed
	Drain    Kind = "drain"     // cordon the node, then evict its pods: Empty, or Failed
	GiveBack Kind = "give-back" // give the machine back, whatever runs there: Gone
	Uncordon Kind = "uncordon"  // accept pods on the node again, because it stays: Open
)

// Action is one step for the caller. It is repeated until an event reports its result. Cordon is
// repeated until the node is to be drained, or is to accept pods again. So every action must be
// idempotent.
type Action struct {
	Kind Kind
	// Command is the index of the action's command.
	Command int
	Node    string
	// New is the node to buy, which must only be read. It is nil for other actions.
	New *plan.NewNode
}

// Fact is what an [Event] reports.
type Fact string

// The facts.
const (
	Ready  Fact = "ready"  // a bought node has joined and accepts pods
	Empty  Fact = "empty"  // no pod is left that has to be evicted
	Gone   Fact = "gone"   // the machine has been given back, or has died; report a death at any time
	Open   Fact = "open"   // the node accepts pods again
	Failed Fact = "failed" // the node could not be bought or drained, or a node that pods go to has died
)

// known reports whether the fact is one of the constants.
func (f Fact) known() bool {
	switch f {
	case Ready, Empty, Gone, Open, Failed:
		return true
	}
	return false
}

// Event reports something that has happened to a node.
type Event struct {
	Fact Fact
	Node string
	// Why is the reason of a failure, for people.
	Why string
}

// Status is the progress of a command.
type Status string

// The statuses. Done and all later ones are final. A node that died before the command ended counts
// as given back.
const (
	Waiting   Status = "waiting"   // waits for earlier commands
	Buying    Status = "buying"    // its new nodes are not ready yet; with TerminateFirst, its node is gone already
	Draining  Status = "draining"  // its nodes are being emptied and given back
	Reverting Status = "reverting" // what it bought is being given back
	Done      Status = "done"      // all its nodes are given back
	Partial   Status = "partial"   // some of its nodes are given back and others stay; or all are given back, but a new node could not be bought
	Aborted   Status = "aborted"   // none of its nodes is given back; new nodes that are ready stay, because pods may run there
	Reverted  Status = "reverted"  // it failed, and what it bought was given back
	Skipped   Status = "skipped"   // an earlier command failed, or a node that pods go to died, so the plan is no longer right
)

// Final reports whether the status never changes again.
func (s Status) Final() bool {
	return s == Done || s == Partial || s == Aborted || s == Reverted || s == Skipped
}
