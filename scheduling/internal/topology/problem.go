// Package topology assigns pods to domains as constraints between pods ask: spreads, affinity and
// anti-affinity over zones, capacity types, hostnames or any other label.
//
// [New] reads the constraints and counts the running pods. [Problem.WithShapes] adds what can be
// bought. [Problem.Start] and [Problem.Assign] then assign one pod after the other to a domain,
// which is a combination of label values. At each pod, kube-scheduler's rules hold given all pods
// before it, so the order of assignment is an order of binding. An [Assignment] has the lots to
// pack, the order, and the unplaced pods. If packing cannot place a lot, [Assignment.Learn] gives
// new [Facts], and all pods are assigned again.
//
// # Order and choice
//
// Pods without constraints on others come first, then pods with affinity, then pods that spread by
// others; within each of these the largest come first. Of the allowed domains the one with the best
// [score] is chosen. Choosing pod by pod can end in a combination of values that is not for sale;
// [Assignment.Vary] makes other choices. Soft constraints are tried as hard ones and given up one
// at a time; see [Preference].
//
// # Within one node
//
// Constraints by hostname act within one node. They become tags and limits for the packer. Pods
// that must share a node, because of affinity by hostname, become one bundle. A spread by hostname
// that counts only existing nodes is assigned over these nodes like one over zones, because its
// least count can rise.
//
// # Closed domains
//
// PodTopologySpread counts a domain as soon as it has an eligible node. If an empty domain keeps
// pods out, it is closed to new nodes, unless some class fits nowhere else.
package topology

import (
	"fmt"
	"math"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/once"
)

// Input is pods and nodes. The zero value has none.
type Input struct {
	// Classes are the pending pods. Their order breaks ties. The slice is kept and must not be
	// modified.
	Classes []Class
	// Nodes are the existing nodes that take pods.
	Nodes []Node
	// Leaving are nodes that are being removed and take no pods. Their pods run, and count, until
	// the node is gone, which may be at any moment.
	Leaving []Node
	// Daemons are pods that run on nodes to buy.
	Daemons []*corev1.Pod
	// Together are sets of classes whose pods must all be in one domain, such as users of one
	// unbound claim.
	Together []Together
	// Namespaces holds the labels of every namespace, by name, for affinity that selects
	// namespaces.
	Namespaces map[string]map[string]string
	// Aliases rename deprecated topology keys.
	Aliases requirements.Aliases
	// IgnorePreferences drops soft constraints from the start.
	IgnorePreferences bool
}

// Class is a number of equal pods.
type Class struct {
	// Pod is one of them as an API server stored it. Its labels, spreads and pod affinity are read.
	Pod *corev1.Pod
	// Count is the number of pods. Classes of 0 are ignored, unless they are Withheld: then their
	// constraints are read, and no pod is assigned.
	Count    int
	Withheld bool
	// From says, for each pod in the order of assignment, which pod of a leaving node ends before
	// it is bound. Pods beyond its end replace none.
	From []Origin
	// Priority orders classes once some pods were unplaced.
	Priority int32
	// Requests is what one pod takes, cpu and memory first. Larger pods are assigned earlier.
	Requests []int64
	// Shared are units of Requests that pods on one node take together.
	Shared []Shared
	// Asked is the node selector and affinity of the manifest, which node filters of spreads
	// honour. Required also has the constraints of volumes and other rules.
	Asked, Required requirements.Alternatives
	// Preferred are soft terms of node affinity.
	Preferred []requirements.Preference
	// Tolerated is the tolerated nodes as a requirement of the pseudo-label of taints. Untainted
	// also excludes nodes with untolerated PreferNoSchedule taints.
	Tolerated, Untainted requirements.Set
	// Tags and Limits are other constraints within a node, such as host ports.
	Tags   []string
	Limits []Limit
}

// Node is an existing node.
type Node struct {
	// Labels are all its labels, including the hostname.
	Labels requirements.Set
	// Free is its free capacity, in the dimensions of Class.Requests.
	Free []int64
	// Tags and Limits are those of running pods, without constraints between pods.
	Tags   []string
	Limits []Limit
	// Shared are the names of what running pods there share, as in [Shared].
	Shared []string
	// Running are the pods there, as an API server stored them.
	Running []*corev1.Pod
	// Starting says how many of Running, at the end, are pods of daemons that are still to start.
	// Other pods may keep them away for good.
	Starting int

	certain certain
}

// certain is the tags and limits of constraints of pods that certainly run.
type certain struct {
	tags   []string
	limits []Limit
}

