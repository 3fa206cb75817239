package karpenter

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	karpscheduling "sigs.k8s.io/karpenter/pkg/scheduling"
)

// Result is Karpenter's plan.
type Result struct {
	// NewNodes are the nodes to launch, in the order of pool, and then of their first pod.
	NewNodes []NewNode
	// Existing are the nodes that run and get pods, by name.
	Existing []Placement
	// Unplaced are the pods left over, by namespace and name.
	Unplaced []Unplaced
	// Compile is the time from objects in memory to a scheduler that is ready, Solve from there to
	// the plan.
	Compile, Solve time.Duration
}

// Placement says which pods go to a node that exists.
type Placement struct {
	Node string
	Pods []types.NamespacedName
}

// Unplaced is a pod without a node, and Karpenter's reason.
type Unplaced struct {
	Pod types.NamespacedName
	Err error
}

// Option is an instance type that would hold the node's pods.
type Option struct {
	InstanceType string
	// Price is that of its cheapest available offering that the node allows, in USD per hour.
	Price float64
}

// Launch is one offering of one instance type.
type Launch struct {
	InstanceType string
	Zone         string
	CapacityType string
	// Price is in USD per hour.
	Price float64
}

// NewNode is a node to launch.
type NewNode struct {
	NodePool string
	// Options are the instance types left, cheapest first and then by name.
	Options []Option
	// Launch is the cheapest offering of all options; of those of one price the first by type, zone
	// and capacity type.
	Launch Launch
	// Pods are by namespace and name.
	Pods []types.NamespacedName
	// Requests is the sum over the pods and the daemons that Karpenter expects.
	Requests corev1.ResourceList

	labels      map[string]string
	taints      []corev1.Taint
	allocatable corev1.ResourceList
	capacity    corev1.ResourceList
}

// Node returns the node as it would join the cluster once Launch has been launched and its startup
// taints are gone.
func (n NewNode) Node(name string) *corev1.Node {
	labels := maps.Clone(n.labels)
	labels[corev1.LabelHostname] = name
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: slices.Clone(n.taints)},
		Status:     corev1.NodeStatus{Allocatable: n.allocatable.DeepCopy(), Capacity: n.capacity.DeepCopy()},
	}
}

// PricePerHour returns the sum of the launches' prices in USD per hour.
func (r Result) PricePerHour() float64 {
	sum := 0.0
	for _, n := range r.NewNodes {
		sum += n.Launch.Price
	}
	return sum
}

// Placed returns how many pods have a node.
func (r Result) Placed() int {
	sum := 0
	for _, n := range r.NewNodes {
		sum += len(n.Pods)
	}
	for _, n := range r.Existing {
		sum += len(n.Pods)
	}
	return sum
}

// newNode reports false for a claim without any offering left, which launches nothing.
func newNode(claim *scheduling.NodeClaim) (NewNode, bool) {
	n := NewNode{NodePool: claim.NodePoolName, Requests: claim.Spec.Resources.Requests, taints: claim.Spec.Taints}
	for _, p := range claim.Pods {
		n.Pods = append(n.Pods, nameOf(p))
	}
	slices.SortFunc(n.Pods, compareNames)

	// The claim's own requirements are narrowed by ToNodeClaim to what is launched, so offerings
	// are looked up first.
	var chosen *cloudprovider.InstanceType
	var offering *cloudprovider.Offering
	for _, it := range claim.InstanceTypeOptions {
		offerings := it.Offerings.Available().Compatible(claim.Requirements)
		if len(offerings) == 0 {
			continue
		}
		best := slices.MinFunc(offerings, compareOfferings)
		n.Options = append(n.Options, Option{InstanceType: it.Name, Price: best.Price})
		if chosen == nil || cmp.Or(cmp.Compare(best.Price, offering.Price), cmp.Compare(it.Name, chosen.Name)) < 0 {
			chosen, offering = it, best
		}
	}
	if chosen == nil {
		return n, false
	}
	slices.SortFunc(n.Options, func(a, b Option) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.InstanceType, b.InstanceType))
	})
	n.Launch = Launch{InstanceType: chosen.Name, Zone: offering.Zone(), CapacityType: offering.CapacityType(), Price: offering.Price}
	n.capacity = maps.Clone(chosen.Capacity)
	maps.Copy(n.capacity, offering.CapacityOverride)
	for _, group := range chosen.AllocatableOfferingsList() {
		if slices.Contains(group.Offerings, offering) {
			n.allocatable = group.Allocatable
		}
	}

	// A label is what the most specific source says: the type, then what the scheduler pinned, then
	// the offering.
	n.labels = map[string]string{}
	single := func(requirements karpscheduling.Requirements) {
		for key, r := range requirements {
			if r.Operator() == corev1.NodeSelectorOpIn && r.Len() == 1 {
				n.labels[key] = r.Values()[0]
			}
		}
	}
	single(chosen.Requirements)
	if os := chosen.Requirements.Get(corev1.LabelOSStable); os.Len() > 1 && os.Has(string(corev1.Linux)) {
		n.labels[corev1.LabelOSStable] = string(corev1.Linux) // a type can run several, a machine runs one
	}
	maps.Copy(n.labels, claim.ToNodeClaim().Labels)
	single(claim.Requirements)
	single(offering.Requirements)
	n.labels[corev1.LabelInstanceTypeStable] = chosen.Name
	return n, true
}

func compareOfferings(a, b *cloudprovider.Offering) int {
	return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Zone(), b.Zone()), cmp.Compare(a.CapacityType(), b.CapacityType()))
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(o.GetNamespace(), metav1.NamespaceDefault), Name: o.GetName()}
}
