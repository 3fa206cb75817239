package plan_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// A plan is a list of commands: what to buy first, which pods go where, and what to give back then.
func ExampleCommand() {
	w := newWorld("node-a 8 3")
	for _, c := range planned(w.Cluster, w.toy, nil).Commands {
		for _, n := range c.NewNodes {
			fmt.Printf("buy %s: %s in %s for $%.2f an hour\n", n.Name, n.InstanceType, n.Zone, n.PricePerHour.Dollars())
		}
		for _, p := range c.Placements {
			fmt.Println("move", p.Pod.Name, "to", p.Node)
		}
		for _, n := range c.Nodes {
			fmt.Printf("give back %s, which saves $%.2f an hour (%s)\n", n.Name, c.SavingsPerHour.Dollars(), c.Method)
		}
	}
	// Output:
	// buy new-0: t3 in z for $0.03 an hour
	// move node-a-0 to new-0
	// move node-a-1 to new-0
	// move node-a-2 to new-0
	// give back node-a, which saves $0.05 an hour (consolidation)
}

// Every node has a verdict, also those that stay: why, and what would have to be different.
func ExampleVerdict() {
	w := newWorld("full 3 3", "half 4 2", "spare 4 2")
	w.node("half").Pods[0].Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
	for _, v := range planned(w.Cluster, w.toy, nil).Verdicts {
		fmt.Printf("%s (%s): %s\n", v.Node, v.Outcome, v.Detail)
		for _, b := range v.By {
			fmt.Println("  blocked by", b.Kind, "of", b.Pod)
		}
	}
	// Output:
	// full (no-saving): it costs $0.0300 an hour, and the cheapest found for its pods is t3 in z at $0.0300
	// half (blocked): shop/half-0: annotation karpenter.sh/do-not-disrupt=true
	//   blocked by pod-protected of shop/half-0
	// spare (chosen): consolidation: its pods fit on other nodes
}

// firstFit is a simulator of a user's own in a dozen lines: pods all have one size, nodes a number of free seats, and
// nothing can be bought.
type firstFit map[string]int

func (seats firstFit) Simulate(_ context.Context, q plan.Question) (plan.Answer, error) {
	after := firstFit{}
	for node, free := range seats {
		if !slices.Contains(q.Remove, node) {
			after[node] = free
		}
	}
	var a plan.Answer
	for _, pod := range q.Pods {
		node := after.first()
		if node == "" {
			return plan.Answer{Unplaced: []*corev1.Pod{pod}, Why: "all seats are taken"}, nil
		}
		after[node]--
		a.Placements = append(a.Placements, plan.Placement{Pod: pod, Node: node})
	}
	a.After = func() plan.Simulator { return after }
	a.Rebased = a.After
	return a, nil
}

// first is the first node by name that has a seat.
func (seats firstFit) first() string {
	for _, node := range slices.Sorted(maps.Keys(seats)) {
		if seats[node] > 0 {
			return node
		}
	}
	return ""
}

// A simulator says where pods fit. It is immutable: the state after an answer is another simulator.
func ExampleSimulator() {
	var sim plan.Simulator = firstFit{"node-a": 3, "node-b": 1}
	w := newWorld("node-a 4 1", "node-b 4 3")
	pods := w.node("node-a").Pods

	answer := ask(sim, plan.Question{Remove: []string{"node-a"}, Pods: pods})
	fmt.Println("fits:", answer.OK(), "- on", answer.Placements[0].Node)

	again := ask(answer.After(), plan.Question{Remove: []string{"node-b"}, Pods: pods})
	fmt.Println("fits:", again.OK(), "-", again.Why)

	for _, c := range planned(w.Cluster, sim, nil).Commands {
		fmt.Println(c.Kind, c.Nodes[0].Name)
	}
	// Output:
	// fits: true - on node-b
	// fits: false - all seats are taken
	// delete node-a
}

// An answer says where every pod goes, in an order in which they can be bound, or which pod is unplaced and why. After gives the cluster
// with the answer carried out; the simulator that was asked does not change.
func ExampleAnswer() {
	w := newWorld("node-a 4 1", "node-b 4 3")
	a := ask(w, plan.Question{Remove: []string{"node-a"}, Pods: w.node("node-a").Pods})
	line := func(p plan.Placement) string { return p.Pod.Name + " goes to " + p.Node }
	for _, p := range a.Placements {
		fmt.Println(line(p))
	}

	next := plan.Question{Remove: []string{"node-b"}, Pods: w.node("node-b").Pods}
	instead, besides := ask(w, next), ask(a.After(), next)
	fmt.Println("node-b can go instead:", instead.OK())
	fmt.Println("and besides:", besides.OK())
	// Output:
	// node-a-0 goes to node-b
	// node-b can go instead: true
	// and besides: false
}

