package simulate

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/deprovision"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// market is what can be bought, as types of binpack, with dual prices of resources. It is
// immutable.
type market struct {
	problem *scheduling.Problem
	items   []scheduling.Item           // by class of the problem: one pod of it
	base    binpack.Problem             // resources and pools
	nodes   map[string]requirements.Set // of the nodes of the snapshot: what they provide
	types   []binpack.Type              // by shape
	front   []binpack.Type
	origin  []int // by type of the front: its shape
	offers  [][]int
	ways    map[bought][2]int
	sizes   []size
	static  map[string]bool   // pools of which pods buy no nodes
	fixed   map[string][2]int // by static pool: its cheapest shape and offering
	// fixedFull is the same for the offerings that are full, and limited says which static pools
	// have as many nodes as their limits allow. Both matter only if a node goes before its
	// successor is bought.
	fixedFull map[string][2]int
	limited   map[string]string
}

// staticPools returns the names of the pools with a fixed number of nodes.
func staticPools(s scheduling.Snapshot) map[string]bool {
	out := map[string]bool{}
	for i := range s.Pools {
		if s.Pools[i].IsStatic() {
			out[s.Pools[i].Name] = true
		}
	}
	return out
}

func newMarket(p *scheduling.Problem, static map[string]bool) *market {
	m := &market{problem: p, items: make([]scheduling.Item, len(p.Classes)), static: static}
	for _, it := range p.Items() {
		if len(it.Pods) == 1 {
			m.items[it.Pods[0].Class] = it
		}
	}
	m.base = plan.Problem(p, nil, nil)
	m.nodes = map[string]requirements.Set{}
	for _, n := range m.base.Nodes {
		m.nodes[n.Name] = n.Provides
	}
	m.base.Nodes = nil // an order lists those that get pods
	for i := range m.base.Pools {
		m.base.Pools[i].MinValues = nil // whatif checks them
	}
	m.compileWays()
	m.fixed, m.fixedFull = m.fixedOf(false), m.fixedOf(true)
	m.compileFront()
	m.sizes = m.byCost()
	return m
}

// compileFront finds the offerings that no other offering dominates. An offering dominates another
// with the same relevant labels if it is at least as large and as cheap, and counts no more against
// limits and quotas.
func (m *market) compileFront() {
	types := plan.Types(m.problem)
	m.types = types
	type entry struct {
		typ, offering int
		cost          deprovision.Price
	}
	byLabels := map[string][]entry{}
	var order []string
	for t := range types {
		if m.static[m.base.Pools[types[t].Pool].Name] {
			continue
		}
		for o, x := range types[t].Offerings {
			set, err := types[t].Provides.Intersect(x.Provides)
			if err != nil || m.full(t, o) {
				continue
			}
			real := m.problem.InstanceType(t).Offerings[m.problem.Shapes[t].Offerings[o].Index].Requirements
			key := set.String() + "|" + m.base.Pools[types[t].Pool].Name + "|" + real.Get(corev1.LabelTopologyZone).String() + "|" + real.Get(instancetypes.LabelCapacityType).String()
			if x.Counted {
				key += "|" + x.Reservation + m.problem.InstanceType(t).Name
			}
			if byLabels[key] == nil {
				order = append(order, key)
			}
			byLabels[key] = append(byLabels[key], entry{t, o, costOf(m.problem, t, o)})
		}
	}
	slices.Sort(order)
	undominated := map[int][]int{}
	for _, key := range order {
		list := byLabels[key]
		slices.SortFunc(list, func(a, b entry) int {
			return cmp.Or(cmp.Compare(a.cost, b.cost), strings.Compare(types[a.typ].Name, types[b.typ].Name), cmp.Compare(a.typ, b.typ))
		})
		var front []entry
		for _, e := range list {
			if !slices.ContainsFunc(front, func(f entry) bool {
				a, b := &types[f.typ], &types[e.typ]
				return covers(a.Capacity, b.Capacity) && !more(a.Usage, b.Usage) && !more(a.Offerings[f.offering].Usage, b.Offerings[e.offering].Usage)
			}) {
				front = append(front, e)
				undominated[e.typ] = append(undominated[e.typ], e.offering)
			}
		}
	}
	for t := range types {
		if len(undominated[t]) == 0 {
			continue
		}
		slices.Sort(undominated[t])
		x := types[t]
		x.Offerings = nil
		for _, o := range undominated[t] {
			off := types[t].Offerings[o]
			off.Objective = binpack.Price(costOf(m.problem, t, o))
			x.Offerings = append(x.Offerings, off)
		}
		m.front = append(m.front, x)
		m.origin = append(m.origin, t)
		m.offers = append(m.offers, undominated[t])
	}
}

// bought identifies an offering in a plan.
type bought struct {
	pool, instanceType, zone, capacityType string
	price                                  deprovision.Price
}

