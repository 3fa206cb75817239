package binpack

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
	"github.com/joinery-sdk/joinery/binpack/internal/tags"
)

// FirstFitDecreasing is first fit decreasing (D. S. Johnson, 1973). It packs the largest items
// first, each into the first bin that takes it: an existing node, then an open bin, then a new bin.
// The type of a new bin is the one with the lowest estimated cost for all remaining items. At the
// end it changes each bin to the cheapest choice that holds its contents. If limits of pools or
// budgets leave items unplaced, it repacks a few bins at a time until all are placed or half the
// steps of [EffortFast] are used.
//
// Size is the dominant share (A. Ghodsi et al., 2011): the largest fraction, over the resources,
// that one copy takes of the largest capacity on offer. Blocks of bins are indexed by their largest
// free capacity, so a pass for an item looks at few bins. FirstFitDecreasing is the baseline for
// other strategies.
type FirstFitDecreasing struct{}

// Name returns "ffd".
func (FirstFitDecreasing) Name() string { return "ffd" }

// Pack implements [Strategy].
func (FirstFitDecreasing) Pack(ctx context.Context, in *Instance) (Layout, error) {
	if ctx == nil {
		return Layout{}, errNoContext
	}
	r, end := newRun(ctx, "")
	defer end()
	l := r.firstFitDecreasing(in)
	return in.split.layout(l, in.split.out), fewEnough(l)
}

// firstFitDecreasing returns the layout of [FirstFitDecreasing], or that of the items so far if the
// run is stopped.
func (r *run) firstFitDecreasing(in *Instance) Layout {
	f := newFiller(in, r.stop)
	f.packAll()
	f.lift()
	l := f.finish()
	if f.wanted() > 0 && in.budgets.any() && !r.stopped() {
		return (&run{effort: EffortFast, stop: r.stop}).planner(in).repack(l, true)
	}
	return l
}

// packAll places the remaining items, or as many as it can until the context ends.
func (f *filler) packAll() { f.packInto(f.in.order, f.in.tiers, newDemand(f.in)) }

// packInto places the items in this order, in bins of the types of each tier. Without a demand,
// each item chooses its bin type for itself.
func (f *filler) packInto(order []int, tiers [][]int32, d *demand) {
	in := f.in
	for _, item := range order {
		if f.Ended(1) {
			return
		}
		f.firstFit(item)
		for k, types := range tiers {
			f.firstOf(f.bins, &f.binIndex, item, int32(k))
			for f.want[item] > 0 && f.open(item, types, d) {
			}
		}
		if d != nil {
			d.drop(in, item)
		}
	}
}

// decreasing returns the items by priority, dominant share of the capacity, size and name.
func (in *Instance) decreasing(capacity []int64) []int {
	p := &in.problem
	share, order := make([]float64, len(p.Items)), make([]int, len(p.Items))
	for i, it := range p.Items {
		order[i] = i
		for r, s := range it.Size {
			if s > 0 {
				share[i] = max(share[i], float64(s)/float64(max(capacity[r], 1)))
			}
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.Items[b].Priority, p.Items[a].Priority), cmp.Compare(share[b], share[a]),
			slices.Compare(p.Items[b].Size, p.Items[a].Size),
			cmp.Compare(p.Items[a].Name, p.Items[b].Name))
	})
	return order
}

// shareOfBudget returns the largest fraction of a remaining pool budget that one bin of the
// offering takes.
func (f *filler) shareOfBudget(t int32, offering int) float64 {
	share := 1e-9 // no bin is free
	for _, u := range f.in.budgets.of(t, offering) {
		if int(u.budget) >= f.in.budgets.reservations && f.left[u.budget] > 0 {
			share = max(share, float64(u.amount)/float64(f.left[u.budget]))
		}
	}
	return share
}

// firstFit puts the item into the first existing nodes that take it.
func (f *filler) firstFit(item int) { f.firstOf(f.nodes, &f.nodeIndex, item, -1) }