// A question says which nodes go, which pods need a place, and what may be bought at which cost.
func ExampleQuestion() {
	w := newWorld("node-a 8 3", "node-b 4 3")
	q := plan.Question{Remove: []string{"node-a"}, Pods: w.node("node-a").Pods, MaxNodes: 1, MaxCost: deprovision.Dollars(0.08)}
	a := ask(w, q)
	for _, p := range a.Placements {
		fmt.Println(p.Pod.Name, "goes to", p.Node)
	}
	for _, n := range a.NewNodes {
		fmt.Printf("%s is a new %s for $%.2f an hour\n", n.Name, n.InstanceType, n.PricePerHour.Dollars())
	}
	q.MaxCost = deprovision.Dollars(0.01)
	fmt.Println(ask(w, q).Why)
	// Output:
	// node-a-0 goes to node-b
	// node-a-1 goes to new-0
	// node-a-2 goes to new-0
	// new-0 is a new t2 for $0.02 an hour
	// node-a-1: no room anywhere
}

// fleet buys from two families: the launch can fall back on the dearer one.
type fleet struct{}

func (fleet) Simulate(_ context.Context, q plan.Question) (plan.Answer, error) {
	n := plan.NewNode{
		Name: "new-1", Pool: "default", InstanceType: "m.large", Zone: "zone-a", CapacityType: "on-demand", PricePerHour: deprovision.Dollars(0.05), Pods: q.Pods,
		Alternatives: []plan.Alternative{{InstanceType: "m.large", PricePerHour: deprovision.Dollars(0.05)}, {InstanceType: "r.large", PricePerHour: deprovision.Dollars(0.07)}},
	}
	if n.PricePerHour >= q.MaxCost && q.Moves == nil {
		return plan.Answer{Unplaced: q.Pods}, nil
	}
	var moves []plan.Placement
	for _, p := range q.Pods {
		moves = append(moves, plan.Placement{Pod: p, Node: n.Name})
	}
	after := func() plan.Simulator { return fleet{} }
	return plan.Answer{NewNodes: []plan.NewNode{n}, Placements: moves, After: after, Rebased: after}, nil
}

// An alternative is what to launch where the first choice is sold out: it holds the same pods and still saves money.
func ExampleAlternative() {
	soldOut := []string{"m.large"}
	choices := []plan.Alternative{{InstanceType: "m.large", PricePerHour: deprovision.Dollars(0.05)}, {InstanceType: "r.large", PricePerHour: deprovision.Dollars(0.07)}}
	at := slices.IndexFunc(choices, func(a plan.Alternative) bool { return !slices.Contains(soldOut, a.InstanceType) })
	fmt.Printf("launch %s for $%.2f an hour\n", choices[at].InstanceType, choices[at].PricePerHour.Dollars())
	// Output: launch r.large for $0.07 an hour
}

// A new node lists what else would hold the same pods, for when the cloud has no more of the cheapest type.
func ExampleNewNode() {
	w := newWorld("node-a 8 3")
	n := planned(w.Cluster, fleet{}, nil).Commands[0].NewNodes[0]
	fmt.Println(n.Name, "in", n.Zone, "for", len(n.Pods), "pods")
	for _, a := range n.Alternatives {
		fmt.Printf("%s at $%.2f an hour\n", a.InstanceType, a.PricePerHour.Dollars())
	}
	// Output:
	// new-1 in zone-a for 3 pods
	// m.large at $0.05 an hour
	// r.large at $0.07 an hour
}

// frugal is the toy with what it knows without trying: a pod costs a cent an hour on whatever is bought, and nothing where
// there is room.
type frugal struct{ toy }

func (s frugal) Bound(q plan.Question) deprovision.Price {
	room := 0
	for node, free := range s.free {
		if !slices.Contains(q.Remove, node) {
			room += free
		}
	}
	return deprovision.Dollars(float64(max(0, len(q.Pods)-room)) / 100)
}

