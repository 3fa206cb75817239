package execution

import "github.com/joinery-sdk/joinery/deprovision"

// Kind is what an [Action] does.
type Kind string

// The kinds.
const (
	Cordon   Kind = "cordon"    // keep new pods off the node
	Buy      Kind = "buy"       // buy the node
	Drain    Kind = "drain"     // evict its pods
	GiveBack Kind = "give-back" // give the machine back, whatever runs there
	Uncordon Kind = "uncordon"  // let pods onto the node again, because it stays
)

// Action is one step for the caller. It is listed until an event tells its result, so it must be idempotent.
type Action struct {
	Kind Kind
	// Command is the index of its command.
	Command int
	Node    string
	// New is the node to buy, only to be read; nil for other actions.
	New *deprovision.NewNode
}

// Fact is what happened in an [Event].
type Fact string

// The facts.
const (
	Ready  Fact = "ready"  // a node that was bought has joined, and takes pods
	Empty  Fact = "empty"  // no pod is left that has to be evicted
	Gone   Fact = "gone"   // the machine has been given back, or has died
	Open   Fact = "open"   // the node takes pods again
	Failed Fact = "failed" // the node could not be bought or drained, or what was bought has died
)

// Event is something that has happened to a node.
type Event struct {
	Fact Fact
	Node string
	// Why is the reason of a failure, for people.
	Why string
}

// Status is the progress of a command.
type Status string

// The statuses. Those from Done on are final.
const (
	Waiting   Status = "waiting"   // for commands before it
	Buying    Status = "buying"    // until its replacements are ready
	Draining  Status = "draining"  // until its nodes are empty and given back
	Reverting Status = "reverting" // until what it bought is given back again
	Done      Status = "done"      // all its nodes are given back
	Partial   Status = "partial"   // some of its nodes could not be drained and stay
	Reverted  Status = "reverted"  // it failed, and what it bought has been given back
	Skipped   Status = "skipped"   // a command before it failed, so that the plan is no longer right
)

// Final reports whether the status never changes again.
func (s Status) Final() bool { return s == Done || s == Partial || s == Reverted || s == Skipped }
