package relax

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// captives are the classes that can only go to the bin types of a set, such as pods that need a
// GPU. Duals pay for fractions of bins, but captives need whole ones. The slack of a bin type is
// its price less the highest dual value of a filling. All bins of the set together have at least
// the slack of the fewest bins that hold the captives, so the bound rises by that.
type captives struct {
	set     []uint64 // bitset over the bin types
	types   []int    // the same as a list
	classes []int
	slack   float64 // the least slack of bins that hold them
}

// captives returns the captives of each set of bin types that some class may go to, the smallest
// sets first.
func (m *Model) captives() []captives {
	sets, group := m.demandSets()
	size := func(set []uint64) (n int) {
		for _, w := range set {
			n += bits.OnesCount64(w)
		}
		return n
	}
	out := make([]captives, len(sets))
	for g, set := range sets {
		out[g].set = set
	}
	slices.SortStableFunc(out, func(a, b captives) int { return cmp.Compare(size(a.set), size(b.set)) })
	out = out[:min(len(out), mostCaptives)]
	within := make([]bool, len(sets))
	for at := range out {
		c := &out[at]
		for k := range m.BinTypes {
			if has(c.set, k) {
				c.types = append(c.types, k)
			}
		}
		for g, set := range sets {
			within[g] = true
			for w, x := range set {
				within[g] = within[g] && x&^c.set[w] == 0
			}
		}
		for i, g := range group {
			if within[g] && m.Classes[i].Count > 0 {
				c.classes = append(c.classes, i)
			}
		}
	}
	return out
}

// addApart adds captives to a list whose sets are disjoint. It replaces those whose sets overlap
// the new one, if the new slack exceeds theirs by more than the loss.
func addApart(apart []captives, c captives, loss float64) (out []captives, added bool) {
	for _, x := range apart {
		overlaps := false
		for w, set := range x.set {
			overlaps = overlaps || set&c.set[w] != 0
		}
		if overlaps {
			loss += x.slack
		} else {
			out = append(out, x)
		}
	}
	if c.slack <= loss {
		return apart, false
	}
	return append(out, c), true
}

// leastSlack sets the slack of the captives and returns the steps. For each dimension it solves a
// covering knapsack over the slacks of the bin types; the highest result counts. Counted bins cost
// nothing. The slack is infinite if the set is empty.
func (m *Model) leastSlack(c *captives, slack []float64) (steps int) {
	c.slack = 0
	if len(c.classes) > 0 && len(c.types) == 0 {
		c.slack = math.Inf(1)
	}
	var cost []float64
	for r := range m.Dims {
		demand := 0.0
		for _, i := range c.classes {
			demand += float64(float64(m.Classes[i].Size[r]) * float64(m.Classes[i].Count))
		}
		demand *= 1 - Slack
		for _, k := range c.types {
			if typ := &m.BinTypes[k]; typ.Supply >= 0 {
				demand -= float64(float64(max(typ.Capacity[r], 0)) * float64(m.Supply[typ.Supply]/typ.takes()))
			}
		}
		if demand <= 0 {
			continue
		}
		var covers []cover
		for _, k := range c.types {
			if typ := &m.BinTypes[k]; typ.Supply < 0 && typ.Capacity[r] > 0 {
				covers = append(covers, cover{cellsOf(float64(typ.Capacity[r]), cells/demand), max(slack[k], 0)})
			}
		}
		var used int
		cost, used = covering(cost, covers)
		steps += cells * used / 4
		c.slack = max(c.slack, math.Floor(min(cost[cells], Largest)))
	}
	return steps
}

// wholeBins returns the slack of whole bins that hold captives. slack holds a lower bound for each
// bin type. The result is math.MaxInt64 if some class can go nowhere.
func (m *Model) wholeBins(duals, slack []float64, by examination) (int64, error) {
	var knap Knapsack
	var apart []captives
	for _, c := range m.captives() {
		if by.Ended(knap.Steps() / knapsackSteps) {
			return 0, errStopped
		}
		if !slices.ContainsFunc(c.types, func(k int) bool { return m.BinTypes[k].Supply < 0 && slack[k] <= m.BinTypes[k].Price*rounded }) {
			m.slacks(&knap, c.types, duals, slack, by.Watch)
			by.Ended(m.leastSlack(&c, slack) / knapsackSteps)
			apart, _ = addApart(apart, c, 0)
		}
	}
	sum := int64(0)
	for _, c := range apart {
		if math.IsInf(c.slack, 1) {
			return math.MaxInt64, nil
		}
		sum += int64(c.slack)
	}
	return sum, nil
}