// Origin is a pod of a leaving node, by positions in [Input.Leaving] and in Node.Running. A
// negative node means none.
type Origin struct{ Node, Pod int }

// Together is a set of classes whose pods must all be in one domain.
type Together struct {
	// Name says in words which pods these are. Key is the label whose value they must share.
	Name, Key string
	// Running reports whether a running pod is one of them; nil means that none is.
	Running func(*corev1.Pod) bool
	// Classes are indexes into Input.Classes, ascending.
	Classes []int
}

// Shape is an instance type as a pool offers it.
type Shape struct {
	// Labels are the labels that all its offerings have.
	Labels requirements.Set
	// Free is its capacity for pods, in the dimensions of Class.Requests.
	Free []int64
	// Offerings are the ways to buy it.
	Offerings []Offering
}

// Offering is one way to buy a shape.
type Offering struct {
	// Labels are the labels that it adds to the shape's.
	Labels requirements.Set
	// Price is in dollars an hour.
	Price float64
}

// Limit allows a node at most Max pods with a tag as long as the pod with the limit is there.
type Limit struct {
	Tag string
	Max int
}

// Problem is the constraints between classes, the running pods, and what can be bought. It is
// immutable and safe for concurrent use.
type Problem struct {
	classes     []class
	nodes       []Node
	nodeValues  [][]int32 // by node and key
	index       *interpod.Index
	values      *interpod.Values
	groups      []group
	filters     []nodeFilter
	running     *interpod.State // the running pods
	keeps       [][]interpod.Constraints
	leaving     []leaving
	kept        []bool                 // by group: a running pod has anti-affinity to it
	daemons     []interpod.Constraints // anti-affinity and membership; a daemon raises the count of every node, and so the least count of spreads
	peopled     []bool                 // by group: a pod is in it that is not of a class
	daemonNames []string
	gathered    func() []gathered // see gathers; computed once, by the first explanation
	withinNode  []bool            // by group: its constraints act within one node, and are tags and limits
	cells       func() []cell     // what can be bought; computed once, when it is needed
	ignoresSoft bool
	hostless    bool // some existing node lacks the hostname label
	choice      Choice
	chosen      bool  // see [Problem.With]
	first       Facts // the facts of the first assignment
	memo        *memo
	memos       *once.Map[remembered, *memo]
}

// New reads the constraints of all classes and counts the running pods. It costs O(classes +
// running pods + for each selector the classes with one of its labels). The problem is nil if some
// class has constraints that no API server would have stored.
func New(in Input) (*Problem, []ClassError) {
	hostless := slices.ContainsFunc(in.Nodes, func(n Node) bool { return !n.Labels.Has(corev1.LabelHostname) })
	p := &Problem{
		classes: make([]class, len(in.Classes)), nodes: slices.Clone(in.Nodes), index: interpod.NewIndex(in.Aliases, in.Namespaces, hostless),
		values: &interpod.Values{}, ignoresSoft: in.IgnorePreferences, hostless: hostless, cells: func() []cell { return nil },
	}
	p.forget()
	var bad []ClassError
	for i := range in.Classes {
		p.classes[i].Class = &in.Classes[i]
		if in.Classes[i].Count == 0 && !in.Classes[i].Withheld {
			continue
		}
		if err := p.read(&p.classes[i]); err != nil {
			bad = append(bad, ClassError{i, err})
		}
	}
	if len(bad) > 0 {
		return nil, bad
	}
	p.keeps = p.readRunning(p.nodes)
	p.readLeaving(in.Leaving)
	for _, pod := range in.Daemons {
		p.daemons, p.daemonNames = append(p.daemons, p.index.Keeps(pod)), append(p.daemonNames, pod.Namespace+"/"+pod.Name)
	}
	p.makeGroups(in.Together)
	p.divide()
	p.countRunning(in.Together)
	p.placeLeaving()
	p.readDaemons(in.Daemons)
	p.readPeopled()
	for i := range p.classes {
		p.collectPreferences(&p.classes[i])
	}
	p.withinNode = p.actsWithinNode()
	p.gathered = sync.OnceValue(p.gathers)
	return p, nil
}

// Read returns the constraints between pods as package interpod has them: all constraints of each
// class, and the required anti-affinity of running pods by node, with leaving nodes last. The index
// may be extended; the constraints must not be modified.
func (p *Problem) Read() (index *interpod.Index, classes []interpod.Constraints, running [][]interpod.Constraints) {
	classes = make([]interpod.Constraints, len(p.classes))
	for i := range p.classes {
		classes[i] = p.classes[i].all
	}
	running = slices.Clip(p.keeps)
	for i := range p.leaving {
		running = append(running, p.leaving[i].pods)
	}
	return p.index, classes, running
}

