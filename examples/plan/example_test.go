package plan_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Pods, pools and nodes in, plan out.
func Example() {
	p, err := plan.Make(context.Background(), scheduling.Snapshot{Pods: pods(6), Pools: pools()}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range p.NewNodes() {
		fmt.Printf("buy %s: %s in %s at $%.4f an hour\n", n.Name, n.InstanceType.Name, n.Zone, n.PricePerHour)
	}
	for _, b := range p.Bindings() {
		fmt.Println("bind", b.Pod.Name, "to", b.Node)
	}
	for _, u := range p.Unplaced() {
		fmt.Println("no place for", len(u.Pods), "pods:", u.Reasons())
	}
	for _, i := range p.Ignored() {
		fmt.Println("not ours to place:", i.Pod.Name, i.Why)
	}
	fmt.Printf("$%.4f an hour; no plan for these pods costs less than $%.4f\n", p.Cost().Dollars(), p.Bound.Price.Dollars())
	// Output:
	// buy default-0: c6a.2xlarge in us-east-1a at $0.3060 an hour
	// buy default-1: c6a.large in us-east-1a at $0.0765 an hour
	// bind web-0 to default-0
	// bind web-1 to default-0
	// bind web-2 to default-0
	// bind web-3 to default-0
	// bind web-4 to default-0
	// bind web-5 to default-1
	// $0.3825 an hour; no plan for these pods costs less than $0.3825
}

// pools returns what may be bought: here any type of two families, on demand.
func pools() []scheduling.Pool {
	types, _ := ec2.Catalogue("us-east-1")
	return []scheduling.Pool{{Types: types, NodePool: nodepool.New("default",
		requirements.In("karpenter.k8s.aws/instance-family", "c6a", "m6a"), requirements.In("karpenter.sh/capacity-type", "on-demand"))}}
}

// pods returns n pods in the form in which an informer or a client lists them.
func pods(n int) []*corev1.Pod {
	out := make([]*corev1.Pod, n)
	for i := range out {
		out[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("2Gi")},
			}}}},
		}
	}
	return out
}
