package scheduling

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/once"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
	"github.com/joinery-sdk/joinery/scheduling/internal/volume"
)

// verifier binds the pods of a finished plan one by one on its concrete nodes, as kube-scheduler's
// filters would: by labels, taints, free capacity, ports, volumes and counts. It shares no reasoning
// with the planner. Pods that it refuses are unplaced. It is safe for concurrent use.
type verifier struct {
	p       *Problem
	order   func(a, b int) int // the order of classes with unplaced pods
	classes []bind.Class
	daemons []*bind.Class
	cluster *bind.Cluster  // with the pods on existing nodes
	nodes   []verifiedNode // existing ones
	leaving []verifiedLeaving
	claims  [][]string       // by class: those that no other pod may use meanwhile
	claimed map[string]int   // by such a claim, how many pods on leaving nodes use it
	sets    [][]int          // by class: the sets of pods that must be together
	keys    []string         // by set: the label that its nodes have in common
	claim   []bool           // by set: whether its pods share a claim, which needs no label of zones
	running map[int][]string // by set with running pods, its values
	volumes *volume.Binder
	late    [][]volume.LateClaim                // by class
	nominee map[int][]binding                   // by existing node: pods that are planned and nominated to it
	bought  *once.Map[place, map[string]string] // labels that must not be modified
	counted *once.Map[bool, *verifier]          // see counting
}

// verifiedNode is a node and what is on it.
type verifiedNode struct {
	bind.Node
	labels map[string]string // shared by nodes to buy that differ in the hostname only
	host   string            // that hostname, which no volume knows yet

	daemons []*bind.Class // on a node to buy: those that are counted
}

// own copies what binding a pod changes.
func (n *verifiedNode) own() {
	n.Free, n.Ports, n.Shared = slices.Clone(n.Free), slices.Clip(n.Ports), slices.Clip(n.Shared)
}

// value returns the value of a label.
func (n *verifiedNode) value(key string) string {
	if key == corev1.LabelHostname {
		return n.host
	}
	return n.labels[key]
}

