package rulecost

import (
	"cmp"
	"context"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling"
)

// ranked returns the rules, the most promising first. It estimates savings from the duals of the
// plan. The duals of a node's pods pay for a part of its cost. The rest is waste that the rules of
// its pods may cause. Lifting a requirement or selector may also allow types that were excluded,
// which make pods cheaper than their duals.
func (r *replanner) ranked(ctx context.Context) []Rule {
	p := r.base
	rules := rules(p, r.snapshot.Pools)
	duals, waste, all := p.Duals(), map[string]float64{}, 0.0
	class := map[*corev1.Pod]int{}
	for i, c := range p.Problem.Classes {
		for _, pod := range c.Pods {
			class[pod] = i
		}
	}
	inPool := map[string]map[int]int{} // by owner, the number of pods of each class
	for _, n := range p.Result.NewNodes() {
		unpaid, owner := n.PricePerHour, poolName(&n.Pool.Pool)
		if inPool[owner] == nil {
			inPool[owner] = map[int]int{}
		}
		workloads := map[string]bool{}
		for _, pod := range n.Pods {
			unpaid -= duals[class[pod]].Dollars()
			workloads[plan.WorkloadOf(pod)] = true
			inPool[owner][class[pod]]++
		}
		all += max(0, unpaid)
		waste[owner] += max(0, unpaid)
		for name := range workloads {
			waste[name] += max(0, unpaid)
		}
	}
	promise := make(map[Rule]float64, len(rules))
	for _, rule := range rules {
		if ctx.Err() != nil {
			break
		}
		promise[rule] = waste[rule.Owner]
		switch rule.Kind {
		case Limit, Quota, Weights:
			promise[rule] = all + p.ObjectiveValue().Dollars()*0.1 // pods that have no place in a pool may be elsewhere at any price
		case Requirement:
			promise[rule] += r.cheaper(rule, inPool[rule.Owner])
		case Selector:
			of := map[int]int{}
			for i, c := range p.Problem.Classes {
				if plan.WorkloadOf(c.Pods[0]) == rule.Owner {
					of[i] = len(c.Pods)
				}
			}
			promise[rule] += r.cheaper(rule, of)
		case MinValues, Spread, AntiAffinity, Affinity, Preference: // only the waste on the nodes of the pods
		}
	}
	slices.SortStableFunc(rules, func(a, b Rule) int { return cmp.Compare(promise[b], promise[a]) })
	return rules
}

// cheaper returns how much less the pods would pay for their share of the best type that is for
// sale without the rule.
func (r *replanner) cheaper(rule Rule, pods map[int]int) float64 {
	least := map[int]float64{} // by class
	pools := rule.Lift(scheduling.Snapshot{Pools: r.snapshot.Pools}).Pools
	for i := range pools {
		if rule.Kind == Requirement && poolName(&pools[i]) != rule.Owner {
			continue
		}
		for t := range pools[i].Types {
			typ := &pools[i].Types[t]
			price := math.Inf(1)
			if typ.Requirements.Overlaps(pools[i].Requirements) {
				for _, o := range typ.Offerings {
					if o.Available && o.Price < price && o.Requirements.Overlaps(pools[i].Requirements) {
						price = o.Price
					}
				}
			}
			if math.IsInf(price, 1) {
				continue
			}
			allocatable := typ.Allocatable()
			for k := range pods {
				if share := share(r.base.Problem.Classes[k].Requests, allocatable); share <= 1 && (least[k] == 0 || share*price < least[k]) {
					least[k] = share * price
				}
			}
		}
	}
	duals, sum := r.base.Duals(), 0.0
	for k := range r.base.Problem.Classes {
		if least[k] > 0 {
			sum += float64(pods[k]) * max(0, duals[k].Dollars()-least[k])
		}
	}
	return sum
}

// share returns the largest fraction of a node that one resource of a pod takes.
func share(list, of corev1.ResourceList) float64 {
	most := 0.0
	for name, q := range list {
		switch total := resources.Capacity(name, of[name]); {
		case total > 0:
			most = max(most, float64(resources.Request(name, q))/float64(total))
		case resources.Request(name, q) > 0:
			return math.Inf(1)
		}
	}
	return most
}
