package market

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Remaining is what may still be bought. It is not safe for concurrent use.
type Remaining struct {
	m      *Market
	limits [][]int64 // by pool and limited resource
	nodes  []int     // by pool; negative for any number
	quotas []int64
	sold   map[string]int // how much of the counts is taken, by Offer.Stock
}

// Remaining returns what may be bought beside no other node. quotas is what they still allow.
func (m *Market) Remaining(quotas []int64) *Remaining {
	out := &Remaining{m: m, quotas: slices.Clone(quotas), sold: map[string]int{}}
	for _, p := range m.pools {
		out.limits, out.nodes = append(out.limits, slices.Clone(p.Left)), append(out.nodes, p.Nodes)
	}
	return out
}

// Clone returns an independent copy.
func (r *Remaining) Clone() *Remaining {
	out := &Remaining{m: r.m, nodes: slices.Clone(r.nodes), quotas: slices.Clone(r.quotas), sold: maps.Clone(r.sold)}
	for _, left := range r.limits {
		out.limits = append(out.limits, slices.Clone(left))
	}
	return out
}

// Buy takes a node; sign -1 gives it back.
func (r *Remaining) Buy(o *Offer, sign int) {
	for i, u := range o.Usage {
		r.limits[o.Pool][i] = minus(r.limits[o.Pool][i], u*int64(sign))
	}
	for i, u := range o.Quota {
		r.quotas[i] = minus(r.quotas[i], u*int64(sign))
	}
	if r.nodes[o.Pool] >= 0 {
		r.nodes[o.Pool] = max(0, r.nodes[o.Pool]-sign)
	}
	r.sold[o.Stock] += sign * max(o.Takes, 1)
}

// Left returns what the limits of a pool still allow, and how many nodes; negative for any number.
func (r *Remaining) Left(pool int) (limits []int64, nodes int) { return r.limits[pool], r.nodes[pool] }

// Scarce returns the first limit of the pool, as an index, that one of the offers exceeds; -1 for
// none.
func (r *Remaining) Scarce(pool int, offers []*Offer) int {
	for i, left := range r.limits[pool] {
		if slices.ContainsFunc(offers, func(o *Offer) bool { return o.Usage[i] > left }) {
			return i
		}
	}
	return -1
}

// Quotas returns what the quotas still allow.
func (r *Remaining) Quotas() []int64 { return r.quotas }

// minus subtracts b from a and saturates.
func minus(a, b int64) int64 {
	switch d := a - b; {
	case b > 0 && d > a:
		return math.MinInt64
	case b < 0 && d < a:
		return math.MaxInt64
	default:
		return d
	}
}

// Within reports whether the limits of the pool and the quotas allow one more node.
func (r *Remaining) Within(o *Offer) bool { return r.InPool(o) && Fits(o.Quota, r.quotas) }

// InPool reports whether the limits of the pool allow one more node.
func (r *Remaining) InPool(o *Offer) bool {
	for i, u := range o.Usage {
		if u > r.limits[o.Pool][i] {
			return false
		}
	}
	return r.nodes[o.Pool] != 0
}

// Stocks reports whether enough of the offer's count is left for one more node.
func (r *Remaining) Stocks(o *Offer) bool {
	return o.Count == 0 || r.sold[o.Stock] <= o.Count-max(o.Takes, 1)
}

// Fits reports whether usage fits in what is left. A node that counts nothing against a quota fits
// in it.
func Fits(usage, left []int64) bool {
	for i, u := range usage {
		if u > 0 && u > left[i] {
			return false
		}
	}
	return true
}

// UsedUp lists counts that are used up, in the order in which they are added. The zero value is
// empty.
type UsedUp struct {
	stocks []string   // each [Offer.Stock] once
	counts []int      // of machines; 0 for an amount of money
	types  [][]string // what was bought from each stock, as "m as zone in (a)"
	names  []string   // of reservations and commitments
}

// Add adds what is bought as typ, from a reservation or commitment if name is not empty.
func (u *UsedUp) Add(o *Offer, typ, name string) {
	at := slices.Index(u.stocks, o.Stock)
	if at < 0 {
		at = len(u.stocks)
		if o.Takes > 0 {
			o = &Offer{Stock: o.Stock}
		}
		u.stocks, u.counts, u.types, u.names = append(u.stocks, o.Stock), append(u.counts, o.Count), append(u.types, nil), append(u.names, name)
	}
	if !slices.Contains(u.types[at], typ) {
		u.types[at] = append(u.types[at], typ)
	}
}

// String names the first of them, and how many others there are: "2 machines of m as zone in (a),
// 1 machine of m as zone in (b) (from lease)". It is empty if there are none.
func (u *UsedUp) String() string {
	const most = 4
	short := func(list []string, what string) []string {
		if n := len(list) - most; n > 1 {
			return append(slices.Clone(list[:most]), fmt.Sprintf("%d other %s", n, what))
		}
		return list
	}
	var out []string
	for i, n := range u.counts {
		text := fmt.Sprintf("%d machines of ", n)
		switch n {
		case 0:
			text = "as many machines as are paid for of "
		case 1:
			text = "1 machine of "
		}
		text += strings.Join(short(u.types[i], "offerings"), " or ")
		if u.names[i] != "" {
			text += " (from " + u.names[i] + ")"
		}
		out = append(out, text)
	}
	return strings.Join(short(out, "counts that are used up"), ", ")
}
