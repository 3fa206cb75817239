package inputs

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Planning is the flags that say how to plan, for programs that plan pods and for programs that buy
// what was planned. Register adds the flags. The zero value is not useful.
type Planning struct {
	objective   Objective
	strategy    string
	effort      string
	maxCPU      int64
	maxNodes    int64
	spread      plan.Spread
	savings     []string
	preferences string
	// preferencePrice and leaveZones are options of package scheduling.
	preferencePrice float64
	leaveZones      bool
}

// Register adds the flags, and offers their values to shells.
func (p *Planning) Register(cmd *cobra.Command) {
	f := cmd.Flags()
	p.objective.Register(f)
	f.StringVar(&p.strategy, "strategy", "cost", "how to pack: cost (least price, with proof) or ffd (first fit decreasing)")
	f.StringVar(&p.effort, "effort", "default", "how much work to spend on a low price and a close bound: fast, default or best")
	f.Int64Var(&p.maxCPU, "max-node-cpu", 0, "maximum vCPUs of a node; 0 means any number")
	f.Int64Var(&p.maxNodes, "max-nodes", 0, "maximum nodes of each pool, including existing ones; 0 means any number")
	f.Float64Var(&p.spread.Workload, "max-workload-in-spot-pool", 0, "maximum share of the pods of a workload on spot capacity of one type in one zone, such as 0.5, as long as all pods have a place; a note says where it is not kept; 0 means any")
	f.Float64Var(&p.spread.Plan, "max-plan-in-spot-pool", 0, "the same for all pods together")
	f.StringArrayVar(&p.savings, "savings-plan", nil, "'REQUIREMENTS: DOLLARS at PERCENT%': this many dollars an hour are paid already and cover matching on-demand nodes at a discount (repeatable)")
	f.StringVar(&p.preferences, "preferences", "respect", "soft constraints: respect (while they are worth their price) or ignore")
	f.Float64Var(&p.preferencePrice, "preference-price", -1, "what a soft constraint may cost, as a fraction of the price of its pod's share of a node; inf means any price, and -1 the usual 0.1")
	f.BoolVar(&p.leaveZones, "leave-zones", false, "allow plans that buy nothing in some zone; hard spreads then do not count that zone")
	Complete(cmd, "strategy", "cost", "ffd")
	Complete(cmd, "effort", "fast", "default", "best")
	Complete(cmd, "preferences", "respect", "ignore")
}

// Options returns the plan options for the flags. The error names a flag with an invalid value.
func (p *Planning) Options() (*plan.Options, error) {
	for _, f := range []struct {
		flag, value string
		allowed     []string
	}{
		{"strategy", p.strategy, []string{"cost", "ffd"}},
		{"effort", p.effort, []string{"fast", "default", "best"}},
		{"preferences", p.preferences, []string{"respect", "ignore"}},
	} {
		if err := OneOf(f.flag, f.value, f.allowed...); err != nil {
			return nil, err
		}
	}
	switch price := p.preferencePrice; {
	case price != -1 && !(price >= 0):
		return nil, Bad(fmt.Errorf("--preference-price %v: want 0 or more, inf, or -1 for the usual 0.1", price))
	case price != -1 && p.preferences == "ignore":
		return nil, Bad(errors.New("--preference-price is what preferences may cost: leave out --preferences ignore"))
	}
	objective, err := p.parseObjective()
	if err != nil {
		return nil, err
	}
	out := &plan.Options{
		Scheduling: &scheduling.Options{IgnorePreferences: p.preferences == "ignore", LeaveZones: p.leaveZones},
		Packing:    &binpack.Options{Effort: binpack.Effort(p.effort)},
		Objective:  objective,
	}
	if price := p.preferencePrice; price >= 0 {
		out.Scheduling.PreferencePrice = &price
	}
	if p.strategy == (binpack.FirstFitDecreasing{}).Name() {
		out.Packing.Strategy = binpack.FirstFitDecreasing{}
	}
	return out, nil
}

// parseObjective returns what the flags say beyond the price.
func (p *Planning) parseObjective() (*plan.Objective, error) {
	switch {
	case p.maxCPU < 0:
		return nil, Bad(fmt.Errorf("--max-node-cpu %d: want a number of vCPUs", p.maxCPU))
	case p.maxNodes < 0:
		return nil, Bad(fmt.Errorf("--max-nodes %d: want a number of nodes", p.maxNodes))
	}
	if part := p.spread.Workload; !(part >= 0 && part <= 1) {
		return nil, Bad(fmt.Errorf("--max-workload-in-spot-pool %v: want a part from 0 to 1", part))
	}
	if part := p.spread.Plan; !(part >= 0 && part <= 1) {
		return nil, Bad(fmt.Errorf("--max-plan-in-spot-pool %v: want a part from 0 to 1", part))
	}
	out, err := p.objective.Parse()
	if err != nil {
		return nil, err
	}
	out.Spread = p.spread
	for i, text := range p.savings {
		c, err := SavingsPlan(text)
		if err != nil {
			return nil, err
		}
		c.Name = fmt.Sprintf("savings plan %d", i+1)
		out.Prices = append(out.Prices, c)
	}
	out.MostCPU, out.MostNodes, out.Flags = p.maxCPU, p.maxNodes, true
	return out, nil
}
