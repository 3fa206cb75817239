package survive

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Spare is a node that is kept free. PricePerHour is in dollars.
type Spare struct {
	Pool, InstanceType, Zone, CapacityType string
	PricePerHour                           float64

	bought scheduling.NewNode
	ways   []Spare // how a pod may be bought the node, if the pool has minValues; see promised
	node   *corev1.Node
	family string
	free   corev1.ResourceList // for pods, after the daemons
	taints []corev1.Taint
}

// Headroom is the capacity that is kept free so that the pods displaced by a failure have places at
// once.
type Headroom struct {
	// Spares are the nodes, dearest first.
	Spares []Spare
	// PricePerHour is their price in dollars. LowerBoundPerHour is a lower bound of the price of
	// any headroom with which the cluster survives the same failures.
	PricePerHour, LowerBoundPerHour float64
	// Unmet are the failures that still let pods wait, because limits of pools allow no more nodes.
	Unmet []Failure

	final *rehearsal
	proof *joint // proof of the bound, or nil
}

// Cluster returns the snapshot with the headroom in it. It must only be read.
func (h *Headroom) Cluster() scheduling.Snapshot { return h.final.cluster() }

// Verify checks the lower bound again, as [binpack.Instance.VerifyBound] does: that the packing of
// all displaced pods is valid, and that no packing is cheaper than the bound.
func (h *Headroom) Verify() error {
	if h.proof == nil {
		return nil
	}
	return h.proof.instance.VerifyBound(h.proof.packed)
}

// Places returns the places that the pods displaced by a failure find at once in the cluster with
// the headroom, in the order in which they are bound. It costs one to three plans.
func (h *Headroom) Places(ctx context.Context, f Failure) ([]scheduling.Binding, error) {
	s, _ := f.after(h.Cluster())
	now, err := h.final.atOnce(ctx, f, s)
	return now.places, err
}

// rounds limits how often all failures are gone through. One round is usual, because more headroom
// removes no place.
const rounds = 3

// closeEnough is the factor above the bound at which no other way is tried.
const closeEnough = 1.01

// headroom returns the cheaper of two results. One packs all failures as one problem, and adds what
// spreads and affinity need beyond it. The other buys for one failure after the other.
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
		next := &rehearsal{snapshot: r.snapshot, by: r.by, sale: r.sale}
		if k < 2 {
			if err := next.start(j); err != nil {
				return best, err
			}
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
			zoned := &rehearsal{snapshot: r.snapshot, by: r.by, sale: r.sale}
			if err = zoned.start(j); err != nil {
				return best, err
			}
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
func (r *rehearsal) start(j *joint) error {
	for _, s := range j.spares() {
		if err := r.buy(s); err != nil {
			return err
		}
	}
	r.hints = j.hints(r.spare)
	return nil
}

// unmet returns the failures that let pods wait that are not lost. It rehearses all failures again,
// because a spare in a zone without nodes may create a new domain for spreads.
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

// fill buys spares until no failure lets pods wait. It returns the failures that still do.
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

// room buys what the pods displaced by a failure lack. It reports whether all of them that can have
// a place then have one.
func (r *rehearsal) room(ctx context.Context, o *Outcome) (bool, error) {
	f := o.Failure
	s, _ := f.after(r.cluster())
	now, err := r.atOnce(ctx, f, s)
	if err != nil || len(now.waiting) <= len(o.Lost) {
		return err == nil, err
	}
	if s, err = r.charged(s); err != nil {
		return false, err
	}
	at := now.cluster
	at.Pools, at.Quotas, at.Pods = s.Pools, s.Quotas, slices.Concat(at.Pods, now.waiting)
	p, err := r.plan(ctx, at)
	if err != nil {
		return false, err
	}
	for _, n := range p.NewNodes() {
		if err := r.buy(spareOf(&n.NewNode)); err != nil {
			return false, err
		}
	}
	s, _ = f.after(r.cluster())
	now, err = r.atOnce(ctx, f, s)
	return len(now.waiting) <= len(o.Lost), err
}

// spareOf returns a node to buy as a spare.
func spareOf(n *scheduling.NewNode) Spare {
	node := n.Node()
	return Spare{
		Pool: n.Pool.Name, InstanceType: n.InstanceType.Name, Zone: n.Zone, CapacityType: n.CapacityType, PricePerHour: n.PricePerHour,
		bought: *n, node: node, family: Family.domainOf(labelsOf(node)), free: resources.Sub(n.InstanceType.Allocatable(), n.DaemonRequests), taints: n.Pool.Taints,
	}
}

// buy adds the spare as a pod can ask for it, if it can. The spare is within the limits.
func (r *rehearsal) buy(s Spare) error {
	promised, ok := r.sale.promised(s)
	if !ok {
		return nil
	}
	without := r.spare
	if r.add(promised); promised.InstanceType == s.InstanceType {
		return nil
	}
	left, err := r.allowance(r.cluster())
	if err != nil {
		return err
	}
	limits, err := r.allowance(r.snapshot)
	if left.exceeds(limits) { // the other type counts more
		r.spare = without
	}
	return err
}

// add gives the spare its own name and adds it.
func (r *rehearsal) add(s Spare) {
	node := s.node.DeepCopy()
	node.Name = fmt.Sprintf("headroom-%d", r.next)
	node.Labels[corev1.LabelHostname] = node.Name
	r.next++
	s.node = node
	r.spare = append(slices.Clip(r.spare), s)
}
