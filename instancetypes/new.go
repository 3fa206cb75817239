package instancetypes

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// maxPods is the kubelet's default limit of pods.
const maxPods = 110

// New returns a type for a catalogue of your own. labels are the labels of its nodes, which pods
// can select; the name is added as node.kubernetes.io/instance-type. If labels name no
// architecture, it is amd64; if they name no operating system, it is linux. If capacity has no
// number of pods, it is 110, the default of a kubelet. Overhead is empty: set it afterwards, or
// pass a capacity from which it is already subtracted. Labels that no node can have lead to
// requirements that [Validate] rejects.
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

// Offer returns a way to buy a type: in a zone, as a capacity type such as [CapacityTypeOnDemand],
// for a price in dollars an hour. [Validate] rejects an empty zone or capacity type. The offering is
// available in any number, see [Offering.Stock]. Intersect its Requirements with further labels that
// depend on the place, such as the region.
func Offer(zone, capacityType string, perHour float64) Offering {
	return Offering{
		Requirements: requirements.FromLabels(map[string]string{corev1.LabelTopologyZone: zone, LabelCapacityType: capacityType}),
		Price:        perHour, Available: true,
	}
}

// Stock returns the offering with n machines left to buy; 0 means sold out. n does not include
// machines that already run. All offerings with the same id share one stock, whatever pools they
// are in, and must all have the same n; [Validate] compares those of one catalogue. With an empty
// id, the offering has a separate stock of n in each pool that sells it.
func (o Offering) Stock(id string, n int) Offering {
	o.ReservationCount, o.Commitment = n, id
	if n == 0 { // a count of 0 would mean any number
		o.Available, o.Full = false, true
	}
	return o
}

// Node returns an empty, ready node of the type, bought by the offering. It has the labels of the
// type and the offering, its hostname, and the labels of more, which take precedence. It has no
// taints and no provider id. It is for tests and made-up clusters. For the labels of its pool see
// NodePool.PoolLabels.
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