// firstOf puts the item into the first of the bins that take it: nodes (tier -1) or open bins of
// the tier's pools.
func (f *filler) firstOf(bins []bin, x *freeIndex, item int, tier int32) {
	in := f.in
	size := in.problem.Items[item].Size
	if f.want[item] == 0 {
		return
	}
	x.extend(bins, in.dims)
	s := x.scanOf(in, item, tier)
	for from := s.from / blockOfBins * blockOfBins; from < len(bins) && f.want[item] > 0; from += blockOfBins {
		if f.Ended(1) {
			return
		}
		if !x.may(bins, from/blockOfBins, size) {
			continue
		}
		f.Work += blockOfBins
		for i := max(from, s.from); i < min(from+blockOfBins, len(bins)) && f.want[item] > 0; i++ {
			b := &bins[i]
			if tier >= 0 && len(in.tiers) > 1 && in.tierOf(b.typ) != tier {
				continue
			}
			if k, v, mask, open := f.admit(b, item, f.want[item]); k > 0 {
				f.place(b, item, k, v, mask, open)
				x.stale[from/blockOfBins] = true
				if f.want[item] == 0 {
					s.from = i // it may take more
				}
			}
		}
	}
	if f.want[item] > 0 {
		s.from = len(bins)
	}
	if in.budgets.byOffering || tier >= 0 && in.coversAny() { // a MaxPrice may later admit what it refuses now, and so may a bin that changes its offering
		s.from = 0
	}
}

// open opens bins of the type with the lowest estimated cost for the remaining items. It reports
// whether it placed any copy.
func (f *filler) open(item int, types []int32, d *demand) bool {
	in := f.in
	if d != nil {
		d.update()
	}
	size := in.problem.Items[item].Size
	best, bestMask, bestCost := int32(-1), uint64(0), math.Inf(1)
	for _, t := range types {
		if float64(in.minPrice[t]) >= bestCost || f.Ended(1) {
			break // types come by price, and no plan costs less than one bin
		}
		per := relax.Copies(in.capacityOf(t), size, f.want[item])
		if per == 0 {
			continue
		}
		per = tags.Admitted(nil, in.itemTags[item], per)
		mask := f.eligible(item, t)
		if per == 0 || mask == 0 {
			continue
		}
		if mask &= f.affordable(t); mask == 0 {
			continue
		}
		j := in.cheapest(t, mask)
		price := float64(in.objective(t, j))
		// Fractions count, because the last bin will be right-sized.
		bins := max(1, float64(f.want[item])/float64(per))
		if d != nil {
			bins = max(bins, d.bins(in, t))
		}
		if cost := price * bins; cost < bestCost && f.opens(t, item, mask) {
			best, bestMask, bestCost = t, mask, cost
		}
	}
	if best < 0 || f.Over {
		return false
	}
	// The choice stays the same for all bins that the item fills; only the last, partial bin needs
	// another.
	for opened := false; ; opened = true {
		bestMask &= f.affordable(best)
		if bestMask == 0 || len(f.bins) == maxBins || f.Ended(openSteps) {
			return opened
		}
		b := f.newBin(best, bestMask)
		f.charge(best, int(b.charged), 1)
		k, v, mask, open := f.admit(&b, item, f.want[item])
		if k == 0 {
			f.charge(best, int(b.charged), -1)
			return opened
		}
		f.place(&b, item, k, v, mask, open)
		f.bins = append(f.bins, b)
		if f.want[item] < k || f.want[item] == 0 {
			return true
		}
	}
}

// newBin returns an empty bin of the type with the mask's cheapest offering. If that is not
// counted, the mask's other uncounted offerings may become the bin's too. The caller has checked
// the pool's budget.
func (f *filler) newBin(t int32, mask uint64) bin {
	in := f.in
	b := f.blank()
	b.node, b.typ, b.mask, b.charged = -1, t, mask&^in.budgets.counted[t], int32(in.cheapest(t, mask))
	for r, c := range in.capacityOf(t) {
		b.free[r] = max(c, 0)
	}
	b.tags = append(b.tags, in.typeTags[t]...)
	if b.mask&(1<<b.charged) == 0 {
		b.mask = 1 << b.charged
	}
	if len(f.diverse) > 0 { // the bin has one capacity pool from the start
		for rest, pools := b.mask, in.diverse.offering[t]; rest != 0; rest &= rest - 1 {
			if j := bits.TrailingZeros64(rest); pools[j] != pools[b.charged] {
				b.mask &^= 1 << j
			}
		}
	}
	return b
}

// opens reports whether a new bin of the type takes the item, given daemons' tags and MinValues.
func (f *filler) opens(t int32, item int, mask uint64) bool {
	b := f.newBin(t, mask)
	f.charge(t, int(b.charged), 1)
	k, _, _, _ := f.admit(&b, item, 1)
	f.charge(t, int(b.charged), -1)
	return k > 0
}

