package survive

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling"
)

// allowance is what limits of pools and CapacityQuotas still allow beside the nodes of a cluster,
// by the name of the limit. It is negative if a limit is exceeded.
type allowance map[string]int64

func poolLimit(p *scheduling.Pool, name corev1.ResourceName) string {
	return fmt.Sprintf("%s of %s %s", name, p.Kind, p.Name)
}

func quotaLimit(quota string, name corev1.ResourceName) string {
	return fmt.Sprintf("%s of quota %s", name, quota)
}

// allowance returns what is allowed beside the nodes of a snapshot.
func (r *rehearsal) allowance(s scheduling.Snapshot) (allowance, error) {
	out := allowance{}
	s.Pods, s.DaemonSets, s.Pools = nil, nil, slices.Clone(s.Pools)
	limited := len(s.Quotas) > 0
	for i := range s.Pools {
		s.Pools[i].Types = nil // only nodes are counted
		limited = limited || len(s.Pools[i].Limits) > 0
	}
	if !limited {
		return out, nil
	}
	p, err := scheduling.Compile(s, r.by.Scheduling)
	if err != nil {
		return nil, fmt.Errorf("survive: %w", err)
	}
	for i := range p.Pools {
		pool := &p.Pools[i]
		for k, name := range pool.Limited {
			out[poolLimit(&pool.Pool, name)] = pool.Left[k] - pool.Over[k]
		}
		if pool.NodesLeft >= 0 {
			out[poolLimit(&pool.Pool, "nodes")] = int64(pool.NodesLeft - pool.NodesOver)
		}
	}
	for _, b := range p.Budgets {
		out[quotaLimit(b.Quota, b.Resource)] = b.Left - b.Over
	}
	return out, nil
}

// exceeds reports whether less is allowed than before, and a limit is exceeded.
func (a allowance) exceeds(before allowance) bool {
	for name, left := range a {
		if left < 0 && left < before[name] {
			return true
		}
	}
	return false
}

// charged returns the cluster after a failure with limits and quotas reduced by the failed nodes,
// existing ones and spares, and counts of offerings by all spares: new headroom exists at the same
// time as these.
func (r *rehearsal) charged(s scheduling.Snapshot) (scheduling.Snapshot, error) {
	before, err := r.allowance(r.cluster())
	if err != nil {
		return s, err
	}
	after, err := r.allowance(s)
	if err != nil {
		return s, err
	}
	reduced := func(limits corev1.ResourceList, name func(corev1.ResourceName) string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for resource, limit := range limits {
			lost := after[name(resource)] - before[name(resource)]
			out[resource] = resources.Quantity(resource, max(0, resources.Capacity(resource, limit)-lost))
		}
		return out
	}
	for i := range r.spare {
		s.Pools = (&plan.NewNode{NewNode: r.spare[i].bought}).Unsold(s.Pools)
	}
	s.Pools, s.Quotas = slices.Clone(s.Pools), slices.Clone(s.Quotas)
	for i := range s.Pools {
		if p := &s.Pools[i]; len(p.Limits) > 0 {
			p.Limits = reduced(p.Limits, func(name corev1.ResourceName) string { return poolLimit(p, name) })
		}
	}
	for i := range s.Quotas {
		q := &s.Quotas[i]
		q.Limits = reduced(q.Limits, func(name corev1.ResourceName) string { return quotaLimit(q.Name, name) })
	}
	return s, nil
}