func (p *Problem) newVerifier(sets []topology.Together) (*verifier, error) {
	index, read, running := p.topology.Read()
	v := &verifier{
		p: p, order: p.largeFirst, classes: make([]bind.Class, len(p.Classes)), sets: make([][]int, len(p.Classes)),
		claims: make([][]string, len(p.Classes)), claimed: map[string]int{}, running: map[int][]string{}, volumes: p.volumes.NewBinder(), late: make([][]volume.LateClaim, len(p.Classes)), nominee: map[int][]binding{}, bought: &once.Map[place, map[string]string]{}, counted: &once.Map[bool, *verifier]{},
	}
	groups := len(index.Groups())
	for _, d := range p.daemons {
		all, err := index.Read(d.pod, d.required)
		if err != nil {
			return nil, fmt.Errorf("scheduling: DaemonSet %s: %w", podclass.Name(d.pod), err)
		}
		own := &bind.Class{Need: d.vector, Ports: d.ports}
		own.Constraints, _ = all.Split()
		v.daemons = append(v.daemons, own)
	}
	for i, d := range p.daemons {
		index.Join(&v.daemons[i].Constraints, d.pod)
	}
	more := len(index.Groups()) > groups // daemons added groups
	at := map[string]int{}               // existing nodes, also by their claims
	for i := range p.Existing {
		at[p.Existing[i].Node.Name] = i
	}
	for i := range p.members {
		if node, ok := at[p.members[i].node.Name]; ok && p.members[i].claim != "" {
			at[p.members[i].claim] = node
		}
	}
	var asked requirements.Keys
	for i, c := range p.Classes {
		own := &v.classes[i]
		*own = bind.Class{Number: i, Required: c.bound, Tolerations: c.Template.Spec.Tolerations, Need: c.requests, Ports: c.ports}
		own.Constraints, _ = read[i].Split()
		if more {
			own.MemberOf = index.MemberOf(c.Template)
		}
		for _, a := range c.shared {
			own.Shared = append(own.Shared, bind.Shared{Name: a.Volume, Resource: slices.Index(p.Resources, a.Limit)})
		}
		for _, pod := range c.Pods {
			if node, ok := at[pod.Status.NominatedNodeName]; ok {
				v.nominee[node] = append(v.nominee[node], binding{pod: pod, class: i})
			}
		}
		asked = asked.Union(c.bound.Keys())
		v.late[i] = v.volumes.Late(p.volumes, c.Template)
		if len(p.leaving) > 0 {
			v.claims[i] = p.volumes.Exclusive(c.Template)
		}
	}
	v.cluster = bind.New(index, asked)
	v.nodes = make([]verifiedNode, len(p.Existing))
	for i := range p.Existing {
		r, n := &p.Existing[i], &v.nodes[i]
		n.Free, n.Shared, n.Ports, n.labels, n.host = r.Free, r.attached, slices.Clone(r.ports), r.labels, r.labels[corev1.LabelHostname]
		v.cluster.Describe(&n.Node, r.labels, r.Taints)
	}
	v.cluster.Start()
	late := make([][]*bind.Class, len(v.nodes)) // pods that may or may not be there
	for i := range v.nodes {
		n := &v.nodes[i].Node
		for k, pod := range p.Existing[i].running {
			c := bind.Class{Constraints: running[i][k]}
			if more {
				c.MemberOf = index.MemberOf(pod)
			}
			if pod.Spec.NodeName == "" { // it is nominated
				late[i] = append(late[i], &c)
				continue
			}
			v.cluster.Count(&c, n, pod.DeletionTimestamp != nil, 1)
		}
		v.cluster.CountNode(n, 1)
	}
	memberOf := func(pod *corev1.Pod) []int32 { return index.MemberOf(pod) }
	if !more {
		memberOf = nil
	}
	for i := range v.nodes { // before leaving nodes and other daemons count: these may not be there
		copy(p.Existing[i].Free, v.cluster.Unreserved(v.daemonsAt(p.Existing[i].expected), &v.nodes[i].Node))
	}
	v.leave(running[len(v.nodes):], memberOf)
	for i := range v.nodes {
		_, more := v.cluster.StartDaemons(v.daemonsAt(p.Existing[i].expected), &v.nodes[i].Node)
		late[i] = append(late[i], more...)
	}
	v.cluster.CountLate(late, func(i int) *bind.Node { return &v.nodes[i].Node })
	for k, set := range sets {
		v.keys, v.claim = append(v.keys, set.Key), append(v.claim, set.Running == nil)
		for _, i := range set.Classes {
			v.sets[i] = append(v.sets[i], k)
		}
		for i := range p.Existing {
			if set.Running != nil && slices.ContainsFunc(p.Existing[i].running, set.Running) {
				v.running[k] = append(v.running[k], v.nodes[i].value(set.Key))
			}
		}
	}
	return v, nil
}

func (v *verifier) daemonsAt(list []int) []*bind.Class {
	out := make([]*bind.Class, len(list))
	for i, d := range list {
		out[i] = v.daemons[d]
	}
	return out
}

// verification is one run of the verifier.
type verification struct {
	*verifier
	cluster *bind.Cluster
	volumes *volume.Binder
	nodes   []verifiedNode // existing ones, then bins
	shared  bool           // nodes have things in common with another run
	claimed map[string]int
	places  map[int]string           // by set, where its pods are
	gone    int                      // how many leaving nodes are gone
	seated  map[*corev1.Pod]bool     // nominated pods that are bound
	ended   map[topology.Origin]bool // pods of leaving nodes that ended because their successors are bound
	why     map[int]bind.Refusal     // by class, of its first refused pod
	labels  map[place]map[string]string
}

