package binpack

import (
	"cmp"
	"math"
	"slices"
)

// uniform returns the layout, or a better one that fills bins of one type first fit and then changes each to its cheapest choice. So no
// plan is dearer than a fleet of one type, which is what people compare with. A type is tried if so many bins as hold the contents of all
// bins cost less than the layout, and while the budget lasts. With several weights, or if the layout leaves copies unplaced, nothing is
// tried.
func (p *planner) uniform(best Layout) Layout {
	in := p.in
	if len(in.tiers) != 1 || slices.ContainsFunc(in.unplaced(best), func(n int) bool { return n > 0 }) {
		return best
	}
	demand := make([]float64, in.dims)
	for _, b := range best.Bins {
		for _, s := range b.Shares {
			for r, size := range in.problem.Items[s.Item].Size {
				demand[r] += float64(float64(size) * float64(s.Count))
			}
		}
	}
	type fleet struct {
		typ  int32
		cost float64
	}
	var fleets []fleet
	for _, t := range in.tiers[0] {
		bins := 0.0
		for r, c := range in.capacityOf(t) {
			if demand[r] > 0 {
				bins = max(bins, math.Ceil(demand[r]/float64(max(c, 0))))
			}
		}
		fleets = append(fleets, fleet{t, float64(in.minPrice[t]) * bins})
	}
	slices.SortStableFunc(fleets, func(a, b fleet) int { return cmp.Compare(a.cost, b.cost) })
	part := p.budget.Split(p.total / uniformPart)
	defer p.budget.Return(part)
	perItem := uniformSteps * len(in.problem.Items)
	for _, x := range fleets {
		if x.cost >= float64(in.objectiveOf(best)) || part.Left < perItem {
			break
		}
		f := newFiller(in, p.stop)
		f.packInto(in.decreasing(in.capacityOf(x.typ)), [][]int32{{x.typ}}, nil)
		if f.wanted() == 0 {
			if l := f.finish(); in.better(l, best) {
				best = l
			}
		}
		part.Take(uniformSteps * f.Work)
	}
	return best
}
