package deprovision_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func now() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) }

// world makes a cluster of nodes given as "name size pods"; a node of size N costs N cents an hour.
type world struct{ deprovision.Cluster }

func newWorld(nodes ...string) *world {
	zero := time.Duration(0)
	pool := nodepool.NodePool{Name: "default", APIVersion: nodepool.V1, Disruption: nodepool.Disruption{Policy: nodepool.WhenEmptyOrUnderutilized, ConsolidateAfter: &zero}}
	w := &world{deprovision.Cluster{Pools: []nodepool.NodePool{pool}, Now: now()}}
	for _, text := range nodes {
		var name string
		var size, pods int
		if _, err := fmt.Sscan(text, &name, &size, &pods); err != nil {
			panic(err)
		}
		n := eligibility.Node{
			Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now().Add(-time.Hour))}}, Pool: &w.Pools[0],
			InstanceType: fmt.Sprintf("t%d", size), Zone: "z", CapacityType: "on-demand", PricePerHour: deprovision.Dollars(float64(size) / 100), Priced: true,
		}
		for i := range pods {
			yes := true
			n.Pods = append(n.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: fmt.Sprintf("%s-%d", name, i), OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", Controller: &yes}},
			}})
		}
		w.Nodes = append(w.Nodes, n)
	}
	return w
}

func (w *world) node(name string) *eligibility.Node {
	return &w.Nodes[slices.IndexFunc(w.Nodes, func(n eligibility.Node) bool { return n.Name() == name })]
}

// rank is the ranking of a cluster without mistakes.
func (w *world) rank(o deprovision.RankOptions) []deprovision.Candidate {
	list, err := deprovision.Rank(w.Cluster, &o)
	if err != nil {
		panic(err)
	}
	return list
}
