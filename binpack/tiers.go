package binpack

import (
	"cmp"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// lift moves items from light pools to heavier ones that can hold them now, into bins with free capacity or new ones. A search for low
// cost plans one tier after the other and exchanges items, so at its end a heavier pool may have capacity or budget that it did not see.
func (f *filler) lift() {
	if len(f.in.tiers) < 2 {
		return
	}
	in := f.in
	bins := slices.Clone(f.bins)
	slices.SortStableFunc(bins, func(a, b bin) int { return cmp.Compare(in.tierOf(a.typ), in.tierOf(b.typ)) })
	f.bins, f.binIndex = f.bins[:0], freeIndex{}
	d := newDemand(in)
	for i := range bins {
		b := &bins[i]
		tier := in.tierOf(b.typ)
		if tier == 0 || f.over {
			f.bins = append(f.bins, *b)
			continue
		}
		f.withdraw(b)
		for _, s := range b.shares {
			missing := f.want[s.Item] - s.Count // stays out of this
			f.want[s.Item] = s.Count
			for k := range tier {
				f.firstOf(f.bins, &f.binIndex, s.Item, k)
				for f.want[s.Item] > 0 && f.open(s.Item, in.tiers[k], d) {
				}
			}
			f.want[s.Item] += missing
		}
		rest := f.newBin(b.typ, 1<<b.charged)
		f.charge(rest.typ, int(rest.charged), 1)
		for _, s := range b.shares {
			if k, v, mask, open := f.admit(&rest, s.Item, min(s.Count, f.want[s.Item])); k > 0 {
				f.place(&rest, s.Item, k, v, mask, open)
			}
		}
		if len(rest.shares) == 0 {
			f.withdraw(&rest)
		} else {
			f.bins = append(f.bins, rest)
		}
	}
	f.binIndex = freeIndex{}
}

// heaviest returns the heaviest tier that has a type for the item, whatever budgets say.
func (in *Instance) heaviest(item int) int32 {
	for k, types := range in.tiers {
		if slices.ContainsFunc(types, func(t int32) bool {
			return in.profileOf(item).mask(t) != 0 && relax.Copies(in.capacityOf(t), in.problem.Items[item].Size, 1) > 0
		}) {
			return int32(k)
		}
	}
	return int32(len(in.tiers))
}
