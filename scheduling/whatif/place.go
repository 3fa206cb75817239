package whatif

import (
	"cmp"
	"slices"
)

// place does what the question says instead of looking for places, and returns the pods that have none.
func (b *buying) place(moving []int32) []int32 {
	e := b.e
	meant := make([]string, len(moving))
	classes := map[string][]int32{}
	for i, p := range moving {
		meant[i] = b.q.Place[e.pods[p].object]
	}
	if b.q.Elsewhere {
		b.deal(moving, meant)
	}
	for i, p := range moving {
		classes[meant[i]] = append(classes[meant[i]], e.pods[p].class)
	}
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
	left := e.placeAt(moving, nodes)
	if b.q.Elsewhere {
		left = e.placePods(left, 0, len(e.nodes))
	}
	return left
}

// deal gives the places that the pods of each class have together to these in the order of the question: existing nodes first,
// then those to buy, in their order. So pods of a node go to few others, and few nodes at a time can be given back.
func (b *buying) deal(moving []int32, meant []string) {
	e := b.e
	order := map[string]int{}
	for i := range b.q.Buy {
		order[b.q.Buy[i].Name] = len(e.nodes) + i
	}
	at := func(name string) int {
		if i, ok := e.nodeAt[name]; ok {
			return int(i)
		}
		return order[name]
	}
	for start := 0; start < len(moving); {
		end := start + 1
		for end < len(moving) && e.pods[moving[end]].class == e.pods[moving[start]].class {
			end++
		}
		slices.SortStableFunc(meant[start:end], func(a, b string) int { return cmp.Compare(at(a), at(b)) })
		start = end
	}
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
