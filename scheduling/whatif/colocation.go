package whatif

import "slices"

// pair is an unplaced pod and a moving pod that its affinity counts, both placed in one domain, or
// both apart, to be bought a node together.
type pair struct {
	places []op
	apart  []int32
}

// colocate makes further attempts if a pod with affinity or a spread is unplaced. In the first
// attempt, the pod that affinity asks for took the first node that accepted it, and there was no
// room beside it. Each further attempt places a pair first, then the pods that were unplaced, then
// the others. The pair of the best attempt is kept for the next unplaced pod. The best attempt has
// the fewest unplaced pods.
//
// left are the unplaced pods of the first attempt, which was made after the mark. The best attempt
// is carried out, and its unplaced pods are returned.
func (b *buying) colocate(mark int, left []int32) []int32 {
	e := b.e
	best := slices.Clone(e.journal[mark:])
	var kept pair
	for improved := true; improved && len(left) > 0 && e.classOf(left[0]).waits(); {
		improved = false
		b.undo(mark)
		first, pairs := left, b.pairs(mark, kept, left[0])
		for _, x := range pairs {
			if e.ctx.Err() != nil || len(left) == 0 {
				break
			}
			b.undo(mark)
			pods := append(slices.Clone(first), slices.DeleteFunc(slices.Clone(b.moving), func(p int32) bool { return slices.Contains(first, p) })...)
			pods = slices.DeleteFunc(pods, func(p int32) bool {
				return slices.Contains(x.apart, p) || slices.ContainsFunc(x.places, func(o op) bool { return o.pod == p })
			})
			for _, o := range x.places {
				e.do(o)
			}
			if rest := b.settle(mark, pods, x.apart); len(rest) < len(left) {
				best, left, kept, improved = slices.Clone(e.journal[mark:]), rest, x, true
			}
		}
	}
	b.redo(mark, best)
	return left
}

// redo replaces everything after the mark.
func (b *buying) redo(mark int, ops []op) {
	e := b.e
	b.undo(mark)
	for _, o := range ops {
		e.do(o)
		if o.kind == opAdd {
			b.bought = append(b.bought, int32(len(e.nodes)-1))
		}
		if o.kind == opRemove { // of an empty one
			b.bought = slices.DeleteFunc(b.bought, func(n int32) bool { return n == o.node })
		}
	}
}

// instead buys nodes for all pods with constraints between pods, and then for all pods, because those
// that took room on existing nodes may have kept others from a place. It returns the unplaced pods,
// which are those given if neither places all.
func (b *buying) instead(mark int, left []int32) []int32 {
	e, before, last := b.e, slices.Clone(b.e.journal[mark:]), 0
	for _, all := range []bool{false, true} {
		apart := slices.DeleteFunc(slices.Clone(b.moving), func(p int32) bool { return !all && e.classOf(p).plain() })
		if len(apart) == last || b.q.MaxNodes == 0 || e.ctx.Err() != nil {
			continue
		}
		last = len(apart)
		b.undo(mark)
		if len(b.settle(mark, slices.DeleteFunc(slices.Clone(b.moving), func(p int32) bool { return slices.Contains(apart, p) }), apart)) == 0 {
			return nil
		}
	}
	b.redo(mark, before)
	return left
}

// pairs returns the pairs to try for an unplaced pod, each with those that are kept: no new one,
// one in each domain in which existing nodes accept both pods, one to buy for, and all pods that
// its affinity counts to buy for. No pod of the question is placed.
func (b *buying) pairs(mark int, kept pair, p int32) []pair {
	e := b.e
	out := []pair{kept}
	c := e.classOf(p)
	for i := range c.Terms {
		t := &c.Terms[i]
		if t.Anti {
			continue
		}
		key, last, mates := e.index.Groups()[t.Group].Key, int32(-1), b.mates(p, t.Group, kept)
		for _, q := range mates {
			if e.pods[q].class == last {
				continue
			}
			last = e.pods[q].class
			for _, o := range kept.places {
				e.do(o)
			}
			base := len(e.journal)
			var tried []int32
			for at := range e.nodes {
				v := e.nodes[at].Values[key]
				if v < 0 || slices.Contains(tried, v) || !b.put(q, at) {
					continue
				}
				for by := range e.nodes {
					if e.nodes[by].Values[key] == v && b.put(p, by) {
						tried = append(tried, v)
						out = append(out, pair{slices.Clone(e.journal[mark:]), kept.apart})
						break
					}
				}
				e.rollback(base)
				if len(tried) == mostChoices {
					break
				}
			}
			e.rollback(mark)
			if b.q.MaxNodes > 0 {
				out = append(out, pair{kept.places, append(slices.Clone(kept.apart), q, p)})
			}
		}
		if b.q.MaxNodes > 0 && len(mates) > 1 { // existing nodes may have room for some of them only
			out = append(out, pair{kept.places, append(append(slices.Clone(kept.apart), mates...), p)})
		}
	}
	return out
}

// mates returns the other moving pods of a group, without those of the kept pair.
func (b *buying) mates(p, group int32, kept pair) []int32 {
	return slices.DeleteFunc(slices.Clone(b.moving), func(q int32) bool {
		return q == p || !slices.Contains(b.e.classOf(q).MemberOf, group) || slices.Contains(kept.apart, q) ||
			slices.ContainsFunc(kept.places, func(o op) bool { return o.pod == q })
	})
}

// put places a pod on a node if the node accepts it.
func (b *buying) put(p int32, at int) bool {
	e := b.e
	if n := &e.nodes[at]; !n.open() || !e.accepts(e.classOf(p), n) {
		return false
	}
	e.do(op{kind: opPlace, pod: p, node: int32(at), old: e.pods[p].node})
	return true
}
