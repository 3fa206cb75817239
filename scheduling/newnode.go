package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
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
	// Offering is the way to buy it. Zone and CapacityType are its labels, PricePerHour is its price in dollars.
	Offering           instancetypes.Offering
	Zone, CapacityType string
	PricePerHour       float64
	// Labels are the labels of the node, if its provider is asked for Open, without those that agents set once it is there; see
	// [PoolState.Registered].
	Labels map[string]string
	// Open is the labels that neither type nor offering decides, so that the provider must set them: those that pods ask for, and the
	// default that the plan chose for others.
	Open requirements.Set
	// Pods are planned there; Requests is the sum of their requests, pod slots included.
	Pods     []*corev1.Pod
	Requests corev1.ResourceList
	// DaemonSets will run there too, as namespace/name; DaemonRequests is the sum of their requests.
	DaemonSets     []string
	DaemonRequests corev1.ResourceList
	// Bin is the position of the node in the packer's outcome.
	Bin int
	// Added is how many of Pods the packer had not placed. Alternatives of the packer to this node hold without these pods only.
	Added int
}

// Node is the node as it will register: ready and empty.
func (n *NewNode) Node() *corev1.Node {
	labels := n.Pool.Registered(requirements.FromLabels(n.Labels)).Labels()
	node := readyNode(n.Name, labels, n.Pool.Taints, n.InstanceType.Capacity, n.InstanceType.Allocatable())
	node.Annotations = n.Pool.Annotations
	return node
}

// readyNode is a node that has these figures; without a hostname among the labels it has its name there.
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

// purse is what the pools may still buy.
type purse struct {
	p     *Problem
	left  [][]int64      // by pool and PoolState.Limited
	nodes []int          // by pool; negative for any number
	sold  map[string]int // of offerings with a count, by reservation or offering
}

// purse is what the outcome leaves; used says of each bin whether it is bought.
func (p *Problem) purse(bins []OutcomeBin, used func(bin int) bool) *purse {
	out := &purse{p: p, sold: map[string]int{}}
	for i := range p.Pools {
		out.left, out.nodes = append(out.left, slices.Clone(p.Pools[i].Left)), append(out.nodes, p.Pools[i].NodesLeft)
	}
	for b := range bins {
		if used(b) {
			out.spend(bins[b].Shape, bins[b].Offering)
		}
	}
	return out
}

func (u *purse) spend(shape, offering int) {
	s := &u.p.Shapes[shape]
	for i, q := range s.Usage {
		u.left[s.Pool][i] -= q
	}
	if u.nodes[s.Pool] > 0 {
		u.nodes[s.Pool]--
	}
	u.sold[stockOf(s, shape, offering)]++
}

// allows reports whether one more node can be bought.
func (u *purse) allows(shape, offering int) bool {
	return u.within(shape) && u.stocks(shape, offering)
}

// within reports whether the limits of the pool allow one more node.
func (u *purse) within(shape int) bool {
	s := &u.p.Shapes[shape]
	for i, q := range s.Usage {
		if q > u.left[s.Pool][i] {
			return false
		}
	}
	return u.nodes[s.Pool] != 0
}

// stocks reports whether the count of the offering is not used up.
func (u *purse) stocks(shape, offering int) bool {
	s := &u.p.Shapes[shape]
	n := s.Offerings[offering].Count
	return n == 0 || u.sold[stockOf(s, shape, offering)] < n
}

// stockOf identifies what the count of an offering counts.
func stockOf(s *Shape, shape, offering int) string {
	return cmp.Or(s.Offerings[offering].Reservation, fmt.Sprint(shape, " ", offering))
}

// limited says of pods that the outcome does not place whether the limits of pools are what keeps every node for them from being bought. An
// offering whose count is used up is missing in its domain alone, and does not matter.
func (s *state) limited(o Outcome) func(relaxed, domain int) bool {
	if !slices.ContainsFunc(s.p.Pools, func(p PoolState) bool { return len(p.Limited) > 0 || p.NodesLeft >= 0 }) {
		return func(int, int) bool { return false }
	}
	left := s.p.purse(o.Bins, func(bin int) bool { return len(o.Bins[bin].Shares) > 0 })
	return func(relaxed, domain int) bool {
		rc := s.assigned.Classes[relaxed]
		required, requests := rc.Required(domain), s.p.Classes[rc.Class].requests
		short := false
		for _, c := range s.p.cells() {
			if !required.Compatible(c.labels, requirements.Keys{}) {
				continue
			}
			for _, o := range c.offers {
				if !bind.Fits(requests, s.p.Shapes[o[0]].Free) || !left.stocks(o[0], o[1]) {
					continue
				}
				if left.within(o[0]) {
					return false
				}
				short = true
			}
		}
		return short
	}
}

