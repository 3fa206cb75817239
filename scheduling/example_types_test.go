package scheduling_test

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// A bundle is made of pods of several classes; any other item has pods of one class.
func ExampleItemPods() {
	item := scheduling.Item{Name: "pair", Count: 2, Pods: []scheduling.ItemPods{{Class: 0, Count: 1}, {Class: 3, Count: 2}}}
	pods := 0
	for _, part := range item.Pods {
		pods += item.Count * part.Count
	}
	fmt.Println(item.Count, "bundles of", pods, "pods in all")
	// Output: 2 bundles of 6 pods in all
}

// A class is pods that are equal in everything that bears on placement. An image does not bear on
// it; a node selector does.
func ExampleClass() {
	p, err := scheduling.Compile(scheduling.Snapshot{
		Pods: []*corev1.Pod{
			pod("web-0"),
			pod("web-1", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web:2" }),
			pod("arm-0", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: "arm64"} }),
		},
		Pools: []scheduling.Pool{pool("default")},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range p.Classes {
		fmt.Printf("%s: %d pods of %s cpu, where %q\n", c.Name(), len(c.Pods), c.Requests.Cpu(), c.Required)
	}
	// Output:
	// shop/arm-0: 1 pods of 1 cpu, where "kubernetes.io/arch in (arm64)"
	// shop/web-0: 2 pods of 1 cpu, where "anything"
}

// Pods of another scheduler are ignored, and the problem lists them with the reason.
func ExampleIgnored() {
	p, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{
		pod("batch-0", func(p *corev1.Pod) { p.Spec.SchedulerName = "batch" }),
		pod("gated-0", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}} }),
	}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range p.Ignored {
		fmt.Println(i.Pod.Name, "-", i.Why)
	}
	// Output:
	// batch-0 - scheduler "batch" places it
	// gated-0 - scheduling gate "example.com/quota"
}

// Manifests that were never sent to an API server may be wrong. All faults are reported at once.
func ExampleInvalidError() {
	require := func(operator corev1.NodeSelectorOperator) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: operator, Values: []string{"ssd"}}}}},
			}}}
		}
	}
	s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("db-0", require("in")), pod("web-0", require("Equals"))}}
	err := s.Validate()
	var invalid *scheduling.InvalidError
	fmt.Println(errors.As(err, &invalid), invalid.What)
	fmt.Println(err)
	// Output:
	// true pod shop/db-0
	// scheduling: pod shop/db-0: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: "in": want one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte (did you mean "In"?)
	// scheduling: pod shop/web-0: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: "Equals": want one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte
}

// A database follows the web servers onto their node. Pods that must share a node are packed as one
// item, which lists them.
func ExampleItem() {
	db := pod("db-0", func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "db"}
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		}}}
	})
	p, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0"), db}, Pools: []scheduling.Pool{pool("default")}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, item := range p.Items() {
		fmt.Println(item.Count, "x", item.Requests, "of", p.Resources)
		for _, part := range item.Pods {
			fmt.Println("  with", part.Count, "of", p.Classes[part.Class].Name())
		}
	}
	// Output:
	// 1 x [2000 2147483648 2] of [cpu memory pods]
	//   with 1 of shop/web-0
	//   with 1 of shop/db-0
}

// A node can give each host port to one pod. So the item has a tag, and a limit on others with that
// tag.
func ExampleLimit() {
	p, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{pod("proxy-0", func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	})}, Pools: []scheduling.Pool{pool("default")}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	item := p.Items()[0]
	fmt.Println("tags:", item.Tags)
	for _, l := range item.Limits {
		fmt.Println("at most", l.Max, "pod with", l.Tag)
	}
	// Output:
	// tags: [port TCP/80 port TCP/80 wildcard]
	// at most 1 pod with port TCP/80
}

// Nearest says what would have to change: a larger type, or smaller requests.
func ExampleNearest() {
	giant := pod("giant-0", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("12", "64Gi") })
	p, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{giant}, Pools: []scheduling.Pool{pool("default")}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, reason := range solve(p, nothing).Unplaced()[0].Reasons() {
		near := reason.Nearest
		fmt.Printf("%s lacks %d of %s\n", near.Type, near.Short[reason.Resource], reason.Resource)
	}
	// Output: large lacks 4000 of cpu
}

