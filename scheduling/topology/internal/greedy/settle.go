package greedy

import (
	"math"
	"slices"
)

// narrowing is what a node would be with one more pod.
type narrowing struct {
	n    *node
	st   *stage
	base *form // with what the pod asks of the node itself: each constraint looks at this
	form *form // with what its constraints between pods ask so far
	full bool  // another node of the form might have the room that this one lacks
}

// to lets the label of a group have these values only.
func (s *planner) to(w *narrowing, group int, list []int) {
	k := s.groups[group].label
	w.form = w.form.to(k, &s.labels[k], list)
}

// one is one of several values, all as good, that the node can have; none if it can have none.
func (s *planner) one(w *narrowing, group int, of []int) []int {
	k := s.groups[group].label
	for _, at := range s.turns(len(of)) {
		there := w.form.to(k, &s.labels[k], of[at:at+1])
		if there.holds(s.used) {
			return of[at : at+1]
		}
		w.full = w.full || len(there.cells) > 0
	}
	return nil
}

// turns are the positions of n values that are as good, in the order in which they are tried.
func (s *planner) turns(n int) []int {
	if s.p.Ties > 1 {
		return s.random.Perm(n)
	}
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	if s.p.Ties == 1 {
		slices.Reverse(out)
	}
	return out
}

// values are those of a group that requirements of node and pod allow. What is for sale plays no part.
func (s *planner) values(w *narrowing, group int) []int {
	f := w.base
	for len(f.values) <= group {
		f.values = append(f.values, nil)
	}
	if f.values[group] == nil {
		l := &s.labels[s.groups[group].label]
		asked := f.set.Get(l.name)
		f.values[group] = slices.DeleteFunc(slices.Clone(s.groups[group].values), func(v int) bool { return !asked.Contains(l.values[v]) })
	}
	return f.values[group]
}

// settle narrows a node to where constraints between pods let one more be, and reports whether that is anywhere.
func (s *planner) settle(w *narrowing, c *Class) bool {
	for _, t := range w.st.Terms {
		if g := &s.p.Groups[t.Group]; g.Within && !t.Anti && w.n.tags[g.Tag] == 0 && (!t.Self || s.groups[t.Group].total > 0) {
			return false
		}
	}
	for i, sp := range w.st.Spreads {
		if !s.p.Groups[sp.Group].Within {
			s.to(w, sp.Group, s.one(w, sp.Group, s.emptiest(w, i)))
		}
	}
	for _, t := range w.st.Terms {
		switch {
		case s.p.Groups[t.Group].Within:
		case t.Anti:
			s.to(w, t.Group, without(s.allowed(w, t.Group), s.groups[t.Group].possible))
		default:
			s.to(w, t.Group, s.near(w, t))
		}
	}
	for _, id := range c.Groups {
		if g := &s.p.Groups[id]; !g.Within && g.Kept {
			if here := s.values(w, id); len(here) > 0 {
				s.to(w, id, without(here, s.groups[id].owners))
			}
		}
	}
	if len(w.form.cells) == 0 && !w.full {
		w.base.shut = s.tries
	}
	return w.form.holds(s.used)
}

// allowed are the values that the pods themselves allow.
func (s *planner) allowed(w *narrowing, group int) []int {
	return slices.DeleteFunc(slices.Clone(s.values(w, group)), func(v int) bool { return !s.allows(w, group, v) })
}

func (s *planner) allows(w *narrowing, group, value int) bool {
	k := s.groups[group].label
	return w.st.allows(k, &s.labels[k], value)
}

// near are the values where pods of the group are. Where there are none that the pod could join, and it is one of them, it
// is the first: anywhere, and its node may be in one other domain as well.
func (s *planner) near(w *narrowing, t Term) []int {
	g := &s.groups[t.Group]
	here := s.allowed(w, t.Group)
	if near := slices.DeleteFunc(slices.Clone(here), func(v int) bool { return g.sure[0].at(v) == 0 }); len(near) > 0 {
		return near
	}
	if !t.Self || slices.ContainsFunc(g.values, func(v int) bool { return g.sure[0].at(v) > 0 && s.allows(w, t.Group, v) }) {
		return nil
	}
	first := slices.Clone(s.one(w, t.Group, here))
	if other := s.other(slices.DeleteFunc(slices.Clone(g.values), func(v int) bool { return !s.allows(w, t.Group, v) }), first); other >= 0 {
		first = append(first, other)
	}
	return first
}

