package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
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
