package instancetypes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
)

// InstanceType is a type of machine: its labels, its size, and where and at what price it is sold.
// The zero value is a type without a name and without offerings.
type InstanceType struct {
	Name string
	// Requirements are the labels of a node of this type. Several values mean that the buyer
	// chooses. A key that must be absent (DoesNotExist) means that no node of the type has the
	// label.
	Requirements requirements.Set
	// Offerings are the ways to buy the type, in the order of the catalogue.
	Offerings []Offering
	// Capacity is the whole machine as a kubelet reports it. A resource that it lacks is 0, so a
	// type without cpu, memory or pods holds no pod that takes some of it, and each pod takes one of
	// pods.
	// The resource named "attachable-volumes-csi-" plus the name of a CSI driver says how many
	// volumes that driver can attach. If Capacity lacks this resource, any number of the driver's
	// volumes fits.
	Capacity corev1.ResourceList
	// Overhead is the part of Capacity that is not for pods.
	Overhead Overhead
	// Retired types are no longer sold to new customers. A catalogue has their offerings as
	// unavailable. To buy retired types for pools that name them, a planner calls [Revive].
	Retired bool
}

// Clone returns a deep copy of the types, which shares nothing with them that could be changed.
func Clone(types []InstanceType) []InstanceType {
	out := slices.Clone(types)
	for i := range out {
		t := &out[i]
		t.Offerings = slices.Clone(t.Offerings)
		for j := range t.Offerings {
			if list := t.Offerings[j].List; list != nil {
				copied := *list
				t.Offerings[j].List = &copied
			}
		}
		t.Capacity = t.Capacity.DeepCopy()
		t.Overhead.KubeReserved = t.Overhead.KubeReserved.DeepCopy()
		t.Overhead.SystemReserved = t.Overhead.SystemReserved.DeepCopy()
		t.Overhead.EvictionThreshold = t.Overhead.EvictionThreshold.DeepCopy()
	}
	return out
}

// Offering is one way to buy an instance type.
type Offering struct {
	// Requirements identify the offering: zone, zone id, region, capacity type, reservation id. The
	// zone (topology.kubernetes.io/zone) and [LabelCapacityType] have exactly one value each, which
	// is not empty. An offering that has no zone does not have the label.
	Requirements requirements.Set
	// Price is in US dollars per hour, finite and not negative. You may use another currency if all
	// prices are in it. Then also set options such as DisruptionPrice, because their defaults are
	// in dollars. If a cloud caps the price per month, use the hourly price; for nodes that run the
	// whole month, use the cap divided by 730 hours. List is the source of the price; nil means
	// unknown.
	Price float64
	List  *PriceList
	// Available is false if the offering exists but cannot be bought now, or has no known price.
	Available bool
	// Withheld, if not empty, says that Available is false only because the buyer does not want the
	// offering: it names the setting, for explanations.
	Withheld string
	// Full says that Available is false only because all machines of the offering's reservation or
	// stock are in use. A machine that is given back can then be bought again. Full is false if the
	// cloud has refused the offering for lack of capacity: a machine that is given back is then not
	// kept for this account, because the cloud may give it to anyone.
	Full bool
	// ReservationCount is how many nodes can be bought at this price; 0 means no limit. Offerings
	// with the same [LabelReservationID] or the same Commitment share one count.
	ReservationCount int
	// Commitment names what ReservationCount counts, if it has no LabelReservationID: a stock of
	// machines (see [Offering.Stock]), or something paid for in advance that determines the price,
	// such as a reserved instance or a savings plan. If a reserved instance or a savings plan
	// covers a type, the type also has a second offering, at the list price and without a
	// Commitment. A type that only has a stock has no such second offering. Commitment is empty if
	// the offering is limited by neither. It is not a label of the node.
	Commitment string
	// CommittedPerHour, if not 0, says that the Commitment is an amount of money, such as a savings
	// plan: CommittedPerHour dollars an hour are paid whether used or not. A node of this offering
	// uses CommitmentRate dollars an hour of this amount, and additionally costs Price, usually 0.
	// Nodes of several offerings share the committed amount. ReservationCount is how many nodes the
	// whole amount covers if all of them are of this offering.
	CommittedPerHour, CommitmentRate float64
}

// Overhead is what the node keeps from pods. Resources missing from a list are 0.
type Overhead struct {
	KubeReserved      corev1.ResourceList // for kubelet and container runtime
	SystemReserved    corev1.ResourceList // for the operating system's daemons
	EvictionThreshold corev1.ResourceList // what the kubelet keeps free by evicting pods
}

// Total returns the sum of the three.
func (o Overhead) Total() corev1.ResourceList {
	return resources.Add(resources.Add(o.KubeReserved, o.SystemReserved), o.EvictionThreshold)
}

// Allocatable returns what pods can use: capacity minus overhead, with hugepages subtracted from
// memory, and never negative. Resources that the type does not have are left out. The list is new.
// [InstanceType.Breakdown] shows the steps.
func (t InstanceType) Allocatable() corev1.ResourceList {
	out := make(corev1.ResourceList, len(t.Capacity))
	for name := range t.Capacity {
		out[name] = resources.Quantity(name, t.step(name).Allocatable)
	}
	return out
}

// Step says how the allocatable amount of one resource is computed, in counts of package resources
// (milli for cpu, units for the rest): Allocatable = max(0, Capacity - KubeReserved -
// SystemReserved - EvictionThreshold - Hugepages).
type Step struct {
	Resource                                                           corev1.ResourceName
	Capacity, KubeReserved, SystemReserved, EvictionThreshold          int64
	Hugepages /* memory that is set aside as hugepages */, Allocatable int64
}

// Breakdown returns [InstanceType.Allocatable] with every step, in the order of the resource names.
func (t InstanceType) Breakdown() []Step {
	out := make([]Step, 0, len(t.Capacity))
	for _, name := range resources.Names(t.Capacity) {
		out = append(out, t.step(name))
	}
	return out
}

func (t InstanceType) step(name corev1.ResourceName) Step {
	s := Step{
		Resource:          name,
		Capacity:          resources.Capacity(name, t.Capacity[name]),
		KubeReserved:      resources.Request(name, t.Overhead.KubeReserved[name]),
		SystemReserved:    resources.Request(name, t.Overhead.SystemReserved[name]),
		EvictionThreshold: resources.Request(name, t.Overhead.EvictionThreshold[name]),
	}
	if name == corev1.ResourceMemory {
		for other, q := range t.Capacity {
			if isHugepages(other) {
				s.Hugepages = minus(s.Hugepages, -resources.Request(other, q))
			}
		}
	}
	left := s.Capacity
	for _, taken := range []int64{s.KubeReserved, s.SystemReserved, s.EvictionThreshold, s.Hugepages} {
		left = minus(left, taken)
	}
	s.Allocatable = max(0, left)
	return s
}
