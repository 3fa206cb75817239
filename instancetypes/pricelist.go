package instancetypes

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// PriceList says where a price comes from, so that every answer with a price can name its source.
// The zero value is a list without a name.
type PriceList struct {
	Name string // for example "EC2 on-demand us-east-1"
	Date string // YYYY-MM-DD; empty means unknown
	// Estimated prices were computed from other prices; nobody published them.
	Estimated bool
}

// String returns the name, the date and whether it is an estimate: "EC2 spot us-east-1 of
// 2025-05-28 (estimated)".
func (l PriceList) String() string {
	text := cmp.Or(l.Name, "unnamed list")
	if l.Date != "" {
		text += " of " + l.Date
	}
	if l.Estimated {
		text += " (estimated)"
	}
	return text
}

// Age returns the age of the list, or false if its date is unknown.
func (l PriceList) Age(now time.Time) (time.Duration, bool) {
	date, err := time.Parse(time.DateOnly, l.Date)
	return now.Sub(date), err == nil
}

// PriceLists returns the lists of the available offerings, each once: published lists before
// estimated ones, and within each of the two in the order of name and date.
func PriceLists(types []InstanceType) []PriceList {
	seen := map[PriceList]bool{}
	last := (*PriceList)(nil)
	var out []PriceList
	for _, t := range types {
		for _, o := range t.Offerings {
			if o.List == nil || o.List == last || !o.Available {
				continue
			}
			last = o.List
			if !seen[*o.List] {
				seen[*o.List] = true
				out = append(out, *o.List)
			}
		}
	}
	slices.SortFunc(out, func(a, b PriceList) int {
		if a.Estimated != b.Estimated {
			if a.Estimated {
				return 1
			}
			return -1
		}
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Date, b.Date))
	})
	return out
}

// PriceQuery asks for the price of one offering of a type.
type PriceQuery struct {
	Type     InstanceType
	Offering Offering
}

// Zone returns the offering's zone, or an empty string if it does not fix one.
func (q PriceQuery) Zone() string {
	v, _ := q.Offering.Requirements.Get(corev1.LabelTopologyZone).Single()
	return v
}

// Matches reports whether a node bought by this offering satisfies ask. The offering decides the
// keys that it mentions, and the type decides all others. A key that neither mentions is absent.
func (q PriceQuery) Matches(ask requirements.Set) bool {
	if ask.IsImpossible() {
		return false
	}
	for r := range ask.All() {
		switch key := r.Key(); {
		case q.Offering.Requirements.Has(key):
			if !r.Overlaps(q.Offering.Requirements.Get(key)) {
				return false
			}
		case q.Type.Requirements.Has(key):
			if !r.Overlaps(q.Type.Requirements.Get(key)) {
				return false
			}
		case !r.AllowsAbsent():
			return false
		}
	}
	return true
}

// Quote is a price for one offering.
type Quote struct {
	Price float64 // US dollars per hour, finite and not negative
	List  *PriceList
	// Count is how many nodes can be bought at this price; 0 means as many as the offering has.
	// Commitment names what is counted: all quotes of one commitment share the count, whatever the
	// offering. A Count without a Commitment is that of this offering alone. If the offering has a
	// Stock, [Reprice] gives its Count and Commitment to each quote without a count, so a source
	// that makes new quotes cannot lose them.
	Count      int
	Commitment string
	// CommittedPerHour and CommitmentRate are those of [Offering].
	CommittedPerHour, CommitmentRate float64
}

// PriceSource is one layer of prices. It gets the quotes of the lower layers for an offering and
// returns the quotes that replace them, in ascending order of price. At most one quote has no
// count, and it comes last. If a source returns no quotes, the offering cannot be bought. The
// result must depend only on the arguments, and the source must not change them.
type PriceSource interface {
	Quotes(q PriceQuery, below []Quote) []Quote
}

// PriceSourceFunc is a function as a [PriceSource].
type PriceSourceFunc func(q PriceQuery, below []Quote) []Quote

// Quotes calls f.
func (f PriceSourceFunc) Quotes(q PriceQuery, below []Quote) []Quote { return f(q, below) }

// Reprice returns the types with each offering priced by the layers. The layers are applied in
// their order; the first argument is the lowest layer, and nil layers are skipped. The first layer
// starts from the offering's own price. An offering that is unavailable, has no price (0) and is
// not Full starts without quotes. It becomes available if a layer has a quote for it, unless the
// type is Retired. An offering that ends without quotes becomes unavailable and loses its price.
// Any other offering keeps its availability. Several quotes become several offerings, in the order
// of the quotes. The offerings are new; resource lists are shared with the argument.
func Reprice(types []InstanceType, layers ...PriceSource) []InstanceType {
	out := make([]InstanceType, len(types))
	for i, t := range types {
		out[i] = t
		out[i].Offerings = make([]Offering, 0, len(t.Offerings))
		for _, o := range t.Offerings {
			out[i].Offerings = append(out[i].Offerings, reprice(t, o, layers)...)
		}
	}
	return out
}

func reprice(t InstanceType, o Offering, layers []PriceSource) []Offering {
	unknown := !o.Available && o.Price == 0 && !o.Full
	var quotes []Quote
	if !unknown {
		quotes = o.limited([]Quote{{Price: o.Price, List: o.List}})
	}
	for _, layer := range layers {
		if layer == nil {
			continue
		}
		quotes = o.limited(layer.Quotes(PriceQuery{Type: t, Offering: o}, quotes))
	}
	if len(quotes) == 0 {
		o.Available, o.Price, o.List = false, 0, nil
		return []Offering{o}
	}
	out := make([]Offering, 0, len(quotes))
	for _, q := range quotes {
		n := o
		n.Price, n.List, n.ReservationCount, n.Commitment = q.Price, q.List, q.Count, q.Commitment
		n.CommittedPerHour, n.CommitmentRate = q.CommittedPerHour, q.CommitmentRate
		n.Available = o.Available || unknown && !t.Retired
		out = append(out, n)
	}
	return out
}

// limited gives the quotes without a count what limits the offering: its count, its commitment and
// the money of its commitment.
func (o Offering) limited(quotes []Quote) []Quote {
	if o.ReservationCount == 0 && o.Commitment == "" {
		return quotes
	}
	out := slices.Clone(quotes)
	for i := range out {
		if q := &out[i]; q.Count == 0 {
			q.Count, q.Commitment = o.ReservationCount, o.Commitment
			q.CommittedPerHour, q.CommitmentRate = o.CommittedPerHour, o.CommitmentRate
		}
	}
	return out
}

// Withhold returns the types, and marks every offering unavailable that matches one of the sets. It
// is used for capacity that a cloud refused, closed zones, and unwanted types. It also sets Full to
// false: a machine of such an offering that is given back cannot be bought again. The slice is new;
// unchanged types share their offerings.
func Withhold(types []InstanceType, gone ...requirements.Set) []InstanceType {
	out := slices.Clone(types)
	for i, t := range out {
		var offerings []Offering
		for j, o := range t.Offerings {
			q := PriceQuery{Type: t, Offering: o}
			if !o.Available && !o.Full || !slices.ContainsFunc(gone, q.Matches) {
				continue
			}
			if offerings == nil {
				offerings = slices.Clone(t.Offerings)
			}
			offerings[j].Available, offerings[j].Full = false, false
		}
		if offerings != nil {
			out[i].Offerings = offerings
		}
	}
	return out
}
