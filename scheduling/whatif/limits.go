package whatif

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/market"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
)

// budgetsOf returns what remains of each budget, negative if its quota is exceeded.
func budgetsOf(p *scheduling.Problem) []int64 {
	out := make([]int64, len(p.Budgets))
	for i, b := range p.Budgets {
		out[i] = b.Left - b.Over
	}
	return out
}

// charge counts a node against the limits of its pool and the quotas; sign -1 undoes that.
func (e *engine) charge(n *node, sign int64) {
	for i, u := range n.charges {
		e.budgets[i] -= sign * u
	}
	if n.pool < 0 {
		return
	}
	left := e.left[n.pool]
	for i, u := range n.usage {
		left[i] -= sign * u
	}
	left[len(left)-1] -= sign
}

// credit stops counting removed nodes against the limits of their pools.
func (e *engine) credit(gone []int32) {
	for _, i := range gone {
		e.do(op{kind: opCredit, node: i})
	}
}

// allowedOffer reports whether the question, the limits of the pool and the quotas allow buying the
// offer.
func (b *buying) allowedOffer(o *offer, limit Price) bool {
	if limit > 0 && o.price >= limit || b.q.CapacityTypes != nil && !slices.Contains(b.q.CapacityTypes, o.capacity) {
		return false
	}
	by, _ := b.e.exceeds(o)
	return by == nothing
}

// scarcity is what keeps an offer from being bought.
type scarcity uint8

const (
	nothing scarcity = iota
	poolNodes
	poolLimit // with the number of the resource
	quota     // with the number of the budget
	stock
)

// exceeds says which limit one more node of the offer would exceed.
func (e *engine) exceeds(o *offer) (scarcity, int) {
	left := e.left[o.pool]
	if left[len(left)-1] < 1 {
		return poolNodes, 0
	}
	usage, charges := e.counts(o)
	for i, u := range charges {
		if u > max(0, e.budgets[i]) {
			return quota, i
		}
	}
	for i, u := range usage {
		if u > max(0, left[i]) { // a node that counts nothing is within any limit
			return poolLimit, i
		}
	}
	if o.count > 0 && e.sold(o)+o.takes > o.stock()+e.freed(o) {
		return stock, 0
	}
	return nothing, 0
}

// explain records what keeps the pools from buying a node for the pod beside the nodes that the
// attempt has bought, if the question asks for that and nothing is recorded yet.
func (b *buying) explain(p int32) {
	if _, known := b.unsold[p]; !known && b.q.Explain && b.q.MaxNodes > 0 {
		if b.unsold == nil {
			b.unsold = map[int32]string{}
		}
		bought := b.bought
		b.unsold[p] = b.reason(p)
		b.bought = bought
	}
}

// reason says what keeps the pools from buying any node for the pod; empty if nothing does.
func (b *buying) reason(p int32) string {
	e, c := b.e, b.e.classOf(p)
	suited, fits, between, limits := false, false, false, []string(nil)
	tried := map[string]bool{}
	for i := range e.offers {
		o := &e.offers[i]
		if o.static || b.q.CapacityTypes != nil && !slices.Contains(b.q.CapacityTypes, o.capacity) || !e.buys(c, o) {
			continue
		}
		if suited = true; !bind.Fits(c.Need, o.free) {
			continue
		}
		fits = true
		if by, i := e.exceeds(o); by != nothing {
			limits = append(limits, e.scarce(o, by, i))
			continue
		}
		if key := e.alike(o); !tried[key] {
			tried[key] = true
			mark := len(e.journal)
			accepted := b.open(o, []int32{e.pods[p].class}, "") && e.accepts(c, &e.nodes[len(e.nodes)-1])
			if b.undo(mark); accepted {
				return ""
			}
		}
		between = true
	}
	switch {
	case !suited:
		return "nothing for sale suits it by labels or taints"
	case !fits:
		return "nothing for sale is large enough"
	case between:
		return "constraints between pods keep it from what is for sale"
	}
	slices.Sort(limits)
	return strings.Join(slices.Compact(limits), "; ")
}

// scarce says what keeps the offer from being bought.
func (e *engine) scarce(o *offer, by scarcity, i int) string {
	pool := &e.problem.Pools[o.pool]
	name := corev1.ResourceName("nodes")
	switch by {
	case stock:
		return o.scarce()
	case quota:
		return fmt.Sprintf("quota %q leaves no node to buy: %s", e.problem.Budgets[i].Quota, e.problem.Budgets[i].Resource)
	case poolLimit:
		name = pool.Limited[i]
	case nothing, poolNodes:
	}
	return fmt.Sprintf("pool %s has too little left of its limit of %s", pool.Name, name)
}

