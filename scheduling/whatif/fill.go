package whatif

import (
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
	open := 0
	for i := range e.nodes {
		if e.nodes[i].open() {
			open++
		}
	}
	if len(pods) < open || open == 0 {
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

// plain reports whether pods of the class have no constraints but need, labels and taints, and no
// constraint counts them.
func (c *class) plain() bool {
	return len(c.Spreads)+len(c.Terms)+len(c.MemberOf)+len(c.Ports) == 0 && c.soft == nil
}
