package binpack

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
	"github.com/joinery-sdk/joinery/binpack/internal/tags"
	"github.com/joinery-sdk/joinery/requirements"
)

// bin is an open bin or an existing node while a strategy fills it.
type bin struct {
	node int32  // index of an existing node, or -1
	typ  int32  // the type whose capacity bounds the bin
	mask uint64 // offerings of the type that suit every item so far
	open int32  // index into openStates
	// charged is the offering, one of the mask, at whose price the bin counts in its pool's budget.
	charged int32
	// extra is what MinValues need of the budgets beyond what the bin takes itself.
	extra []use
	used  []int64
	// free is the free capacity of the type or node.
	free     []int64
	variants []*variant // of the items in it, distinct
	tags     []tags.State
	shares   []Share
}

// filler is the state of one packing run: bins, remaining budgets, and states of open keys.
type filler struct {
	in    *Instance
	nodes []bin
	bins  []bin
	left  []int64 // what remains, by budget
	// diverse is what each capacity pool may still take, by diversity.
	diverse [][]int
	states  openStates
	// shownTypes counts the types that were looked at for MinValues. If there are MinValues, that
	// is most of the work.
	shownTypes int
	want       []int // by item: copies still to place
	asked            // what suits the bin that was asked about last
	*relax.Watch

	spare []bin // unused bins, whose memory new ones take

	nodeIndex, binIndex freeIndex
}

func newFiller(in *Instance, stop *atomic.Bool) *filler {
	p := &in.problem
	f := &filler{in: in, left: slices.Clone(in.budgets.amounts), Watch: relax.NewWatch(stop, graceSteps)}
	f.states = openStates{sets: []requirements.Set{{}}, masks: [][]uint64{nil}, next: map[narrowing]int32{}}
	f.want = make([]int, len(p.Items))
	for i, it := range p.Items {
		f.want[i] = it.Count
	}
	for _, left := range in.diverse.left {
		f.diverse = append(f.diverse, slices.Clone(left))
	}
	f.nodes = make([]bin, len(p.Nodes))
	for n := range p.Nodes {
		f.nodes[n] = f.emptyNode(n)
	}
	return f
}

// emptyNode returns an existing node without new items.
func (f *filler) emptyNode(n int) bin {
	b, dims := f.blank(), f.in.dims
	b.node, b.typ, b.tags = int32(n), -1, append(b.tags, f.in.nodeTags[n]...)
	copy(b.free, f.in.free[n*dims:])
	return b
}

// blank returns an empty bin, in the memory of an unused one.
func (f *filler) blank() bin {
	if n := len(f.spare); n > 0 {
		b := f.spare[n-1]
		f.spare = f.spare[:n-1]
		clear(b.used)
		return bin{used: b.used, free: b.free, variants: b.variants[:0], tags: b.tags[:0], shares: b.shares[:0]}
	}
	both := make([]int64, 2*f.in.dims)
	return bin{used: both[:f.in.dims:f.in.dims], free: both[f.in.dims:]}
}

// copyOf returns a bin like b that shares no memory with it.
func (f *filler) copyOf(b *bin) bin {
	c, to := *b, f.blank()
	c.used, c.free = append(to.used[:0], b.used...), append(to.free[:0], b.free...)
	c.variants, c.tags, c.shares = append(to.variants, b.variants...), append(to.tags, b.tags...), append(to.shares, b.shares...)
	return c
}

// admit returns how many copies of the item the bin takes, at most want, with the variant of its
// requirements and the resulting mask and open state.
func (f *filler) admit(b *bin, item, want int) (int, *variant, uint64, int32) {
	in := f.in
	k := relax.Copies(b.free, in.problem.Items[item].Size, want)
	if k == 0 {
		return 0, nil, 0, 0
	}
	if k = tags.Admitted(b.tags, in.itemTags[item], k); k == 0 {
		return 0, nil, 0, 0
	}
	if len(f.diverse) > 0 {
		if k = f.spread(f.capacityPool(b), item, k); k == 0 {
			return 0, nil, 0, 0
		}
	}
	p := in.profileOf(item)
	for i := range p {
		v := &p[i]
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
		if mask&(1<<b.charged) == 0 && !f.affordsOther(b.typ, int(b.charged), in.cheapest(b.typ, mask)) {
			continue
		}
		n := k // the next variant starts from k again
		if len(in.problem.Pools[in.problem.Types[b.typ].Pool].MinValues) > 0 {
			if n = f.flexible(b, item, k, v, mask, open); n == 0 {
				continue
			}
		}
		return n, v, mask, open
	}
	return 0, nil, 0, 0
}

