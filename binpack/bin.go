package binpack

import (
	"cmp"
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
	in    *Instance
	nodes []bin
	bins  []bin
	pools []poolState
	left  []int // by reservation
	// diverse is what may still go into each capacity pool, by diversity.
	diverse [][]int
	states  openStates
	want    []int // by item, still to place

	nodeRooms, binRooms rooms
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
	f.diverse = copied(in.diverse.left)
	f.nodes = make([]bin, len(p.Nodes))
	for n := range p.Nodes {
		b := &f.nodes[n]
		*b = bin{node: int32(n), typ: -1, free: slices.Clone(in.free[n*in.dims : (n+1)*in.dims])}
		b.tags = addTags(nil, &in.nodeTags[n], 1)
	}
	return f
}

func copied(rows [][]int) [][]int {
	out := make([][]int, len(rows))
	for i := range rows {
		out[i] = slices.Clone(rows[i])
	}
	return out
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
	if len(f.diverse) > 0 {
		if k = f.spread(f.capacityPool(b), item, k); k == 0 {
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
	f.expose(f.capacityPool(b), item, k)
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
			if k := in.reserveOf[t][j]; k >= 0 && f.left[k] < typ.Offerings[j].takes() {
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
			f.left[k] -= int(sign) * typ.Offerings[offering].takes()
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

// tagProfile is the tags that something adds and the limits that it brings, by number, in order.
type tagProfile struct {
	adds []tagCount
	caps []tagCount
}

// tagCount is a tag with a number: how many there are, or how many are allowed.
type tagCount struct {
	tag int32
	n   int32
}

const noLimit int32 = math.MaxInt32

// tagState is one tag of a bin: how many things carry it and how many are allowed by those that are there.
type tagState struct {
	tag   int32
	count int32
	limit int32
}

func (in *Instance) compileTags() {
	p := &in.problem
	in.tags = map[string]int32{}
	in.itemTags = make([]tagProfile, len(p.Items))
	for i, it := range p.Items {
		in.itemTags[i] = in.tagProfile(it.Tags, it.Limits)
	}
	in.typeTags = make([]tagProfile, len(p.Types))
	for t, typ := range p.Types {
		in.typeTags[t] = in.tagProfile(typ.Tags, typ.Limits)
	}
	in.nodeTags = make([]tagProfile, len(p.Nodes))
	for n, node := range p.Nodes {
		in.nodeTags[n] = in.tagProfile(node.Tags, node.Limits)
	}
}

func (in *Instance) tagProfile(tags []string, limits []Limit) tagProfile {
	var out tagProfile
	number := func(tag string) int32 {
		id, ok := in.tags[tag]
		if !ok {
			id = int32(len(in.tags))
			in.tags[tag] = id
		}
		return id
	}
	byTag := func(a, b tagCount) int { return cmp.Compare(a.tag, b.tag) }
	for _, tag := range tags {
		id := number(tag)
		if k := slices.IndexFunc(out.adds, func(c tagCount) bool { return c.tag == id }); k >= 0 {
			out.adds[k].n++
		} else {
			out.adds = append(out.adds, tagCount{id, 1})
		}
	}
	for _, l := range limits {
		id, n := number(l.Tag), int32(min(l.Max, math.MaxInt32-1))
		if k := slices.IndexFunc(out.caps, func(c tagCount) bool { return c.tag == id }); k >= 0 {
			out.caps[k].n = min(out.caps[k].n, n)
		} else {
			out.caps = append(out.caps, tagCount{id, n})
		}
	}
	slices.SortFunc(out.adds, byTag)
	slices.SortFunc(out.caps, byTag)
	return out
}

// room is how many copies of an item with tags t the state admits, at most want.
func room(state []tagState, t *tagProfile, want int) int {
	for _, add := range t.adds {
		count, limit := lookupTag(state, add.tag)
		if own, ok := capOf(t, add.tag); ok {
			limit = min(limit, own)
		}
		if limit == noLimit {
			continue
		}
		want = min(want, int(max(0, limit-count)/add.n))
	}
	for _, c := range t.caps {
		if count, _ := lookupTag(state, c.tag); count > c.n {
			return 0
		}
	}
	return want
}

func capOf(t *tagProfile, tag int32) (int32, bool) {
	for _, c := range t.caps {
		if c.tag == tag {
			return c.n, true
		}
	}
	return 0, false
}

func lookupTag(state []tagState, tag int32) (count, limit int32) {
	for i := range state {
		if state[i].tag == tag {
			return state[i].count, state[i].limit
		}
	}
	return 0, noLimit
}

// addTags records k copies of an item with tags t.
func addTags(state []tagState, t *tagProfile, k int) []tagState {
	at := func(tag int32) *tagState {
		for i := range state {
			if state[i].tag == tag {
				return &state[i]
			}
		}
		state = append(state, tagState{tag, 0, noLimit})
		return &state[len(state)-1]
	}
	for _, add := range t.adds {
		s := at(add.tag)
		s.count = int32(min(int64(s.count)+int64(add.n)*int64(k), int64(noLimit))) // above every limit there is
	}
	for _, c := range t.caps {
		s := at(c.tag)
		s.limit = min(s.limit, c.n)
	}
	return state
}

// tagsSuit reports whether the shares, on a bin of the type, break none of their own limits and none of the type's.
func (in *Instance) tagsSuit(t int32, shares []Share) bool {
	base := addTags(nil, &in.typeTags[t], 1)
	var added []tagState
	for _, s := range shares {
		added = addTags(added, &in.itemTags[s.Item], s.Count)
	}
	for _, s := range added {
		count, limit := lookupTag(base, s.tag)
		if s.count == 0 { // what the type breaks by itself is not the items' fault
			limit = noLimit
		}
		if int64(count)+int64(s.count) > int64(min(limit, s.limit)) && min(limit, s.limit) != noLimit {
			return false
		}
	}
	return true
}

// diversity is [Problem.Diversity] by numbers: those that may be broken, and the capacity pools.
type diversity struct {
	left     [][]int   // by diversity and capacity pool: what may still go there
	counts   [][]Share // by item: which diversities it counts for, and how much one of it does
	pools    map[string]int32
	offering [][]int32 // by type and offering: the capacity pool, -1 for none
	node     []int32   // by node, as well
}

func (in *Instance) compileDiversity() {
	p := &in.problem
	d := &in.diverse
	var kept []Diversity
	for _, x := range p.Diversity {
		all := int64(0)
		for _, s := range x.Items {
			all = sum(all, int64(s.Count)*int64(p.Items[s.Item].Count))
		}
		for _, n := range x.Placed {
			all = sum(all, int64(max(n, 0)))
		}
		if all > int64(x.Max) {
			kept = append(kept, x)
		}
	}
	if len(kept) == 0 {
		return
	}
	d.pools = map[string]int32{}
	number := func(name string) int32 {
		if name == "" {
			return -1
		}
		id, ok := d.pools[name]
		if !ok {
			id = int32(len(d.pools))
			d.pools[name] = id
		}
		return id
	}
	d.offering, d.node = make([][]int32, len(p.Types)), make([]int32, len(p.Nodes))
	for t := range p.Types {
		for j := range p.Types[t].Offerings {
			d.offering[t] = append(d.offering[t], number(p.Types[t].Offerings[j].CapacityPool))
		}
	}
	for n := range p.Nodes {
		d.node[n] = number(p.Nodes[n].CapacityPool)
	}
	if len(d.pools) == 0 { // nothing to depend on
		in.diverse = diversity{}
		return
	}
	d.counts = make([][]Share, len(p.Items))
	for i, x := range kept {
		left := slices.Repeat([]int{x.Max}, len(d.pools))
		for name, n := range x.Placed {
			if at, ok := d.pools[name]; ok {
				left[at] = max(x.Max-max(n, 0), 0)
			}
		}
		d.left = append(d.left, left)
		for _, s := range x.Items {
			if list := d.counts[s.Item]; s.Count > 0 && len(list) > 0 && list[len(list)-1].Item == i {
				list[len(list)-1].Count += s.Count
			} else if s.Count > 0 {
				d.counts[s.Item] = append(list, Share{i, s.Count})
			}
		}
	}
}

// count is how much one of the item does for the diversity.
func (d *diversity) count(number, item int) int64 {
	for _, s := range d.counts[item] {
		if s.Item == number {
			return int64(s.Count)
		}
	}
	return 0
}

// pool is the number of the offering's capacity pool, -1 for none.
func (d *diversity) pool(typ, offering int) int32 {
	if len(d.left) == 0 {
		return -1
	}
	return d.offering[typ][offering]
}

// capacityPool is that of the bin.
func (f *filler) capacityPool(b *bin) int32 {
	if d := &f.in.diverse; b.node >= 0 && len(d.left) > 0 {
		return d.node[b.node]
	}
	return f.in.diverse.pool(int(b.typ), int(b.charged))
}

// spread is how many copies of the item, at most want, the capacity pool may take.
func (f *filler) spread(pool int32, item, want int) int {
	if pool < 0 {
		return want
	}
	for _, s := range f.in.diverse.counts[item] {
		want = min(want, max(f.diverse[s.Item][pool], 0)/s.Count)
	}
	return want
}

// expose counts k copies of the item against the capacity pool; a negative number gives back.
func (f *filler) expose(pool int32, item, k int) {
	if pool < 0 {
		return
	}
	for _, s := range f.in.diverse.counts[item] {
		f.diverse[s.Item][pool] -= k * s.Count
	}
}

// exposeAll counts the shares so many times against the capacity pool.
func (f *filler) exposeAll(pool int32, shares []Share, times int) {
	for _, s := range shares {
		f.expose(pool, s.Item, times*s.Count)
	}
}

// exposable keeps the offerings of the mask whose capacity pools may take the shares.
func (f *filler) exposable(t int32, mask uint64, shares []Share) uint64 {
	if len(f.diverse) == 0 {
		return mask
	}
	for rest := mask; rest != 0; rest &= rest - 1 {
		j := bits.TrailingZeros64(rest)
		pool, n := f.in.diverse.offering[t][j], 0
		for n < len(shares) && f.spread(pool, shares[n].Item, shares[n].Count) == shares[n].Count {
			f.expose(pool, shares[n].Item, shares[n].Count)
			n++
		}
		f.exposeAll(pool, shares[:n], -1)
		if n < len(shares) {
			mask &^= 1 << j
		}
	}
	return mask
}
