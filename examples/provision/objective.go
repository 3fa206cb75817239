package main

import (
	"context"
	"fmt"
	"io"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// objective is what the flags say beyond the price.
func (o *options) objective() (*plan.Objective, error) {
	switch {
	case o.mostCPU < 0:
		return nil, inputs.Bad(fmt.Errorf("--max-node-cpu %d: want a number of vCPUs", o.mostCPU))
	case o.mostNodes < 0:
		return nil, inputs.Bad(fmt.Errorf("--max-nodes %d: want a number of nodes", o.mostNodes))
	}
	if part := o.spread.Workload; !(part >= 0 && part <= 1) {
		return nil, inputs.Bad(fmt.Errorf("--max-workload-in-spot-pool %v: want a part from 0 to 1", part))
	}
	if part := o.spread.Plan; !(part >= 0 && part <= 1) {
		return nil, inputs.Bad(fmt.Errorf("--max-plan-in-spot-pool %v: want a part from 0 to 1", part))
	}
	out, err := o.beyond.Parse()
	if err != nil {
		return nil, err
	}
	out.Spread = o.spread
	for i, text := range o.savings {
		c, err := inputs.SavingsPlan(text)
		if err != nil {
			return nil, err
		}
		c.Name = fmt.Sprintf("savings plan %d", i+1)
		out.Prices = append(out.Prices, c)
	}
	out.MostCPU, out.MostNodes = o.mostCPU, o.mostNodes
	return out, nil
}

func (o *options) scheduling() *scheduling.Options {
	out := &scheduling.Options{IgnorePreferences: o.preferences == "ignore", LeaveZones: o.leaveZones}
	if o.preferencePrice >= 0 {
		out.PreferencePrice = &o.preferencePrice
	}
	return out
}

// curvePoint is what the same pods cost on nodes of at most so many vCPUs.
type curvePoint struct {
	mostCPU       int64
	nodes, placed int
	price         float64
}

// addCurve plans the same pods again for nodes of several sizes at most, the largest last.
func (o *options) addCurve(ctx context.Context, r *report, s scheduling.Snapshot) error {
	given, err := o.objective()
	if err != nil {
		return err
	}
	beyond := *given
	largest := int64(0)
	for i := range s.Pools {
		for _, t := range s.Pools[i].Types {
			largest = max(largest, t.Capacity.Cpu().Value())
		}
	}
	if beyond.MostCPU > 0 {
		largest = min(largest, beyond.MostCPU)
	}
	packing := o.packing()
	for most := int64(2); ; most *= 2 {
		beyond.MostCPU = min(most, largest)
		p, err := scheduling.Compile(beyond.Narrow(s), beyond.Scheduling(o.scheduling()))
		if err != nil {
			return err
		}
		packed, err := plan.Solve(ctx, p, &plan.Options{Packing: packing, Objective: &beyond})
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
		t.Row(fmt.Sprintf("%d vCPU", p.mostCPU), terminal.Count(p.nodes), terminal.Dollars(p.price), against, terminal.Count(p.placed))
	}
	return t.Write(w)
}
