package whatif

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Settled is this version as if it had just been read: nodes that went are forgotten, and the others are filled in the order
// that their free room gives now. It costs a copy of what is counted.
func (c *Cluster) Settled() *Cluster {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.settle()
	old := c.e
	e := &engine{
		problem: old.problem, aliases: old.aliases, dims: old.dims, classByRep: old.classByRep, podAt: old.podAt,
		classes: slices.Clone(old.classes), pods: slices.Clone(old.pods), nodeAt: map[string]int32{}, keys: old.keys, keyAt: old.keyAt,
		statics: slices.Clone(old.statics), staticAt: maps.Clone(old.staticAt), offers: old.offers, full: slices.Clone(old.full),
		offerAt: old.offerAt, problemClass: old.problemClass, taken: maps.Clone(old.taken), names: make([]int, len(old.names)), offerSigs: old.offerSigs,
		mentioned: old.mentioned, shelfAt: maps.Clone(old.shelfAt), blends: old.blends, pins: map[pinKey]*pin{}, fine: old.fine, daemons: old.daemons, groups: slices.Clone(old.groups), universes: slices.Clone(old.universes),
	}
	for _, v := range old.values {
		e.values = append(e.values, maps.Clone(v))
	}
	for _, l := range old.left {
		e.left = append(e.left, slices.Clone(l))
	}
	for i := range e.classes {
		e.classes[i].suits, e.classes[i].buys = slices.Clone(e.classes[i].suits), slices.Clone(e.classes[i].buys)
	}
	for i := range e.classes {
		if s := e.classes[i].soft; s != nil {
			own := *s
			own.met = slices.Clone(s.met)
			e.classes[i].soft = &own
		}
	}
	for i := range e.groups {
		g := &e.groups[i]
		g.counts, g.owners = g.counts.clone(), g.owners.clone()
	}
	for i := range e.universes {
		u := &e.universes[i]
		u.nodes, u.pass = u.nodes.clone(), slices.Clone(u.pass)
	}
	for _, s := range old.shelves {
		e.shelves = append(e.shelves, shelf{mixed: s.mixed, static: s.static, values: s.values})
	}
	for i := range old.nodes {
		if n := old.nodes[i]; n.alive {
			n.free, n.pods, n.ports = slices.Clone(n.free), slices.Clone(n.pods), slices.Clone(n.ports)
			n.closed = false
			e.nodes = append(e.nodes, n)
		}
	}
	slices.SortFunc(e.nodes, func(a, b node) int {
		return cmp.Or(cmp.Compare(e.room(&a), e.room(&b)), strings.Compare(a.name, b.name))
	})
	for i := range e.nodes {
		e.nodeAt[e.nodes[i].name] = int32(i)
		for _, p := range e.nodes[i].pods {
			e.pods[p].node = int32(i)
		}
	}
	e.total = make([]int64, e.dims)
	for i := range e.nodes {
		e.tally(&e.nodes[i], 1)
	}
	e.stock()
	out := &Cluster{e: e}
	e.at = out
	return out
}

func (t table) clone() table {
	return table{slices.Clone(t.dense), maps.Clone(t.sparse)}
}

// Room is what nodes have free, in all; what is below zero counts as none.
func (c *Cluster) Room(nodes []string) []int64 {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.settle()
	sum := make([]int64, c.e.dims)
	for _, name := range nodes {
		if i, ok := c.e.nodeAt[name]; ok && c.e.nodes[i].open() {
			for d, f := range c.e.nodes[i].free {
				sum[d] += max(0, f)
			}
		}
	}
	return sum
}
