package gang

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling"
)

// measure adds up, for each resource, the free capacity of nodes and the capacity that may still be
// bought within limits and stock, as if all of it were one large node. It also adds up what each
// group needs. So a set of groups that needs more is refuted without a plan. The classes of the
// problem must not be divided by group: groups of one kind are found by comparing the classes of
// their pods.
func (a *admission) measure(p *scheduling.Problem) {
	a.capacity, a.existing = make([]float64, len(p.Resources)), make([]float64, len(p.Resources))
	for r := range a.capacity {
		for i := range p.Existing {
			a.existing[r] += max(0, float64(p.Existing[i].Free[r]))
		}
		a.capacity[r] = a.existing[r]
		for k := range p.Pools {
			a.capacity[r] += purchasable(p, k, r, func(int, int) bool { return true })
		}
	}
	classOf, requests := map[*corev1.Pod]int{}, make([][]float64, len(p.Classes))
	for k, c := range p.Classes {
		for _, pod := range c.Pods {
			classOf[pod] = k
		}
		for _, name := range p.Resources {
			requests[k] = append(requests[k], float64(resources.Request(name, c.Requests[name])))
		}
	}
	kinds := map[string]int{}
	for i := range a.groups {
		g := &a.groups[i]
		g.demand = make([]float64, len(p.Resources))
		needed := g.pods[:min(g.need, len(g.pods))]
		classes := make([]int, len(needed)) // by needed pod, its class; a pod that no pool wants gets a number of this group alone
		for n, pod := range needed {
			k, known := classOf[pod]
			if !known {
				classes[n] = -1 - i
				continue
			}
			classes[n] = k
			for r, size := range requests[k] {
				g.demand[r] += size
			}
		}
		slices.Sort(classes)
		alone := -1 // set for a group with running members or pods beyond its need, because similar groups may not have these
		if g.running > 0 || len(g.pods) > g.need {
			alone = i
		}
		key := fmt.Sprint(g.priority, g.Key, " ", g.Values, alone, classes)
		if _, known := kinds[key]; !known {
			kinds[key] = len(kinds)
		}
		g.kind = kinds[key]
	}
	a.kinds = len(kinds)
}

// purchasable returns how much of a resource the nodes of a pool can have, within what its limits
// and the stock of some of its offerings leave to buy.
func purchasable(p *scheduling.Problem, pool, resource int, offered func(shape, offering int) bool) float64 {
	room := &p.Pools[pool]
	perNode, perLimit := 0.0, make([]float64, len(room.Limited)) // the most of the resource on a node, and for a unit of a limit
	stock, stocked := 0.0, map[string]float64{}                  // by reservation, or by offering
	for i := range p.Shapes {
		s := &p.Shapes[i]
		free := float64(s.Free[resource])
		if s.Pool != pool || free <= 0 || !sells(i, len(s.Offerings), offered) {
			continue
		}
		perNode = max(perNode, free)
		for l := range perLimit {
			perLimit[l] = max(perLimit[l], free/float64(s.Usage[l])) // +Inf if a node uses nothing of the limit
		}
		for j, o := range s.Offerings {
			if !offered(i, j) {
				continue
			}
			if o.Count == 0 {
				stock = math.Inf(1)
				continue
			}
			name := o.Reservation
			if name == "" {
				name = fmt.Sprint(s.Type, " ", o.Index)
			}
			count := float64(o.Count)
			if o.Takes > 0 { // not rounded down: several types may share the commitment
				count = float64(o.Committed) / float64(o.Takes)
			}
			stocked[name] = max(stocked[name], count*free)
		}
	}
	if perNode == 0 {
		return 0
	}
	for _, most := range stocked {
		stock += most
	}
	if room.NodesLeft >= 0 {
		stock = min(stock, float64(room.NodesLeft)*perNode)
	}
	for l, rate := range perLimit {
		if left := max(0, float64(room.Left[l])); !math.IsInf(rate, 1) {
			stock = min(stock, left*rate)
		}
	}
	return stock
}

// rounding is the possible relative error of sums of float64.
const rounding = 1e-9

// suits reports whether the groups of a set need no more than there is, and no failed set is among
// them.
func (a *admission) suits(set []bool) bool {
	for r, capacity := range a.capacity {
		sum := 0.0
		for i, in := range set {
			if in {
				sum += a.groups[i].demand[r]
			}
		}
		if sum > capacity*(1+rounding) {
			return false
		}
	}
	counts := a.counts(set)
	return !slices.ContainsFunc(a.failed, func(failed []int) bool {
		for k, n := range failed {
			if n > counts[k] {
				return false
			}
		}
		return true
	})
}

// fail remembers a set that did not fit. Sets with as many groups of each kind do not fit either.
func (a *admission) fail(set []bool) { a.failed = append(a.failed, a.counts(set)) }

// counts returns how many groups of each kind a set has, without those that need nothing more.
func (a *admission) counts(set []bool) []int {
	out := make([]int, a.kinds)
	for i, in := range set {
		if in && a.groups[i].need > 0 {
			out[a.groups[i].kind]++
		}
	}
	return out
}

// share returns the largest part of the existing amount of a resource that the group needs, to
// order groups by size; 0 if nothing is limited.
func (a *admission) share(g int) float64 {
	out := 0.0
	for r, n := range a.groups[g].demand {
		if n > 0 {
			out = max(out, n/a.capacity[r]) // +Inf if there is none
		}
	}
	return out
}

// sells reports whether one of so many offerings of a shape is offered.
func sells(shape, offerings int, offered func(shape, offering int) bool) bool {
	for j := range offerings {
		if offered(shape, j) {
			return true
		}
	}
	return false
}
