package capacity_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan/capacity"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// web is a pod of so many CPUs.
func web(name, cpu string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
	return p
}

// cluster is one node of four CPUs, with a pool that sells more of them for a dollar an hour.
func cluster() scheduling.Snapshot {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "first", Labels: map[string]string{corev1.LabelHostname: "first"}}}
	node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("20")}
	return scheduling.Snapshot{Nodes: []*corev1.Node{node}, Pools: []scheduling.Pool{{
		NodePool: nodepool.NodePool{Name: "pool"},
		Types: []instancetypes.InstanceType{{
			Name: "four", Requirements: requirements.MustParse("node.kubernetes.io/instance-type=four"), Capacity: node.Status.Allocatable,
			Offerings: []instancetypes.Offering{{Price: 1, Available: true, Requirements: requirements.MustParse("topology.kubernetes.io/zone=z, karpenter.sh/capacity-type=on-demand")}},
		}},
	}}}
}

func Example() {
	ctx := context.Background()
	state, err := capacity.New(ctx, cluster(), nil)
	if err != nil {
		panic(err)
	}
	for _, pod := range []*corev1.Pod{web("a", "3"), web("b", "2"), web("c", "40")} {
		answer, err := state.Ask(ctx, []*corev1.Pod{pod})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s, $%.2f, not below $%.2f\n", pod.Name, answer.Kind, answer.PricePerHour, answer.LowerBoundPerHour)
		for refusal := range answer.Refusals(ctx) {
			fmt.Println(" ", refusal.Reasons[0].Detail)
			for _, fix := range refusal.Fixes {
				fmt.Println(" ", fix.Text)
			}
		}
		if answer.Kind == capacity.Impossible {
			continue
		}
		if state, err = answer.Commit(); err != nil { // the next pod finds what this one leaves
			panic(err)
		}
	}
	// Output:
	// a: fits, $0.00, not below $0.00
	// b: buy, $1.00, not below $1.00
	// c: impossible, $0.00, not below $0.00
	//   1 type: none is large enough; nearest four, short of 36 of cpu
	//   would fit if it requested no more than 4 cpu, as four has, for at most $1.00/h more
}

func ExampleState_Learn() {
	ctx := context.Background()
	state, err := capacity.New(ctx, cluster(), nil)
	if err != nil {
		panic(err)
	}
	template := web("template", "1")
	fmt.Println(state.Knows(template))
	state = state.Learn(template) // once for each kind of pod
	fmt.Println(state.Knows(web("another", "1")), state.Knows(web("larger", "2")))
	answer, err := state.Ask(ctx, []*corev1.Pod{web("another", "1")})
	fmt.Println(answer.Places[0].Node, err)
	// Output:
	// false
	// true false
	// first <nil>
}

func ExampleAnswer_Commit() {
	ctx := context.Background()
	state, err := capacity.New(ctx, cluster(), &capacity.Options{Like: []*corev1.Pod{web("template", "3")}})
	if err != nil {
		panic(err)
	}
	answer, err := state.Ask(ctx, []*corev1.Pod{web("a", "3")})
	if err != nil {
		panic(err)
	}
	after, err := answer.Commit()
	if err != nil {
		panic(err)
	}
	for _, s := range []*capacity.State{state, after} { // the state that was asked is as it was
		again, err := s.Ask(ctx, []*corev1.Pod{web("b", "3")})
		fmt.Println(again.Kind, again.Places[0].Node, err)
	}
	// Output:
	// fits first <nil>
	// buy pool-0 <nil>
}
