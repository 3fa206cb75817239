package eligibility

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Surplus returns the nodes that a static pool gives back because it has more nodes than replicas,
// the cheapest to disrupt first. It ignores nodes of other pools and nodes that are already
// leaving. It costs O(n log n) in the number of nodes, and is linear in the number of their pods.
//
// The order is:
//
//   - nodes that no annotation protects, neither their own nor one of a pod
//   - nodes without pods that need a new place
//   - nodes with a lower cost of evicting their pods, times the remaining share of the node's life
//   - by name
//
// Disruption budgets of the pool do not limit it, as in Karpenter. Draining a node must still
// respect the PodDisruptionBudgets of its pods.
func Surplus(pool nodepool.NodePool, nodes []Node, now time.Time) []*Node {
	type ranked struct {
		node      *Node
		protected bool
		empty     bool
		cost      float64
	}
	var staying []ranked
	for i := range nodes {
		n := &nodes[i]
		if n.Pool == nil || n.Pool.Name != pool.Name || n.Leaving() {
			continue
		}
		r := ranked{node: n, protected: n.Node.Annotations[eviction.DoNotDisrupt] == "true", empty: n.Empty()}
		for _, p := range n.Pods {
			r.protected = r.protected || eviction.Protected(p, now) != ""
		}
		for _, p := range n.Reschedulable() {
			r.cost += eviction.Cost(p)
		}
		r.cost *= n.Lifetime(now)
		staying = append(staying, r)
	}
	flag := map[bool]int{true: 1}
	slices.SortFunc(staying, func(a, b ranked) int {
		return cmp.Or(
			cmp.Compare(flag[a.protected], flag[b.protected]), cmp.Compare(flag[b.empty], flag[a.empty]),
			cmp.Compare(a.cost, b.cost), strings.Compare(a.node.Name(), b.node.Name()),
		)
	})
	var out []*Node
	for _, r := range staying[:pool.Surplus(nodepool.Population{Staying: int64(len(staying))})] {
		out = append(out, r.node)
	}
	return out
}
