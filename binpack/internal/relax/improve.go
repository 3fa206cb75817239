package relax

import (
	"math"
	"slices"
	"sync"
)

// Draw is a deterministic pseudo-random sequence (splitmix64, S. Vigna).
type Draw uint64

func (d *Draw) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Below returns a number from 0 to n-1.
func (d *Draw) Below(n int) int { return int(d.next() % uint64(n)) }

// Unit returns a number from 0 up to 1.
func (d *Draw) Unit() float64 { return float64(float64(d.next()>>11) / (1 << 53)) }

// Improve is the large-neighbourhood search. It removes a few bins, preferably wasteful ones, repacks their contents, and keeps
// the result if it is no dearer (ruin and recreate: G. Schrimpf et al., 2000). duals has the dual of each class. It stops at
// the floor, when the budget ends, or when a round gains too little. Bins of counted bin types are refilled, but not replaced.
//
// Two searches run side by side. With many bins each works on one half; with few each works on all of them, and the cheaper
// result stands.
func (m *Model) Improve(bins []Column, duals []float64, floor float64, b *Budget) []Column {
	rounds := min(lnsRounds, 1+b.Left/lnsLeast)
	for round := range rounds {
		steps := b.Left / (rounds - round)
		if m.Cost(bins) <= floor*(1+1e-9) || steps <= 0 || b.Left <= 0 {
			break
		}
		halves := len(bins) >= 2*lnsHalf
		var part [2][]Column
		for k := range part {
			for i, c := range bins {
				if !halves || k == [2]int{i % 2, 2 * i / len(bins)}[round%2] { // every other one, or neighbours
					part[k] = append(part[k], c)
				}
			}
		}
		least := floor
		if halves {
			least = 0
		}
		var side sync.WaitGroup
		var budgets [2]*Budget
		for k := range part {
			budgets[k] = b.Split(steps / 2)
			side.Go(func() { part[k] = m.improve(2*round+k, part[k], duals, least, budgets[k]) })
		}
		side.Wait()
		for k := range part {
			budgets[k].Left = max(budgets[k].Left, 0)
			b.Return(budgets[k])
		}
		before := m.Cost(bins)
		switch {
		case halves:
			bins = append(part[0], part[1]...)
		case m.Cost(part[1]) < m.Cost(part[0]):
			bins = part[1]
		default:
			bins = part[0]
		}
		if m.Cost(bins) > before*(1-lnsGain) {
			break
		}
	}
	return bins
}

func (m *Model) improve(variation int, bins []Column, duals []float64, floor float64, b *Budget) []Column {
	s := newImprover(m, bins, duals)
	b.Take(s.knap.Steps())
	s.rng = Draw(variation)
	for b.Left > 0 && len(s.bins) > 0 && len(s.types) > 0 && s.cost > floor*(1+1e-9) {
		s.round(b)
	}
	return s.bins
}

type improver struct {
	m     *Model
	duals []float64
	bins  []Column
	waste []float64
	cost  float64
	rng   Draw
	knap  Knapsack
	types []int // uncounted ones, the best by duals first
	// groups of classes that may go to the same bin types; group has the group of each class.
	groups   []group
	group    []int32
	at       []int32
	sub      []Class // the classes in the removed bins
	from     []int32 // their indexes in the model
	subDuals []float64
	count    []int64
	// counted are the counted bin types of the removed bins.
	counted []int
}

// group is a set of bin types, and the uncounted ones among them, the best by duals first.
type group struct {
	set   []uint64
	types []int
}

func newImprover(m *Model, bins []Column, duals []float64) *improver {
	s := &improver{m: m, duals: duals, bins: slices.Clone(bins), at: make([]int32, len(m.Classes))}
	for _, c := range s.bins {
		s.waste = append(s.waste, s.loss(c))
		s.cost += m.BinTypes[c.BinType].Price
	}
	s.types = m.Ranked(&s.knap, duals)
	for i := range m.Classes {
		set := m.Classes[i].BinTypes
		g := slices.IndexFunc(s.groups, func(g group) bool { return slices.Equal(g.set, set) })
		if g < 0 {
			g = len(s.groups)
			s.groups = append(s.groups, group{set, slices.DeleteFunc(slices.Clone(s.types), func(k int) bool { return !has(set, k) })})
		}
		s.group = append(s.group, int32(g))
	}
	return s
}

