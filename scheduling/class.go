package scheduling

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling/internal/admission"
	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/nodefeature"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/podfault"
	"github.com/joinery-sdk/joinery/scheduling/internal/poolkeys"
	"github.com/joinery-sdk/joinery/scheduling/internal/source"
	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
	"github.com/joinery-sdk/joinery/scheduling/internal/volume"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Class is a set of pending pods that are equal in everything that affects placement. It must not
// be modified.
type Class struct {
	// Pods are the members, ordered by namespace and name; digits in names compare as numbers.
	Pods []*corev1.Pod
	// Template is one of the pods as an API server would have stored it.
	Template *corev1.Pod
	// Requests is what each pod takes, including its pod slot.
	Requests corev1.ResourceList
	// Required is what the node's labels must satisfy: Asked, and what node features, volumes,
	// [Options.Constraints] and [Options.Within] add.
	Required requirements.Alternatives
	// Asked is the pods' own node selector and affinity.
	Asked requirements.Alternatives
	// Preferred holds the soft terms of node affinity, heaviest first.
	Preferred []requirements.Preference
	// Refusal is set if no node at all can hold the pods, for example because a claim does not
	// exist.
	Refusal *Reason

	// bound is Required without the reach of the free volumes that the class was given, because
	// kube-scheduler may bind its claims to other volumes. A refused class is scarce if it lacks
	// volumes only because other classes were given them.
	bound  requirements.Alternatives
	scarce bool
	// unchosen is bound without Options.Within, so it holds for every plan of the pods.
	unchosen requirements.Alternatives

	own     requirements.Alternatives // what the manifest asks for, with node features
	sources []source.Source           // what else is in Required

	inOrder  []*corev1.Pod // see order; nil for Pods
	requests []int64       // by Problem.Resources
	priority int32
	ports    []hostport.Port
	shared   []volume.Attachment // volumes that several pods use, running ones included
}

// ComparePods orders pods by namespace, then by name. Digits compare as numbers, so web-2 is before
// web-10. It is meant for slices.SortFunc.
func ComparePods(a, b *corev1.Pod) int { return podclass.Compare(a, b) }

// smallFirst returns the classes by priority, and of each priority those first whose pods cost the
// least on nodes of their own, or request the least if nothing that holds them is for sale.
func (p *Problem) smallFirst() []int {
	out := make([]int, len(p.Classes))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, p.bySize)
	return out
}

// bySize compares classes in the order of smallFirst.
func (p *Problem) bySize(a, b int) int {
	return cmp.Or(cmp.Compare(p.Classes[b].priority, p.Classes[a].priority), cmp.Compare(p.own[a](), p.own[b]()), slices.Compare(p.Classes[a].requests, p.Classes[b].requests))
}

// largeFirst compares classes by priority, and then by requests.
func (p *Problem) largeFirst(a, b int) int {
	x, y := p.Classes[a], p.Classes[b]
	return cmp.Or(cmp.Compare(y.priority, x.priority), slices.Compare(y.requests, x.requests))
}

// urgency orders items for when not all of them can be placed.
type urgency struct {
	tied     int // 1 if it fits only one node
	blame    int
	priority int32
}

func (u urgency) compare(v urgency) int {
	return cmp.Or(cmp.Compare(u.tied, v.tied), cmp.Compare(u.blame, v.blame), cmp.Compare(u.priority, v.priority))
}

// urgency returns the urgency of a class's pods. In the first attempt all are equal, since usually
// everything is placed.
func (s *state) urgency(class int) urgency {
	if s.search.attempt == 0 {
		return urgency{}
	}
	return urgency{blame: s.assigned.Facts.Blamed(class), priority: s.p.Classes[class].priority}
}

// prioritize sets the priority of each item to the rank of its urgency.
func prioritize(items []Item, of []urgency) {
	levels := slices.Clone(of)
	slices.SortFunc(levels, urgency.compare)
	levels = slices.Compact(levels)
	for i := range items {
		at, _ := slices.BinarySearchFunc(levels, of[i], urgency.compare)
		items[i].Priority = int32(at)
	}
}

// hasPriorities reports whether the classes have different priorities.
func (p *Problem) hasPriorities() bool {
	return slices.ContainsFunc(p.Classes, func(c *Class) bool { return c.priority != p.Classes[0].priority })
}

// Name returns namespace and name of the first pod. It identifies the class.
func (c *Class) Name() string { return podclass.Name(c.Pods[0]) }

