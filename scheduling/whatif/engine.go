package whatif

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// engine is the cluster in integers, standing at one version of it. Everything that changes is changed by operations that
// can be undone, so that any version can be had back; see [Cluster].
type engine struct {
	mu           sync.Mutex
	at           *Cluster
	problem      *scheduling.Problem
	aliases      requirements.Aliases
	dims         int
	classes      []class
	pods         []pod
	podAt        map[*corev1.Pod]int32
	classByRep   map[*corev1.Pod]int32 // by the pod that stands for the class in the problem
	nodes        []node
	nodeAt       map[string]int32
	blocks       []int64 // by block of nodes and dimension: no node of it has more free
	rows         []int64 // the same by row of blocks
	keys         []string
	keyAt        map[string]int32
	values       []map[string]int32 // by key
	groups       []group
	universes    []universe
	mentioned    requirements.Keys
	statics      []static
	staticAt     map[string]int32
	offers       []offer
	offerSigs    int32
	full         []*requirements.Set // by offer, once asked: all labels of its nodes
	total        []int64             // what open nodes have free, below zero counting as none
	left         [][]int64           // by pool: what its limits leave, then the number of nodes
	journal      []op
	flat         []int64         // free room of the nodes that were there from the start, side by side
	opened       []bool          // by the same nodes: they take pods
	problemClass map[int32]int   // by class: its position in the problem
	offerAt      map[[2]int]int  // by shape and offering
	taken        map[string]bool // names of nodes, those that went included
	names        []int           // by pool: no number below is free
	daemons      map[string][]port
}

// class is a set of pods that are alike.
type class struct {
	topology
	template *corev1.Pod
	need     []int64
	required requirements.Alternatives
	refusal  string
	ports    []port
	suits    []int8 // by static group: 0 unknown, 1 yes, 2 no
	buys     []int8 // by signature of offers, likewise
	movable  bool
}

type pod struct {
	object  *corev1.Pod
	class   int32
	node    int32
	leaving bool
}

type node struct {
	name   string
	object *corev1.Node
	alive  bool
	target bool // takes pods
	closed bool // takes none for now: it is to go next
	static int32
	values []int32 // by key, -1 for none
	free   []int64
	pods   []int32
	ports  []port // of what runs there, daemons included
	pool   int32  // index into Problem.Pools, -1 for none
	usage  []int64
	bought *offer
	number int // in its name, where it was bought
	labels map[string]string
}

// open reports whether the node takes pods.
func (n *node) open() bool { return n.alive && n.target && !n.closed }

func (n *node) value(key int32) int32 { return n.values[key] }

// static is what labels and taints say of a node as far as any class asks about them.
type static struct {
	labels requirements.Set
	taints []corev1.Taint
}

type opKind uint8

const (
	opRemove opKind = iota // a node goes, with all that runs there
	opAdd                  // a node comes
	opPlace                // a pod goes to a node
	opCredit               // a node that went no longer counts against its pool's limits
	opClose                // a node takes no pods from now on
	opOpen                 // it does again
)

type op struct {
	kind      opKind
	pod, node int32
	old       int32 // of opPlace: where the pod was
	added     *node // of opAdd
}

// Nodes are passed over in blocks, and blocks in rows of them, that have no node with room enough.
const (
	blockSize = 16
	rowSize   = blockSize * 16
)

func (e *engine) key(name string) int32 {
	name = e.aliases.Key(name)
	if id, ok := e.keyAt[name]; ok {
		return id
	}
	id := int32(len(e.keys))
	e.keys = append(e.keys, name)
	e.keyAt[name] = id
	e.values = append(e.values, map[string]int32{})
	return id
}

func (e *engine) valueOf(key int32, value string) int32 {
	m := e.values[key]
	id, ok := m[value]
	if !ok {
		id = int32(len(m))
		m[value] = id
	}
	return id
}

func (e *engine) do(o op) {
	e.journal = append(e.journal, o)
	e.apply(o)
}

func (e *engine) apply(o op) {
	switch o.kind {
	case opRemove:
		n := &e.nodes[o.node]
		e.tally(n, -1)
		n.alive = false
		e.mark(o.node)
		for _, p := range n.pods {
			e.count(p, n, -1)
		}
		e.domain(n, -1)
	case opAdd:
		e.nodes = append(e.nodes, *o.added)
		n := &e.nodes[len(e.nodes)-1]
		n.free, n.ports, n.pods = slices.Clone(n.free), slices.Clone(n.ports), nil
		e.nodeAt[n.name] = int32(len(e.nodes) - 1)
		e.taken[n.name] = true
		e.raise(len(e.nodes)-1, n.free)
		e.tally(n, 1)
		e.domain(n, 1)
		e.charge(n, 1)
	case opPlace:
		n, p := &e.nodes[o.node], &e.pods[o.pod]
		c := &e.classes[p.class]
		e.tally(n, -1)
		for i, need := range c.need {
			n.free[i] -= need
		}
		e.tally(n, 1)
		n.ports = append(n.ports, c.ports...)
		n.pods = append(n.pods, o.pod)
		p.node = o.node
		e.count(o.pod, n, 1)
	case opCredit:
		e.charge(&e.nodes[o.node], -1)
	case opClose, opOpen:
		e.tally(&e.nodes[o.node], -1)
		e.nodes[o.node].closed = o.kind == opClose
		e.tally(&e.nodes[o.node], 1)
		e.mark(o.node)
	}
}