// compileWays indexes the offerings by the fields that a plan uses to name them.
func (m *market) compileWays() {
	m.ways = map[bought][2]int{}
	for i := range m.problem.Shapes {
		s := &m.problem.Shapes[i]
		for j, o := range s.Offerings {
			reqs := m.problem.InstanceType(i).Offerings[o.Index].Requirements
			zone, _ := reqs.Get(corev1.LabelTopologyZone).Single()
			capacity, _ := reqs.Get(instancetypes.LabelCapacityType).Single()
			at := bought{m.problem.Pools[s.Pool].Name, m.problem.InstanceType(i).Name, zone, capacity, priceOf(m.problem, i, j)}
			if _, ok := m.ways[at]; !ok && !m.full(i, j) {
				m.ways[at] = [2]int{i, j}
			}
		}
	}
}

// fixedOf returns what static pools buy: the cheapest offering, and reservations only if there is
// nothing else, because pods may be planned on them. It looks at full offerings, or at the others,
// and leaves out those of commitments, from which [pipeline.Static] buys nothing.
func (m *market) fixedOf(full bool) map[string][2]int {
	fixed := map[string][2]int{}
	better := func(pool string, i, j int) bool {
		at, ok := fixed[pool]
		if !ok {
			return true
		}
		a, b := &m.problem.Shapes[i].Offerings[j], &m.problem.Shapes[at[0]].Offerings[at[1]]
		return cmp.Or(
			cmp.Compare(min(a.Count, 1), min(b.Count, 1)), cmp.Compare(costOf(m.problem, i, j), costOf(m.problem, at[0], at[1])),
			strings.Compare(m.problem.InstanceType(i).Name, m.problem.InstanceType(at[0]).Name),
		) < 0
	}
	for i := range m.problem.Shapes {
		pool := m.problem.Pools[m.problem.Shapes[i].Pool].Name
		for j := range m.problem.Shapes[i].Offerings {
			o := &m.problem.InstanceType(i).Offerings[m.problem.Shapes[i].Offerings[j].Index]
			if m.static[pool] && o.Full == full && o.Commitment == "" && better(pool, i, j) {
				fixed[pool] = [2]int{i, j}
			}
		}
	}
	return fixed
}

// full reports whether no node can be bought by the offering of a shape unless another one goes
// first.
func (m *market) full(shape, offering int) bool {
	return m.problem.InstanceType(shape).Offerings[m.problem.Shapes[shape].Offerings[offering].Index].Full
}

// find returns the shape and offering of a node that a plan buys, or -1.
func (m *market) find(n *giveback.NewNode) (shape, offering int) {
	if at, ok := m.ways[bought{n.Pool, n.InstanceType, n.Zone, n.CapacityType, n.PricePerHour}]; ok {
		return at[0], at[1]
	}
	return -1, -1
}

// priceOf returns the price of an offering of a shape.
func priceOf(p *scheduling.Problem, shape, offering int) deprovision.Price {
	return deprovision.Dollars(p.Shapes[shape].Offerings[offering].Price)
}

// costOf returns the cost of an offering of a shape; see [scheduling.Options.Cost].
func costOf(p *scheduling.Problem, shape, offering int) deprovision.Price {
	return deprovision.Dollars(p.Shapes[shape].Offerings[offering].Cost)
}

func covers(a, b []int64) bool {
	for i := range a {
		if a[i] < b[i] {
			return false
		}
	}
	return true
}

// perNode is added to the cost of each node that binpack may buy: a billionth of a dollar. Of
// packings with the same cost it then takes one with few nodes. There are many such packings,
// because the prices of a family are proportional to its sizes. Few large nodes are also easier to
// fill later.
const perNode = 1

// Buy packs the lots with little effort, if a packing may cost less than the limit.
func (m *market) Buy(o whatif.Order) []whatif.Purchase {
	if limit := deprovision.Price(o.MaxPrice); limit > 0 && m.atLeast(m.needs(&o), limit) >= limit {
		return nil
	}
	return m.pack(&o, binpack.EffortFast)
}

// needs returns what the pods of the lots need beyond what open nodes have free.
func (m *market) needs(o *whatif.Order) []int64 {
	need := make([]int64, len(m.problem.Resources))
	for _, l := range o.Lots {
		for d, q := range m.items[l.Class].Requests {
			need[d] += q * int64(l.Count)
		}
	}
	for _, n := range o.Open {
		for d, q := range n.Free {
			need[d] -= max(0, q)
		}
	}
	return need
}

// thorough is the market with more effort for a lower price.
type thorough struct{ *market }

// leastGain is the part of a price that dividing pods between open and new nodes must be able to save.
const leastGain = 200

// Buy packs the lots with the default effort of binpack. With open nodes it buys nothing if a packing
// can't cost less than the limit by some percent, see leastGain.
func (m thorough) Buy(o whatif.Order) []whatif.Purchase {
	limit := deprovision.Price(o.MaxPrice)
	if enough := limit - limit/leastGain; len(o.Open) > 0 && limit > 0 && m.atLeast(m.needs(&o), enough) >= enough {
		return nil
	}
	return m.pack(&o, binpack.EffortDefault)
}

