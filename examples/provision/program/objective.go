package program

import (
	"context"
	"fmt"
	"io"

	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// curvePoint is what the same pods cost on nodes with a limited number of vCPUs.
type curvePoint struct {
	maxCPU        int64
	nodes, placed int
	price         float64
}

// addCurve plans the same pods again for nodes of several sizes at most, the largest last.
func (o *options) addCurve(ctx context.Context, r *report, s scheduling.Snapshot) error {
	how, err := o.planning.Options()
	if err != nil {
		return err
	}
	beyond := how.Objective
	largest := int64(0)
	for i := range s.Pools {
		for _, t := range s.Pools[i].Types {
			largest = max(largest, t.Capacity.Cpu().Value())
		}
	}
	if beyond.MostCPU > 0 {
		largest = min(largest, beyond.MostCPU)
	}
	for most := int64(2); ; most *= 2 {
		beyond.MostCPU = min(most, largest)
		p, err := scheduling.Compile(beyond.Narrow(s), beyond.Scheduling(how.Scheduling))
		if err != nil {
			return err
		}
		packed, err := plan.Solve(ctx, p, how)
		if err != nil {
			return err
		}
		r.curve = append(r.curve, curvePoint{beyond.MostCPU, len(packed.NewNodes()), len(packed.Bindings()), packed.Cost().Dollars()})
		if most >= largest {
			return nil
		}
	}
}

// writeCurve prints cost against node size. Rows that say what the row before says are left out.
func (r *report) writeCurve(w io.Writer, style terminal.Style) error {
	if r.Summary.NewNodes == 0 || len(r.curve) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := terminal.NewTable(style, ">NODES OF AT MOST", ">NEW NODES", ">PRICE/H", ">AGAINST THE PLAN", ">PODS PLACED")
	for i, p := range r.curve {
		if i > 0 && p.nodes == r.curve[i-1].nodes && p.price == r.curve[i-1].price && p.placed == r.curve[i-1].placed {
			continue
		}
		against := "-"
		if p.placed == r.Summary.Scheduled && r.Summary.PricePerHour > 0 {
			against = fmt.Sprintf("%+.1f%%", 100*(p.price/r.Summary.PricePerHour-1))
		}
		t.Row(fmt.Sprintf("%d vCPU", p.maxCPU), terminal.Count(p.nodes), terminal.Dollars(p.price), against, terminal.Count(p.placed))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if p, ok := r.cheaperSize(); ok {
		fmt.Fprintln(w, style.Warn(fmt.Sprintf("--max-node-cpu %d finds a plan that is %s/h cheaper", p.maxCPU, terminal.Dollars(r.Summary.PricePerHour-p.price))))
	}
	return nil
}

// cheaperSize is the size whose plan places as many pods for the least money, if that is less than
// the plan costs.
func (r *report) cheaperSize() (curvePoint, bool) {
	best, found := curvePoint{price: r.Summary.PricePerHour}, false
	for _, p := range r.curve {
		if p.placed >= r.Summary.Scheduled && p.price < best.price {
			best, found = p, true
		}
	}
	return best, found
}