// cell is offerings of one pool whose nodes have the same labels of those that some pod asks about.
type cell struct {
	labels requirements.Set
	offers [][2]int // shapes and offerings
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
				out = append(out, cell{labels: all})
			}
			out[k].offers = append(out[k].offers, [2]int{i, j})
		}
	}
	return out
}

// kind is an offering of a cell.
type kind struct {
	shape, offering int
	labels          requirements.Set
}

// kinds are the offerings within the purse that hold a pod of the class, one for each cell: the one that uses the least of the limits, of equal
// ones the cheapest.
func (u *purse) kinds(c *Class) []kind {
	compare := func(a, b kind) int {
		x, y := &u.p.Shapes[a.shape], &u.p.Shapes[b.shape]
		return cmp.Or(slices.Compare(x.Usage, y.Usage), compareCosts(x.Offerings[a.offering].Price, y.Offerings[b.offering].Price))
	}
	var out []kind
	for _, cell := range u.p.cells() {
		if !c.Required.Compatible(cell.labels, requirements.Keys{}) {
			continue
		}
		best := kind{shape: -1}
		for _, o := range cell.offers {
			one := kind{o[0], o[1], cell.labels}
			if bind.Fits(c.requests, u.p.Shapes[o[0]].Free) && u.allows(o[0], o[1]) && (best.shape < 0 || compare(one, best) < 0) {
				best = one
			}
		}
		if best.shape >= 0 {
			out = append(out, best)
		}
	}
	slices.SortStableFunc(out, compare)
	return out
}

// more is how many pods of each class have a place if nodes are bought beside the plan, as long as limits allow, by kube-scheduler's filters; nil
// if no further pod has. Daemons of these nodes are left out of the counts of constraints, so it may be too many.
func (s *state) more() []int {
	if len(s.bound) == s.p.pending() || !slices.ContainsFunc(s.p.Pools, func(p PoolState) bool { return len(p.Limited) > 0 || p.NodesLeft >= 0 }) {
		return nil
	}
	bins := s.last.Bins
	used := usedBy(s.bound, len(bins))
	run := s.p.verifier.start(bins, used)
	for run.gone < len(run.leaving) {
		run.depart()
	}
	run.bind(s.bound)
	left := s.p.purse(bins, func(bin int) bool { return used[bin] })
	out, grown := slices.Clone(s.placed), false
	seats := run.open(bins)
	for progress := true; progress; {
		progress = false
		for i, c := range s.p.Classes {
			if c.Refusal != nil || out[i] == len(c.Pods) {
				continue
			}
			for from := 0; out[i] < len(c.Pods) && run.seat(i, &seats, &from, left); {
				out[i]++
				progress, grown = true, true
			}
		}
	}
	if !grown {
		return nil
	}
	return out
}

// seat binds one more pod of the class to one of the seats from the given one on, or to another node within the purse, which is a seat then.
func (r *verification) seat(class int, seats *[]seat, from *int, left *purse) bool {
	pod := &corev1.Pod{}
	for ; *from < len(*seats); *from++ {
		if r.place(binding{pod: pod, at: (*seats)[*from], class: class}).OK() {
			return true
		}
	}
	for _, k := range left.kinds(r.p.Classes[class]) {
		shape := &r.p.Shapes[k.shape]
		n := verifiedNode{labels: chosenLabels(k.labels)}
		n.Free = slices.Clone(shape.Free)
		n.labels[corev1.LabelHostname] = fmt.Sprint("another node ", len(r.nodes))
		r.cluster.Describe(&n.Node, n.labels, r.p.Pools[shape.Pool].Taints)
		r.cluster.CountNode(&n.Node, 1)
		r.nodes = append(r.nodes, n)
		at := seat{-1, len(r.nodes) - 1 - len(r.verifier.nodes)}
		if r.place(binding{pod: pod, at: at, class: class}).OK() {
			left.spend(k.shape, k.offering)
			*seats = append(*seats, at)
			return true
		}
		r.nodes = r.nodes[:len(r.nodes)-1]
		r.cluster.CountNode(&n.Node, -1)
	}
	return false
}

// names are the names of bins, empty for bins without pods.
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

// bins are the positions of bins, in the order of their pools.
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
		n.Name, n.Bin, n.Pool, n.InstanceType = names[b], b, &s.p.Pools[shape.Pool], typ
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

// ChosenLabels is one value for each label that set requires of a node, always the same: of several allowed values "default", which
// clouds use by default, or else the first. Pseudo-labels are left out, and so are labels that agents set, as in [NewNode.Labels].
func (p *Problem) ChosenLabels(set requirements.Set) map[string]string {
	out := chosenLabels(set)
	maps.DeleteFunc(out, func(key, _ string) bool {
		return key == labelRegistered || key == labelInitialized || p.aliases.Key(key) != key ||
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

// openLabels are the labels that neither the type nor the offering decides, without the name of the pool.
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
