// Package topology decides where pods go that ask something of other pods: spreads, affinity and anti-affinity over zones,
// capacity types, hostnames or any other label.
//
// [New] reads what classes of pods ask of each other and counts the pods that run. [Problem.WithShapes] adds what can be
// bought. [Problem.Start] and [Problem.Assign] then give every pod to a domain, a combination of label values, one after
// the other and only where kube-scheduler's rules hold at that moment, given all pods before: the order of assignment is an
// order of binding. What comes out is an [Assignment]: lots to pack, the order, and which pods are unplaced. A packer that
// could not place everything makes [Assignment.Learn] tell new [Facts], and everything is assigned again, from the start.
//
// # Order and choice
//
// Larger pods come first, then pods that follow others, then pods that spread by others. Within what is allowed, free
// capacity of existing nodes comes before the price, and the price before balance. Choosing pod by pod may run into corners, such as
// a combination of two spreads' values that does not exist; other choices are other attempts ([Assignment.Vary]). Soft constraints are
// tried as if they were hard and given up one at a time; see [Preference].
//
// # Within one node
//
// Constraints by hostname act within one node and are left to the packer: they become tags and limits. Pods that must
// share a node, because one has affinity to another by hostname, become one bundle. A spread by hostname that counts no node to
// buy is assigned over the nodes that exist, as over zones: its least count may rise.
//
// # Domains that are better left alone
//
// kube-scheduler counts a domain as soon as an eligible node stands in it. Where that alone keeps pods out, the domain is
// closed to new nodes, unless some class cannot do without it.
//
// Everything is a function of its arguments, and its result is the same whatever the order of maps.
package topology

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// Input is what there is to assign. The zero value is an empty cluster without pods.
type Input struct {
	// Classes are the pending pods. Their order breaks ties. The slice is kept and must not be modified.
	Classes []Class
	// Nodes are those that exist and may take pods.
	Nodes []Node
	// Daemons are pods that run on nodes to buy.
	Daemons []*corev1.Pod
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
	// Count is how many there are to place. Classes of 0 are not counted and hold nothing back.
	Count int
	// Priority decides which go first where not all find a place.
	Priority int32
	// Requests is what one of them takes, cpu and memory first: the larger are placed earlier.
	Requests []int64
	// Shared are those of Requests that pods on one node take together.
	Shared []Shared
	// Asked is what the manifest asks of node labels, which is what the node filter of a spread honours; Required is what
	// the node must be after all, with volumes and other rules.
	Asked, Required requirements.Alternatives
	// Preferred are soft terms of node affinity.
	Preferred []requirements.Preference
	// Tolerated is what tolerations leave of nodes, as a requirement of some label that stands for taints. Untainted is
	// that without nodes whose taints are soft; the same where there are none.
	Tolerated, Untainted requirements.Set
	// Tags and Limits are constraints within a node that are known already, such as host ports.
	Tags   []string
	Limits []Limit
}

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
	// Labels are those of a node of the shape, however it is bought.
	Labels requirements.Set
	// Room is what it has for pods, in the dimensions of Class.Requests.
	Room []int64
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
	nodeValues  [][]int32 // by node and key
	index       *interpod.Index
	values      *interpod.Values
	groups      []group
	filters     []nodeFilter
	running     *interpod.State // the pods that run
	keeps       [][]interpod.Constraints
	kept        []bool // by group: some running pod keeps members away
	daemons     []daemon
	cells       []cell
	withinNode  []bool // by group: what looks at it acts within one node, so that the packer sees to it
	shapes      func(yield func(Shape) bool)
	ignoresSoft bool
	memo        *memo
}

// New reads the constraints of all classes and counts the pods that run. It costs O(classes + selectors x classes that
// have one of the labels they ask for + running pods). There is no problem where some class has constraints that no API server would
// have stored.
func New(in Input) (*Problem, []ClassError) {
	hostless := slices.ContainsFunc(in.Nodes, func(n Node) bool { return !n.Labels.Has(corev1.LabelHostname) })
	p := &Problem{
		classes: make([]class, len(in.Classes)), nodes: slices.Clone(in.Nodes), index: interpod.NewIndex(in.Aliases, in.Namespaces, hostless),
		values: &interpod.Values{}, ignoresSoft: in.IgnorePreferences, memo: newMemo(),
	}
	ratios := map[int32]ratio{}
	var bad []ClassError
	for i := range in.Classes {
		p.classes[i].Class = &in.Classes[i]
		if err := p.read(&p.classes[i], in.Aliases, ratios); err != nil {
			bad = append(bad, ClassError{i, err})
		}
	}
	if len(bad) > 0 {
		return nil, bad
	}
	p.readRunning()
	daemons := make([]interpod.Constraints, len(in.Daemons))
	for i, pod := range in.Daemons {
		daemons[i] = p.index.Keeps(pod)
	}
	p.makeGroups(in.Together, ratios)
	p.countRunning()
	for i, pod := range in.Daemons {
		p.daemons = append(p.daemons, p.daemon(pod, &daemons[i]))
	}
	p.divide(ratios)
	for i := range p.classes {
		p.collectPreferences(&p.classes[i])
	}
	p.withinNode = p.actsWithinNode()
	return p, nil
}