// loss returns the price of the bin less the dual value of its contents.
func (s *improver) loss(c Column) float64 {
	sum := s.m.BinTypes[c.BinType].Price
	for i, class := range c.Class {
		sum -= float64(s.duals[class] * float64(c.Count[i]))
	}
	return sum
}

// round removes and repacks once.
func (s *improver) round(b *Budget) {
	size := min(1+s.rng.Below(5), len(s.bins))
	var out []int
	classes := 0
	for range 3 * size {
		best := -1
		picks := 3
		if len(out) > 0 && s.rng.Below(2) == 0 {
			picks = 1 // others serve to exchange items
		}
		for range picks {
			if i := s.rng.Below(len(s.bins)); !slices.Contains(out, i) && (best < 0 || s.waste[i] > s.waste[best]) && (len(out) == 0 || s.related(out[0], i)) {
				best = i
			}
		}
		if best >= 0 {
			if classes += len(s.bins[best].Class); classes > 250 && len(out) > 1 {
				break
			}
			if out = append(out, best); len(out) == size {
				break
			}
		}
	}
	b.Take(50)
	if len(out) == 0 {
		return
	}
	old := s.gather(out)
	made, cost := s.recreate(old, b)
	if made == nil {
		return
	}
	// At equal cost, waste concentrated in one bin is better.
	before, now := 0.0, 0.0
	for _, i := range out {
		before += float64(s.waste[i] * s.waste[i])
	}
	for _, c := range made {
		w := s.loss(c)
		now += float64(w * w)
	}
	if cost < old*(1-1e-12) || cost <= old && now >= before {
		s.replace(out, made)
		s.cost += cost - old
	}
}

// related reports whether some item of the first bin may go into the bin type of the second (related removal: P. Shaw, 1998).
func (s *improver) related(first, second int) bool {
	return slices.ContainsFunc(s.bins[first].Class, func(class int32) bool { return s.m.Classes[class].May(s.bins[second].BinType) })
}

// gather makes a small problem of the contents of the bins, and returns what the bins cost.
func (s *improver) gather(out []int) float64 {
	s.sub, s.from, s.subDuals, s.counted = s.sub[:0], s.from[:0], s.subDuals[:0], s.counted[:0]
	cost := 0.0
	for _, i := range out {
		if k := s.bins[i].BinType; s.m.BinTypes[k].Supply >= 0 {
			s.counted = append(s.counted, k)
		}
		cost += s.m.BinTypes[s.bins[i].BinType].Price
		for k, class := range s.bins[i].Class {
			at := s.at[class] - 1
			if at < 0 {
				at = int32(len(s.sub))
				s.at[class] = at + 1
				c := s.m.Classes[class]
				c.Count = 0
				s.sub, s.from, s.subDuals = append(s.sub, c), append(s.from, class), append(s.subDuals, s.duals[class])
			}
			s.sub[at].Count += int64(s.bins[i].Count[k])
		}
	}
	for _, class := range s.from {
		s.at[class] = 0
	}
	s.count = s.count[:0]
	for i := range s.sub {
		s.count = append(s.count, s.sub[i].Count)
	}
	return cost
}

