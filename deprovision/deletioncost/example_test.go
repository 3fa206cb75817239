package deletioncost_test

import (
	"fmt"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/deletioncost"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// A Deployment has pods on three nodes. When it is scaled down, the pod on the node that a plan gives
// back goes first, and then the one on the dearer of the others.
func Example() {
	pool := poolOf("default")
	cluster := deprovision.Cluster{Now: noon, Pools: []nodepool.NodePool{pool}, Nodes: []eligibility.Node{
		node("cheap", 0.1, &pool, pod("web-1", "ReplicaSet")),
		node("dear", 0.4, &pool, pod("web-2", "ReplicaSet")),
		node("going", 0.2, &pool, pod("web-3", "ReplicaSet")),
	}}
	costs, err := deletioncost.Of(cluster, &deletioncost.Options{Planned: []string{"going"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range costs {
		fmt.Println(c.Pod.Name, c.Annotation())
	}
	// Output:
	// web-1 -1
	// web-2 -2
	// web-3 -3
}
