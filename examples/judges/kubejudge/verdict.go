package kubejudge

import (
	"fmt"
	"strings"
)

// Refusal is a bind that kube-scheduler does not accept.
type Refusal struct {
	Binding
	// Position is the index of the binding in the plan.
	Position int
	// Plugin is the name of the first plugin that refused, for example "PodTopologySpread". If no
	// single plugin excludes all nodes, but the PreFilter results of several do together, their
	// names are joined by "+". "SchedulerName" means that the pod belongs to another scheduler.
	Plugin string
	// Message is the message of the plugin.
	Message string
}

// String returns one line for people.
func (r Refusal) String() string {
	return fmt.Sprintf("#%d %s: %s: %s", r.Position, r.Binding, r.Plugin, r.Message)
}

// Verdict is what kube-scheduler says of a plan. The zero Verdict is that of an empty plan.
type Verdict struct {
	// Accepted are the binds that passed, in the order in which they did.
	Accepted []Binding
	// Refused are the binds that did not, in the order of the plan.
	Refused []Refusal
}

// Valid reports whether every bind was accepted.
func (v Verdict) Valid() bool { return len(v.Refused) == 0 }

// Share returns the part of the binds that was accepted, from 0 to 1, and 1 for an empty plan.
func (v Verdict) Share() float64 {
	total := len(v.Accepted) + len(v.Refused)
	if total == 0 {
		return 1
	}
	return float64(len(v.Accepted)) / float64(total)
}

// String returns a summary line followed by one line for each refusal.
func (v Verdict) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d binds accepted", len(v.Accepted), len(v.Accepted)+len(v.Refused))
	for _, r := range v.Refused {
		b.WriteString("\n" + r.String())
	}
	return b.String()
}