// fill reads the constraints of the class from its first pod. A faulty pod is refused. But
// faulty terms of required node affinity are ignored if another term can be met, as in
// kube-scheduler.
func (p *Problem) fill(c *Class) {
	c.Template = p.admission.Pod(c.Pods[0])
	c.Requests = resources.OfPod(c.Template, false)
	spec := &c.Template.Spec
	asked, err := kube.FromPod(spec)
	c.Asked = asked.Required
	c.own, c.Preferred = withFeatures(c.Asked, spec), asked.Preferred
	c.Required = c.own
	if spec.Priority != nil {
		c.priority = *spec.Priority
	}
	c.ports = hostport.Of(c.Template)

	nodes := nodeAffinity(spec)
	if err != nil && !asked.Required.IsImpossible() {
		nodes = &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: nodes.PreferredDuringSchedulingIgnoredDuringExecution}
	}
	c.Refusal = p.refusalOf(c.Pods[0], c.Template, nodes)
}

// refused reports the pods of a snapshot that an API server refuses to store.
func (v *checks) refused(s *Snapshot) {
	cluster := admission.NewCluster(s.PriorityClasses, s.RuntimeClasses, s.LimitRanges)
	for _, p := range s.Pods {
		if admission.Stored(p) {
			continue
		}
		for _, err := range podfault.Refused(p, cluster.Pod(p)) {
			v.Add("pod "+podclass.Name(p), "%w", err)
		}
	}
}

// nodeAffinity returns the node affinity of a pod; nil for none.
func nodeAffinity(s *corev1.PodSpec) *corev1.NodeAffinity {
	if s.Affinity == nil {
		return nil
	}
	return s.Affinity.NodeAffinity
}

// Ignored is a pending pod that is not planned, such as one of another scheduler, and why.
type Ignored struct {
	Pod *corev1.Pod
	Why string
	// Node is the node to which the pod is nominated and which keeps its capacity free. It is empty
	// for pods that nothing is kept for.
	Node string
}

// optedOut reports whether the pod excludes the nodes of every pool: one alternative excludes the
// label of pools, and no pool can meet any of the others. Users write this to keep pods away from
// provisioned nodes.
func (p *Problem) optedOut(required requirements.Alternatives) bool {
	absent := requirements.DoesNotExist(nodepool.LabelKey)
	out := false
	for s := range required.All() {
		if s.Has(nodepool.LabelKey) && s.Get(nodepool.LabelKey).Subset(absent) {
			out = true
		}
	}
	if !out {
		return false
	}
	for s := range required.All() {
		if s.Has(nodepool.LabelKey) && s.Get(nodepool.LabelKey).Subset(absent) {
			continue
		}
		if slices.ContainsFunc(p.snapshot.Pools, func(pool Pool) bool { return p.mayMeet(&pool, s) }) {
			return false
		}
	}
	return true
}

// mayMeet reports whether a node of the pool could have the labels, given the keys that the pool,
// its types and its agents set.
func (p *Problem) mayMeet(pool *Pool, s requirements.Set) bool {
	set, err := p.asked(pool)
	if err != nil || pool.IsStatic() || !set.Overlaps(s) {
		return false
	}
	agents := registered(pool, p.aliases, set)
	for r := range s.All() {
		if !r.AllowsAbsent() && !agents.Has(r.Key()) && !poolkeys.Known(pool.Types, p.aliases.Key(r.Key())) {
			return false
		}
	}
	return true
}

