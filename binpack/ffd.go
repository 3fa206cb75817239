package binpack

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// FirstFitDecreasing packs the largest items first, each into the first bin that takes it: an existing node, then an open bin,
// then a new bin of the type with the lowest estimated cost for all remaining items. At the end it changes each bin to the
// cheapest choice that holds its contents. If pool budgets leave items unplaced, it packs once more and chooses each new bin by
// how much it places.
//
// Size is the dominant share: the largest fraction, over the resources, that one copy takes of the largest capacity on offer.
// Blocks of bins are indexed by their largest free capacity, so a pass for an item looks at few bins. It is the baseline for
// other strategies.
type FirstFitDecreasing struct{}

// Name is "ffd".
func (FirstFitDecreasing) Name() string { return "ffd" }

// Pack implements [Strategy].
func (FirstFitDecreasing) Pack(in *Instance) Layout { return (&run{}).firstFitDecreasing(in) }

// firstFitDecreasing returns the layout of [FirstFitDecreasing], or of the items so far if the run is stopped.
func (r *run) firstFitDecreasing(in *Instance) Layout {
	f := newFiller(in)
	d := newDemand(in)
	for at, item := range in.order {
		if at%stopEvery == stopEvery-1 && r.stopped() {
			return f.finish()
		}
		f.firstFit(item)
		for k := range in.tiers {
			if f.want[item] == 0 {
				break
			}
			f.firstFitTier(item, int32(k))
			for f.want[item] > 0 {
				if !f.open(item, &in.tiers[k], d) {
					break
				}
			}
		}
		d.drop(in, item)
	}
	return scarce(in, f).finish()
}

