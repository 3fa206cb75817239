package plan

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Totals are the summary figures of a plan. Prices are in dollars an hour, and Placed and Unplaced
// count pods.
type Totals struct {
	NewNodes          int     `json:"newNodes"`
	PricePerHour      float64 `json:"pricePerHour"`
	LowerBoundPerHour float64 `json:"lowerBoundPerHour"`
	Placed            int     `json:"placed"`
	Unplaced          int     `json:"unplaced"`
}

// Totals returns the summary figures of the plan.
func (p *Plan) Totals() Totals {
	t := Totals{NewNodes: len(p.Result.NewNodes()), PricePerHour: p.Cost().Dollars(), LowerBoundPerHour: p.Bound.Price.Dollars(), Placed: len(p.Bindings())}
	for _, u := range p.Unplaced() {
		t.Unplaced += len(u.Pods)
	}
	return t
}

// Difference is the comparison of two plans, for example for a gate in a pipeline.
type Difference struct {
	Before Totals `json:"before"`
	After  Totals `json:"after"`
	// Lost, Gained and Gone are pods as namespace/name, sorted. Lost pods have no place in the
	// second plan; in the first plan they had one, or were not planned. Gained pods have a place in
	// the second plan; in the first plan they had none. Of the pods of a workload that are in both
	// plans, only as many are lost or gained as fewer or more have a place; those of a StatefulSet
	// count by name. Gone pods had a place and no longer exist.
	Lost   []string `json:"lost"`
	Gained []string `json:"gained"`
	Gone   []string `json:"gone"`
	// Ignored has the pods that the second plan does not plan, and why, by namespace/name. Those
	// that had a place in the first plan are also lost. The others are not, because they wait on
	// purpose, or another scheduler places them. A nominated pod has a place: a node keeps room for it.
	Ignored map[string]string `json:"ignored"`
	// Nodes are the types of node that the plans buy in different numbers. Workloads are those
	// whose cost differs. Both are sorted by name.
	Nodes     []NodeChange     `json:"nodes"`
	Workloads []WorkloadChange `json:"workloads"`
}

// NodeChange is the change in the number of nodes of one type that are bought.
type NodeChange struct {
	Pool         string `json:"pool"`
	InstanceType string `json:"instanceType"`
	CapacityType string `json:"capacityType"`
	Before       int    `json:"before"`
	After        int    `json:"after"`
}

// WorkloadChange is the change in the cost of a workload, in dollars an hour, as in
// [Plan.CostByWorkload].
type WorkloadChange struct {
	Workload string  `json:"workload"`
	Before   float64 `json:"before"`
	After    float64 `json:"after"`
}

// Diff compares two plans. It only reads them.
func Diff(before, after *Plan) Difference {
	d := Difference{Before: before.Totals(), After: after.Totals(), Lost: []string{}, Gained: []string{}, Gone: []string{}, Ignored: map[string]string{}, Nodes: []NodeChange{}, Workloads: []WorkloadChange{}}
	was, is := before.places(), after.places()
	for _, i := range after.Problem.Ignored {
		if i.Node != "" {
			continue
		}
		pod := i.Pod.Namespace + "/" + i.Pod.Name
		if d.Ignored[pod] = i.Why; was[pod] {
			d.Lost = append(d.Lost, pod)
		}
	}
	for _, pod := range slices.Sorted(maps.Keys(is)) {
		switch placed, known := was[pod]; {
		case is[pod] && !placed:
			d.Gained = append(d.Gained, pod)
		case !is[pod] && (placed || !known):
			d.Lost = append(d.Lost, pod)
		}
	}
	slices.Sort(d.Lost)
	after.exchange(&d, was)
	for _, pod := range slices.Sorted(maps.Keys(was)) {
		if _, known := is[pod]; was[pod] && !known && d.Ignored[pod] == "" {
			d.Gone = append(d.Gone, pod)
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

// exchange removes pairs of a lost and a gained pod of the same workload: which of its pods have the
// places means nothing. Both must be in both plans; was has the pods of the first. Pods of a
// StatefulSet differ, and are not exchanged.
func (p *Plan) exchange(d *Difference, was map[string]bool) {
	workload := map[string]string{}
	for _, pod := range p.Problem.Snapshot().Pods {
		owner, name := metav1.GetControllerOf(pod), pod.Namespace+"/"+pod.Name
		if _, known := was[name]; known && owner != nil && owner.Kind != "StatefulSet" {
			workload[name] = WorkloadOf(pod)
		}
	}
	d.Lost = slices.DeleteFunc(d.Lost, func(lost string) bool {
		k := slices.IndexFunc(d.Gained, func(pod string) bool { return workload[pod] != "" && workload[pod] == workload[lost] })
		if k >= 0 {
			d.Gained = slices.Delete(d.Gained, k, k+1)
		}
		return k >= 0
	})
}

// places says for every pod that runs, is nominated or is planned, by namespace/name, whether it
// has a place.
func (p *Plan) places() map[string]bool {
	out := map[string]bool{}
	for _, pod := range p.Problem.Snapshot().Pods {
		if pod.Spec.NodeName != "" {
			out[pod.Namespace+"/"+pod.Name] = true
		}
	}
	for _, u := range p.Unplaced() {
		for _, pod := range u.Pods {
			out[pod.Namespace+"/"+pod.Name] = false
		}
	}
	for _, b := range p.Bindings() {
		out[b.Pod.Namespace+"/"+b.Pod.Name] = true
	}
	for _, i := range p.Problem.Ignored {
		if i.Node != "" {
			out[i.Pod.Namespace+"/"+i.Pod.Name] = true
		}
	}
	return out
}
