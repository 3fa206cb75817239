package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// Bound is a lower bound of the cost of a plan. The zero value claims nothing.
type Bound struct {
	// Price is a lower bound for any way to place the same pods, with any choice of zones, pools
	// and preferences. It takes into account what concerns a pod and its node: requests, node
	// affinity, tolerations, volumes, host ports, required anti-affinity by hostname, and what is
	// for sale. It also takes into account that the nodes of a group with a key are in at most as
	// many domains as the group's Values allows (one by default). Price is in the unit of
	// [binpack.Offering.Objective], and never above the plan's cost.
	Price binpack.Price
	// Kind says what proves Price.
	Kind binpack.BoundKind
	// Choice is a lower bound for the zones, preferences and order of pools that this plan has
	// chosen. It is often higher than Price, and shows how well the plan is packed for that choice.
	// It is 0 if scheduling moved pods away from their nodes after the packing; see
	// [scheduling.Result.IsAsPacked].
	Choice binpack.Price
	// GapPercent is how far the plan is above Price, in percent of Price; 100 if Price is 0 and the
	// plan costs something.
	GapPercent float64

	relaxed *binpack.Instance
	claim   *binpack.Plan
	domains []*domainClaim // choices of domains; every plan has one of them, and Price is their minimum. nil if claim proves Price.
}

// closeEnough is the gap in percent at which a quick bound is accepted. A smaller gap is not worth
// the time of a better bound, which takes up to half of the planning time.
const closeEnough = 1

// Verify checks the bound again. The plan must be a solution of the relaxed problem, see
// [scheduling.Result.Relaxed], and no solution of that problem may be cheaper than Price.
func (b *Bound) Verify() error {
	if b.relaxed == nil {
		return nil
	}
	err := errors.Join(b.relaxed.Check(b.claim.Layout), b.relaxed.VerifyBound(b.claim))
	for _, d := range b.domains {
		err = errors.Join(err, d.relaxed.Check(d.plan.Layout), d.relaxed.VerifyBound(d.plan))
	}
	return err
}

// Duals returns the dual price of a pod of each class, in the unit of [Plan.Cost]. If the bound is
// [binpack.Exhausted], they are no prices, but the weights with which the search ruled out sets of
// nodes. The dual of a pod without a place is 0. If the bound claims nothing, all of them are 0.
func (p *Plan) Duals() []binpack.Price {
	out := make([]binpack.Price, len(p.Problem.Classes))
	if p.Bound.relaxed == nil || len(p.Bound.claim.Bound.ItemDuals) == 0 {
		return out
	}
	least := map[string]binpack.Price{}
	for i, it := range p.Bound.relaxed.Problem().Items {
		dual, key := p.Bound.claim.Bound.ItemDuals[i], itemKey(it)
		if before, known := least[key]; !known || dual < before {
			least[key] = dual
		}
	}
	items, _ := p.Relaxed()
	for i, it := range Items(items) {
		out[items[i].Pods[0].Class] = least[itemKey(it)]
	}
	return out
}

// prove bounds the price of the plan: quickly first, and with the effort of the packing if a gap
// remains.
func (p *Plan) prove(ctx context.Context, types []binpack.Type, effort binpack.Effort) error {
	problem := p.relaxation(types)
	if p.IsAsPacked() {
		p.Bound.Choice = p.Packing.Bound.Price
	}
	if p.IsAsPacked() && p.isRelaxed(problem) {
		p.Bound.Price, p.Bound.Kind, p.Bound.GapPercent = p.Packing.Bound.Price, p.Packing.Bound.Kind, p.Packing.GapPercent()
		p.Bound.relaxed, p.Bound.claim = p.Instance, p.Packing
		return nil
	}
	relaxed, err := binpack.Compile(problem)
	if err != nil {
		return err
	}
	layout := p.layout()
	if relaxed.Check(layout) != nil { // something is not modelled; a plan without a bound is better than none
		if p.Cost() > 0 {
			p.Bound.GapPercent = 100 // as of a bound of 0
		}
		return nil
	}
	for _, e := range []binpack.Effort{binpack.EffortFast, effort} {
		claim, err := relaxed.Pack(ctx, &binpack.Options{Strategy: asPlanned{layout}, Effort: e, Alternatives: 1})
		if err != nil {
			return err
		}
		if p.Bound.claim == nil || claim.Bound.Price > p.Bound.Price {
			p.Bound.Price, p.Bound.Kind, p.Bound.GapPercent = claim.Bound.Price, claim.Bound.Kind, claim.GapPercent()
			p.Bound.relaxed, p.Bound.claim = relaxed, claim
		}
		if p.Bound.GapPercent <= closeEnough || effort == binpack.EffortFast {
			break
		}
	}
	return nil
}

