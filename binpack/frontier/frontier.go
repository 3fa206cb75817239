// Package frontier trades the cost of a plan against a count: of its bins, or of those in one
// capacity type.
package frontier

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/binpack"
)

// Point is a layout that no other layout of the frontier beats in both cost and count. Objective is
// the sum of [binpack.Offering].Objective over its bins.
type Point struct {
	binpack.Layout
	Objective binpack.Price
	// Count is the sum of counts over its bins.
	Count int64
}

// points is how many layouts are tried. For the last one, a bin costs a thousand times a sixteenth
// of its price more.
const points = 11

// Of returns layouts that trade cost against a count, cheapest first. All leave the same copies
// unplaced as the first one, and each dearer one has a lower count. counts returns the count of a
// bin bought by a choice, which must not be negative; nil counts bins. With 1 for spot offerings
// and 0 for others, it shows cost against the use of spot. The error names a negative count, or is
// that of [binpack.Compile].
//
// For each point, a bin costs an extra price for each unit of its count, and this problem is packed
// at effort fast. The extra price doubles from point to point (weighted sums of multi-objective
// optimization). Points inside the convex hull are not found. It costs up to 11 plans. When ctx
// ends, Of returns the points so far.
func Of(ctx context.Context, p binpack.Problem, counts func(binpack.Choice) int64) ([]Point, error) {
	if counts == nil {
		counts = func(binpack.Choice) int64 { return 1 }
	}
	for t := range p.Types {
		for j := range p.Types[t].Offerings {
			if n := counts(binpack.Choice{Type: t, Offering: j}); n < 0 {
				return nil, fmt.Errorf("frontier: the count of offering %d of type %s is %d, must not be negative", j, p.Types[t].Name, n)
			}
		}
	}
	var out []Point
	var missing []int
	for step, extra := 0, binpack.Price(0); step < points && (step == 0 || ctx.Err() == nil); step++ {
		plan, err := binpack.Pack(ctx, dearer(p, counts, extra), &binpack.Options{Effort: binpack.EffortFast, Draft: true})
		if err != nil {
			return nil, err
		}
		if plan.Strategy == "" { // there was no time to read it
			break
		}
		x := Point{Layout: plan.Layout}
		for _, b := range plan.Bins {
			x.Objective += min(objective(&p.Types[b.Type].Offerings[b.Offering]), math.MaxInt64-x.Objective) // without overflow
			x.Count += counts(binpack.Choice{Type: b.Type, Offering: b.Offering})
		}
		if missing == nil {
			missing = plan.Unplaced
		}
		if slices.Equal(missing, plan.Unplaced) {
			out = append(out, x)
		}
		if extra *= 2; extra == 0 {
			extra = max(x.Objective/binpack.Price(16*max(len(x.Bins), 1)), 1) // a sixteenth of the mean price of a bin
		}
	}
	slices.SortStableFunc(out, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Objective, b.Objective), cmp.Compare(a.Count, b.Count))
	})
	kept := out[:0]
	for _, x := range out {
		if len(kept) == 0 || x.Count < kept[len(kept)-1].Count {
			kept = append(kept, x)
		}
	}
	return kept, nil
}

// dearer returns the problem with the extra cost added for each count.
func dearer(p binpack.Problem, counts func(binpack.Choice) int64, extra binpack.Price) binpack.Problem {
	p.Types = slices.Clone(p.Types)
	for t := range p.Types {
		offers := slices.Clone(p.Types[t].Offerings)
		for j := range offers {
			if n := counts(binpack.Choice{Type: t, Offering: j}); n > 0 && extra > 0 {
				offers[j].Objective = binpack.Price(min(float64(objective(&offers[j]))+float64(float64(n)*float64(extra)), math.MaxInt64/4))
			}
		}
		p.Types[t].Offerings = offers
	}
	return p
}

func objective(o *binpack.Offering) binpack.Price { return cmp.Or(o.Objective, o.Price) }
