package simulate

import (
	"cmp"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// market is what can be bought, as binpack sees it, and what a unit of each resource is worth there. It is immutable.
type market struct {
	problem *scheduling.Problem
	items   []scheduling.Item // by class of the problem: what one pod asks
	pools   []binpack.Pool
	front   []binpack.Type
	origin  []int // by type of the front: its shape
	offers  [][]int
	units   [][2]float64 // prices of a milli-CPU and a byte that no offer undercuts
}

func newMarket(p *scheduling.Problem) *market {
	m := &market{problem: p, items: make([]scheduling.Item, len(p.Classes))}
	for _, it := range p.Items() {
		if len(it.Pods) == 1 {
			m.items[it.Pods[0].Class] = it
		}
	}
	whole := plan.Problem(p, nil, nil)
	m.pools = whole.Pools
	for i := range m.pools {
		m.pools[i].MinValues = nil // whatif asks it of what is bought
	}
	m.compileFront()
	m.compileUnits()
	return m
}

// compileFront keeps of the offerings those that no other undercuts: at least as large in everything, as cheap, and with the
// same labels as far as anybody asks.
func (m *market) compileFront() {
	types := plan.Types(m.problem)
	type entry struct {
		typ, offering int
		price         binpack.Price
	}
	byLabels := map[string][]entry{}
	var order []string
	for t := range types {
		for o, x := range types[t].Offerings {
			set, err := types[t].Provides.Intersect(x.Provides)
			if err != nil {
				continue
			}
			real := m.problem.InstanceType(t).Offerings[m.problem.Shapes[t].Offerings[o].Index].Requirements
			key := set.String() + "|" + m.pools[types[t].Pool].Name + "|" + real.Get(corev1.LabelTopologyZone).String() + "|" + real.Get(instancetypes.LabelCapacityType).String()
			if x.Counted {
				key += "|" + x.Reservation + m.problem.InstanceType(t).Name
			}
			if byLabels[key] == nil {
				order = append(order, key)
			}
			byLabels[key] = append(byLabels[key], entry{t, o, x.Price})
		}
	}
	slices.Sort(order)
	keep := map[int][]int{}
	for _, key := range order {
		list := byLabels[key]
		slices.SortFunc(list, func(a, b entry) int {
			return cmp.Or(cmp.Compare(a.price, b.price), strings.Compare(types[a.typ].Name, types[b.typ].Name), cmp.Compare(a.typ, b.typ))
		})
		var front []entry
		for _, e := range list {
			if !slices.ContainsFunc(front, func(f entry) bool { return covers(types[f.typ].Capacity, types[e.typ].Capacity) }) {
				front = append(front, e)
				keep[e.typ] = append(keep[e.typ], e.offering)
			}
		}
	}
	for t := range types {
		if len(keep[t]) == 0 {
			continue
		}
		slices.Sort(keep[t])
		x := types[t]
		x.Offerings = nil
		for _, o := range keep[t] {
			x.Offerings = append(x.Offerings, types[t].Offerings[o])
		}
		m.front = append(m.front, x)
		m.origin = append(m.origin, t)
		m.offers = append(m.offers, keep[t])
	}
}

// find is the way to buy a node as it was bought before; -1 if there is none.
func (m *market) find(n *deprovision.NewNode) (shape, offering int) {
	for i := range m.problem.Shapes {
		s := &m.problem.Shapes[i]
		if m.problem.Pools[s.Pool].Name != n.Pool || m.problem.InstanceType(i).Name != n.InstanceType {
			continue
		}
		for j, o := range s.Offerings {
			reqs := m.problem.InstanceType(i).Offerings[o.Index].Requirements
			zone, _ := reqs.Get(corev1.LabelTopologyZone).Single()
			capacity, _ := reqs.Get(instancetypes.LabelCapacityType).Single()
			if zone == n.Zone && capacity == n.CapacityType && o.Price == n.PricePerHour {
				return i, j
			}
		}
	}
	return -1, -1
}

func covers(a, b []int64) bool {
	for i := range a {
		if a[i] < b[i] {
			return false
		}
	}
	return true
}

// compileUnits finds, for different weights of cpu and memory, the highest prices of a unit that still leave every offer at
// least as dear as what it holds.
func (m *market) compileUnits() {
	const steps = 32
	for k := range steps + 1 {
		share := float64(k) / steps
		cpu, memory := share/1000, (1-share)/(4<<30)
		least := math.Inf(1)
		for _, t := range m.front {
			size := cpu*float64(max(0, t.Capacity[0])) + memory*float64(max(0, t.Capacity[1]))
			for _, o := range t.Offerings {
				if size > 0 {
					least = math.Min(least, o.Price.Dollars()/size)
				}
			}
		}
		if !math.IsInf(least, 1) {
			m.units = append(m.units, [2]float64{cpu * least, memory * least})
		}
	}
}

// worth is a price below which nothing holds so much.
func (m *market) worth(need []int64) float64 {
	best := 0.0
	for _, u := range m.units {
		best = math.Max(best, u[0]*float64(max(0, need[0]))+u[1]*float64(max(0, need[1])))
	}
	return best * (1 - 1e-9) // sums of many numbers are not exact
}

// near is how far the quick packing may be above what is allowed for the thorough one to be tried.
const near = 1.04

// Buy packs the lots at little cost: quickly first, and with binpack where that may find something cheaper.
func (m *market) Buy(o whatif.Order) []whatif.Purchase {
	need := make([]int64, len(m.problem.Resources))
	for _, l := range o.Lots {
		for d, q := range m.items[l.Class].Requests {
			need[d] += q * int64(l.Count)
		}
	}
	if o.MaxPrice > 0 && m.worth(need) >= o.MaxPrice {
		return nil
	}
	limit := o.MaxPrice
	o.MaxPrice *= near
	quick, price := m.quick(&o)
	o.MaxPrice = limit
	if limit > 0 && (quick == nil || price >= limit) {
		if quick == nil {
			return nil
		}
		quick = nil
	}
	if quick != nil {
		o.MaxPrice = price
	}
	if thorough := m.pack(&o); thorough != nil {
		return thorough
	}
	return quick
}

// pack packs the lots with binpack, and returns nothing where that costs as much as is allowed.
func (m *market) pack(o *whatif.Order) []whatif.Purchase {
	p := binpack.Problem{Pools: m.pools}
	for _, r := range m.problem.Resources {
		p.Resources = append(p.Resources, string(r))
	}
	for i, l := range o.Lots {
		it := m.items[l.Class]
		item := binpack.Item{
			Name: it.Name + " #" + string(rune('0'+i%10)) + strings.Repeat("'", i/10), Count: l.Count, Size: it.Requests, Tags: it.Tags, Priority: it.Priority,
		}
		for _, x := range it.Limits {
			item.Limits = append(item.Limits, binpack.Limit{Tag: x.Tag, Max: x.Max})
		}
		item.Requires = it.Requires
		if !l.Pin.IsAnything() {
			item.Requires = item.Requires.Intersect(alternatives(l.Pin))
		}
		if l.PerNode > 0 {
			tag := "class " + it.Name
			item.Tags = append(slices.Clip(item.Tags), tag)
			item.Limits = append(item.Limits, binpack.Limit{Tag: tag, Max: l.PerNode})
		}
		p.Items = append(p.Items, item)
	}
	pinned := pinnedKeys(o)
	var offers [][]int
	var origin []int
	for t := range m.front {
		x := m.front[t]
		var kept []binpack.Offering
		var index []int
		for j, off := range x.Offerings {
			if o.MaxPrice > 0 && off.Price.Dollars() >= o.MaxPrice || !m.sold(m.origin[t], m.offers[t][j], o.CapacityTypes) {
				continue
			}
			if pinned.Len() > 0 {
				off.Provides = m.provides(m.origin[t], m.offers[t][j], off.Provides, pinned)
			}
			kept, index = append(kept, off), append(index, m.offers[t][j])
		}
		if len(kept) == 0 {
			continue
		}
		x.Offerings = kept
		p.Types = append(p.Types, x)
		origin, offers = append(origin, m.origin[t]), append(offers, index)
	}
	in, err := binpack.Compile(p)
	if err != nil {
		return nil // sizes below zero: nothing can be bought for such pods
	}
	layout := binpack.CostAware{Effort: binpack.EffortFast}.Pack(in)
	if o.MaxPrice > 0 {
		cost := 0.0
		for _, b := range layout.Bins {
			cost += in.Problem().Types[b.Type].Offerings[b.Offering].Price.Dollars()
		}
		if cost >= o.MaxPrice {
			return nil
		}
	}
	back := in.Origins()
	var out []whatif.Purchase
	for _, b := range layout.Bins {
		at := back[b.Type]
		buy := whatif.Purchase{Shape: origin[at.Type], Offering: offers[at.Type][at.Offering+b.Offering]}
		for _, s := range b.Shares {
			buy.Pods = append(buy.Pods, whatif.LotShare{Lot: s.Item, Count: s.Count})
		}
		out = append(out, buy)
	}
	return out
}

// pinnedKeys are the labels that some lot is pinned by.
func pinnedKeys(o *whatif.Order) requirements.Keys {
	var keys []string
	for i := range o.Lots {
		for r := range o.Lots[i].Pin.All() {
			keys = append(keys, r.Key())
		}
	}
	slices.Sort(keys)
	return requirements.KeysOf(slices.Compact(keys)...)
}

// provides is what an offering provides with the labels by which lots are pinned: what no pod asks about is not among the labels
// of a shape.
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

// sold reports whether an offering is of one of the capacity types.
func (m *market) sold(shape, offering int, capacityTypes []string) bool {
	if capacityTypes == nil {
		return true
	}
	t := m.problem.InstanceType(shape)
	return slices.Contains(capacityTypes, t.Offerings[m.problem.Shapes[shape].Offerings[offering].Index].CapacityType())
}
