package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Pods that must be together by zone go where existing nodes have room for all of them, however tightly the first would fit elsewhere. Where no
// zone has room for all, the one is taken in which the rest costs least.
func TestPodsTogetherChooseRoomForAll(t *testing.T) {
	sized := func(cpu int) corev1.ResourceList {
		return corev1.ResourceList{"cpu": *resource.NewQuantity(int64(cpu), resource.DecimalSI), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("50")}
	}
	for pods := 1; pods <= 8; pods++ {
		for a := 1; a <= 4; a++ { // cores that are free in zone a, where nodes are dearer
			s := scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: nodepool.New("default"), Types: []instancetypes.InstanceType{
				instancetypes.New("one", nil, sized(1), instancetypes.Offer("a", "on-demand", 0.2), instancetypes.Offer("b", "on-demand", 0.1)),
			}}}}
			for zone, cpu := range map[string]int{"a": a, "b": 4} {
				s.Nodes = append(s.Nodes, &corev1.Node{
					ObjectMeta: metav1.ObjectMeta{Name: zone, Labels: map[string]string{corev1.LabelHostname: zone, corev1.LabelTopologyZone: zone}},
					Status:     corev1.NodeStatus{Allocatable: sized(cpu), Capacity: sized(cpu), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
				})
			}
			for i := range pods {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", i), Labels: map[string]string{"app": "web"}}}
				p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
				p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
				}}}}
				s.Pods = append(s.Pods, p)
			}
			p, err := plan.Make(t.Context(), s, nil)
			require.NoError(t, err)
			require.Len(t, p.Bindings(), pods)
			best := min(0.2*float64(max(0, pods-a)), 0.1*float64(max(0, pods-4)))
			require.InDelta(t, best, p.Cost().Dollars(), 1e-9, "%d pods, %d cores free in zone a", pods, a)
		}
	}
}
