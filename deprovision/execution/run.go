package execution

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/plan"
)

// stage is how far a node has come.
type stage int

const (
	planned  stage = iota // not begun, or to be bought once a node that goes first is gone
	wanted                // to be bought, or to be cordoned until its replacements are ready
	ready                 // bought and ready
	draining              // being emptied
	leaving               // being given back
	staying               // to be uncordoned
	kept                  // accepting pods again
	over                  // gone, or never bought
)

// Run is the execution of a plan: an immutable value, safe for concurrent use. The zero value has
// nothing to do.
type Run struct {
	commands []plan.Command
	parallel int
	statuses []Status
	why      []string
	at       map[string]int // the command of each node
	stages   map[string]stage
}

// New begins to carry out the commands in their order. At most parallel commands run at a time;
// less than 1 means one. If pods of a command go to a node that an earlier command buys, the later
// command waits for all purchases of the earlier one. The nodes of a later wave are cordoned until
// the wave begins. The node of a command with [plan.Command.TerminateFirst] is drained and given
// back as soon as the command begins, and its successor is bought when the machine is gone.
// Commands are only read, and must not change.
func New(commands []plan.Command, parallel int) Run {
	r := Run{commands: commands, parallel: max(1, parallel), statuses: make([]Status, len(commands)), why: make([]string, len(commands)), at: map[string]int{}, stages: map[string]stage{}}
	for i := range commands {
		r.statuses[i] = Waiting
		for _, n := range commands[i].NewNodes {
			r.at[n.Name] = i
		}
		for _, n := range commands[i].Nodes {
			r.at[n.Name] = i
		}
	}
	r.proceed()
	return r
}

// UnexpectedError says that an event does not match what the run has asked for.
type UnexpectedError struct {
	Event Event
	// Command is the event's command, or -1 if no command names the node.
	Command int
}

// Error says what was reported, and which command did not request it.
func (e *UnexpectedError) Error() string {
	if e.Command < 0 {
		return fmt.Sprintf("execution: %s of node %s, which no command of the plan names", e.Event.Fact, e.Event.Node)
	}
	return fmt.Sprintf("execution: %s of node %s, which command %d has not requested; report events in the order in which they happen", e.Event.Fact, e.Event.Node, e.Command)
}

// Status returns the progress of a command, and why it failed if it did. Both are empty for a
// command that the plan does not have.
func (r Run) Status(command int) (Status, string) {
	if command < 0 || command >= len(r.statuses) {
		return "", ""
	}
	return r.statuses[command], r.why[command]
}

// Finished reports whether nothing is left to do.
func (r Run) Finished() bool {
	return !slices.ContainsFunc(r.statuses, func(s Status) bool { return !s.Final() })
}

// Actions returns what to do now, ordered by command. Within a command, the actions on its new
// nodes come first. The result stays the same until an event is reported, so a caller that was
// stopped can continue. It costs O(nodes of the commands in progress).
func (r Run) Actions() []Action {
	var out []Action
	for i := range r.commands {
		if s := r.statuses[i]; s == Waiting || s.Final() {
			continue
		}
		c := &r.commands[i]
		for k := range c.NewNodes {
			n := &c.NewNodes[k]
			switch r.stages[n.Name] {
			case wanted:
				out = append(out, Action{Buy, i, n.Name, n})
			case leaving:
				out = append(out, Action{GiveBack, i, n.Name, nil})
			default: // nothing to do
			}
		}
		for _, n := range c.Nodes {
			switch r.stages[n.Name] {
			case wanted:
				out = append(out, Action{Cordon, i, n.Name, nil})
			case draining:
				out = append(out, Action{Drain, i, n.Name, nil})
			case leaving:
				out = append(out, Action{GiveBack, i, n.Name, nil})
			case staying:
				out = append(out, Action{Uncordon, i, n.Name, nil})
			default: // nothing to do
			}
		}
	}
	return out
}

