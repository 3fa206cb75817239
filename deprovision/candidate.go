package deprovision

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
)

// Price is an amount of money in billionths of a dollar, see eligibility.Price.
type Price = eligibility.Price

// Dollars returns the price of d dollars.
func Dollars(d float64) Price { return eligibility.Dollars(d) }

// Candidate is a node as a ranker sees it: its price, the disruption of emptying it, and its
// blockers.
type Candidate struct {
	// Node is everything known about the node. A plan also ranks the nodes that it buys itself.
	// They have no labels, and their age is 0.
	Node                                         *eligibility.Node
	Name, Pool, InstanceType, Zone, CapacityType string
	// PricePerHour is the node's price, or 0 if the market does not know it. CostPerHour is its
	// cost in the objective, see [eligibility.Node].
	PricePerHour, CostPerHour Price
	// Pods are the pods that need a new place if the node goes.
	Pods []*corev1.Pod
	// Disruption is the disruption of emptying the node: the sum of Parts, except DoNotDisrupt. For
	// the unit see eviction.Disruption.
	Disruption float64
	Parts      DisruptionParts
	// Lifetime is the remaining share of the node's life, or 1 if it never expires. RemainingLife
	// is the remaining time, or the largest duration if it never expires.
	Lifetime      float64
	RemainingLife time.Duration
	// MostSavings is an upper bound of the saving from giving the node back: its price over the
	// horizon of the options or over its remaining life, whichever is shorter. It is 0 if the node
	// has blockers.
	MostSavings Price
	// Score is the number that the ranker gives the node.
	Score float64
	// Blockers are the reasons why the node must stay, see eligibility.Blockers.
	Blockers []eligibility.Blocker
}

// DisruptionParts are the parts of [Candidate.Disruption]. All of them except DoNotDisrupt add up
// to it.
type DisruptionParts struct {
	// Node is 1, for the node itself. Pods is 1 for each pod that needs a new place.
	Node, Pods float64
	// Priorities and DeletionCosts come from pod priorities and pod-deletion-cost annotations. Both
	// may be negative.
	Priorities, DeletionCosts float64
	// Bounds corrects Priorities and DeletionCosts, because a pod adds at least 0 and at most 10.
	// ([eviction.Cost] may be negative, but [eviction.Disruption] counts it as 0 then.)
	Bounds float64
	// DoNotDisrupt is the number of pods that an annotation protects now. Such pods block voluntary
	// disruption, but they add nothing to the cost.
	DoNotDisrupt int
}

// Ranker orders candidates. It decides only the order: to keep a node from being given back, use
// Rules.Keep of package eligibility.
type Ranker interface {
	// Rank returns a number. Candidates with a larger number go earlier. Candidates with equal
	// numbers go in the order of their names.
	Rank(Candidate) float64
}

// RankerFunc is a function as a [Ranker].
type RankerFunc func(Candidate) float64

// Rank calls f.
func (f RankerFunc) Rank(c Candidate) float64 { return f(c) }

// PriceRanker ranks by cost divided by disruption. Since v1.14, Karpenter ranks in the same way,
// but by price instead of cost.
type PriceRanker struct{}

// Rank returns the cost per unit of disruption, in dollars.
func (PriceRanker) Rank(c Candidate) float64 { return c.CostPerHour.Dollars() / c.Disruption }

// RankOptions are the options of [Rank]. nil and the zero value mean defaults.
type RankOptions struct {
	// Ranker orders the candidates; nil is [PriceRanker].
	Ranker Ranker
	// Rules are additional rules of eligibility.
	Rules eligibility.Rules
	// Horizon is the longest time over which a saving counts; 0 means a day.
	Horizon time.Duration
}

// Rank returns every node of the cluster in the order in which it should be given back. Nodes
// without blockers come before nodes with blockers. Within each of the two, nodes with a higher
// score come first, and nodes with equal scores are in the order of their names.
//
// A node with no pods to move gets the blockers of emptiness; every other node gets those of
// consolidation. Rank uses no simulator and reads no clock: package plan decides whether the pods
// fit elsewhere. The error is that of [Cluster.Validate].
//
// Rank only reads the cluster, and calls may run concurrently. It costs O(nodes log nodes + pods),
// less than a tenth of a second for 5,000 nodes with 100,000 pods.
func Rank(c Cluster, opts *RankOptions) ([]Candidate, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	var o RankOptions
	if opts != nil {
		o = *opts
	}
	if o.Ranker == nil {
		o.Ranker = PriceRanker{}
	}
	o.Horizon = cmp.Or(o.Horizon, 24*time.Hour)
	budgets := eviction.NewBudgets(c.PodDisruptionBudgets)
	out := make([]Candidate, 0, len(c.Nodes))
	for i := range c.Nodes {
		x := NewCandidate(&c.Nodes[i], c.Now)
		method := eligibility.Consolidation
		if len(x.Pods) == 0 {
			method = eligibility.Emptiness
		}
		if x.Blockers = eligibility.Blockers(x.Node, method, budgets, c.Now, o.Rules); len(x.Blockers) == 0 {
			x.MostSavings = x.PricePerHour.Times(min(o.Horizon, x.RemainingLife).Hours())
		}
		x.Score = o.Ranker.Rank(x)
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(min(1, len(a.Blockers)), min(1, len(b.Blockers))), cmp.Compare(b.Score, a.Score), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}

// NewCandidate returns the node as a candidate at the given moment, without Score, Blockers and
// MostSavings.
func NewCandidate(n *eligibility.Node, now time.Time) Candidate {
	c := Candidate{
		Node: n, Name: n.Name(), Pool: n.PoolName(), InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType,
		Pods: n.Reschedulable(), Disruption: 1, Lifetime: n.Lifetime(now), RemainingLife: math.MaxInt64, Parts: DisruptionParts{Node: 1},
	}
	if n.Priced {
		c.PricePerHour, c.CostPerHour = n.PricePerHour, cmp.Or(n.CostPerHour, n.PricePerHour)
	}
	if life, ok := n.RemainingLife(now); ok {
		c.RemainingLife = life
	}
	for _, p := range n.Pods {
		if eviction.Protected(p, now) != "" {
			c.Parts.DoNotDisrupt++
		}
	}
	for _, p := range c.Pods {
		deletion, priority := eviction.Parts(p)
		cost := max(0, eviction.Cost(p))
		c.Parts.Pods++
		c.Parts.DeletionCosts += deletion
		c.Parts.Priorities += priority
		c.Parts.Bounds += cost - (1 + deletion + priority)
		c.Disruption += cost
	}
	return c
}