func (e *engine) undo(o op) {
	switch o.kind {
	case opRemove:
		n := &e.nodes[o.node]
		n.alive = true
		e.tally(n, 1)
		e.mark(o.node)
		for _, p := range n.pods {
			e.count(p, n, 1)
		}
		e.domain(n, 1)
	case opAdd:
		last := len(e.nodes) - 1
		n := &e.nodes[last]
		e.tally(n, -1)
		e.charge(n, -1)
		e.domain(n, -1)
		delete(e.nodeAt, n.name)
		delete(e.taken, n.name)
		e.names[n.pool] = min(e.names[n.pool], n.number)
		e.nodes = e.nodes[:last]
	case opPlace:
		n, p := &e.nodes[o.node], &e.pods[o.pod]
		c := &e.classes[p.class]
		e.count(o.pod, n, -1)
		e.tally(n, -1)
		for i, need := range c.need {
			n.free[i] += need
		}
		e.tally(n, 1)
		n.ports = n.ports[:len(n.ports)-len(c.ports)]
		n.pods = n.pods[:len(n.pods)-1]
		p.node = o.old
		e.raise(int(o.node), n.free)
	case opCredit:
		e.charge(&e.nodes[o.node], 1)
	case opClose, opOpen:
		e.tally(&e.nodes[o.node], -1)
		e.nodes[o.node].closed = o.kind == opOpen
		e.tally(&e.nodes[o.node], 1)
		e.mark(o.node)
		e.raise(int(o.node), e.nodes[o.node].free)
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

// charge takes a node off what its pool's limits leave, or gives it back.
func (e *engine) charge(n *node, sign int64) {
	if n.pool < 0 {
		return
	}
	left := e.left[n.pool]
	for i, u := range n.usage {
		left[i] -= sign * u
	}
	left[len(left)-1] -= sign
}

// raise makes sure that a block's bound is not below what a node of it has.
func (e *engine) raise(at int, free []int64) {
	e.blocks = raised(e.blocks, at/blockSize*e.dims, free)
	e.rows = raised(e.rows, at/rowSize*e.dims, free)
}

func raised(bounds []int64, at int, free []int64) []int64 {
	for len(bounds) < at+len(free) {
		bounds = append(bounds, -1<<62)
	}
	for i, f := range free {
		bounds[at+i] = max(bounds[at+i], f)
	}
	return bounds
}

// tally adds what the node has free to the total, or takes it off; a node that takes no pods counts for nothing.
func (e *engine) tally(n *node, sign int64) {
	if n.open() {
		for i, f := range n.free {
			e.total[i] += sign * max(0, f)
		}
	}
}

// sharpen computes the bounds of all blocks anew.
func (e *engine) sharpen() {
	for i := range e.blocks {
		e.blocks[i] = -1 << 62
	}
	for i := range e.rows {
		e.rows[i] = -1 << 62
	}
	for i := range e.nodes {
		if e.nodes[i].open() {
			e.raise(i, e.nodes[i].free)
		}
	}
}

// suits reports whether labels and taints of the static group let pods of the class in.
func (e *engine) suits(c *class, group int32) bool {
	for int(group) >= len(c.suits) {
		c.suits = append(c.suits, 0)
	}
	if c.suits[group] == 0 {
		s := &e.statics[group]
		c.suits[group] = 2
		if c.required.Compatible(s.labels, requirements.Keys{}) && tolerates(c.template.Spec.Tolerations, s.taints) {
			c.suits[group] = 1
		}
	}
	return c.suits[group] == 1
}

func tolerates(tolerations []corev1.Toleration, taints []corev1.Taint) bool {
	if len(taints) == 0 {
		return true
	}
	_, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Logger{}, taints, tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, false)
	return !found
}

func fits(need, free []int64) bool {
	for i, q := range need {
		if q > free[i] && q > 0 {
			return false
		}
	}
	return true
}

// accepts reports whether the node takes one more pod of the class.
func (e *engine) accepts(c *class, n *node) bool { return e.holds(c, n) && e.allowed(c, n) }

// holds reports whether the node has room for one more pod of the class, and suits it.
func (e *engine) holds(c *class, n *node) bool {
	if !fits(c.need, n.free) || !e.suits(c, n.static) {
		return false
	}
	for _, p := range c.ports {
		if slices.ContainsFunc(n.ports, p.conflicts) {
			return false
		}
	}
	return true
}

// flatten puts the free room of all nodes side by side in memory, for that is what is looked at most.
func (e *engine) flatten() {
	flat := make([]int64, 0, len(e.nodes)*e.dims)
	for i := range e.nodes {
		at := len(flat)
		flat = append(flat, e.nodes[i].free...)
		e.nodes[i].free = flat[at:len(flat):len(flat)]
	}
	e.flat, e.opened = flat, make([]bool, len(e.nodes))
	for i := range e.nodes {
		e.mark(int32(i))
	}
}

// mark notes whether a node takes pods, where that is looked up first.
func (e *engine) mark(at int32) {
	if int(at) < len(e.opened) {
		e.opened[at] = e.nodes[at].open()
	}
}
