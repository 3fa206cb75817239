package pricing

import (
	"cmp"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// Discount reduces every price of the matching offerings by a percentage. The zero value changes
// nothing.
type Discount struct {
	Match requirements.Set
	// Percent is the reduction: 10 means nine tenths of the price. More than 100 makes things free;
	// a negative value makes them dearer.
	Percent float64
}

// Quotes applies the discount, see [instancetypes.PriceSource].
func (d Discount) Quotes(q instancetypes.PriceQuery, below []instancetypes.Quote) []instancetypes.Quote {
	if d.Percent == 0 || !q.Matches(d.Match) {
		return below
	}
	return each(below, func(quote instancetypes.Quote) float64 { return quote.Price * (1 - d.Percent/100) })
}

// Commitment is a reserved instance or a savings plan: a number of matching nodes have another
// price, because they are already paid for. Nodes beyond that number have the normal price. It
// applies to on-demand offerings only, and not to those with a Stock: a commitment makes no more
// machines. The zero value changes nothing.
type Commitment struct {
	// Name identifies the commitment. All matching offerings share the count of one name.
	Name  string
	From  instancetypes.PriceList
	Match requirements.Set
	// Count is the number of nodes; 0 or less means none.
	Count int
	// Price is the price of each node in US dollars per hour; 0 for what is paid whether used or
	// not. If PercentOff is not 0, the price is that of the layers below, reduced by PercentOff;
	// Price is then ignored.
	Price, PercentOff float64
	// PerHour, if not 0, makes it a savings plan that is counted in money: so many dollars an hour
	// are paid whether used or not. Until the amount is used up, each node uses part of it and
	// costs nothing more. The part is the price of the layers below, reduced by PercentOff. Count
	// and Price do not apply. Subtract what running nodes already use. The real savings plan covers
	// the last node in part. Here a node is covered as a whole or not at all. So the real bill may
	// be lower than the plan says, by less than the price of one node.
	PerHour float64
}

// Quotes adds the counted price, see [instancetypes.PriceSource].
func (c Commitment) Quotes(q instancetypes.PriceQuery, below []instancetypes.Quote) []instancetypes.Quote {
	money := c.PerHour != 0 && !(c.PerHour < 0) // also if it is not a number, so that Validate notices
	if c.Count <= 0 && !money || q.Offering.CapacityType() != instancetypes.CapacityTypeOnDemand || !q.Matches(c.Match) {
		return below
	}
	if q.Offering.ReservationCount > 0 || q.Offering.Full {
		return below
	}
	if money {
		base, ok := unlimited(below)
		rate := base.Price * (1 - c.PercentOff/100)
		if !ok || rate <= 0 || rate > c.PerHour {
			return below
		}
		count := 1 << 30
		if nodes := c.PerHour / rate; nodes < float64(count) {
			count = int(nodes)
		}
		return ordered(below, instancetypes.Quote{
			List: &c.From, Count: count, Commitment: cmp.Or(c.Name, "commitment"), CommittedPerHour: c.PerHour, CommitmentRate: rate,
		})
	}
	price := c.Price
	if c.PercentOff != 0 {
		base, ok := unlimited(below)
		if !ok {
			return below
		}
		price = base.Price * (1 - c.PercentOff/100)
	}
	return ordered(below, instancetypes.Quote{Price: max(0, price), List: &c.From, Count: c.Count, Commitment: cmp.Or(c.Name, "commitment")})
}

// Override sets the price of what matches and ignores all prices below it. The zero value makes
// everything free.
type Override struct {
	From  instancetypes.PriceList
	Match requirements.Set
	Price float64 // US dollars per hour
}

// Quotes sets the price, see [instancetypes.PriceSource].
func (o Override) Quotes(q instancetypes.PriceQuery, below []instancetypes.Quote) []instancetypes.Quote {
	if !q.Matches(o.Match) {
		return below
	}
	return []instancetypes.Quote{{Price: o.Price, List: &o.From}}
}
