package topology

import (
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
	// first are classes that go before the others, for they were left over otherwise; where there are any, the others go by
	// priority.
	first map[int]bool
	// given says how many preferences a class gives up from the start, for they kept others away.
	given map[int]int
}

type capKey struct {
	class, stage int
	domain       string
}

type closedKey struct{ key, value string }

func (f Facts) clone() Facts {
	out := f
	out.caps = maps.Clone(f.caps)
	if out.caps == nil {
		out.caps = map[capKey]int{}
	}
	return out
}

// open is what keeps a new node out of the domains that are closed.
func (f Facts) open() requirements.Set {
	byKey := map[string][]string{}
	for c := range f.closed {
		byKey[c.key] = append(byKey[c.key], c.value)
	}
	var b requirements.Builder
	for k, values := range byKey { // the builder sorts
		b.Add(requirements.NotIn(k, values...))
	}
	set, err := b.Set()
	if err != nil { // keys are distinct, and NotIn is never impossible
		panic(err)
	}
	return set
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
			usable[closedKey{sp.key, s.valueOf(pt, d, sp.group)}] = true
		}
	})
	each(func(_ *Part, sp spread) {
		for _, v := range s.groups[sp.group].universe {
			if k := (closedKey{sp.key, v}); !usable[k] && !s.p.stands(k) {
				out[k] = true
			}
		}
	})
	if len(out) > 0 {
		s.p.keepNeeded(out)
	}
	return out
}

// stands reports whether a node is in the domain today.
func (p *Problem) stands(k closedKey) bool {
	return slices.ContainsFunc(p.nodes, func(n Node) bool {
		v, ok := n.value(k.key)
		return ok && v == k.value
	})
}

// keepNeeded takes out the domains without which some class could go nowhere.
func (p *Problem) keepNeeded(closed map[closedKey]bool) {
	byKey := map[string][]string{}
	for k := range closed {
		byKey[k.key] = append(byKey[k.key], k.value)
	}
	for key, values := range byKey { // keys do not influence each other
		slices.Sort(values)
		outside := requirements.AnyOf(requirements.MustOf(requirements.NotIn(key, values...)))
		for i := range p.classes {
			c := &p.classes[i]
			if c.Count == 0 {
				continue
			}
			required := c.stage(len(c.soft)).required
			if p.holdable(c, required.Intersect(outside)) {
				continue
			}
			for _, v := range values {
				if p.holdable(c, required.Intersect(requirements.AnyOf(requirements.MustOf(requirements.In(key, v))))) {
					delete(closed, closedKey{key, v})
				}
			}
		}
	}
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
