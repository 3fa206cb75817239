package binpack

import (
	"cmp"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// repacker improves a layout under all rules (ruin and recreate: G. Schrimpf et al., 2000). Each round empties a few bins,
// preferably wasteful ones, and existing nodes, and packs their items anew, by knapsacks over what the linear programme pays for them.
type repacker struct {
	*filler
	budget *relax.Budget
	draw   relax.Draw
	guides []guide
	reach  [][]binType // by tier and profile: the guide's types that the profile can go to; nil until it is needed
	cost   Price
	copies float64 // of all items
	lacks  []int   // by item: how many copies the layout does not place
	// missing are the items that the layout does not place completely, in order.
	missing []int

	// The state of a round.
	tier    int32
	blinks  bool          // some items are passed over, and scores are noisy (J. Christiaens, G. Vanden Berghe, 2020)
	scarce  float64       // how much a new bin's share of the budgets counts, from 0 to 1; what it costs counts the rest
	items   []int         // those of the removed bins and emptied nodes, and some of the missing ones
	classes []relax.Class // the items, as knap takes them
	profits []float64     // what a copy of each of the items is worth (see value)
	knap    relax.Knapsack
	removed []bin
	emptied []bin // nodes as they were
	grown   []bin // bins that took items, as they were
	grownAt []int
}

// repack returns a layout that is no worse than l (see [Instance.compare]). It ends with the budget, at a bound, or after many rounds
// without a gain.
func (p *planner) repack(l Layout) Layout {
	in := p.in
	s := &repacker{filler: newFiller(in), budget: p.budget, cost: in.objectiveOf(l), copies: float64(in.copies())}
	if len(l.Bins) == 0 || !s.restore(l) {
		return l
	}
	s.reach = make([][]binType, len(in.tiers)*len(in.profiles))
	for k := range in.tiers {
		s.guides = append(s.guides, p.guide(k))
	}
	floor := Price(0)
	for _, h := range p.hints {
		for _, b := range h.bounds {
			floor = max(floor, b.Price)
		}
	}
	for idle := 0; idle < idleLeast+idleRounds*(len(s.bins)+len(s.nodes)) && s.budget.Left > 0 && !p.stopped(); idle++ {
		if s.cost <= floor && len(s.missing) == 0 {
			break
		}
		if s.round() {
			idle = 0
		}
	}
	slices.SortStableFunc(s.bins, func(a, b bin) int {
		return cmp.Or(in.rank[a.shares[0].Item]-in.rank[b.shares[0].Item], cmp.Compare(s.price(&a), s.price(&b)))
	})
	return s.finish()
}

// guide is what the relaxation of a tier knows of its items and types.
type guide struct {
	worth []float64 // by item: the price that a copy accounts for; 0 where nothing is known
	types []binType // what the relaxation did not rule out, the most worth for its price first
}

func (p *planner) guide(tier int) guide {
	g := guide{worth: make([]float64, len(p.in.problem.Items))}
	s := &p.solved[tier]
	if s.relaxation == nil {
		for _, t := range p.in.tiers[tier].types {
			g.types = append(g.types, binType{typ: t, mask: 1<<len(p.in.problem.Types[t].Offerings) - 1})
		}
		return g
	}
	for class, members := range s.members {
		for _, i := range members {
			g.worth[i] = s.worth[class]
		}
	}
	var knap relax.Knapsack
	for _, k := range s.model.Ranked(&knap, s.worth) {
		if s.types[k].nodes == nil { // to buy
			g.types = append(g.types, s.types[k])
		}
	}
	p.budget.Take(knap.Steps())
	return g
}

// restore fills the filler with the layout. It reports whether the rules admit the items in this order.
func (s *repacker) restore(l Layout) bool {
	for n, shares := range l.Nodes {
		if !s.putAll(&s.nodes[n], shares) {
			return false
		}
	}
	for _, x := range l.Bins {
		t := int32(x.Type)
		if s.affordable(t)&(1<<x.Offering) == 0 || !s.add(t, x.Offering, x.Shares) {
			return false
		}
	}
	s.lacks = slices.Clone(s.want)
	s.listMissing()
	return true
}

func (s *repacker) listMissing() {
	s.missing = s.missing[:0]
	for _, i := range s.in.order {
		if s.lacks[i] > 0 {
			s.missing = append(s.missing, i)
		}
	}
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
	before := s.shownTypes
	k, v, mask, open := s.admit(b, item, want)
	s.budget.Take(putSteps + showSteps*(s.shownTypes-before))
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

// waste is what the bin costs above the worth of its items.
func (s *repacker) waste(b *bin) float64 {
	waste, worth := float64(s.price(b)), s.guides[s.tierOf(b.typ)].worth
	for _, x := range b.shares {
		waste -= float64(worth[x.Item] * float64(x.Count))
	}
	return waste
}

func (s *repacker) tierOf(t int32) int32 { return s.in.tierOfPool[s.in.problem.Types[t].Pool] }

// round empties bins and packs again. It reports whether the layout got better.
func (s *repacker) round() bool {
	s.ruin()
	base := len(s.bins)
	ok := s.recreate(base)
	before, after := s.costs(base)
	slices.SortFunc(s.items, func(a, b int) int { return s.in.rank[a] - s.in.rank[b] })
	more := s.in.compareCounts(s.items, func(i int) int { return s.lacks[i] - s.want[i] })
	if ok && (more > 0 || more == 0 && after <= before) {
		s.cost += after - before
		if slices.ContainsFunc(s.items, func(i int) bool { return s.lacks[i] != s.want[i] }) {
			for _, i := range s.items {
				s.lacks[i] = s.want[i]
			}
			s.listMissing()
		}
		s.spare = append(s.spare, s.removed...)
		return more > 0 || after < before
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

// costs returns what the bins that the round removed and changed cost, and what those cost that are there instead.
func (s *repacker) costs(base int) (before, after Price) {
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
	return before, after
}

// pays reports whether the round may still gain: it places missing items, or the new bins and the worth of what is still out of
// bins are at most what the old ones cost.
func (s *repacker) pays(base int) bool {
	if len(s.missing) > 0 {
		return true
	}
	before, after := s.costs(base)
	rest, worth := float64(after), s.guides[s.tier].worth
	for _, item := range s.items {
		rest += float64(worth[item] * float64(s.want[item]-s.lacks[item]))
	}
	return rest <= float64(before)*(1+1e-9)
}

// ruin removes up to five related bins of one tier and empties up to two nodes.
func (s *repacker) ruin() {
	s.items, s.removed, s.emptied, s.grown, s.grownAt = s.items[:0], s.removed[:0], s.emptied[:0], s.grown[:0], s.grownAt[:0]
	for range min(1+s.draw.Below(5), len(s.bins)) {
		i, last := s.draw.Below(len(s.bins)), len(s.bins)-1
		if len(s.removed) == 0 || s.draw.Below(2) == 0 { // others serve to exchange items
			for range 2 {
				if j := s.draw.Below(len(s.bins)); s.waste(&s.bins[j]) > s.waste(&s.bins[i]) {
					i = j
				}
			}
		}
		b := s.bins[i]
		if len(s.removed) == 0 {
			s.tier = s.tierOf(b.typ)
		} else if s.tierOf(b.typ) != s.tier || !s.related(&s.removed[0], &b) {
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
	if n := len(s.missing); n > 0 { // rather those of high priority, which come first
		from := s.draw.Below(1 + s.draw.Below(n))
		s.items = append(s.items, s.missing[from:min(from+otherItems, n)]...)
	}
	s.blinks, s.scarce = s.draw.Below(2) == 0, 0
	if s.in.boundedTier(s.tier) && s.draw.Below(2) == 0 {
		s.scarce = s.draw.Unit()
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

// related reports whether some item of the first bin may go into the type of the second (related removal: P. Shaw, 1998).
func (s *repacker) related(first, second *bin) bool {
	return slices.ContainsFunc(first.shares, func(x Share) bool { return s.in.profiles[s.in.profile[x.Item]].reaches(second.typ) })
}
