package deprovision

import (
	"slices"
	"time"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
)

// Touches are the names of all nodes that the command has to do with: those that go, those that it buys, and those that take pods. A
// name may come twice.
func (c *Command) Touches() []string {
	var out []string
	for _, n := range c.Nodes {
		out = append(out, n.Name)
	}
	for i := range c.NewNodes {
		out = append(out, c.NewNodes[i].Name)
	}
	for _, p := range c.Placements {
		out = append(out, p.Node)
	}
	return out
}

// Sightings remember since when each node has been to go in every plan, so that a saving is taken only if it is still there after a
// while: pods come and go, and a node that is empty at this moment may be wanted at the next. The zero value has seen no plan. It is
// immutable.
type Sightings struct {
	since map[sighting]time.Time
}

type sighting struct {
	method eligibility.Method
	node   string
}

// Look adds the commands of a plan that was made now, and returns what it has seen then and the commands to begin now, in their
// order: those that save, once all their nodes have been to go for so long, and at once those that have to be. One that touches a node
// of an earlier command builds on that one and is left to a later plan. Next is when the first command that waits is due, the zero
// time if none waits.
func (s Sightings) Look(commands []Command, now time.Time, wait time.Duration) (seen Sightings, ready []Command, next time.Time) {
	seen.since = map[sighting]time.Time{}
	touched := map[string]bool{}
	for i := range commands {
		c := &commands[i]
		var newest time.Time
		for _, n := range c.Nodes {
			key := sighting{c.Method, n.Name}
			since, known := s.since[key]
			if !known {
				since = now
			}
			seen.since[key] = since
			if since.After(newest) {
				newest = since
			}
		}
		names := c.Touches()
		free := !slices.ContainsFunc(names, func(n string) bool { return touched[n] })
		for _, n := range names {
			touched[n] = true
		}
		due := newest.Add(wait)
		if c.Saves() && due.After(now) {
			if next.IsZero() || due.Before(next) {
				next = due
			}
			continue
		}
		if free {
			ready = append(ready, *c)
		}
	}
	return seen, ready, next
}

// Saves reports whether the command is for what it saves only, so that nothing is lost if it waits.
func (c *Command) Saves() bool {
	return c.Method == eligibility.Emptiness || c.Method == eligibility.Consolidation
}
