package deprovision

import (
	"cmp"
	"math"
	"time"

	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Objective is what consolidation maximizes: what a change saves over the horizon, less the price of the disruption that it
// brings. A change that does not come out above zero is not made. The zero value has the defaults of its fields.
type Objective struct {
	// Horizon is for how long a saving counts, as nobody knows what comes later; 0 means a day. Of a node that expires sooner
	// it counts until then.
	Horizon time.Duration
	// DisruptionPrice is what one unit of disruption costs, in dollars, see [Candidate.Disruption]: about one eviction. 0
	// means one cent, and less than zero that disruption is free, so that any saving is taken, as Karpenter does.
	DisruptionPrice float64
	// Balanced, where it is not 0, asks that the share of its pool's price that a change saves is at least 1/Balanced of the
	// share of its pool's disruption that it brings. That is a price of disruption too: the pool's price over the horizon by
	// Balanced times the pool's disruption. Pools that choose the policy of that name are asked with 2, as by Karpenter.
	Balanced int
}

// defaultBalanced is the factor that Karpenter has for pools that ask to be balanced.
const defaultBalanced = 2

func (o Objective) defaults() Objective {
	o.Horizon = cmp.Or(o.Horizon, 24*time.Hour)
	o.DisruptionPrice = max(0, cmp.Or(o.DisruptionPrice, 0.01))
	return o
}

// poolSum is what the nodes of a pool cost, and what emptying all of them would.
type poolSum struct{ price, disruption float64 }

// unitPrices is the price of one unit of disruption by pool.
func (p *planner) unitPrices() map[string]float64 {
	sums := map[string]poolSum{}
	for _, m := range p.members() {
		s := sums[m.Pool]
		sums[m.Pool] = poolSum{s.price + m.PricePerHour, s.disruption + m.Disruption}
	}
	out := map[string]float64{}
	for name, s := range sums {
		k := p.o.Objective.Balanced
		if pool := p.pools[name]; k == 0 && pool != nil && pool.Disruption.Policy == nodepool.Balanced {
			k = defaultBalanced
		}
		out[name] = p.o.Objective.DisruptionPrice
		if k > 0 && s.disruption > 0 {
			out[name] = max(out[name], s.price*p.o.Objective.Horizon.Hours()/(float64(k)*s.disruption))
		}
	}
	return out
}

// worth is what a change comes to: what it saves an hour, what that earns over the horizon, and what its disruption costs.
type worth struct{ saving, earned, cost float64 }

func (w worth) net() float64 { return w.earned - w.cost }

// weigh judges giving back the set for the answer. Nodes and pods that the plan moves already cost nothing again.
func (p *planner) weigh(set []*member, a *Answer, units map[string]float64) worth {
	var w worth
	horizon := p.o.Objective.Horizon.Hours()
	price, lived := 0.0, 0.0
	for _, m := range set {
		price += m.PricePerHour
		lived += m.PricePerHour * math.Min(horizon, m.RemainingLife.Hours())
		w.cost += m.owed * units[m.Pool]
	}
	w.saving = price - a.PricePerHour
	if price > 0 {
		w.earned = w.saving * lived / price
	}
	return w
}
