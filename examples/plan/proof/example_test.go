package proof_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/proof"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// A plan with its proof is a document of plain data: examples/check reads it from stdin.
func ExampleDocument() {
	size := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("58")}
	box := instancetypes.InstanceType{Name: "box", Capacity: size, Requirements: requirements.MustParse("node.kubernetes.io/instance-type=box"), Offerings: []instancetypes.Offering{
		{Requirements: requirements.MustParse("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone=zone-a"), Price: 0.2, Available: true},
	}}
	s := scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "default"}, Types: []instancetypes.InstanceType{box}}}}
	for i := range 3 {
		s.Pods = append(s.Pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("3")},
			}}}},
		})
	}
	p, err := plan.Make(context.Background(), s, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := proof.Of(p)
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes, _ := json.Marshal(d.NewNodes[0])
	fmt.Println(string(nodes))
	fmt.Println(d.CostPerHour, "is paid, and no plan costs less than", d.Bound.CostPerHour)
	// Output:
	// {"name":"default-0","labels":{"karpenter.sh/capacity-type":["on-demand"],"topology.kubernetes.io/zone":["zone-a"]},"pods":["shop/web-0"]}
	// 600000000 is paid, and no plan costs less than 600000000
}

// A checker confirms a plan by ending with 0. This one is never convinced.
func ExampleConfirm() {
	p, err := plan.Make(context.Background(), scheduling.Snapshot{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(proof.Confirm(context.Background(), "false", p, io.Discard))
	// Output: proof: the checker does not confirm the plan: exit status 1
}
