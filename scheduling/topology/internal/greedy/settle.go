package greedy

import (
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
)

// narrowing is what a node would be with one more pod.
type narrowing struct {
	n     *node
	st    *Stage
	last  bool             // of values that are as good the last is taken
	base  requirements.Set // with what the pod asks of the node itself: each constraint looks at this
	set   requirements.Set // with what its constraints between pods ask so far
	cells []*Cell          // that it could still be; none where it cannot be
	used  []int64
}

// to lets a label have these values only.
func (w *narrowing) to(key string, list []string) {
	if len(list) == 0 {
		w.cells = nil
		return
	}
	both, err := w.set.Intersect(requirements.MustOf(requirements.In(key, list...)))
	if err != nil {
		w.cells = nil
		return
	}
	w.set, w.cells = both, open(w.cells, both, w.used)
}

// one is the first of several values, all as good, that the node can have, or the last.
func (w *narrowing) one(key string, of []string) []string {
	of = slices.Clone(of)
	if w.last {
		slices.Reverse(of)
	}
	for i, v := range of {
		if both, err := w.set.Intersect(requirements.MustOf(requirements.In(key, v))); err == nil && len(open(w.cells, both, w.used)) > 0 {
			return of[i : i+1]
		}
	}
	return nil
}

// values are those that the label may have, as far as requirements of node and pod say. What is for sale plays no part.
func (w *narrowing) values(key string) []string { return values(key, w.base, w.n.all) }

// settle narrows a node to where constraints between pods let one more be, and reports whether that is anywhere.
func (s *planner) settle(w *narrowing, c *Class) bool {
	for _, t := range w.st.Terms {
		if g := &s.p.Groups[t.Group]; g.Within && !t.Anti && w.n.tags[g.Tag] == 0 && (!t.Self || s.groups[t.Group].total > 0) {
			return false
		}
	}
	for _, sp := range w.st.Spreads {
		if g := &s.p.Groups[sp.Group]; !g.Within {
			w.to(g.Key, w.one(g.Key, s.emptiest(sp, w)))
		}
	}
	for _, t := range w.st.Terms {
		switch g := &s.p.Groups[t.Group]; {
		case g.Within:
		case t.Anti:
			w.to(g.Key, without(w.allowed(g.Key), s.groups[t.Group].possible))
		default:
			w.to(g.Key, s.near(t, w))
		}
	}
	for _, id := range c.Groups {
		if g := &s.p.Groups[id]; !g.Within && g.Kept {
			if here := w.values(g.Key); len(here) > 0 {
				w.to(g.Key, without(here, s.groups[id].owners))
			}
		}
	}
	return len(w.cells) > 0
}

// allowed are the values that the pods themselves allow.
func (w *narrowing) allowed(key string) []string {
	return slices.DeleteFunc(w.values(key), func(v string) bool { return !w.st.allows(key, v) })
}

// allows reports whether the pods ask for nothing else than the value.
func (st *Stage) allows(key, value string) bool {
	for set := range st.Asked.All() {
		if set.Get(key).Contains(value) {
			return true
		}
	}
	return false
}

// near are the values where pods of the group are. Where there are none that the pod could join, and it is one of them, it
// is the first: anywhere, and its node may be in another domain as well.
func (s *planner) near(t Term, w *narrowing) []string {
	g, counts := &s.p.Groups[t.Group], s.groups[t.Group].sure[0]
	here := w.allowed(g.Key)
	if near := slices.DeleteFunc(slices.Clone(here), func(v string) bool { return counts[v] == 0 }); len(near) > 0 {
		return near
	}
	if !t.Self || slices.ContainsFunc(g.Values, func(v string) bool { return counts[v] > 0 && w.st.allows(g.Key, v) }) {
		return nil
	}
	first := slices.Clone(w.one(g.Key, here))
	for _, v := range g.Values {
		if len(first) == 1 && v != first[0] && w.st.allows(g.Key, v) {
			first = append(first, v)
		}
	}
	return first
}

// emptiest are the values with the fewest pods that a spread allows.
func (s *planner) emptiest(sp Spread, w *narrowing) []string {
	g, counts := &s.p.Groups[sp.Group], s.seen(sp.Group, w.st.Anew)
	least, eligible := math.MaxInt, 0
	for _, v := range g.Values {
		if w.st.allows(g.Key, v) {
			eligible++
			least = min(least, counts[v])
		}
	}
	if eligible < max(1, sp.MinDomains) {
		least = 0
	}
	self := 0
	if sp.Self {
		self = 1
	}
	var best []string
	for _, v := range w.allowed(g.Key) {
		switch {
		case counts[v]+self-least > sp.MaxSkew:
		case best == nil || counts[v] < counts[best[0]]:
			best = []string{v}
		case counts[v] == counts[best[0]]:
			best = append(best, v)
		}
	}
	return best
}

// seen are the counts of a group as spreads of the number see them.
func (s *planner) seen(group, number int) map[string]int {
	c := &s.groups[group]
	for len(c.sure) <= number {
		c.sure = append(c.sure, nil)
	}
	if c.sure[number] == nil {
		c.sure[number] = counted(s.p.Groups[group].Running)
	}
	return c.sure[number]
}

func without(list []string, counts map[string]int) []string {
	return slices.DeleteFunc(slices.Clone(list), func(v string) bool { return counts[v] > 0 })
}

// record counts a pod on its node: for those that look for it where the node surely is, for those that keep away from it
// wherever the node may be.
func (s *planner) record(n *node, c *Class, st *Stage) {
	for _, id := range c.Groups {
		g, at := &s.p.Groups[id], &s.groups[id]
		if g.Within {
			at.total++
			continue
		}
		if !n.passes(g) {
			continue
		}
		here := values(g.Key, n.set, n.all)
		if len(here) == 1 {
			for _, counts := range at.sure {
				if counts != nil {
					counts[here[0]]++
				}
			}
		}
		if len(here) == 1 || n.set.Has(g.Key) {
			for _, v := range here {
				at.possible[v]++
			}
		}
	}
	for _, t := range st.Terms {
		if g := &s.p.Groups[t.Group]; t.Anti && t.Hard && !g.Within {
			for _, v := range values(g.Key, n.set, n.all) {
				s.groups[t.Group].owners[v]++
			}
		}
	}
}

// passes reports whether the group counts pods on the node, as far as it is decided.
func (n *node) passes(g *Group) bool {
	return slices.ContainsFunc(n.cells, func(c *Cell) bool {
		both, err := c.Labels.Intersect(n.set)
		return err == nil && g.Passes(both)
	})
}
