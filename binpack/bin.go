package binpack

import (
	"math"
	"math/bits"
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
)

// bin is an open bin or an existing node while a strategy fills it.
type bin struct {
	node int32  // index of an existing node, or -1
	typ  int32  // the type whose capacity it is filled to
	mask uint64 // offerings of that type which suit every item so far
	open int32  // index into openStates
	// charged is the offering at whose price the bin stands in its pool's budget, one of the mask.
	charged int32
	used    []int64
	// free is what is left of the target's capacity, or of the node.
	free     []int64
	variants []*variant // of the items in it, without duplicates
	tags     []tagState
	shares   []Share
}

// filler holds the state of one packing run: bins, what pools and reservations have left, open-key states.
type filler struct {
	in     *Instance
	nodes  []bin
	bins   []bin
	pools  []poolState
	left   []int // by reservation
	states openStates
	want   []int // by item, still to place
}

type poolState struct {
	limits   []int64
	maxNodes int
	price    Price
	minimums bool
}

func newFiller(in *Instance) *filler {
	p := &in.problem
	f := &filler{in: in, left: in.reservationCounts(), states: openStates{sets: []requirements.Set{{}}, next: map[[2]int32]int32{}}}
	f.want = make([]int, len(p.Items))
	for i, it := range p.Items {
		f.want[i] = it.Count
	}
	f.pools = make([]poolState, len(p.Pools))
	for i, pool := range p.Pools {
		s := poolState{limits: slices.Clone(pool.Limits), maxNodes: pool.MaxNodes, price: pool.MaxPrice, minimums: len(pool.MinValues) > 0}
		if s.maxNodes < 0 {
			s.maxNodes = math.MaxInt
		}
		if s.price < 0 {
			s.price = math.MaxInt64
		}
		f.pools[i] = s
	}
	f.nodes = make([]bin, len(p.Nodes))
	for n := range p.Nodes {
		b := &f.nodes[n]
		*b = bin{node: int32(n), typ: -1, free: slices.Clone(in.free[n*in.dims : (n+1)*in.dims])}
		b.tags = addTags(nil, &in.nodeTags[n], 1)
	}
	return f
}

// admit is how many copies of the item the bin takes, at most want, and under which variant of its requirements.
func (f *filler) admit(b *bin, item, want int) (int, *variant, uint64, int32) {
	in := f.in
	k := fits(b.free, in.problem.Items[item].Size, want)
	if k == 0 {
		return 0, nil, 0, 0
	}
	if len(b.tags) > 0 || len(in.itemTags[item].caps) > 0 {
		if k = room(b.tags, &in.itemTags[item], k); k == 0 {
			return 0, nil, 0, 0
		}
	}
	p := &in.profiles[in.profile[item]]
	for i := range p.variants {
		v := &p.variants[i]
		if b.node >= 0 {
			if v.nodes[b.node/64]&(1<<(b.node%64)) != 0 {
				return k, v, 0, 0
			}
			continue
		}
		mask := b.mask & v.masks[b.typ]
		if mask == 0 {
			continue
		}
		open := b.open
		if v.open != 0 {
			if open, mask = f.narrow(b.typ, b.open, v, mask); mask == 0 {
				continue
			}
		}
		pool := &f.pools[in.problem.Types[b.typ].Pool]
		if mask&(1<<b.charged) == 0 && pool.price != math.MaxInt64 {
			offers := in.problem.Types[b.typ].Offerings
			if offers[in.cheapest(b.typ, mask)].Price-offers[b.charged].Price > pool.price {
				continue
			}
		}
		n := k // the next variant starts from k again
		if pool.minimums {
			if n = f.flexible(b, item, k, v, open); n == 0 {
				continue
			}
		}
		return n, v, mask, open
	}
	return 0, nil, 0, 0
}

