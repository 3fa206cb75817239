package whatif

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Reserve returns the cluster with places for pods that move without a question: pending pods, and those of nodes that are on their
// way out. A nominated pod gets its node, and another one a node where kube-scheduler may put it once all these nodes are gone and
// those that were bought are there. The places are returned; pods that find none are left out, and so are those that run on nodes
// which stay.
//
// When the pods move is not known. So a place is full from now on, and a pod of a question is let in where constraints between pods
// would let it in whenever they move: each is counted where it is and where it goes for what forbids, and nowhere for what is needed.
func (c *Cluster) Reserve(pods []*corev1.Pod) (*Cluster, []Placement) {
	e := c.e
	e.mu.Lock()
	defer e.mu.Unlock()
	c.checkout()
	e.journal = e.journal[:0]
	low := e.cluster.Low
	e.cluster.Low = nil // while places are looked for, all of them have moved
	for i := range e.nodes {
		if n := &e.nodes[i]; n.leaving {
			e.do(op{kind: opRemove, node: int32(i)})
		} else if n.coming {
			e.open(int32(i), true)
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
			e.open(int32(i), false)
		}
	}
	if e.cluster.Low = low; low == nil && len(ops) > 0 { // until now each pod is where it stays
		e.cluster.Low = e.cluster.State.Clone()
	}
	after := &Answer{from: c, ops: slices.Clip(ops)}
	return after.After(), placements
}

// open says whether the node takes pods.
func (e *engine) open(at int32, yes bool) {
	n := &e.nodes[at]
	e.tally(n, -1)
	n.target = yes
	e.tally(n, 1)
	e.refresh(at)
}
