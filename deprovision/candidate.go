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

// Dollars is the price of so many dollars.
func Dollars(d float64) Price { return eligibility.Dollars(d) }

// Candidate is a node as rankers see it: its price, the disruption of emptying it, and its blockers.
type Candidate struct {
	Name, Pool, InstanceType, Zone, CapacityType string
	// PricePerHour is its price, 0 if the market does not know it, and CostPerHour its cost in the objective, see eligibility.Node.
	PricePerHour, CostPerHour Price
	// Pods are those that need a new place.
	Pods []*corev1.Pod
	// Disruption is the disruption of emptying the node, the sum of Parts. For the unit see eviction.Disruption.
	Disruption float64
	Parts      DisruptionParts
	// Lifetime is the remaining share of its life, 1 if it never expires, and RemainingLife the remaining time, the largest
	// duration if it never expires.
	Lifetime      float64
	RemainingLife time.Duration
	// MostSavings is an upper bound of what giving the node back saves: its price over the horizon of the options or over its
	// remaining life, whichever is shorter. It is 0 if the node has blockers.
	MostSavings Price
	// Score is the rank that the ranker gives it.
	Score float64
	// Blockers are the reasons why the node must stay, see eligibility.Blockers.
	Blockers []eligibility.Blocker
}

// DisruptionParts are the parts of [Candidate.Disruption]. All but DoNotDisrupt add up to it.
type DisruptionParts struct {
	// Node is 1 for the node itself, and Pods 1 for each pod that needs a new place.
	Node, Pods float64
	// Priorities and DeletionCosts are the parts of priorities and of pod-deletion-cost annotations; both may be negative.
	Priorities, DeletionCosts float64
	// Bounds corrects the two, because the cost of a pod is at most 10 and at least 0.
	Bounds float64
	// DoNotDisrupt is the number of pods that an annotation protects now. They block voluntary disruption and cost nothing.
	DoNotDisrupt int
}

// Ranker orders candidates; policy.Func makes one of a function. It protects none: to keep a node, annotate it with karpenter.sh/do-not-disrupt in the snapshot, or refuse its
// pods another place with Rules.Placeable.
type Ranker interface {
	// Rank returns a larger number for candidates that should go earlier. Equal ones go by name.
	Rank(Candidate) float64
}

// PriceRanker ranks by cost / disruption, as Karpenter does since v1.14 with the price.
type PriceRanker struct{}

// Rank returns the cost for each unit of disruption, in dollars.
func (PriceRanker) Rank(c Candidate) float64 { return c.CostPerHour.Dollars() / c.Disruption }

// Rank returns every node of the cluster in the order in which it should be given back: nodes without blockers first, then by
// descending score, then by name. Blockers are those of emptiness for nodes on which no pod has to move, and those of consolidation
// for others. It asks no simulator and reads no clock: [Plan] says whether the pods fit elsewhere. Nil options mean defaults; Ranker,
// Rules and Horizon matter. The cluster is only read, and calls may run concurrently. It costs O(nodes log nodes + pods), less than a
// tenth of a second for 5,000 nodes with 100,000 pods.
func Rank(c Cluster, opts *Options) []Candidate {
	o := opts.defaults()
	budgets := eviction.NewBudgets(c.PodDisruptionBudgets)
	out := make([]Candidate, 0, len(c.Nodes))
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Node == nil {
			continue
		}
		x := candidate(n, c.Now)
		method := eligibility.Consolidation
		if len(x.Pods) == 0 {
			method = eligibility.Emptiness
		}
		if x.Blockers = eligibility.Blockers(n, method, budgets, c.Now, o.Rules); len(x.Blockers) == 0 {
			x.MostSavings = x.PricePerHour.Times(min(o.Objective.Horizon, x.RemainingLife).Hours())
		}
		x.Score = o.Ranker.Rank(x)
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(min(1, len(a.Blockers)), min(1, len(b.Blockers))), cmp.Compare(b.Score, a.Score), strings.Compare(a.Name, b.Name))
	})
	return out
}

// candidate is the node without score and blockers.
func candidate(n *eligibility.Node, now time.Time) Candidate {
	c := Candidate{
		Name: n.Name(), Pool: n.PoolName(), InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType,
		Pods: n.Reschedulable(), Lifetime: n.Lifetime(now), RemainingLife: math.MaxInt64,
	}
	if n.Priced {
		c.PricePerHour, c.CostPerHour = n.PricePerHour, cmp.Or(n.CostPerHour, n.PricePerHour)
	}
	if life, ok := n.RemainingLife(now); ok {
		c.RemainingLife = life
	}
	c.Parts = partsOf(c.Pods)
	for _, p := range n.Pods {
		if eviction.Protected(p, now) != "" {
			c.Parts.DoNotDisrupt++
		}
	}
	c.Disruption = eviction.Disruption(c.Pods)
	return c
}

func partsOf(pods []*corev1.Pod) DisruptionParts {
	out := DisruptionParts{Node: 1}
	for _, p := range pods {
		deletion, priority := eviction.Parts(p)
		out.Pods++
		out.DeletionCosts += deletion
		out.Priorities += priority
		out.Bounds += max(0, eviction.Cost(p)) - (1 + deletion + priority)
	}
	return out
}
