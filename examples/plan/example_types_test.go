package plan_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

func snapshot() scheduling.Snapshot { return scheduling.Snapshot{Pods: pods(6), Pools: pools()} }

// A node to buy, in the words of Kubernetes, and what else would hold its pods.
func ExampleNewNode() {
	p, err := plan.Make(context.Background(), snapshot(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	n := p.NewNodes()[0]
	fmt.Println(n.Name, n.InstanceType.Name, n.Labels["kubernetes.io/arch"], len(n.Pods), "pods take", n.Requests.Cpu(), "cpu")
	next := n.Alternatives[0]
	fmt.Printf("or %s in %s at $%.3f\n", next.InstanceType, next.Zone, next.PricePerHour)
	fmt.Println(slices.ContainsFunc(n.Alternatives, func(a plan.Alternative) bool { return a.PricePerHour < n.PricePerHour }))
	// Output:
	// default-0 c6a.2xlarge amd64 5 pods take 7500m cpu
	// or c6a.2xlarge in us-east-1b at $0.306
	// false
}

// Six pods that run only together, in one zone: what they take, and what they must cost at least.
func ExampleGang() {
	all := gang.Group{Name: "train", Member: func(*corev1.Pod) bool { return true }, Key: corev1.LabelTopologyZone}
	p, err := plan.Make(context.Background(), snapshot(), &plan.Options{Groups: []gang.Group{all}})
	if err != nil {
		fmt.Println(err)
		return
	}
	g := p.Gangs()[0]
	fmt.Printf("%s: %d pods in %s on %d nodes for $%.3f; no nodes in one zone cost less than $%.3f\n", g.Name, g.Placed, g.Domain, len(g.Nodes), g.PricePerHour, g.LowerBoundPerHour)
	// Output: train: 6 pods in us-east-1a on 2 nodes for $0.383; no nodes in one zone cost less than $0.383
}

// Larger machines than 4 cores are not wanted, and first fit will do.
func ExampleOptions() {
	p, err := plan.Make(context.Background(), snapshot(), &plan.Options{
		Packing: &binpack.Options{Effort: binpack.EffortFast}, Objective: &plan.Objective{MostCPU: 4},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(p.NewNodes()), "nodes, none larger")
	// Output: 3 nodes, none larger
}

// A core of the older family is counted as dearer than it is, for it does less.
func ExampleObjective() {
	slower := plan.Factor{Match: requirements.MustParse("karpenter.k8s.aws/instance-family in (c6a)"), Times: 1.5}
	p, err := plan.Make(context.Background(), snapshot(), &plan.Options{Objective: &plan.Objective{Factors: []plan.Factor{slower}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range p.NewNodes() {
		fmt.Println(n.InstanceType.Name)
	}
	// Output:
	// m6a.2xlarge
	// m6a.large
}

// A refused pod comes with a change that was tried.
func ExampleFix() {
	s := snapshot()
	for _, pod := range s.Pods {
		pod.Spec.NodeSelector = map[string]string{"team": "web"}
	}
	p, err := plan.Make(context.Background(), s, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	u := p.Unplaced()[0]
	fix := p.Fix(u.Class, u.Reasons(), false)
	fmt.Println(fix.Text)
	// Output: would fit if pool "default" had the label team=web, for at most $0.3825/h more
}

// A fix is applied to a snapshot, which is not modified, and the result is planned again.
func ExampleFix_Apply() {
	s := snapshot()
	for _, pod := range s.Pods {
		pod.Spec.NodeSelector = map[string]string{"team": "web"}
	}
	p, err := plan.Make(context.Background(), s, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for r := range p.Refusals(context.Background()) {
		fix := &r.Fixes[0]
		again, err := plan.Make(context.Background(), fix.Apply(s), nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(fix.What)
		fmt.Printf("before %d without a place, now %d, for $%.4f an hour\n", len(r.Pods), len(again.Unplaced()), (again.Cost() - p.Cost()).Dollars())
	}
	// Output:
	// would fit if pool "default" had the label team=web
	// before 6 without a place, now 0, for $0.3825 an hour
}

// What has no place, why, and everything that would help, cheapest first.
func ExampleRefusal() {
	s := snapshot()
	for _, pod := range s.Pods {
		pod.Spec.NodeSelector = map[string]string{"team": "web"}
	}
	p, err := plan.Make(context.Background(), s, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for r := range p.Refusals(context.Background()) {
		fmt.Println(len(r.Pods), "pods:", r.Reasons[0])
		for _, f := range r.Fixes {
			fmt.Printf("%s of pool %s: %s, $%.2f an hour\n", f.Kind, f.Pool, f.Key, f.PerHour)
		}
	}
	fmt.Println(len(p.Ignored()), "ignored, stopped:", p.IsStopped())
	// Output:
	// 6 pods: pool "default": it requires team in (web), a label that nothing in the pool has
	// LabelPool of pool default: team, $0.38 an hour
	// DropSelector of pool default: team, $0.38 an hour
	// 0 ignored, stopped: false
}

// The kind says what a fix changes, for programs that make the change themselves.
func ExampleFixKind() {
	fix := plan.Fix{Kind: plan.RaiseLimit, Pool: "default", Key: "cpu", Value: "64"}
	switch fix.Kind {
	case plan.RaiseLimit:
		fmt.Println("set the limit of", fix.Pool, "for", fix.Key, "to", fix.Value)
	case plan.LabelPool, plan.AllowType, plan.TolerateTaints, plan.RequestLess, plan.DropSelector, plan.PreferOnly:
	}
	// Output: set the limit of default for cpu to 64
}

// A fix of kind PreferOnly names the list and the place of the constraint that becomes a preferred
// one.
func ExamplePodConstraint() {
	fix := plan.Fix{Kind: plan.PreferOnly, Key: corev1.LabelHostname, Constraint: plan.TopologySpread, Index: 0, Pods: pods(1)}
	for _, pod := range fix.Pods {
		pod = pod.DeepCopy()
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule}}
		if fix.Constraint == plan.TopologySpread {
			it := &pod.Spec.TopologySpreadConstraints[fix.Index]
			it.WhenUnsatisfiable, it.MinDomains = corev1.ScheduleAnyway, nil
		}
		fmt.Println(pod.Name, fix.Constraint, pod.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable)
	}
	// Output: web-0 topologySpreadConstraints ScheduleAnyway
}

// Whose money it is: the parts add up to the cost of the plan.
func ExampleWorkloadCost() {
	p, err := plan.Make(context.Background(), snapshot(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	first := p.CostByWorkload()[0]
	fmt.Printf("%s: $%.4f an hour\n", first.Workload, first.PricePerHour)
	// Output: Pod shop/web-5: $0.0765 an hour
}

// What a change costs, for a gate that reads it.
func ExampleDifference() {
	before, err := plan.Make(context.Background(), snapshot(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	after, err := plan.Make(context.Background(), scheduling.Snapshot{Pods: pods(7), Pools: pools()}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	d := plan.Diff(before, after)
	more := func(a, b plan.Totals) float64 { return b.PricePerHour - a.PricePerHour }
	fmt.Printf("%v: $%.4f an hour more for %d nodes\n", d.Gained, more(d.Before, d.After), d.After.NewNodes)
	var node plan.NodeChange
	for _, node = range d.Nodes {
		fmt.Println(node.InstanceType, node.Before, "to", node.After)
	}
	added := func(w plan.WorkloadChange) bool { return w.Before == 0 }
	fmt.Println(d.Workloads[slices.IndexFunc(d.Workloads, added)].Workload, "is new")
	// Output:
	// [shop/web-6]: $0.0765 an hour more for 2 nodes
	// c6a.large 1 to 0
	// c6a.xlarge 0 to 1
	// Pod shop/web-6 is new
}

// No spot pool, the spot capacity of a type in a zone, holds more than half of the workload.
func ExampleSpread() {
	s := snapshot()
	s.Pools[0].Requirements = requirements.MustParse("karpenter.k8s.aws/instance-family in (c6a,m6a), karpenter.sh/capacity-type=spot")
	for _, spread := range []plan.Spread{{}, {Plan: 0.5}} {
		p, err := plan.Make(context.Background(), s, &plan.Options{Objective: &plan.Objective{Spread: spread}})
		if err != nil {
			fmt.Println(err)
			return
		}
		most := map[string]int{}
		for _, n := range p.NewNodes() {
			most[n.InstanceType.Name+" in "+n.Labels["topology.kubernetes.io/zone"]] += len(n.Pods)
		}
		fmt.Println(len(most), "spot pools, at most", slices.Max(slices.Collect(maps.Values(most))), "of 6 pods in one")
	}
	// Output:
	// 2 spot pools, at most 5 of 6 pods in one
	// 2 spot pools, at most 3 of 6 pods in one
}

// A type that is interrupted once in twenty hours, where that costs half a dollar, counts two and a half cents more.
func ExampleInterruptions() {
	o := plan.Objective{Interruptions: &plan.Interruptions{Cost: 0.5, PerHour: func(instanceType, zone string) (float64, bool) {
		return 0.05, instanceType == "m6a.large"
	}}}
	labels := requirements.MustParse("karpenter.sh/capacity-type=spot, node.kubernetes.io/instance-type=m6a.large")
	fmt.Println(o.Cost(labels, 0.03).Dollars())
	// Output: 0.055
}
