package scheduling

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/internal/admission"
	"github.com/joinery-sdk/joinery/scheduling/internal/exclusion"
	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/market"
	"github.com/joinery-sdk/joinery/scheduling/internal/once"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/source"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
	"github.com/joinery-sdk/joinery/scheduling/internal/volume"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Problem is a snapshot compiled to classes, shapes and existing nodes, with integers for the
// packer. It is immutable and safe for concurrent use. [Problem.Solve] packs it, round by round.
type Problem struct {
	// Resources are the dimensions of all vectors: cpu, memory, pods, then by name the others that
	// pods and daemons request. All amounts are in the units of package resources.
	Resources []corev1.ResourceName
	// Pools are the pools of the snapshot that can grow, in the order of [nodepool.Compare].
	Pools []PoolState
	// Shapes are what can be bought: the instance types of each pool. A type has several shapes if
	// its nodes can differ in the DaemonSets that run there or in the quotas that count them.
	Shapes []Shape
	// Existing are the existing nodes that take pods, in the order in which the packer fills them.
	Existing []ExistingNode
	// Budgets are what the CapacityQuotas still allow, sorted by quota name, then resource name.
	Budgets []capacityquota.Budget
	// Classes are the pending pods to plan, grouped, in the order of their first pods.
	Classes []*Class
	// Ignored are the pending pods that are not planned, in the order of their names.
	Ignored []Ignored
	// Notes are remarks for users, for example about nodes that cannot hold their daemons.
	Notes []string

	snapshot    *Snapshot
	options     Options
	members     []member // the nodes of the cluster
	quotas      capacityquota.Set
	moved       map[string]int // pods planned elsewhere, by the node that is being removed
	leaving     []leavingNode
	staying     map[string][]*corev1.Pod        // pods on leaving nodes, by node
	successor   map[*corev1.Pod]*corev1.Pod     // of those pods, the ones planned elsewhere
	origin      map[*corev1.Pod]topology.Origin // of successors: indexes into leaving and its pods
	taints      *taints.Sets
	daemons     []*daemon
	volumes     *volume.Index
	admission   admission.Cluster
	topology    *topology.Problem
	sharing     []volume.SharedClaim
	verifier    *verifier
	aliases     requirements.Aliases   // keys that the agents of nodes to buy set beside others
	shapeLabels func() *labelSets      // computed once, by the first explanation
	market      func() *market.Market  // what is for sale; computed once
	sales       []func() []market.Sale // the same, by class
	own         []func() float64       // by class, see PodPrice; computed once
}

// PoolState is a pool and what it may still buy within its limits.
type PoolState struct {
	Pool
	Set       requirements.Set // the pool's requirements, labels and name
	MinValues map[string]int   // those of the pool that some node may fail to meet
	// Limited are the resources that the pool limits; Left is how much of each it may still buy.
	Limited []corev1.ResourceName
	Left    []int64
	// NodesLeft is how many nodes may still be bought; negative means any number.
	NodesLeft int
	// Over and NodesOver are the use beyond limits. Nodes that are given back reduce them first.
	Over      []int64
	NodesOver int

	taintSet   int
	aliases    requirements.Aliases
	features   map[string]string                     // see featuresOf
	table      []typeRow                             // by type
	known      func() map[string]map[string]bool     // see exclusion.Known; computed once, by the first explanation
	exclusions *once.Map[string, *exclusion.Ranking] // see Problem.exclusions
}

// Shape is an instance type as one pool offers it.
type Shape struct {
	// Pool is an index into Problem.Pools, and Type an index into the types of that pool.
	Pool, Type int
	// Free is, for each resource, allocatable less the requests of daemons. It may be negative.
	Free []int64
	// Usage is what a node counts against the pool's limits, in the order of PoolState.Limited.
	Usage []int64
	// Labels are the labels of type and pool that some pod asks about.
	Labels requirements.Set
	// Tags and Limits are those of daemons, such as host ports; see [Limit].
	Tags      []string
	Limits    []Limit
	Offerings []ShapeOffering

	daemons []int            // indexes into Problem.daemons
	part    requirements.Set // which of the pool's nodes, see [Problem.parts]; zero for all
}

