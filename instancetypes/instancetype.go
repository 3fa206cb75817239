package instancetypes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
)

// InstanceType is a kind of machine: what it is, where and at what price it can be had, and how large it is.
// The zero value is a nameless type that nobody offers.
type InstanceType struct {
	Name string
	// Requirements are the labels of a node of this type; several values mean that the buyer chooses, a key that must be
	// absent is one that no such node carries.
	Requirements requirements.Set
	// Offerings in the order of the catalogue.
	Offerings []Offering
	// Capacity is the whole machine as a kubelet reports it: cpu, memory and pods at least.
	Capacity corev1.ResourceList
	// Overhead is what of Capacity is not for pods.
	Overhead Overhead
	// Retired types are gone for new customers. Their offerings are unavailable unless somebody names the type: see [Revive].
	Retired bool
}

// Offering is one way to buy an instance type.
type Offering struct {
	// Requirements say which: zone, zone id, region, capacity type, reservation id. The zone
	// (topology.kubernetes.io/zone) and [LabelCapacityType] have exactly one value each.
	Requirements requirements.Set
	// Price is in US dollars per hour, finite and not negative; List says where it is from, nil = nobody said.
	Price float64
	List  *PriceList
	// Available is false for what exists but can't be had now, or has no known price.
	Available bool
	// ReservationCount is how many can be had at this price; 0 = no limit. Offerings with the same [LabelReservationID]
	// or the same Commitment share one count.
	ReservationCount int
	// Commitment names what was paid for in advance (a reserved instance, a savings plan) and makes the price what it is; empty
	// = none. It is no label: nodes do not carry it.
	Commitment string
	// CommittedPerHour, unless it is 0, says that the Commitment is an amount of money, such as a savings plan: so many dollars an
	// hour are paid whether used or not. A node of this offering uses CommitmentRate of them and costs Price besides, usually 0.
	// Nodes of several offerings share what is committed; ReservationCount is how many it covers of this one alone.
	CommittedPerHour, CommitmentRate float64
}

// Overhead is what the node keeps from pods. Resources that a list does not mention are 0.
type Overhead struct {
	KubeReserved      corev1.ResourceList // for kubelet and container runtime
	SystemReserved    corev1.ResourceList // for the operating system's daemons
	EvictionThreshold corev1.ResourceList // what the kubelet keeps free by evicting pods
}

// Total is the sum of the three.
func (o Overhead) Total() corev1.ResourceList {
	return resources.Add(resources.Add(o.KubeReserved, o.SystemReserved), o.EvictionThreshold)
}

// Allocatable is what pods can use: capacity without overhead, hugepages taken off memory, nothing below zero. Resources
// that the type does not have are left out. A new list; see [InstanceType.Breakdown] for the steps.
func (t InstanceType) Allocatable() corev1.ResourceList {
	out := make(corev1.ResourceList, len(t.Capacity))
	for name := range t.Capacity {
		out[name] = resources.Quantity(name, t.step(name).Allocatable)
	}
	return out
}

// Step is how one resource comes from capacity to allocatable, in counts of package resources (milli for cpu, units for
// the rest): Allocatable = max(0, Capacity - KubeReserved - SystemReserved - EvictionThreshold - Hugepages).
type Step struct {
	Resource                                                           corev1.ResourceName
	Capacity, KubeReserved, SystemReserved, EvictionThreshold          int64
	Hugepages /* memory that is set aside as hugepages */, Allocatable int64
}

// Breakdown is [InstanceType.Allocatable] with every step named, by resource name.
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
