package pipeline_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Which nodes do six pods need, and can it be had for less?
func Example() {
	types, _ := ec2.Catalogue("us-east-1")
	pool := nodepool.NodePool{Name: "default", Requirements: requirements.MustParse(
		"karpenter.k8s.aws/instance-family in (c6a,m6a), karpenter.sh/capacity-type=on-demand")}
	pod := corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("2Gi")},
	}}}}}
	s := scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: pool, Types: types}}}
	for i := range 6 {
		pod.ObjectMeta = metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}
		s.Pods = append(s.Pods, pod.DeepCopy())
	}
	plan, _ := pipeline.Run(s, nil, nil)
	nodes, _ := plan.NewNodes()
	for _, n := range nodes {
		fmt.Printf("%s %s %s $%.4f: %d pods\n", n.Name, n.InstanceType.Name, n.Zone, n.PricePerHour, len(n.Pods))
	}
	fmt.Printf("$%.4f an hour, proven not below $%.4f\n", plan.Cost().Dollars(), plan.Plan.Bound.Price.Dollars())
	// Output:
	// default-0 c6a.2xlarge us-east-1a $0.3060: 5 pods
	// default-1 c6a.large us-east-1a $0.0765: 1 pods
	// $0.3825 an hour, proven not below $0.3825
}
