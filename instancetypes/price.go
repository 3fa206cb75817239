package instancetypes

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/requirements"
)

// LeastPrice returns the price of the cheapest available offering that ask admits, or false if
// there is none. It compares ask only with the offering: [Compatible] says whether the type fits
// ask. It does not allocate.
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

// WorstLaunchPrice returns the highest price that the launch of a node which satisfies ask can
// have, or false if ask admits no available offering. A cloud is asked for reserved capacity first,
// then spot, then on-demand. So only one capacity type counts: the first one, in this order, of
// which ask admits an available offering. The result is the price of the dearest such offering.
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

// CapacityType returns the value of [LabelCapacityType], or an empty string if the offering does
// not fix it.
func (o Offering) CapacityType() string {
	v, _ := o.Requirements.Get(LabelCapacityType).Single()
	return v
}

// ByPrice returns the types in the order of their [InstanceType.LeastPrice] for ask. Types with
// equal prices are ordered by name. Types without an available offering that ask admits come last.
// The slice is new.
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
