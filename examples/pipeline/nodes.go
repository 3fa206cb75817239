package pipeline

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// NewNode is a node to buy, in the words of Kubernetes.
type NewNode struct {
	// Name is the pool's name and a number, from 0.
	Name         string
	Pool         *scheduling.PoolState
	InstanceType *instancetypes.InstanceType
	Zone         string
	CapacityType string
	PricePerHour float64
	// Labels are those that the node will carry. A label that the pool leaves free has the value that its pods ask for,
	// and otherwise the first that is allowed.
	Labels map[string]string
	Pods   []*corev1.Pod
	// DaemonSets are the DaemonSets that will run there too, as namespace/name, and DaemonRequests what they take.
	DaemonSets     []string
	DaemonRequests corev1.ResourceList
	requests       map[*corev1.Pod]corev1.ResourceList
	offering       requirements.Set
	// Alternatives would hold the same pods, cheapest first.
	Alternatives []Alternative
}

// Alternative is another way to buy a node.
type Alternative struct {
	InstanceType       string
	Zone, CapacityType string
	PricePerHour       float64

	offering requirements.Set
}

// NewNodes lists the nodes to buy: pools by name, within a pool in the order of the plan.
func (p *Packed) NewNodes() ([]NewNode, error) {
	out := make([]NewNode, 0, len(p.Result.Bins))
	requests := p.requests()
	for _, rb := range p.Result.Bins {
		bin := p.Plan.Bins[rb.Bin]
		set, err := p.Problem.NodeLabels(rb.Shape, rb.Offering)
		if err != nil {
			return nil, err
		}
		set, err = set.Intersect(scheduling.RealLabels(p.Instance.Labels(bin)))
		if err != nil {
			return nil, fmt.Errorf("pipeline: labels of a planned node: %w", err)
		}
		shape := &p.Problem.Shapes[rb.Shape]
		typ := p.Problem.InstanceType(rb.Shape)
		n := NewNode{
			Pool: &p.Problem.Pools[shape.Pool], InstanceType: typ, PricePerHour: typ.Offerings[shape.Offerings[rb.Offering].Index].Price,
			Labels: concrete(set), Pods: rb.Pods, requests: requests,
			offering: typ.Offerings[shape.Offerings[rb.Offering].Index].Requirements,
		}
		n.Zone, n.CapacityType = n.Labels[corev1.LabelTopologyZone], n.Labels[instancetypes.LabelCapacityType]
		n.DaemonSets, n.DaemonRequests = p.Problem.Daemons(rb.Shape)
		n.Alternatives = p.alternatives(rb.Bin)
		out = append(out, n)
	}
	slices.SortStableFunc(out, func(a, b NewNode) int { return nodepool.Compare(a.Pool.NodePool, b.Pool.NodePool) })
	count := map[string]int{}
	for i := range out {
		pool := out[i].Pool.Name
		out[i].Name = fmt.Sprintf("%s-%d", pool, count[pool])
		count[pool]++
	}
	return out, nil
}

// requests is what each pending pod takes.
func (p *Packed) requests() map[*corev1.Pod]corev1.ResourceList {
	out := map[*corev1.Pod]corev1.ResourceList{}
	for _, c := range p.Problem.Classes {
		for _, pod := range c.Pods {
			out[pod] = c.Requests
		}
	}
	return out
}

func (p *Packed) alternatives(bin int) []Alternative {
	var out []Alternative
	origin := p.Instance.Origins()
	for _, c := range p.Plan.Alternatives[bin] {
		if c == (binpack.Choice{Type: p.Plan.Bins[bin].Type, Offering: p.Plan.Bins[bin].Offering}) {
			continue
		}
		o := origin[c.Type]
		shape := &p.Problem.Shapes[o.Type]
		typ := p.Problem.InstanceType(o.Type)
		offering := typ.Offerings[shape.Offerings[o.Offering+c.Offering].Index]
		zone, _ := offering.Requirements.Get(corev1.LabelTopologyZone).Single()
		capacity, _ := offering.Requirements.Get(instancetypes.LabelCapacityType).Single()
		out = append(out, Alternative{typ.Name, zone, capacity, offering.Price, offering.Requirements})
	}
	return out
}

// concrete chooses one value for every label that the node must carry.
func concrete(set requirements.Set) map[string]string {
	out := make(map[string]string, set.Len())
	for r := range set.All() {
		if r.AllowsAbsent() {
			continue
		}
		if v, ok := r.Any(); ok {
			out[r.Key()] = v
		}
	}
	if pool, ok := out[nodepool.LabelKey]; ok {
		out[nodepool.ProvisionerLabelKey] = pool
	}
	return out
}

// Requests is what the pods of the node take together, slots included.
func (n *NewNode) Requests() corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, pod := range n.Pods {
		sum = resources.Add(sum, n.requests[pod])
	}
	return sum
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
