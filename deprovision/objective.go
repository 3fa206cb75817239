package deprovision

import (
	"cmp"
	"time"

	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Objective is what consolidation maximizes: the saving of a change over the horizon less the price of its disruption. A change is
// made only if that is positive. Savings are counted in CostPerHour, the cost in the objective of provisioning, so that a node which
// was bought for that objective is not given back for its price. The zero value has the defaults of its fields.
type Objective struct {
	// Horizon is how long a saving counts, until the node expires at most; 0 means a day.
	Horizon time.Duration
	// DisruptionPrice is the price of one unit of disruption, about one eviction, see [Candidate.Disruption]. 0 means one cent. A
	// negative price means that disruption is free, so that any saving is taken, as by Karpenter.
	DisruptionPrice Price
	// Balanced, if it is not 0, asks that a change saves a share of its pool's cost of at least 1/Balanced of the share of the pool's
	// disruption that it causes. That is a price of disruption, too: the pool's cost over the horizon, divided by Balanced times the
	// pool's disruption. Pools with the policy of that name have 2, as in Karpenter.
	Balanced int
}

// defaultBalanced is the factor of Karpenter for pools with the policy Balanced.
const defaultBalanced = 2

func (o Objective) defaults() Objective {
	o.Horizon = cmp.Or(o.Horizon, 24*time.Hour)
	o.DisruptionPrice = max(0, cmp.Or(o.DisruptionPrice, Dollars(0.01)))
	return o
}

// poolSum is the cost of the nodes of a pool and the disruption of emptying all of them.
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

// balance is the saving of a change an hour, the same over the horizon, and the price of its disruption.
type balance struct{ saving, earned, disrupted Price }

func (w balance) net() Price { return w.earned - w.disrupted }

// weigh is the balance of giving back the set for new nodes of a cost. Pods that the plan moves already disrupt only once.
func (p *planner) weigh(set []*member, bought Price) balance {
	var w balance
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