// verify binds pods in their order, then the refused ones again, with the leaving nodes there. It
// binds the pods that are still refused as one leaving node after the other goes. It returns the
// bindings that kube-scheduler accepts in that order, followed by those of [verification.complete],
// and why the first refused pod of each class is refused. Bins without pods are not bought, so they
// are not counted as nodes. It costs O(pods x constraints of a pod).
func (v *verifier) verify(bins []OutcomeBin, order []binding) ([]binding, map[int]bind.Refusal) {
	for {
		run := v.start(bins, usedBy(order, len(bins)))
		held := run.bind(order)
		if len(held) < len(order) && len(run.leaving) > 0 {
			held = run.outlast(held, order, run.open(bins))
		}
		used := usedBy(held, len(bins))
		empty := func(b binding) bool { return b.at.bin >= 0 && !used[b.at.bin] }
		if !slices.ContainsFunc(order, empty) {
			if len(run.leaving) > 0 {
				held = run.outlast(held, nil, run.open(bins))
			}
			return run.complete(held, run.open(bins)), run.why
		}
		order = slices.DeleteFunc(slices.Clone(order), empty)
	}
}

// start returns the cluster with the used bins and their daemons.
func (v *verifier) start(bins []OutcomeBin, used []bool) *verification {
	run := &verification{
		verifier: v, cluster: v.cluster.Clone(), volumes: v.volumes.Clone(), nodes: slices.Grow(slices.Clone(v.nodes), len(bins))[:len(v.nodes)+len(bins)],
		places: map[int]string{}, why: map[int]bind.Refusal{}, labels: map[place]map[string]string{}, ended: map[topology.Origin]bool{}, seated: map[*corev1.Pod]bool{}, claimed: maps.Clone(v.claimed),
	}
	for i := range v.nodes {
		run.nodes[i].own()
	}
	for b := range bins {
		if used[b] {
			run.nodes[len(v.nodes)+b] = run.register(bins[b], b)
		}
	}
	for b := range bins {
		if used[b] {
			n := &run.nodes[len(v.nodes)+b]
			n.daemons, _ = run.cluster.StartDaemons(v.daemonsAt(v.p.Shapes[bins[b].Shape].daemons), &n.Node)
		}
	}
	return run
}

// register counts the node of a bin, without its daemons.
func (r *verification) register(bin OutcomeBin, number int) verifiedNode {
	shape := &r.p.Shapes[bin.Shape]
	at := place{bin.Shape, bin.Offering, string(bin.Labels.AppendKey(nil))}
	labels, ok := r.labels[at]
	if !ok {
		labels = maps.Clone(r.bought.Of(at, func() map[string]string { return bin.labels(r.p) }))
		r.labels[at] = labels
	}
	labels[corev1.LabelHostname] = "new node " + strconv.Itoa(number)
	n := verifiedNode{labels: labels, host: labels[corev1.LabelHostname]}
	n.Free = slices.Clone(shape.Free)
	r.cluster.Describe(&n.Node, labels, r.p.Pools[shape.Pool].Taints)
	r.cluster.CountNode(&n.Node, 1)
	return n
}

func (r *verification) bind(order []binding) []binding {
	held := make([]binding, 0, len(order))
	for waiting := order; len(waiting) > 0; {
		var again []binding
		clear(r.why)
		for _, b := range waiting {
			why := r.place(b)
			if why.OK() {
				b.gone = r.gone
				held = append(held, b)
				continue
			}
			if _, known := r.why[b.class]; !known {
				r.why[b.class] = why
			}
			again = append(again, b)
		}
		if len(again) == len(waiting) {
			break
		}
		waiting = again
	}
	return held
}

// boundBy returns the pods of bindings.
func boundBy(held []binding) map[*corev1.Pod]bool {
	bound := make(map[*corev1.Pod]bool, len(held))
	for _, b := range held {
		bound[b.pod] = true
	}
	return bound
}

