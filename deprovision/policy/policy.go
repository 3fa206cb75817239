// Package policy has ways to decide whether a consolidation is worth its disruption, beside the reference's own, which takes
// any saving (deprovision.AnySaving).
package policy

import (
	"fmt"
	"math"
	"time"

	"github.com/joinery-sdk/joinery/deprovision"
)

// Balanced asks that a move saves a share of what its pools cost that is at least 1/K of the share of their disruption that
// it brings:
//
//	score = (savings / pool price) / (disruption / pool disruption) >= 1 / K
//
// With several pools each must agree for its own part. K is 1, 2 or 3; the zero value counts as 2, as the reference has it.
type Balanced struct {
	K int
	// Only asks only the pools that chose the policy of that name; others take any saving. Without it all are asked.
	Only bool
}

// Judge compares the score of the worst pool.
func (b Balanced) Judge(m deprovision.Move) deprovision.Judgement {
	k := b.K
	if k <= 0 {
		k = 2
	}
	out := deprovision.Judgement{OK: true, Score: math.Inf(1), Threshold: 1 / float64(k)}
	for _, p := range m.Pools {
		if b.Only && !p.Balanced {
			continue
		}
		score := 0.0
		if p.SavingsPerHour > 0 && p.PricePerHour > 0 && p.Disruption > 0 && p.MoveDisruption > 0 {
			score = (p.SavingsPerHour / p.PricePerHour) / (p.MoveDisruption / p.Disruption)
		}
		if score < out.Score {
			out.Score = score
		}
		if score < out.Threshold {
			out.OK = false
			out.Why = fmt.Sprintf("it would save %.2f%% of what pool %s costs for %.2f%% of its disruption: score %.2f, at least %.2f is wanted",
				100*p.SavingsPerHour/math.Max(p.PricePerHour, 1e-12), p.Name, 100*p.MoveDisruption/math.Max(p.Disruption, 1e-12), score, out.Threshold)
			return out
		}
	}
	if math.IsInf(out.Score, 1) {
		out = deprovision.AnySaving{}.Judge(m)
	}
	return out
}

// Payback asks that a move earns more than its evictions cost, before the nodes would go anyway:
//
//	savings an hour x hours of remaining life >= disruption x CostPerDisruption
//
// The zero value has the defaults of the fields.
type Payback struct {
	// CostPerDisruption is what one unit of disruption costs, in dollars; 0 means one cent.
	CostPerDisruption float64
	// Horizon is the longest life that counts, as nobody knows what comes later; 0 means a day.
	Horizon time.Duration
}

// Judge compares what is earned until the first of the nodes would go with what it costs.
func (p Payback) Judge(m deprovision.Move) deprovision.Judgement {
	each, horizon := p.CostPerDisruption, p.Horizon
	if each == 0 {
		each = 0.01
	}
	if horizon == 0 {
		horizon = 24 * time.Hour
	}
	life := horizon
	for _, n := range m.Nodes {
		life = min(life, n.RemainingLife)
	}
	earned, cost := m.SavingsPerHour*life.Hours(), m.Disruption*each
	out := deprovision.Judgement{OK: m.SavingsPerHour > 0 && earned >= cost, Score: earned, Threshold: cost}
	if !out.OK {
		out.Why = fmt.Sprintf("it would earn $%.4f in %s, and its disruption costs $%.4f", earned, life.Round(time.Minute), cost)
	}
	return out
}

// Lifetime ranks by what is saved for each unit of disruption, with the disruption of nodes that are soon to go anyway
// counted for less, as in versions of the reference before v1.14 (which ranked by disruption alone).
type Lifetime struct{}

// Rank is price / (1 + (disruption - 1) x lifetime).
func (Lifetime) Rank(c deprovision.Candidate) float64 {
	return c.PricePerHour / (1 + math.Max(0, c.Disruption-1)*c.Lifetime)
}
