package survive

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Spare is a node that is kept free.
type Spare struct {
	Pool, InstanceType, Zone, CapacityType string
	PricePerHour                           float64

	node   *corev1.Node
	family string
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

	final *rehearsal
	proof *joint // of the bound; nil for none
}

// Cluster is the snapshot with the headroom in it. It is only to be read.
func (h *Headroom) Cluster() scheduling.Snapshot { return h.final.cluster() }

// Verify checks the lower bound anew: the packing of all pods that failures displace, and that none is cheaper, as [binpack.Instance.VerifyBound]
// has it.
func (h *Headroom) Verify() error {
	if h.proof == nil {
		return nil
	}
	return h.proof.instance.VerifyBound(h.proof.packed)
}

// Places are the places at once of the pods that a failure displaces, in the cluster with the headroom, in the order in which they are bound. It
// costs a plan or three.
func (h *Headroom) Places(ctx context.Context, f Failure) ([]scheduling.Binding, error) {
	s, _ := f.after(h.Cluster())
	now, err := h.final.atOnce(ctx, f, s)
	return now.places, err
}

// rounds bounds how often all failures are gone through; one is usual, because more headroom takes no place away.
const rounds = 3

// closeEnough is how many times its bound headroom may cost for no other way to be tried.
const closeEnough = 1.01

// headroom is the packing of all failures as one problem, with what spreads and affinity ask for beyond it, or what is bought for one failure
// after the other where that is cheaper.
func (r *rehearsal) headroom(ctx context.Context, all []Outcome) (Headroom, error) {
	best := Headroom{final: r}
	short := slices.DeleteFunc(slices.Clone(all), func(o Outcome) bool { return len(o.Waiting) == 0 })
	if len(short) == 0 {
		return best, nil
	}
	slices.SortStableFunc(short, func(a, b Outcome) int { return cmp.Compare(b.price, a.price) })
	j, err := r.newJoint(ctx, r.outermost(short))
	if err != nil {
		return best, err
	}
	proof, err := r.proof(ctx, j)
	if err != nil {
		return best, err
	}
	lower := proof.packed.Bound.Price.Dollars()
	for k := range 3 {
		next := &rehearsal{snapshot: r.snapshot, by: r.by}
		if k < 2 {
			next.start(j)
		}
		unmet, err := next.fill(ctx, short)
		if err != nil {
			return best, err
		}
		if len(unmet) == 0 {
			if err := next.improve(ctx, short, lower); err != nil {
				return best, err
			}
		}
		h := Headroom{Spares: next.spare, Unmet: unmet, final: next}
		h.Spares = slices.Clone(h.Spares)
		slices.SortStableFunc(h.Spares, func(a, b Spare) int { return cmp.Compare(b.PricePerHour, a.PricePerHour) })
		h.PricePerHour = priceOf(h.Spares)
		if k == 0 { // its zones are domains now
			zoned := &rehearsal{snapshot: r.snapshot, by: r.by}
			zoned.start(j)
			if j, err = zoned.newJoint(ctx, j.failures); err != nil {
				return best, err
			}
		}
		if k == 0 || len(h.Unmet) < len(best.Unmet) || len(h.Unmet) == len(best.Unmet) && h.PricePerHour < best.PricePerHour-1e-9 {
			best = h
		}
		if len(best.Unmet) == 0 && best.PricePerHour < lower*closeEnough {
			break
		}
	}
	if best.Unmet, err = best.final.unmet(ctx, all); err != nil {
		return best, err
	}
	if len(best.Unmet) == 0 {
		best.LowerBoundPerHour, best.proof = lower, proof
	}
	return best, nil
}

// start buys the nodes of a packing.
func (r *rehearsal) start(j *joint) {
	for _, s := range j.spares() {
		r.add(s)
	}
	r.hints = j.hints(r.spare)
}

// unmet are the failures that let pods wait that are not lost. A spare in a zone without nodes may be a domain of spreads that was none before, so
// all failures are rehearsed again.
func (r *rehearsal) unmet(ctx context.Context, all []Outcome) ([]Failure, error) {
	var out []Failure
	for i := range all {
		s, _ := all[i].after(r.cluster())
		now, err := r.atOnce(ctx, all[i].Failure, s)
		if err != nil {
			return nil, err
		}
		if len(now.waiting) > len(all[i].Lost) {
			out = append(out, all[i].Failure)
		}
	}
	return out, nil
}

// fill buys spares until no failure lets pods wait, and returns the failures that still do.
func (r *rehearsal) fill(ctx context.Context, short []Outcome) ([]Failure, error) {
	var unmet []Failure
	for range rounds {
		unmet = nil
		before := len(r.spare)
		for i := range short {
			met, err := r.room(ctx, &short[i])
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

// room buys what the pods lack that a failure displaces, It reports whether all of them that can have a place have one then.
func (r *rehearsal) room(ctx context.Context, o *Outcome) (bool, error) {
	f := o.Failure
	s, _ := f.after(r.cluster())
	now, err := r.atOnce(ctx, f, s)
	if err != nil || len(now.waiting) <= len(o.Lost) {
		return err == nil, err
	}
	at := now.cluster
	at.Pools, at.Pods = charged(s.Pools, r.snapshot.Nodes, f), slices.Concat(at.Pods, now.waiting)
	p, err := r.plan(ctx, at)
	if err != nil {
		return false, err
	}
	for _, n := range p.NewNodes() {
		r.add(spareOf(&n.NewNode))
	}
	s, _ = f.after(r.cluster())
	now, err = r.atOnce(ctx, f, s)
	return len(now.waiting) <= len(o.Lost), err
}

// spareOf is a node to buy as a spare.
func spareOf(n *scheduling.NewNode) Spare {
	node := n.Node()
	return Spare{
		Pool: n.Pool.Name, InstanceType: n.InstanceType.Name, Zone: n.Zone, CapacityType: n.CapacityType, PricePerHour: n.PricePerHour,
		node: node, family: Family.domainOf(labelsOf(node)), free: resources.Sub(n.InstanceType.Allocatable(), n.DaemonRequests), taints: n.Pool.Taints,
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