// Tell returns the run after the event. Reporting the same event again changes nothing. If the
// error is not nil, it is an [*UnexpectedError], and the run is unchanged.
func (r Run) Tell(e Event) (Run, error) {
	i, ok := r.at[e.Node]
	if !ok {
		return r, &UnexpectedError{e, -1}
	}
	isNew := slices.ContainsFunc(r.commands[i].NewNodes, func(n plan.NewNode) bool { return n.Name == e.Node })
	from, to := r.stages[e.Node], over
	switch {
	case e.Fact == Ready && isNew && from == wanted:
		to = ready
	case e.Fact == Empty && !isNew && from == draining:
		to = leaving
	case e.Fact == Gone && !isNew && from == wanted && r.statuses[i] == Draining: // before its wave
	case e.Fact == Gone && !isNew && from >= draining && from != kept, e.Fact == Gone && isNew && from == leaving: // a machine may go by itself
	case e.Fact == Open && from == staying:
		to = kept
	case e.Fact == Failed && !isNew && from == draining:
		to = staying
	case e.Fact == Failed && isNew && (from == wanted || from == leaving): // what was never bought need not be given back
	case (e.Fact == Failed || e.Fact == Gone) && isNew && (from == ready || e.Fact == Gone && from == wanted): // it died after it was bought
	case e.Fact == Ready && isNew && from > wanted, e.Fact == Empty && !isNew && from >= leaving, e.Fact == Failed && !isNew && from == staying, from >= kept:
		return r, nil // reported before, or the node stays for another reason
	default:
		return r, &UnexpectedError{e, i}
	}
	out := r
	out.statuses, out.why, out.stages = slices.Clone(r.statuses), slices.Clone(r.why), maps.Clone(r.stages)
	out.stages[e.Node] = to
	if e.Fact == Failed || e.Fact == Gone && isNew && from != leaving {
		out.fail(i, e, isNew)
	}
	out.proceed()
	return out, nil
}

// fail reverts the command as far as possible. What was bought is given back if no node has been
// drained yet; after that, pods may run there. If a bought node dies while nodes are drained onto
// it, by this command or others, the nodes that are not empty yet stay, unless they go in any case.
// Commands that have not begun are skipped.
func (r *Run) fail(i int, e Event, isNew bool) {
	why := fmt.Sprintf("node %s: %s", e.Node, cmp.Or(e.Why, string(e.Fact)))
	if r.why[i] == "" && !r.statuses[i].Final() {
		r.why[i] = why
	}
	for k, s := range r.statuses {
		if s == Waiting {
			r.statuses[k], r.why[k] = Skipped, fmt.Sprintf("command %d failed: %s", i, cmp.Or(r.why[i], why))
		}
	}
	for k := range r.commands {
		c := &r.commands[k]
		onto := k == i || slices.ContainsFunc(c.Placements, func(p plan.Placement) bool { return p.Node == e.Node })
		if !isNew || !onto || r.statuses[k] != Draining || c.AtOnce || c.Method == eligibility.Interruption || c.Method == eligibility.Expiration {
			continue
		}
		for _, n := range c.Nodes {
			if s := r.stages[n.Name]; s == draining || s == wanted {
				r.stages[n.Name], r.why[k] = staying, cmp.Or(r.why[k], why)
			}
		}
	}
	if !isNew || r.statuses[i] != Buying || r.commands[i].TerminateFirst { // its pods wait like other pending pods
		return
	}
	r.statuses[i] = Reverting
	for _, n := range r.commands[i].NewNodes {
		if n.Name != e.Node && r.stages[n.Name] != over { // a node that is still starting must go too
			r.stages[n.Name] = leaving
		}
	}
	for _, n := range r.commands[i].Nodes {
		r.stages[n.Name] = staying
	}
}

