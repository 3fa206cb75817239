package simulate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
)

// Choose decides in fractions which nodes to keep: a linear program with a column for each node and each size that can be bought,
// and a row for each resource. Its dual has a variable for each resource and is solved by cutting planes (J. E. Kelley, 1960): at
// given rates a node is kept if what it can hold is worth more than it costs. A pass costs O(nodes x resources), and a dozen or two
// do.
func (s *Simulator) Choose(nodes []deprovision.NodeChoice, cases int) [][]bool {
	if len(nodes) == 0 || len(s.market.sizes) == 0 {
		return nil
	}
	names := make([]string, len(nodes))
	for i := range nodes {
		names[i] = nodes[i].Node
	}
	free := s.at.FreeOf(names)
	demand := make([]int64, len(s.market.problem.Resources))
	band := s.proportions(nodes)
	scale := s.market.scale(demand)
	capacities := make([][]float64, len(nodes))
	for i := range nodes {
		need := s.at.Needs(nodes[i].Pods)
		capacity := band.usable(free[i])
		for d, q := range need {
			demand[d] += q
			capacity[d] += q
		}
		capacities[i] = scaled(capacity, scale)
	}
	out := make([][]bool, cases)
	for k := range out {
		costs := make([]float64, len(nodes))
		for i := range nodes {
			costs[i] = float64(nodes[i].Costs[k])
		}
		out[k], _ = s.market.keep(capacities, costs, scaled(demand, scale), scale)
	}
	return out
}

// band is between which proportions of memory to cpu half of the pods are.
type band struct{ least, most float64 }

func (s *Simulator) proportions(nodes []deprovision.NodeChoice) band {
	var list []float64
	for i := range nodes {
		for _, p := range nodes[i].Pods {
			if need := s.at.Needs([]*corev1.Pod{p}); need[0] > 0 && need[1] > 0 {
				list = append(list, float64(need[1])/float64(need[0]))
			}
		}
	}
	if len(list) == 0 {
		return band{}
	}
	slices.Sort(list)
	return band{list[len(list)/4], list[len(list)*3/4]}
}

// usable is how much of what is free pods of common proportions can use: memory of a node without cores is worth nothing, whatever
// memory is worth in all.
func (b band) usable(free []int64) []int64 {
	out := slices.Clone(free)
	if b.least > 0 {
		out[1] = min(out[1], int64(min(float64(out[0])*b.most, 1<<62)))
		out[0] = min(out[0], int64(min(float64(free[1])/b.least, 1<<62)))
	}
	return out
}

// keep is which of the capacities to keep at their costs so that the demand is met for the least in fractions, and a bound below which no
// choice comes. Rooms that cost nothing or less are kept in any case, and their costs are not in the bound.
func (m *market) keep(capacities [][]float64, costs, demand, scale []float64) (kept []bool, least float64) {
	const most, near = 100, 1e-4
	n := len(demand)
	kept = make([]bool, len(capacities))
	for i, capacity := range capacities {
		if kept[i] = costs[i] <= 0; kept[i] { // in any case
			for d := range demand {
				demand[d] = max(0, demand[d]-capacity[d])
			}
		}
	}
	goal := make([]float64, n+1) // the rates, and the value of the program at them
	goal[n] = 1
	var rows [][]float64
	var limits []float64
	for _, k := range m.sizes {
		rows, limits = append(rows, append(scaled(k.capacity, scale), 0)), append(limits, float64(k.cost))
	}
	cut := func(held []float64, cost float64) {
		row := make([]float64, n+1)
		for d := range held {
			row[d] = held[d] - demand[d]
		}
		row[n] = 1
		rows, limits = append(rows, row), append(limits, cost)
	}
	cut(make([]float64, n), 0)
	for range most {
		x, bound := maximize(goal, rows, limits)
		value, cost := dot(demand, x[:n]), 0.0
		held := make([]float64, n)
		for i, capacity := range capacities {
			if costs[i] <= 0 {
				continue
			}
			worth := dot(capacity, x[:n])
			if kept[i] = worth > costs[i]; kept[i] {
				value -= worth - costs[i]
				cost += costs[i]
				for d, q := range capacity {
					held[d] += q
				}
			}
		}
		least = max(least, value)
		if value >= float64(bound*(1-near)) {
			break
		}
		cut(held, cost)
	}
	return kept, least
}
