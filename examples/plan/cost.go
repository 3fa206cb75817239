package plan

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling"
)

// WorkloadCost is the cost of a workload on the nodes that a plan buys.
type WorkloadCost struct {
	// Workload is the name that [WorkloadOf] returns.
	Workload string `json:"workload"`
	// Pods is the number of its pods on new nodes.
	Pods int `json:"pods"`
	// PricePerHour is its share of the nodes' prices, in dollars.
	PricePerHour float64 `json:"pricePerHour"`
}

// CostByWorkload divides the price of every new node among the workloads on it, dearest first, then
// by name. Each pod counts by its dominant resource, the one where it takes the largest part of the
// node. The cost of free capacity is shared in the same proportion. The shares add up to
// [Plan.Cost], to the billionth of a dollar. How the price of a node is divided depends only on
// that node. [Plan.MarginalCost] is different: it is what a workload adds to the cost of the rest
// of the plan.
func (p *Plan) CostByWorkload() []WorkloadCost {
	requests := map[*corev1.Pod]corev1.ResourceList{}
	for _, c := range p.Problem.Classes {
		for _, pod := range c.Pods {
			requests[pod] = c.Requests
		}
	}
	cost, pods := map[string]binpack.Price{}, map[string]int{}
	for _, n := range p.Result.NewNodes() {
		weights := map[string]float64{}
		allocatable := n.InstanceType.Allocatable()
		for _, pod := range n.Pods {
			name := WorkloadOf(pod)
			pods[name]++
			weights[name] += dominant(requests[pod], allocatable)
		}
		names := slices.Sorted(maps.Keys(weights))
		for i, part := range divided(Price(n.PricePerHour), names, weights) {
			cost[names[i]] += part
		}
	}
	out := make([]WorkloadCost, 0, len(cost))
	for _, name := range slices.Sorted(maps.Keys(cost)) {
		out = append(out, WorkloadCost{name, pods[name], cost[name].Dollars()})
	}
	slices.SortStableFunc(out, func(a, b WorkloadCost) int { return cmp.Compare(b.PricePerHour, a.PricePerHour) })
	return out
}

// dominant returns the largest fraction of a node that one resource of a list takes.
func dominant(list, of corev1.ResourceList) float64 {
	most := 0.0
	for name, q := range list {
		if total := resources.Capacity(name, of[name]); total > 0 && name != corev1.ResourcePods {
			most = max(most, float64(resources.Request(name, q))/float64(total))
		}
	}
	return most
}

// divided splits a price by weight, with the largest remainders rounded up. If all weights are
// zero, the parts are equal.
func divided(price binpack.Price, names []string, weights map[string]float64) []binpack.Price {
	sum := 0.0
	for _, name := range names {
		sum += weights[name]
	}
	parts, rest := make([]binpack.Price, len(names)), price
	type remainder struct {
		at   int
		part float64
	}
	remainders := make([]remainder, len(names))
	for i, name := range names {
		share := 1 / float64(len(names))
		if sum > 0 {
			share = weights[name] / sum
		}
		exact := share * float64(price)
		parts[i] = min(binpack.Price(math.Floor(exact)), rest)
		rest -= parts[i]
		remainders[i] = remainder{i, exact - math.Floor(exact)}
	}
	slices.SortStableFunc(remainders, func(a, b remainder) int { return cmp.Compare(b.part, a.part) })
	for k := 0; rest > 0; k++ {
		parts[remainders[k%len(names)].at]++
		rest--
	}
	return parts
}

// MarginalCost returns how much less, in dollars an hour, a new plan without the workload would
// buy. It costs one plan. It may be more than the share in [Plan.CostByWorkload], for a workload
// that needs its own nodes. It may be less, for a workload that fills free capacity of others. The
// sum over all workloads is not the cost of the plan.
func (p *Plan) MarginalCost(ctx context.Context, workload string) (float64, error) {
	s := p.Problem.Snapshot()
	s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName == "" && WorkloadOf(pod) == workload
	})
	without, err := Unproved(ctx, s, &p.options)
	if err != nil {
		return 0, err
	}
	return (p.Cost() - without.Cost()).Dollars(), nil
}

// WorkloadOf returns the owner of a pod, for example "Deployment shop/web", or the pod itself if it
// has none. A ReplicaSet of a Deployment is recognized by the hash at the end of its name.
func WorkloadOf(pod *corev1.Pod) string {
	kind, name := "Pod", pod.Name
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		kind, name = owner.Kind, owner.Name
		if hash := pod.Labels["pod-template-hash"]; kind == "ReplicaSet" && hash != "" {
			if deployment, ok := strings.CutSuffix(name, "-"+hash); ok {
				kind, name = "Deployment", deployment
			}
		}
	}
	return kind + " " + cmp.Or(pod.Namespace, corev1.NamespaceDefault) + "/" + name
}

// WeightsCost returns how much less the same pods would cost, in the unit of [Plan.Cost], if all
// pools had the same weight. It is 0 if the weights are equal, or if the plan without them is not
// cheaper or leaves out one of the pods. It costs one plan, unless the weights cannot matter.
func (p *Plan) WeightsCost(ctx context.Context) (binpack.Price, error) {
	s := p.Problem.Snapshot()
	differ := slices.ContainsFunc(s.Pools, func(o scheduling.Pool) bool { return o.Weight != s.Pools[0].Weight })
	if !differ || len(p.Result.NewNodes()) == 0 || p.Bound.GapPercent == 0 && p.Bound.Price > 0 {
		return 0, nil
	}
	refused := map[types.NamespacedName]bool{}
	for _, u := range p.Unplaced() {
		for _, pod := range u.Pods {
			refused[nameOf(pod)] = true
		}
	}
	s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(pod *corev1.Pod) bool { return refused[nameOf(pod)] })
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		s.Pools[i].Weight = 0
	}
	level, err := Unproved(ctx, s, &p.options)
	if err != nil || len(level.Unplaced()) > 0 {
		return 0, err
	}
	return max(0, p.Cost()-level.Cost()), nil
}

// Price converts dollars to binpack's unit, rounded to the nearest billionth. NaN becomes 0, and an
// amount that is too large becomes the largest price.
func Price(dollars float64) binpack.Price {
	switch price := math.Round(dollars * float64(binpack.PerDollar)); {
	case math.IsNaN(price):
		return 0
	case price >= math.MaxInt64:
		return math.MaxInt64
	default:
		return binpack.Price(price)
	}
}