// ShapeOffering is one way to buy a shape.
type ShapeOffering struct {
	// Index is the position of the offering in its instance type.
	Index  int
	Labels requirements.Set // the labels of the offering that some pod asks about
	// Price is in dollars an hour. Cost is what plans compare; see [Options.Cost].
	Price, Cost float64
	// Count is how many can be bought; 0 is any number. Offerings of a Reservation share one Count.
	Count       int
	Reservation string
	// Takes and Committed are of a commitment in money, in millionths of a dollar an hour: each node
	// takes so much of what is Committed, which all offerings of the Reservation share. Count is then
	// how many nodes of this offering alone it covers. 0 means that nodes are counted.
	Takes, Committed int
	// Usage is what a node counts against each of Problem.Budgets; nil means nothing.
	Usage []int64
}

// ExistingNode is a node of the cluster, or a node that was bought and has not joined yet.
type ExistingNode struct {
	Node *corev1.Node // the cluster's own object, or that of [NodeClaim.Node]
	// InFlight says that it has not joined; Starting, that it is not initialized yet, or reboots.
	InFlight, Starting bool
	// Free is allocatable minus the requests of running pods and of daemons still to start. Daemons
	// that a taken host port or anti-affinity excludes from the node do not count.
	Free []int64
	// Labels are the node's labels, its name and the features that its kubelet declares. The last
	// two have keys that are not valid label keys, such as [requirements.NodeNameKey].
	Labels requirements.Set
	// Taints are the lasting taints: temporary ones of the node's start are left out.
	Taints []corev1.Taint
	// DaemonSets are those still to start a pod there, as namespace/name.
	DaemonSets []string
	Tags       []string // those of running pods and daemons; see [Limit]
	Limits     []Limit  // likewise

	bare              []int64           // Free and what is kept for daemons
	labels            map[string]string // those of Labels, without the pseudo-labels of node filters
	running           []*corev1.Pod
	attached          []string        // volumes in use there
	ports             []hostport.Port // of what runs there
	expected, missing []int           // daemons still to start, and those of them that no taken port keeps away
}

// Limit has a Tag (a string) and Max (an int): while its pod is on a node, at most Max pods there
// may have the Tag, itself included. A tag is a mark that a pod brings, such as a host port.
type Limit = topology.Limit

// Compile reads the snapshot once. It costs O(pods + classes x labels + pools x types). The error
// is that of [Snapshot.Check] or of an option. A pod that cannot be read, such as one with node
// affinity Gt ["large"], is refused at [StagePod]; such a DaemonSet is left out, with a note.
func Compile(s Snapshot, opts *Options) (*Problem, error) {
	if err := errors.Join(s.Check(), opts.check()); err != nil {
		return nil, err
	}
	p := &Problem{
		snapshot: &s, taints: taints.New(), aliases: requirements.AgentAliases(),
		admission: admission.NewCluster(s.PriorityClasses, s.RuntimeClasses, s.LimitRanges),
		volumes: volume.NewIndex(volume.Objects{
			Persistent: s.PersistentVolumes, Claims: s.PersistentVolumeClaims, Classes: s.StorageClasses, CSINodes: s.CSINodes,
			Attachments: s.VolumeAttachments, Drivers: s.CSIDrivers, Capacities: s.CSIStorageCapacities,
		}),
	}
	if opts != nil {
		p.options = *opts
	}
	if a := p.options.Aliases; a != nil {
		p.aliases = *a
	}
	p.members = s.members(p.aliases)
	p.quotas = capacityquota.Compile(s.Quotas)
	p.Budgets = budgetsOf(p.quotas, p.members)
	pending, running := p.sortOut()
	p.compileClasses(pending, running)
	p.sharing = p.assignVolumes(running)
	shared := slices.DeleteFunc(slices.Clone(p.sharing), func(s volume.SharedClaim) bool {
		return len(s.Consumers) == 1 && len(p.Classes[s.Consumers[0]].Pods) == 1
	})
	p.compileDaemons()
	p.compileResources()
	p.compilePools()
	p.compileExisting(running)
	p.leaving = p.leavingNodes()
	p.putInOrder()
	sets := p.sets(shared)
	if err := p.compileTopology(sets); err != nil {
		return nil, err
	}
	if err := p.compileShapes(p.mentioned()); err != nil {
		return nil, err
	}
	p.topology = p.topology.WithShapes(p.forTopology)
	p.shapeLabels, p.market = sync.OnceValue(p.labelSets), sync.OnceValue(p.newMarket)
	for i, c := range p.Classes {
		p.own = append(p.own, sync.OnceValue(func() float64 { return p.topology.Own(i) }))
		p.sales = append(p.sales, sync.OnceValue(func() []market.Sale { return p.market().Sales(c.bound, c.requests) }))
	}
	var err error
	p.verifier, err = p.newVerifier(sets)
	return p, err
}

