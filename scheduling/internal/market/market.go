// Package market is what the pools may still buy: offerings by the labels that their nodes would
// have, and what is left of limits, quotas and counts.
package market

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/once"
)

// Pool is what a pool may buy in all.
type Pool struct {
	Weight int32
	Left   []int64 // of each resource that it limits
	Nodes  int     // negative for any number
	Closed bool    // it buys nothing here, because only the packer knows all of its rules
}

// Demanded returns the minValues of a pool whose nodes satisfy set, without those that each of its
// nodes meets: one value of a label that all offerings have.
func Demanded(minValues map[string]int, types []instancetypes.InstanceType, set requirements.Set) map[string]int {
	out := maps.Clone(minValues)
	maps.DeleteFunc(out, func(key string, n int) bool {
		return n <= 0 || n == 1 && !slices.ContainsFunc(types, func(t instancetypes.InstanceType) bool {
			own := t.Requirements.Get(key).Intersect(set.Get(key))
			return slices.ContainsFunc(t.Offerings, func(o instancetypes.Offering) bool {
				r := own.Intersect(o.Requirements.Get(key))
				_, finite := r.Values()
				return !finite || r.AllowsAbsent()
			})
		})
	})
	return out
}

// Offer is an offering of a shape.
type Offer struct {
	Shape, Offering, Pool int

	Free  []int64 // what pods can use of a node
	Usage []int64 // what a node counts against the pool's limits
	Quota []int64 // what a node counts against each quota
	Price float64
	Count int    // how much there is; 0 for any number of nodes
	Takes int    // how much of Count a node takes; 0 means 1
	Stock string // what Count counts, if other offerings share it
}

// Market is all offers of a problem. It is immutable, and safe for concurrent use.
type Market struct {
	Cells []Cell

	pools []Pool
	at    map[[2]int]*Offer // by shape and offering
	site  func(requirements.Set) Site
}

// Cell is the offers of one pool whose nodes agree in all labels that some pod asks about.
type Cell struct {
	Site
	Offers []*Offer // first what uses the least of the limits, then the cheapest

	narrowed *once.Map[string, *Site] // by the key of what pods ask for; nil for what no node there can be
}

// Site is what a new node would be to pods: the labels that it may have, those that it has without
// further requirements, and its values for constraints between pods.
type Site struct {
	Allowed requirements.Set
	Labels  map[string]string
	Values  []int32
}

// New groups offers. Each comes with the labels of its nodes; site describes such nodes.
func New(pools []Pool, offers iter.Seq2[*Offer, requirements.Set], site func(requirements.Set) Site) *Market {
	m := &Market{pools: pools, at: map[[2]int]*Offer{}, site: site}
	at := map[string]int{}
	var key []byte
	for o, labels := range offers {
		m.at[[2]int{o.Shape, o.Offering}] = o
		key = labels.AppendKey(append(strconv.AppendInt(key[:0], int64(o.Pool), 10), ' '))
		k, ok := at[string(key)]
		if !ok {
			k = len(m.Cells)
			at[string(key)] = k
			m.Cells = append(m.Cells, Cell{Site: site(labels), narrowed: &once.Map[string, *Site]{}})
		}
		m.Cells[k].Offers = append(m.Cells[k].Offers, o)
	}
	for _, c := range m.Cells {
		slices.SortStableFunc(c.Offers, func(a, b *Offer) int {
			return cmp.Or(slices.Compare(a.Usage, b.Usage), slices.Compare(a.Quota, b.Quota), cmp.Compare(a.Price, b.Price))
		})
	}
	return m
}

// Offer returns an offering of a shape; nil if no node can have its labels.
func (m *Market) Offer(shape, offering int) *Offer { return m.at[[2]int{shape, offering}] }

// AnyOf returns an offering of a shape that counts as much against limits and quotas as any of the
// others, too. They are of the same pool.
func (m *Market) AnyOf(shape, offering int, others [][2]int) *Offer {
	out := m.Offer(shape, offering)
	if len(others) == 0 {
		return out
	}
	most := *out
	for _, at := range others {
		o := m.at[at]
		most.Usage, most.Quota = larger(most.Usage, o.Usage), larger(most.Quota, o.Quota)
	}
	return &most
}

// larger returns the larger of each two entries. nil is nothing.
func larger(a, b []int64) []int64 {
	out := make([]int64, max(len(a), len(b)))
	copy(out, a)
	for i := range b {
		out[i] = max(out[i], b[i])
	}
	return out
}

