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
	ready                 // takes pods: bought and ready, or there from the beginning
	draining              // being emptied
	leaving               // being given back
	staying               // to be uncordoned
	kept                  // accepting pods again
	over                  // gone, dead, or never bought
)

// Run is the execution of a plan: an immutable value, safe for concurrent use. The zero value has
// nothing to do.
type Run struct {
	commands []plan.Command
	parallel int
	statuses []Status
	why      []string
	at       map[string]int // the command of each node that a command buys or gives back
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
	for i := range commands {
		for _, p := range commands[i].Placements {
			if _, ours := r.at[p.Node]; !ours {
				r.stages[p.Node] = ready
			}
		}
	}
	r.proceed()
	return r
}

// UnexpectedError says that an event does not match what the run has asked for.
type UnexpectedError struct {
	Event Event
	// Command is the event's command, or -1 if no command buys the node or gives it back.
	Command int
}

// Error says what was reported, why that cannot be, and what to do.
func (e *UnexpectedError) Error() string {
	switch {
	case !e.Event.Fact.known():
		return fmt.Sprintf("execution: there is no fact %q (of node %s); the facts are ready, empty, gone, open and failed", e.Event.Fact, e.Event.Node)
	case e.Command < 0:
		return fmt.Sprintf("execution: %s of node %s, which no command of the plan names: report nothing about it; if it has died, make a new plan", e.Event.Fact, e.Event.Node)
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
//
// A node may die at any time; report it as Gone. What that means depends on the node:
//
//   - A node that a command gives back needs no drain any more. Its pods are pending, so the
//     command still buys its new nodes, even if one of the purchases fails later.
//   - If a bought node or another node that pods go to dies, the commands whose pods go there are
//     reverted, or drain no further. Commands that have not begun are skipped.
//   - Other nodes are not part of the run. If one dies, make a new plan, because its pods may take
//     places that the commands need.
func (r Run) Tell(e Event) (Run, error) {
	i, ours := r.at[e.Node]
	from, named := r.stages[e.Node]
	if !ours {
		i = -1
	}
	takesPods := !ours || slices.ContainsFunc(r.commands[i].NewNodes, func(n plan.NewNode) bool { return n.Name == e.Node })
	unexpected := &UnexpectedError{e, i}
	if !e.Fact.known() || !ours && !named {
		return r, unexpected
	}
	to, failed := over, false
	switch {
	case takesPods && (e.Fact == Gone || e.Fact == Failed) && from > planned:
		failed = from < leaving
	case takesPods && e.Fact == Ready && from > planned:
		to = max(from, ready)
	case !takesPods && e.Fact == Gone:
	case !takesPods && e.Fact == Empty && from >= draining:
		to = max(from, leaving)
	case !takesPods && e.Fact == Open && from >= staying:
		to = max(from, kept)
	case !takesPods && e.Fact == Failed && (from == draining || from >= staying):
		to, failed = max(from, staying), from == draining
	default:
		return r, unexpected
	}
	if to == from {
		return r, nil // reported before, or the node stays for another reason
	}
	out := r
	out.statuses, out.why, out.stages = slices.Clone(r.statuses), slices.Clone(r.why), maps.Clone(r.stages)
	out.stages[e.Node] = to
	if failed {
		out.fail(i, e, takesPods)
	}
	out.proceed()
	return out, nil
}

// fail handles a node that could not be drained, or a node for pods that could not be bought or has
// died. In the second case, commands that put pods on the node are reverted if they still buy.
// Otherwise their nodes that are not empty yet stay, unless they go in any case. Commands that have
// not begun are skipped. i is the command of the node, or -1.
func (r *Run) fail(i int, e Event, takesPods bool) {
	why := fmt.Sprintf("node %s: %s", e.Node, cmp.Or(e.Why, string(e.Fact)))
	skip := why
	if i >= 0 {
		if r.why[i] == "" && !r.statuses[i].Final() {
			r.why[i] = why
		}
		skip = fmt.Sprintf("command %d failed: %s", i, cmp.Or(r.why[i], why))
	}
	for k, s := range r.statuses {
		if s == Waiting {
			r.statuses[k], r.why[k] = Skipped, skip
		}
	}
	for k := range r.commands {
		c := &r.commands[k]
		if !takesPods || k != i && !slices.ContainsFunc(c.Placements, func(p plan.Placement) bool { return p.Node == e.Node }) {
			continue
		}
		switch {
		case r.statuses[k] == Buying && !c.TerminateFirst: // after TerminateFirst, the pods wait like other pending pods
			r.revert(k, why)
		case r.statuses[k] == Draining && !c.AtOnce && c.Method != eligibility.Interruption && c.Method != eligibility.Expiration:
			r.keep(k, why)
		default: // nothing can be kept
		}
	}
}

// keep lets the nodes of a command stay that are not empty yet.
func (r *Run) keep(k int, why string) {
	for _, n := range r.commands[k].Nodes {
		if s := r.stages[n.Name]; s == draining || s == wanted {
			r.stages[n.Name], r.why[k] = staying, cmp.Or(r.why[k], why)
		}
	}
}

// revert gives back what a command has bought before it drained a node. If one of its nodes has
// died meanwhile, the bought nodes are needed for its pods, and only the other nodes stay.
func (r *Run) revert(k int, why string) {
	r.keep(k, why)
	c := &r.commands[k]
	if slices.ContainsFunc(c.Nodes, func(n deprovision.Candidate) bool { return r.stages[n.Name] == over }) {
		return
	}
	r.statuses[k] = Reverting
	for _, n := range c.NewNodes {
		if r.stages[n.Name] != over { // a node that is still starting must go too
			r.stages[n.Name] = leaving
		}
	}
}

// proceed advances commands whose nodes have come far enough, and begins others.
func (r *Run) proceed() {
	busy := 0
	for i := range r.commands {
		if r.statuses[i] != Waiting && r.advance(i) {
			busy++
		}
	}
	for i := 0; i < len(r.commands) && busy < r.parallel; i++ {
		if r.statuses[i] == Waiting && !r.needs(i) {
			r.begin(i)
			if r.advance(i) { // it ends at once if its nodes have died and it buys nothing
				busy++
			}
		}
	}
}

// advance takes a command that has begun as far as its nodes have come, and reports whether it
// still has something to do.
func (r *Run) advance(i int) bool {
	c := &r.commands[i]
	has := func(stages ...stage) bool {
		return slices.ContainsFunc(c.NewNodes, func(n plan.NewNode) bool { return slices.Contains(stages, r.stages[n.Name]) })
	}
	if r.statuses[i] == Buying {
		if has(wanted) {
			return true
		}
		if c.TerminateFirst {
			r.end(i)
			return false
		}
	}
	if r.statuses[i].Final() {
		return false
	}
	if r.statuses[i] != Reverting {
		r.drain(i) // the first or the next wave
	}
	if slices.ContainsFunc(c.Nodes, func(n deprovision.Candidate) bool { return r.stages[n.Name] < kept }) || has(wanted, leaving) {
		return true
	}
	switch {
	case r.statuses[i] == Reverting:
		r.statuses[i] = Reverted
	case c.TerminateFirst && len(c.NewNodes) > 0 && !r.stays(i):
		r.statuses[i] = Buying
		for _, n := range c.NewNodes {
			r.stages[n.Name] = wanted
		}
		return true
	default:
		r.end(i)
	}
	return false
}

// stays reports whether a node of the command has not gone.
func (r *Run) stays(i int) bool {
	return slices.ContainsFunc(r.commands[i].Nodes, func(n deprovision.Candidate) bool { return r.stages[n.Name] != over })
}

// end sets the final status of a command that is not reverted. After a failure, its nodes may be
// gone nevertheless: the machine of a node that could not be drained may die by itself.
func (r *Run) end(i int) {
	c := &r.commands[i]
	missing := slices.ContainsFunc(c.NewNodes, func(n plan.NewNode) bool { return r.stages[n.Name] != ready })
	switch {
	case !r.stays(i) && !missing:
		r.statuses[i], r.why[i] = Done, ""
	case slices.ContainsFunc(c.Nodes, func(n deprovision.Candidate) bool { return r.stages[n.Name] == over }):
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
		if r.stages[n.Name] != over { // it may have died before
			r.stages[n.Name] = wanted
		}
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
