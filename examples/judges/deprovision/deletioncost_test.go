package deprovision_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/controller"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/deletioncost"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// The order in which Kubernetes' own ReplicaSet controller deletes running pods of different age is that of the nodes that should go.
func TestReplicaSetsShedWhatShouldGo(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	moved := 0
	for range 300 {
		pool := nodepool.NodePool{APIVersion: nodepool.V1, Name: "default", Disruption: nodepool.Disruption{Policy: nodepool.WhenEmptyOrUnderutilized, ConsolidateAfter: new(time.Duration)}}
		c := deprovision.Cluster{Now: now(), Pools: []nodepool.NodePool{pool}}
		var all []*corev1.Pod
		for i := range 2 + rng.IntN(5) {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}}
			if rng.IntN(4) == 0 {
				n.Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
			}
			var pods []*corev1.Pod
			for k := range 1 + rng.IntN(3) {
				since := metav1.NewTime(c.Now.Add(-time.Duration(1+rng.IntN(1_000_000)) * time.Second))
				pods = append(pods, &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d-%d", i, k), CreationTimestamp: since, OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: new(true)}}},
					Spec:       corev1.PodSpec{NodeName: n.Name},
					Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since}}},
				})
			}
			x := eligibility.FromNode(n, pods, &c.Pools[0], deprovision.Dollars(0.1+rng.Float64()))
			x.Claim.Deleting = rng.IntN(6) == 0
			c.Nodes, all = append(c.Nodes, x), append(all, pods...)
		}
		costs, err := deletioncost.Of(c, nil)
		require.NoError(t, err)
		require.Len(t, costs, len(all))
		value := map[string]int32{}
		for _, x := range costs {
			value[x.Pod.Name] = x.Value
			if x.Value != 0 {
				x.Pod.Annotations = map[string]string{eviction.DeletionCost: x.Annotation()}
			}
		}
		ranks := make([]int, len(all)) // how many of them share a node, which the controller asks about after the annotation
		for i := range all {
			for _, other := range all {
				if other.Spec.NodeName == all[i].Spec.NodeName {
					ranks[i]++
				}
			}
		}
		by := controller.ActivePodsWithRanks{Pods: all, Rank: ranks, Now: metav1.NewTime(c.Now)}
		order := make([]int, len(all))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case by.Less(a, b):
				return -1
			case by.Less(b, a):
				return 1
			}
			return 0
		})
		if order[0] != 0 {
			moved++
		}
		for i := 1; i < len(order); i++ {
			require.LessOrEqual(t, value[all[order[i-1]].Name], value[all[order[i]].Name])
		}
	}
	require.Greater(t, moved, 100)
}
