package pricing

import (
	"github.com/joinery-sdk/joinery/instancetypes"
)

// List replaces the on-demand prices of the types that it contains. Other types keep the price
// below, or lose it if Complete is set. The zero value changes nothing.
type List struct {
	From instancetypes.PriceList
	// OnDemand maps instance types to US dollars per hour.
	OnDemand map[string]float64
	// Complete says that types missing from the list cannot be bought.
	Complete bool
}

// Quotes prices on-demand offerings from the list, see [instancetypes.PriceSource].
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
	return replace(q, below, price, &l.From)
}

// SpotHistory replaces spot prices with those that the cloud reported, by type and zone. A type
// that it does not contain keeps the price below, or loses it if Complete is set. If it contains a
// type only in other zones, the type is not sold in this zone.
type SpotHistory struct {
	From instancetypes.PriceList
	// Zones maps an instance type to a zone to US dollars per hour.
	Zones map[string]map[string]float64
	// Complete says that types missing from the history cannot be bought.
	Complete bool
}

// Quotes prices spot offerings from the history, see [instancetypes.PriceSource].
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
	return replace(q, below, price, &h.From)
}

// replace sets the price of the offering itself. It does not change quotes that commitments of
// lower layers have added, nor an offering that is paid with the money of a commitment.
func replace(q instancetypes.PriceQuery, below []instancetypes.Quote, price float64, from *instancetypes.PriceList) []instancetypes.Quote {
	own := instancetypes.Quote{Price: price, List: from}
	switch {
	case q.Offering.CommittedPerHour != 0:
		return below
	case q.Offering.ReservationCount > 0: // commitments leave it alone
		return []instancetypes.Quote{own}
	}
	return ordered(counted(below), own)
}
