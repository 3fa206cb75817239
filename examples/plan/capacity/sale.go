package capacity

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// sale is a snapshot of what is for sale: the pools, with the rest of their limits and the types
// that they can buy, but without nodes and pods. For pods that fit on no node, a plan of it equals
// a plan of the whole state and costs a fraction.
type sale struct {
	snapshot scheduling.Snapshot
	taken    map[string]bool // names of nodes
}

// newSale returns nil if a purchase depends on more than the sale has: on counted machines, or on
// daemons that keep each other away.
func newSale(s scheduling.Snapshot, p *scheduling.Problem) *sale {
	counted := func(t instancetypes.InstanceType) bool {
		return slices.ContainsFunc(t.Offerings, func(o instancetypes.Offering) bool { return o.ReservationCount > 0 || o.Commitment != "" })
	}
	for _, d := range s.DaemonSets {
		if a := d.Spec.Template.Spec.Affinity; a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) {
			return nil
		}
	}
	out := &sale{taken: map[string]bool{}}
	for _, n := range s.Nodes {
		out.taken[n.Name] = true
	}
	for _, c := range s.NodeClaims {
		out.taken[c.Name], out.taken[c.NodeName] = true, true
	}
	out.snapshot = scheduling.Snapshot{
		DaemonSets: s.DaemonSets, Namespaces: s.Namespaces, PriorityClasses: s.PriorityClasses, RuntimeClasses: s.RuntimeClasses, LimitRanges: s.LimitRanges,
		CSIDrivers: s.CSIDrivers,
	}
	out.snapshot.Quotas = remaining(s.Quotas, p.Budgets)
	sold := make([]map[int]bool, len(p.Pools))
	for _, shape := range p.Shapes {
		if sold[shape.Pool] == nil {
			sold[shape.Pool] = map[int]bool{}
		}
		sold[shape.Pool][shape.Type] = true
	}
	for i := range p.Pools {
		state := &p.Pools[i]
		pool := state.Pool
		pool.Types = nil
		for _, k := range slices.Sorted(maps.Keys(sold[i])) {
			if counted(state.Types[k]) {
				return nil
			}
			pool.Types = append(pool.Types, state.Types[k])
		}
		limits := corev1.ResourceList{}
		for k, name := range state.Limited {
			limits[name] = resources.Quantity(name, state.Left[k])
		}
		if state.NodesLeft >= 0 {
			limits["nodes"] = resources.Quantity("nodes", int64(state.NodesLeft))
		}
		if pool.Limits = nil; len(limits) > 0 {
			pool.Limits = limits
		}
		if len(pool.Types) > 0 {
			out.snapshot.Pools = append(out.snapshot.Pools, pool)
		}
	}
	return out
}

// remaining returns the quotas with their limits set to what they still allow.
func remaining(quotas []capacityquota.Quota, budgets []capacityquota.Budget) []capacityquota.Quota {
	out := slices.Clone(quotas)
	for i := range out {
		q := &out[i]
		q.Limits = corev1.ResourceList{}
		for _, b := range budgets {
			if b.Quota == q.Name {
				q.Limits[b.Resource] = resources.Quantity(b.Resource, b.Left)
			}
		}
	}
	return out
}

// buy answers with a plan of what is for sale. It returns nil if that differs from a plan of the
// whole state.
func (q *quick) buy(ctx context.Context, s *State, lots []lot, pods []*corev1.Pod) *Answer {
	if q.sale == nil || ctx.Err() != nil {
		return nil
	}
	for _, l := range lots {
		from := q.used[l.number]
		if !l.free {
			return nil
		}
		if one := q.at.Ask(ctx, whatif.Question{Pods: l.slots[from : from+1]}); one.OK() {
			return nil
		}
	}
	in := q.sale.snapshot
	in.Pods = pods
	how := s.how.plan
	problem, err := scheduling.Compile(in, how.Objective.Scheduling(how.Scheduling))
	if err != nil {
		return nil
	}
	p, err := plan.Solve(ctx, problem, &how)
	if err != nil {
		return nil
	}
	out := answerOf(s, p)
	if out.Kind != Buy { // the reasons need the whole state
		return nil
	}
	rename(out, q.sale.taken)
	out.after = sync.OnceValue(func() *State {
		whole := s.Snapshot()
		whole.Nodes = slices.Clone(whole.Nodes)
		for i := range out.Nodes {
			whole.Nodes = append(whole.Nodes, out.Nodes[i].Node())
		}
		whole.Pods = slices.Concat(whole.Pods, run(out.Places))
		return s.how.state(whole, s.like)
	})
	return out
}

// rename gives the nodes to buy names that no existing node has.
func rename(a *Answer, taken map[string]bool) {
	next, names := map[string]int{}, map[string]string{}
	for i := range a.Nodes {
		n := &a.Nodes[i]
		pool, name := n.Pool.Name, ""
		for name == "" || taken[name] {
			name = fmt.Sprintf("%s-%d", pool, next[pool])
			next[pool]++
		}
		names[n.Name] = name
		n.Name = name
	}
	for i := range a.Places {
		a.Places[i].Node = names[a.Places[i].Node]
	}
}
