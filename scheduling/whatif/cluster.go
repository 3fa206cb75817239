// Package whatif answers many questions about one cluster: if these nodes went, where would their pods go, and what would
// have to be bought?
//
// A cluster is compiled once into integers: classes of pods, free room by node, sets of nodes that suit a class, and the
// counts behind every constraint between pods. A question then costs what it changes (the pods that move and the nodes
// that are looked at for them), not the cluster: pods are put on named nodes one at a time under the same rules by which
// kube-scheduler filters, so that an answer can be carried out in the order of its placements. Nothing about a domain has
// to be assigned beforehand, for every node here has all its labels.
//
// Soft constraints (preferred affinities, spreads with ScheduleAnyway) keep no pod from a node. Of nodes that take a pod, the
// one is chosen that meets most of them by weight, and of equals the fullest; for what is to be bought they are not asked.
package whatif

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Cluster is one version of a cluster: the one that was compiled, or what an [Answer] makes of it. It is immutable and safe
// for concurrent use. Versions share one store that stands at one of them at a time, so that going on from the version asked
// last costs nothing, and going back costs what lies between.
type Cluster struct {
	e      *engine
	parent *Cluster
	depth  int
	ops    []op
}

// checkout brings the store to this version.
func (c *Cluster) checkout() {
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

// Free is the room that this version has left on nodes that take pods, in all, by the resources of [Cluster.Resources]; what
// is below zero on a node counts as none.
func (c *Cluster) Free() []int64 {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.checkout()
	return slices.Clone(c.e.total)
}

// Settled is this version as if it had just been read: nodes that went are forgotten, and the others are filled in the order
// that their free room gives now. It costs a copy of what is counted.
func (c *Cluster) Settled() *Cluster {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.checkout()
	old := c.e
	e := &engine{
		problem: old.problem, aliases: old.aliases, dims: old.dims, podAt: old.podAt,
		classes: slices.Clone(old.classes), pods: slices.Clone(old.pods), nodeAt: map[string]int32{}, index: old.index, cluster: old.cluster.Clone(),
		offers: old.offers, full: slices.Clone(old.full),
		offerAt: old.offerAt, weights: old.weights, problemClass: old.problemClass, taken: maps.Clone(old.taken), names: make([]int, len(old.names)), offerSigs: old.offerSigs,
		bucketAt: maps.Clone(old.bucketAt), blends: old.blends, pins: map[pinKey]*pin{}, fine: old.fine, fineGroups: old.fineGroups, daemons: old.daemons,
	}
	for _, l := range old.left {
		e.left = append(e.left, slices.Clone(l))
	}
	for i := range e.classes {
		e.classes[i].buys = slices.Clone(e.classes[i].buys)
		if s := e.classes[i].soft; s != nil {
			own := *s
			own.met = slices.Clone(s.met)
			e.classes[i].soft = &own
		}
	}
	for _, s := range old.buckets {
		e.buckets = append(e.buckets, bucket{mixed: s.mixed, kind: s.kind, values: s.values})
	}
	for i := range old.nodes {
		if n := old.nodes[i]; n.alive {
			n.Free, n.pods, n.Ports = slices.Clone(n.Free), slices.Clone(n.pods), slices.Clone(n.Ports)
			e.nodes = append(e.nodes, n)
		}
	}
	slices.SortFunc(e.nodes, func(a, b node) int {
		return cmp.Or(cmp.Compare(e.size(a.Free), e.size(b.Free)), strings.Compare(a.name, b.name))
	})
	for i := range e.pods { // the nodes that went are forgotten
		e.pods[i].node = -1
	}
	for i := range e.nodes {
		e.nodeAt[e.nodes[i].name] = int32(i)
		for _, p := range e.nodes[i].pods {
			if e.pods[p].values == nil || !e.nodes[i].leaving { // or it is where it goes
				e.pods[p].node = int32(i)
			}
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

// Room is what each of the nodes has free, by the resources of the problem; what is below zero counts as none, and a node that takes
// no pods has none.
func (c *Cluster) Room(nodes []string) [][]int64 {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.checkout()
	out := make([][]int64, len(nodes))
	flat := make([]int64, len(nodes)*c.e.dims)
	for k, name := range nodes {
		out[k], flat = flat[:c.e.dims:c.e.dims], flat[c.e.dims:]
		if i, ok := c.e.nodeAt[name]; ok && c.e.nodes[i].open() {
			for d, f := range c.e.nodes[i].Free {
				out[k][d] = max(0, f)
			}
		}
	}
	return out
}