// WithShapes returns the problem with other shapes. Their labels must include those of
// [Problem.Keys], of the classes' requirements and of [Problem.Sides]. Slices of offerings are not
// kept. The first look at what can be bought costs one text of labels for each offering.
func (p *Problem) WithShapes(shapes func(yield func(Shape) bool)) *Problem {
	out := *p
	out.cells = sync.OnceValue(func() []cell { return cellsOf(shapes) })
	out.forget()
	out.filters = slices.Clone(p.filters)
	for i := range out.filters {
		f := &out.filters[i]
		f.open = f.split && slices.ContainsFunc(out.cells(), func(c cell) bool { return !c.labels.Has(f.key) })
	}
	out.withinNode, out.gathered = out.actsWithinNode(), sync.OnceValue(out.gathers)
	return &out
}

// forget starts with nothing computed.
func (p *Problem) forget() {
	p.memos = &once.Map[remembered, *memo]{}
	p.memo = p.memoOf(Choice{})
}

// remembered is the parts of a [Choice] on which a memo depends.
type remembered struct {
	overNodes, gone bool
	leastOnHosts    int
	marks           string
}

func (p *Problem) memoOf(c Choice) *memo {
	marks := p.marks(c)
	return p.memos.Of(remembered{c.OverNodes, c.Gone, c.LeastOnHosts, marks}, func() *memo { return &memo{marks: marks} })
}

// Keys returns the label keys by which pods are counted, and those of node filters.
func (p *Problem) Keys() requirements.Keys {
	keys := requirements.KeysOf(p.index.Keys()...)
	for i := range p.filters {
		keys = keys.Union(p.filters[i].inside.Keys())
	}
	return keys
}

// Within returns the tags and limits of an existing node: those of the input, and those of
// constraints of running pods. They must not be modified.
func (p *Problem) Within(node int) ([]string, []Limit) {
	return p.nodes[node].Tags, p.nodes[node].Limits
}

// Certain returns the tags and limits that constraints between pods add to an existing node,
// without those of daemons that are still to start.
func (p *Problem) Certain(node int) ([]string, []Limit) {
	return p.nodes[node].certain.tags, p.nodes[node].certain.limits
}

// Daemon returns the tags and limits that a daemon, by position in [Input.Daemons], adds to a node
// to buy.
func (p *Problem) Daemon(i int) ([]string, []Limit) {
	tags, limits, _ := p.within(&Class{}, &p.daemons[i])
	return tags, limits
}

// Obstacle is a hard constraint between a class and other pods.
type Obstacle struct {
	// Key is the label by whose values the pods are counted.
	Key string
	// Text says it in words.
	Text string
	// NeedsKey says that a node without the label cannot take the pod.
	NeedsKey bool
	// Others says that it is a spread of other pods, which leaves this pod its domains.
	Others bool
	// Idle says that there are too few pods to break it, so only NeedsKey matters.
	Idle bool
}