// recreate packs the small problem for at most the limit, or returns nil.
func (s *improver) recreate(limit float64, b *Budget) ([]Column, float64) {
	for i := range s.sub {
		s.sub[i].Count = s.count[i]
	}
	rest := 0.0
	for i := range s.sub {
		rest += float64(s.subDuals[i] * float64(s.sub[i].Count))
	}
	var made, best []Column
	cost, bestCost := 0.0, math.Inf(1)
	put := func(c Column) {
		cost += s.m.BinTypes[c.BinType].Price
		for i, at := range c.Class {
			s.sub[at].Count -= int64(c.Count[i])
			rest -= float64(s.subDuals[at] * float64(c.Count[i]))
		}
		made = append(made, c)
	}
	for _, k := range s.counted {
		if c, profit := s.fill(k); profit > 0 {
			put(c)
		}
		b.Take(s.knap.Steps())
	}
	if cost <= limit && !slices.ContainsFunc(s.sub, func(c Class) bool { return c.Count > 0 }) {
		best, bestCost = made, cost
	}
	for len(made) < 64 && bestCost > cost {
		all := s.rest()
		if k := s.m.holds(s.sub, all, float64(limit*(1+1e-12))-cost); k >= 0 && cost+s.m.BinTypes[k].Price < bestCost {
			bestCost = cost + s.m.BinTypes[k].Price
			best = append(slices.Clone(made), Column{k, all})
			limit = min(limit, bestCost)
		}
		b.Take(len(s.m.BinTypes) + len(s.sub)*s.m.Dims)
		if cost+rest > limit*(1+1e-9) {
			break
		}
		c, ok := s.next(b)
		if !ok || b.Left <= 0 {
			break
		}
		put(c)
		if rest <= 0 || cost >= limit {
			break
		}
	}
	for i := range best { // back to the indexes of the model
		for k, at := range best[i].Class {
			best[i].Class[k] = s.from[at]
		}
		best[i].Sort()
	}
	return best, bestCost
}

// rest returns the unplaced items of the small problem.
func (s *improver) rest() Pattern {
	var p Pattern
	for i := range s.sub {
		if s.sub[i].Count > 0 {
			p.Class, p.Count = append(p.Class, int32(i)), append(p.Count, int32(s.sub[i].Count))
		}
	}
	return p
}

// next fills a few bins, and returns the one with the highest dual value per price.
func (s *improver) next(b *Budget) (Column, bool) {
	best, most := Column{}, 0.0
	for range 6 {
		// Better bin types are more likely.
		u := s.rng.Unit()
		types := s.groups[s.group[s.from[s.rng.Below(len(s.from))]]].types // of those that hold a removed class
		if len(types) == 0 {
			continue
		}
		k := types[int(u*u*float64(len(types)))]
		if c, profit := s.fill(k); profit > most*s.m.BinTypes[k].Price*0.8 {
			c.BinType = s.m.smallest(s.sub, c)
			if ratio := profit / max(s.m.BinTypes[c.BinType].Price, 1e-9); ratio > most {
				best, most = c, ratio
			}
		}
		if !b.Take(s.knap.Steps()) {
			break
		}
	}
	return best, most > 0
}

// fill fills one bin of the type by a random method, and returns the dual value of its contents.
func (s *improver) fill(k int) (Column, float64) {
	if !s.knap.Load(s.m.BinTypes[k].Capacity, s.sub, func(i int) bool { return has(s.sub[i].BinTypes, k) }, s.subDuals) {
		return Column{}, 0
	}
	s.knap.Bound(math.Inf(1))
	var profit float64
	switch s.rng.Below(4) {
	case 0:
		profit, _ = s.knap.Search(0, 150)
	case 1:
		s.knap.Fill(2, 8)
		profit = s.knap.Improve(2, 60)
	default:
		profit = s.knap.Fill(2, 8)
	}
	return Column{k, s.knap.Found()}, profit
}

func (s *improver) replace(out []int, made []Column) {
	slices.Sort(out)
	for len(out) > 0 && len(made) > 0 {
		s.bins[out[0]], s.waste[out[0]] = made[0], s.loss(made[0])
		out, made = out[1:], made[1:]
	}
	for _, o := range slices.Backward(out) {
		last := len(s.bins) - 1
		s.bins[o], s.waste[o] = s.bins[last], s.waste[last]
		s.bins, s.waste = s.bins[:last], s.waste[:last]
	}
	for _, c := range made {
		s.bins, s.waste = append(s.bins, c), append(s.waste, s.loss(c))
	}
}