// other is a second value for the node of the first of its kind, drawn from all that the pod allows: it may be the same one
// again, so that there is none, -1.
func (s *planner) other(of, first []int) int {
	if len(first) == 0 || s.p.Ties == 1 {
		return -1
	}
	for _, at := range s.turns(len(of)) {
		if of[at] != first[0] {
			return of[at]
		}
		if s.p.Ties > 1 {
			break
		}
	}
	return -1
}

// emptiest are the values with the fewest pods that a spread allows.
func (s *planner) emptiest(w *narrowing, spread int) []int {
	sp := &w.st.Spreads[spread]
	counts := s.seen(sp.Group, w.st.Anew)
	most := s.least(w, spread, counts) + sp.MaxSkew
	if sp.Self {
		most--
	}
	var best []int
	for _, v := range s.values(w, sp.Group) {
		n := counts.at(v)
		if n > most || len(best) > 0 && n > counts.at(best[0]) || !s.allows(w, sp.Group, v) {
			continue
		}
		if len(best) > 0 && n < counts.at(best[0]) {
			best = best[:0]
		}
		best = append(best, v)
	}
	return best
}

// least is the fewest pods over the values that a spread looks at.
func (s *planner) least(w *narrowing, spread int, counts tally) int {
	sp, known := &w.st.Spreads[spread], &w.st.least[spread]
	g := &s.groups[sp.Group]
	if known.version != g.version {
		known.version, known.pods = g.version, math.MaxInt
		eligible := 0
		for _, v := range g.values {
			if s.allows(w, sp.Group, v) {
				eligible++
				known.pods = min(known.pods, counts.at(v))
			}
		}
		if eligible < max(1, sp.MinDomains) {
			known.pods = 0
		}
	}
	return known.pods
}

// seen are the counts of a group as spreads of the number see them.
func (s *planner) seen(group, number int) tally {
	c := &s.groups[group]
	for len(c.sure) <= number {
		c.sure = append(c.sure, nil)
	}
	if c.sure[number] == nil {
		c.sure[number] = s.labels[c.label].tally(s.p.Groups[group].Running)
	}
	return c.sure[number]
}

func without(list []int, counts tally) []int {
	return slices.DeleteFunc(slices.Clone(list), func(v int) bool { return counts.at(v) > 0 })
}

// record counts a pod on its node: for those that look for it where the node surely is, for those that keep away from it
// wherever the node may be, as far as somebody has asked about that.
func (s *planner) record(n *node, c *Class, st *stage) {
	for _, id := range c.Groups {
		at := &s.groups[id]
		if at.label < 0 {
			at.total++
			continue
		}
		if !n.form.counts(id, &s.p.Groups[id]) {
			continue
		}
		here, finite := s.named(n.form, at.label)
		if finite && len(here) == 1 {
			at.version++
			for i := range at.sure {
				if at.sure[i] != nil {
					at.sure[i].add(here[0], 1)
				}
			}
		}
		for _, v := range here {
			at.possible.add(v, 1)
		}
	}
	for _, t := range st.Terms {
		if at := &s.groups[t.Group]; t.Anti && t.Hard && at.label >= 0 {
			here, _ := s.named(n.form, at.label)
			for _, v := range here {
				at.owners.add(v, 1)
			}
		}
	}
}

// named are the values of a label that the requirements of a node name, and whether it can have no others. Karpenter takes
// those that they exclude for named, too.
func (s *planner) named(f *form, label int) ([]int, bool) {
	l := &s.labels[label]
	if !f.set.Has(l.name) {
		return nil, false
	}
	asked := f.set.Get(l.name)
	values, finite := asked.Values()
	if !finite {
		values, _ = asked.Complement().Values()
	}
	return l.all(values), finite
}