// complete places unplaced pods where kube-scheduler would: on existing nodes, then on bought bins,
// by priority, largest first. The planner can miss them for three reasons: its limits within a node
// do not depend on the binding order and are stricter, it counts a shared volume for each user, and
// it chooses domains before capacity is known.
func (r *verification) complete(held []binding, open []seat) []binding {
	return r.fill(held, open, func(binding) (at seat, open, ok bool) { return at, false, false })
}

// fill is complete with a function that binds a pod to a further node. That function returns the
// seat, and whether others may join the pod there.
func (r *verification) fill(held []binding, seats []seat, buy func(binding) (at seat, open, ok bool)) []binding {
	if len(held) == r.p.pending() {
		return held
	}
	bound := boundBy(held)
	var classes []int
	for i, c := range r.p.Classes {
		if (c.Refusal == nil || c.scarce) && slices.ContainsFunc(c.Pods, func(pod *corev1.Pod) bool { return !bound[pod] }) {
			classes = append(classes, i)
		}
	}
	slices.SortStableFunc(classes, r.order)
	for progress := true; progress; {
		progress = false
		for _, i := range classes {
			next, bought := 0, true
			for _, pod := range r.p.Classes[i].Pods {
				if bound[pod] {
					continue
				}
				b := binding{pod: pod, class: i, added: true, gone: r.gone}
				for ; next < len(seats); next++ {
					if b.at = seats[next]; r.place(b).OK() {
						b.level = r.lost(b)
						held, bound[pod], progress = append(held, b), true, true
						break
					}
				}
				if bound[pod] || !bought {
					continue
				}
				open := false
				if b.at, open, bought = buy(b); bought {
					b.level = r.lost(b)
					held, bound[pod], progress = append(held, b), true, true
				}
				if open {
					seats = append(seats, b.at)
				}
			}
		}
	}
	return held
}

// open returns the seats to which pods may be added: existing nodes and used bins. Bins are left
// out if the packer has rules about their pods, by [Options.Apart] or the pool's MinValues.
func (r *verification) open(bins []OutcomeBin) []seat {
	out := make([]seat, 0, len(r.nodes))
	for i := range r.verifier.nodes {
		out = append(out, seat{i, -1})
	}
	for b := range bins {
		bought := r.nodes[len(r.verifier.nodes)+b].Free != nil
		if pool := r.p.Pools[r.p.Shapes[bins[b].Shape].Pool]; bought && r.p.options.Apart == nil && len(pool.MinValues) == 0 {
			out = append(out, seat{-1, b})
		}
	}
	return out
}

// lost returns how many preferences a placed pod gives up.
func (r *verification) lost(b binding) int {
	if len(r.p.topology.Preferences(b.class)) == 0 {
		return 0
	}
	c, n := &r.classes[b.class], &r.nodes[r.index(b.at)]
	r.cluster.Count(c, &n.Node, false, -1)
	defer r.cluster.Count(c, &n.Node, false, 1)
	labels := maps.Clone(n.labels)
	labels[corev1.LabelHostname] = n.host
	return r.p.topology.Lost(b.class, labels, r.cluster.Tainted(c, n.LabelClass), func(x *interpod.Constraints) bool {
		return r.cluster.Between(x, n.Values, nil).OK()
	})
}

// index returns the position of a seat in nodes.
func (r *verification) index(at seat) int {
	if at.bin < 0 {
		return at.node
	}
	return len(r.verifier.nodes) + at.bin
}

// place binds one pod, or returns the refusal.
func (r *verification) place(b binding) bind.Refusal {
	at := r.index(b.at)
	if r.keeps(at, b) {
		return bind.Refusal{By: bind.Other, Other: "its node keeps room for a nominated pod"}
	}
	r.end(b.pod, -1)
	refusal := r.bindTo(&r.nodes[at], b.class)
	if !refusal.OK() {
		r.end(b.pod, 1)
	} else if b.pod.Status.NominatedNodeName != "" {
		r.seated[b.pod] = true
	}
	return refusal
}