// Snapshot returns the compiled snapshot; it must not be modified.
func (p *Problem) Snapshot() Snapshot { return *p.snapshot }

// Options returns a copy of the options that were given to [Compile].
func (p *Problem) Options() *Options {
	o := p.options
	return &o
}

// Sharing lists, for each unbound PersistentVolumeClaim, the indexes of the classes that use it.
// Their pods go to one zone.
func (p *Problem) Sharing() [][]int {
	out := make([][]int, len(p.sharing))
	for i := range p.sharing {
		out[i] = slices.Clone(p.sharing[i].Consumers)
	}
	return out
}

func (p *Problem) compileClasses(pending []*corev1.Pod, running map[string][]*corev1.Pod) {
	others := slices.Concat(slices.Collect(maps.Values(running))...) // their order does not matter
	groups := p.volumes.Alone(podclass.Group(pending, others, p.snapshot.DaemonSets))
	if p.options.Apart != nil {
		groups = podclass.Split(groups, p.options.Apart)
	}
	if together := p.options.Together; together != nil {
		groups = podclass.Split(groups, func(pod *corev1.Pod) string { set, _ := together(pod); return set })
	}
	if within := p.options.Within; within != nil {
		groups = podclass.Split(groups, func(pod *corev1.Pod) string { return string(requirements.AnyOf(within(pod)).AppendKey(nil)) })
	}
	if rank := p.options.Rank; rank != nil {
		groups = podclass.Split(groups, func(pod *corev1.Pod) string { return strconv.Itoa(rank(pod)) })
	}
	slices.SortStableFunc(groups, func(a, b []*corev1.Pod) int { return podclass.Compare(a[0], b[0]) })
	filled := make([]Class, len(groups))
	inParallel(len(groups), func(i int) {
		filled[i].Pods = groups[i]
		p.fill(&filled[i])
	})
	classes := p.constrained(filled)
	p.Classes = make([]*Class, 0, len(classes))
	for i := range classes {
		c := &classes[i]
		if c.Refusal == nil && p.optedOut(requirements.KubernetesAliases().Alternatives(c.Asked)) {
			for _, pod := range c.Pods {
				p.Ignored = append(p.Ignored, Ignored{Pod: pod, Why: "it opted out of every pool by " + nodepool.LabelKey + " DoesNotExist"})
			}
			continue
		}
		p.choose(c)
		p.Classes = append(p.Classes, c)
	}
	if p.options.Rank != nil {
		p.rank()
	}
	slices.SortStableFunc(p.Ignored, func(a, b Ignored) int { return podclass.Compare(a.Pod, b.Pod) })
	p.noteMissing()
}

// noteMissing adds a note for each priority or runtime class that pods name and the snapshot lacks.
func (p *Problem) noteMissing() {
	pods := map[string]int{}
	for _, c := range p.Classes {
		for _, what := range p.admission.Missing(c.Pods[0]) {
			pods[what] += len(c.Pods)
		}
	}
	for what, n := range pods { // notes are sorted in the end
		p.Notes = append(p.Notes, fmt.Sprintf("%s, named by %s, is not in the snapshot: pods are planned as if they named none; a cluster without it refuses them", what, many(n, "pod")))
	}
}

