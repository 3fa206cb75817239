package whatif

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/internal/admission"
	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// engine is the cluster in integers, standing at one version of it. Everything that changes is changed by operations that
// can be undone, so that any version can be had back; see [Cluster].
type engine struct {
	mu           sync.Mutex
	at           *Cluster
	problem      *scheduling.Problem
	admission    admission.Cluster
	aliases      requirements.Aliases
	dims         int
	classes      []class
	pods         []pod
	podAt        map[*corev1.Pod]int32
	classByRep   map[*corev1.Pod]int32 // by the pod that stands for the class in the problem
	nodes        []node
	nodeAt       map[string]int32
	buckets      []bucket
	bucketAt     map[string]int32
	blends       []blend
	fine         []bool // by key: it has so many values that nodes are not put into buckets by it
	fineGroups   []bool // by group: its key is one of these
	index        *interpod.Index
	values       *interpod.Values
	state        *interpod.State
	passed       [][]int8 // by filter and static group: 0 unknown, 1 yes, 2 no
	mentioned    requirements.Keys
	statics      []static
	staticAt     map[string]int32
	offers       []offer
	offerSigs    int32
	full         []*requirements.Set // by offer, once asked: all labels of its nodes
	total        []int64             // what open nodes have free, below zero counting as none
	weights      []float64           // by resource: see weigh
	left         [][]int64           // by pool: what its limits leave, then the number of nodes
	journal      []op
	problemClass map[int32]int   // by class: its position in the problem
	offerAt      map[[2]int]int  // by shape and offering
	taken        map[string]bool // names of nodes, those that went included
	pins         map[pinKey]*pin
	names        []int                 // by pool: no number below is free
	daemons      map[string]*daemonSet // by namespace/name
}

// class is a set of pods that are alike.
type class struct {
	interpod.Constraints // what is required
	template             *corev1.Pod
	need                 []int64
	probe                []int64 // need, and what it takes of each blend
	required             requirements.Alternatives
	refusal              string
	ports                []hostport.Port
	suits                []int8 // by static group: 0 unknown, 1 yes, 2 no
	buys                 []int8 // by signature of offers, likewise
	movable              bool
	soft                 *softly // what it would rather have; nil if nothing
	fine                 bool    // some constraint on it is about a key of many values
	rank                 int32   // in the order in which pods are placed
}

type pod struct {
	object  *corev1.Pod
	class   int32
	node    int32
	leaving bool
}

type node struct {
	name    string
	object  *corev1.Node
	alive   bool
	target  bool // takes pods
	static  int32
	values  []int32 // by key, -1 for none
	free    []int64
	pods    []int32
	ports   []hostport.Port // of what runs there, daemons included
	pool    int32           // index into Problem.Pools, -1 for none
	usage   []int64
	bought  *offer
	daemons []*daemonSet // of a node that was bought: those that are counted
	number  int          // in its name, where it was bought
	labels  map[string]string
	bucket  int32
	place   int32 // in its bucket
}

// open reports whether the node takes pods.
func (n *node) open() bool { return n.alive && n.target }

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
)

type op struct {
	kind      opKind
	pod, node int32
	old       int32 // of opPlace: where the pod was
	added     *node // of opAdd
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
		e.refresh(o.node)
		for _, p := range n.pods {
			e.count(p, n, -1)
		}
		e.countDaemons(n, -1)
		e.domain(n, -1)
	case opAdd:
		e.nodes = append(e.nodes, *o.added)
		n := &e.nodes[len(e.nodes)-1]
		n.free, n.ports, n.pods = slices.Clone(n.free), slices.Clone(n.ports), nil
		e.nodeAt[n.name] = int32(len(e.nodes) - 1)
		e.taken[n.name] = true
		e.putIn(int32(len(e.nodes) - 1))
		e.tally(n, 1)
		e.domain(n, 1)
		e.startDaemons(n)
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
		e.refresh(o.node)
		e.count(o.pod, n, 1)
	case opCredit:
		e.charge(&e.nodes[o.node], -1)
	}
}

func (e *engine) undo(o op) {
	switch o.kind {
	case opRemove:
		n := &e.nodes[o.node]
		n.alive = true
		e.tally(n, 1)
		e.refresh(o.node)
		for _, p := range n.pods {
			e.count(p, n, 1)
		}
		e.countDaemons(n, 1)
		e.domain(n, 1)
	case opAdd:
		last := len(e.nodes) - 1
		n := &e.nodes[last]
		e.tally(n, -1)
		e.charge(n, -1)
		e.countDaemons(n, -1)
		e.domain(n, -1)
		delete(e.nodeAt, n.name)
		delete(e.taken, n.name)
		if n.number >= 0 {
			e.names[n.pool] = min(e.names[n.pool], n.number)
		}
		e.takeOut(int32(last))
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
		e.refresh(o.node)
	case opCredit:
		e.charge(&e.nodes[o.node], 1)
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

// tally adds what the node has free to the total, or takes it off; a node that takes no pods counts for nothing.
func (e *engine) tally(n *node, sign int64) {
	if n.open() {
		for i, f := range n.free {
			e.total[i] += sign * max(0, f)
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

func fits(need, free []int64) bool {
	for i, q := range need {
		if q > free[i] && q > 0 {
			return false
		}
	}
	return true
}

// accepts reports whether the node takes one more pod of the class.
func (e *engine) accepts(c *class, n *node) bool { return e.holds(c, n) && e.allowed(c, n.values, nil) }

// holds reports whether the node has room for one more pod of the class, and suits it.
func (e *engine) holds(c *class, n *node) bool {
	if !fits(c.need, n.free) || !e.suits(c, n.static) {
		return false
	}
	for _, p := range c.ports {
		if slices.ContainsFunc(n.ports, p.Conflicts) {
			return false
		}
	}
	return true
}