// decreasing returns the items by priority, dominant share, size and name.
func (in *Instance) decreasing() []int {
	p := &in.problem
	largest := make([]int64, in.dims)
	for t := range p.Types {
		for r, c := range in.capacityOf(int32(t)) {
			largest[r] = max(largest[r], c)
		}
	}
	for n := range p.Nodes {
		for r := range largest {
			largest[r] = max(largest[r], in.free[n*in.dims+r])
		}
	}
	share := make([]float64, len(p.Items))
	order := make([]int, len(p.Items))
	for i, it := range p.Items {
		order[i] = i
		for r, s := range it.Size {
			if s > 0 {
				share[i] = max(share[i], float64(s)/float64(max(largest[r], 1)))
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

// firstFit puts the item into the first existing nodes that take it.
func (f *filler) firstFit(item int) { f.firstOf(f.nodes, &f.nodeIndex, item, -1) }

// firstFitTier puts the item into open bins of the tier's pools.
func (f *filler) firstFitTier(item int, tier int32) { f.firstOf(f.bins, &f.binIndex, item, tier) }

func (f *filler) firstOf(bins []bin, x *freeIndex, item int, tier int32) {
	in := f.in
	size := in.problem.Items[item].Size
	if f.want[item] == 0 {
		return
	}
	x.extend(bins, in.dims)
	s := x.scanOf(in, item, tier)
	for from := s.from / blockOfBins * blockOfBins; from < len(bins) && f.want[item] > 0; from += blockOfBins {
		if !x.may(bins, from/blockOfBins, size) {
			continue
		}
		for i := max(from, s.from); i < min(from+blockOfBins, len(bins)) && f.want[item] > 0; i++ {
			b := &bins[i]
			if tier >= 0 && len(in.tiers) > 1 && in.tierOfPool[in.problem.Types[b.typ].Pool] != tier {
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
	if f.priced { // a MaxPrice may admit later what it refuses now
		s.from = 0
	}
}

// open opens bins of the type with the lowest estimated cost for the remaining items. It reports whether it placed any copy.
func (f *filler) open(item int, tr *tier, d *demand) bool {
	in := f.in
	size := in.problem.Items[item].Size
	best, bestMask, bestCost := int32(-1), uint64(0), math.Inf(1)
	for _, t := range tr.types {
		if float64(in.minPrice[t]) >= bestCost {
			break // types come by price, and no plan costs less than one bin
		}
		per := relax.Copies(in.capacityOf(t), size, f.want[item])
		if per == 0 {
			continue
		}
		per = admittedByTags(nil, &in.itemTags[item], per)
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
		bins := max(1, float64(f.want[item])/float64(per), d.bins(in, t))
		if cost := price * bins; cost < bestCost && f.opens(t, item, mask) {
			best, bestMask, bestCost = t, mask, cost
		}
	}
	if best < 0 {
		return false
	}
	// The choice stays the same for all bins that the item fills; only the last, partial bin needs a new one.
	for opened := false; ; opened = true {
		bestMask &= f.affordable(best)
		if bestMask == 0 {
			return opened
		}
		b := f.newBin(best, bestMask)
		k, v, mask, open := f.admit(&b, item, f.want[item])
		if k == 0 {
			return opened
		}
		f.charge(best, int(b.charged), 1)
		f.place(&b, item, k, v, mask, open)
		f.bins = append(f.bins, b)
		if f.want[item] < k || f.want[item] == 0 {
			return true
		}
	}
}

// eligible returns the type's offerings that suit the item under some variant and whose capacity pools may take one more copy,
// as a mask.
func (f *filler) eligible(item int, t int32) uint64 {
	var mask uint64
	p := &f.in.profiles[f.in.profile[item]]
	for i := range p.variants {
		mask |= p.variants[i].masks[t]
	}
	return f.exposable(t, mask, []Share{{item, 1}})
}

// newBin returns an empty bin of the type whose offering may be any of the mask that is not counted. If all are counted, it
// takes the cheapest.
func (f *filler) newBin(t int32, mask uint64) bin {
	in := f.in
	b := f.openBin(t)
	free := mask
	if in.reserveOf[t] != nil {
		for j, k := range in.reserveOf[t] {
			if k >= 0 {
				free &^= 1 << j
			}
		}
	}
	if free == 0 {
		free = 1 << in.cheapest(t, mask)
	}
	b.mask, b.charged = free, int32(in.cheapest(t, free))
	if len(f.diverse) > 0 { // the bin has one capacity pool from the start
		for rest, pools := free, in.diverse.offering[t]; rest != 0; rest &= rest - 1 {
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
	k, _, _, _ := f.admit(&b, item, 1)
	return k > 0
}

// demand is the total size of the remaining items, by profile.
type demand struct {
	byProfile [][]float64
}

func newDemand(in *Instance) *demand {
	d := &demand{make([][]float64, len(in.profiles))}
	for i := range d.byProfile {
		d.byProfile[i] = make([]float64, in.dims)
	}
	for i, it := range in.problem.Items {
		for r, s := range it.Size {
			d.byProfile[in.profile[i]][r] += float64(float64(s) * float64(it.Count))
		}
	}
	return d
}

// drop removes an item, placed or not.
func (d *demand) drop(in *Instance, item int) {
	it := &in.problem.Items[item]
	for r, s := range it.Size {
		d.byProfile[in.profile[item]][r] -= float64(float64(s) * float64(it.Count))
	}
}

// bins returns how many bins of the type the demand that may go there would fill.
func (d *demand) bins(in *Instance, t int32) float64 {
	most := 0.0
	for r, c := range in.capacityOf(t) {
		sum := 0.0
		for p, v := range d.byProfile {
			if in.profiles[p].reaches(t) {
				sum += v[r]
			}
		}
		if sum > 0 {
			most = max(most, sum/float64(max(c, 1)))
		}
	}
	return most
}

func (p *profile) reaches(t int32) bool {
	for i := range p.variants {
		if p.variants[i].masks[t] != 0 {
			return true
		}
	}
	return false
}

// finish right-sizes every bin and returns the layout.
func (f *filler) finish() Layout {
	l := Layout{Nodes: make([][]Share, len(f.nodes))}
	for n := range f.nodes {
		l.Nodes[n] = joined(f.nodes[n].shares)
	}
	for i := range f.bins {
		b := &f.bins[i]
		b.shares = joined(b.shares)
		f.charge(b.typ, int(b.charged), -1)
		f.exposeAll(f.capacityPool(b), b.shares, -1)
		t, j := f.cheapestChoice(b)
		f.charge(t, j, 1)
		f.exposeAll(f.in.diverse.pool(int(t), j), b.shares, 1)
		l.Bins = append(l.Bins, Bin{int(t), j, b.shares})
	}
	return l
}

// cheapestChoice returns the cheapest type and offering of the bin's tier that hold its contents within all budgets.
func (f *filler) cheapestChoice(b *bin) (int32, int) {
	in := f.in
	bestT, bestJ := b.typ, int(b.charged)
	bestPrice := in.objective(bestT, bestJ)
	for _, t := range in.tiers[in.tierOfPool[in.problem.Types[b.typ].Pool]].types {
		if in.minPrice[t] >= bestPrice {
			break
		}
		mask := f.suits(t, b, b.used)
		if mask == 0 {
			continue
		}
		if mask = f.exposable(t, mask&f.affordable(t), b.shares); mask == 0 {
			continue
		}
		j := in.cheapest(t, mask)
		if price := in.objective(t, j); price < bestPrice {
			other := in.problem.Types[t].Pool != in.problem.Types[b.typ].Pool
			if other && len(in.problem.Pools[in.problem.Types[t].Pool].MinValues) > 0 {
				moved := *b
				moved.typ = t
				if !f.showsMinimums(&moved, b.used) {
					continue
				}
			}
			bestT, bestJ, bestPrice = t, j, price
		}
	}
	return bestT, bestJ
}

// scarce packs again if budgets leave items unplaced. Each new bin is then the one that places the most per share of the
// budgets: counting all remaining items, or first those of the same priority. Neither is always better, so it tries both. It
// returns the layout that places more at the highest priority where they differ.
func scarce(in *Instance, first *filler) *filler {
	if !first.starved() || len(in.problem.Types)*len(in.problem.Items)*(1+len(first.bins)) > maxScarce {
		return first
	}
	best := first
	for _, level := range []bool{true, false} {
		if f := packByBudget(in, level); f.placesMore(best) {
			best = f
		}
	}
	return best
}

// packByBudget packs with each new bin chosen for how much it places per share of the budgets.
func packByBudget(in *Instance, level bool) *filler {
	f := newFiller(in)
	for _, item := range in.order {
		f.firstFit(item)
		for k := range in.tiers {
			f.firstFitTier(item, int32(k))
			for f.want[item] > 0 {
				b, ok := f.fullest(item, &in.tiers[k], level)
				if !ok {
					break
				}
				f.fill(&b, item)
				f.bins = append(f.bins, b)
			}
		}
	}
	return f
}

// starved reports whether items are unplaced while a pool has a budget that bins use up.
func (f *filler) starved() bool {
	if !slices.ContainsFunc(f.want, func(n int) bool { return n > 0 }) {
		return false
	}
	return slices.ContainsFunc(f.pools, func(p poolState) bool {
		return p.maxNodes != math.MaxInt || slices.ContainsFunc(p.limits, func(l int64) bool { return l != Unlimited })
	})
}

// fullest returns an empty bin of the type that places the most per share of the budgets after taking the item. With byLevel it
// counts copies of the item's priority first, and all copies to break ties.
func (f *filler) fullest(item int, tr *tier, byLevel bool) (bin, bool) {
	in := f.in
	best, bestMask, bestScore := int32(-1), uint64(0), [2]float64{}
	for _, t := range tr.types {
		mask := f.eligible(item, t) & f.affordable(t)
		if mask == 0 || relax.Copies(in.capacityOf(t), in.problem.Items[item].Size, 1) == 0 || !f.opens(t, item, mask) {
			continue
		}
		level, all := f.try(t, mask, item)
		if !byLevel {
			level = all
		}
		share := f.shareOfBudget(t)
		score := [2]float64{float64(level) / share, float64(all) / share}
		if score[0] > bestScore[0]*(1+1e-9) || score[0] >= bestScore[0]*(1-1e-9) && score[1] > bestScore[1]*(1+1e-9) {
			best, bestMask, bestScore = t, mask, score
		}
	}
	if best < 0 {
		return bin{}, false
	}
	b := f.newBin(best, bestMask)
	f.charge(best, int(b.charged), 1)
	return b, true
}

// try returns how many copies a new bin of the type would take, the item first: of the item's priority, and in all.
func (f *filler) try(t int32, mask uint64, item int) (level, all int) {
	want, left, diverse := slices.Clone(f.want), slices.Clone(f.left), copied(f.diverse)
	pools := slices.Clone(f.pools)
	for i := range pools {
		pools[i].limits = slices.Clone(pools[i].limits)
	}
	b := f.newBin(t, mask)
	f.charge(t, int(b.charged), 1)
	f.fill(&b, item)
	items := f.in.problem.Items
	for i := range want {
		n := want[i] - f.want[i]
		if all += n; items[i].Priority == items[item].Priority {
			level += n
		}
	}
	f.want, f.left, f.diverse, f.pools = want, left, diverse, pools
	return level, all
}

// fill puts the item into the bin, then all other unplaced items in order.
func (f *filler) fill(b *bin, item int) {
	put := func(i int) {
		if f.want[i] == 0 {
			return
		}
		if k, v, mask, open := f.admit(b, i, f.want[i]); k > 0 {
			f.place(b, i, k, v, mask, open)
		}
	}
	put(item)
	for _, i := range f.in.order {
		put(i)
	}
}

// shareOfBudget returns the largest fraction of a remaining pool budget that one bin of the type takes.
func (f *filler) shareOfBudget(t int32) float64 {
	typ := &f.in.problem.Types[t]
	pool := &f.pools[typ.Pool]
	share := 1e-9 // no bin is free
	if pool.maxNodes != math.MaxInt {
		share = max(share, 1/float64(pool.maxNodes))
	}
	for i, l := range pool.limits {
		if l != Unlimited && l > 0 {
			share = max(share, float64(typ.Usage[i])/float64(l))
		}
	}
	return share
}

// placesMore reports whether f places more copies than o at the highest priority where they differ.
func (f *filler) placesMore(o *filler) bool {
	items := f.in.problem.Items
	for from := 0; from < len(f.in.order); {
		level, sum := items[f.in.order[from]].Priority, 0
		for ; from < len(f.in.order) && items[f.in.order[from]].Priority == level; from++ {
			i := f.in.order[from]
			sum += o.want[i] - f.want[i]
		}
		if sum != 0 {
			return sum > 0
		}
	}
	return false
}