// assignVolumes restricts classes to nodes that reach their volumes, adds attached volumes to the
// requests, and refuses classes with unusable claims. It returns the claims of [Problem.Sharing].
func (p *Problem) assignVolumes(running map[string][]*corev1.Pod) []volume.SharedClaim {
	consumers := make([]volume.Consumer, len(p.Classes))
	rooms := sync.OnceValue(func() []room { return p.rooms(running) })
	for i, c := range p.Classes {
		fits := func(where requirements.Alternatives) bool { return p.fits(c, where, rooms()) }
		consumers[i] = volume.Consumer{Pod: c.Template, Count: len(c.Pods), Priority: c.priority, Required: c.Required, Fits: fits}
		if c.Refusal != nil { // its volumes are free for others
			consumers[i] = volume.Consumer{Pod: &corev1.Pod{}}
		}
	}
	var users []*corev1.Pod
	for _, node := range slices.Sorted(maps.Keys(running)) {
		users = append(users, running[node]...)
	}
	needs := p.volumes.Assign(users, consumers)
	for i, c := range p.Classes {
		need := &needs[i]
		if c.Refusal != nil {
			continue
		}
		if c.Required.IsImpossible() && need.Refusal == "" {
			c.Refusal = c.contradiction("its requirements on nodes", c.own)
			continue
		}
		if len(need.Attached) > 0 {
			c.Requests = resources.Add(c.Requests, need.Attached)
		}
		if c.bound = c.Required; !isAnything(need.Certain) {
			c.bound, c.unchosen = c.Required.Intersect(need.Certain), c.unchosen.Intersect(need.Certain)
		}
		c.scarce = need.Scarce && !c.bound.IsImpossible()
		if need.Refusal != "" {
			c.Refusal = &Reason{Stage: StagePod, Detail: need.Refusal + source.Blamed(c.own, c.sources, func(r requirements.Alternatives) string {
				alone := consumers[i]
				alone.Required = r
				return p.volumes.Assign(users, []volume.Consumer{alone})[0].Refusal
			})}
			continue
		}
		if !isAnything(need.Where) {
			c.Required = c.Required.Intersect(need.Where)
		}
		if c.Required.IsImpossible() {
			c.Refusal = c.contradiction("its volumes and its requirements on nodes", need.Where)
			c.scarce = !c.bound.IsImpossible()
		}
		if !isAnything(need.Where) {
			c.sources = append(slices.Clip(c.sources), source.Source{Who: "its volumes require", Nodes: need.Where, Otherwise: need.Certain})
		}
	}
	var attached []string
	for i := range p.members {
		attached = append(attached, p.volumes.Attached(p.members[i].node.Name, running[p.members[i].node.Name])...)
	}
	p.share(needs, attached)
	return volume.Shared(consumers, needs)
}

// share sets Class.shared: the volumes that more than one pod uses, running pods included.
func (p *Problem) share(needs []volume.Need, running []string) {
	users := map[string]int{}
	for _, v := range running {
		users[v]++
	}
	for i, c := range p.Classes {
		for _, a := range needs[i].Shareable {
			users[a.Volume] += len(c.Pods)
		}
	}
	for i, c := range p.Classes {
		for _, a := range needs[i].Shareable {
			if users[a.Volume] > 1 {
				c.shared = append(c.shared, a)
			}
		}
	}
}

// isAnything reports whether every node meets the requirements.
func isAnything(a requirements.Alternatives) bool { return a.Len() == 1 && a.At(0).IsAnything() }

// compileResources orders the resources: cpu, memory and pods, then the others by name.
func (p *Problem) compileResources() {
	p.Resources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}
	var others []corev1.ResourceName
	add := func(list corev1.ResourceList) {
		for name, q := range list {
			if q.Sign() != 0 && !slices.Contains(p.Resources, name) && !slices.Contains(others, name) {
				others = append(others, name)
			}
		}
	}
	for _, c := range p.Classes {
		add(c.Requests)
	}
	for _, d := range p.daemons {
		add(d.requests)
	}
	slices.Sort(others)
	p.Resources = append(p.Resources, others...)
	for _, c := range p.Classes {
		c.requests = p.vector(c.Requests)
	}
	for _, d := range p.daemons {
		d.vector = p.vector(d.requests)
	}
}

