package deprovision

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Candidate is a node that may be given back, as rankers and policies see it.
type Candidate struct {
	Name, Pool, InstanceType, Zone, CapacityType string
	PricePerHour                                 float64
	// Pods are those that need a new place.
	Pods []*corev1.Pod
	// Disruption is 1 and what it costs to evict each of them, see eviction.Disruption.
	Disruption float64
	// Lifetime is the share of its life that is left, 1 where it never expires, and RemainingLife how long that is; the
	// largest duration where it is without end.
	Lifetime      float64
	RemainingLife time.Duration
}

// Ranker orders candidates.
type Ranker interface {
	// Rank is larger for those that should go first. Those of equal rank are taken by name.
	Rank(Candidate) float64
}

// Policy decides whether a change is worth making.
type Policy interface {
	// Judge says so, and why not.
	Judge(Move) Judgement
}

// Move is a change that would work: nodes that go, and what is bought in their place.
type Move struct {
	Nodes    []Candidate
	NewNodes []NewNode
	// SavingsPerHour is what it saves, in dollars; Disruption the sum over Nodes, and Evictions the number of pods that move.
	SavingsPerHour float64
	Disruption     float64
	Evictions      int
	// Pools are what the pools of the nodes cost and would be disrupted by in all, candidates or not, with the share of the
	// savings that each pool's nodes stand for, by name.
	Pools []PoolTotals
}

// PoolTotals are sums over all nodes of a pool.
type PoolTotals struct {
	Name string
	// Balanced is set where the pool asks for the policy of that name.
	Balanced bool
	// PricePerHour and Disruption are over all its nodes.
	PricePerHour, Disruption float64
	// SavingsPerHour and MoveDisruption are the part of the move that its nodes stand for.
	SavingsPerHour, MoveDisruption float64
}

// Judgement is what a policy says.
type Judgement struct {
	OK bool
	// Score and Threshold are what was compared; a move passes whose score is not below the threshold.
	Score, Threshold float64
	// Why says in words what is missing; it is empty where OK is set.
	Why string
}

// PriceRanker takes first what saves most for each unit of disruption: price / disruption, as the reference does since
// v1.14.
type PriceRanker struct{}

// Rank is the price by disruption.
func (PriceRanker) Rank(c Candidate) float64 { return c.PricePerHour / c.Disruption }

// AnySaving accepts whatever saves money, as the reference does for pools that do not ask for Balanced.
type AnySaving struct{}

// Judge accepts savings above zero.
func (AnySaving) Judge(m Move) Judgement {
	if m.SavingsPerHour > 0 {
		return Judgement{OK: true, Score: m.SavingsPerHour}
	}
	return Judgement{Score: m.SavingsPerHour, Why: "it saves nothing"}
}
