package execution

import "github.com/joinery-sdk/joinery/deprovision"

// Kind is what an [Action] does.
type Kind string

// The kinds.
const (
	Cordon   Kind = "cordon"    // keep new pods off the node
	Buy      Kind = "buy"       // buy the node
	Drain    Kind = "drain"     // evict its pods
	GiveBack Kind = "give-back" // give the machine back, pods or not
	Uncordon Kind = "uncordon"  // let pods onto the node again, for it stays
)

// Action is something to do. An action is listed until an event says what came of it, so it must be possible to do it twice.
type Action struct {
	Kind Kind
	// Command is the position of the command that it is for.
	Command int
	Node    string
	// New is the node to buy; nil for other actions. It is only to be read.
	New *deprovision.NewNode
}

// Fact is what an [Event] tells.
type Fact string

// The facts.
const (
	Ready  Fact = "ready"  // a node that was bought has joined, and takes pods
	Empty  Fact = "empty"  // nothing that has to be evicted runs on the node any more
	Gone   Fact = "gone"   // the machine has been given back
	Open   Fact = "open"   // the node takes pods again
	Failed Fact = "failed" // the node could not be bought, or not be drained
)

// Event is something that has happened to a node.
type Event struct {
	Fact Fact
	Node string
	// Why is for people: what went wrong.
	Why string
}

// Status is how far a command has come.
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

// Final reports whether nothing more will become of the command.
func (s Status) Final() bool { return s == Done || s == Partial || s == Reverted || s == Skipped }
