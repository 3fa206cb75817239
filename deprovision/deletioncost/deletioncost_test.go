package deletioncost_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/deletioncost"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func poolOf(name string, budgets ...nodepool.Budget) nodepool.NodePool {
	return nodepool.NodePool{APIVersion: nodepool.V1, Name: name, Disruption: nodepool.Disruption{Policy: nodepool.WhenEmptyOrUnderutilized, ConsolidateAfter: new(time.Duration), Budgets: budgets}}
}

func pod(name, owner string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if owner != "" {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: "web", Controller: new(true)}}
	}
	return p
}

func node(name string, price float64, pool *nodepool.NodePool, pods ...*corev1.Pod) eligibility.Node {
	return eligibility.FromNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, pods, pool, deprovision.Dollars(price))
}

// values are the costs by pod.
func values(t *testing.T, c deprovision.Cluster, o *deletioncost.Options) map[string]int32 {
	t.Helper()
	costs, err := deletioncost.Of(c, o)
	require.NoError(t, err)
	out := map[string]int32{}
	for _, x := range costs {
		out[x.Pod.Name] = x.Value
	}
	return out
}

func TestOrder(t *testing.T) {
	p := poolOf("default")
	leaving, drifted := node("leaving", 1, &p, pod("on-leaving", "ReplicaSet")), node("drifted", 1, &p, pod("on-drifted", "ReplicaSet"))
	leaving.Claim.Deleting = true
	drifted.Drifted = []string{"its image is old"}
	kept := node("kept", 9, &p, pod("on-kept", "ReplicaSet"))
	kept.Node.Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
	c := deprovision.Cluster{Now: noon, Pools: []nodepool.NodePool{p}, Nodes: []eligibility.Node{
		leaving, drifted, kept,
		node("dear", 4, &p, pod("on-dear", "ReplicaSet"), pod("job", "Job"), pod("daemon", "DaemonSet")),
		node("cheap", 1, &p, pod("on-cheap", "ReplicaSet")),
		node("planned", 1, &p, pod("on-planned", "ReplicaSet")),
		node("empty", 1, &p),
		node("stateful", 8, &p, pod("beside-stateful", "ReplicaSet"), pod("db", "StatefulSet")),
		node("bare", 8, &p, pod("beside-bare", "ReplicaSet"), pod("alone", "")),
	}}
	require.Equal(t, map[string]int32{
		"on-leaving": math.MinInt32, "on-planned": -4, "on-drifted": -3, "on-dear": -2, "on-cheap": -1, "on-kept": 0, "beside-stateful": 0, "beside-bare": 0,
	}, values(t, c, &deletioncost.Options{Planned: []string{"planned", "unknown", "empty"}}))
}

func TestBudgetsBoundTheNodes(t *testing.T) {
	p, q := poolOf("one", nodepool.Budget{Nodes: 1}), poolOf("none", nodepool.Budget{Nodes: 0})
	c := deprovision.Cluster{Now: noon, Pools: []nodepool.NodePool{p, q}}
	for i := range 3 {
		c.Nodes = append(c.Nodes, node(fmt.Sprint("a", i), float64(i+1), &p, pod(fmt.Sprint("pa", i), "ReplicaSet")), node(fmt.Sprint("b", i), 1, &q, pod(fmt.Sprint("pb", i), "ReplicaSet")))
	}
	require.Equal(t, map[string]int32{"pa0": 0, "pa1": 0, "pa2": -1, "pb0": 0, "pb1": 0, "pb2": 0}, values(t, c, nil))
}

// What one call says does not change what the next one says, nodes are numbered without gaps, and nothing given is changed.
func TestCostsAreStable(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		p := poolOf("default")
		c := deprovision.Cluster{Now: noon, Pools: []nodepool.NodePool{p}}
		for i := range 2 + rng.IntN(6) {
			var pods []*corev1.Pod
			for k := range rng.IntN(4) {
				x := pod(fmt.Sprintf("p%d-%d", i, k), []string{"ReplicaSet", "ReplicaSet", "ReplicaSet", "Job", "StatefulSet"}[rng.IntN(5)])
				x.Annotations = map[string]string{eviction.DeletionCost: fmt.Sprint(rng.Int32())}
				pods = append(pods, x)
			}
			c.Nodes = append(c.Nodes, node(fmt.Sprint("n", i), rng.Float64(), &p, pods...))
		}
		first, err := deletioncost.Of(c, nil)
		require.NoError(t, err)
		var seen []int32
		for _, x := range first {
			require.Contains(t, x.Pod.Annotations, eviction.DeletionCost)
			if x.Value != 0 {
				seen = append(seen, x.Value)
			}
		}
		slices.Sort(seen)
		seen = slices.Compact(seen)
		for i, v := range seen {
			require.Equal(t, int32(i-len(seen)), v)
		}
		again := c
		again.Nodes = slices.Clone(c.Nodes)
		for i := range again.Nodes {
			n := &again.Nodes[i]
			n.Pods = slices.Clone(n.Pods)
			for k := range n.Pods {
				n.Pods[k] = deletioncost.Without(n.Pods[k])
				for _, x := range first {
					if x.Pod.Name == n.Pods[k].Name && x.Annotation() != "" {
						n.Pods[k].Annotations[eviction.DeletionCost] = x.Annotation()
					}
				}
			}
		}
		require.Equal(t, values(t, c, nil), values(t, again, nil))
	}
}

func TestErrors(t *testing.T) {
	_, err := deletioncost.Of(deprovision.Cluster{}, nil)
	require.ErrorIs(t, err, deprovision.ErrNoTime)
}
