package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/market"
	"github.com/joinery-sdk/joinery/scheduling/internal/nodefeature"
	"github.com/joinery-sdk/joinery/scheduling/internal/nodekind"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
)

// NewNode is a node to buy.
type NewNode struct {
	// Name is the pool's name and a number. No node or claim of the snapshot has it.
	Name         string
	Pool         *PoolState
	InstanceType *instancetypes.InstanceType
	// Offering is the way to buy it. Zone and CapacityType are the offering's labels, and
	// PricePerHour is its price in dollars.
	Offering           instancetypes.Offering
	Zone, CapacityType string
	PricePerHour       float64
	// Labels are the labels that the node will have. The provider must be asked for those in Open.
	// Labels that agents set later are left out; see [PoolState.Registered].
	Labels map[string]string
	// Open is the labels that neither type nor offering decides, so the provider must set them:
	// those that pods ask for, and the plan's defaults for other undecided labels.
	Open requirements.Set
	// Pods are planned there; Requests is the sum of their requests, including pod slots.
	Pods     []*corev1.Pod
	Requests corev1.ResourceList
	// DaemonSets, as namespace/name, will also run there; DaemonRequests sums their requests.
	DaemonSets     []string
	DaemonRequests corev1.ResourceList
	// Shape is an index into Problem.Shapes, and ShapeOffering into the offerings of that shape.
	Shape, ShapeOffering int
	// Bin is the node's position in the packer's outcome. It is negative for a node that was added
	// for pods that the packer had not placed.
	Bin int
	// Added is how many of Pods the plan added after the packing. If the packer also offers other
	// types for this node, it has not checked them for these pods.
	Added int
}

// Node returns the node as it will register: ready and empty.
func (n *NewNode) Node() *corev1.Node {
	labels := n.Pool.Registered(requirements.FromLabels(n.Labels)).Labels()
	maps.DeleteFunc(labels, func(key, _ string) bool { _, feature := nodefeature.Name(key); return feature })
	node := readyNode(n.Name, labels, n.Pool.Taints, n.InstanceType.Capacity, n.InstanceType.Allocatable())
	node.Annotations = n.Pool.Annotations
	nodefeature.Declare(node, n.Pool.features)
	return node
}

// names returns the names of bins; empty for bins without pods.
func (s *state) names() []string {
	taken := map[string]bool{}
	for i := range s.p.members {
		taken[s.p.members[i].node.Name], taken[s.p.members[i].claim] = true, true
	}
	used := usedBy(s.bound, len(s.last.Bins))
	out := make([]string, len(used))
	next := map[string]int{}
	for _, b := range s.bins() {
		pool := s.p.Pools[s.p.Shapes[s.last.Bins[b].Shape].Pool].Name
		for used[b] && (out[b] == "" || taken[out[b]]) {
			out[b] = fmt.Sprintf("%s-%d", pool, next[pool])
			next[pool]++
		}
	}
	return out
}

// bins returns the positions of bins, in the order of their pools.
func (s *state) bins() []int {
	order := make([]int, len(s.last.Bins))
	for b := range order {
		order[b] = b
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(s.p.Shapes[s.last.Bins[a].Shape].Pool, s.p.Shapes[s.last.Bins[b].Shape].Pool)
	})
	return order
}