// pack packs the lots with binpack. It returns nil if the cost reaches the limit.
func (m *market) pack(o *whatif.Order, effort binpack.Effort) []whatif.Purchase {
	items := make([]scheduling.Item, len(o.Lots))
	var pinned requirements.Keys
	for i, l := range o.Lots {
		it := m.items[l.Class]
		if l.PerNode > 0 {
			tag := "class " + it.Name
			it.Tags = append(slices.Clip(it.Tags), tag)
			it.Limits = append(slices.Clip(it.Limits), scheduling.Limit{Tag: tag, Max: l.PerNode})
		}
		if !l.Pin.IsAnything() {
			it.Requires, pinned = it.Requires.Intersect(requirements.AnyOf(l.Pin)), pinned.Union(l.Pin.Keys())
		}
		it.Name, it.Count = it.Name+" #"+string(rune('0'+i%10))+strings.Repeat("'", i/10), l.Count
		items[i] = it
	}
	p := m.base
	p.Nodes = m.open(o, items, pinned)
	p.Items = plan.Items(items)
	var offers [][]int
	var origin []int
	for t := range m.front {
		x := m.front[t]
		var allowed []binpack.Offering
		var index []int
		for j, off := range x.Offerings {
			if o.MaxPrice > 0 && off.Objective >= binpack.Price(o.MaxPrice) || !m.sold(m.origin[t], m.offers[t][j], o.CapacityTypes) {
				continue
			}
			if pinned.Len() > 0 {
				off.Provides = m.provides(m.origin[t], m.offers[t][j], off.Provides, pinned)
			}
			off.Objective += perNode
			allowed, index = append(allowed, off), append(index, m.offers[t][j])
		}
		if len(allowed) == 0 {
			continue
		}
		x.Offerings = allowed
		p.Types = append(p.Types, x)
		origin, offers = append(origin, m.origin[t]), append(offers, index)
	}
	in, err := binpack.Compile(p)
	if err != nil {
		return nil // negative sizes
	}
	layout, err := binpack.CostAware{Effort: effort}.Pack(context.Background(), in)
	if err != nil {
		return nil // an unknown effort
	}
	if o.MaxPrice > 0 {
		cost := binpack.Price(0)
		for _, b := range layout.Bins {
			cost += in.Problem().Types[b.Type].Offerings[b.Offering].Objective
		}
		if cost >= binpack.Price(o.MaxPrice) {
			return nil
		}
	}
	var out []whatif.Purchase
	add := func(to whatif.Purchase, shares []binpack.Share) {
		for _, s := range shares {
			to.Pods = append(to.Pods, whatif.LotShare{Lot: s.Item, Count: s.Count})
		}
		out = append(out, to)
	}
	for i, shares := range layout.Nodes {
		if len(shares) > 0 {
			add(whatif.Purchase{Node: p.Nodes[i].Name}, shares)
		}
	}
	for _, b := range layout.Bins {
		add(whatif.Purchase{Shape: origin[b.Type], Offering: offers[b.Type][b.Offering]}, b.Shares)
	}
	return out
}

// open returns the open nodes of an order. Items that need new nodes get a limit that keeps them from
// these.
func (m *market) open(o *whatif.Order, items []scheduling.Item, pinned requirements.Keys) []binpack.Node {
	const tag = "open"
	var out []binpack.Node
	for _, n := range o.Open {
		labels := requirements.FromLabels(n.Labels)
		provides, known := m.nodes[n.Name]
		if n.Shape >= 0 {
			t := &m.types[n.Shape]
			set, err := t.Provides.Intersect(t.Offerings[n.Offering].Provides)
			if known = err == nil; known {
				provides, labels = set, labels.Restrict(pinned.Union(set.Keys()))
			}
		} else {
			labels = labels.Restrict(pinned)
		}
		if provides, err := provides.Intersect(labels); known && err == nil {
			out = append(out, binpack.Node{Name: n.Name, Free: n.Free, Provides: provides, Tags: []string{tag}})
		}
	}
	for i, l := range o.Lots {
		if len(out) > 0 && !l.Anywhere {
			items[i].Limits = append(slices.Clip(items[i].Limits), scheduling.Limit{Tag: tag, Max: 0})
		}
	}
	return out
}

// provides returns what an offering provides, including the labels of pins. A shape does not have
// these labels if no pod refers to them.
func (m *market) provides(shape, offering int, known requirements.Set, keys requirements.Keys) requirements.Set {
	labels, err := m.problem.NodeLabels(shape, offering)
	if err != nil {
		return requirements.Impossible()
	}
	out, err := known.Intersect(labels.Restrict(keys))
	if err != nil {
		return requirements.Impossible()
	}
	return out
}

// sold reports whether an offering has one of the capacity types.
func (m *market) sold(shape, offering int, capacityTypes []string) bool {
	if capacityTypes == nil {
		return true
	}
	t := m.problem.InstanceType(shape)
	return slices.Contains(capacityTypes, t.Offerings[m.problem.Shapes[shape].Offerings[offering].Index].CapacityType())
}