// mentioned returns the label keys of pods (narrowed or not), daemons, free volumes, counts, minValues.
func (p *Problem) mentioned() requirements.Keys {
	keys := p.topology.Keys().Union(p.volumes.FreeKeys())
	for _, c := range p.Classes {
		keys = keys.Union(c.Required.Keys()).Union(c.bound.Keys()).Union(c.unchosen.Keys())
		for _, pref := range c.Preferred {
			keys = keys.Union(pref.Nodes.Keys())
		}
	}
	for _, d := range p.daemons {
		keys = keys.Union(d.required.Keys())
	}
	for i := range p.Pools {
		keys = keys.Union(requirements.KeysOf(slices.Collect(maps.Keys(p.Pools[i].MinValues))...))
	}
	return keys
}

// compileTopology reads the constraints between pods, and counts the running ones.
func (p *Problem) compileTopology(sets []topology.Together) error {
	in := topology.Input{
		Classes: make([]topology.Class, len(p.Classes)), Nodes: make([]topology.Node, len(p.Existing)), Leaving: p.leavingForTopology(),
		Namespaces: interpod.Namespaces(p.snapshot.Pods, p.snapshot.DaemonSets, p.snapshot.Namespaces), IgnorePreferences: p.options.IgnorePreferences,
	}
	for i, c := range p.Classes {
		to := &in.Classes[i]
		*to = topology.Class{
			Pod: c.Template, Count: len(c.Pods), Priority: c.priority, Requests: c.requests, Asked: c.Asked, Required: c.Required, Preferred: c.Preferred,
			From: p.origins(c),
		}
		if c.Refusal != nil {
			to.Count, to.Withheld = 0, c.scarce
		}
		to.Tolerated, to.Untainted = p.taints.Tolerated(c.Template.Spec.Tolerations)
		to.Tags, to.Limits = topology.PortTags(c.ports)
		for _, a := range c.shared {
			to.Shared = append(to.Shared, topology.Shared{Name: a.Volume, Dimension: slices.Index(p.Resources, a.Limit)})
		}
	}
	for i := range p.Existing {
		r := &p.Existing[i]
		running := admission.WithAllLabelKeys(r.running)
		for _, d := range r.missing {
			running = append(running, p.daemons[d].pod)
		}
		in.Nodes[i] = topology.Node{Labels: r.Labels, Free: r.Free, Tags: r.Tags, Limits: r.Limits, Running: running, Starting: len(r.missing), Shared: r.attached}
	}
	for _, d := range p.daemons {
		in.Daemons = append(in.Daemons, d.pod)
	}
	in.Together = sets
	var bad []topology.ClassError
	p.topology, bad = topology.New(in)
	var errs []error
	for _, c := range bad {
		errs = append(errs, &InvalidError{What: "pod " + p.Classes[c.Class].Name(), Err: c.Err})
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for i := range p.Existing {
		r := &p.Existing[i]
		r.Tags, r.Limits = p.topology.Within(i)
		r.Labels = with(r.Labels, p.topology.Sides(r.Labels, nil))
	}
	return nil
}

// with adds the pseudo-labels of node filters to labels; see [topology.Problem.Sides].
func with(labels, sides requirements.Set) requirements.Set {
	out, err := labels.Intersect(sides)
	if err != nil { // no label is a pseudo-label
		panic(err)
	}
	return out
}

// bought returns the bins with pods.
func (s *state) bought() []OutcomeBin {
	var out []OutcomeBin
	for b, used := range usedBy(s.bound, len(s.last.Bins)) {
		if used {
			out = append(out, s.last.Bins[b])
		}
	}
	return out
}

// poolOf returns the name of a node's pool, under the current label or that of Provisioners.
func poolOf(labels map[string]string) string {
	return cmp.Or(labels[nodepool.LabelKey], labels[nodepool.ProvisionerLabelKey])
}