func (s *state) newNodes(names []string) []NewNode {
	bins := make([]NewNode, len(names))
	for _, b := range s.bound {
		if b.at.bin < 0 {
			continue
		}
		n := &bins[b.at.bin]
		n.Pods = append(n.Pods, b.pod)
		if b.added {
			n.Added++
		}
		if n.Requests == nil {
			n.Requests = corev1.ResourceList{}
		}
		for name, q := range s.p.Classes[b.class].Requests { // what a node holds does not overflow
			sum := n.Requests[name]
			sum.Add(q)
			n.Requests[name] = sum
		}
	}
	out, key, known := []NewNode(nil), []byte(nil), map[string]*NewNode{} // Labels and Open, by shape, offering and labels of the bin
	for _, b := range s.bins() {
		if names[b] == "" {
			continue
		}
		bin, n := &s.last.Bins[b], bins[b]
		shape, typ := &s.p.Shapes[bin.Shape], s.p.InstanceType(bin.Shape)
		n.Name, n.Bin, n.Shape, n.ShapeOffering, n.Pool, n.InstanceType = names[b], b, bin.Shape, bin.Offering, &s.p.Pools[shape.Pool], typ
		if b >= len(names)-s.added {
			n.Bin = -1
		}
		n.Offering = typ.Offerings[shape.Offerings[bin.Offering].Index]
		n.PricePerHour = n.Offering.Price
		n.DaemonSets, n.DaemonRequests = s.p.Daemons(bin.Shape)
		podclass.Sort(n.Pods)
		key = bin.Labels.AppendKey(fmt.Appendf(key[:0], "%d %d ", bin.Shape, bin.Offering))
		like, ok := known[string(key)]
		if !ok {
			set, err := s.p.NodeLabels(bin.Shape, bin.Offering)
			if err == nil {
				set, err = set.Intersect(bin.Labels)
			}
			if err != nil { // no pod was verified there
				panic(err)
			}
			like = &NewNode{Labels: s.p.ChosenLabels(set)}
			like.Open = nodekind.Open(like.Labels, typ, &n.Offering)
			known[string(key)] = like
		}
		n.Labels, n.Open = maps.Clone(like.Labels), like.Open
		n.Zone, n.CapacityType = n.Labels[corev1.LabelTopologyZone], n.Labels[instancetypes.LabelCapacityType]
		out = append(out, n)
	}
	return out
}

// place is a kind of bins: those that differ only in what they hold.
type place struct {
	shape, offering int
	labels          string // the key of the bin's own
}

// verify binds the pods of the outcome one by one, in the given order.
func (s *state) verify(order []binding) {
	s.bound, s.refused = s.p.verifier.verify(s.last.Bins, order)
	s.placed = make([]int, len(s.p.Classes))
	for _, b := range s.bound {
		s.placed[b.class]++
	}
}

// extend adds nodes for unplaced pods that kube-scheduler's filters let onto a node that a pool may
// still buy, and what else fits. It chooses each node for its first pod, so packing again is cheaper.
// all says that nothing else can be added; otherwise another call may add more.
func (s *state) extend() (out *state, all bool) {
	avoid, most := map[int]bool{}, math.MaxInt
	for range mostTries {
		if len(s.bound) == s.p.pending() {
			return s, true
		}
		used := usedBy(s.bound, len(s.last.Bins))
		run := s.p.verifier.start(s.last.Bins, used)
		for run.gone < len(run.leaving) {
			run.depart()
		}
		held := run.bind(s.bound)
		g := &extension{
			verification: run, bins: slices.Clip(s.last.Bins), most: most, avoid: avoid, weight: math.MinInt32,
			remaining: s.p.remaining(s.bought()),
		}
		order := run.fill(held, run.open(s.last.Bins), g.buy)
		if len(order) <= len(s.bound) {
			return s, true
		}
		next := *s
		next.last.Bins, next.added = g.bins, s.added+len(g.bought)
		next.verify(order)
		better := s.p.comparePlaced(&next, s) < 0
		switch {
		case better && most > 1:
			return &next, false
		case better:
			s = &next
		case len(g.bought) == 0:
			return s, true
		case most > 1: // other pods may not fit beside new, empty domains: one node at a time
			most = 1
		default:
			avoid[g.bought[0]] = true
		}
	}
	return s, false
}

// extend adds nodes for unplaced pods, and then plans the placed pods alone. That packs them better,
// and avoids dear domains that were chosen for the sake of pods that were not placed in the end.
func (d *decisions) extend() {
	for range mostExtensions {
		if len(d.best.bound) == d.best.p.pending() || d.err != nil || d.ctx.Err() != nil {
			return
		}
		d.best, _ = d.best.extend()
		c := d.best.p.topology.Choice()
		c.Only = slices.Clone(d.best.placed)
		if kept, _ := d.try(c); !kept {
			return
		}
	}
}

