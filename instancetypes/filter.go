package instancetypes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
)

// Compatible keeps the types that a node under ask may have: the type's labels suit ask, keys in open being still to be
// decided, and one available offering is admitted. The order stays. A new slice.
func Compatible(types []InstanceType, ask requirements.Set, open requirements.Keys) []InstanceType {
	var out []InstanceType
	for _, t := range types {
		if _, ok := t.LeastPrice(ask); ok && ask.Compatible(t.Requirements, open) {
			out = append(out, t)
		}
	}
	return out
}

// Fitting keeps the types whose allocatable resources hold the requests. A type without a limit of volumes holds any number of them. The order
// stays. A new slice.
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

// Revive returns the types with the offerings of retired types made available again where ask names the type or its
// family outright: by a finite list of values of one of the keys. Retired types are thus bought only when named. Other types
// stay as they are. Offerings without a price stay unavailable, except in catalogues where the price is truly 0.
func Revive(types []InstanceType, ask requirements.Set, keys requirements.Keys) []InstanceType {
	out := make([]InstanceType, len(types))
	copy(out, types)
	for i, t := range out {
		if t.Retired && named(t, ask, keys) {
			offerings := make([]Offering, len(t.Offerings))
			for j, o := range t.Offerings {
				o.Available = o.Available || o.Price > 0
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