// A pool may still buy its limits less the nodes that it already has.
func ExamplePoolState() {
	limited := pool("default", func(p *nodepool.NodePool) {
		p.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10")}
	})
	owned := node("node-a", func(n *corev1.Node) { n.Labels[nodepool.LabelKey] = "default" })
	p, err := scheduling.Compile(scheduling.Snapshot{Nodes: []*corev1.Node{owned}, Pools: []scheduling.Pool{limited}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, room := range p.Pools {
		fmt.Println(room.Name, "may buy", room.Left, "more of", room.Limited, "- any number of nodes:", room.NodesLeft < 0)
	}
	// Output: default may buy [6000] more of [cpu] - any number of nodes: true
}

// Nobody sells zone-c, so the preference for it is given up. The one for small types is kept.
func ExampleResult_GivenUp() {
	picky := pod("web-0", func(p *corev1.Pod) {
		prefer := func(weight int32, key, value string) corev1.PreferredSchedulingTerm {
			return corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
			}}}
		}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			prefer(10, corev1.LabelTopologyZone, "zone-c"), prefer(50, corev1.LabelInstanceTypeStable, "small"),
		}}}
	})
	p, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{picky}, Pools: []scheduling.Pool{pool("default")}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	gone, kept := solve(p, onePerNode).GivenUp(picky)
	for _, g := range gone {
		fmt.Println("given up:", g)
	}
	for _, k := range kept {
		fmt.Println("kept:", k)
	}
	// Output:
	// given up: preferred node affinity: topology.kubernetes.io/zone in (zone-c)
	// kept: preferred node affinity: node.kubernetes.io/instance-type in (small)
}

// packing is a packer without state.
type packing func(*scheduling.Problem, []scheduling.Item) scheduling.Outcome

func (f packing) Pack(_ context.Context, p *scheduling.Problem, r scheduling.Round) (scheduling.Outcome, error) {
	return f(p, r.Items), nil
}

func solve(p *scheduling.Problem, f packing) *scheduling.Result {
	r, err := p.Solve(context.Background(), f) //nolint:forbidigo // for Examples, which have no t
	if err != nil {
		panic(err)
	}
	return r
}

// nothing places nothing.
func nothing(*scheduling.Problem, []scheduling.Item) scheduling.Outcome { return scheduling.Outcome{} }

// onePerNode is a simple, wasteful packer: each unit gets its own node, of the first shape and
// offering that suit it.
func onePerNode(p *scheduling.Problem, items []scheduling.Item) scheduling.Outcome {
	var out scheduling.Outcome
	for i, item := range items {
		for s, shape := range p.Shapes {
			o := suiting(shape, item)
			if o < 0 {
				continue
			}
			for range item.Count {
				out.Bins = append(out.Bins, scheduling.OutcomeBin{Shape: s, Offering: o, Shares: []scheduling.Share{{Item: i, Count: 1}}})
			}
			break
		}
	}
	return out
}

// suiting returns the first offering of the shape that holds one unit of the item, or -1.
func suiting(shape scheduling.Shape, item scheduling.Item) int {
	for r, n := range item.Requests {
		if n > shape.Free[r] {
			return -1
		}
	}
	for i, o := range shape.Offerings {
		labels, err := shape.Labels.Intersect(o.Labels)
		if err == nil && !item.Requires.Intersect(requirements.AnyOf(labels)).IsImpossible() {
			return i
		}
	}
	return -1
}

// A shape is a type as a pool offers it. Its offerings are the ways to buy it, each with a price.
func ExampleShapeOffering() {
	p, err := scheduling.Compile(scheduling.Snapshot{
		Pods:  []*corev1.Pod{pod("web-0", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "zone-a"} })},
		Pools: []scheduling.Pool{pool("default")},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range p.Shapes[0].Offerings {
		fmt.Printf("%s: offering %d at $%.2f an hour, %s\n", p.InstanceType(0).Name, o.Index, o.Price, o.Labels)
	}
	// Output:
	// small: offering 0 at $0.10 an hour, topology.kubernetes.io/zone in (zone-a)
	// small: offering 1 at $0.10 an hour, topology.kubernetes.io/zone in (zone-b)
	// small: offering 2 at $0.03 an hour, topology.kubernetes.io/zone in (zone-a)
}