// extended adds nodes to a plan, if there is one. all says that nothing else can be added.
func (d *decisions) extended(at *state) (out *state, all bool) {
	for k := 0; k < mostExtensions && !all && at != nil && d.ctx.Err() == nil; k++ {
		at, all = at.extend()
	}
	return at, all
}

const (
	// mostTries limits how often extend verifies a plan. Other values were not tried.
	mostTries = 16
	// copied limits the nodes that consolidate copies, one for each node of the plan and trial.
	copied = 1 << 15
)

// extension is a plan to which nodes are added.
type extension struct {
	*verification
	bins      []OutcomeBin
	bought    []int             // the cells of the added nodes
	most      int               // how many nodes may be added
	avoid     map[int]bool      // cells that are not bought
	weight    int32             // pools of less weight buy nothing
	from      map[string]string // what pods leave that are on a node already; nil for others
	counted   bool              // spreads count what is for sale, so their pods may leave domains
	remaining *market.Remaining
}

// buy binds a pod to a further node; false if no pool may buy one that takes it. If open is set,
// other pods may join the pod there.
func (g *extension) buy(b binding) (at seat, open, ok bool) {
	at, _, ok = g.buyFor(b, g.p.Classes[b.class].requests, math.Inf(1))
	return at, ok && g.p.options.Apart == nil, ok
}

// buyFor binds a pod to a further node with this much room that costs at most so much.
func (g *extension) buyFor(b binding, need []int64, most float64) (at seat, price float64, ok bool) {
	if len(g.bought) == g.most {
		return at, 0, false
	}
	wanted := func(k market.Kind) bool {
		return !g.avoid[k.Cell] && g.p.market().Weight(k.Offer) >= g.weight && k.Price <= most && !g.escapes(b.class, k.Labels) && !g.barred(b.class, k)
	}
	for _, k := range g.remaining.Kinds(g.p.sales[b.class](), g.p.Classes[b.class].bound, need, wanted) {
		bin := OutcomeBin{Shape: k.Shape, Offering: k.Offering, Labels: k.Allowed}
		b.at = seat{-1, len(g.bins)}
		g.nodes = append(g.nodes, g.register(bin, len(g.bins)))
		n := &g.nodes[len(g.nodes)-1]
		n.daemons, _ = g.cluster.StartDaemons(g.daemonsAt(g.p.Shapes[k.Shape].daemons), &n.Node)
		if g.place(b).OK() {
			g.bins, g.bought = append(g.bins, bin), append(g.bought, k.Cell)
			g.remaining.Buy(k.Offer, 1)
			return b.at, k.Price, true
		}
		g.uncount(n)
		g.nodes = g.nodes[:len(g.nodes)-1]
	}
	return at, 0, false
}

// barred reports whether pods or volumes elsewhere keep the class from such nodes, whatever else is
// on them. Affinity does not bar if the pod of a DaemonSet, which comes with the node, may meet it.
func (g *extension) barred(class int, k market.Kind) bool {
	switch v := g.cluster.Between(&g.classes[class].Constraints, k.Values, nil); v.Rule {
	case interpod.SpreadRule, interpod.AntiAffinityRule, interpod.KeptRule:
		return true
	case interpod.AffinityRule:
		if !slices.ContainsFunc(g.p.Shapes[k.Shape].daemons, func(d int) bool { return slices.Contains(g.daemons[d].MemberOf, v.Group) }) {
			return true
		}
	case interpod.RatioRule, interpod.None:
	}
	return !g.volumes.Allows(g.late[class], k.Labels)
}

