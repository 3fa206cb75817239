package kubejudge_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
)

func ExampleJudge() {
	s := kubejudge.Scenario{
		Nodes: []*corev1.Node{node("a1", "zone-a"), node("b1", "zone-b")},
		Pods:  pods(3, "web", spread(corev1.LabelTopologyZone)),
	}
	verdict, err := kubejudge.Judge(context.Background(), s, plan("web-0", "a1", "web-1", "a1", "web-2", "b1"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(verdict.Valid())
	fmt.Println(verdict)
	// Output:
	// false
	// 2 of 3 binds accepted
	// #1 default/web-1 -> a1: PodTopologySpread: node(s) didn't match pod topology spread constraints
}

func ExampleJudgeAnyOrder() {
	s := kubejudge.Scenario{
		Nodes: []*corev1.Node{node("a1", "zone-a"), node("b1", "zone-b")},
		Pods:  pods(3, "web", spread(corev1.LabelTopologyZone)),
	}
	verdict, err := kubejudge.JudgeAnyOrder(context.Background(), s, plan("web-0", "a1", "web-1", "a1", "web-2", "b1"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, b := range verdict.Accepted {
		fmt.Println(b)
	}
	// Output:
	// default/web-0 -> a1
	// default/web-2 -> b1
	// default/web-1 -> a1
}

func ExampleFree() {
	s := kubejudge.Scenario{
		Nodes: []*corev1.Node{node("a1", "zone-a"), node("b1", "zone-b")},
		Pods:  pods(9, "web"),
	}
	verdict, err := kubejudge.Free(context.Background(), s, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.0f%% bound\n", 100*verdict.Share())
	fmt.Println(verdict.Refused[0].Message)
	// Output:
	// 89% bound
	// Insufficient cpu
}