// demand is the total size of the remaining items that may go to each type. Profiles that may go to
// the same types share a reach. What is dropped is kept by reach until it is needed. So dropping an
// item costs its size, and asking costs the types of each reach that changed.
type demand struct {
	dims    int
	reach   []int32   // by profile
	into    [][]int32 // by reach: the types
	size    []float64 // by type and resource
	dropped []float64 // by reach and resource: what must still be subtracted from size
	changed []int32   // the reaches with something dropped
	waits   []bool    // by reach: whether it is in changed
}

func newDemand(in *Instance) *demand {
	d := &demand{dims: in.dims, reach: make([]int32, len(in.profiles)), size: make([]float64, len(in.problem.Types)*in.dims)}
	known := map[string]int32{}
	key := make([]byte, (len(in.problem.Types)+7)/8)
	for k, p := range in.profiles {
		clear(key)
		for t := range in.problem.Types {
			if p.mask(int32(t)) != 0 {
				key[t/8] |= 1 << (t % 8)
			}
		}
		if d.reach[k] = numbered(known, string(key)); int(d.reach[k]) == len(d.into) {
			var types []int32
			for t := range in.problem.Types {
				if key[t/8]&(1<<(t%8)) != 0 {
					types = append(types, int32(t))
				}
			}
			d.into = append(d.into, types)
		}
	}
	all := make([]float64, len(d.into)*in.dims)
	for i, it := range in.problem.Items {
		for r, s := range it.Size {
			all[int(d.reach[in.profile[i]])*in.dims+r] += float64(float64(s) * float64(it.Count))
		}
	}
	for k := range d.into {
		d.add(k, all[k*in.dims:], 1)
	}
	d.dropped, d.waits = make([]float64, len(d.into)*in.dims), make([]bool, len(d.into))
	return d
}

// add adds the size to the types of the reach.
func (d *demand) add(reach int, size []float64, sign float64) {
	for _, t := range d.into[reach] {
		for r := range d.dims {
			d.size[int(t)*d.dims+r] += float64(sign * size[r])
		}
	}
}

// drop removes an item, placed or not.
func (d *demand) drop(in *Instance, item int) {
	it, k := &in.problem.Items[item], d.reach[in.profile[item]]
	waiting := d.dropped[int(k)*d.dims:][:d.dims]
	if !d.waits[k] {
		d.waits[k], d.changed = true, append(d.changed, k)
	}
	for r, s := range it.Size {
		waiting[r] += float64(float64(s) * float64(it.Count))
	}
}

// update subtracts what was dropped.
func (d *demand) update() {
	for _, k := range d.changed {
		waiting := d.dropped[int(k)*d.dims:][:d.dims]
		d.add(int(k), waiting, -1)
		clear(waiting)
		d.waits[k] = false
	}
	d.changed = d.changed[:0]
}

// bins returns how many bins of the type would be filled by the demand that may go there. Call it
// after update.
func (d *demand) bins(in *Instance, t int32) float64 {
	most := 0.0
	for r, c := range in.capacityOf(t) {
		most = max(most, d.size[int(t)*d.dims+r]/float64(max(c, 1)))
	}
	return most
}

// finish right-sizes every bin. It returns the layout, with bins in the order of their first items,
// the dearest first.
func (f *filler) finish() Layout {
	f.rightSize()
	l := Layout{Nodes: make([][]Share, len(f.nodes)), Bins: make([]Bin, len(f.bins))}
	for n := range f.nodes {
		l.Nodes[n] = f.in.joined(f.nodes[n].shares)
	}
	for i := range f.bins {
		b := &f.bins[i]
		l.Bins[i] = Bin{int(b.typ), int(b.charged), f.in.joined(b.shares), f.states.sets[b.open]}
	}
	byItem := func(a, b Bin) int {
		return cmp.Or(f.in.rank[a.Shares[0].Item]-f.in.rank[b.Shares[0].Item], cmp.Compare(f.in.objective(int32(b.Type), b.Offering), f.in.objective(int32(a.Type), a.Offering)))
	}
	if !slices.IsSortedFunc(l.Bins, byItem) { // there may be millions
		slices.SortStableFunc(l.Bins, byItem)
	}
	return l
}