// sortOut splits the pods into pending and running ones, and lists the ignored ones. A pod on a
// node that is being removed is pending if its controller creates it again elsewhere. Otherwise it
// is dropped.
func (p *Problem) sortOut() (pending []*corev1.Pod, running map[string][]*corev1.Pod) {
	running = map[string][]*corev1.Pod{}
	goes, at := map[string]bool{}, map[string]string{}
	for i := range p.members { // a plan names a node by its claim until the node joins
		at[p.members[i].claim] = p.members[i].node.Name
	}
	for i := range p.members {
		m := &p.members[i]
		goes[m.node.Name], at[m.node.Name] = m.leaving, m.node.Name
	}
	p.moved, p.staying, p.successor = map[string]int{}, map[string][]*corev1.Pod{}, map[*corev1.Pod]*corev1.Pod{}
	var nominated []*corev1.Pod
	ending := map[string]bool{} // namespaces
	for _, n := range p.snapshot.Namespaces {
		ending[n.Name] = n.DeletionTimestamp != nil || n.Status.Phase == corev1.NamespaceTerminating
	}
	notOurs := func(pod *corev1.Pod) string {
		if ending[podclass.Namespace(pod)] {
			return fmt.Sprintf("its namespace %q is being deleted, and the pod with it", podclass.Namespace(pod))
		}
		return podclass.NotOurs(pod)
	}
	for _, pod := range p.snapshot.Pods {
		switch {
		case podclass.Ended(pod):
		case goes[pod.Spec.NodeName]:
			next := *p.admission.Anew(pod) // replicas keep sharing memory
			next.UID, next.Spec.NodeName, next.DeletionTimestamp = podclass.MadeAnew, "", nil
			if podclass.Moves(pod) && notOurs(&next) == "" && p.snapshot.Staying[podclass.Name(pod)] == "" {
				p.moved[pod.Spec.NodeName]++
				pending = append(pending, &next)
				p.successor[pod] = &next
			}
			p.staying[pod.Spec.NodeName] = append(p.staying[pod.Spec.NodeName], pod)
		case pod.Spec.NodeName != "":
			running[pod.Spec.NodeName] = append(running[pod.Spec.NodeName], pod)
		case pod.DeletionTimestamp != nil:
		case pod.Status.NominatedNodeName != "" && notOurs(pod) == "" && at[pod.Status.NominatedNodeName] != "" && !goes[at[pod.Status.NominatedNodeName]]:
			nominated = append(nominated, pod)
		default:
			if why := notOurs(pod); why != "" {
				p.Ignored = append(p.Ignored, Ignored{Pod: pod, Why: why})
				continue
			}
			pending = append(pending, pod)
		}
	}
	var highest int32 = math.MinInt32
	for _, pod := range pending {
		highest = max(highest, p.priority(pod))
	}
	for _, pod := range nominated {
		if p.priority(pod) < highest { // kube-scheduler may give its place to a pod of higher priority, so plan both
			pending = append(pending, pod)
			continue
		}
		node := at[pod.Status.NominatedNodeName]
		running[node] = append(running[node], pod)
		p.Ignored = append(p.Ignored, Ignored{Pod: pod, Why: fmt.Sprintf("nominated to node %q, which keeps its capacity free", node), Node: node})
	}
	return pending, running
}

// priority returns the priority of a pod as an API server stores it.
func (p *Problem) priority(pod *corev1.Pod) int32 {
	value := pod.Spec.Priority
	if value == nil {
		value = p.admission.Pod(pod).Spec.Priority
	}
	if value == nil {
		return 0
	}
	return *value
}

// Constraint is a rule of the caller about which labels the nodes of a pod may have. It may read
// anything of a pod: pods with different answers are put into different classes. It cannot say how
// many pods share a node, nor prefer one node to another; write such rules as affinity on the
// snapshot's pods.
type Constraint interface {
	// Narrow returns the nodes that the pod may have, out of the argument required, or a reason to
	// refuse the pod. It is called once for each pending pod, as an API server stores it, and must
	// not modify the pod. required is what the pod's manifest asks for, narrowed by earlier
	// constraints. Nodes of the answer that are not in required do not count; a constraint that
	// does not restrict the pod returns required. The zero value, which has no nodes, refuses the
	// pod. If the constraint is a [fmt.Stringer], reasons that depend on it quote that text.
	Narrow(pod *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *Reason)
}

// Narrowed applies the constraints to a pod one after the other. It returns what they leave of
// required, or the first reason to refuse the pod. o must not be nil.
func (o *Options) Narrowed(pod *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *Reason) {
	left, _, refusal := o.narrowed(pod, required)
	return left, refusal
}

// narrowed is Narrowed. It also returns the constraints that narrow the pod.
func (o *Options) narrowed(pod *corev1.Pod, required requirements.Alternatives) (_ requirements.Alternatives, by []source.Source, _ *Reason) {
	own := required
	for _, c := range o.Constraints {
		if c == nil {
			continue
		}
		name, text := "a constraint of the caller", ""
		if n, ok := c.(fmt.Stringer); ok {
			name, text = n.String(), n.String()+": "
		}
		answer, refusal := c.Narrow(pod, required)
		if refusal != nil {
			told := *refusal
			if told.Detail = text + told.Detail; refusal.Detail == "" { // a refusal must have a text
				told.Detail = name + " refuses it"
			}
			return required, by, &told
		}
		within := answer.Intersect(required)
		if within.IsImpossible() && !required.IsImpossible() {
			told := fmt.Sprintf("%s allows nodes with %s, but the pod requires %s", name, answer, required)
			if answer.IsImpossible() { // it may have narrowed the argument itself
				told = fmt.Sprintf("%s allows none of the nodes that the pod may have: %s", name, required)
			}
			told += source.Blamed(own, by, func(r requirements.Alternatives) string {
				if answer.IsImpossible() { // what it would answer to r is unknown, so any other r may matter
					return r.String()
				}
				return fmt.Sprint(answer.Intersect(r).IsImpossible())
			})
			return required, by, &Reason{Stage: StagePod, Detail: told}
		}
		if !within.Equal(required) {
			by = append(by, source.Added(name+" requires", required, answer))
		}
		required = within
	}
	return required, by, nil
}

