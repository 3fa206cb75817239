// Package policy has objectives and rankers other than the defaults of packages deprovision and
// plan.
package policy

import (
	"math"
	"time"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/plan"
)

// AnySaving returns the objective that accepts any saving, as Karpenter does. As there, pools with
// the policy Balanced are an exception: they compare a change with the pool, see [Balanced].
func AnySaving() plan.Objective { return plan.Objective{DisruptionPrice: -1} }

// Balanced returns the objective that compares a change with its pool: the share of the pool's cost
// (CostPerHour, the cost in the objective) that the change saves, with the share of the pool's
// disruption that it causes. The change must satisfy
//
//	(savings / pool cost) / (disruption / pool disruption) > 1 / k
//
// This holds for nodes that live at least as long as the horizon; a node that expires earlier must
// save more. Karpenter allows 1, 2 and 3; its default is 2.
func Balanced(k int) plan.Objective {
	return plan.Objective{DisruptionPrice: -1, Balanced: k}
}

// Payback returns the objective that requires a change to save more than its disruption costs,
// within the horizon and the remaining life of the nodes:
//
//	savings per hour x hours > disruption x price
//
// The price is for one unit of disruption, about one eviction. A price of 0 means one cent, and a
// horizon of 0 the default of [plan.Objective]. To make disruption free, give a negative price.
func Payback(price deprovision.Price, horizon time.Duration) plan.Objective {
	return plan.Objective{DisruptionPrice: price, Horizon: horizon}
}

// Lifetime ranks by cost per unit of disruption, with the disruption of the pods multiplied by the
// remaining share of the node's life. Karpenter multiplied in this way before v1.14, when it ranked
// by disruption alone.
type Lifetime struct{}

// Rank returns cost / (1 + (disruption - 1) x lifetime).
func (Lifetime) Rank(c deprovision.Candidate) float64 {
	return c.CostPerHour.Dollars() / (1 + math.Max(0, c.Disruption-1)*c.Lifetime)
}
