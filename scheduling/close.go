package scheduling

import (
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
)

// closable lists the domains that spreads count although none of their pods can go there, such as a zone in which only
// small types or a tainted pool offer anything. kube-scheduler counts such a domain as soon as a node stands in it, and
// then lets the others have no more than the skew; so if no node of the plan stands there, more pods can be placed.
// Domains with a node today, and those that some class cannot do without, must stay open.
func (p *Problem) closable(s *settler) map[closedKey]bool {
	out := map[closedKey]bool{}
	usable := map[closedKey]bool{}
	for _, pt := range s.parts {
		for _, sp := range pt.st.spreads {
			if p.onHostname(sp.group) {
				continue
			}
			for d := range pt.domains {
				usable[closedKey{sp.key, s.valueOf(pt, d, sp.group)}] = true
			}
		}
	}
	for _, pt := range s.parts {
		for _, sp := range pt.st.spreads {
			if p.onHostname(sp.group) {
				continue
			}
			for _, v := range s.groups[sp.group].universe {
				if k := (closedKey{sp.key, v}); !usable[k] && !p.stands(k) {
					out[k] = true
				}
			}
		}
	}
	if len(out) > 0 {
		p.keepNeeded(out)
	}
	return out
}

// stands reports whether a node is in the domain today.
func (p *Problem) stands(k closedKey) bool {
	return slices.ContainsFunc(p.Rooms, func(r Room) bool {
		v, ok := r.value(k.key)
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
		for _, c := range p.Classes {
			required := p.stageOf(c, len(c.soft)).required
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
func (p *Problem) holdable(c *Class, required requirements.Alternatives) bool {
	for i := range p.cells {
		if p.cells[i].holds(c.requests) && required.Compatible(p.cells[i].labels, requirements.Keys{}) {
			return true
		}
	}
	return slices.ContainsFunc(p.Rooms, func(r Room) bool {
		return within(c.requests, r.Free) && required.Compatible(r.Labels, requirements.Keys{})
	})
}

func sum(left map[int]int) int {
	n := 0
	for _, k := range left {
		n += k
	}
	return n
}
