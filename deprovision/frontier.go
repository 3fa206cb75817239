package deprovision

import (
	"cmp"
	"context"
	"slices"
)

// Point is what a plan, or its first commands, save for how many evictions.
type Point struct {
	SavingsPerHour Price
	// Evictions is how many pods move, and Nodes how many nodes go.
	Evictions, Nodes int
	// The point is attained by a plan with this [Options.MaxEvictions] of which only so many first commands are carried out.
	MaxEvictions, Commands int
}

// Frontier says what fewer evictions would save, so that [Options.MaxEvictions] can be chosen. It makes a plan for each number of
// evictions and one with the bound of the options, and returns what they and their first commands come to, in ascending order of
// evictions. Every point can be attained, see its MaxEvictions and Commands. A plan that has the evictions of the point as its bound may
// save less than the first commands of a larger plan, because it is another search. No point takes as many evictions as another one and
// saves no more, and each saves something. The error is that of [Plan], and the cost that of as many plans.
func Frontier(ctx context.Context, c Cluster, sim Simulator, opts *Options, evictions ...int) ([]Point, error) {
	defaults := opts.defaults()
	whole, err := Plan(ctx, c, sim, opts)
	if err != nil {
		return nil, err
	}
	list := beginnings(nil, &whole, defaults.MaxEvictions)
	for _, n := range evictions {
		o := defaults
		if n < 1 || o.MaxEvictions > 0 && n >= o.MaxEvictions || n >= whole.Evictions {
			continue
		}
		o.MaxEvictions = n
		r, err := Plan(ctx, c, sim, &o)
		if err != nil {
			return nil, err
		}
		list = beginnings(list, &r, n)
	}
	slices.SortFunc(list, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Evictions, b.Evictions), cmp.Compare(b.SavingsPerHour, a.SavingsPerHour), cmp.Compare(a.Nodes, b.Nodes), cmp.Compare(a.MaxEvictions, b.MaxEvictions), cmp.Compare(a.Commands, b.Commands))
	})
	var out []Point
	most := Price(0)
	for _, x := range list {
		if x.SavingsPerHour > most {
			out, most = append(out, x), x.SavingsPerHour
		}
	}
	return out, nil
}

// beginnings appends what the first commands of the plan with the bound come to, for each number of commands.
func beginnings(list []Point, r *Result, bound int) []Point {
	var x Point
	for i := range r.Commands {
		c := &r.Commands[i]
		x = Point{x.SavingsPerHour + c.SavingsPerHour, x.Evictions + len(c.Placements), x.Nodes + len(c.Nodes), bound, i + 1}
		list = append(list, x)
	}
	return list
}
