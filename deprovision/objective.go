package deprovision

import (
	"cmp"
	"time"

	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Objective is what consolidation maximizes: what a change saves over the horizon, less the price of the disruption that it
// brings. A change that does not come out above zero is not made. What nodes cost is their CostPerHour: their price, or what the
// objective of provisioning makes of it, so that no node that was bought for that is given back for its price. The zero value has
// the defaults of its fields.
type Objective struct {
	// Horizon is for how long a saving counts, as nobody knows what comes later; 0 means a day. Of a node that expires sooner
	// it counts until then.
	Horizon time.Duration
	// DisruptionPrice is what one unit of disruption costs, see [Candidate.Disruption]: about one eviction. 0 means one cent,
	// and less than zero that disruption is free, so that any saving is taken, as Karpenter does.
	DisruptionPrice Price
	// Balanced, where it is not 0, asks that the share of its pool's cost that a change saves is at least 1/Balanced of the
	// share of its pool's disruption that it brings. That is a price of disruption too: the pool's cost over the horizon by
	// Balanced times the pool's disruption. Pools that choose the policy of that name are asked with 2, as by Karpenter.
	Balanced int
}

// defaultBalanced is the factor that Karpenter has for pools that ask to be balanced.
const defaultBalanced = 2

func (o Objective) defaults() Objective {
	o.Horizon = cmp.Or(o.Horizon, 24*time.Hour)
	o.DisruptionPrice = max(0, cmp.Or(o.DisruptionPrice, Dollars(0.01)))
	return o
}

// poolSum is what the nodes of a pool cost, and what emptying all of them would.
type poolSum struct {
	cost       Price
	disruption float64
}

// unitPrices is the price of one unit of disruption by pool.
func (p *planner) unitPrices() map[string]Price {
	sums := map[string]poolSum{}
	for _, m := range p.members() {
		s := sums[m.Pool]
		sums[m.Pool] = poolSum{s.cost + m.CostPerHour, s.disruption + m.Disruption}
	}
	out := map[string]Price{}
	for name, s := range sums {
		k := p.o.Objective.Balanced
		if pool := p.pools[name]; k == 0 && pool != nil && pool.Disruption.Policy == nodepool.Balanced {
			k = defaultBalanced
		}
		out[name] = p.o.Objective.DisruptionPrice
		if k > 0 && s.disruption > 0 {
			out[name] = max(out[name], s.cost.Times(p.o.Objective.Horizon.Hours()/(float64(k)*s.disruption)))
		}
	}
	return out
}

// worth is what a change comes to: what it saves an hour by cost, what that earns over the horizon, and what its disruption costs.
type worth struct{ saving, earned, disrupted Price }

func (w worth) net() Price { return w.earned - w.disrupted }

// weigh judges giving back the set for new nodes of a cost. Nodes and pods that the plan moves already disturb nothing again.
func (p *planner) weigh(set []*member, bought Price) worth {
	var w worth
	horizon := p.o.Objective.Horizon.Hours()
	total, lived := Price(0), Price(0)
	for _, m := range set {
		total += m.CostPerHour
		lived += m.CostPerHour.Times(min(horizon, m.RemainingLife.Hours()))
		w.disrupted += p.units[m.Pool].Times(m.owed)
	}
	w.saving = total - bought
	if total > 0 {
		w.earned = lived - bought.Times(lived.Dollars()/total.Dollars())
	}
	return w
}
