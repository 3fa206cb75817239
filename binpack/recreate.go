package binpack

import (
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// recreate packs the items into the emptied nodes, every second time into a few of the bins that are left, and into new bins,
// whose positions begin at base. It reports false if the result is no better.
func (s *repacker) recreate(base int) bool {
	s.value()
	for _, b := range s.emptied {
		s.fill(&s.nodes[b.node])
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
	for at, item := range s.items {
		for s.want[item] > 0 && s.pays(base) && s.openAny(at) {
		}
	}
	return len(s.missing) > 0 || !slices.ContainsFunc(s.items, func(i int) bool { return s.want[i] > 0 })
}

// value sets classes and profits. The profit of a copy is its part of the layout's cost and, as far as budgets are scarce, of the
// number of copies.
func (s *repacker) value() {
	s.classes, s.profits = s.classes[:0], s.profits[:0]
	worth, total := s.guides[s.tier].worth, float64(s.cost)+1
	for _, i := range s.items {
		most := admittedByTags(nil, &s.in.itemTags[i], math.MaxInt32)
		s.classes = append(s.classes, relax.Class{Size: s.in.problem.Items[i].Size, Most: int64(most)})
		s.profits = append(s.profits, float64((1-s.scarce)*(1+worth[i])/total)+float64(s.scarce/s.copies))
	}
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

// openAny opens the bin that has the highest profit for what it takes, of a few random types that may hold one of the items. What a
// bin takes is its part of the layout's cost and of what budgets have left. While the layout leaves any unplaced, the item goes first,
// because those of high priority come first in every second round. openAny reports false if no bin takes anything.
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
	for range openTypes {
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
		if held > promising*most*took(t, int(b.charged)) {
			s.budget.Take(len(s.in.tiers[s.tier].types))
			u, j := s.cheapestChoice(&b)
			score := held / took(u, j)
			if s.blinks {
				score *= 1 + s.draw.Unit()
			}
			if score > most {
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
	if !s.add(int32(choice.Type), choice.Offering, best.shares) {
		last := len(s.bins) - 1
		s.withdraw(&s.bins[last])
		s.bins = s.bins[:last]
		return false
	}
	s.spare = append(s.spare, best)
	return true
}

// drawType returns a random type that may take one of the items, and its offerings that may: usually one of the guide's, rather a better
// one, or else that of a removed bin or any of the tier, because the guide knows nothing of budgets and capacity pools. The offerings are 0
// if there are none.
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
		all := s.in.tiers[s.tier].types
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
			if slices.ContainsFunc(s.in.profiles[p].variants, func(v variant) bool { return v.masks[t.typ]&t.mask != 0 }) {
				*list = append(*list, t)
			}
		}
	}
	return *list
}

// fill puts items into the bin: what a knapsack by a random method finds and, where rules refuse some of it, what else they admit. It
// returns the profit.
func (s *repacker) fill(b *bin) float64 {
	for k, i := range s.items {
		s.classes[k].Count = int64(s.want[i])
	}
	may := func(k int) bool {
		if b.node < 0 && s.blinks && s.draw.Below(blinks) == 0 { // what goes to a node costs nothing
			return false
		}
		return slices.ContainsFunc(s.in.profiles[s.in.profile[s.items[k]]].variants, func(v variant) bool {
			if b.node >= 0 {
				return v.nodes[b.node/64]&(1<<(b.node%64)) != 0
			}
			return v.masks[b.typ]&b.mask != 0
		})
	}
	if !s.knap.Load(b.free, s.classes, may, s.profits) {
		return 0
	}
	s.knap.Bound(math.Inf(1))
	switch s.draw.Below(4) {
	case 0:
		s.knap.Search(0, knapsackNodes)
	case 1:
		s.knap.Fill(2, 8)
		s.knap.Improve(repairs, repairNodes)
	default:
		s.knap.Fill(2, 8)
	}
	s.budget.Take(s.knap.Steps())
	found, refused, profit := s.knap.Found(), false, 0.0
	for i, at := range found.Class {
		before := s.want[s.items[at]]
		profit += s.putItem(b, int(at), int(found.Count[i]))
		refused = refused || before-s.want[s.items[at]] < int(found.Count[i])
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
