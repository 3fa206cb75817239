package whatif

import (
	"encoding/binary"
	"slices"
)

// place does what the question says instead of looking for places, and returns the pods that have none.
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
		if o == nil || e.taken[x.Name] || !b.allowedOffer(o, b.q.MaxPrice) || !b.open(o, slices.Compact(list), x.Name) || !b.valued(o) {
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
		x := exchange{e: e, pods: moving, nodes: nodes, lots: map[lotKey]int{}, held: map[int32][]int{}, first: first}
		x.run(from)
	}
	left := e.placeAt(moving, nodes)
	if b.q.Elsewhere {
		left = e.placePods(left, 0, len(e.nodes))
	}
	return left
}

// domainOf is where a node is as far as the constraints of a class ask, the node itself aside.
func (e *engine) domainOf(c *class, at int32) string {
	if at < 0 {
		return ""
	}
	var text []byte
	see := func(group int32) {
		if key := e.index.Groups()[group].Key; !e.fine[key] {
			text = binary.AppendVarint(text, int64(e.nodes[at].values[key]))
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

// placeAt puts each pod on the node meant for it, goes round for those that wait for others, and returns those that their node
// does not take; -1 is no node.
func (e *engine) placeAt(pods, nodes []int32) []int32 {
	waiting := make([]int, len(pods))
	for i := range waiting {
		waiting[i] = i
	}
	for before := -1; len(waiting) > 0 && len(waiting) != before; {
		before = len(waiting)
		waiting = slices.DeleteFunc(waiting, func(i int) bool {
			at := nodes[i]
			if at < 0 || !e.nodes[at].open() || !e.accepts(&e.classes[e.pods[pods[i]].class], &e.nodes[at]) {
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