// constrained returns the classes, split by the answers of [Options.Constraints] to each pod, in
// the order of their first pods.
func (p *Problem) constrained(classes []Class) []Class {
	if len(p.options.Constraints) == 0 {
		return classes
	}
	var out []Class
	for i := range classes {
		c := &classes[i]
		if c.Refusal != nil {
			out = append(out, *c)
			continue
		}
		at := map[string]int{}
		for _, pod := range c.Pods {
			required, by, refusal := p.options.narrowed(p.admission.Pod(pod), c.Required)
			text := required.AppendKey(nil)
			for _, s := range by {
				text = append(append(text, '|'), s.Who...)
			}
			if refusal != nil {
				text = fmt.Append(text, "|", refusal.Stage, "|", refusal.Detail)
			}
			key := string(text)
			k, ok := at[key]
			if !ok {
				k, at[key] = len(out), len(out)
				part := *c
				part.Pods, part.Required, part.sources, part.Refusal = nil, required, by, refusal
				out = append(out, part)
			}
			out[k].Pods = append(out[k].Pods, pod)
		}
	}
	for i := range out {
		out[i].Template = p.admission.Pod(out[i].Pods[0])
	}
	slices.SortStableFunc(out, func(a, b Class) int { return ComparePods(a.Pods[0], b.Pods[0]) })
	return out
}

// choose narrows a class to the nodes of [Options.Within].
func (p *Problem) choose(c *Class) {
	c.unchosen = c.Required
	if p.options.Within == nil {
		return
	}
	if chosen := p.options.Within(c.Pods[0]); !chosen.IsAnything() {
		c.sources = append(slices.Clip(c.sources), source.Added("the caller's choice of nodes requires", c.Required, requirements.AnyOf(chosen)))
		c.Required = c.Required.Intersect(requirements.AnyOf(chosen))
	}
}

// rank replaces the priority of each class by its position in the order of priority and rank. From
// then on only the order matters.
func (p *Problem) rank() {
	of := func(c *Class) [2]int { return [2]int{int(c.priority), p.options.Rank(c.Pods[0])} }
	var all [][2]int
	for _, c := range p.Classes {
		all = append(all, of(c))
	}
	compare := func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }
	slices.SortFunc(all, compare)
	all = slices.Compact(all)
	for _, c := range p.Classes {
		at, _ := slices.BinarySearchFunc(all, of(c), compare)
		c.priority = int32(at)
	}
}

// sets returns the classes that must be together. These are the users of each unbound claim that
// several pods share, since its volume is made in one zone, and the sets of [Options.Together].
func (p *Problem) sets(shared []volume.SharedClaim) []topology.Together {
	var out []topology.Together
	for _, s := range shared {
		out = append(out, topology.Together{Name: fmt.Sprintf("pods with claim %s", s.Claim), Key: corev1.LabelTopologyZone, Classes: s.Consumers})
	}
	together := p.options.Together
	if together == nil {
		return out
	}
	at := map[string]int{}
	for k, c := range p.Classes {
		set, key := together(c.Pods[0])
		if set == "" || key == "" {
			continue
		}
		i, ok := at[set]
		if !ok {
			i, at[set] = len(out), len(out)
			out = append(out, topology.Together{Name: set, Key: key, Running: func(pod *corev1.Pod) bool {
				own, _ := together(pod)
				return own == set && pod.DeletionTimestamp == nil
			}})
		}
		out[i].Classes = append(out[i].Classes, k)
	}
	return out
}

// pending returns how many pods there are in all classes.
func (p *Problem) pending() int {
	n := 0
	for _, c := range p.Classes {
		n += len(c.Pods)
	}
	return n
}

// attempts returns how many attempts a plan of so many pods may have beside the first plan.
func (d *decisions) attempts(pods int) int {
	return min(cmp.Or(d.base.options.Attempts, defaultAttempts), max(1, fewerPods/pods))
}

// wanted returns how many pods of the class are planned.
func (p *Problem) wanted(class int) int {
	return p.topology.Choice().Pods(class, len(p.Classes[class].Pods))
}

// unplaced returns the classes with unplaced pods that some node could hold.
func (s *state) unplaced() []int {
	var out []int
	for i, c := range s.p.Classes {
		if s.placed[i] < s.p.wanted(i) && c.Refusal == nil && s.p.topology.Holdable(i) {
			out = append(out, i)
		}
	}
	return out
}

// withFeatures narrows nodes to those that also declare the features that a pod needs.
func withFeatures(nodes requirements.Alternatives, pod *corev1.PodSpec) requirements.Alternatives {
	return nodes.Intersect(requirements.AnyOf(requirements.FromLabels(nodefeature.Labels(nodefeature.Needed(pod)))))
}
