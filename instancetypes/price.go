package instancetypes

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/requirements"
)

// LeastPrice is the price of the cheapest available offering that ask admits; false if there is none. Only what the
// offering itself says is compared: whether the type suits ask is for [Compatible] to say. It does not allocate.
func (t InstanceType) LeastPrice(ask requirements.Set) (float64, bool) {
	least, found := math.Inf(1), false
	for _, o := range t.Offerings {
		if o.Available && o.Price < least && ask.Overlaps(o.Requirements) {
			least, found = o.Price, true
		}
	}
	if !found {
		return 0, false
	}
	return least, true
}

// WorstLaunchPrice is the most that a launch under ask can cost, knowing that a cloud is asked for reserved capacity
// first, then spot, then on-demand: the dearest available offering of the first of these classes that ask admits at
// all. False if there is none.
func (t InstanceType) WorstLaunchPrice(ask requirements.Set) (float64, bool) {
	for _, class := range []string{CapacityTypeReserved, CapacityTypeSpot, CapacityTypeOnDemand} {
		worst, found := 0.0, false
		for _, o := range t.Offerings {
			if o.Available && o.CapacityType() == class && ask.Overlaps(o.Requirements) {
				worst, found = max(worst, o.Price), true
			}
		}
		if found {
			return worst, true
		}
	}
	return 0, false
}

// CapacityType is the value of [LabelCapacityType]; empty if the offering does not fix it.
func (o Offering) CapacityType() string {
	v, _ := o.Requirements.Get(LabelCapacityType).Single()
	return v
}

// ByPrice orders types by their least price under ask, those that ask admits no offering of last; equal prices by
// name. A new slice.
func ByPrice(types []InstanceType, ask requirements.Set) []InstanceType {
	type priced struct {
		InstanceType
		price float64
	}
	list := make([]priced, len(types))
	for i, t := range types {
		list[i] = priced{t, math.Inf(1)}
		if p, ok := t.LeastPrice(ask); ok {
			list[i].price = p
		}
	}
	slices.SortStableFunc(list, func(a, b priced) int {
		return cmp.Or(cmp.Compare(a.price, b.price), strings.Compare(a.Name, b.Name))
	})
	out := make([]InstanceType, len(list))
	for i, p := range list {
		out[i] = p.InstanceType
	}
	return out
}