// spare returns what a node in the place of the new node may count more against the limits of its pool
// and then the quotas: an equal part for each new node of what they leave, now and when it was bought.
func (e *engine) spare(n *node) []int64 {
	out, sharing := slices.Concat(e.left[n.pool][:len(n.usage)], e.budgets), int64(0)
	if len(out) == 0 {
		return nil
	}
	for i := range e.nodes {
		if e.nodes[i].alive && e.nodes[i].bought != nil {
			sharing++
		}
	}
	for i := range out {
		if out[i] = max(0, out[i]) / max(1, sharing); n.spare != nil {
			out[i] = min(out[i], n.spare[i])
		}
	}
	return out
}

// spares reports whether a node of the offer in the place of the new node counts at most spare more.
func (e *engine) spares(n *node, o *offer, spare []int64) bool {
	usage, charges := e.counts(o)
	own := slices.Concat(n.usage, n.charges)
	for i, u := range slices.Concat(usage, charges) {
		if i < len(own) {
			u -= own[i]
		}
		if u > 0 && u > spare[i] {
			return false
		}
	}
	return true
}

// flexible reports whether all new nodes, and those of earlier answers that get pods, meet the minValues
// of their pools.
func (b *buying) flexible() bool {
	total := Price(0)
	for _, n := range b.bought {
		total += b.e.nodes[n].bought.price
	}
	return !slices.ContainsFunc(b.bought, func(n int32) bool { return !b.valued(n, total) }) &&
		!slices.ContainsFunc(b.filled(), func(n int32) bool { return !b.valued(n, earlier) })
}

// valued reports whether a new node meets its pool's minValues: it and its alternatives have enough
// different values. See most for total.
func (b *buying) valued(n int32, total Price) bool {
	x := &b.e.nodes[n]
	pool := &b.e.problem.Pools[x.pool]
	if len(pool.MinValues) == 0 {
		return true
	}
	list := append(b.alternatives(x, total), x.bought)
	for _, key := range slices.Sorted(maps.Keys(pool.MinValues)) {
		seen := map[string]bool{}
		for _, o := range list {
			shape, typ := &b.e.problem.Shapes[o.shape], b.e.problem.InstanceType(o.shape)
			if !typ.Requirements.Has(key) && !typ.Offerings[shape.Offerings[o.index].Index].Requirements.Has(key) {
				continue // see [instancetypes.MinValues]
			}
			values, _ := o.all().Get(key).Values()
			for _, v := range values {
				seen[v] = true
			}
		}
		if want := pool.MinValues[key]; len(seen) < want {
			b.few = fmt.Sprintf("pool %s requires %d values of %s, but the types that would do have %d", pool.Name, want, key, len(seen))
			return false
		}
	}
	return true
}

// counts returns what a node of the offer counts against the limits of its pool and the quotas.
func (e *engine) counts(o *offer) (usage, charges []int64) {
	shape := &e.problem.Shapes[o.shape]
	return shape.Usage, shape.Offerings[o.index].Usage
}

// noFreer reports whether a node of the offer has no more alternatives than one of the other offer for
// the same pods: it is in the same zone and leaves them no more of the limits.
func (e *engine) noFreer(other, o *offer) bool {
	less, lessCharged := e.counts(other)
	usage, charges := e.counts(o)
	return other.pool == o.pool && other.zone == o.zone && other.capacity == o.capacity && bind.Fits(usage, less) && bind.Fits(charges, lessCharged)
}

// stock returns how much of a counted offer is left to buy at first.
func (o *offer) stock() int {
	if o.full {
		return 0
	}
	return o.count
}

// sold returns how much bought nodes take of the offer's count: those of its reservation, or of itself
// if it has none.
func (e *engine) sold(of *offer) int {
	n := 0
	for i := range e.nodes {
		if o := e.nodes[i].bought; o != nil && e.nodes[i].alive && (o == of || of.reservation != "" && o.reservation == of.reservation) {
			n += o.takes
		}
	}
	return n
}

// freed returns how much the nodes that are gone took of the offer's count, so that others can be
// bought.
func (e *engine) freed(of *offer) int {
	n := 0
	for _, i := range e.gone {
		if of.holds(&e.nodes[i]) {
			n += of.takes
		}
	}
	for i := range e.past {
		if of.holds(&e.past[i]) {
			n += of.takes
		}
	}
	return n
}

// holds reports whether a node of the cluster was bought by the counted offer, as its labels say,
// or by another one that shares its count.
func (o *offer) holds(n *node) bool {
	return o.count > 0 && n.object != nil && (n.pool == o.pool || o.reservation != "") && n.labels[corev1.LabelInstanceTypeStable] == o.typ &&
		n.labels[corev1.LabelTopologyZone] == o.zone && n.labels[instancetypes.LabelCapacityType] == o.capacity &&
		(o.id == "" || n.labels[instancetypes.LabelReservationID] == o.id)
}