// Read is what manifests ask of other pods, as package interpod has it: by class, and of the pods that run, by node, what they keep away.
// More may be read into the index; the constraints must not be modified.
func (p *Problem) Read() (index *interpod.Index, classes []interpod.Constraints, running [][]interpod.Constraints) {
	classes = make([]interpod.Constraints, len(p.classes))
	for i := range p.classes {
		classes[i] = p.classes[i].all
	}
	return p.index, classes, p.keeps
}

// WithShapes is the problem with what can be bought, in place of what was there before. Labels may be restricted to
// those of [Problem.Keys] and those that classes ask for, and must have those of [Problem.Sides]. Slices of offerings are
// not kept. It costs one text of labels for each offering.
func (p *Problem) WithShapes(shapes func(yield func(Shape) bool)) *Problem {
	out := *p
	out.cells, out.shapes, out.memo = nil, shapes, newMemo()
	if len(p.groups) > 0 {
		out.cells = cellsOf(shapes)
	}
	out.filters = slices.Clone(p.filters)
	for i := range out.filters {
		f := &out.filters[i]
		f.open = f.split && slices.ContainsFunc(out.cells, func(c cell) bool { return !c.labels.Has(f.key) })
	}
	out.withinNode = out.actsWithinNode()
	return &out
}

// Keys are the labels by which pods are counted, and those that say which nodes count.
func (p *Problem) Keys() requirements.Keys {
	keys := requirements.KeysOf(p.index.Keys()...)
	for i := range p.filters {
		keys = keys.Union(p.filters[i].inside.Keys())
	}
	return keys
}

// Within is what an existing node brings to constraints within a node: the tags and limits that it came with, and those
// of the pods that run there. They must not be modified.
func (p *Problem) Within(node int) ([]string, []Limit) {
	return p.nodes[node].Tags, p.nodes[node].Limits
}

// daemon is what a daemon brings to constraints within a node to buy.
type daemon struct {
	tags   []string
	limits []Limit
}

// daemon reads what anti-affinity by the hostname has to do with a daemon. Spreads count it, too, but from the least count, which
// daemons raise on all nodes alike.
func (p *Problem) daemon(pod *corev1.Pod, keeps *interpod.Constraints) daemon {
	var out daemon
	memberOf := p.index.MemberOf(pod.Namespace, pod.Labels)
	for _, g := range memberOf {
		if gr := &p.groups[g]; gr.hostname && !gr.spread {
			out.tags = append(out.tags, gr.tag)
		}
	}
	for _, t := range keeps.Terms {
		if gr := &p.groups[t.Group]; gr.hostname {
			most := 0
			if slices.Contains(memberOf, t.Group) {
				most = 1 // itself
			}
			out.limits = append(out.limits, Limit{gr.tag, most})
		}
	}
	return out
}

// Daemon is what a daemon, by position in [Input.Daemons], brings to constraints within a node to buy. It must not be modified.
func (p *Problem) Daemon(i int) ([]string, []Limit) { return p.daemons[i].tags, p.daemons[i].limits }

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
	for _, sp := range c.all.Spreads {
		if sp.Hard {
			out = append(out, p.obstacle(sp.Group, "spread of %s over %s with skew %d", sp.MaxSkew))
		}
	}
	for _, g := range c.ratios {
		out = append(out, Obstacle{p.groups[g].key, "ratio " + p.groups[g].annotation})
	}
	for _, t := range c.all.Terms {
		switch {
		case t.Hard && t.Anti:
			out = append(out, p.obstacle(t.Group, "anti-affinity to %s by %s"))
		case t.Hard:
			out = append(out, p.obstacle(t.Group, "affinity to %s by %s"))
		}
	}
	for _, g := range c.all.MemberOf {
		switch {
		case p.kept[g]:
			out = append(out, p.obstacle(g, "running pods that keep away from %s by %s"))
		case p.keptAwayFrom(class, g):
			out = append(out, p.obstacle(g, "other pods that keep away from %s by %s"))
		}
	}
	return out
}

// obstacle puts the group's pods and its key into a format, and what else there is.
func (p *Problem) obstacle(group int32, format string, args ...any) Obstacle {
	g := &p.groups[group]
	return Obstacle{g.key, fmt.Sprintf(format, append([]any{g.what, g.key}, args...)...)}
}

// keptAwayFrom reports whether pods of another class must not be where members of the group are.
func (p *Problem) keptAwayFrom(class int, group int32) bool {
	for i := range p.classes {
		if i != class && slices.ContainsFunc(p.classes[i].all.Terms, func(t interpod.Term) bool { return t.Hard && t.Anti && t.Group == group }) {
			return true
		}
	}
	return false
}

func fits(requests, free []int64) bool {
	for r, q := range requests {
		if q > free[r] && q > 0 {
			return false
		}
	}
	return true
}

// ClassError is what is wrong with the constraints of one class, by position in the input.
type ClassError struct {
	Class int
	Err   error
}
