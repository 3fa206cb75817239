// Package whatif answers many questions about one cluster: if these nodes were removed, where would
// their pods go, and what would have to be bought?
//
// A cluster is compiled once into integers: classes of pods, free capacity by node, the nodes that
// suit a class, and the counts of every constraint between pods. A question then costs what it
// changes, not the size of the cluster. Pods are put on named nodes one by one under the rules of
// kube-scheduler's filters. So an answer can be carried out in the order of its placements.
//
// Some changes happen without a question: pending pods and pods of leaving nodes get a node, and
// the nodes of claims join. See [Cluster.Reserve] for how answers take account of them.
//
// Soft constraints (preferred affinities, spreads with ScheduleAnyway) keep no pod from a node. A
// pod goes to the node that meets most of them by weight; of equal nodes, to the fullest. Soft
// constraints have no influence on what is bought.
package whatif

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
)

// Cluster is one version of a cluster: the compiled one, or one that an [Answer] leads to. It is
// immutable and safe for concurrent use. Versions share one store, which has one version checked
// out at a time. Checking out another version costs the changes between the two.
type Cluster struct {
	e      *engine
	parent *Cluster
	depth  int
	ops    []op
}

// checkout changes the store to this version.
func (c *Cluster) checkout() {
	e := c.e
	if e.suspended != nil { // it makes its changes again from its own journal
		e.rollback(0)
		e.journal, e.suspended = nil, nil
	}
	var forward []*Cluster
	to := c
	for e.at.depth > to.depth {
		e.back()
	}
	for to.depth > e.at.depth {
		forward, to = append(forward, to), to.parent
	}
	for e.at != to {
		e.back()
		forward, to = append(forward, to), to.parent
	}
	for _, v := range slices.Backward(forward) {
		for _, o := range v.ops {
			e.apply(o)
		}
		e.at = v
	}
}

// lock locks the store with this version checked out; the caller unlocks it.
func (c *Cluster) lock() *engine {
	c.e.mu.Lock()
	c.checkout()
	return c.e
}

// back checks out the previous version.
func (e *engine) back() {
	for _, o := range slices.Backward(e.at.ops) {
		e.undo(o)
	}
	e.at = e.at.parent
}

// Free returns the total free capacity of nodes that take pods, in the order and units of
// Problem.Resources. Negative amounts count as 0. It costs O(nodes).
func (c *Cluster) Free() []int64 {
	e := c.lock()
	defer e.mu.Unlock()
	out, width := make([]int64, e.dims), e.width()
	for i := range e.buckets {
		for free := e.buckets[i].free; len(free) > 0; free = free[width:] {
			for d := range out {
				out[d] += max(0, free[d])
			}
		}
	}
	return out
}

// Rebase returns this version as the first one of its own store, as if it had just been compiled:
// removed nodes are dropped, and the others are sorted by their present free capacity. It costs a
// copy of the store.
func (c *Cluster) Rebase() *Cluster {
	old := c.lock()
	defer old.mu.Unlock()
	e := &engine{
		problem: old.problem, dims: old.dims, podAt: old.podAt,
		classes: slices.Clone(old.classes), pods: slices.Clone(old.pods), nodeAt: map[string]int32{}, index: old.index, cluster: old.cluster.Clone(),
		offers: old.offers, offerAt: old.offerAt, taken: maps.Clone(old.taken), names: make([]int, len(old.names)),
		bucketAt: maps.Clone(old.bucketAt), blends: old.blends, fine: old.fine, fineGroups: old.fineGroups, daemons: old.daemons, preferencePrice: old.preferencePrice, softTaints: old.softTaints, labels: maps.Clone(old.labels),
	}
	e.reserved = slices.Clone(old.reserved)
	e.budgets, e.past, e.dropped = slices.Clone(old.budgets), slices.Clone(old.past), slices.Clone(old.dropped)
	for _, l := range old.left {
		e.left = append(e.left, slices.Clone(l))
	}
	for i := range e.classes {
		e.classes[i].buys = slices.Clone(e.classes[i].buys)
	}
	for _, s := range old.buckets {
		e.buckets = append(e.buckets, bucket{mixed: s.mixed, labelClass: s.labelClass, values: s.values})
	}
	for i := range old.nodes {
		if n := old.nodes[i]; n.alive {
			n.Free, n.pods, n.Ports = slices.Clone(n.Free), slices.Clone(n.pods), slices.Clone(n.Ports)
			e.nodes = append(e.nodes, n)
		} else if slices.Contains(old.gone, int32(i)) {
			e.past = append(e.past, n)
		} else if n.object != nil {
			e.dropped = append(e.dropped, n)
		}
	}
	e.line()
	e.cluster.State.Begin()
	return e.first()
}

// FreeOf returns the free capacity of each of the named nodes, in the order and units of
// Problem.Resources. Negative amounts count as 0, and an unknown node or one that takes no pods has
// none.
func (c *Cluster) FreeOf(nodes []string) [][]int64 {
	e := c.lock()
	defer e.mu.Unlock()
	out := make([][]int64, len(nodes))
	for k, name := range nodes {
		out[k] = make([]int64, e.dims)
		if i, ok := e.nodeAt[name]; ok && e.nodes[i].open() {
			for d, f := range e.nodes[i].Free {
				out[k][d] = max(0, f)
			}
		}
	}
	return out
}

