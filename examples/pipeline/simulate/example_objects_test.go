package simulate_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// A cluster of Go objects, such as those of a client's cache, needs no manifests. NodeClaims and
// PodDisruptionBudgets go into Objects; here there are none.
func ExampleObjects() {
	now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi")}
	large := instancetypes.New("m.large", nil, size, instancetypes.Offer("zone-a", instancetypes.CapacityTypeOnDemand, 0.2))
	pool := scheduling.Pool{NodePool: nodepool.New("default"), Types: []instancetypes.InstanceType{large}}
	s := scheduling.Snapshot{Pools: []scheduling.Pool{pool}}
	for _, name := range []string{"node-a", "node-b"} {
		node := large.Node(name, large.Offerings[0], pool.PoolLabels())
		node.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
		yes := true
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web-on-" + name,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1", Controller: &yes}},
			},
			Spec: corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{
				Name: "web", Image: "web", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			}}},
		}
		s.Nodes, s.Pods = append(s.Nodes, node), append(s.Pods, pod)
	}

	sim, nominated, err := simulate.New(s)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := giveback.Make(context.Background(), simulate.Objects{}.Cluster(s, nominated, now), sim, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range r.Commands {
		fmt.Printf("%s %s: %s, saves %s an hour\n", c.Kind, c.Nodes[0].Name, c.Why, c.SavingsPerHour)
	}
	// Output: delete node-a: its pods fit on other nodes, saves $0.20 an hour
}
