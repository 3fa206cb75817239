package whatif

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Reserve returns the cluster with reserved places for pods that move without a question, and those
// places. Such pods are pending or on leaving nodes. A nominated pod gets its node. Any other pod
// gets a node that accepts it once all of them have moved, leaving nodes are gone, and claims have
// their nodes. Reserve ignores pods without a place and pods on nodes that stay. Like
// [Cluster.Rebase], it costs a copy of the store, so that the order of the nodes takes the places
// into account.
//
// The moment of each move is unknown. So a place takes its capacity at once, and constraints
// between pods must hold at every moment. For anti-affinity and the upper count of a spread, a
// moving pod counts both where it is and where it goes. For affinity and the lower count it counts
// nowhere. Terminating pods count in the same way. Domains of leaving nodes and of claims may or
// may not be there.
func (c *Cluster) Reserve(pods []*corev1.Pod) (*Cluster, []Placement) {
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