// Reserve returns the cluster with reserved places for pods that move without a question, and those
// places. Such pods are pending or on leaving nodes. A nominated pod gets its node. Any other pod
// gets a node that accepts it once all of them have moved, leaving nodes are gone, and claims have
// their nodes. Reserve ignores pods without a place and pods on nodes that stay. Like
// [Cluster.Rebase], it sorts the nodes again, by what they have free beside the places, and costs a
// copy of the store.
//
// The moment of each move is unknown. So a place takes its capacity at once, and constraints
// between pods must hold at every moment. Where one more pod could break a constraint, a moving pod
// counts twice, where it is and where it goes: for anti-affinity, and for the count of the domain
// that a spread puts a pod into. Where one pod less could break it, a moving pod counts nowhere:
// for affinity, and for the smallest count that a spread compares with. Terminating pods count in
// the same way. A constraint must hold whether or not the domains of leaving nodes and of claims
// are there.
//
// An answer leaves these pods their places: once it is carried out and all of them have moved, each
// is still accepted there. For the exception see [Question.LeaveDomains]. While it is carried out,
// they may have to wait, for example because a new node is a domain of their spread that has no pod
// yet.
func (c *Cluster) Reserve(pods []*corev1.Pod) (*Cluster, []Placement) {
	pods = slices.Clone(pods)
	podclass.Sort(pods)
	ops, places := c.reserve(pods)
	after := &Answer{from: c, ops: ops}
	return after.After().Rebase(), places
}

// reserve returns the places, and the operations that reserve them.
func (c *Cluster) reserve(pods []*corev1.Pod) ([]op, []Placement) {
	e := c.lock()
	defer e.mu.Unlock()
	e.ctx = context.Background()
	e.journal = e.journal[:0]
	for i := range e.nodes { // places are found as if all had moved
		if n := &e.nodes[i]; n.leaving {
			e.do(op{kind: opRemove, node: int32(i)})
		} else if n.coming {
			e.admit(int32(i), true)
		}
	}
	var movable []*corev1.Pod
	seen := make(map[*corev1.Pod]bool, len(pods))
	for _, p := range pods {
		i, ok := e.podAt[p]
		if !ok || seen[p] || e.runsOn(i) != nil {
			continue
		}
		seen[p] = true
		if at, ok := e.nodeAt[p.Status.NominatedNodeName]; ok && e.nodes[at].alive {
			e.do(op{kind: opPlace, pod: i, node: at, old: e.pods[i].node})
		} else if e.classes[e.pods[i].class].movable {
			movable = append(movable, p)
		}
	}
	moving, _ := e.moving(movable)
	e.placePods(moving, 0, len(e.nodes))
	var ops []op
	var placements []Placement
	for _, o := range e.journal {
		if o.kind == opPlace {
			ops = append(ops, op{kind: opReserve, pod: o.pod, node: o.node, old: o.old})
			placements = append(placements, Placement{e.pods[o.pod].object, e.nodes[o.node].name})
		}
	}
	e.rollback(0)
	for i := range e.nodes {
		if e.nodes[i].coming {
			e.admit(int32(i), false)
		}
	}
	if e.cluster.Low == nil && len(ops) > 0 { // no pod moved by itself until now
		e.cluster.Low = e.cluster.State.Clone()
	}
	return ops, placements
}

// admit sets whether the node takes pods.
func (e *engine) admit(at int32, yes bool) {
	e.nodes[at].target = yes
	e.refresh(at)
}

// lost returns the pods that would not be accepted at their reserved places once all of them have
// moved and leaving nodes are gone.
func (e *engine) lost() (out []int32) {
	waiting := slices.DeleteFunc(slices.Clone(e.reserved), func(p int32) bool { return e.pods[p].placed > 0 || e.runsOn(p) == nil })
	if !slices.ContainsFunc(waiting, func(p int32) bool { return e.classOf(p).waits() }) {
		return nil
	}
	mark, sold := len(e.journal), e.cluster.State.CountSold
	e.cluster.State.CountSold = false
	for _, i := range e.leaving {
		e.do(op{kind: opRemove, node: i})
	}
	count := func(p int32, values []int32, sign int32) {
		e.cluster.CountMoving(&e.classOf(p).Class, &e.nodes[e.pods[p].node].Node, values, false, sign)
	}
	at := func(p int32) []int32 { return e.nodes[e.pods[p].node].Values }
	for _, p := range waiting { // it is no longer where it was
		count(p, e.pods[p].values, -1)
		count(p, at(p), 1)
	}
	for _, p := range waiting {
		count(p, at(p), -1)
		if e.classOf(p).waits() && !e.cluster.State.Check(&e.classOf(p).Constraints, at(p), nil, nil).OK() {
			out = append(out, p)
		}
		count(p, at(p), 1)
	}
	for _, p := range waiting {
		count(p, at(p), -1)
		count(p, e.pods[p].values, 1)
	}
	e.rollback(mark)
	e.cluster.State.CountSold = sold
	return out
}

// evicts returns a pod that loses its reserved place by what is in the journal, or -1.
func (e *engine) evicts() int32 {
	now := e.lost()
	if len(now) == 0 {
		return -1
	}
	done := slices.Clone(e.journal)
	e.rollback(0)
	before := e.lost()
	for _, o := range done {
		e.do(o)
	}
	if at := slices.IndexFunc(now, func(p int32) bool { return !slices.Contains(before, p) }); at >= 0 {
		return now[at]
	}
	return -1
}