// Weight returns the weight of the offer's pool.
func (m *Market) Weight(o *Offer) int32 { return m.pools[o.Pool].Weight }

// Sale is a cell whose nodes an alternative of a class's requirements accepts. It is small, because
// there may be millions.
type Sale struct {
	cell, alternative int32
	whole             bool // the class asks nothing that the labels of the cell leave open
}

// Sales returns the cells for pods with these requirements and requests.
func (m *Market) Sales(required requirements.Alternatives, requests []int64) []Sale {
	var out []Sale
	for i, cell := range m.Cells {
		fits := func(o *Offer) bool { return bind.Fits(requests, o.Free) }
		if m.pools[cell.Offers[0].Pool].Closed || !slices.ContainsFunc(cell.Offers, fits) {
			continue
		}
		for k := range required.Len() {
			if alternative := required.At(k); alternative.Compatible(cell.Allowed, requirements.Keys{}) {
				out = append(out, Sale{int32(i), int32(k), cell.Allowed.Subset(alternative)})
			}
		}
	}
	return out
}

// Kind is an offer that pods may have. Its site is that of its cell, or a narrower one.
type Kind struct {
	*Site
	*Offer
	Cell int
}

// Values returns the values of a label that nodes for sale may have, by number, and one more that no
// node has if some may have any value.
func (m *Market) Values(sales []Sale, key string, number func(value string) int32) []int32 {
	values := []string(nil)
	for _, s := range sales {
		if allowed := m.Cells[s.cell].Allowed; allowed.Has(key) {
			list, finite := allowed.Get(key).Values()
			if !finite {
				list = []string{"any value"}
			}
			values = append(values, list...)
		}
	}
	slices.Sort(values)
	out := []int32(nil)
	for _, v := range slices.Compact(values) {
		out = append(out, number(v))
	}
	return out
}

// Kinds returns the wanted offers that may still be bought and that have so much room: the best one
// of each sale. The heaviest pools come first, then the cheapest offers. The requirements are those
// of the sales.
func (r *Remaining) Kinds(sales []Sale, required requirements.Alternatives, room []int64, wanted func(Kind) bool) []Kind {
	var out []Kind
	for _, s := range sales {
		cell := &r.m.Cells[s.cell]
		at := slices.IndexFunc(cell.Offers, func(o *Offer) bool { return bind.Fits(room, o.Free) && r.Within(o) && r.Stocks(o) })
		if at < 0 {
			continue
		}
		k := Kind{&cell.Site, cell.Offers[at], int(s.cell)}
		if !s.whole {
			asked := required.At(int(s.alternative))
			k.Site = cell.narrowed.Of(string(asked.AppendKey(nil)), func() *Site {
				both, err := cell.Allowed.Intersect(asked)
				if err != nil {
					return nil
				}
				own := r.m.site(both)
				return &own
			})
			if k.Site == nil {
				continue
			}
		}
		if wanted(k) { // most are not, and would be sorted in vain
			out = append(out, k)
		}
	}
	slices.SortStableFunc(out, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(r.m.Weight(b.Offer), r.m.Weight(a.Offer)), cmp.Compare(a.Price, b.Price))
	})
	return out
}

// ByCommitment keeps names of [instancetypes.Offering.Commitment] apart from reservation ids.
const ByCommitment = "commitment "

// Reservation names the capacity reservation or commitment whose count an offering shares; empty
// for other offerings.
func Reservation(o *instancetypes.Offering) string {
	if o.ReservationCount == 0 {
		return ""
	}
	if id, ok := o.Requirements.Get(instancetypes.LabelReservationID).Single(); ok {
		return id
	}
	if o.Commitment != "" {
		return ByCommitment + o.Commitment
	}
	return ""
}

// Money returns what a node takes of a commitment in money, and the whole amount, in millionths of a
// dollar an hour; 0 for other offerings.
func Money(o *instancetypes.Offering) (takes, committed int) {
	if o.CommittedPerHour <= 0 {
		return 0, 0
	}
	const noise = 1e-3 // of a millionth: 0.07 times a million is a little more than 70000
	return max(int(math.Ceil(o.CommitmentRate*1e6-noise)), 1), max(int(o.CommittedPerHour*1e6+noise), 1)
}
