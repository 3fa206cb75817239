package headroom_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/headroom"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/buffer"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func web(name, cpu string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}}}
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
	return p
}

// cluster is a node of four CPUs, and a pool that sells as many more of them as its limit allows, for a dollar an hour.
func cluster(limit string, pods ...*corev1.Pod) scheduling.Snapshot {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "first", Labels: map[string]string{corev1.LabelHostname: "first", corev1.LabelTopologyZone: "z"}}}
	node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("20")}
	pool := nodepool.NodePool{Name: "pool"}
	if limit != "" {
		pool.Limits = corev1.ResourceList{"cpu": resource.MustParse(limit)}
	}
	return scheduling.Snapshot{Pods: pods, Nodes: []*corev1.Node{node}, Pools: []scheduling.Pool{{
		NodePool: pool,
		Types: []instancetypes.InstanceType{{
			Name: "four", Requirements: requirements.MustParse("node.kubernetes.io/instance-type=four"), Capacity: node.Status.Allocatable,
			Offerings: []instancetypes.Offering{{Price: 1, Available: true, Requirements: requirements.MustParse("topology.kubernetes.io/zone=z, karpenter.sh/capacity-type=on-demand")}},
		}},
	}}}
}

// request is a buffer of so many pods, each of so many CPUs.
func request(name string, pods int, cpu string) headroom.Request {
	b := buffer.Buffer{Namespace: "shop", Name: name}
	return headroom.Request{Name: b.String(), Pods: b.Pods(&corev1.PodTemplateSpec{Spec: web("", cpu).Spec}, pods)}
}

func Example() {
	ctx := context.Background()
	packed, err := plan.Make(ctx, cluster("8", web("web-0", "2")), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	rooms, err := headroom.Plan(ctx, packed, []headroom.Request{request("small", 2, "1"), request("large", 3, "3")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range rooms {
		fmt.Printf("%s: %s, $%.0f an hour, not below $%.0f\n", r.Name, r.Condition().Reason, r.PricePerHour, r.LowerBoundPerHour)
		if r.Waiting > 0 {
			fmt.Println(" ", r.Why)
			fmt.Println(" ", r.Fix)
		}
	}
	// Output:
	// shop/small: FitsExistingCapacity, $0 an hour, not below $0
	// shop/large: Infeasible, $2 an hour, not below $2
	//   pool "pool": the limit of 8 cpu leaves 0; the smallest type that holds it, four, counts 4; existing nodes (1): 1 short of cpu
	//   would fit if pool "pool" had a limit of 12 cpu, for at most $1.00/h more
}

// Pods come first: a buffer has what they leave, no two buffers share room, and the plan stays as it was.
func TestRoomIsNotShared(t *testing.T) {
	for name, c := range map[string]struct {
		pods     []*corev1.Pod
		requests []headroom.Request
		want     []buffer.Standing
		nodes    []int
	}{
		"the node is free":       {nil, []headroom.Request{request("a", 2, "2")}, []buffer.Standing{{Existing: 2}}, []int{0}},
		"a pod takes its room":   {[]*corev1.Pod{web("p", "3")}, []headroom.Request{request("a", 2, "2")}, []buffer.Standing{{New: 2}}, []int{1}},
		"one takes the other's":  {nil, []headroom.Request{request("a", 2, "2"), request("b", 1, "1")}, []buffer.Standing{{Existing: 2}, {New: 1}}, []int{0, 1}},
		"in what another bought": {nil, []headroom.Request{request("a", 1, "4"), request("b", 1, "3"), request("c", 1, "1")}, []buffer.Standing{{Existing: 1}, {New: 1}, {New: 1}}, []int{0, 1, 0}},
		"in what the plan buys":  {[]*corev1.Pod{web("p", "4"), web("q", "2")}, []headroom.Request{request("a", 1, "2")}, []buffer.Standing{{New: 1}}, []int{0}},
		"nothing is asked for":   {nil, []headroom.Request{{Name: "shop/a", Why: "there is no PodTemplate \"x\""}}, []buffer.Standing{{Why: "there is no PodTemplate \"x\""}}, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			packed, err := plan.Make(t.Context(), cluster("", c.pods...), nil)
			require.NoError(t, err)
			before := len(packed.NewNodes())
			rooms, err := headroom.Plan(t.Context(), packed, c.requests)
			require.NoError(t, err)
			require.Len(t, rooms, len(c.want))
			for i := range rooms {
				assert.Equal(t, c.want[i], rooms[i].Standing, rooms[i].Name)
				assert.Len(t, rooms[i].Nodes, c.nodes[i], rooms[i].Name)
				assert.Len(t, rooms[i].Places, c.want[i].Existing+c.want[i].New, rooms[i].Name)
				assert.LessOrEqual(t, rooms[i].LowerBoundPerHour, rooms[i].PricePerHour)
			}
			assert.Len(t, packed.NewNodes(), before)
		})
	}
}
