package plan

import (
	"cmp"
	"context"
	"slices"

	"github.com/joinery-sdk/joinery/binpack"
)

// exhaustedSteps limits how many places one packing tries in one order. searchSteps limits the
// places of all packings of a search. A step takes a few microseconds on a small instance.
const (
	exhaustedSteps = 4_000
	searchSteps    = 40_000
)

// exhaustive packs a round of few pods by trying all places, pod by pod, until all of them have
// one. If they have none, or if there are too many places to try, it packs as CostAware does. It
// exists because first fit may fill a machine in such a way that a limit keeps the last pod out,
// although another distribution holds all pods.
type exhaustive struct {
	binpack.CostAware
	budget *searchBudget
}

// searchBudget is shared by all packings of a search.
type searchBudget struct {
	steps int  // that remain
	cut   bool // some packing ended before it had tried all places, and had found none for all pods
}

// Pack tries only the items of the highest priorities if no places exist for all items together.
func (s exhaustive) Pack(ctx context.Context, in *binpack.Instance) (binpack.Layout, error) {
	items := in.Problem().Items
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	bySize := func(x, y int) int { return cmp.Or(slices.Compare(items[y].Size, items[x].Size), cmp.Compare(x, y)) }
	slices.SortFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(items[y].Priority, items[x].Priority), bySize(x, y))
	})
	var units []int
	for _, i := range order {
		for range items[i].Count {
			units = append(units, i)
		}
	}
	for n := len(units); n > 0; {
		// All of these items have to be placed, so any order is valid. The first try has the large
		// ones first. The second has the order of priority, which needs few steps where the first
		// needs many.
		for _, some := range [][]int{slices.SortedFunc(slices.Values(units[:n]), bySize), units[:n]} {
			steps := min(exhaustedSteps, s.budget.steps)
			d := descentOfPods{ctx: ctx, in: in, units: some, steps: steps}
			d.put(in.NewFilling(), 0, 0)
			s.budget.steps -= steps - max(0, d.steps)
			s.budget.cut = s.budget.cut || d.found == nil && d.steps < 0
			if d.found != nil {
				for _, i := range units[n:] {
					d.putOne(d.found, i)
				}
				return d.found.Layout(), nil
			}
		}
		least := items[units[n-1]].Priority
		for n > 0 && items[units[n-1]].Priority == least {
			n--
		}
	}
	return s.CostAware.Pack(ctx, in)
}

// descentOfPods is a depth-first search for a packing of all units.
type descentOfPods struct {
	ctx   context.Context
	in    *binpack.Instance
	units []int // items, with equal ones next to each other
	steps int   // steps left
	found *binpack.Filling
}

// put places the units from a position on. A unit that equals the one before is never put on an
// earlier place, because swapping the two would give the same packing.
func (d *descentOfPods) put(f *binpack.Filling, unit, from int) {
	if unit == len(d.units) {
		d.found = f
		return
	}
	item := d.units[unit]
	if unit > 0 && d.units[unit-1] != item {
		from = 0
	}
	nodes := len(d.in.Problem().Nodes)
	for at := from; at < nodes+f.Bins(); at++ {
		if !d.step() {
			return
		}
		g := f.Copy()
		if at < nodes && g.AddToNode(at, item, 1) == 1 || at >= nodes && g.Add(at-nodes, item, 1) == 1 {
			d.put(g, unit+1, at)
		}
	}
	for c := range d.choices() {
		if !d.step() {
			return
		}
		g := f.Copy()
		if held, err := g.Open(c, item, 1); err == nil && held == 1 {
			d.put(g, unit+1, nodes+f.Bins())
		}
	}
}

// step reports whether another place may be tried.
func (d *descentOfPods) step() bool {
	d.steps--
	return d.found == nil && d.steps >= 0 && d.ctx.Err() == nil
}

// choices yields all ways to buy a bin.
func (d *descentOfPods) choices() func(func(binpack.Choice) bool) {
	return func(yield func(binpack.Choice) bool) {
		for t := range d.in.Problem().Types {
			for o := range d.in.Problem().Types[t].Offerings {
				if !yield(binpack.Choice{Type: t, Offering: o}) {
					return
				}
			}
		}
	}
}

// putOne puts a unit into the first place that fits.
func (d *descentOfPods) putOne(f *binpack.Filling, item int) {
	for n := range d.in.Problem().Nodes {
		if f.AddToNode(n, item, 1) == 1 {
			return
		}
	}
	for b := range f.Bins() {
		if f.Add(b, item, 1) == 1 {
			return
		}
	}
	for c := range d.choices() {
		if held, err := f.Open(c, item, 1); err == nil && held == 1 {
			return
		}
	}
}

// isOwn reports whether a strategy looks for low prices.
func isOwn(s binpack.Strategy) bool {
	switch s.(type) {
	case binpack.CostAware, exhaustive:
		return true
	}
	return false
}
