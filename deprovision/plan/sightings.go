package plan

import (
	"slices"
	"time"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
)

// Touches returns the names of the nodes that the command gives back or buys and of the nodes that
// take its pods. A name may occur twice.
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

// Sightings remembers, for each node and method, since when every plan has given back the node by
// that method. With it a caller takes a saving only if it lasts, because a node that is empty now
// may be needed in a minute. The zero value has seen no plan. Sightings is immutable.
type Sightings struct {
	since map[sighting]time.Time
}

type sighting struct {
	method eligibility.Method
	node   string
}

// Look adds the commands of a plan made now. It returns the new sightings and the commands to begin
// now, in their order. A command that saves is ready once all its nodes have been seen for the
// duration wait; other commands are ready at once. A command that touches a node of an earlier
// command is left to a later plan. next is when the first waiting command is due, or the zero time
// if none waits.
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

// Saves reports whether the only purpose of the command is its saving, so that it may wait.
func (c *Command) Saves() bool { return saves(c.Method) }
