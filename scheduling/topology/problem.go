// Package topology decides where pods go that ask something of other pods: spreads, affinity and anti-affinity over zones,
// capacity types, hostnames or any other label.
//
// [New] reads what classes of pods ask of each other and counts the pods that run. [Problem.WithShapes] adds what can be
// bought. [Problem.Start] and [Problem.Settle] then give every pod to a domain, a combination of label values, one after
// the other and only where kube-scheduler's rules hold at that moment, given all pods before: the order of settling is an
// order of binding. What comes out is a [Settlement]: lots to pack, the order, and who is left over. A packer that could
// not place everything makes [Settlement.Learn] tell new [Facts], and everything is settled again, from the start.
//
// # Order and choice
//
// Larger pods come first, then pods that follow others, then pods that spread by others. Within what is allowed, free
// room on existing nodes comes before the price, and the price before balance. Pods that spread over two keys at once get
// quotas for combinations first; see package quota. Soft constraints are tried as if they were hard and given up one at a
// time; see [Preference].
//
// # Within one node
//
// Constraints by hostname act within one node and are left to the packer: they become tags and limits. Pods that must
// share a node, because one has affinity to another by hostname, become one bundle. A spread by hostname that counts no node to
// buy is settled over the nodes that exist, as over zones: its least count may rise.
//
// # Who has a right to a place
//
// Of pods that exclude each other some stay out. [Settlement.Reference] says whom a planner places that takes one pod at a
// time, as Karpenter does, and how many of them hold; [Reference.Seats] settles with those first.
//
// # Domains that are better left alone
//
// kube-scheduler counts a domain as soon as an eligible node stands in it. Where that alone keeps pods out, the domain is
// closed to new nodes, unless somebody cannot do without it.
//
// Everything is a function of its arguments, and its result is the same whatever the order of maps.
package topology

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// Input is what there is to settle. The zero value is an empty cluster without pods.
type Input struct {
	// Classes are the pending pods. Their order breaks ties.
	Classes []Class
	// Nodes are those that exist and may take pods.
	Nodes []Node
	// Together are sets of classes whose pods must all be in one zone, such as users of one volume that is yet to be made.
	Together []Together
	// Namespaces holds the labels of every namespace, by name, for affinity that selects namespaces.
	Namespaces map[string]map[string]string
	// Aliases rename deprecated topology keys.
	Aliases requirements.Aliases
	// IgnorePreferences drops soft constraints from the start.
	IgnorePreferences bool
}

// Class is a number of pods that are alike.
type Class struct {
	// Pod is one of them as an API server stored it: its labels, spreads and pod affinity are read.
	Pod *corev1.Pod
	// Count is how many there are to place. Classes of 0 are counted by nobody and hold nothing back.
	Count int
	// Priority decides who goes first where not everybody finds a place.
	Priority int32
	// Requests is what one of them takes, cpu and memory first: the larger are placed earlier.
	Requests []int64
	// Shared are those of Requests that pods on one node take together.
	Shared []Shared
	// Asked is what the manifest asks of node labels, which is what the node filter of a spread honours; Required is what
	// the node must be after all, with volumes and other rules.
	Asked, Required requirements.Alternatives
	// Readings are what the terms of the manifest ask, in their order, as Karpenter reads them, which [Queue] is about; none where
	// that is the alternatives of Asked.
	Readings []Reading
	// Preferred are soft terms of node affinity.
	Preferred []requirements.Preference
	// Tolerated is what tolerations leave of nodes, as a requirement of some label that stands for taints. Untainted is
	// that without nodes whose taints are soft; the same where there are none.
	Tolerated, Untainted requirements.Set
	// Tags and Limits are constraints within a node that are known already, such as host ports.
	Tags   []string
	Limits []Limit
}

// Reading is one term of what a manifest asks of nodes, as Karpenter reads it: Asked the term alone, Required with what volumes
// add. kube-scheduler may read it otherwise and refuse what Karpenter places by it; until then such pods take others' places.
type Reading struct{ Asked, Required requirements.Alternatives }

// Node is an existing node.
type Node struct {
	// Labels are all its labels, the hostname among them.
	Labels requirements.Set
	// Free is what it has left, in the dimensions of Class.Requests.
	Free []int64
	// Tags and Limits are those of what runs there, apart from what constraints between pods add.
	Tags   []string
	Limits []Limit
	// Shared names what the pods there use that others may share.
	Shared []string
	// Running are the pods there, as an API server stored them.
	Running []*corev1.Pod
}

// Together is a set of classes whose pods must all be in one zone.
type Together struct {
	// Name says in words which pods these are.
	Name string
	// Classes are indexes into Input.Classes, ascending.
	Classes []int
}

// Shape is something that can be bought in several ways.
type Shape struct {
	// Pool numbers those who offer it, in the order in which they are asked.
	Pool int
	// Labels are those of a node of the shape, however it is bought.
	Labels requirements.Set
	// Room is what it has for pods, in the dimensions of Class.Requests.
	Room []int64
	// Usage is what a node of it takes of what the limits of its pool leave, in the dimensions of Queue.Left; none where there
	// are no limits.
	Usage []int64
	// Offerings are the ways to buy it.
	Offerings []Offering
}

// Offering is one way to buy a shape.
type Offering struct {
	// Labels are those that it adds to the shape's.
	Labels requirements.Set
	// Price is in dollars an hour.
	Price float64
}

