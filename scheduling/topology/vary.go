package topology

import (
	"maps"
	"slices"
)

// Choices that are right for most pods leave some over now and then: a target of affinity went where its followers cannot
// go, a group chose the smallest zone, of pods that exclude each other the wrong one came first. There is no order that is
// right for all, so where pods are left over, others are tried: a variant is a number from which the order and the
// preference of domains follow, in a way that is arbitrary but always the same.

// Vary is the facts for settling with other choices; the variant is 1 or more. What packing found out under the old
// choices is forgotten, and every other variant forgets who was promoted.
func (st *Settlement) Vary(variant int) Facts {
	out := Facts{closed: st.facts.closed, variant: variant}
	if variant%2 == 0 {
		out.first, out.given = st.facts.first, st.facts.given
	}
	return out
}

// Confine is the facts for settling with the domains closed where none of the pods are that the spreads of these
// classes count: a spread looks at fewer domains then, which all hold some, and lets more pods in. It reports whether
// that is any domain.
func (st *Settlement) Confine(left []int) (Facts, bool) {
	closed := maps.Clone(st.facts.closed)
	if closed == nil {
		closed = map[closedKey]bool{}
	}
	before := len(closed)
	for _, pt := range st.Parts {
		if !slices.Contains(left, pt.Class) {
			continue
		}
		for _, sp := range pt.st.spreads {
			g := st.p.groups[sp.group]
			if g.hostname || !sp.hard {
				continue
			}
			held := st.held(sp.group)
			for _, v := range st.p.universe(sp.group, st.facts) {
				if k := st.p.closedKey(sp.group, v); len(held) > 0 && !held[v] && !st.p.stands(k) {
					closed[k] = true
				}
			}
		}
	}
	if len(closed) == before {
		return Facts{}, false
	}
	st.p.keepNeeded(closed)
	return Facts{closed: closed, first: st.facts.first, given: st.facts.given}, len(closed) > before
}

// held are the values where pods that the group counts were placed.
func (st *Settlement) held(group int) map[string]bool {
	out := map[string]bool{}
	for _, pt := range st.Parts {
		for _, m := range pt.groupsIn {
			if m.group != group {
				continue
			}
			for d, n := range pt.Placed {
				if n > 0 {
					out[pt.Domains[d].Values[m.key]] = true
				}
			}
		}
	}
	return out
}

// bySize reports whether the largest pods go first, whomever they depend on: Karpenter's order.
func (f Facts) bySize() bool { return f.variant > 0 && f.variant/2%2 == 0 }

// shuffled is a number by which parts are ordered before all else; usually all have the same.
func (f Facts) shuffled(class int) uint64 {
	if f.variant < 8 {
		return 0
	}
	return mix(uint64(f.variant)<<32|uint64(class)) % 4
}

// leaning is how little a class likes a domain before all that usually counts.
func (f Facts) leaning(class, domain int, crowd float64) float64 {
	switch {
	case f.variant == 0 || f.variant%3 == 1:
		return 0
	case f.variant%3 == 2:
		return crowd
	}
	return float64(mix(uint64(f.variant)<<48|uint64(class)<<24|uint64(domain)) % 16)
}

// mix spreads the bits of a number, as the finalizer of splitmix64 does.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