// slacks sets the slack of some uncounted bin types, until the watch ends. It returns the steps.
func (m *Model) slacks(knap *Knapsack, types []int, duals, slack []float64, w *Watch) (steps int) {
	for _, k := range types {
		n := knap.Steps()
		if steps += n; w.Ended(n / knapsackSteps) {
			break
		}
		if slack[k] = m.BinTypes[k].Price; m.BinTypes[k].Supply < 0 && m.Load(knap, k, duals) {
			slack[k] -= math.Ceil(knap.Sharpest(0))
		}
	}
	return steps + knap.Steps()
}

// forWholeBins returns duals that prove more with whole bins, or nil if there are none. Captives
// are priced between their opportunity costs and the given duals, which leaves bins some slack. Two
// kinds of sets are left out: those that need too much of the budget, and those whose captives are
// all classes, because then nothing else fills the free capacity.
func (m *Model) forWholeBins(duals []float64, b *Budget) []float64 {
	part := b.Split(b.Left / wholePart)
	defer b.Return(part)
	var knap Knapsack
	var apart []captives
	w := NewWatch(b.Stop, 0)
	slack, all := make([]float64, len(m.BinTypes)), 0
	for i := range m.Classes {
		all += int(min(m.Classes[i].Count, 1))
	}
	for _, c := range m.captives() {
		if part.Stopped() {
			return nil
		}
		if len(c.classes) == all || len(c.types)*len(m.Classes)*m.Dims*wholeSteps > part.Left {
			continue
		}
		costs, ok := m.opportunityCosts(&knap, &c, duals)
		best, most, slackOfBest := duals, 0.0, 0.0
		for n := 0; ok && n < wholeTries; n++ {
			try, loss := slices.Clone(duals), 0.0
			for at, i := range c.classes {
				try[i] = costs[at] + float64((duals[i]-costs[at])*float64(n)/wholeTries)
				loss += float64((duals[i] - try[i]) * float64(m.Classes[i].Count))
			}
			part.Take(m.slacks(&knap, c.types, try, slack, w))
			part.Take(m.leastSlack(&c, slack))
			if gain := c.slack - loss; gain > most {
				best, most, slackOfBest = try, gain, c.slack
			}
		}
		part.Take(knap.Steps())
		c.slack = slackOfBest
		if more, added := addApart(apart, c, slackOfBest-most); added {
			apart, duals = more, best
		}
	}
	if len(apart) == 0 {
		return nil
	}
	return duals
}

// opportunityCosts returns, for each class of the captives, the lowest dual value that an item
// takes from other classes in a bin. ok is false if other classes alone fill some bin to its price.
func (m *Model) opportunityCosts(knap *Knapsack, c *captives, duals []float64) (costs []float64, ok bool) {
	others := slices.Clone(duals)
	costs = make([]float64, len(c.classes))
	for at, i := range c.classes {
		others[i], costs[at] = 0, math.Inf(1)
	}
	for _, k := range c.types {
		typ := &m.BinTypes[k]
		if typ.Supply >= 0 {
			continue
		}
		loaded := m.Load(knap, k, others)
		if loaded && knap.Sharpest(0) >= typ.Price*(1-rounded) {
			return nil, false
		}
		for at, i := range c.classes {
			if !m.Classes[i].fits(typ, k) {
				continue
			}
			cost := 0.0
			if loaded {
				for d, r := range knap.dims {
					cost += float64(knap.weight[d] / float64(typ.Capacity[r]) * float64(m.Classes[i].Size[r]))
				}
			}
			costs[at] = min(costs[at], cost)
		}
	}
	for at, i := range c.classes {
		if math.IsInf(costs[at], 1) { // only counted bin types hold it
			costs[at] = duals[i]
		}
	}
	return costs, true
}

// cover is how many cells of a demand one bin covers, and its price.
type cover struct {
	cells int
	price float64
}

// cellsOf returns the cells that a capacity covers, rounded up.
func cellsOf(capacity, perUnit float64) int {
	return int(math.Ceil(min(capacity*perUnit*(1+Slack), cells)))
}

// covering returns the lowest price of bins that cover each number of cells, and how many of the
// covers matter. The prices are written into the given slice, which is nil or an earlier result.
func covering(cost []float64, covers []cover) (prices []float64, used int) {
	slices.SortFunc(covers, func(a, b cover) int { return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(b.cells, a.cells)) })
	most := 0
	covers = slices.DeleteFunc(covers, func(o cover) bool { // those that cover no more than a cheaper one
		no := o.cells <= most
		most = max(most, o.cells)
		return no
	})
	if cost == nil {
		cost = make([]float64, cells+1)
	}
	for q := 1; q <= cells; q++ {
		cost[q] = math.Inf(1)
		for _, o := range covers {
			cost[q] = min(cost[q], o.price+cost[max(0, q-o.cells)])
		}
	}
	return cost, len(covers)
}