// reopened returns the pools with some full offerings on sale again: those with the type, zone and
// capacity type of a node. If that node goes, one machine can be bought. Only questions with
// [Question.Freed] buy it.
func reopened(pools []scheduling.Pool, nodes []*corev1.Node) []scheduling.Pool {
	out := slices.Clone(pools)
	for i := range out {
		var types []instancetypes.InstanceType
		for t, typ := range out[i].Types {
			var offerings []instancetypes.Offering
			for k, o := range typ.Offerings {
				if !o.Full || !slices.ContainsFunc(nodes, func(n *corev1.Node) bool {
					return n.Labels[corev1.LabelInstanceTypeStable] == typ.Name && o.Requirements.Get(corev1.LabelTopologyZone).Contains(n.Labels[corev1.LabelTopologyZone]) &&
						o.CapacityType() == n.Labels[instancetypes.LabelCapacityType]
				}) {
					continue
				}
				if offerings == nil {
					offerings = slices.Clone(typ.Offerings)
				}
				offerings[k].Available, offerings[k].ReservationCount = true, 1
			}
			if offerings != nil {
				if types == nil {
					types = slices.Clone(out[i].Types)
				}
				types[t].Offerings = offerings
			}
		}
		if types != nil {
			out[i].Types = types
		}
	}
	return out
}

// takes lists what the bought nodes use and only the removed nodes free, sorted and without
// duplicates. why says why the bought nodes cannot count on that: another node frees the same, so
// waiting is enough, or another pod without a place would take it. Otherwise it is empty.
func (b *buying) takes(removed []int32) (texts []string, why string) {
	e := b.e
	wait := func(n *node) {
		if why == "" {
			why = fmt.Sprintf("node %s, which is being removed, frees the same", n.name)
		}
	}
	leaving := func(uses func(*node) bool) {
		for i := range e.nodes {
			if n := &e.nodes[i]; n.alive && n.leaving && uses(n) {
				wait(n)
			}
		}
	}
	for _, at := range b.bought {
		b.rivals(e.nodes[at].bought, &why)
		n, o := &e.nodes[at], e.nodes[at].bought
		if o.count > 0 && e.sold(o) > o.stock() {
			texts = append(texts, o.scarce())
			leaving(o.holds)
			for i := range e.nodes { // what this plan gives back
				if x := &e.nodes[i]; !x.alive && o.holds(x) && !slices.Contains(e.gone, int32(i)) {
					wait(x)
				}
			}
			for i := range e.dropped {
				if o.holds(&e.dropped[i]) {
					wait(&e.dropped[i])
				}
			}
		}
		pool := &e.problem.Pools[n.pool]
		for i, left := range e.left[n.pool] {
			of := func(n *node) int64 { // the last one counts nodes
				if i == len(n.usage) {
					return 1
				}
				return n.usage[i]
			}
			name := corev1.ResourceName("nodes")
			if i < len(pool.Limited) {
				name = pool.Limited[i]
			}
			for _, r := range removed {
				if x := &e.nodes[r]; x.pool == n.pool {
					left -= of(x)
				}
			}
			if left < 0 && of(n) > 0 {
				texts = append(texts, fmt.Sprintf("pool %s is at its limit of %s", pool.Name, name))
				leaving(func(x *node) bool { return x.pool == n.pool && of(x) > 0 })
			}
		}
		for i, u := range n.charges {
			left := e.budgets[i]
			for _, r := range removed {
				if x := &e.nodes[r]; len(x.charges) > 0 {
					left -= x.charges[i]
				}
			}
			if q := &e.problem.Budgets[i]; left < 0 && u > 0 {
				texts = append(texts, fmt.Sprintf("quota %q is used up: %s", q.Quota, q.Resource))
				leaving(func(x *node) bool { return len(x.charges) > 0 && x.charges[i] > 0 })
			}
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts), why
}

// rivals sets why, unless it is set, if some pod moves without a question, has no reserved place,
// and would fit a node of the offer.
func (b *buying) rivals(o *offer, why *string) {
	e := b.e
	for i := range e.pods {
		p := &e.pods[i]
		pending := p.node < 0 && p.object.Spec.NodeName == "" // other pods without a node have ended with it
		leaves := p.node >= 0 && e.nodes[p.node].leaving
		if *why != "" || p.values != nil || p.placed > 0 || !pending && !leaves || slices.Contains(b.moving, int32(i)) {
			continue
		}
		if c := e.classOf(int32(i)); c.movable && bind.Fits(c.Need, o.free) && e.buys(c, o) {
			*why = fmt.Sprintf("pod %s has no place, and would take what is bought", podclass.Name(p.object))
		}
	}
}

// scarce says why the offer's count does not allow another node.
func (o *offer) scarce() string {
	what := fmt.Sprintf("%s in %s (%s)", o.typ, o.zone, o.capacity)
	switch {
	case o.id != "":
		what = "reservation " + o.id
	case o.reservation != "":
		what = o.reservation
		if name, counted := strings.CutPrefix(what, market.ByCommitment); counted && !o.money {
			what = "stock " + name
		}
	}
	if o.full {
		return what + " is full"
	}
	if o.money {
		return what + " is spent"
	}
	return fmt.Sprintf("%s has only %d left", what, o.count)
}
