// Package policy has settings of what a consolidation is worth, and rankers, beside the defaults of package deprovision.
package policy

import (
	"math"
	"time"

	"github.com/joinery-sdk/joinery/deprovision"
)

// AnySaving takes whatever saves money, as Karpenter does for pools that do not ask to be balanced.
func AnySaving() deprovision.Objective { return deprovision.Objective{DisruptionPrice: -1} }

// Balanced asks that a change saves a share of what its pools cost that is at least 1/k of the share of their disruption that
// it brings:
//
//	(savings / pool price) / (disruption / pool disruption) >= 1 / k
//
// Karpenter takes 1, 2 or 3, and 2 where nothing is said.
func Balanced(k int) deprovision.Objective {
	return deprovision.Objective{DisruptionPrice: -1, Balanced: k}
}

// Payback asks that a change earns more than its disruption costs, within the horizon and before the nodes would go anyway:
//
//	savings an hour x hours >= disruption x price
//
// The price is for one unit of disruption, about one eviction.
func Payback(price deprovision.Price, horizon time.Duration) deprovision.Objective {
	return deprovision.Objective{DisruptionPrice: price, Horizon: horizon}
}

// Lifetime ranks by what is saved for each unit of disruption, with the disruption of nodes that are soon to go anyway
// counted for less, as in versions of Karpenter before v1.14 (which ranked by disruption alone).
type Lifetime struct{}

// Rank is cost / (1 + (disruption - 1) x lifetime).
func (Lifetime) Rank(c deprovision.Candidate) float64 {
	return c.CostPerHour.Dollars() / (1 + math.Max(0, c.Disruption-1)*c.Lifetime)
}
