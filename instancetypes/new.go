package instancetypes

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// maxPods is how many pods a kubelet takes unless it is told otherwise.
const maxPods = 110

// New is a type of a catalogue of your own. Labels are those that its nodes have and pods select by; the name is added as
// node.kubernetes.io/instance-type, and where labels do not say otherwise the architecture is amd64 and the operating system linux. Where
// capacity has no pods it is 110, as a kubelet's. Overhead is empty: set it, or give capacity without it. Labels that no node can have make
// requirements that [Validate] refuses.
func New(name string, labels map[string]string, capacity corev1.ResourceList, offers ...Offering) InstanceType {
	own := map[string]string{corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux"}
	maps.Copy(own, labels)
	own[corev1.LabelInstanceTypeStable] = name
	size := maps.Clone(capacity)
	if size == nil {
		size = corev1.ResourceList{}
	}
	if _, ok := size[corev1.ResourcePods]; !ok {
		size[corev1.ResourcePods] = *resource.NewQuantity(maxPods, resource.DecimalSI)
	}
	return InstanceType{Name: name, Requirements: requirements.FromLabels(own), Capacity: size, Offerings: append([]Offering(nil), offers...)}
}

// Offer is a way to buy a type: in a zone, as a capacity type such as [CapacityTypeOnDemand], for so many dollars an hour. It is available,
// in any number; see [Offering.Stock].
func Offer(zone, capacityType string, perHour float64) Offering {
	return Offering{
		Requirements: requirements.FromLabels(map[string]string{corev1.LabelTopologyZone: zone, LabelCapacityType: capacityType}),
		Price:        perHour, Available: true,
	}
}

// Stock is the offering with n machines left; with none it is sold out. All offerings with the same id share one stock, in whatever pools
// they are, and they give the same n. Without an id each pool has a stock of its own.
func (o Offering) Stock(id string, n int) Offering {
	o.ReservationCount, o.Commitment = n, id
	if n == 0 { // a count of 0 would mean any number
		o.Available = false
	}
	return o
}

// Node is an empty node of the type as it was bought, ready, with the labels of type and offering, its hostname, and those of more, which
// count most. It is for tests and for clusters that are made up; the labels of its pool are PoolLabels of the NodePool.
func (t InstanceType) Node(name string, o Offering, more map[string]string) *corev1.Node {
	labels := t.Requirements.Labels()
	maps.Copy(labels, o.Requirements.Labels())
	labels[corev1.LabelHostname] = name
	maps.Copy(labels, more)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{
			Capacity: maps.Clone(t.Capacity), Allocatable: t.Allocatable(),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}
