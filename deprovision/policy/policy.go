// Package policy has objectives and rankers beside the defaults of package deprovision.
package policy

import (
	"math"
	"time"

	"github.com/joinery-sdk/joinery/deprovision"
)

// AnySaving is the objective that makes any saving, as Karpenter does for pools without the policy Balanced.
func AnySaving() deprovision.Objective { return deprovision.Objective{DisruptionPrice: -1} }

// Balanced is the objective that compares a change's share of its pools' cost with its share of their disruption:
//
//	(savings / pool price) / (disruption / pool disruption) >= 1 / k
//
// Karpenter has 1, 2 and 3, and 2 by default.
func Balanced(k int) deprovision.Objective {
	return deprovision.Objective{DisruptionPrice: -1, Balanced: k}
}

// Payback is the objective that a change saves more than its disruption costs, within the horizon and the remaining life of the nodes:
//
//	savings an hour x hours >= disruption x price
//
// The price is for one unit of disruption, about one eviction.
func Payback(price deprovision.Price, horizon time.Duration) deprovision.Objective {
	return deprovision.Objective{DisruptionPrice: price, Horizon: horizon}
}

// Lifetime ranks by cost for each unit of disruption, and multiplies the disruption by the remaining life, as Karpenter did before
// v1.14 (which ranked by disruption alone).
type Lifetime struct{}

// Rank is cost / (1 + (disruption - 1) x lifetime).
func (Lifetime) Rank(c deprovision.Candidate) float64 {
	return c.CostPerHour.Dollars() / (1 + math.Max(0, c.Disruption-1)*c.Lifetime)
}

// Func is a function as a [deprovision.Ranker].
type Func func(deprovision.Candidate) float64

// Rank calls f.
func (f Func) Rank(c deprovision.Candidate) float64 { return f(c) }
