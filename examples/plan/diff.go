package plan

import (
	"cmp"
	"maps"
	"slices"
)

// Totals are the figures of a plan.
type Totals struct {
	NewNodes          int     `json:"newNodes"`
	PricePerHour      float64 `json:"pricePerHour"`
	LowerBoundPerHour float64 `json:"lowerBoundPerHour"`
	Placed            int     `json:"placed"`
	Unplaced          int     `json:"unplaced"`
}

// Totals are the figures of the plan.
func (p *Plan) Totals() Totals {
	t := Totals{NewNodes: len(p.Result.NewNodes()), PricePerHour: p.Cost().Dollars(), LowerBoundPerHour: p.Packing.Bound.Price.Dollars(), Placed: len(p.Bindings())}
	for _, u := range p.Unplaced() {
		t.Unplaced += len(u.Pods)
	}
	return t
}

// Difference is two plans side by side, to be read by a gate.
type Difference struct {
	Before Totals `json:"before"`
	After  Totals `json:"after"`
	// Lost are pods, as namespace/name, that had a place and have none, or are gone; Gained those that had none and have one.
	Lost   []string `json:"lost"`
	Gained []string `json:"gained"`
	// Nodes are the kinds of node of which not as many are bought, Workloads those that do not cost the same; by name.
	Nodes     []NodeChange     `json:"nodes"`
	Workloads []WorkloadChange `json:"workloads"`
}

// NodeChange is how many nodes of a kind are bought.
type NodeChange struct {
	Pool         string `json:"pool"`
	InstanceType string `json:"instanceType"`
	CapacityType string `json:"capacityType"`
	Before       int    `json:"before"`
	After        int    `json:"after"`
}

// WorkloadChange is what a workload costs, in dollars an hour, as in [Plan.CostByWorkload].
type WorkloadChange struct {
	Workload string  `json:"workload"`
	Before   float64 `json:"before"`
	After    float64 `json:"after"`
}

// Diff compares two plans.
func Diff(before, after *Plan) Difference {
	d := Difference{Before: before.Totals(), After: after.Totals(), Lost: []string{}, Gained: []string{}, Nodes: []NodeChange{}, Workloads: []WorkloadChange{}}
	was, is := before.placed(), after.placed()
	for _, pod := range slices.Sorted(maps.Keys(was)) {
		if !is[pod] {
			d.Lost = append(d.Lost, pod)
		}
	}
	for _, pod := range slices.Sorted(maps.Keys(is)) {
		if !was[pod] {
			d.Gained = append(d.Gained, pod)
		}
	}
	nodes := map[NodeChange][2]int{}
	costs := map[string][2]float64{}
	for side, p := range []*Plan{before, after} {
		for _, n := range p.Result.NewNodes() {
			kind := NodeChange{Pool: n.Pool.Name, InstanceType: n.InstanceType.Name, CapacityType: n.CapacityType}
			count := nodes[kind]
			count[side]++
			nodes[kind] = count
		}
		for _, c := range p.CostByWorkload() {
			cost := costs[c.Workload]
			cost[side] = c.PricePerHour
			costs[c.Workload] = cost
		}
	}
	for kind, count := range nodes {
		if kind.Before, kind.After = count[0], count[1]; count[0] != count[1] {
			d.Nodes = append(d.Nodes, kind)
		}
	}
	slices.SortFunc(d.Nodes, func(a, b NodeChange) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.CapacityType, b.CapacityType))
	})
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		if c := costs[name]; c[0] != c[1] {
			d.Workloads = append(d.Workloads, WorkloadChange{name, c[0], c[1]})
		}
	}
	return d
}

// placed are the pods that the plan binds, by namespace/name.
func (p *Plan) placed() map[string]bool {
	out := map[string]bool{}
	for _, b := range p.Bindings() {
		out[b.Pod.Namespace+"/"+b.Pod.Name] = true
	}
	return out
}
