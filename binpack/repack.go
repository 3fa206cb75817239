package binpack

import (
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
	"github.com/joinery-sdk/joinery/binpack/internal/tags"
)

// repacker improves a layout under all rules (ruin and recreate: G. Schrimpf et al., 2000). Each
// round empties nodes and a few bins, mostly wasteful ones, and repacks their items by knapsacks.
type repacker struct {
	*filler
	budget *relax.Budget
	draw   relax.Draw
	guides []guide
	reach  [][]binType // by tier and profile: the guide's types that the profile can go to; nil until needed
	cost   Price
	copies float64 // of all items
	lacks  []int   // by item: how many copies the layout does not place
	// missing are the items that the layout does not place completely, in order.
	missing []int

	// The state of a round.
	tier    int32
	blinks  bool          // pass over some items and try fewer types (J. Christiaens, G. Vanden Berghe, 2020)
	scarce  float64       // weight of a new bin's share of the budgets, from 0 to 1; the rest is the weight of its cost
	items   []int         // items of removed bins and emptied nodes, and some missing ones
	classes []relax.Class // the items, as knap takes them
	rest    []Share       // the items that are out of bins
	profits []float64     // the worth of a copy of each of the items (see recreate)
	knap    relax.Knapsack
	found   relax.Pattern
	removed []bin
	emptied []bin // nodes as they were
	grown   []bin // bins that took items, as they were
	grownAt []int
}

// repack returns a layout that is no worse. It ends with the budget, at a bound, when idle, or, if
// that is all that is asked, when the layout is complete.
func (p *planner) repack(l Layout, complete bool) Layout {
	left := max(p.budget.Left, 0)
	p.budget.Left = left + p.total/repackPart
	part := p.budget.Split(left/2 + p.total/repackPart)
	defer p.budget.Return(part)
	s := &repacker{filler: newFiller(p.in, p.stop), budget: part, cost: p.in.objectiveOf(l), copies: float64(p.in.copies())}
	if !s.restore(l) || len(l.Bins) == 0 && (len(s.nodes) == 0 || len(s.missing) == 0) {
		return l
	}
	s.reach = make([][]binType, len(p.in.tiers)*len(p.in.profiles))
	for k := range p.in.tiers {
		s.guides = append(s.guides, p.guide(k))
	}
	floor := p.floor()
	open := func() bool { return len(s.missing) > 0 || !complete && s.cost > floor }
	for idle := 0; idle < idleLeast+idleRounds*(len(s.bins)+len(s.nodes)) && open() && s.budget.Left > 0 && !p.stopped(); idle++ {
		if s.round() {
			if idle = 0; p.report != nil {
				p.report(Progress{Bound: floor, Price: s.cost, Work: p.work(s.budget.Left + p.budget.Left)})
			}
		}
	}
	s.lift()
	return s.finish()
}

// restore fills the filler with the layout. It reports whether rules admit the items in this order.
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
	for i, n := range s.lacks {
		if n > 0 && !s.in.holdable(i) {
			s.lacks[i] = 0
		}
	}
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

// add adds a bin for the shares if it holds all of them, and reports whether it does.
func (s *repacker) add(t int32, offering int, shares []Share) bool {
	b := s.newBin(t, 1<<offering)
	s.charge(t, int(b.charged), 1)
	if !s.putAll(&b, shares) {
		s.withdraw(&b)
		s.spare = append(s.spare, b)
		return false
	}
	s.bins = append(s.bins, b)
	return true
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

func (s *repacker) price(b *bin) Price { return s.in.objective(b.typ, int(b.charged)) }

// waste returns how much more the bin costs than its items are worth.
func (s *repacker) waste(b *bin) float64 {
	waste, worth := float64(s.price(b)), s.guides[s.in.tierOf(b.typ)].worth
	for _, x := range b.shares {
		waste -= float64(worth[x.Item] * float64(x.Count))
	}
	return waste
}

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
		s.spare = append(append(append(s.spare, s.removed...), s.grown...), s.emptied...)
		return more > 0 || after < before
	}
	for i := base; i < len(s.bins); i++ {
		s.withdraw(&s.bins[i])
		s.spare = append(s.spare, s.bins[i])
	}
	s.bins = s.bins[:base]
	for i, at := range s.grownAt {
		s.withdraw(&s.bins[at])
		s.spare = append(s.spare, s.bins[at])
		s.bins[at] = s.grown[i]
		s.count(&s.bins[at], 1)
	}
	for _, b := range s.emptied {
		s.withdraw(&s.nodes[b.node])
		s.spare = append(s.spare, s.nodes[b.node])
		s.nodes[b.node] = b
		s.count(&b, 1)
	}
	for _, b := range s.removed {
		s.count(&b, 1)
		s.bins = append(s.bins, b)
	}
	return false
}

