package whatif

import "slices"

// Cluster is one version of a cluster: the one that was compiled, or what an [Answer] makes of it. It is immutable and safe
// for concurrent use. Versions share one store that stands at one of them at a time, so that going on from the version asked
// last costs nothing, and going back costs what lies between.
type Cluster struct {
	e      *engine
	parent *Cluster
	depth  int
	ops    []op
}

// settle brings the store to this version.
func (c *Cluster) settle() {
	e := c.e
	if e.at == c {
		return
	}
	var forward []*Cluster
	to := c
	for e.at.depth > to.depth {
		e.leave()
	}
	for to.depth > e.at.depth {
		forward, to = append(forward, to), to.parent
	}
	for e.at != to {
		e.leave()
		forward, to = append(forward, to), to.parent
	}
	for _, v := range slices.Backward(forward) {
		for _, o := range v.ops {
			e.apply(o)
		}
		e.at = v
	}
}

// leave goes back to the version before.
func (e *engine) leave() {
	for _, o := range slices.Backward(e.at.ops) {
		e.undo(o)
	}
	e.at = e.at.parent
}

// Size is the number of nodes that this version has, those that take no pods included.
func (c *Cluster) Size() int {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.settle()
	n := 0
	for i := range c.e.nodes {
		if c.e.nodes[i].alive {
			n++
		}
	}
	return n
}

// Free is the room that this version has left on nodes that take pods, in all, by the resources of [Cluster.Resources]; what
// is below zero on a node counts as none.
func (c *Cluster) Free() []int64 {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.settle()
	return slices.Clone(c.e.total)
}

// Close is this version with these nodes closed: they stay, but take no pods, for they are to go next. Nodes that were closed
// before are open again.
func (c *Cluster) Close(nodes []string) *Cluster {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.settle()
	e := c.e
	shut := map[int32]bool{}
	for _, name := range nodes {
		if i, ok := e.nodeAt[name]; ok {
			shut[i] = true
		}
	}
	out := &Cluster{e: e, parent: c, depth: c.depth + 1}
	for i := range e.nodes {
		switch n := &e.nodes[i]; {
		case shut[int32(i)] && !n.closed:
			out.ops = append(out.ops, op{kind: opClose, node: int32(i)})
		case n.closed && !shut[int32(i)]:
			out.ops = append(out.ops, op{kind: opOpen, node: int32(i)})
		}
	}
	return out
}