// Obstacles returns the hard constraints between pods of a class: spreads, ratios, terms of
// affinity, anti-affinity of other pods to it, and spreads of other pods that [Problem.gathers] finds.
// Those that no number of the pods breaks are left out, but for their label.
func (p *Problem) Obstacles(class int) []Obstacle {
	var out []Obstacle
	c := &p.classes[class]
	alone := func(group int32) int32 { // how many pods of the group there are; many if some run
		n := int32(0)
		if p.peopled[group] {
			n = math.MaxInt32
		}
		for _, m := range p.groups[group].members {
			n = int32(min(math.MaxInt32, int64(n)+int64(p.classes[m].Count)))
		}
		return n
	}
	for _, sp := range c.all.Spreads {
		if sp.Hard {
			o := p.obstacle(sp.Group, true, "spread of %s over %s with skew %d", sp.MaxSkew)
			o.Idle = sp.MinDomains <= 1 && alone(sp.Group) <= sp.MaxSkew
			if sp.MinDomains > 1 {
				o.Text += fmt.Sprintf(" and minDomains %d", sp.MinDomains)
			}
			out = append(out, o)
		}
	}
	for _, g := range c.all.Ratios {
		out = append(out, Obstacle{Key: p.groups[g].key, Text: "ratio " + p.index.Groups()[g].Ratio, NeedsKey: true})
	}
	for _, t := range c.all.Terms {
		switch {
		case t.Hard && t.Anti && t.Self && alone(t.Group) <= 1: // there is no other pod
		case t.Hard && t.Anti:
			out = append(out, p.obstacle(t.Group, false, "anti-affinity to %s by %s"))
		case t.Hard && !p.populated(t.Group):
			out = append(out, p.obstacle(t.Group, true, "affinity to %s by %s, but there is no such pod"))
		case t.Hard:
			out = append(out, p.obstacle(t.Group, true, "affinity to %s by %s"))
		}
	}
	for _, g := range c.all.MemberOf {
		switch {
		case p.kept[g]:
			out = append(out, p.obstacle(g, false, "running pods that keep away from %s by %s"))
		case p.keptAwayFrom(class, g):
			out = append(out, p.obstacle(g, false, "other pods that keep away from %s by %s"))
		}
		for i, d := range p.daemons {
			if slices.ContainsFunc(d.Terms, func(t interpod.Term) bool { return t.Hard && t.Anti && t.Group == g }) {
				out = append(out, p.obstacle(g, false, "the pods of DaemonSet "+p.daemonNames[i]+", which keep away from %s by %s"))
			}
		}
	}
	for _, sp := range p.gathered() {
		if !slices.ContainsFunc(c.all.Spreads, func(own interpod.Spread) bool { return own.Group == sp.Group }) {
			o := p.obstacle(sp.Group, false, "spread of %s over %s with skew %d, "+sp.why, sp.MaxSkew)
			o.Others = true
			out = append(out, o)
		}
	}
	return out
}

// gathered is a spread that a node for other pods may break.
type gathered struct {
	interpod.Spread
	why string
}

// gathers returns the hard spreads, each group once, that break as soon as another domain has a node:
// their pods are more than the skew, and affinity has them together in one domain of the same label,
// or domains count although no node there takes the pods.
func (p *Problem) gathers() (out []gathered) {
	for i := range p.classes {
		c := &p.classes[i]
		for _, sp := range c.all.Spreads {
			key := p.groups[sp.Group].key
			if !sp.Hard || c.Count <= int(sp.MaxSkew) || slices.ContainsFunc(out, func(other gathered) bool { return other.Group == sp.Group }) {
				continue
			}
			switch together := func(t interpod.Term) bool { return t.Hard && !t.Anti && p.groups[t.Group].key == key }; {
			case slices.ContainsFunc(c.all.Terms, together):
				out = append(out, gathered{sp, "whose pods must be together"})
			case !p.groups[sp.Group].hostname && p.countsMore(i, sp.Group):
				out = append(out, gathered{sp, "which counts nodes where its pods may not go"})
			}
		}
	}
	return out
}

// countsMore reports whether a spread of the class counts a domain that takes none of its pods.
func (p *Problem) countsMore(class int, group int32) bool {
	rc := p.relaxed(class, len(p.classes[class].soft))
	at := slices.IndexFunc(rc.keys, func(k key) bool { return k.filter < 0 && k.id == p.groups[group].keyID })
	return at >= 0 && slices.ContainsFunc(p.universe(group, nil), func(v string) bool {
		return !slices.ContainsFunc(rc.domains, func(d Domain) bool { return d.Values[at] == v })
	})
}

// obstacle formats the group's pods, its key and the arguments.
func (p *Problem) obstacle(group int32, needsKey bool, format string, args ...any) Obstacle {
	g := &p.groups[group]
	return Obstacle{Key: g.key, Text: fmt.Sprintf(format, append([]any{g.what, g.key}, args...)...), NeedsKey: needsKey}
}

// populated reports whether some pod is in the group: a pending one, a running one, or one of a
// DaemonSet.
func (p *Problem) populated(group int32) bool {
	return p.peopled[group] || len(p.groups[group].members) > 0
}

// readPeopled finds the groups that a running pod is in, or one of a DaemonSet.
func (p *Problem) readPeopled() {
	p.peopled = make([]bool, len(p.groups))
	mark := func(list []interpod.Constraints) {
		for i := range list {
			for _, g := range list[i].MemberOf {
				p.peopled[g] = true
			}
		}
	}
	mark(p.daemons)
	for _, pods := range p.keeps {
		mark(pods)
	}
	for i := range p.leaving {
		mark(p.leaving[i].pods)
	}
}

// keptAwayFrom reports whether another class has required anti-affinity to the group.
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

// ClassError is an error in the constraints of a class, by position in the input.
type ClassError struct {
	Class int
	Err   error
}