// costs returns the cost of the bins that the round removed or changed, before and after the round.
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

// pays reports whether new bins may still gain: the round places missing items, or the new bins
// plus the worth of what is still out of bins cost at most what the old bins did.
func (s *repacker) pays(base int) bool {
	if len(s.missing) > 0 {
		return len(s.in.tiers[s.tier]) > 0
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
			s.tier = s.in.tierOf(b.typ)
		} else if s.in.tierOf(b.typ) != s.tier || !s.in.related(&s.removed[0], &b) {
			continue
		}
		s.bins[i] = s.bins[last]
		s.bins = s.bins[:last]
		s.removed = append(s.removed, b)
	}
	for range min(s.draw.Below(3), len(s.nodes)) {
		n := s.draw.Below(len(s.nodes))
		tooHeavy := func(x Share) bool { return s.tier > 0 && s.in.heaviest(x.Item) < s.tier } // not for a bin of this tier
		if !slices.ContainsFunc(s.emptied, func(b bin) bool { return int(b.node) == n }) && !slices.ContainsFunc(s.nodes[n].shares, tooHeavy) {
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
	if n := len(s.missing); n > 0 { // preferably those of high priority, which come first
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

// recreate packs the items into emptied nodes, every second time into a few remaining bins, and
// into new bins from position base on. It reports false if the result is no better. A copy's profit
// is its part of the layout's cost and, as far as budgets are scarce, of the number of copies.
func (s *repacker) recreate(base int) bool {
	s.classes, s.profits = s.classes[:0], s.profits[:0]
	worth, total := s.guides[s.tier].worth, float64(s.cost)+1
	for _, i := range s.items {
		most := tags.Admitted(nil, s.in.itemTags[i], math.MaxInt32)
		s.classes = append(s.classes, relax.Class{Size: s.in.problem.Items[i].Size, Most: int64(most)})
		s.profits = append(s.profits, float64((1-s.scarce)*(1+worth[i])/total)+float64(s.scarce/s.copies))
	}
	for _, b := range s.emptied {
		s.fill(&s.nodes[b.node])
	}
	if s.draw.Below(2) == 0 {
		from := s.draw.Below(max(len(s.bins), 1))
		for k := range min(len(s.bins), otherBins) {
			s.addTo((from + k) % len(s.bins))
		}
	}
	for at, item := range s.items {
		for s.want[item] > 0 && s.pays(base) && (s.oneBin(base) || s.openAny(at)) {
		}
	}
	return len(s.missing) > 0 || !slices.ContainsFunc(s.items, func(i int) bool { return s.want[i] > 0 })
}

// addTo puts the items into a bin of the tier.
func (s *repacker) addTo(at int) {
	b := &s.bins[at]
	if s.in.tierOf(b.typ) != s.tier {
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
			*b = s.copyOf(b)
		}
		s.place(b, item, k, v, mask, open)
	}
}

// openAny tries a few random types for one of the items, and opens the bin with the highest profit
// for its part of cost and budgets. The item goes first if any are missing, since every second
// round sorts by priority. It reports false if no bin takes anything.
func (s *repacker) openAny(at int) bool {
	var best bin
	var choice Choice
	most, total := 0.0, float64(s.cost)+1
	took := func(t int32, j int) float64 {
		part := float64((1 - s.scarce) * float64(s.in.objective(t, j)+1) / total)
		if s.scarce > 0 {
			part += float64(s.scarce * s.shareOfBudget(t, j))
		}
		return part
	}
	tries := openTypes
	if s.blinks {
		tries = 1 + s.draw.Below(openTypes)
	}
	for range tries {
		if !s.budget.Take(openSteps) {
			break
		}
		t, mask := s.drawType(at)
		if mask == 0 {
			continue
		}
		b := s.newBin(t, mask)
		s.charge(t, int(b.charged), 1)
		held := 0.0
		if len(s.missing) > 0 {
			held = s.putItem(&b, at, s.want[s.items[at]])
		}
		held += s.fill(&b)
		s.withdraw(&b)
		if part := took(t, int(b.charged)); held > promising*most*part {
			s.budget.Take(len(s.in.tiers[s.tier]))
			u, j, _ := s.cheapestChoice(&b, s.in.tierOf(t), s.in.objective(t, int(b.charged)))
			if took(u, j) > part { // the cheaper one takes more of the budgets
				u, j = t, int(b.charged)
			}
			if score := held / took(u, j); score > most {
				b, best, most, choice = best, b, score, Choice{int(u), j}
			}
		}
		if len(b.used) > 0 {
			s.spare = append(s.spare, b)
		}
	}
	if most == 0 {
		return false
	}
	s.spare = append(s.spare, best)
	return s.add(int32(choice.Type), choice.Offering, best.shares)
}

// oneBin puts all that remains into one new bin, if that makes the layout cheaper.
func (s *repacker) oneBin(base int) bool {
	before, after := s.costs(base)
	s.rest = s.rest[:0]
	for _, i := range s.items {
		if s.want[i] > 0 {
			s.rest = append(s.rest, Share{i, s.want[i]})
		}
	}
	s.budget.Take(len(s.in.tiers[s.tier]) / oneBinPart)
	t, j, ok := s.choiceFor(s.rest, s.tier, before-after)
	return ok && s.add(t, j, s.rest)
}

// drawType returns a random type and its offerings that may take one of the items; 0 for none.
// Usually it is one of the better types of the guide. As the guide ignores budgets and capacity
// pools, it can also be the type of a removed bin or any of the tier.
func (s *repacker) drawType(at int) (t int32, mask uint64) {
	item := s.items[at]
	may := func(t int32, mask uint64) uint64 {
		if relax.Copies(s.in.capacityOf(t), s.in.problem.Items[item].Size, 1) == 0 {
			return 0
		}
		return mask & s.affordable(t) & s.eligible(item, t)
	}
	switch s.draw.Below(8) {
	case 0, 1:
		if n := len(s.removed); n > 0 {
			b := &s.removed[s.draw.Below(n)]
			if mask := may(b.typ, b.mask); mask != 0 {
				return b.typ, mask
			}
		}
	case 2:
		all := s.in.tiers[s.tier]
		from := s.draw.Below(len(all))
		for k := range all {
			t := all[(from+k)%len(all)]
			s.budget.Take(1)
			if mask := may(t, math.MaxUint64); mask != 0 {
				return t, mask
			}
		}
	}
	list, u := s.others(item), s.draw.Unit()
	from := int(u * u * float64(len(list)))
	for k := range list {
		x := list[(from+k)%len(list)]
		s.budget.Take(1)
		if mask := may(x.typ, x.mask); mask != 0 {
			return x.typ, mask
		}
	}
	return 0, 0
}

// others returns the types of the tier that the item may go to, the best first.
func (s *repacker) others(item int) []binType {
	p := s.in.profile[item]
	list := &s.reach[int(s.tier)*len(s.in.profiles)+int(p)]
	if *list == nil {
		*list = []binType{}
		for _, t := range s.guides[s.tier].types {
			if s.in.profiles[p].mask(t.typ)&t.mask != 0 {
				*list = append(*list, t)
			}
		}
	}
	return *list
}

// fill puts items into the bin: what a knapsack by a random method finds and, if rules refuse some
// of it, whatever else they admit. It returns the profit.
func (s *repacker) fill(b *bin) float64 {
	for k, i := range s.items {
		s.classes[k].Count = int64(s.want[i])
	}
	may := func(k int) bool {
		if b.node < 0 && s.blinks && s.draw.Below(blinks) == 0 { // nodes cost nothing
			return false
		}
		p := s.in.profileOf(s.items[k])
		return b.node >= 0 && p.goesTo(b.node) || b.node < 0 && p.mask(b.typ)&b.mask != 0
	}
	if !s.knap.Load(b.free, s.classes, may, s.profits) {
		return 0
	}
	s.knap.Bound(math.Inf(1))
	switch s.draw.Below(4) {
	case 0:
		s.knap.Search(0, knapsackNodes)
	case 1:
		s.knap.Fill()
		s.knap.Improve(repairs, repairNodes)
	default:
		s.knap.Fill()
	}
	s.budget.Take(s.knap.Steps())
	refused, profit := false, 0.0
	s.found = s.knap.Found(s.found[:0])
	for _, a := range s.found {
		before := s.want[s.items[a.Class]]
		profit += s.putItem(b, int(a.Class), int(a.Count))
		refused = refused || before-s.want[s.items[a.Class]] < int(a.Count)
	}
	for at := 0; refused && at < len(s.items); at++ {
		profit += s.putItem(b, at, s.want[s.items[at]])
	}
	return profit
}

// putItem puts up to want copies of one of the items into the bin, and returns their profit.
func (s *repacker) putItem(b *bin, at, want int) float64 {
	return float64(s.profits[at] * float64(s.put(b, s.items[at], want)))
}