// An existing node has free capacity, here four cores less the one of a running pod.
func ExampleExistingNode() {
	p, err := scheduling.Compile(scheduling.Snapshot{
		Nodes: []*corev1.Node{node("node-a")},
		Pods:  []*corev1.Pod{pod("web-0", on("node-a")), pod("web-1")},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, room := range p.Existing {
		fmt.Println(room.Node.Name, "has", room.Free, "free of", p.Resources)
	}
	// Output: node-a has [3000 16106127360 19] free of [cpu memory pods]
}

// A node to buy already has a name, labels and pods.
func ExampleNewNode() {
	p, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0"), pod("web-1")}, Pools: []scheduling.Pool{pool("default")}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range solve(p, asPacked(onePerNode)).NewNodes() {
		fmt.Printf("buy %s, a %s in %s at $%.2f, for %s\n", n.Name, n.InstanceType.Name, n.Zone, n.PricePerHour, n.Pods[0].Name)
	}
	// Output:
	// buy default-0, a small in zone-a at $0.10, for web-0
	// buy default-1, a small in zone-a at $0.10, for web-1
}

// Unplaced pods are listed by class, each with reasons: "cannot place" is a result, not an error.
func ExampleUnplaced() {
	giant := pod("giant-0", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("16", "1Gi") })
	p, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0"), giant}, Pools: []scheduling.Pool{pool("default")}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, u := range solve(p, onePerNode).Unplaced() {
		fmt.Println("no place for", u.Pods[0].Name, "-", u.Reasons()[0].Detail)
	}
	// Output: no place for giant-0 - 2 types: none is large enough; nearest large, short of 8 of cpu
}

// A shape is the capacity of a type less a pool's daemons: here an agent takes half a core of each
// node.
func ExampleShape() {
	agent := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "agent"}}
	agent.Spec.Template.Spec.Containers = []corev1.Container{{Name: "agent", Resources: corev1.ResourceRequirements{Requests: list("500m", "1Gi")}}}
	p, err := scheduling.Compile(scheduling.Snapshot{
		Pods: []*corev1.Pod{pod("web-0")}, Pools: []scheduling.Pool{pool("default")}, DaemonSets: []*appsv1.DaemonSet{agent},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, shape := range p.Shapes {
		names, _ := p.Daemons(i)
		fmt.Println(p.InstanceType(i).Name, "has", shape.Free[0], "of", p.Resources[0], "beside", names)
	}
	// Output:
	// small has 1500 of cpu beside [system/agent]
	// large has 7500 of cpu beside [system/agent]
}

// A result says where every pod goes, on existing nodes and on nodes to buy, in the order of
// binding.
func ExampleResult_Bindings() {
	p, err := scheduling.Compile(scheduling.Snapshot{
		Pods: []*corev1.Pod{pod("web-0"), pod("web-1")}, Nodes: []*corev1.Node{node("node-a")}, Pools: []scheduling.Pool{pool("default")},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	result := solve(p, func(*scheduling.Problem, []scheduling.Item) scheduling.Outcome {
		return scheduling.Outcome{
			AsPacked: true,
			Existing: [][]scheduling.Share{{{Item: 0, Count: 1}}},
			Bins:     []scheduling.OutcomeBin{{Shape: 0, Offering: 0, Shares: []scheduling.Share{{Item: 0, Count: 1}}}},
		}
	})
	var b scheduling.Binding
	for _, b = range result.Bindings() {
		fmt.Println(b.Pod.Name, "to", b.Node, "- which is to be bought:", b.New)
	}
	// Output:
	// web-0 to node-a - which is to be bought: false
	// web-1 to default-0 - which is to be bought: true
}
