package whatif

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/internal/admission"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// engine is the store of a cluster, with one version checked out. Every change is an operation that
// can be undone; see [Cluster].
type engine struct {
	mu        sync.Mutex
	ctx       context.Context // of the question that is being answered
	at        *Cluster
	problem   *scheduling.Problem
	admission admission.Cluster
	dims      int
	classes   []class
	pods      []pod
	podAt     map[*corev1.Pod]int32
	nodes     []node
	nodeAt    map[string]int32
	buckets   []bucket
	bucketAt  map[string]int32
	blends    []blend
	// preferencePrice is the price of a preference as a share of what a pod takes of a new node.
	preferencePrice float64
	softTaints      bool   // some node has a PreferNoSchedule taint
	fine            []bool // by key: it has too many values to distinguish buckets
	fineGroups      []bool // by group: its key is fine
	index           *interpod.Index
	cluster         *bind.Cluster
	offers          []offer
	budgets         []int64   // what remains of Problem.Budgets, negative if a quota is exceeded
	left            [][]int64 // by pool: what remains of its limits, then of its number of nodes
	gone            []int32   // removed nodes whose machines are gone, see Question.Freed
	past, dropped   []node    // removed nodes that the store does not have any more: whose machines are gone, and whose machines may be there
	reserved        []int32   // pods with reserved places
	leaving         []int32   // nodes, which no question removes
	journal         []op
	suspended       *buying                         // while its buyer is asked, the journal still has its changes; nil between questions
	static          map[string]bool                 // names of static pools
	offerAt         map[[2]int]int                  // by shape and offering
	taken           map[string]bool                 // names of nodes, removed ones included
	names           []int                           // by pool: no number below is free
	daemons         map[string]*daemonSet           // by namespace/name
	labels          map[string][2]map[string]string // see labelsOf
}

// class is a set of indistinguishable pods.
type class struct {
	bind.Class
	template *corev1.Pod
	probe    []int64 // what one pod takes, and of each blend
	refusal  string
	buys     bind.Answers // by signature of offers
	movable  bool
	problem  int     // its position in the problem, if it is movable
	soft     *softly // its preferences; nil if it has none
	fine     bool    // some constraint on it is about a fine key
	rank     int32   // in the order in which pods are placed
}

type pod struct {
	object *corev1.Pod
	class  int32
	node   int32 // where it runs, removed or not; -1 for a pending pod
	placed int32 // how often it was placed
	// terminating is that of the object. It is copied because objects are far apart in memory, and
	// each change of a node reads it for all pods there.
	terminating bool
	asked       bool // it is among the pods of the question that is being read
	// values are the values at which its reserved place counts it; nil if no place is reserved.
	values []int32
}

// leaving reports whether the pod is terminating. A terminating pod that was placed stands for its
// successor.
func (p *pod) leaving() bool { return p.terminating && p.placed == 0 }

type node struct {
	bind.Node
	name   string
	object *corev1.Node
	alive  bool
	target bool // takes pods
	// These changes may happen at any moment. A leaving node may go, an inFlight node may appear,
	// and a joining node may get the labels and taints of its claim. A coming node is not ready, so
	// it takes only pods that wait for it.
	leaving, inFlight, joining, coming bool

	pods    []int32
	pool    int32 // index into Problem.Pools, -1 for none
	usage   []int64
	charges []int64 // of Problem.Budgets; nil for nothing
	bought  *offer
	// most is what alternatives of the bought node must cost less than, 0 for any price, and spare what
	// they may count more against limits, nil for what is left.
	most    Price
	spare   []int64
	daemons []*bind.Class // daemons that are counted: of a bought node, or still to start
	number  int           // in its name, if it was bought
	labels  map[string]string
	bucket  int32
	place   int32 // in its bucket
}

// open reports whether the node takes pods.
func (n *node) open() bool { return n.alive && n.target }

// shifts reports whether the node may become a domain of spreads at any moment, or cease to be one.
func (n *node) shifts() bool { return n.leaving || n.joining }

type opKind uint8

const (
	opRemove  opKind = iota // removes a node with its pods
	opAdd                   // adds a node
	opPlace                 // puts a pod on a node
	opFree                  // says that the machine of a removed node is gone
	opCredit                // stops counting a removed node against the limits of its pool
	opReserve               // reserves a place for a pod that moves by itself
	opCordon                // makes a node take no more pods
)

type op struct {
	kind      opKind
	pod, node int32
	old       int32 // of opPlace and opReserve: where the pod was
	added     *node // of opAdd
}

func (e *engine) do(o op) {
	e.journal = append(e.journal, o)
	e.apply(o)
}

