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

// NewNode is a node to buy, in the words of Kubernetes.
type NewNode struct {
	// Name is the pool's name and a number, from 0, that no node or claim of the snapshot has.
	Name         string
	Pool         *PoolState
	InstanceType *instancetypes.InstanceType
	// Offering is the way to buy it; Zone and CapacityType are labels of it, PricePerHour its price in dollars.
	Offering           instancetypes.Offering
	Zone, CapacityType string
	PricePerHour       float64
	// Labels are those that the node will carry, if its provider is asked for them: see Open.
	Labels map[string]string
	// Open are those of the labels that neither type nor offering decides. A provider must be told them: the pods ask for some of
	// them, and for the others the plan chose what a cloud does by itself.
	Open requirements.Set
	// Pods are those planned there, and Requests what they take together, slots included.
	Pods     []*corev1.Pod
	Requests corev1.ResourceList
	// DaemonSets are the DaemonSets that will run there too, as namespace/name, and DaemonRequests what they take.
	DaemonSets     []string
	DaemonRequests corev1.ResourceList
	// Bin is the position of the node in the packer's outcome.
	Bin int
	// Added is how many of Pods the packer had left out; they take what it leaves free. What it knows of other ways to buy the node
	// holds for the others only.
	Added int
}

// Node is the node as it will register, ready, with nothing running: what kube-scheduler would see.
func (n *NewNode) Node() *corev1.Node {
	labels := map[string]string{corev1.LabelHostname: n.Name}
	maps.Copy(labels, n.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels, Annotations: n.Pool.Annotations},
		Spec:       corev1.NodeSpec{Taints: n.Pool.Taints},
		Status: corev1.NodeStatus{
			Capacity: n.InstanceType.Capacity, Allocatable: n.InstanceType.Allocatable(),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// names are those of the bins that hold pods, in the order of the pools. A name that a node or a claim has is passed over.
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

// bins are the positions of all bins, in the order of their pools.
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
	pods := make([][]*corev1.Pod, len(names))
	requests := make([]corev1.ResourceList, len(names))
	added := make([]int, len(names))
	for _, b := range s.bound {
		if at := b.at.bin; at >= 0 {
			if b.added {
				added[at]++
			}
			pods[at] = append(pods[at], b.pod)
			if requests[at] == nil {
				requests[at] = corev1.ResourceList{}
			}
			for name, q := range s.p.Classes[b.class].Requests { // what a node holds does not overflow
				sum := requests[at][name]
				sum.Add(q)
				requests[at][name] = sum
			}
		}
	}
	var out []NewNode
	known := map[string]*NewNode{} // what nodes of one shape, offering and set of labels have in common
	var key []byte
	for _, b := range s.bins() {
		if names[b] == "" {
			continue
		}
		bin := &s.last.Bins[b]
		shape, typ := &s.p.Shapes[bin.Shape], s.p.InstanceType(bin.Shape)
		n := NewNode{
			Name: names[b], Pool: &s.p.Pools[shape.Pool], InstanceType: typ, Offering: typ.Offerings[shape.Offerings[bin.Offering].Index],
			Pods: pods[b], Requests: requests[b], Bin: b, Added: added[b],
		}
		podclass.Sort(n.Pods)
		n.PricePerHour = n.Offering.Price
		n.DaemonSets, n.DaemonRequests = s.p.Daemons(bin.Shape)
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
			like = &NewNode{Labels: chosenLabels(set)}
			like.Open = openLabels(like.Labels, typ, &n.Offering)
			known[string(key)] = like
		}
		n.Labels, n.Open = maps.Clone(like.Labels), like.Open
		n.Zone, n.CapacityType = n.Labels[corev1.LabelTopologyZone], n.Labels[instancetypes.LabelCapacityType]
		n.Labels[nodepool.ProvisionerLabelKey] = n.Pool.Name
		out = append(out, n)
	}
	return out
}

// ChosenLabels is one value for every label that a new node must carry, always the same, where set is what is known of them. Of several
// that are allowed it is "default" where there is one, for that is what clouds call what they do unasked, and otherwise the first.
// Pseudo-labels, which shapes, existing nodes and items carry for the packer's sake, are none.
func (*Problem) ChosenLabels(set requirements.Set) map[string]string { return chosenLabels(set) }

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

// openLabels are the labels that neither the type nor the offering decides, nor the name of the pool.
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
	if !s.Has(key) { // which is quicker than what no requirement gives
		return false
	}
	_, ok := s.Get(key).Single()
	return ok
}
