package survive_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/survive"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// shop is three pods, one in each zone, that fill machines of four CPUs at a dollar.
func shop(ctx context.Context) (*plan.Plan, error) {
	t := instancetypes.InstanceType{
		Name: "m.four", Requirements: requirements.MustParse("node.kubernetes.io/instance-type=m.four"),
		Capacity: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("20")},
	}
	for _, zone := range []string{"a", "b", "c"} {
		t.Offerings = append(t.Offerings, instancetypes.Offering{Price: 1, Available: true, Requirements: requirements.MustParse("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone=" + zone)})
	}
	s := scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "pool", APIVersion: nodepool.V1}, Types: []instancetypes.InstanceType{t}}}}
	for _, zone := range []string{"a", "b", "c"} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-" + zone, Labels: map[string]string{"app": "web"}}}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", Controller: new(true)}}
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("4")}}}}
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
		}}
		s.Pods = append(s.Pods, p)
	}
	return plan.Make(ctx, s, nil)
}

func ExampleOf() {
	p, err := shop(context.Background())
	if err != nil {
		panic(err)
	}
	report, err := survive.Of(context.Background(), p, nil, []survive.Kind{survive.Zone})
	if err != nil {
		panic(err)
	}
	for _, o := range report.Failures {
		fmt.Printf("%s: %d displaced, %d wait, %d lost\n", o.Failure, o.Displaced, len(o.Waiting), len(o.Lost))
	}
	for _, w := range report.Workloads {
		fmt.Printf("%s: at worst %d of %d wait after the loss of %s\n", w.Workload, w.Waiting, w.Pods, w.Worst)
	}
	fmt.Printf("headroom for $%.2f, not below $%.2f\n", report.Headroom.PricePerHour, report.Headroom.LowerBoundPerHour)
	// Output:
	// zone a: 1 displaced, 1 wait, 0 lost
	// zone b: 1 displaced, 1 wait, 0 lost
	// zone c: 1 displaced, 1 wait, 0 lost
	// StatefulSet shop/web: at worst 1 of 3 wait after the loss of zone a
	// headroom for $2.00, not below $2.00
}

func ExampleHeadroom_Buffers() {
	p, err := shop(context.Background())
	if err != nil {
		panic(err)
	}
	report, err := survive.Of(context.Background(), p, nil, []survive.Kind{survive.Node})
	if err != nil {
		panic(err)
	}
	for _, b := range report.Headroom.Buffers("platform") {
		fmt.Println(b.Object.Name, *b.Object.Replicas, b.Template.Template.Spec.NodeSelector)
	}
	// Output:
	// headroom-pool-m-four-a-on-demand 1 map[karpenter.sh/capacity-type:on-demand karpenter.sh/nodepool:pool node.kubernetes.io/instance-type:m.four topology.kubernetes.io/zone:a]
}
