package whatif

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
)

// heap is a number of pods with the same need and no other constraints.
type heap struct {
	class int32
	need  []int64
	share []float64 // of the total need of all heaps
	pods  []int32
}

// fill places pods on existing nodes and returns the unplaced ones. If there are at least as many
// pods as nodes, plain ones are placed last and node by node. Each time it takes the pod with the
// largest dot product of need and free capacity (R. Panigrahy et al., Heuristics for Vector Bin
// Packing, 2011). Pod by pod, more of one resource would remain where another has run out.
func (e *engine) fill(pods []int32) []int32 {
	if open := e.open(); len(pods) < open || open == 0 {
		return e.placePods(pods, 0, len(e.nodes))
	}
	var held []int32
	var heaps []heap
	known := map[string]int{}
	last, k := int32(-1), 0 // the pods of a class are together
	sum := make([]float64, e.dims)
	for _, p := range pods {
		c := e.classOf(p)
		if !c.plain() {
			held = append(held, p)
			continue
		}
		if id := e.pods[p].class; id != last {
			key := fmt.Sprint(id)
			if len(c.template.Spec.Tolerations) == 0 && c.Required.Len() == 1 && c.Required.At(0).IsAnything() {
				key = fmt.Sprint(c.Need)
			}
			at, ok := known[key]
			if !ok {
				at = len(heaps)
				known[key] = at
				heaps = append(heaps, heap{class: id, need: c.Need, share: make([]float64, e.dims)})
			}
			last, k = id, at
		}
		heaps[k].pods = append(heaps[k].pods, p)
		for d, q := range c.Need {
			sum[d] += float64(q)
		}
	}
	left := e.placePods(held, 0, len(e.nodes))
	for k := range heaps {
		for d, q := range heaps[k].need {
			heaps[k].share[d] = float64(q) / max(1, sum[d])
		}
	}
	from := make([]int, len(heaps)) // by heap: how many are placed
	var fitting []int
	for at := range e.nodes {
		n := &e.nodes[at]
		if e.ctx.Err() != nil {
			break
		}
		if !n.open() {
			continue
		}
		fitting = fitting[:0]
		for k := range heaps {
			if h := &heaps[k]; from[k] < len(h.pods) && bind.Fits(h.need, n.Free) && e.cluster.Suits(&e.classes[h.class].Class, n.LabelClass) {
				fitting = append(fitting, k)
			}
		}
		for len(fitting) > 0 {
			best, most := -1, 0.0
			for _, k := range fitting {
				along := 0.0
				for d, s := range heaps[k].share {
					along += float64(s * (float64(max(0, n.Free[d])) / max(1, sum[d])))
				}
				if best < 0 || along > most {
					best, most = k, along
				}
			}
			p := heaps[best].pods[from[best]]
			from[best]++
			e.do(op{kind: opPlace, pod: p, node: int32(at), old: e.pods[p].node})
			fitting = slices.DeleteFunc(fitting, func(k int) bool { return from[k] == len(heaps[k].pods) || !bind.Fits(heaps[k].need, n.Free) })
		}
	}
	for k := range heaps {
		left = append(left, heaps[k].pods[from[k]:]...)
	}
	slices.SortStableFunc(left, func(a, b int32) int { return int(e.classOf(a).rank - e.classOf(b).rank) })
	return left
}

// open returns how many nodes take pods.
func (e *engine) open() (n int) {
	for i := range e.nodes {
		if e.nodes[i].open() {
			n++
		}
	}
	return n
}

// plain reports whether pods of the class have no constraints but need, labels and taints, and no
// constraint counts them.
func (c *class) plain() bool {
	return len(c.Spreads)+len(c.Terms)+len(c.MemberOf)+len(c.Ports) == 0 && c.soft == nil
}