// consolidate gives up new nodes whose pods have room on other nodes, or on new ones that cost less
// together. It tries each node once, the most wasteful one first, and binds pods by kube-scheduler's
// filters alone. So it also finds what domains that were chosen before prices were known made dear.
// Pods leave domains of hard spreads if the plan counts all that are for sale, before and after.
func (s *state) consolidate() *state {
	if s.last.AsPacked || s.p.options.Apart != nil { // the packer knows more of where pods should be
		return s
	}
	if out, ok := s.giveUp(s.p.verifier.counting(), true); ok {
		return out
	}
	out, _ := s.giveUp(s.p.verifier, false)
	return out
}

// counting returns the verifier with hard spreads that count what is for sale.
func (v *verifier) counting() *verifier {
	return v.counted.Of(true, func() *verifier {
		out := *v
		out.cluster, out.classes = v.cluster.Clone(), slices.Clone(v.classes)
		out.cluster.State.CountSold = true
		for i := range out.classes {
			c := &out.classes[i]
			c.Spreads = slices.Clone(c.Spreads)
			for k := range c.Spreads {
				g := v.cluster.Index.Groups()[c.Spreads[k].Group].Key
				if key := v.cluster.Index.Keys()[g]; key != corev1.LabelHostname && (key != corev1.LabelTopologyZone || !v.p.options.LeaveZones) {
					c.Spreads[k].Sold = v.p.market().Values(v.p.sales[i](), key, func(value string) int32 { return out.cluster.Values.Of(g, value) })
				}
			}
		}
		return &out
	})
}

// giveUp is consolidate by the rules of the verifier. It returns false if the plan breaks them.
func (s *state) giveUp(v *verifier, counted bool) (*state, bool) {
	used := usedBy(s.bound, len(s.last.Bins))
	run := v.start(s.last.Bins, used)
	for run.gone < len(run.leaving) {
		run.depart()
	}
	held := run.bind(s.bound)
	if len(held) < len(s.bound) {
		return s, !counted
	}
	best := &extension{verification: run, bins: slices.Clip(s.last.Bins), most: math.MaxInt, remaining: s.p.remaining(s.bought()), counted: counted}
	tied := func(x binding) int { return min(len(v.classes[x.class].Terms)+len(v.classes[x.class].Spreads), 1) }
	waste, order := s.contents(), []int(nil)
	for b := range used {
		if used[b] && waste[b].price > 0 {
			order = append(order, b)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(waste[b].unused, waste[a].unused) })
	at := make([][]binding, len(best.bins)) // what bins hold
	sit := func(list []binding) {
		for _, x := range list {
			if x.at.bin >= 0 {
				at[x.at.bin] = append(at[x.at.bin], x)
			}
		}
	}
	sit(held)
	var moved []binding // in the order of their last moves
	for _, b := range order[:min(len(order), copied/max(1, len(run.nodes)))] {
		g, moves := best.without(b, at[b])
		if g == nil { // again with tied pods first, because others have more places
			g, moves = best.without(b, slices.SortedStableFunc(slices.Values(at[b]), func(x, y binding) int { return tied(y) - tied(x) }))
		}
		if g == nil {
			continue
		}
		gone := boundBy(moves)
		moved = append(slices.DeleteFunc(moved, func(x binding) bool { return gone[x.pod] }), moves...)
		best, at[b] = g, nil
		at = append(at, make([][]binding, len(best.bins)-len(at))...)
		sit(moves)
	}
	if len(moved) == 0 {
		return s, true
	}
	gone := boundBy(moved)
	held = append(slices.DeleteFunc(held, func(x binding) bool { return gone[x.pod] }), moved...)
	next := *s
	next.last.Bins, next.added = best.bins, s.added+len(best.bought)
	next.verify(held)
	if again := v.start(next.last.Bins, usedBy(next.bound, len(next.last.Bins))); counted && len(again.bind(next.bound)) < len(next.bound) {
		return s, false
	}
	if s.p.compare(&next, s) >= 0 {
		return s, true
	}
	return &next, true
}

