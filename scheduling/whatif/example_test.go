package whatif_test

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// A cluster that was compiled once answers many questions. An answer leads to another version of
// it.
func ExampleCompile() {
	a, b := pod("web-0", "node-a", "3"), pod("web-1", "node-b", "3")
	c, err := whatif.Compile(scheduling.Snapshot{
		Nodes: []*corev1.Node{node("node-a", "z1", "8"), node("node-b", "z1", "8"), node("node-c", "z2", "4")},
		Pods:  []*corev1.Pod{a, b}, Pools: []scheduling.Pool{market()},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	first := c.Ask(context.Background(), whatif.Question{Remove: []string{"node-c"}})
	fmt.Println("without node-c:", first.OK())
	then := first.After()
	second := then.Ask(context.Background(), whatif.Question{Remove: []string{"node-a"}, Pods: []*corev1.Pod{a}})
	fmt.Println("and without node-a:", second.OK(), "on", second.Placements[0].Node)
	third := second.After().Ask(context.Background(), whatif.Question{Remove: []string{"node-b"}, Pods: []*corev1.Pod{a, b}})
	fmt.Println("and without node-b:", third.OK())
	// Output:
	// without node-c: true
	// and without node-a: true on node-b
	// and without node-b: false
}

// An answer lists the places of pods, and the nodes to buy with their alternatives.
func ExampleAnswer() {
	a, b := pod("web-0", "node-a", "2"), pod("web-1", "node-a", "3")
	c, err := whatif.Compile(scheduling.Snapshot{
		Nodes: []*corev1.Node{node("node-a", "z1", "16"), node("node-b", "z1", "2")}, Pods: []*corev1.Pod{a, b}, Pools: []scheduling.Pool{market()},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	answer := c.Ask(context.Background(), whatif.Question{Remove: []string{"node-a"}, Pods: []*corev1.Pod{a, b}, MaxNodes: 1, MaxPrice: 160_000_000})
	place := func(p whatif.Placement) string { return p.Pod.Name + " to " + p.Node }
	price := func(a whatif.Alternative) string {
		return fmt.Sprintf("%s would do, $%.2f", a.Type, float64(a.Price)/1e9)
	}
	for _, p := range answer.Placements {
		fmt.Println(place(p))
	}
	for _, n := range answer.Bought {
		fmt.Printf("%s: %s in %s, $%.2f an hour\n", n.Name, n.Type, n.Zone, float64(n.Price)/1e9)
		for _, a := range n.Alternatives {
			fmt.Println(" ", price(a))
		}
	}
	// Output:
	// web-0 to node-b
	// web-1 to default-0
	// default-0: m.4 in z1, $0.04 an hour
	//   m.8 would do, $0.08
}

// offZone keeps an app out of a zone.
type offZone struct{ app, zone string }

func (o offZone) Narrow(p *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
	if p.Labels["app"] != o.app {
		return required, nil
	}
	elsewhere := requirements.MustOf(requirements.NotIn(corev1.LabelTopologyZone, o.zone))
	return required.Intersect(requirements.AnyOf(elsewhere)), nil
}

// The caller's constraints hold as in package scheduling.
func ExampleOptions() {
	p := pod("web-0", "node-a", "1")
	s := scheduling.Snapshot{Nodes: []*corev1.Node{node("node-a", "z1", "4"), node("node-b", "z2", "4"), node("node-c", "z1", "4")}, Pods: []*corev1.Pod{p}}
	for _, opts := range []*whatif.Options{nil, {Constraints: []scheduling.Constraint{offZone{"web", "z2"}}}} {
		c, err := whatif.Compile(s, opts)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(c.Ask(context.Background(), whatif.Question{Remove: []string{"node-a"}, Pods: []*corev1.Pod{p}}).Placements[0].Node)
	}
	// Output:
	// node-b
	// node-c
}

// onePodANode is a custom buyer: each pod gets its own node, the cheapest that suits it.
type onePodANode struct{}

func (onePodANode) Buy(o whatif.Order) []whatif.Purchase {
	var out []whatif.Purchase
	for l, lot := range o.Lots {
		best, price := whatif.Purchase{}, 0.0
		for s, shape := range o.Problem.Shapes {
			for i, offering := range shape.Offerings {
				if o.Suits(l, s, i) && holds(shape, o.Problem.Classes[lot.Class]) && (price == 0 || offering.Price < price) {
					best, price = whatif.Purchase{Shape: s, Offering: i, Pods: []whatif.LotShare{{Lot: l, Count: 1}}}, offering.Price
				}
			}
		}
		for range lot.Count {
			if price > 0 && len(out) < o.MaxNodes {
				out = append(out, best)
			}
		}
	}
	return out
}

// holds compares only the CPU, which is the first resource.
func holds(shape scheduling.Shape, class *scheduling.Class) bool {
	return class.Requests.Cpu().MilliValue() <= shape.Free[0]
}

// Without a buyer, at most one node is bought. A buyer gets the pods in lots of equal pods and
// answers with purchases. They are checked when the pods are placed.
func ExampleBuyer() {
	pods := []*corev1.Pod{pod("web-0", "node-a", "3"), pod("web-1", "node-a", "3"), pod("web-2", "node-a", "3")}
	c, err := whatif.Compile(scheduling.Snapshot{Nodes: []*corev1.Node{node("node-a", "z1", "16")}, Pods: pods, Pools: []scheduling.Pool{market()}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, buyer := range []whatif.Buyer{nil, onePodANode{}} {
		a := c.Ask(context.Background(), whatif.Question{Remove: []string{"node-a"}, Pods: pods, MaxNodes: 5, Buyer: buyer})
		fmt.Println(a.OK(), len(a.Bought), "nodes")
	}
	// Output:
	// false 0 nodes
	// true 3 nodes
}

// decided is a buyer with a fixed answer.
type decided []whatif.Purchase

func (d decided) Buy(whatif.Order) []whatif.Purchase { return d }

// A purchase is a node to buy, by its position in the problem, and how many pods of each lot go
// there.
func ExamplePurchase() {
	pods := []*corev1.Pod{pod("web-0", "node-a", "3"), pod("web-1", "node-a", "3"), pod("web-2", "node-a", "3")}
	c, err := whatif.Compile(scheduling.Snapshot{Nodes: []*corev1.Node{node("node-a", "z1", "16")}, Pods: pods, Pools: []scheduling.Pool{market()}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	medium := slices.IndexFunc(c.Problem().Shapes, func(s scheduling.Shape) bool { return s.Free[0] == 4000 })
	large := slices.IndexFunc(c.Problem().Shapes, func(s scheduling.Shape) bool { return s.Free[0] == 8000 })
	buyer := decided{
		{Shape: large, Pods: []whatif.LotShare{{Lot: 0, Count: 2}}},
		{Shape: medium, Pods: []whatif.LotShare{{Lot: 0, Count: 1}}},
	}
	for _, n := range c.Ask(context.Background(), whatif.Question{Remove: []string{"node-a"}, Pods: pods, MaxNodes: 2, Buyer: buyer}).Bought {
		fmt.Println(n.Type, "for", len(n.Pods), "pods")
	}
	// Output:
	// m.8 for 2 pods
	// m.4 for 1 pods
}

// told records the orders that it gets, and buys nothing.
type told struct{ orders *[]whatif.Order }

func (t told) Buy(o whatif.Order) []whatif.Purchase {
	*t.orders = append(*t.orders, o)
	return nil
}

// An order has one lot for pods that must be placed in the same way, and says how many may share a
// node.
func ExampleOrder() {
	pods := []*corev1.Pod{pod("web-0", "node-a", "3", apart), pod("web-1", "node-a", "3", apart), pod("db-0", "node-a", "1", labelled("db"))}
	c, err := whatif.Compile(scheduling.Snapshot{Nodes: []*corev1.Node{node("node-a", "z1", "16")}, Pods: pods, Pools: []scheduling.Pool{market()}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var orders []whatif.Order
	c.Ask(context.Background(), whatif.Question{Remove: []string{"node-a"}, Pods: pods, MaxNodes: 3, MaxPrice: 120_000_000, Buyer: told{&orders}})
	fmt.Printf("at most %d nodes for less than $%.2f\n", orders[0].MaxNodes, float64(orders[0].MaxPrice)/1e9)
	name := func(l whatif.Lot) string { return orders[0].Problem.Classes[l.Class].Name() }
	for _, l := range orders[0].Lots {
		fmt.Println(l.Count, "of", name(l), "- to a node:", l.PerNode)
	}
	// Output:
	// at most 3 nodes for less than $0.12
	// 2 of shop/web-0 - to a node: 1
	// 1 of shop/db-0 - to a node: 0
}

// dividing gives the pods of the second and third lot to the first open node, and buys a node for the
// first lot. Without open nodes it buys one node for all pods.
type dividing struct{ small, large int }

func (d dividing) Buy(o whatif.Order) []whatif.Purchase {
	one := func(lots ...int) (out []whatif.LotShare) {
		for _, l := range lots {
			out = append(out, whatif.LotShare{Lot: l, Count: 1})
		}
		return out
	}
	if len(o.Open) == 0 {
		return []whatif.Purchase{{Shape: d.large, Pods: one(0, 1)}}
	}
	fmt.Println("open:", o.Open[0].Name, "with", o.Open[0].Free[0], "of", o.Problem.Resources[0])
	return []whatif.Purchase{{Node: o.Open[0].Name, Pods: one(1, 2)}, {Shape: d.small, Pods: one(0)}}
}

// Pods go to existing nodes first, the largest pod first. In a thorough question the buyer may divide
// them in another way, and here this costs less: node-b holds the two small pods instead of the large
// one.
func ExampleOpen() {
	pods := []*corev1.Pod{pod("web-0", "node-a", "4"), pod("web-1", "node-a", "3"), pod("web-2", "node-a", "2")}
	c, err := whatif.Compile(scheduling.Snapshot{Nodes: []*corev1.Node{node("node-a", "z1", "16"), node("node-b", "z1", "5")}, Pods: pods, Pools: []scheduling.Pool{market()}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	sized := func(cpu int64) int {
		return slices.IndexFunc(c.Problem().Shapes, func(s scheduling.Shape) bool { return s.Free[0] == cpu })
	}
	a := c.Ask(context.Background(), whatif.Question{Remove: []string{"node-a"}, Pods: pods, MaxNodes: 2, Buyer: dividing{sized(4000), sized(8000)}, Thorough: true})
	for _, p := range a.Placements {
		fmt.Println(p.Pod.Name, "on", p.Node)
	}
	fmt.Printf("for $%.2f\n", float64(a.Price)/1e9)
	// Output:
	// open: node-b with 5000 of cpu
	// web-1 on node-b
	// web-2 on node-b
	// web-0 on default-0
	// for $0.04
}

// A node to buy has a name that no node has, so that later questions can refer to it, and its pods.
func ExampleBought() {
	p := pod("web-0", "node-a", "3")
	c, err := whatif.Compile(scheduling.Snapshot{Nodes: []*corev1.Node{node("node-a", "z2", "16")}, Pods: []*corev1.Pod{p}, Pools: []scheduling.Pool{market()}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	a := c.Ask(context.Background(), whatif.Question{Remove: []string{"node-a"}, Pods: []*corev1.Pod{p}, MaxNodes: 1})
	n := a.Bought[0]
	fmt.Println(n.Name, n.Type, n.CapacityType, n.Pods[0].Name)
	again := a.After().Ask(context.Background(), whatif.Question{Remove: []string{n.Name}, Pods: n.Pods})
	fmt.Println("and without it:", again.OK())
	// Output:
	// default-0 m.4 on-demand web-0
	// and without it: false
}

// The objective need not be the price. Here each node has a licence of ten cents an hour, so one
// large node is cheaper than two.
func ExamplePrice() {
	a, b := pod("a", "node-a", "2"), pod("b", "node-a", "2")
	licensed := func(_ requirements.Set, pricePerHour float64) float64 { return pricePerHour + 0.1 }
	c, err := whatif.Compile(snapshot([]*corev1.Node{node("node-a", "z1", "8")}, a, b), &whatif.Options{Cost: licensed})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer := c.Ask(context.Background(), whatif.Question{Remove: []string{"node-a"}, Pods: []*corev1.Pod{a, b}, MaxNodes: 1})
	fmt.Printf("%s counts for $%.2f an hour\n", answer.Bought[0].Type, float64(answer.Price)/1e9)
	// Output: m.4 counts for $0.14 an hour
}

func ExamplePrice_String() {
	fmt.Println(whatif.Price(7_100_000_000), whatif.Price(5_800_000), whatif.Price(5_800_000).Dollars())
	// Output: $7.10 $0.0058 0.0058
}
