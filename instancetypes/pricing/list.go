package pricing

import (
	"github.com/joinery-sdk/joinery/instancetypes"
)

// List replaces the on-demand prices of the types that it has. Types that it does not have keep what is below, or lose
// their price if Complete. The zero value changes nothing.
type List struct {
	From instancetypes.PriceList
	// OnDemand maps instance types to US dollars per hour.
	OnDemand map[string]float64
	// Complete says that what is not in the list cannot be bought.
	Complete bool
}

// Quotes answers on-demand offerings from the list; see [instancetypes.PriceSource].
func (l List) Quotes(q instancetypes.PriceQuery, below []instancetypes.Quote) []instancetypes.Quote {
	if q.Offering.CapacityType() != instancetypes.CapacityTypeOnDemand {
		return below
	}
	price, ok := l.OnDemand[q.Type.Name]
	if !ok {
		if l.Complete {
			return nil
		}
		return below
	}
	return replace(below, price, &l.From)
}

// SpotHistory replaces spot prices by those that the cloud reported, type by type and zone by zone. Types of which it has
// no zone keep what is below, or lose their price if Complete; a type that it has in other zones only is not sold in this one.
type SpotHistory struct {
	From instancetypes.PriceList
	// Zones maps instance types to zones to US dollars per hour.
	Zones map[string]map[string]float64
	// Complete says that what is not in the history cannot be bought.
	Complete bool
}

// Quotes answers spot offerings from the history; see [instancetypes.PriceSource].
func (h SpotHistory) Quotes(q instancetypes.PriceQuery, below []instancetypes.Quote) []instancetypes.Quote {
	if q.Offering.CapacityType() != instancetypes.CapacityTypeSpot {
		return below
	}
	zones, ok := h.Zones[q.Type.Name]
	if !ok && !h.Complete {
		return below
	}
	price, ok := zones[q.Zone()]
	if !ok {
		return nil
	}
	return replace(below, price, &h.From)
}

// replace sets the price of what can be had without limit and leaves counted quotes alone.
func replace(below []instancetypes.Quote, price float64, from *instancetypes.PriceList) []instancetypes.Quote {
	return ordered(counted(below), instancetypes.Quote{Price: price, List: from})
}