// without returns the plan without a bin, and where its pods go; nil if it is not cheaper.
func (g *extension) without(b int, pods []binding) (*extension, []binding) {
	p, o, next := g.p, g.p.offer(&g.bins[b]), *g
	next.verification, next.remaining, next.weight = g.clone(), g.remaining.Clone(), p.market().Weight(o)
	next.remaining.Buy(o, -1)
	n := &next.nodes[len(g.verifier.nodes)+b]
	for _, x := range pods {
		next.cluster.Count(&next.classes[x.class], &n.Node, false, -1)
	}
	next.uncount(n)
	next.from = n.labels
	m, moves := &move{extension: &next, left: o.Price * (1 - 1e-9)}, []binding(nil) // sums may differ in their last digits
	for seats := next.open(g.bins); ; {
		var rest []binding
		for before := -1; len(moves) > before; pods = rest {
			before, rest = len(moves), nil
			for _, x := range pods {
				if y, ok := m.join(x, seats); ok {
					moves = append(moves, y)
				} else {
					rest = append(rest, x)
				}
			}
		}
		if m.left >= 0 && len(rest) == 0 {
			return &next, moves
		}
		if m.left < 0 || !m.buyAll(&rest[0], rest) {
			return nil, nil
		}
		moves, pods, seats = append(moves, rest[0]), rest[1:], []seat{rest[0].at}
	}
}

// move is the pods of a bin on their way to others.
type move struct {
	*extension
	left float64 // what may still be spent
}

// join binds a pod to the first seat that takes it.
func (m *move) join(x binding, seats []seat) (binding, bool) {
	y := x
	y.added, y.gone = true, m.gone
	for _, y.at = range seats {
		n := &m.nodes[m.index(y.at)]
		if !m.classes[x.class].Exceeds(&n.Node) && !m.escapes(x.class, n.labels) && m.place(y).OK() { // most have no room
			return m.pay(x, y), true
		}
	}
	return x, false
}

// buyAll binds the first pod to a further node with room for all, or else for itself.
func (m *move) buyAll(first *binding, all []binding) bool {
	y, need := *first, make([]int64, len(m.p.Resources))
	for _, x := range all {
		for r, q := range m.p.Classes[x.class].requests {
			need[r] = bind.Sum(need[r], q)
		}
	}
	y.added, y.gone = true, m.gone
	for _, room := range [][]int64{need, m.p.Classes[y.class].requests} {
		if at, price, ok := m.buyFor(y, room, m.left); ok {
			y.at, m.left = at, m.left-price
			*first = m.pay(*first, y)
			return true
		}
	}
	return false
}

// pay pays for the preferences that a pod gives up in its new place.
func (m *move) pay(from, to binding) binding {
	if to.level = m.lost(to); to.level > from.level {
		if m.left -= float64(to.level-from.level) * m.p.preferencePrice() * m.p.own[to.class](); !(m.left >= 0) { // it may be NaN
			m.left = -1
		}
	}
	return to
}

// escapes reports whether a pod that is on a node already would escape a constraint.
func (g *extension) escapes(class int, labels map[string]string) bool {
	return g.from != nil && g.p.topology.Escapes(class, g.from, labels, g.p.options.LeaveZones, g.counted)
}

// clone returns a copy for the same goroutine. It copies what a node has when a pod is bound there.
func (r *verification) clone() *verification {
	out := *r
	out.cluster, out.volumes, out.nodes, out.places, out.seated, out.claimed = r.cluster.Fork(), r.volumes.Clone(), slices.Clone(r.nodes), maps.Clone(r.places), maps.Clone(r.seated), maps.Clone(r.claimed)
	out.shared = true
	return &out
}

// uncount removes a node to buy, with its daemons and without its pods.
func (r *verification) uncount(n *verifiedNode) {
	for _, d := range n.daemons {
		r.cluster.Count(d, &n.Node, false, -1)
	}
	r.cluster.CountNode(&n.Node, -1)
	n.Free = nil
}