// place buys and places what the question says, and returns the unplaced pods.
func (b *buying) place(moving []int32) []int32 {
	e := b.e
	meant := make([]string, len(moving))
	classes := map[string][]int32{}
	for i, p := range moving {
		meant[i] = b.q.Place[e.pods[p].object]
		classes[meant[i]] = append(classes[meant[i]], e.pods[p].class)
	}
	first := int32(len(e.nodes))
	for i := range b.q.Buy {
		x := &b.q.Buy[i]
		o := e.offerOf(x.Shape, x.Offering)
		list := slices.Clone(classes[x.Name])
		slices.Sort(list)
		if o == nil || e.taken[x.Name] || !b.allowedOffer(o, b.q.MaxPrice) || !b.open(o, slices.Compact(list), x.Name) {
			return moving
		}
	}
	nodes := make([]int32, len(moving))
	for i, name := range meant {
		nodes[i] = -1
		if at, ok := e.nodeAt[name]; ok {
			nodes[i] = at
		}
	}
	if b.q.Elsewhere {
		var from []int32
		for _, name := range b.q.Remove {
			from = append(from, e.nodeAt[name])
		}
		x := exchange{e: e, pods: moving, nodes: nodes, lots: map[lotKey]int{}, held: map[int32]map[int]int{}, first: first}
		x.run(from)
	}
	left := e.placeAt(moving, nodes)
	if b.q.Elsewhere {
		left = e.placePods(left, 0, len(e.nodes))
	}
	return left
}

// domainOf returns the domains of a node that the constraints of a class look at, without fine
// keys.
func (e *engine) domainOf(c *class, at int32) string {
	if at < 0 {
		return ""
	}
	var text []byte
	see := func(group int32) {
		if key := e.index.Groups()[group].Key; !e.fine[key] {
			text = binary.AppendVarint(text, int64(e.nodes[at].Values[key]))
		}
	}
	for i := range c.Spreads {
		see(c.Spreads[i].Group)
	}
	for i := range c.Terms {
		see(c.Terms[i].Group)
	}
	return string(text)
}

// placeAt puts each pod on its node, repeats that for pods that others may let in, and returns
// those that their node refuses. Node -1 refuses all.
func (e *engine) placeAt(pods, nodes []int32) []int32 {
	waiting := make([]int, len(pods))
	for i := range waiting {
		waiting[i] = i
	}
	for before := -1; len(waiting) > 0 && len(waiting) != before; {
		before = len(waiting)
		waiting = slices.DeleteFunc(waiting, func(i int) bool {
			at := nodes[i]
			if at < 0 || !e.nodes[at].open() || !e.accepts(e.classOf(pods[i]), &e.nodes[at]) {
				return false
			}
			e.do(op{kind: opPlace, pod: pods[i], node: at, old: e.pods[pods[i]].node})
			return true
		})
	}
	left := make([]int32, len(waiting))
	for k, i := range waiting {
		left[k] = pods[i]
	}
	return left
}

// window limits how many nodes run compares at each step.
const window = 64

// exchange permutes the places of indistinguishable pods, so that few nodes at a time can be given
// back. It empties one node after the other, each time the one whose pods need the fewest places on
// nodes that are not bought yet, and buys the nodes with most of these places. A pod whose class
// has spreads or affinity takes a place in its own domain, so that counts do not change in any
// order. If a domain is to have fewer pods, its first pods go to other domains, because
// kube-scheduler accepts none in that domain before.
type exchange struct {
	e       *engine
	pods    []int32 // in the order in which they are placed
	nodes   []int32 // the place of each
	lots    map[lotKey]int
	open    [][]int32             // by lot: places on nodes that exist
	held    map[int32]map[int]int // by node that is not bought yet: its places, by lot
	classes []int32               // by lot
	surplus []int                 // by lot: how many of its pods go to other domains
	relief  map[int32]int         // by class: the lot of places for them
	first   int32                 // the first of the nodes to buy
}

// lotKey is a class and the domains that its constraints look at.
type lotKey struct {
	class  int32
	domain string
	relief bool
}

func (x *exchange) lot(class, at int32) int {
	k := lotKey{class: class}
	if c := &x.e.classes[class]; c.waits() {
		k.domain = x.e.domainOf(c, at)
	}
	return x.lotOf(k)
}

func (x *exchange) lotOf(k lotKey) int {
	id, ok := x.lots[k]
	if !ok {
		id = len(x.lots)
		x.lots[k] = id
		x.open, x.surplus, x.classes = append(x.open, nil), append(x.surplus, 0), append(x.classes, k.class)
	}
	return id
}

// demand is the pods of a lot on one node.
type demand struct {
	lot  int
	pods []int
}