// place puts k copies into the bin, as admit allowed.
func (f *filler) place(b *bin, item, k int, v *variant, mask uint64, open int32) {
	in := f.in
	for r, s := range in.problem.Items[item].Size {
		b.free[r] -= s * int64(k)
		b.used[r] += s * int64(k)
	}
	b.tags = tags.Add(b.tags, in.itemTags[item], k)
	f.expose(f.capacityPool(b), item, k)
	if b.node < 0 {
		f.take(b.extra, -1)
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
	if b.node < 0 {
		b.extra, _ = f.extraOf(b)
		f.take(b.extra, 1)
	}
	f.want[item] -= k
}

// become changes the type and offering of a bin. The caller has withdrawn it from the budgets.
func (f *filler) become(b *bin, t int32, offering int) {
	if t != b.typ {
		b.typ = t
		f.measure(b)
	}
	b.mask, b.charged = 1<<offering, int32(offering)
}

// measure computes what the bin uses and has free, and its tags, after its type or shares changed.
func (f *filler) measure(b *bin) {
	in := f.in
	clear(b.used)
	b.tags = append(b.tags[:0], in.typeTags[b.typ]...)
	for _, s := range b.shares {
		for r, size := range in.problem.Items[s.Item].Size {
			b.used[r] += size * int64(s.Count)
		}
		b.tags = tags.Add(b.tags, in.itemTags[s.Item], s.Count)
	}
	for r, c := range in.capacityOf(b.typ) {
		b.free[r] = max(c, 0) - b.used[r]
	}
}

// withdraw subtracts the bin and its contents from all budgets and counts.
func (f *filler) withdraw(b *bin) { f.count(b, -1) }

// count adds the bin and its contents to all budgets and counts; sign -1 subtracts them.
func (f *filler) count(b *bin, sign int) {
	if b.node < 0 {
		f.pay(b, int64(sign))
	}
	f.exposeAll(f.capacityPool(b), b.shares, sign)
	for _, x := range b.shares {
		f.want[x.Item] -= sign * x.Count
	}
}

// joined returns one share for each item, in the order of items. shares may have several for one
// item, because a budget or variant may admit some copies now and others later.
func (in *Instance) joined(shares []Share) []Share {
	if len(shares) < 2 {
		return shares
	}
	slices.SortStableFunc(shares, func(a, b Share) int { return in.rank[a.Item] - in.rank[b.Item] })
	out := shares[:0]
	for _, s := range shares {
		if n := len(out); n > 0 && out[n-1].Item == s.Item {
			out[n-1].Count += s.Count
			continue
		}
		out = append(out, s)
	}
	return out
}

// affordable returns the type's offerings that budgets still allow, as a mask.
func (f *filler) affordable(t int32) uint64 {
	mask := uint64(1)<<len(f.in.problem.Types[t].Offerings) - 1
	for j := range f.in.budgets.uses[t] {
		if !f.in.budgets.allow(t, j, f.left) {
			mask &^= 1 << j
		}
	}
	return mask
}

// affordsOther reports whether budgets allow another offering for a bin of the type.
func (f *filler) affordsOther(t int32, from, to int) bool {
	before := f.in.budgets.of(t, from)
	for _, u := range f.in.budgets.of(t, to) {
		given := int64(0)
		if k := slices.IndexFunc(before, func(b use) bool { return b.budget == u.budget }); k >= 0 {
			given = before[k].amount
		}
		if u.amount-given > f.left[u.budget] {
			return false
		}
	}
	return true
}

// charge takes one bin of the offering from all budgets; sign -1 gives it back.
func (f *filler) charge(t int32, offering int, sign int64) {
	f.take(f.in.budgets.of(t, offering), sign)
}

func (f *filler) take(uses []use, sign int64) {
	for _, u := range uses {
		f.left[u.budget] -= sign * u.amount
	}
}

// pay takes a new bin from all budgets, with what MinValues need beside it; sign -1 gives it back.
func (f *filler) pay(b *bin, sign int64) {
	if sign > 0 {
		b.extra, _ = f.extraOf(b)
	}
	f.charge(b.typ, int(b.charged), sign)
	f.take(b.extra, sign)
}

// cheapest returns the first offering of the mask with the lowest objective; the mask must not be
// 0.
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

// compileCover returns the choices of a pool that its limits and the budgets allow at all, by the
// largest part that they take of one.
func (in *Instance) compileCover(pool int) []Choice {
	out := []Choice{} // not nil, even if nothing is within them
	for t, typ := range in.problem.Types {
		for j := range typ.Offerings {
			if typ.Pool == pool && !in.soldOut(t, j) && in.budgets.allow(int32(t), j, in.budgets.amounts) {
				out = append(out, Choice{t, j})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Choice) int {
		return cmp.Or(cmp.Compare(in.partOf(a), in.partOf(b)), cmp.Compare(in.objective(int32(a.Type), a.Offering), in.objective(int32(b.Type), b.Offering)))
	})
	return out
}

func (in *Instance) tagsOf(names []string, limits []Limit) []tags.State {
	var out []tags.State
	at := 0
	for _, name := range names {
		out, at = tags.With(out, numbered(in.tags, name))
		out[at].Count++
	}
	for _, l := range limits {
		out, at = tags.With(out, numbered(in.tags, l.Tag))
		out[at].Limit = min(out[at].Limit, int32(min(l.Max, math.MaxInt32-1)))
	}
	slices.SortFunc(out, func(a, b tags.State) int { return cmp.Compare(a.Tag, b.Tag) })
	return out
}

// tagsSuit reports whether the shares keep all limits, their own and the type's, in a bin of the
// type.
func (in *Instance) tagsSuit(t int32, shares []Share) bool {
	var room [16]tags.State // enough for most bins, and on the stack
	state := append(room[:0], in.typeTags[t]...)
	for _, s := range shares {
		if tags.Admitted(state, in.itemTags[s.Item], s.Count) < s.Count {
			return false
		}
		state = tags.Add(state, in.itemTags[s.Item], s.Count)
	}
	return true
}

// suits returns the type's offerings that hold the bin's contents, as a mask.
func (f *filler) suits(t int32, b *bin) uint64 {
	in := f.in
	for r, c := range in.capacityOf(t) {
		if b.used[r] > c {
			return 0
		}
	}
	mask := uint64(1)<<len(in.problem.Types[t].Offerings) - 1
	for _, v := range b.variants {
		if mask &= v.masks[t]; mask == 0 {
			return 0
		}
	}
	if b.open != 0 {
		mask &= f.states.masks[b.open][t]
	}
	// Daemons' tags differ by type, so count all tags again.
	if mask != 0 && t != b.typ && len(in.typeTags[t])+len(in.typeTags[b.typ]) > 0 && !in.tagsSuit(t, b.shares) {
		return 0
	}
	return mask
}

// partOf returns the largest part of a limit or budget that one bin of the choice takes.
func (in *Instance) partOf(c Choice) float64 {
	most := 0.0
	for _, u := range in.limited(c) {
		most = max(most, float64(u.amount)/float64(max(in.budgets.amounts[u.budget], 1)))
	}
	return most
}

// limited returns what one bin of the choice takes of limits and budgets, without its reservation.
// The choices of a pool take from the same budgets, in the same order.
func (in *Instance) limited(c Choice) []use {
	uses := in.budgets.of(int32(c.Type), c.Offering)
	if in.budgets.counted[c.Type]&(1<<c.Offering) != 0 {
		return uses[1:]
	}
	return uses
}

// values returns the values that the offering has for the key. Its own labels override those of its
// type.
func (t *Type) values(offering int, key string) []string {
	set := t.Offerings[offering].Provides
	if !set.Has(key) {
		set = t.Provides
	}
	if !set.Has(key) {
		return nil
	}
	values, _ := set.Get(key).Values()
	return values
}

// Filling is a layout that is being made. Every change is made only as far as the rules of the
// problem allow. So [Filling.Layout] always passes [Instance.Check]. One rule is not checked, here
// or there: the caller must put each item into the heaviest pool that can hold it. It is not safe
// for concurrent use. A wrong index causes a panic.
type Filling struct{ f *filler }

// NewFilling returns an empty filling.
func (in *Instance) NewFilling() *Filling { return &Filling{newFiller(in, nil)} }

// Copy returns an independent copy, for example to return to this state later.
func (x *Filling) Copy() *Filling {
	f := *x.f
	f.Watch, f.asked = new(relax.Watch), asked{}
	f.left, f.want, f.spare = slices.Clone(f.left), slices.Clone(f.want), nil
	f.nodeIndex, f.binIndex = freeIndex{}, freeIndex{}
	f.diverse = slices.Clone(f.diverse)
	for i := range f.diverse {
		f.diverse[i] = slices.Clone(f.diverse[i])
	}
	f.states = openStates{slices.Clone(f.states.sets), slices.Clone(f.states.masks), maps.Clone(f.states.next)}
	f.nodes, f.bins = slices.Clone(f.nodes), slices.Clone(f.bins)
	for _, list := range [][]bin{f.nodes, f.bins} {
		for i := range list {
			list[i] = f.copyOf(&list[i])
		}
	}
	return &Filling{&f}
}

// Missing returns how many copies of the item are not placed yet.
func (x *Filling) Missing(item int) int { return x.f.want[index("item", item, len(x.f.want))] }

// Bins returns the number of new bins.
func (x *Filling) Bins() int { return len(x.f.bins) }

// Open buys one more bin, after the others, for up to count copies of the item, and returns how
// many it holds. If it would hold none, no bin is bought. The error says that there is no such
// choice.
func (x *Filling) Open(c Choice, item, count int) (held int, err error) {
	f, in := x.f, x.f.in
	count = min(count, x.Missing(item))
	own := in.split.in(c)
	if !in.sells(own) {
		return 0, fmt.Errorf("binpack: there is no offering %d of type %d", c.Offering, c.Type)
	}
	t, mask := int32(own.Type), uint64(1)<<own.Offering
	if mask &= f.affordable(t); mask == 0 {
		return 0, nil
	}
	b := f.newBin(t, mask)
	f.charge(t, own.Offering, 1)
	if held = x.put(&b, item, count); held == 0 {
		f.charge(t, own.Offering, -1)
		return 0, nil
	}
	f.bins = append(f.bins, b)
	return held, nil
}

// Add puts up to count copies of the item into a new bin, and returns how many it takes.
func (x *Filling) Add(bin, item, count int) int { return x.put(x.bin(bin), item, count) }

// AddToNode puts up to count copies of the item into an existing node, and returns how many it
// takes.
func (x *Filling) AddToNode(node, item, count int) int {
	return x.put(x.node(node), item, count)
}

func (x *Filling) put(b *bin, item, count int) int {
	if count = min(count, x.Missing(item)); count <= 0 {
		return 0
	}
	k, v, mask, open := x.f.admit(b, item, count)
	if k == 0 {
		return 0
	}
	x.f.place(b, item, k, v, mask, open)
	return k
}

// Remove gives a new bin back. Its items are missing again, and the index of each bin after it
// decreases by one.
func (x *Filling) Remove(bin int) {
	x.f.withdraw(x.bin(bin))
	x.f.bins = slices.Delete(x.f.bins, bin, bin+1)
}

// Clear empties an existing node. Its new items are missing again.
func (x *Filling) Clear(node int) {
	x.f.withdraw(x.node(node))
	x.f.nodes[node] = x.f.emptyNode(node)
}

// Layout returns what goes where. Each bin is the cheapest choice that holds its contents, which
// may differ from the choice that it was opened as.
func (x *Filling) Layout() Layout {
	return x.f.in.split.layout(x.Copy().f.finish(), x.f.in.split.out)
}
