package nodepool

// Population counts the nodes of a static pool, including claims whose nodes have not joined.
// Leaving counts the nodes that are being removed, and Staying the others.
type Population struct {
	Staying, Leaving int64
}

// Deficit returns how many nodes a static pool still has to buy: its replicas minus the staying
// nodes. If the pool limits its number of nodes, the deficit is at most that limit minus all nodes
// of the pool, staying and leaving. It is 0 for a pool that is not static, and for one that is
// being deleted.
//
// A node that is being replaced counts as leaving, so its successor is in the deficit until it
// exists. Karpenter launches such a successor as a part of the replacement, and other missing nodes
// separately. Deficit counts both.
func (p NodePool) Deficit(now Population) int64 {
	if p.Replicas == nil || p.Metadata.DeletionTimestamp != nil {
		return 0
	}
	missing := *p.Replicas - now.Staying
	if limit, ok := p.Limits["nodes"]; ok {
		missing = min(missing, limit.Value()-now.Staying-now.Leaving)
	}
	return max(0, missing)
}

// Surplus returns how many nodes a static pool has above its replicas. Nodes that are being removed
// do not count. It is 0 for a pool that is not static, and for one that is being deleted.
func (p NodePool) Surplus(now Population) int64 {
	if p.Replicas == nil || p.Metadata.DeletionTimestamp != nil {
		return 0
	}
	return max(0, now.Staying-*p.Replicas)
}