// run permutes the places; nodes from first on are those to buy.
func (x *exchange) run(from []int32) {
	e := x.e
	order := make([]int, len(x.nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(x.nodes[a] - x.nodes[b]) })
	for _, i := range order {
		at := x.nodes[i]
		lot := x.lot(e.pods[x.pods[i]].class, at)
		x.surplus[lot]--
		if at < x.first {
			x.open[lot] = append(x.open[lot], at)
			continue
		}
		if x.held[at] == nil {
			x.held[at] = map[int]int{}
		}
		x.held[at][lot]++
	}
	demands := map[int32][]demand{}
	for i, p := range x.pods {
		on := e.pods[p].node
		lot := x.lot(e.pods[p].class, on)
		x.surplus[lot]++
		list := demands[on]
		if k := slices.IndexFunc(list, func(d demand) bool { return d.lot == lot }); k >= 0 {
			list[k].pods = append(list[k].pods, i)
		} else {
			demands[on] = append(list, demand{lot, []int{i}})
		}
	}
	x.relieve()
	waiting := slices.Clone(from)
	for len(waiting) > 0 {
		best, least := 0, -1
		for k, on := range waiting[:min(window, len(waiting))] {
			missing := 0
			for _, d := range demands[on] {
				away := min(len(d.pods), x.surplus[d.lot])
				missing += max(0, len(d.pods)-away-len(x.open[d.lot]))
				if away > 0 {
					missing += max(0, away-len(x.open[x.relief[x.classes[d.lot]]]))
				}
			}
			if least < 0 || missing < least {
				best, least = k, missing
			}
			if missing == 0 {
				break
			}
		}
		x.assign(x.split(demands[waiting[best]]))
		waiting = slices.Delete(waiting, best, best+1)
	}
}

// relieve moves places that a domain has in excess of its pods to the lot for pods of other
// domains.
func (x *exchange) relieve() {
	x.relief = map[int32]int{}
	for id := range slices.Clone(x.surplus) {
		if x.surplus[id] >= 0 {
			continue
		}
		class := x.classes[id]
		to := x.lotOf(lotKey{class: class, relief: true})
		x.relief[class] = to
		for n := -x.surplus[id]; n > 0; n-- {
			if k := len(x.open[id]); k > 0 {
				x.open[to] = append(x.open[to], x.open[id][k-1])
				x.open[id] = x.open[id][:k-1]
				continue
			}
			last := int32(-1)
			for at, places := range x.held {
				if places[id] > 0 {
					last = max(last, at)
				}
			}
			x.held[last][id]--
			x.held[last][to]++
		}
		x.surplus[id] = 0
	}
}

// split moves pods of domains that are to have fewer to the lots for other domains.
func (x *exchange) split(list []demand) []demand {
	var out []demand
	for _, d := range list {
		if away := min(len(d.pods), x.surplus[d.lot]); away > 0 {
			x.surplus[d.lot] -= away
			out = append(out, demand{x.relief[x.classes[d.lot]], d.pods[:away]})
			d.pods = d.pods[away:]
		}
		out = append(out, d)
	}
	return out
}

// assign gives places to the pods of a node, and buys nodes for them.
func (x *exchange) assign(list []demand) {
	for {
		short := slices.DeleteFunc(slices.Clone(list), func(d demand) bool { return len(d.pods) <= len(x.open[d.lot]) })
		if len(short) == 0 {
			break
		}
		best, most := int32(-1), 0
		for at, places := range x.held {
			gain := 0
			for _, d := range short {
				gain += min(places[d.lot], len(d.pods)-len(x.open[d.lot]))
			}
			if gain > most || gain == most && gain > 0 && at < best {
				best, most = at, gain
			}
		}
		if most == 0 {
			break
		}
		for lot, n := range x.held[best] {
			x.open[lot] = append(x.open[lot], slices.Repeat([]int32{best}, n)...)
		}
		delete(x.held, best)
	}
	for _, d := range list {
		n := min(len(d.pods), len(x.open[d.lot]))
		for k := range n {
			x.nodes[d.pods[k]] = x.open[d.lot][k]
		}
		x.open[d.lot] = x.open[d.lot][n:]
	}
}