// cheapestChoice returns the cheapest type and offering of the tier that hold the bin's contents
// within all budgets and cost less than the limit. If there are none, it returns the bin's own.
func (f *filler) cheapestChoice(b *bin, tier int32, limit Price) (t int32, offering int, ok bool) {
	in := f.in
	bestT, bestJ := b.typ, int(b.charged)
	for _, t := range in.tiers[tier] {
		if in.minPrice[t] >= limit || f.Ended(1) {
			break
		}
		mask := f.suits(t, b)
		if mask == 0 {
			continue
		}
		if mask = f.exposable(t, mask&f.affordable(t), b.shares); mask == 0 {
			continue
		}
		j := in.cheapest(t, mask)
		if price := in.objective(t, j); price < limit {
			other := in.problem.Types[t].Pool != in.problem.Types[b.typ].Pool
			if in.covered(t) {
				moved := *b
				moved.typ, moved.charged = t, int32(j)
				if !f.affords(&moved) {
					continue
				}
			} else if other && len(in.problem.Pools[in.problem.Types[t].Pool].MinValues) > 0 {
				moved := *b
				moved.typ = t
				if !f.showsMinimums(&moved) {
					continue
				}
			}
			bestT, bestJ, limit, ok = t, j, price, true
		}
	}
	return bestT, bestJ, ok
}

// choiceFor returns a type of the tier and its cheapest offering that suit all shares together by
// labels, size and budgets, and cost less than the limit. It is the cheapest if the offerings of
// each type cost the same. Tags, open keys and MinValues are ignored.
func (f *filler) choiceFor(shares []Share, tier int32, limit Price) (t int32, offering int, ok bool) {
	in := f.in
	size := make([]int64, in.dims) // a sum that overflows only costs a vain attempt
	for _, s := range shares {
		for r, v := range in.problem.Items[s.Item].Size {
			size[r] += v * int64(s.Count)
		}
	}
	for _, t := range in.tiers[tier] {
		if in.minPrice[t] >= limit {
			break
		}
		if relax.Copies(in.capacityOf(t), size, 1) == 0 {
			continue
		}
		mask := f.affordable(t)
		for k := 0; mask != 0 && k < len(shares); k++ {
			mask &= f.eligible(shares[k].Item, t)
		}
		if mask != 0 {
			if j := in.cheapest(t, mask); in.objective(t, j) < limit {
				return t, j, true
			}
		}
	}
	return 0, 0, false
}

// freeIndex is an index of bins. For each block it has the largest free capacity of each resource,
// or more if bins were filled since. A pass for an item skips the blocks that cannot hold it.
type freeIndex struct {
	n     int
	most  []int64 // by block and resource
	stale []bool
	scans map[scanKey][]scan // for items of the current size
	size  []int64
}

// scanKey is what the items of a scan share, except tags and what they count for diversity.
type scanKey struct {
	profile, tier int32
}

// scan says that the bins before from take no more of items like this one. That is so because bins
// only fill up, and each takes as much as it can.
type scan struct {
	item int
	from int
}

// scanOf returns the scan for items like this one. Items must come sorted by size.
func (x *freeIndex) scanOf(in *Instance, item int, tier int32) *scan {
	size := in.problem.Items[item].Size
	if x.scans == nil || !slices.Equal(x.size, size) {
		x.scans, x.size = map[scanKey][]scan{}, size
	}
	key := scanKey{in.profile[item], tier}
	list := x.scans[key]
	for i := range list {
		if s := &list[i]; slices.Equal(in.itemTags[s.item], in.itemTags[item]) && slices.Equal(in.diverse.counts[s.item], in.diverse.counts[item]) {
			return s
		}
	}
	list = append(list, scan{item, 0})
	x.scans[key] = list
	return &list[len(list)-1]
}

// extend indexes the new bins.
func (x *freeIndex) extend(bins []bin, dims int) {
	for ; x.n < len(bins); x.n++ {
		if x.n%blockOfBins == 0 {
			x.most, x.stale = append(x.most, make([]int64, dims)...), append(x.stale, false)
		}
		for r, free := range bins[x.n].free {
			most := &x.most[len(x.most)-dims+r]
			*most = max(*most, free)
		}
	}
}

// may reports whether some bin of the block may hold the size.
func (x *freeIndex) may(bins []bin, block int, size []int64) bool {
	most := x.most[block*len(size) : (block+1)*len(size)]
	for range 2 {
		for r, s := range size {
			if s > most[r] {
				return false
			}
		}
		if !x.stale[block] {
			return true
		}
		x.stale[block] = false
		clear(most)
		for _, b := range bins[block*blockOfBins : min((block+1)*blockOfBins, len(bins))] {
			for r, free := range b.free {
				most[r] = max(most[r], free)
			}
		}
	}
	return true
}