func (e *engine) apply(o op) {
	switch o.kind {
	case opRemove:
		e.exist(o.node, -1)
	case opAdd:
		e.nodes = append(e.nodes, *o.added)
		n := &e.nodes[len(e.nodes)-1]
		n.Free, n.Ports, n.pods = slices.Clone(n.Free), slices.Clone(n.Ports), nil
		e.nodeAt[n.name] = int32(len(e.nodes) - 1)
		e.taken[n.name] = true
		e.putIn(int32(len(e.nodes) - 1))
		e.cluster.CountNode(&n.Node, 1)
		n.daemons, _ = e.cluster.StartDaemons(n.daemons, &n.Node)
		e.charge(n, 1)
	case opPlace, opReserve:
		n, p := &e.nodes[o.node], &e.pods[o.pod]
		c := &e.classes[p.class].Class
		e.cluster.Take(c, &n.Node)
		n.pods = append(n.pods, o.pod)
		if o.kind == opPlace {
			p.placed++
			e.cluster.Count(c, &n.Node, p.leaving(), 1)
		} else {
			p.values = n.Values
			if o.old >= 0 && !p.leaving() { // a terminating pod counts in no spread where it is
				p.values = e.cluster.Elsewhere(&n.Node, &e.nodes[o.old].Node)
			}
			e.count(o.pod, n, 1)
			e.reserved = append(e.reserved, o.pod)
		}
		p.node = o.node
		e.refresh(o.node)
	case opFree:
		e.gone = append(e.gone, o.node)
	case opCredit:
		e.charge(&e.nodes[o.node], -1)
	case opCordon:
		e.nodes[o.node].target = false
		e.refresh(o.node)
	}
}

// exist counts a node that is there again, with its pods; sign -1 undoes that because it is gone.
func (e *engine) exist(at, sign int32) {
	n := &e.nodes[at]
	n.alive = sign > 0
	e.refresh(at)
	for _, p := range n.pods {
		e.count(p, n, sign)
	}
	e.countDaemons(n, sign)
	e.countNode(n, sign)
}

func (e *engine) undo(o op) {
	switch o.kind {
	case opRemove:
		e.exist(o.node, 1)
	case opAdd:
		last := len(e.nodes) - 1
		n := &e.nodes[last]
		e.charge(n, -1)
		e.countDaemons(n, -1)
		e.cluster.CountNode(&n.Node, -1)
		delete(e.nodeAt, n.name)
		delete(e.taken, n.name)
		if n.number >= 0 {
			e.names[n.pool] = min(e.names[n.pool], n.number)
		}
		e.takeOut(int32(last))
		e.nodes = e.nodes[:last]
	case opPlace, opReserve:
		n, p := &e.nodes[o.node], &e.pods[o.pod]
		c := &e.classes[p.class].Class
		if o.kind == opPlace {
			e.cluster.Count(c, &n.Node, p.leaving(), -1)
			p.placed--
		} else {
			e.count(o.pod, n, -1)
			p.values = nil
			e.reserved = e.reserved[:len(e.reserved)-1]
		}
		e.cluster.Release(c, &n.Node)
		n.pods = n.pods[:len(n.pods)-1]
		p.node = o.old
		e.refresh(o.node)
	case opFree:
		e.gone = e.gone[:len(e.gone)-1]
	case opCredit:
		e.charge(&e.nodes[o.node], 1)
	case opCordon:
		e.nodes[o.node].target = true
		e.refresh(o.node)
	}
}

// rollback undoes everything after the mark.
func (e *engine) rollback(mark int) {
	for len(e.journal) > mark {
		o := e.journal[len(e.journal)-1]
		e.journal = e.journal[:len(e.journal)-1]
		e.undo(o)
	}
}

// count adds a pod to the counts of its node; sign -1 subtracts it.
func (e *engine) count(pod int32, n *node, sign int32) {
	p := &e.pods[pod]
	c := &e.classes[p.class].Class
	switch {
	case p.values != nil && !n.leaving:
		e.cluster.CountMoving(c, &n.Node, p.values, false, sign)
	case n.shifts():
		e.cluster.CountMoving(c, &n.Node, n.Values, p.terminating, sign)
	default:
		e.cluster.Count(c, &n.Node, p.leaving(), sign)
	}
}

// countNode makes the node a domain of spreads; sign -1 undoes that.
func (e *engine) countNode(n *node, sign int32) {
	if n.shifts() {
		e.cluster.CountMovingNode(&n.Node, sign)
	} else {
		e.cluster.CountNode(&n.Node, sign)
	}
}

func (e *engine) classOf(pod int32) *class { return &e.classes[e.pods[pod].class] }

// accepts reports whether the node accepts one more pod of the class.
func (e *engine) accepts(c *class, n *node) bool { return e.cluster.Check(&c.Class, &n.Node).OK() }
