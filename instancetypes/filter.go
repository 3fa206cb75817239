package instancetypes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
)

// Compatible returns the types that a node which satisfies ask may have. ask is a set of
// requirements on the labels of the node. The type's labels must be compatible with ask, where the
// keys in open are still undecided, and ask must admit an available offering. Zones and capacity
// types are labels of offerings and not of types, so an ask that mentions them finds nothing unless
// open has their keys, as [WellKnown] does. The order is kept. The slice is new.
func Compatible(types []InstanceType, ask requirements.Set, open requirements.Keys) []InstanceType {
	var out []InstanceType
	for _, t := range types {
		if _, ok := t.LeastPrice(ask); ok && ask.Compatible(t.Requirements, open) {
			out = append(out, t)
		}
	}
	return out
}

// Fitting returns the types whose allocatable resources hold the requests. A type without a volume
// limit holds any number of volumes. The order is kept. The slice is new.
func Fitting(types []InstanceType, requests corev1.ResourceList) []InstanceType {
	var out []InstanceType
	for _, t := range types {
		if t.fits(requests) {
			out = append(out, t)
		}
	}
	return out
}

func (t InstanceType) fits(requests corev1.ResourceList) bool {
	for name, q := range requests {
		if _, limited := t.Capacity[name]; !limited && resources.CountsVolumes(name) {
			continue
		}
		if resources.Request(name, q) > t.step(name).Allocatable {
			return false
		}
	}
	return true
}

// Revive makes the offerings of a retired type available again if ask names the type explicitly:
// for one of the given keys, ask lists values, and the type's value is among them. The keys are
// those that name a type or its family, such as ec2.Naming. So retired types are bought only when
// named. Other types do not change. Offerings without a price (0) and full offerings (see
// [Offering.Full]) stay unavailable.
func Revive(types []InstanceType, ask requirements.Set, keys requirements.Keys) []InstanceType {
	out := make([]InstanceType, len(types))
	copy(out, types)
	for i, t := range out {
		if t.Retired && named(t, ask, keys) {
			offerings := make([]Offering, len(t.Offerings))
			for j, o := range t.Offerings {
				o.Available = o.Available || o.Price > 0 && !o.Full
				offerings[j] = o
			}
			out[i].Offerings = offerings
		}
	}
	return out
}

func named(t InstanceType, ask requirements.Set, keys requirements.Keys) bool {
	for key := range keys.All() {
		value, ok := t.Requirements.Get(key).Single()
		if !ok || !ask.Has(key) {
			continue
		}
		want := ask.Get(key)
		if _, finite := want.Values(); finite && want.Contains(value) {
			return true
		}
	}
	return false
}
