package rulecost_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/rulecost"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// What the rules of a pool cost a month, with the interval in which the best plans differ.
func ExampleReport() {
	types, _ := ec2.Catalogue("us-east-1")
	s := scheduling.Snapshot{Pools: []scheduling.Pool{{Types: types, NodePool: nodepool.NodePool{Name: "default", Requirements: requirements.MustParse(
		"karpenter.k8s.aws/instance-category in (c,m,r), karpenter.sh/capacity-type=on-demand, kubernetes.io/arch=amd64, kubernetes.io/os=linux")}}}}
	for i := range 6 {
		s.Pods = append(s.Pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("2Gi")},
			}}}},
		})
	}
	p, err := plan.Make(context.Background(), s, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := rulecost.Of(context.Background(), p, s, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range report.Rules {
		fmt.Printf("$%.0f a month, between $%.0f and $%.0f (%s): %s\n", 730*c.PerHour, 730*c.LowPerHour, 730*c.HighPerHour, c.State, c.Rules[0])
	}
	// Output:
	// $172 a month, between $172 and $172 (verified): NodePool default: karpenter.sh/capacity-type in (on-demand)
	// $115 a month, between $115 and $115 (verified): NodePool default: karpenter.k8s.aws/instance-category in (c,m,r)
	// $31 a month, between $31 and $31 (verified): NodePool default: kubernetes.io/arch in (amd64)
}

// A rule is lifted from a copy of the snapshot.
func ExampleRule() {
	s := scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "default", Requirements: requirements.MustParse("kubernetes.io/arch=amd64")}}}}
	rule := rulecost.Rule{Kind: rulecost.Requirement, Owner: "NodePool default", Key: "kubernetes.io/arch", Text: "kubernetes.io/arch in (amd64)"}
	fmt.Println(rule)
	fmt.Println(rule.Lift(s).Pools[0].Requirements.IsAnything(), s.Pools[0].Requirements)
	// Output:
	// NodePool default: kubernetes.io/arch in (amd64)
	// true kubernetes.io/arch in (amd64)
}
