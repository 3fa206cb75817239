package binpack

import (
	"cmp"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// repacker improves a layout under all rules (ruin and recreate: G. Schrimpf et al., 2000). Each round empties a few bins and
// existing nodes and packs their items anew. The search of package relax does that faster, but without the rules that a
// relaxation leaves out.
type repacker struct {
	*filler
	budget *relax.Budget
	draw   relax.Draw
	types  []int32   // those of the first layout's bins, by price
	share  []float64 // by item: the dominant share of one copy
	lacks  []int     // by item: how many copies the layout does not place
	// missing are the items that the layout does not place completely, in order.
	missing []int

	// The state of a round.
	tier    int32
	items   []int // those of the removed bins and emptied nodes
	extra   []int // some of the missing ones
	removed []bin
	emptied []bin // nodes as they were
	grown   []bin // bins that took items, as they were
	grownAt []int
}

// repack returns a layout that is no worse than l: it places no less, and costs no more if it places the same.
func (r *run) repack(in *Instance, l Layout, b *relax.Budget) Layout {
	s := &repacker{filler: newFiller(in), budget: b, share: in.dominantShares()}
	if len(l.Bins) == 0 || !s.restore(l) {
		return l
	}
	for idle := 0; idle < idleRounds*(len(s.bins)+len(s.nodes)) && b.Left > 0 && !r.stopped(); idle++ {
		if s.round() {
			idle = 0
		}
	}
	slices.SortStableFunc(s.bins, func(a, b bin) int {
		return cmp.Or(in.rank[a.shares[0].Item]-in.rank[b.shares[0].Item], cmp.Compare(s.price(&a), s.price(&b)))
	})
	return s.finish()
}

// restore fills the filler with the layout. It reports whether the rules admit the items in this order.
func (s *repacker) restore(l Layout) bool {
	for n, shares := range l.Nodes {
		if !s.putAll(&s.nodes[n], shares) {
			return false
		}
	}
	used := make([]bool, len(s.in.problem.Types))
	for _, x := range l.Bins {
		t := int32(x.Type)
		if s.affordable(t)&(1<<x.Offering) == 0 || !s.add(t, x.Offering, x.Shares) {
			return false
		}
		used[t] = true
	}
	for _, t := range s.in.byPrice {
		if used[t] {
			s.types = append(s.types, t)
		}
	}
	s.lacks = slices.Clone(s.want)
	for _, i := range s.in.order {
		if s.lacks[i] > 0 {
			s.missing = append(s.missing, i)
		}
	}
	return true
}

// add adds a bin for the shares. It reports whether the bin holds all of them.
func (s *repacker) add(t int32, offering int, shares []Share) bool {
	b := s.newBin(t, 1<<offering)
	s.charge(t, int(b.charged), 1)
	ok := s.putAll(&b, shares)
	s.bins = append(s.bins, b)
	return ok
}

func (s *repacker) putAll(b *bin, shares []Share) bool {
	for _, x := range shares {
		if s.put(b, x.Item, x.Count) < x.Count {
			return false
		}
	}
	return true
}

// put places up to want copies, and returns how many.
func (s *repacker) put(b *bin, item, want int) int {
	if want == 0 {
		return 0
	}
	s.budget.Take(putSteps)
	k, v, mask, open := s.admit(b, item, want)
	if k > 0 {
		s.place(b, item, k, v, mask, open)
	}
	return k
}

// withdraw takes the bin and what it holds off all budgets and counts.
func (s *repacker) withdraw(b *bin) { s.count(b, -1) }

// count adds the bin and what it holds to all budgets and counts; sign -1 takes it off.
func (s *repacker) count(b *bin, sign int) {
	if b.node < 0 {
		s.charge(b.typ, int(b.charged), int64(sign))
	}
	s.exposeAll(s.capacityPool(b), b.shares, sign)
	for _, x := range b.shares {
		s.want[x.Item] -= sign * x.Count
	}
}

func (s *repacker) price(b *bin) Price { return s.in.objective(b.typ, int(b.charged)) }

func (s *repacker) tierOf(t int32) int32 { return s.in.tierOfPool[s.in.problem.Types[t].Pool] }

// round empties bins and packs again. It reports whether the layout got better.
func (s *repacker) round() bool {
	s.ruin()
	base := len(s.bins)
	more, ok := s.recreate(base)
	var before, after Price
	for _, list := range [][]bin{s.removed, s.grown} {
		for i := range list {
			before = sum(before, s.price(&list[i]))
		}
	}
	for i := base; i < len(s.bins); i++ {
		after = sum(after, s.price(&s.bins[i]))
	}
	for _, at := range s.grownAt {
		after = sum(after, s.price(&s.bins[at]))
	}
	if ok && (more || after <= before) {
		if more {
			for _, i := range s.missing {
				s.lacks[i] = s.want[i]
			}
			s.missing = slices.DeleteFunc(s.missing, func(i int) bool { return s.lacks[i] == 0 })
		}
		s.spare = append(s.spare, s.removed...)
		return more || after < before
	}
	for i := base; i < len(s.bins); i++ {
		s.withdraw(&s.bins[i])
		s.spare = append(s.spare, s.bins[i])
	}
	s.bins = s.bins[:base]
	for i, at := range s.grownAt {
		s.withdraw(&s.bins[at])
		s.bins[at] = s.grown[i]
		s.count(&s.bins[at], 1)
	}
	for _, b := range s.emptied {
		s.withdraw(&s.nodes[b.node])
		s.nodes[b.node] = b
		s.count(&b, 1)
	}
	for _, b := range s.removed {
		s.count(&b, 1)
		s.bins = append(s.bins, b)
	}
	return false
}

// ruin removes up to three bins of one tier and empties up to two nodes.
func (s *repacker) ruin() {
	s.items, s.removed, s.emptied, s.grown, s.grownAt = s.items[:0], s.removed[:0], s.emptied[:0], s.grown[:0], s.grownAt[:0]
	for range min(1+s.draw.Below(3), len(s.bins)) {
		i, last := s.draw.Below(len(s.bins)), len(s.bins)-1
		b := s.bins[i]
		if len(s.removed) == 0 {
			s.tier = s.tierOf(b.typ)
		} else if s.tierOf(b.typ) != s.tier {
			continue
		}
		s.bins[i] = s.bins[last]
		s.bins = s.bins[:last]
		s.removed = append(s.removed, b)
	}
	for range min(s.draw.Below(3), len(s.nodes)) {
		n := s.draw.Below(len(s.nodes))
		if !slices.ContainsFunc(s.emptied, func(b bin) bool { return int(b.node) == n }) {
			s.emptied = append(s.emptied, s.nodes[n])
		}
	}
	for _, list := range [][]bin{s.removed, s.emptied} {
		for i := range list {
			s.withdraw(&list[i])
			for _, x := range list[i].shares {
				s.items = append(s.items, x.Item)
			}
		}
	}
	for _, b := range s.emptied {
		s.nodes[b.node] = s.emptyNode(int(b.node))
	}
	s.extra = nil
	if n := len(s.missing); n > 0 { // rather those of high priority, which come first
		from := s.draw.Below(1 + s.draw.Below(n))
		s.extra = s.missing[from:min(from+otherItems, n)]
	}
	slices.SortFunc(s.items, func(a, b int) int { return s.in.rank[a] - s.in.rank[b] })
	s.items = slices.Compact(s.items)
	if s.draw.Below(2) == 0 {
		return
	}
	for i := range s.items {
		j := i + s.draw.Below(len(s.items)-i)
		s.items[i], s.items[j] = s.items[j], s.items[i]
	}
}

// recreate packs the items into the emptied nodes, every second time into a few of the bins that are left, and into new bins,
// whose positions begin at base. It reports whether it places more than before, and whether it places no less.
func (s *repacker) recreate(base int) (more, ok bool) {
	for _, item := range s.items {
		for _, b := range s.emptied {
			s.put(&s.nodes[b.node], item, s.want[item])
		}
	}
	if s.draw.Below(2) == 0 {
		from, n := 0, min(len(s.bins), otherBins)
		if n > 0 {
			from = s.draw.Below(len(s.bins))
		}
		for k := range n {
			s.addTo((from + k) % len(s.bins))
		}
	}
	for _, item := range s.items {
		for s.want[item] > s.lacks[item] {
			if !s.openAny(item) {
				return false, false
			}
		}
	}
	for _, item := range s.extra {
		for _, b := range s.emptied {
			s.put(&s.nodes[b.node], item, s.want[item])
		}
		for i := base; i < len(s.bins); i++ {
			s.put(&s.bins[i], item, s.want[item])
		}
		for s.want[item] > 0 && s.openAny(item) {
		}
	}
	for _, list := range [][]int{s.items, s.extra} {
		for _, item := range list {
			more = more || s.want[item] < s.lacks[item]
		}
	}
	for i := base; i < len(s.bins); i++ { // right-size
		b := s.bins[i]
		s.withdraw(&b)
		s.budget.Take(len(s.in.tiers[s.tier].types))
		t, j := s.cheapestChoice(&b)
		last := len(s.bins)
		if !s.add(t, j, b.shares) {
			s.count(&b, 1) // as every bin of the round
			return false, false
		}
		s.spare = append(s.spare, b)
		s.bins[i] = s.bins[last]
		s.bins = s.bins[:last]
	}
	return more, true
}

// addTo puts the items into a bin of the tier.
func (s *repacker) addTo(at int) {
	b := &s.bins[at]
	if s.tierOf(b.typ) != s.tier {
		return
	}
	grown := false
	for _, item := range s.items {
		if s.want[item] == 0 {
			continue
		}
		s.budget.Take(admitSteps)
		k, v, mask, open := s.admit(b, item, s.want[item])
		if k == 0 {
			continue
		}
		if !grown {
			s.grown, s.grownAt, grown = append(s.grown, *b), append(s.grownAt, at), true
			b.used, b.free, b.variants = slices.Clone(b.used), slices.Clone(b.free), slices.Clone(b.variants)
			b.tags, b.shares = slices.Clone(b.tags), slices.Clone(b.shares)
		}
		s.place(b, item, k, v, mask, open)
	}
}

// openAny opens the bin that holds the most for its price, with some randomness, of the layout's types and a few others. It
// reports whether a bin takes the item.
func (s *repacker) openAny(item int) bool {
	if !s.budget.Take(openSteps) {
		return false
	}
	best, most := bin{}, 0.0
	try := func(t int32) {
		s.budget.Take(openSteps)
		mask := s.eligible(item, t) & s.affordable(t)
		if mask == 0 || s.tierOf(t) != s.tier || relax.Copies(s.in.capacityOf(t), s.in.problem.Items[item].Size, 1) == 0 {
			return
		}
		b := s.newBin(t, mask)
		s.charge(t, int(b.charged), 1)
		s.fillSome(&b, item)
		held := 0.0
		for _, x := range b.shares {
			held += float64((leastShare + s.share[x.Item]) * float64(x.Count))
		}
		s.withdraw(&b)
		if score := held / (float64(s.price(&b)) + 1) * (1 + s.draw.Unit()); score > most {
			b, best, most = best, b, score
		}
		if len(b.used) > 0 {
			s.spare = append(s.spare, b)
		}
	}
	for _, t := range s.types {
		try(t)
	}
	for range otherTypes {
		list := s.in.tiers[s.tier].types
		try(list[s.draw.Below(len(list))])
	}
	if most == 0 {
		return false
	}
	s.count(&best, 1)
	s.bins = append(s.bins, best)
	return true
}

// fillSome puts the item into the bin, then the others, but passes over some of them (blinks: J. Christiaens, G. Vanden Berghe,
// 2020).
func (s *repacker) fillSome(b *bin, item int) {
	if s.put(b, item, s.want[item]) == 0 {
		return
	}
	for _, list := range [][]int{s.items, s.extra} {
		for _, i := range list {
			if s.want[i] > 0 && s.draw.Below(blinks) > 0 {
				s.put(b, i, s.want[i])
			}
		}
	}
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
	return slices.Contains(f.in.budgets.bounded, true)
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
		share := f.shareOfBudget(t, in.cheapest(t, mask))
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
	f.want, f.left, f.diverse = want, left, diverse
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