// keeps reports whether a node would refuse the pod beside its nominated pods of the same or a
// higher priority that are not bound yet.
func (r *verification) keeps(node int, b binding) bool {
	var there []bind.Class
	n := &r.nodes[node].Node
	for _, q := range r.nominee[node] {
		if q.pod != b.pod && !r.seated[q.pod] && r.p.Classes[q.class].priority >= r.p.Classes[b.class].priority {
			own := r.classes[q.class]
			own.Shared = nil // what cannot be released
			there = append(there, own)
			r.cluster.Add(&own, n, false)
		}
	}
	refused := len(there) > 0 && !r.cluster.Check(&r.classes[b.class], n).OK()
	for i := range slices.Backward(there) {
		r.cluster.Count(&there[i], n, false, -1)
		r.cluster.Release(&there[i], n)
	}
	return refused
}

func (r *verification) bindTo(n *verifiedNode, class int) bind.Refusal {
	c := &r.classes[class]
	refusal := r.cluster.Check(c, &n.Node)
	if !refusal.OK() {
		return refusal
	}
	for _, claim := range r.claims[class] {
		if r.claimed[claim] > 0 {
			return bind.Refusal{By: bind.Other, Other: "a pod on a node that is being removed uses its ReadWriteOncePod claim"}
		}
	}
	for _, set := range r.sets[class] {
		at := n.value(r.keys[set])
		place, known := r.places[set]
		if known && place != at || at == "" && !r.claim[set] || len(r.running[set]) > 0 && !slices.Contains(r.running[set], at) {
			return bind.Refusal{By: bind.Other, Other: "pods that it must be with are in another domain"}
		}
	}
	if !r.volumes.Bind(r.late[class], n.labels) {
		return bind.Refusal{By: bind.Other, Other: "kube-scheduler may find no free volume for its claim there"}
	}
	for _, set := range r.sets[class] {
		r.places[set] = n.value(r.keys[set])
	}
	if r.shared {
		n.own()
	}
	r.cluster.Add(c, &n.Node, false)
	return refusal
}

// end stops counting the pod of a leaving node that the pod replaces; sign 1 counts it again. It
// does nothing if the pod replaces none, or if that node is gone.
func (r *verification) end(pod *corev1.Pod, sign int32) {
	o, ok := r.p.origin[pod]
	if !ok || o.Node < r.gone {
		return
	}
	r.count(o, sign)
	if sign < 0 {
		r.ended[o] = true
	} else {
		delete(r.ended, o)
	}
}

// count counts a pod of a leaving node; sign -1 undoes that.
func (r *verification) count(o topology.Origin, sign int32) {
	n := &r.leaving[o.Node]
	pod := &n.pods[o.Pod]
	r.cluster.Count(&pod.Class, &n.Node, pod.terminating, sign)
	for _, claim := range pod.claims {
		r.claimed[claim] += int(sign)
	}
}

// depart removes the next leaving node, with the pods that are still there.
func (r *verification) depart() {
	n := &r.leaving[r.gone]
	for k := range n.pods {
		if o := (topology.Origin{Node: r.gone, Pod: k}); !r.ended[o] {
			r.count(o, -1)
		}
	}
	r.cluster.CountNode(&n.Node, -1)
	r.gone++
}

// outlast completes the plan beside the leaving nodes. Then it removes these one by one, and each
// time binds what was refused before.
func (r *verification) outlast(held, order []binding, open []seat) []binding {
	held = r.complete(held, open)
	for r.gone < len(r.leaving) {
		r.depart()
		bound := boundBy(held)
		held = append(held, r.bind(slices.DeleteFunc(slices.Clone(order), func(b binding) bool { return bound[b.pod] }))...)
	}
	return held
}
