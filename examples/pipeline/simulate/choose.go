package simulate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
)

// Choose solves a linear program with a column for each node and for each size that can be bought,
// and a row for each resource. Its dual has one variable for each resource and is solved by cutting
// planes (J. E. Kelley, 1960). A node is retained if its capacity at dual prices exceeds its cost.
// A pass costs O(nodes x resources), and one or two dozen passes are needed.
func (s *Simulator) Choose(nodes []giveback.NodeChoice, cases int) [][]bool {
	if len(nodes) == 0 || len(s.market.sizes) == 0 {
		return nil
	}
	names := make([]string, len(nodes))
	for i := range nodes {
		names[i] = nodes[i].Node
	}
	free := s.at.FreeOf(names)
	demand := make([]int64, len(s.market.problem.Resources))
	least, most := s.proportions(nodes)
	scale := s.market.scale(demand)
	capacities := make([][]float64, len(nodes))
	for i := range nodes {
		need := s.at.Needs(nodes[i].Pods)
		capacity := slices.Clone(free[i])
		if least > 0 { // free memory without free cores holds no pod, nor do cores without memory
			capacity[1] = min(capacity[1], int64(min(float64(free[i][0])*most, 1<<62)))
			capacity[0] = min(capacity[0], int64(min(float64(free[i][1])/least, 1<<62)))
		}
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
		out[k], _ = s.market.retain(capacities, costs, scaled(demand, scale), scale)
	}
	return out
}

// proportions returns the quartiles of the ratio of memory to CPU of the pods, or zeros if there
// are none.
func (s *Simulator) proportions(nodes []giveback.NodeChoice) (least, most float64) {
	var list []float64
	for i := range nodes {
		for _, p := range nodes[i].Pods {
			if need := s.at.Needs([]*corev1.Pod{p}); need[0] > 0 && need[1] > 0 {
				list = append(list, float64(need[1])/float64(need[0]))
			}
		}
	}
	if len(list) == 0 {
		return 0, 0
	}
	slices.Sort(list)
	return list[len(list)/4], list[len(list)*3/4]
}

// retain returns the capacities to retain so that they, together with sizes to buy, meet the demand
// at least cost. It also returns a lower bound of that cost. Capacities whose cost is not positive
// are always retained, and the bound excludes their costs.
func (m *market) retain(capacities [][]float64, costs, demand, scale []float64) (retained []bool, least float64) {
	const most, near = 100, 1e-4
	n := len(demand)
	retained = make([]bool, len(capacities))
	for i, capacity := range capacities {
		if retained[i] = costs[i] <= 0; retained[i] {
			for d := range demand {
				demand[d] = max(0, demand[d]-capacity[d])
			}
		}
	}
	goal := make([]float64, n+1) // the dual prices and the dual bound
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
		dual, cost := dot(demand, x[:n]), 0.0
		held := make([]float64, n)
		for i, capacity := range capacities {
			if costs[i] <= 0 {
				continue
			}
			reduced := costs[i] - dot(capacity, x[:n])
			if retained[i] = reduced < 0; retained[i] {
				dual += reduced
				cost += costs[i]
				for d, q := range capacity {
					held[d] += q
				}
			}
		}
		least = max(least, dual)
		if dual >= float64(bound*(1-near)) {
			break
		}
		cut(held, cost)
	}
	return retained, least
}
