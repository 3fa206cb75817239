package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/nodefeature"
	"github.com/joinery-sdk/joinery/scheduling/internal/once"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
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
	// Labels are the labels of the node, if its provider is asked for Open. Labels that agents set
	// later are left out; see [PoolState.Registered].
	Labels map[string]string
	// Open is the labels that the provider must set, since neither type nor offering decides them.
	// They are those that pods ask for, and the defaults that the plan chose for others.
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
	// Added is how many of Pods the packer had not placed. The packer's alternatives to this node
	// hold only without these pods.
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

// readyNode returns a node with these figures. If labels have no hostname, the node's name is used.
func readyNode(name string, labels map[string]string, taints []corev1.Taint, capacity, allocatable corev1.ResourceList) *corev1.Node {
	all := map[string]string{corev1.LabelHostname: name}
	maps.Copy(all, labels)
	all[corev1.LabelHostname] = cmp.Or(all[corev1.LabelHostname], name)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all},
		Spec:       corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: allocatable,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
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
		if !used[b] {
			continue
		}
		pool := s.p.Pools[s.p.Shapes[s.last.Bins[b].Shape].Pool].Name
		for out[b] == "" || taken[out[b]] {
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
	var out []NewNode
	known := map[string]*NewNode{} // Labels and Open, by shape, offering and labels of the bin
	var key []byte
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
			like.Open = openLabels(like.Labels, typ, &n.Offering)
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

// labels returns the labels that the node will have.
func (b *OutcomeBin) labels(p *Problem) map[string]string {
	var all requirements.Builder
	all.AddSet(p.Shapes[b.Shape].Labels)
	all.AddSet(p.Shapes[b.Shape].Offerings[b.Offering].Labels)
	all.AddSet(b.Labels)
	set, _ := all.Set() // an impossible set has no labels
	return chosenLabels(set)
}

// ChosenLabels chooses one value for each label that set requires of a node, always the same. Of
// several allowed values it chooses "default", which clouds use by default, or else the first.
// Pseudo-labels and labels that agents set are left out, as in [NewNode.Labels].
func (p *Problem) ChosenLabels(set requirements.Set) map[string]string {
	out := chosenLabels(set)
	maps.DeleteFunc(out, func(key, _ string) bool {
		_, feature := nodefeature.Name(key)
		return feature || key == labelRegistered || key == labelInitialized || p.aliases.Key(key) != key ||
			slices.ContainsFunc(p.Pools, func(pool PoolState) bool { return key == classKey(pool.NodeClass) && !pool.Set.Has(key) })
	})
	return out
}

func chosenLabels(set requirements.Set) map[string]string {
	out := make(map[string]string, set.Len())
	for r := range set.All() {
		if r.AllowsAbsent() || r.Key() == taints.Key || r.Key() == requirements.NodeNameKey || topology.IsPseudo(r.Key()) {
			continue
		}
		if v, ok := topology.Chosen(r); ok {
			out[r.Key()] = v
		}
	}
	return out
}

// openLabels returns the labels that neither type nor offering decides, without the pool's name.
func openLabels(labels map[string]string, typ *instancetypes.InstanceType, o *instancetypes.Offering) requirements.Set {
	open := map[string]string{}
	for key, value := range labels {
		if key != nodepool.LabelKey && !decides(&o.Requirements, key) && !decides(&typ.Requirements, key) {
			open[key] = value
		}
	}
	return requirements.FromLabels(open)
}

func decides(s *requirements.Set, key string) bool {
	if !s.Has(key) { // cheaper than Get of a key that is missing
		return false
	}
	_, ok := s.Get(key).Single()
	return ok
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
			verification: run, bins: slices.Clip(s.last.Bins), most: most, avoid: avoid,
			remaining: s.p.remaining(s.last.Bins, func(bin int) bool { return used[bin] }),
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

// mostTries limits how often extend verifies a plan. Other values were not tried.
const mostTries = 16

// extension is a plan to which nodes are added.
type extension struct {
	*verification
	bins      []OutcomeBin
	bought    []int        // the cells of the added nodes
	most      int          // how many nodes may be added
	avoid     map[int]bool // cells that are not bought
	remaining *remaining
}

// buy binds a pod to a further node; false if no pool may buy one that takes it. If open is set,
// other pods may join the pod there.
func (g *extension) buy(b binding) (at seat, open, ok bool) {
	if len(g.bought) == g.most {
		return at, false, false
	}
	for _, k := range g.remaining.kinds(b.class, func(k kind) bool { return !g.avoid[k.cell] && !g.barred(b.class, k) }) {
		bin := OutcomeBin{Shape: k.shape, Offering: k.offering, Labels: k.allowed}
		shape := &g.p.Shapes[k.shape]
		b.at = seat{-1, len(g.bins)}
		g.nodes = append(g.nodes, g.register(bin, len(g.bins)))
		n := &g.nodes[len(g.nodes)-1]
		daemons, _ := g.cluster.StartDaemons(g.daemonsAt(shape.daemons), &n.Node)
		if g.place(b).OK() {
			g.bins, g.bought = append(g.bins, bin), append(g.bought, k.cell)
			g.remaining.spend(k.shape, k.offering)
			return b.at, g.p.options.Apart == nil, true
		}
		for _, d := range daemons {
			g.cluster.Count(d, &n.Node, false, -1)
		}
		g.cluster.CountNode(&n.Node, -1)
		g.nodes = g.nodes[:len(g.nodes)-1]
	}
	return at, false, false
}

// barred reports whether pods or volumes elsewhere keep the class from such nodes, whatever else is
// on them. Affinity does not bar if the pod of a DaemonSet, which comes with the node, may meet it.
func (g *extension) barred(class int, k kind) bool {
	switch v := g.cluster.Between(&g.classes[class].Constraints, k.values, nil); v.Rule {
	case interpod.SpreadRule, interpod.AntiAffinityRule, interpod.KeptRule:
		return true
	case interpod.AffinityRule:
		if !slices.ContainsFunc(g.p.Shapes[k.shape].daemons, func(d int) bool { return slices.Contains(g.daemons[d].MemberOf, v.Group) }) {
			return true
		}
	case interpod.RatioRule, interpod.None:
	}
	return !g.volumes.Allows(g.late[class], k.labels)
}

// remaining is what the pools may still buy within their limits and the quotas.
type remaining struct {
	p       *Problem
	limits  [][]int64      // by pool and PoolState.Limited
	nodes   []int          // by pool; negative for any number
	budgets []int64        // by Problem.Budgets
	sold    map[string]int // of offerings with a count, by reservation or offering
}

// remaining returns what the pools may buy beside the outcome; used says which bins are bought.
func (p *Problem) remaining(bins []OutcomeBin, used func(bin int) bool) *remaining {
	out := &remaining{p: p, sold: map[string]int{}, budgets: p.leftOfBudgets()}
	for i := range p.Pools {
		out.limits, out.nodes = append(out.limits, slices.Clone(p.Pools[i].Left)), append(out.nodes, p.Pools[i].NodesLeft)
	}
	for b := range bins {
		if used(b) {
			out.spend(bins[b].Shape, bins[b].Offering)
		}
	}
	return out
}

func (r *remaining) spend(shape, offering int) {
	s := &r.p.Shapes[shape]
	subtract(r.limits[s.Pool], s.Usage)
	subtract(r.budgets, s.Offerings[offering].Usage)
	if r.nodes[s.Pool] > 0 {
		r.nodes[s.Pool]--
	}
	r.sold[stockOf(s, shape, offering)]++
}

// allows reports whether one more node can be bought.
func (r *remaining) allows(shape, offering int) bool {
	return r.within(shape, offering) && r.stocks(shape, offering)
}

// within reports whether the limits of the pool and the quotas allow one more node.
func (r *remaining) within(shape, offering int) bool {
	return r.inPool(shape) && within(r.p.Shapes[shape].Offerings[offering].Usage, r.budgets)
}

// inPool reports whether the limits of the pool allow one more node.
func (r *remaining) inPool(shape int) bool {
	s := &r.p.Shapes[shape]
	for i, q := range s.Usage {
		if q > r.limits[s.Pool][i] {
			return false
		}
	}
	return r.nodes[s.Pool] != 0
}

// stocks reports whether the offering's count is not used up.
func (r *remaining) stocks(shape, offering int) bool {
	s := &r.p.Shapes[shape]
	n := s.Offerings[offering].Count
	return n == 0 || r.sold[stockOf(s, shape, offering)] < n
}

// stockOf identifies what the count of an offering counts.
func stockOf(s *Shape, shape, offering int) string {
	return cmp.Or(s.Offerings[offering].Reservation, fmt.Sprint(shape, " ", offering))
}

// cell is the offerings of one pool whose nodes agree in all labels that some pod asks about.
type cell struct {
	site
	offers   [][2]int                 // shapes and offerings: first what uses the least of the limits, then the cheapest
	narrowed *once.Map[string, *site] // by the key of what pods ask for; nil for what no node there can be
}

// site is what a new node would be to pods: the labels that it may have, those that it has without
// further requirements, and its values for constraints between pods.
type site struct {
	allowed requirements.Set
	labels  map[string]string
	values  []int32
}

func (p *Problem) newSite(allowed requirements.Set) site {
	labels, counts := chosenLabels(allowed), p.verifier.cluster
	labels[corev1.LabelHostname] = "new node" // no node has this name
	return site{allowed, labels, counts.Values.At(counts.Index, labels)}
}

func (p *Problem) newCells() []cell {
	at := map[string]int{}
	var out []cell
	var key []byte
	for i := range p.Shapes {
		s := &p.Shapes[i]
		for j := range s.Offerings {
			all, err := s.Labels.Intersect(s.Offerings[j].Labels)
			if err != nil {
				continue
			}
			key = all.AppendKey(append(strconv.AppendInt(key[:0], int64(s.Pool), 10), ' '))
			k, ok := at[string(key)]
			if !ok {
				k = len(out)
				at[string(key)] = k
				out = append(out, cell{site: p.newSite(all), narrowed: &once.Map[string, *site]{}})
			}
			out[k].offers = append(out[k].offers, [2]int{i, j})
		}
	}
	for _, c := range out {
		slices.SortStableFunc(c.offers, func(a, b [2]int) int {
			return cmp.Or(slices.Compare(p.Shapes[a[0]].Usage, p.Shapes[b[0]].Usage), slices.Compare(p.usage(a), p.usage(b)), compareCosts(p.price(a), p.price(b)))
		})
	}
	return out
}

// usage returns what a node counts against each of Problem.Budgets.
func (p *Problem) usage(offer [2]int) []int64 { return p.Shapes[offer[0]].Offerings[offer[1]].Usage }

// price returns the price of an offering of a shape.
func (p *Problem) price(offer [2]int) float64 { return p.Shapes[offer[0]].Offerings[offer[1]].Price }

// kind is an offering that a class may have. Its site is that of its cell, or a narrower one.
type kind struct {
	*site
	cell, shape, offering int
}

// kinds returns the wanted offerings that may still be bought and that hold a pod of the class by
// itself: the best one of each cell, for each alternative of the class. The heaviest pools come
// first, then the cheapest offerings.
func (r *remaining) kinds(class int, wanted func(kind) bool) []kind {
	var out []kind
	c, cells := r.p.Classes[class], r.p.cells()
	for _, s := range r.p.sales[class]() {
		cell := &cells[s.cell]
		at := slices.IndexFunc(cell.offers, func(o [2]int) bool { return bind.Fits(c.requests, r.p.Shapes[o[0]].Free) && r.allows(o[0], o[1]) })
		if at < 0 {
			continue
		}
		k := kind{&cell.site, int(s.cell), cell.offers[at][0], cell.offers[at][1]}
		if !s.whole {
			asked := c.bound.At(int(s.alternative))
			k.site = cell.narrowed.Of(string(asked.AppendKey(nil)), func() *site {
				both, err := cell.allowed.Intersect(asked)
				if err != nil {
					return nil
				}
				own := r.p.newSite(both)
				return &own
			})
			if k.site == nil {
				continue
			}
		}
		if wanted(k) { // most are not, and would be sorted in vain
			out = append(out, k)
		}
	}
	weight := func(k kind) int32 { return r.p.Pools[r.p.Shapes[k.shape].Pool].Weight }
	slices.SortStableFunc(out, func(a, b kind) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), compareCosts(r.p.price([2]int{a.shape, a.offering}), r.p.price([2]int{b.shape, b.offering})))
	})
	return out
}
