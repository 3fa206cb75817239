package binpack

import (
	"math"
	"slices"
)

// maxScarce bounds the work of [scarce]: bins times types times items.
const maxScarce = 20_000_000

// scarce packs again where budgets left something over. The cheapest bin for the next item is then the wrong measure:
// each new bin is the one that places the most for what it takes of the budgets, all items still to place considered. The
// layout with more of the items of the highest priority in which they differ stands.
func scarce(in *Instance, first *filler) *filler {
	if !first.starved() || len(in.problem.Types)*len(in.problem.Items)*(1+len(first.bins)) > maxScarce {
		return first
	}
	f := newFiller(in)
	for _, item := range in.order {
		f.firstFit(f.nodes, item)
		for k := range in.tiers {
			f.firstFitTier(item, int32(k))
			for f.want[item] > 0 {
				b, ok := f.fullest(item, &in.tiers[k])
				if !ok {
					break
				}
				f.fill(&b, item)
				f.bins = append(f.bins, b)
			}
		}
	}
	if f.placesMore(first) {
		return f
	}
	return first
}

// starved reports whether something is left over while a pool has a budget that bins take from.
func (f *filler) starved() bool {
	if !slices.ContainsFunc(f.want, func(n int) bool { return n > 0 }) {
		return false
	}
	return slices.ContainsFunc(f.pools, func(p poolState) bool {
		return p.maxNodes != math.MaxInt || slices.ContainsFunc(p.limits, func(l int64) bool { return l != Unlimited })
	})
}

// fullest is a new bin, empty, of the type that places the most for its share of the budgets, once it has taken the item.
func (f *filler) fullest(item int, tr *tier) (bin, bool) {
	in := f.in
	best, bestMask, bestWorth := int32(-1), uint64(0), 0.0
	for _, t := range tr.types {
		mask := f.eligible(item, t) & f.affordable(t)
		if mask == 0 || fits(in.capacityOf(t), in.problem.Items[item].Size, 1) == 0 || !f.opens(t, item, mask) {
			continue
		}
		if worth := float64(f.try(t, mask, item)) / f.shareOfBudget(t); worth > bestWorth*(1+1e-9) {
			best, bestMask, bestWorth = t, mask, worth
		}
	}
	if best < 0 {
		return bin{}, false
	}
	b := f.newBin(best, bestMask)
	f.charge(best, int(b.charged), 1)
	return b, true
}

// try is how many copies a new bin of the type would take, the item first.
func (f *filler) try(t int32, mask uint64, item int) int {
	want, left := slices.Clone(f.want), slices.Clone(f.left)
	pools := slices.Clone(f.pools)
	for i := range pools {
		pools[i].limits = slices.Clone(pools[i].limits)
	}
	b := f.newBin(t, mask)
	f.charge(t, int(b.charged), 1)
	f.fill(&b, item)
	n := 0
	for i := range want {
		n += want[i] - f.want[i]
	}
	f.want, f.left, f.pools = want, left, pools
	return n
}

// fill puts the item into the bin, then all others that still want a place, in order.
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

// shareOfBudget is the largest part that one bin of the type takes of what is left of a budget of its pool.
func (f *filler) shareOfBudget(t int32) float64 {
	typ := &f.in.problem.Types[t]
	pool := &f.pools[typ.Pool]
	share := 1e-9 // nothing is free
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

// placesMore reports whether more of the items find a place, those of the highest priority in which they differ.
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