// fits is how many copies of the item the free vector holds, at most want.
func fits(free, size []int64, want int) int {
	k := want
	for r, s := range size {
		if s > free[r] {
			return 0
		}
		if s > 0 && k > 1 {
			if q := free[r] / s; q < int64(k) {
				k = int(q)
			}
		}
	}
	return k
}

// place puts k copies into the bin as admit allowed.
func (f *filler) place(b *bin, item, k int, v *variant, mask uint64, open int32) {
	in := f.in
	for r, s := range in.problem.Items[item].Size {
		b.free[r] -= s * int64(k)
		if b.node < 0 {
			b.used[r] += s * int64(k)
		}
	}
	b.tags = addTags(b.tags, &in.itemTags[item], k)
	if b.node < 0 {
		if mask&(1<<b.charged) == 0 {
			f.charge(b.typ, int(b.charged), -1)
			b.charged = int32(in.cheapest(b.typ, mask))
			f.charge(b.typ, int(b.charged), 1)
		}
		b.mask, b.open = mask, open
		if !slices.Contains(b.variants, v) {
			b.variants = append(b.variants, v)
		}
	}
	if n := len(b.shares); n > 0 && b.shares[n-1].Item == item {
		b.shares[n-1].Count += k
	} else {
		b.shares = append(b.shares, Share{item, k})
	}
	f.want[item] -= k
}

// openBin is an empty bin of the type; the caller has seen that the pool can pay for it.
func (f *filler) openBin(t int32) bin {
	in := f.in
	b := bin{node: -1, typ: t, mask: 1<<len(in.problem.Types[t].Offerings) - 1}
	b.used = make([]int64, 2*in.dims)
	b.used, b.free = b.used[:in.dims:in.dims], b.used[in.dims:]
	for r, c := range in.capacityOf(t) {
		b.free[r] = max(c, 0)
	}
	b.tags = addTags(nil, &in.typeTags[t], 1)
	return b
}

// affordable is the mask of the type's offerings that pool limits and reservations still allow.
func (f *filler) affordable(t int32) uint64 {
	in := f.in
	typ := &in.problem.Types[t]
	pool := &f.pools[typ.Pool]
	if pool.maxNodes == 0 {
		return 0
	}
	for i, l := range pool.limits {
		if l != Unlimited && typ.Usage[i] > l {
			return 0
		}
	}
	mask := uint64(1)<<len(typ.Offerings) - 1
	for rest := mask; rest != 0; rest &= rest - 1 {
		j := bits.TrailingZeros64(rest)
		if typ.Offerings[j].Price > pool.price {
			mask &^= 1 << j
		} else if in.reserveOf[t] != nil {
			if k := in.reserveOf[t][j]; k >= 0 && f.left[k] == 0 {
				mask &^= 1 << j
			}
		}
	}
	return mask
}

// charge takes one bin of the offering from its pool and reservation; sign -1 gives it back.
func (f *filler) charge(t int32, offering int, sign int64) {
	in := f.in
	typ := &in.problem.Types[t]
	pool := &f.pools[typ.Pool]
	if pool.maxNodes != math.MaxInt {
		pool.maxNodes -= int(sign)
	}
	for i, l := range pool.limits {
		if l != Unlimited {
			pool.limits[i] -= sign * typ.Usage[i]
		}
	}
	if pool.price != math.MaxInt64 {
		pool.price -= Price(sign) * typ.Offerings[offering].Price
	}
	if in.reserveOf[t] != nil {
		if k := in.reserveOf[t][offering]; k >= 0 && f.left[k] != math.MaxInt {
			f.left[k] -= int(sign)
		}
	}
}

// cheapest is the offering of the mask with the least objective, the first of equals; mask is not 0.
func (in *Instance) cheapest(t int32, mask uint64) int {
	best, price := -1, Price(0)
	offers := in.problem.Types[t].Offerings
	for rest := mask; rest != 0; rest &= rest - 1 {
		if j := bits.TrailingZeros64(rest); best < 0 || offers[j].cost() < price {
			best, price = j, offers[j].cost()
		}
	}
	return best
}