// Limit allows a node at most Max pods with a tag while the pod that brings the limit is there.
type Limit struct {
	Tag string
	Max int
}

// Problem is what classes ask of each other, what runs, and what can be bought. It is immutable and safe for concurrent
// use.
type Problem struct {
	classes     []class
	nodes       []Node
	groups      []*group
	filters     map[string]*nodeFilter // by pseudo-key
	cells       []cell
	standing    map[int]bool // groups on the hostname whose values are settled like those of any other key
	shapes      func(yield func(Shape) bool)
	ignoresSoft bool
	memo        *memo
}

// New reads the constraints of all classes and counts the pods that run. It costs O(classes + selectors x classes that
// have one of the labels they ask for + selectors x running pods). The error is an [*InvalidError].
func New(in Input) (*Problem, error) {
	p := &Problem{classes: make([]class, len(in.Classes)), nodes: slices.Clone(in.Nodes), filters: map[string]*nodeFilter{}, ignoresSoft: in.IgnorePreferences, memo: newMemo()}
	r := reader{p: p, aliases: in.Aliases, namespaces: in.Namespaces, byText: map[string]int{}, byRaw: map[string]int{}}
	var bad []ClassError
	for i, c := range in.Classes {
		p.classes[i].Class = c
		if err := r.read(&p.classes[i]); err != nil {
			bad = append(bad, ClassError{i, err})
		}
	}
	if len(bad) > 0 {
		return nil, &InvalidError{bad}
	}
	keepers := r.running()
	p.join()
	p.divide()
	r.together(in.Together)
	p.relate()
	p.countRunning(keepers)
	for i := range p.classes {
		p.collectPreferences(&p.classes[i])
	}
	p.standing = p.standingOnly()
	return p, nil
}

// WithShapes is the problem with what can be bought, in place of what was there before. Labels may be restricted to
// those of [Problem.Keys] and those that classes ask for. Slices of offerings are not kept. It costs one text of labels
// for each offering.
func (p *Problem) WithShapes(shapes func(yield func(Shape) bool)) *Problem {
	out := *p
	out.cells, out.shapes, out.memo = nil, shapes, newMemo()
	if len(p.groups) > 0 {
		out.cells = cellsOf(shapes, false)
	}
	out.standing = out.standingOnly()
	return &out
}

// Keys are the labels by which pods are counted, and those that say which nodes count.
func (p *Problem) Keys() requirements.Keys {
	var keys []string
	for _, g := range p.groups {
		keys = append(keys, g.key)
		if g.filter == nil {
			continue
		}
		for s := range g.filter.inside.All() {
			for r := range s.All() {
				keys = append(keys, r.Key())
			}
		}
	}
	return requirements.KeysOf(keys...)
}

// Within is what an existing node brings to constraints within a node: the tags and limits that it came with, and those
// of the pods that run there. They must not be modified.
func (p *Problem) Within(node int) ([]string, []Limit) {
	return p.nodes[node].Tags, p.nodes[node].Limits
}

// Obstacle is a hard constraint between a class and other pods.
type Obstacle struct {
	// Key is the label by whose values the pods are counted.
	Key string
	// Text says it in words.
	Text string
}

// Obstacles lists what may keep pods of a class out although nodes suit them: spreads, then terms of affinity, in the
// order of the manifest, then others that keep away from them.
func (p *Problem) Obstacles(class int) []Obstacle {
	var out []Obstacle
	c := &p.classes[class]
	for _, sp := range c.spreads {
		if sp.hard {
			out = append(out, p.groups[sp.group].obstacle("spread of %s over %s with skew %d", sp.maxSkew))
		}
	}
	for _, r := range c.ratios {
		g := p.groups[r.group]
		out = append(out, Obstacle{g.key, "ratio " + g.annotation})
	}
	for _, t := range c.terms {
		switch {
		case t.hard && t.anti:
			out = append(out, p.groups[t.group].obstacle("anti-affinity to %s by %s"))
		case t.hard:
			out = append(out, p.groups[t.group].obstacle("affinity to %s by %s"))
		}
	}
	for _, g := range c.memberOf {
		switch {
		case len(p.groups[g].owners) > 0:
			out = append(out, p.groups[g].obstacle("running pods that keep away from %s by %s"))
		case p.keptAwayFrom(class, g):
			out = append(out, p.groups[g].obstacle("other pods that keep away from %s by %s"))
		}
	}
	return out
}

// keptAwayFrom reports whether pods of another class must not be where members of the group are.
func (p *Problem) keptAwayFrom(class, group int) bool {
	for i := range p.classes {
		if i != class && slices.ContainsFunc(p.classes[i].terms, func(t term) bool { return t.hard && t.anti && t.group == group }) {
			return true
		}
	}
	return false
}

func fits(requests, room []int64) bool {
	for r, q := range requests {
		if q > room[r] && q > 0 {
			return false
		}
	}
	return true
}

// InvalidError lists the classes whose constraints no API server would have stored.
type InvalidError struct{ Classes []ClassError }

// ClassError is what is wrong with the constraints of one class, by position in the input.
type ClassError struct {
	Class int
	Err   error
}

// Error is one line for each class.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Classes))
	for i, c := range e.Classes {
		lines[i] = fmt.Sprintf("topology: class %d: %v", c.Class, c.Err)
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the causes.
func (e *InvalidError) Unwrap() []error {
	out := make([]error, len(e.Classes))
	for i, c := range e.Classes {
		out[i] = c.Err
	}
	return out
}
