package topology

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
)

// Facts is what earlier settlements and their packing found out. They only ever grow, which is why the rounds end. The
// zero value knows nothing; facts are immutable.
type Facts struct {
	// caps says how many pods of a class and stage a domain holds at most, where packing could not place more.
	caps map[capKey]int
	// closed are domains that no new node may be in: a spread counts them as soon as one is.
	closed map[closedKey]bool
	// first are classes that go before the others, for they were left over otherwise, the smallest number before the rest.
	first map[int]int
	// given says how many preferences a class gives up from the start, for they kept others away.
	given map[int]int
	// variant numbers other choices where there is one, of who goes first and where to; 0 are the usual ones.
	variant int
}

type capKey struct {
	class, stage int
	domain       string
}

// closedKey is a value of a label, and the pseudo-key of the filter that nodes there must not pass; empty for all nodes.
type closedKey struct{ key, value, filter string }

func (f Facts) clone() Facts {
	out := f
	out.caps = maps.Clone(f.caps)
	if out.caps == nil {
		out.caps = map[capKey]int{}
	}
	return out
}

// open is what keeps a new node out of the domains that are closed.
func (p *Problem) open(closed map[closedKey]bool) requirements.Alternatives {
	type side struct{ key, filter string }
	values := map[side][]string{}
	for c := range closed {
		values[side{c.key, c.filter}] = append(values[side{c.key, c.filter}], c.value)
	}
	sides := slices.SortedFunc(maps.Keys(values), func(a, b side) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.filter, b.filter))
	})
	out := requirements.AnyOf(requirements.Set{})
	for _, sd := range sides {
		slices.Sort(values[sd])
		elsewhere := []requirements.Set{requirements.MustOf(requirements.NotIn(sd.key, values[sd]...))}
		if f := p.filters[sd.filter]; f != nil {
			elsewhere = slices.AppendSeq(elsewhere, f.outside.All())
		}
		out = out.Intersect(requirements.AnyOf(elsewhere...))
	}
	return out
}

// closable lists the domains that spreads count although none of their pods can go there, such as a zone in which only
// small types or a tainted pool offer anything. kube-scheduler counts such a domain as soon as a node stands in it, and
// then lets the others have no more than the skew; so if no node of the plan stands there, more pods can be placed.
// Domains with a node today, and those that some class cannot do without, must stay open.
func (s *settler) closable() map[closedKey]bool {
	out := map[closedKey]bool{}
	usable := map[closedKey]bool{}
	each := func(see func(pt *Part, sp spread)) {
		for _, pt := range s.parts {
			for _, sp := range pt.st.spreads {
				if !s.p.groups[sp.group].hostname {
					see(pt, sp)
				}
			}
		}
	}
	each(func(pt *Part, sp spread) {
		for d := range pt.Domains {
			usable[s.p.closedKey(sp.group, s.valueOf(pt, d, sp.group))] = true
		}
	})
	each(func(_ *Part, sp spread) {
		for _, v := range s.groups[sp.group].universe {
			if k := s.p.closedKey(sp.group, v); !usable[k] && !s.p.stands(k) {
				out[k] = true
			}
		}
	})
	if len(out) > 0 {
		s.p.keepNeeded(out)
	}
	return out
}

func (p *Problem) closedKey(group int, value string) closedKey {
	g := p.groups[group]
	if g.filter == nil {
		return closedKey{g.key, value, ""}
	}
	return closedKey{g.key, value, g.filter.key}
}

// stands reports whether a node that counts is in the domain today.
func (p *Problem) stands(k closedKey) bool {
	return slices.ContainsFunc(p.nodes, func(n Node) bool {
		v, ok := n.value(k.key)
		return ok && v == k.value && p.filters[k.filter].passes(n.Labels)
	})
}

// keepNeeded takes out the domains without which some class could go nowhere.
func (p *Problem) keepNeeded(closed map[closedKey]bool) {
	open := p.open(closed)
	for i := range p.classes {
		c := &p.classes[i]
		if c.Count == 0 {
			continue
		}
		required := c.stage(len(c.soft)).required
		if p.holdable(c, required.Intersect(open)) {
			continue
		}
		for _, k := range slices.SortedFunc(maps.Keys(closed), compareClosed) {
			there := requirements.AnyOf(requirements.MustOf(requirements.In(k.key, k.value)))
			if f := p.filters[k.filter]; f != nil {
				there = there.Intersect(f.inside)
			}
			if p.holdable(c, required.Intersect(there)) {
				delete(closed, k)
			}
		}
		open = p.open(closed)
	}
}

func compareClosed(a, b closedKey) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.value, b.value), cmp.Compare(a.filter, b.filter))
}

// holdable reports whether some node, to buy or there, suits the class under these requirements.
func (p *Problem) holdable(c *class, required requirements.Alternatives) bool {
	for i := range p.cells {
		if p.cells[i].holds(c.Requests) && required.Compatible(p.cells[i].labels, requirements.Keys{}) {
			return true
		}
	}
	return slices.ContainsFunc(p.nodes, func(n Node) bool {
		return fits(c.Requests, n.Free) && required.Compatible(n.Labels, requirements.Keys{})
	})
}
