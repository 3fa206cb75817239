package plan

import (
	"cmp"
	"context"
	"slices"

	"github.com/joinery-sdk/joinery/deprovision"
)

// Point is a trade-off: what a plan, or its first commands, would save, and how many evictions that
// takes.
type Point struct {
	SavingsPerHour deprovision.Price
	// Evictions is how many pods move, and Nodes is how many nodes go.
	Evictions, Nodes int
	// To reach the point, make a plan with this [Options.MaxEvictions] and carry out only its first
	// Commands commands.
	MaxEvictions, Commands int
}

// Frontier says what plans with fewer evictions would save. It helps you to choose
// [Options.MaxEvictions]. It makes one plan with the limit of the options, and one with each of the
// given limits. It skips limits below 1, limits that are not below the limit of the options, and
// limits that are not below the evictions of the first plan. It returns the points that these plans
// and their first commands reach, in ascending order of evictions. Every point saves something, and
// a point with more evictions saves more. A point that saves no more than another one with as many
// or fewer evictions is left out.
//
// Every point can be reached, see its MaxEvictions and Commands. Use the point's MaxEvictions as
// the limit, not its Evictions: a plan that is limited to exactly these evictions is searched in a
// different way and may save less. The error is that of [Make], and the cost is that of all the
// plans.
func Frontier(ctx context.Context, c deprovision.Cluster, sim Simulator, opts *Options, evictions ...int) ([]Point, error) {
	var own Options // Make fills in the defaults, and a price of 0 is one
	if opts != nil {
		own = *opts
	}
	whole, err := Make(ctx, c, sim, opts)
	if err != nil {
		return nil, err
	}
	list := beginnings(nil, &whole, own.MaxEvictions)
	for _, n := range evictions {
		o := own
		if n < 1 || o.MaxEvictions > 0 && n >= o.MaxEvictions || n >= whole.Evictions {
			continue
		}
		o.MaxEvictions = n
		r, err := Make(ctx, c, sim, &o)
		if err != nil {
			return nil, err
		}
		list = beginnings(list, &r, n)
	}
	slices.SortFunc(list, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Evictions, b.Evictions), cmp.Compare(b.SavingsPerHour, a.SavingsPerHour), cmp.Compare(a.Nodes, b.Nodes), cmp.Compare(a.MaxEvictions, b.MaxEvictions), cmp.Compare(a.Commands, b.Commands))
	})
	var out []Point
	most := deprovision.Price(0)
	for _, x := range list {
		if x.SavingsPerHour > most {
			out, most = append(out, x), x.SavingsPerHour
		}
	}
	return out, nil
}

// beginnings appends one point for each number of first commands of the plan with the given limit.
func beginnings(list []Point, r *Result, bound int) []Point {
	var x Point
	for i := range r.Commands {
		c := &r.Commands[i]
		x = Point{x.SavingsPerHour + c.SavingsPerHour, x.Evictions + len(c.Placements), x.Nodes + len(c.Nodes), bound, i + 1}
		list = append(list, x)
	}
	return list
}