// Full nodes need not be tried: a simulator with bounds saves the questions, and the plan is the same.
func ExampleCostBound() {
	w := newWorld("a 4 4", "b 4 4", "c 4 4", "d 4 4")
	var bounded plan.CostBound = frugal{w.toy}
	least := bounded.Bound(plan.Question{Remove: []string{"a"}, Pods: w.node("a").Pods})
	fmt.Printf("at least $%.2f\n", least.Dollars())

	for _, sim := range []plan.Simulator{w.toy, frugal{w.toy}} {
		r := planned(w.Cluster, sim, nil)
		fmt.Println(len(r.Commands), "commands:", r.Questions, "questions,", r.Avoided, "avoided")
	}
	// Output:
	// at least $0.04
	// 0 commands: 12 questions, 0 avoided
	// 0 commands: 0 questions, 8 avoided
}

// Nodes that the cloud takes back go first, at any cost; without enough notice the command does not wait for the new node.
func ExampleMake_interruptions() {
	w := newWorld("spot-a 2 2", "spot-b 2 2")
	w.Interruptions = []deprovision.Interruption{
		{Node: "spot-a", Deadline: now().Add(30 * time.Second), Why: "spot interruption warning"},
		{Node: "spot-b", Deadline: now().Add(24 * time.Hour), Why: "scheduled maintenance"},
	}
	opts := &plan.Options{Methods: []eligibility.Method{eligibility.Interruption}}
	for _, c := range planned(w.Cluster, w.toy, opts).Commands {
		fmt.Printf("%s %s, at once: %t: %s\n", c.Kind, c.Nodes[0].Name, c.AtOnce, c.Why)
	}
	// Output:
	// replace spot-a, at once: true: spot interruption warning
	// replace spot-b, at once: false: scheduled maintenance
}

// A cluster is plain data: nodes with their pods and what they cost, pools, budgets, and the moment for which to plan.
func ExampleMake_cluster() {
	quiet := 5 * time.Minute
	pool := nodepool.NodePool{Name: "default", APIVersion: nodepool.V1, Disruption: nodepool.Disruption{Policy: nodepool.WhenEmpty, ConsolidateAfter: &quiet}}
	created := metav1.NewTime(now().Add(-24 * time.Hour))
	c := deprovision.Cluster{
		Nodes: []eligibility.Node{{
			Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "idle", CreationTimestamp: created}}, Pool: &pool,
			InstanceType: "m.large", Zone: "zone-a", CapacityType: "on-demand", PricePerHour: deprovision.Dollars(0.1), Priced: true,
		}},
		Pools: []nodepool.NodePool{pool},
		Now:   now(),
	}
	r := planned(c, firstFit{}, nil)
	fmt.Printf("%s: %s, from $%.2f to $%.2f an hour\n", r.Verdicts[0].Node, r.Verdicts[0].Detail, r.PricePerHour.Dollars(), r.PricePerHourAfter.Dollars())
	// Output: idle: emptiness: nothing runs there that would have to move, from $0.10 to $0.00 an hour
}

// A command deletes nodes, or replaces them by others that have to be there first.
func ExampleKind() {
	w := newWorld("node-a 4 1", "node-b 4 3", "node-c 8 7")
	steps := map[plan.Kind]string{plan.Delete: "drain, give back", plan.Replace: "buy, wait, drain, give back"}
	for _, c := range planned(w.Cluster, w.toy, nil).Commands {
		fmt.Println(c.Nodes[0].Name+":", steps[c.Kind])
	}
	// Output:
	// node-a: drain, give back
	// node-b: buy, wait, drain, give back
}

// Outcomes can be counted: how many nodes stay, and for which reason.
func ExampleOutcome() {
	w := newWorld("full-1 3 3", "full-2 3 3", "spare 4 1", "half 4 2")
	count := map[plan.Outcome]int{}
	for _, v := range planned(w.Cluster, w.toy, nil).Verdicts {
		count[v.Outcome]++
	}
	fmt.Println(count[plan.Chosen], "chosen,", count[plan.NoSaving], "without a saving,", count[plan.Blocked], "blocked")
	// Output: 2 chosen, 2 without a saving, 0 blocked
}

