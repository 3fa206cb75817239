package instancetypes

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// PriceList says where a price is from, so that every answer that shows money can say it, too. The zero value is a list
// that nobody named.
type PriceList struct {
	Name string // EC2 on-demand us-east-1
	Date string // YYYY-MM-DD; empty = unknown
	// Estimated prices were computed from others; nobody published them.
	Estimated bool
}

// String is name, date and whether it is an estimate: "EC2 spot us-east-1 of 2025-05-28 (estimated)".
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

// Age is how old the list is at a time; false if its date is unknown.
func (l PriceList) Age(now time.Time) (time.Duration, bool) {
	date, err := time.Parse(time.DateOnly, l.Date)
	return now.Sub(date), err == nil
}

// PriceLists collects the lists behind the available offerings, each once: published ones first, then by name and date.
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

// Zone is the offering's zone; empty if it does not fix one.
func (q PriceQuery) Zone() string {
	v, _ := q.Offering.Requirements.Get(corev1.LabelTopologyZone).Single()
	return v
}

// Matches reports whether a node bought by this offering satisfies ask: keys that the offering mentions are decided by it,
// all others by the type, and what neither mentions is absent.
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
	// Count is how many nodes can be had at this price; 0 = no limit. Commitment names what is counted: all quotes of
	// one commitment, whatever the offering, share the count.
	Count      int
	Commitment string
	// CommittedPerHour and CommitmentRate are those of [Offering].
	CommittedPerHour, CommitmentRate float64
}

// PriceSource is one layer of prices. It gets what the layers below say of an offering and returns what holds above it,
// in ascending order of price, at most one quote without count, which comes last. No quotes mean that the offering
// cannot be bought. It must not change what it gets, and must be a function of it.
type PriceSource interface {
	Quotes(q PriceQuery, below []Quote) []Quote
}

// PriceSourceFunc is a function as a [PriceSource].
type PriceSourceFunc func(q PriceQuery, below []Quote) []Quote

// Quotes calls f.
func (f PriceSourceFunc) Quotes(q PriceQuery, below []Quote) []Quote { return f(q, below) }

// Reprice returns the types with each offering priced by the layers, lowest first. What an offering says itself is the
// ground: an offering that is unavailable without a price (0) starts without quotes, and becomes available if a layer has
// one; any other keeps its availability. Layers that are nil are passed over. Several quotes make several offerings, in the order of the quotes. The
// offerings are new; resource lists are shared with the types that were given.
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
	unknown := !o.Available && o.Price == 0
	var quotes []Quote
	if !unknown {
		quotes = []Quote{{Price: o.Price, List: o.List, Count: o.ReservationCount, Commitment: o.Commitment, CommittedPerHour: o.CommittedPerHour, CommitmentRate: o.CommitmentRate}}
	}
	for _, layer := range layers {
		if layer == nil {
			continue
		}
		quotes = layer.Quotes(PriceQuery{Type: t, Offering: o}, quotes)
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

// Withhold returns the types with every offering unavailable that one of the sets matches: capacity that a cloud refused,
// zones that are shut, types that are not wanted. A new slice; untouched types share their offerings.
func Withhold(types []InstanceType, gone ...requirements.Set) []InstanceType {
	out := slices.Clone(types)
	for i, t := range out {
		var offerings []Offering
		for j, o := range t.Offerings {
			q := PriceQuery{Type: t, Offering: o}
			if !o.Available || !slices.ContainsFunc(gone, q.Matches) {
				continue
			}
			if offerings == nil {
				offerings = slices.Clone(t.Offerings)
			}
			offerings[j].Available = false
		}
		if offerings != nil {
			out[i].Offerings = offerings
		}
	}
	return out
}
