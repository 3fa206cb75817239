package survive

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Spare is a node that is kept free.
type Spare struct {
	Pool, InstanceType, Zone, CapacityType string
	PricePerHour                           float64

	node   *corev1.Node
	free   corev1.ResourceList // for pods, once the daemons run there
	taints []corev1.Taint
}

// Headroom is what is kept free so that pods that a failure displaces have places at once.
type Headroom struct {
	// Spares are the nodes, the dearest first.
	Spares []Spare
	// PricePerHour is their price in dollars. No headroom that makes the same failures hold costs less than LowerBoundPerHour.
	PricePerHour, LowerBoundPerHour float64
	// Unmet are the failures that still let pods wait, because limits of pools leave no room for more nodes.
	Unmet []Failure

	cluster scheduling.Snapshot
}

// Cluster is the snapshot with the headroom in it. It is only to be read.
func (h *Headroom) Cluster() scheduling.Snapshot { return h.cluster }

// rounds bounds how often all failures are gone through; one is usual, because more headroom takes no place away.
const rounds = 3

// headroom is the cheaper of two: room for one failure after the other, each where it is cheapest, and the same with the pods of a failure
// divided over the domains that are left, so that the domains share what is lost.
func (r *rehearsal) headroom(ctx context.Context, kinds []Kind, all []Outcome) (Headroom, error) {
	short := slices.DeleteFunc(slices.Clone(all), func(o Outcome) bool { return len(o.Waiting) == 0 })
	slices.SortStableFunc(short, func(a, b Outcome) int { return cmp.Compare(b.lower, a.lower) })
	zoned, err := r.zoned(ctx, short)
	if err != nil {
		return Headroom{}, err
	}
	lower := lowerBound(&r.snapshot, kinds, all, zoned)
	best := Headroom{cluster: r.snapshot}
	for k, divided := range []float64{lower, 0} {
		next := rehearsal{snapshot: r.snapshot, by: r.by}
		unmet, err := next.fill(ctx, short, all, divided)
		if err != nil {
			return best, err
		}
		if len(unmet) == 0 {
			if err := next.improve(ctx, short); err != nil {
				return best, err
			}
		}
		h := Headroom{Spares: next.spare, Unmet: unmet, cluster: next.cluster()}
		slices.SortStableFunc(h.Spares, func(a, b Spare) int { return cmp.Compare(b.PricePerHour, a.PricePerHour) })
		for i := range h.Spares {
			h.PricePerHour += h.Spares[i].PricePerHour
		}
		if k == 0 || len(h.Unmet) < len(best.Unmet) || len(h.Unmet) == len(best.Unmet) && h.PricePerHour < best.PricePerHour-1e-9 {
			best = h
		}
		if len(short) < 2 {
			break
		}
	}
	if best.LowerBoundPerHour = lower; len(best.Unmet) > 0 {
		best.LowerBoundPerHour = 0
	}
	return best, nil
}

// fill buys spares until no failure lets pods wait, and returns the failures that still do.
func (r *rehearsal) fill(ctx context.Context, short, all []Outcome, divided float64) ([]Failure, error) {
	var unmet []Failure
	for range rounds {
		unmet = nil
		before := len(r.spare)
		for i := range short {
			met, err := r.room(ctx, short[i].Failure, all, divided)
			if err != nil {
				return nil, err
			}
			if !met {
				unmet = append(unmet, short[i].Failure)
			}
		}
		if len(r.spare) == before {
			break
		}
	}
	return unmet, nil
}

// room buys what the pods lack that a failure displaces, divided over domains if it is known what all headroom is to cost. It reports whether all of them that can have a place have one then.
func (r *rehearsal) room(ctx context.Context, f Failure, all []Outcome, divided float64) (bool, error) {
	s, _ := f.after(r.cluster())
	at, waiting, err := r.atOnce(ctx, s)
	if err != nil || len(waiting) == 0 {
		return err == nil, err
	}
	at.Pools, at.Pods = charged(s.Pools, r.snapshot.Nodes, f), slices.Concat(at.Pods, waiting)
	p, err := r.plan(ctx, at)
	if err != nil {
		return false, err
	}
	if f.Kind.pin() != "" && divided > 0 {
		names, _ := sold(&at, f.Kind)
		if parts := r.shares(f, names, all, divided); len(parts) > 0 {
			pinned, err := r.plan(ctx, pin(at, waiting, f.Kind.pin(), parts))
			if err != nil {
				return false, err
			}
			if pinned.Totals().Placed >= p.Totals().Placed {
				p = pinned
			}
		}
	}
	for _, n := range p.NewNodes() {
		r.add(spareOf(&n.NewNode))
	}
	after, err := r.rehearse(ctx, f)
	return len(after.Waiting) == 0, err
}