// proceed advances commands whose nodes have come far enough, and begins others.
func (r *Run) proceed() {
	for i := range r.commands {
		c := &r.commands[i]
		switch r.statuses[i] {
		case Buying:
			switch {
			case slices.ContainsFunc(c.NewNodes, func(n plan.NewNode) bool { return r.stages[n.Name] == wanted }):
			case c.TerminateFirst:
				r.end(i)
			default:
				r.drain(i)
			}
		case Draining, Reverting:
			if r.statuses[i] == Draining {
				r.drain(i) // the next wave
			}
			if slices.ContainsFunc(c.Nodes, func(n deprovision.Candidate) bool { return r.stages[n.Name] < kept }) ||
				slices.ContainsFunc(c.NewNodes, func(n plan.NewNode) bool { s := r.stages[n.Name]; return s == wanted || s == leaving }) {
				continue
			}
			switch {
			case r.statuses[i] == Reverting:
				r.statuses[i] = Reverted
			case c.TerminateFirst && r.why[i] == "" && len(c.NewNodes) > 0:
				r.statuses[i] = Buying
				for _, n := range c.NewNodes {
					r.stages[n.Name] = wanted
				}
			default:
				r.end(i)
			}
		default: // waiting or finished
		}
	}
	busy := 0
	for i := range r.commands {
		if s := r.statuses[i]; s != Waiting && !s.Final() {
			busy++
		}
	}
	for i := 0; i < len(r.commands) && busy < r.parallel; i++ {
		if r.statuses[i] == Waiting && !r.needs(i) {
			r.begin(i)
			busy++
		}
	}
}

// end sets the final status of a command that is not reverted. After a failure, its nodes may be
// gone nevertheless: the machine of a node that could not be drained may die by itself.
func (r *Run) end(i int) {
	c := &r.commands[i]
	gone := func(n deprovision.Candidate) bool { return r.stages[n.Name] == over }
	stays := slices.ContainsFunc(c.Nodes, func(n deprovision.Candidate) bool { return !gone(n) })
	missing := slices.ContainsFunc(c.NewNodes, func(n plan.NewNode) bool { return r.stages[n.Name] != ready })
	switch {
	case !stays && !missing:
		r.statuses[i], r.why[i] = Done, ""
	case slices.ContainsFunc(c.Nodes, gone):
		r.statuses[i] = Partial
	default:
		r.statuses[i] = Aborted
	}
}

// needs reports whether pods of the command go to a node that an earlier command still has to buy, or
// would give back if another of its purchases failed.
func (r *Run) needs(i int) bool {
	return slices.ContainsFunc(r.commands[i].Placements, func(p plan.Placement) bool {
		k, ok := r.at[p.Node]
		return ok && k < i && (r.stages[p.Node] < ready || r.statuses[k] == Buying && !r.commands[k].TerminateFirst)
	})
}

func (r *Run) begin(i int) {
	c := &r.commands[i]
	r.statuses[i] = Buying
	for _, n := range c.NewNodes {
		if !c.TerminateFirst {
			r.stages[n.Name] = wanted
		}
	}
	for _, n := range c.Nodes {
		r.stages[n.Name] = wanted
	}
	if len(c.NewNodes) == 0 || c.AtOnce || c.TerminateFirst {
		r.drain(i)
	}
}

// drain drains the first wave of the command that is not finished. Later waves stay cordoned.
func (r *Run) drain(i int) {
	r.statuses[i] = Draining
	c := &r.commands[i]
	names := make([]string, 0, len(c.Nodes))
	for _, n := range c.Nodes {
		names = append(names, n.Name)
	}
	waves := c.Waves
	if len(waves) == 0 {
		waves = [][]string{names}
	}
	for _, wave := range waves {
		for _, name := range wave {
			if r.stages[name] == wanted {
				r.stages[name] = draining
			}
		}
		if slices.ContainsFunc(wave, func(name string) bool { return r.stages[name] < kept }) {
			return
		}
	}
}