// One objective weighs savings and disruption: here an eviction costs ten cents, and a saving counts for an hour.
func ExampleObjective() {
	w := newWorld("a 40 1", "b 4 3", "c 8 4")
	dear := plan.Objective{DisruptionPrice: deprovision.Dollars(0.1), Horizon: time.Hour}
	for _, o := range []plan.Objective{{DisruptionPrice: -1}, dear} {
		r := planned(w.Cluster, w.toy, &plan.Options{Objective: o})
		fmt.Printf("from $%.2f to $%.2f an hour, %d pods move\n", r.PricePerHour.Dollars(), r.PricePerHourAfter.Dollars(), r.Evictions)
	}
	// Output:
	// from $0.52 to $0.08 an hour, 4 pods move
	// from $0.52 to $0.12 an hour, 1 pods move
}

// The frontier shows what fewer evictions would save, so that a bound can be chosen.
func ExampleFrontier() {
	w := newWorld("a 40 1", "b 30 2", "c 20 3", "d 8 4", "e 8 4")
	points, err := plan.Frontier(context.Background(), w.Cluster, w.toy, nil, 1, 3, 6)
	if err != nil {
		fmt.Println(err)
	}
	for _, p := range points {
		fmt.Printf("%d nodes with %d pods save $%.2f an hour\n", p.Nodes, p.Evictions, p.SavingsPerHour.Dollars())
	}
	r := planned(w.Cluster, w.toy, &plan.Options{MaxEvictions: 3})
	fmt.Printf("%d pods move to save $%.2f\n", r.Evictions, (r.PricePerHour - r.PricePerHourAfter).Dollars())
	// Output:
	// 1 nodes with 1 pods save $0.40 an hour
	// 2 nodes with 3 pods save $0.70 an hour
	// 3 nodes with 6 pods save $0.90 an hour
	// 4 nodes with 10 pods save $0.92 an hour
	// 3 pods move to save $0.70
}

// A point is a saving for so many evictions: here each costs less than it brings.
func ExamplePoint() {
	p := plan.Point{SavingsPerHour: deprovision.Dollars(0.4), Evictions: 4, Nodes: 1}
	fmt.Printf("$%.2f an hour for each eviction\n", p.SavingsPerHour.Dollars()/float64(p.Evictions))
	// Output: $0.10 an hour for each eviction
}

// thrifty is the toy with a dual price of a cent for a pod: it retains nodes that cost less than their pods at that price.
type thrifty struct{ toy }

func (thrifty) Choose(nodes []plan.NodeChoice, cases int) [][]bool {
	out := make([][]bool, cases)
	for k := range out {
		for _, n := range nodes {
			out[k] = append(out[k], deprovision.Dollars(0.01*float64(len(n.Pods))) >= n.Costs[k])
		}
	}
	return out
}

// A simulator with dual prices says which nodes to retain; a plan then looks at those sets of nodes.
func ExampleRetentionHint() {
	var sim plan.RetentionHint = thrifty{}
	w := newWorld("a 4 4", "b 4 1")
	var nodes []plan.NodeChoice
	for _, name := range []string{"a", "b"} {
		n := w.node(name)
		nodes = append(nodes, plan.NodeChoice{Node: name, Pods: n.Pods, Costs: []deprovision.Price{n.PricePerHour, n.PricePerHour - deprovision.Dollars(0.03)}})
	}
	fmt.Println("for their price:", sim.Choose(nodes, 2)[0])
	fmt.Println("if moving pods costs three cents an hour:", sim.Choose(nodes, 2)[1])
	// Output:
	// for their price: [true false]
	// if moving pods costs three cents an hour: [true true]
}

// A method that there is not is a mistake of the caller.
func ExampleUnknownMethodError() {
	w := newWorld("a 4 0")
	_, err := plan.Make(context.Background(), w.Cluster, w.toy, &plan.Options{Methods: []eligibility.Method{"consolidate"}})
	fmt.Println(err)
	// Output: deprovision: there is no method "consolidate"
}

// A case is a price of disruption: at a price of a cent for a pod, retaining a node is worth that much more.
func ExampleNodeChoice() {
	n := plan.NodeChoice{Node: "a", Costs: []deprovision.Price{deprovision.Dollars(0.04), deprovision.Dollars(0.04) - deprovision.Dollars(0.01)}}
	fmt.Printf("$%.2f and $%.2f an hour\n", n.Costs[0].Dollars(), n.Costs[1].Dollars())
	// Output: $0.04 and $0.03 an hour
}
