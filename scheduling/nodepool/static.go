package nodepool

// Population counts the nodes of a static pool, and claims whose nodes have not joined, by whether they are on their way out.
type Population struct {
	Staying, Leaving int64
}

// Deficit is how many nodes a static pool lacks and may still buy: up to its replicas, with all nodes together within its limit of nodes. It is
// 0 for a pool that grows with its pods, and for one that is being deleted.
//
// A node that is being replaced counts as leaving, so its successor is in the deficit until it is there. Karpenter launches that successor
// with the replacement, and the others by themselves; the nodes are the same.
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

// Surplus is how many nodes a static pool has above its replicas. Nodes that are on their way out are no surplus.
func (p NodePool) Surplus(now Population) int64 {
	if p.Replicas == nil || p.Metadata.DeletionTimestamp != nil {
		return 0
	}
	return max(0, now.Staying-*p.Replicas)
}