// spareOf is a node to buy as a spare.
func spareOf(n *scheduling.NewNode) Spare {
	return Spare{
		Pool: n.Pool.Name, InstanceType: n.InstanceType.Name, Zone: n.Zone, CapacityType: n.CapacityType, PricePerHour: n.PricePerHour,
		node: n.Node(), free: resources.Sub(n.InstanceType.Allocatable(), n.DaemonRequests), taints: n.Pool.Taints,
	}
}

// add gives the spare a name of its own.
func (r *rehearsal) add(s Spare) {
	node := s.node.DeepCopy()
	node.Name = fmt.Sprintf("headroom-%d", r.next)
	node.Labels[corev1.LabelHostname] = node.Name
	r.next++
	s.node = node
	r.spare = append(slices.Clip(r.spare), s)
}

// charged are the pools with limits that the failed nodes still use up: headroom is there beside them.
func charged(pools []scheduling.Pool, nodes []*corev1.Node, f Failure) []scheduling.Pool {
	out := slices.Clone(pools)
	for i := range out {
		if len(out[i].Limits) == 0 {
			continue
		}
		limits := out[i].Limits.DeepCopy()
		for _, n := range nodes {
			if n.Labels[nodepool.LabelKey] != out[i].Name || !f.strikes(labelsOf(n)) {
				continue
			}
			for name, limit := range limits {
				used := n.Status.Capacity[name]
				if name == "nodes" {
					used = resources.Quantity(name, 1)
				}
				if limit.Sub(used); limit.Sign() < 0 {
					limit = resources.Quantity(name, 0)
				}
				limits[name] = limit
			}
		}
		out[i].Limits = limits
	}
	return out
}

// share is how much of what a failure displaces a domain is to take.
type share struct {
	name   string
	weight float64
	taken  int
}

// shares are the domains that are left and their parts: what headroom of the lowest price has there, total less what the domain's own failure
// displaces, and what the spares there do not cost yet. They are none where no domain is to have more.
func (r *rehearsal) shares(f Failure, names []string, all []Outcome, total float64) []share {
	target := map[string]float64{}
	for _, name := range names {
		target[name] = total
	}
	for i := range all {
		if all[i].Kind == f.Kind {
			target[all[i].Name] -= all[i].lower
		}
	}
	for i := range r.spare {
		target[f.Kind.domainOf(labelsOf(r.spare[i].node))] -= r.spare[i].PricePerHour
	}
	var out []share
	for _, name := range names {
		if target[name] > 0 {
			out = append(out, share{name: name, weight: target[name]})
		}
	}
	return out
}

// pin has the waiting pods go to domains in proportion to their shares, the pods of a workload one after the other.
func pin(s scheduling.Snapshot, waiting []*corev1.Pod, key string, parts []share) scheduling.Snapshot {
	waits := map[*corev1.Pod]bool{}
	for _, p := range waiting {
		waits[p] = true
	}
	spreads := func(c corev1.TopologySpreadConstraint) bool { // which divides the pods by itself
		return c.TopologyKey == key && c.WhenUnsatisfiable == corev1.DoNotSchedule
	}
	pods := slices.Clone(s.Pods)
	order := make([]int, 0, len(waiting))
	for i, p := range pods {
		if waits[p] && p.Spec.NodeSelector[key] == "" && !slices.ContainsFunc(p.Spec.TopologySpreadConstraints, spreads) {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(strings.Compare(plan.WorkloadOf(pods[a]), plan.WorkloadOf(pods[b])), scheduling.ComparePods(pods[a], pods[b]))
	})
	for _, i := range order {
		best := 0
		for k := range parts { // the method of Webster
			if parts[k].weight*float64(2*parts[best].taken+1) > parts[best].weight*float64(2*parts[k].taken+1) {
				best = k
			}
		}
		parts[best].taken++
		q := *pods[i]
		q.Spec.NodeSelector = map[string]string{key: parts[best].name}
		maps.Copy(q.Spec.NodeSelector, pods[i].Spec.NodeSelector)
		pods[i] = &q
	}
	s.Pods = pods
	return s
}