// relaxation returns the placed pods as in [scheduling.Result.Relaxed]. Everything for sale is in
// one pool without weight, limits, quotas and minValues. Types are left out if a single node would
// break a limit of its pool, and offerings if a single node would break a quota. Other daemons may
// keep a daemon away from a new node, so the relaxation ignores what daemons forbid.
func (p *Plan) relaxation(types []binpack.Type) binpack.Problem {
	items, nodes := p.Relaxed()
	out := Problem(p.Problem, slices.Clone(types), items)
	for i := range nodes {
		out.Nodes[i].Free, out.Nodes[i].Tags, out.Nodes[i].Limits = nodes[i].Free, nodes[i].Tags, limits(nodes[i].Limits)
		if !slices.ContainsFunc(out.Items, func(it binpack.Item) bool { return fits(it.Size, out.Nodes[i].Free) }) {
			out.Nodes[i].Free = make([]int64, len(out.Resources)) // a fraction of a pod would fit and would lower the bound
		}
	}
	for i := range out.Types {
		t := &out.Types[i]
		for k, left := range p.Problem.Pools[t.Pool].Left {
			if t.Usage[k] > left {
				t.Offerings = nil
			}
		}
		if len(p.Problem.Budgets) > 0 {
			t.Offerings = p.withinQuotas(t.Offerings)
		}
		t.Pool, t.Usage, t.Tags, t.Limits = 0, nil, nil, nil
	}
	out.Pools, out.Budgets = nil, nil
	return out
}

// withinQuotas returns the offerings that the quotas allow for at least one node, without their
// usage.
func (p *Plan) withinQuotas(offerings []binpack.Offering) []binpack.Offering {
	var out []binpack.Offering
	for _, o := range offerings {
		if !exceeds(o.Usage, func(k int) int64 { return p.Problem.Budgets[k].Left }) {
			o.Usage = nil
			out = append(out, o)
		}
	}
	return out
}

// exceeds reports whether some usage is more than what is left.
func exceeds(usage []int64, left func(k int) int64) bool {
	for k, u := range usage {
		if u > left(k) {
			return true
		}
	}
	return false
}

// isRelaxed reports whether the final round is already the relaxation, so that its bound holds for
// the pods. That is so if nothing is tied to domains, no spread, preference or daemon limits a
// node, and pools have no weights, limits and minValues.
func (p *Plan) isRelaxed(relaxed binpack.Problem) bool {
	round := p.Instance.Problem()
	for _, pool := range round.Pools {
		if pool.Weight != round.Pools[0].Weight || len(pool.Limits) > 0 || pool.MaxNodes != nil || len(pool.MinValues) > 0 {
			return false
		}
	}
	if len(round.Diversity)+len(round.Budgets) > 0 || slices.ContainsFunc(round.Types, func(t binpack.Type) bool { return len(t.Tags)+len(t.Limits) > 0 }) {
		return false
	}
	for i := range round.Nodes {
		if !slices.Equal(round.Nodes[i].Free, relaxed.Nodes[i].Free) && len(p.Result.NewNodes()) > 0 || !slices.Equal(round.Nodes[i].Tags, relaxed.Nodes[i].Tags) || !slices.Equal(round.Nodes[i].Limits, relaxed.Nodes[i].Limits) {
			return false
		}
	}
	placed := map[string]int{}
	for i, it := range round.Items {
		placed[itemKey(it)] += it.Count - p.Packing.Unplaced[i]
	}
	for _, it := range relaxed.Items {
		placed[itemKey(it)] -= it.Count
	}
	for _, n := range placed {
		if n != 0 {
			return false
		}
	}
	return true
}

// fits reports whether an item fits into the free capacity. A node that lacks some resource accepts
// items that do not need it.
func fits(size, free []int64) bool {
	for i, q := range size {
		if q > 0 && q > free[i] {
			return false
		}
	}
	return true
}

// itemKey returns everything that matters about an item except its name, count and priority.
func itemKey(it binpack.Item) string {
	requires := it.Requires
	if requires.IsZero() {
		requires = requirements.AnyOf()
	}
	return fmt.Sprint(it.Size, it.Tags, it.Limits, string(requires.AppendKey(nil)))
}

// asPlanned is a strategy that returns the layout of a plan: a bound is for the items that a layout
// places.
type asPlanned struct{ layout binpack.Layout }

func (asPlanned) Name() string { return "as planned" }
func (s asPlanned) Pack(context.Context, *binpack.Instance) (binpack.Layout, error) {
	return s.layout, nil
}

// layout returns the plan as a layout of its relaxation, which has the same types.
func (p *Plan) layout() binpack.Layout {
	item := map[*corev1.Pod]int{}
	items, _ := p.Relaxed()
	for i, it := range items {
		for _, pod := range p.Problem.Classes[it.Pods[0].Class].Pods {
			item[pod] = i
		}
	}
	shares := func(pods []*corev1.Pod) []binpack.Share {
		var out []binpack.Share
		for _, pod := range pods {
			k := slices.IndexFunc(out, func(s binpack.Share) bool { return s.Item == item[pod] })
			if k < 0 {
				k, out = len(out), append(out, binpack.Share{Item: item[pod]})
			}
			out[k].Count++
		}
		return out
	}
	out := binpack.Layout{Nodes: make([][]binpack.Share, len(p.Problem.Existing))}
	for _, n := range p.Result.NewNodes() {
		out.Bins = append(out.Bins, binpack.Bin{Type: n.Shape, Offering: n.ShapeOffering, Shares: shares(n.Pods)})
	}
	on := map[string][]*corev1.Pod{}
	for _, b := range p.Bindings() {
		if !b.New {
			on[b.Node] = append(on[b.Node], b.Pod)
		}
	}
	for i := range p.Problem.Existing {
		out.Nodes[i] = shares(on[p.Problem.Existing[i].Node.Name])
	}
	return out
}
