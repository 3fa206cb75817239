package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/topology/internal/greedy"
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
	// seats are those that pods take before all others, and ahead is how many pods of each class go before all others,
	// wherever they find a place; nil for none.
	seats *greedy.Plan
	ahead []int
	// together says that pods whose seats are on one node to buy share a node.
	together bool
	// variant numbers other choices where there is one, of who goes first and where to; 0 are the usual ones.
	variant int
}

type capKey struct {
	class, stage int
	domain       string
}

// closedKey is a value of a label, and the pseudo-key of the filter that nodes there must not pass; empty for all nodes.
type closedKey struct{ key, value, filter string }

// unpacked is the facts without what packing found out, which holds for the order of before only.
func (f Facts) unpacked() Facts {
	f.caps, f.variant = nil, 0
	return f
}

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

// closable lists the domains that spreads of these parts count although none of their pods can go there, such as a zone in
// which only small types or a tainted pool offer anything. kube-scheduler counts such a domain as soon as a node stands in
// it, and then lets the others have no more than the skew; so if no node of the plan stands there, more pods can be placed.
// Domains with a node today, and those that some class cannot do without, must stay open.
func (s *settler) closable(of func(*Part) bool) map[closedKey]bool {
	out := map[closedKey]bool{}
	usable := map[closedKey]bool{}
	each := func(see func(pt *Part, sp spread)) {
		for _, pt := range s.parts {
			for _, sp := range pt.st.spreads {
				if !s.p.inNode(sp.group) {
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
	each(func(pt *Part, sp spread) {
		if !of(pt) {
			return
		}
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

// Choices that are right for most pods leave some over now and then: a target of affinity went where its followers cannot
// go, a group chose the smallest zone, of pods that exclude each other the wrong one came first. There is no order that is
// right for all, so where pods are left over, others are tried: a variant is a number from which the order and the
// preference of domains follow, in a way that is arbitrary but always the same.

// Vary is the facts for settling with other choices; the variant is 1 or more. Every other one forgets who was promoted.
func (st *Settlement) Vary(variant int) Facts {
	out := st.facts.unpacked()
	out.variant = variant
	if variant%2 != 0 {
		out.first, out.given = nil, nil
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
			if st.p.inNode(sp.group) || !sp.hard {
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
	out := st.facts.unpacked()
	out.closed = closed
	return out, len(closed) > before
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

// Promote makes facts of pods that were left over although something could hold them: that their classes, and those whom
// they follow, go before the others next time; and where that did not help already, that the preferences of others which
// may keep them away are given up, and those which may keep whom they follow from where they can be, one at a time. It
// reports whether that is anything new.
func (st *Settlement) Promote(left []int) (Facts, bool) {
	next := st.facts.unpacked()
	next.first, next.given = maps.Clone(next.first), maps.Clone(next.given)
	if next.first == nil {
		next.first = map[int]int{}
	}
	if next.given == nil {
		next.given = map[int]int{}
	}
	news := false
	promote := func(class, rank int) {
		if next.first[class] == 0 && st.p.classes[class].Count > 0 {
			next.first[class], news = rank, true
		}
	}
	for _, i := range left {
		if next.first[i] > 0 {
			news = st.p.giveWay(i, next.given) || news
			news = st.p.come(i, next.given) || news
			continue
		}
		promote(i, 1)
		for _, t := range st.p.classes[i].terms {
			if t.hard && !t.anti {
				for _, m := range st.p.groups[t.group].members {
					promote(m, 2)
				}
			}
		}
	}
	return next, news
}

// Kin groups classes by what they ask of other pods and who counts them, for where one stays out for the sake of others,
// those that are alike in this do, too. Those of the most pods come first.
func (p *Problem) Kin(classes []int) [][]int {
	at := map[string]int{}
	var out [][]int
	for _, i := range classes {
		c := &p.classes[i]
		var key strings.Builder
		fmt.Fprint(&key, c.memberOf)
		for _, t := range c.terms {
			fmt.Fprint(&key, " ", t.group, t.anti, t.hard)
		}
		for _, sp := range c.spreads {
			fmt.Fprint(&key, " ", sp.group, sp.hard)
		}
		k, ok := at[key.String()]
		if !ok {
			k = len(out)
			at[key.String()] = k
			out = append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	pods := func(kin []int) int {
		n := 0
		for _, i := range kin {
			n += p.classes[i].Count
		}
		return n
	}
	slices.SortStableFunc(out, func(a, b []int) int { return pods(b) - pods(a) })
	return out
}

// Favour is the facts for settling with these classes, and whom they follow, before all others.
func (st *Settlement) Favour(kin []int) Facts {
	const ahead = 2
	first := make(map[int]int, len(st.facts.first)+len(kin))
	for i, turn := range st.facts.first {
		first[i] = turn + ahead
	}
	for _, i := range kin {
		for _, t := range st.p.classes[i].terms {
			if t.hard && !t.anti {
				for _, m := range st.p.groups[t.group].members {
					first[m] = 2
				}
			}
		}
	}
	for _, i := range kin {
		first[i] = 1
	}
	out := st.facts.unpacked()
	out.first = first
	return out
}

// giveWay notes that others give up the preferences that look at the class, and reports whether there are any more.
func (p *Problem) giveWay(class int, given map[int]int) bool {
	news := false
	for i := range p.classes {
		for k, soft := range p.classes[i].soft {
			if k < given[i] {
				continue
			}
			if g, ok := p.classes[i].looksAt(soft); ok && slices.Contains(p.classes[class].memberOf, g) {
				given[i], news = k+1, true
			}
		}
	}
	return news
}

// come notes that each of those whom the class follows gives up one more preference, and reports whether there was any.
func (p *Problem) come(class int, given map[int]int) bool {
	news := false
	for _, t := range p.classes[class].terms {
		if !t.hard || t.anti {
			continue
		}
		for _, m := range p.groups[t.group].members {
			if m != class && p.classes[m].Count > 0 && given[m] < len(p.classes[m].soft) {
				given[m]++
				news = true
			}
		}
	}
	return news
}

// looksAt is the group that a preference is about.
func (c *class) looksAt(soft Preference) (int, bool) {
	switch soft.Kind {
	case PreferSpread:
		return c.spreads[soft.index].group, true
	case PreferPods:
		return c.terms[soft.index].group, true
	case PreferNodes, PreferNoTaint:
	}
	return 0, false
}

// compareParts is the order of settling: by rank, then the largest pods first, for they are the hardest to place; of
// equals, pods that are only counted come last, where they disturb nobody. Where some had to be promoted, they come
// before all that, and then the priorities of pods count.
func (s *settler) compareParts(x, y *Part) int {
	size := func(pt *Part, r int) int64 {
		if requests := s.p.classes[pt.Class].Requests; r < len(requests) {
			return requests[r]
		}
		return 0
	}
	free := func(pt *Part) int {
		if len(pt.st.spreads)+len(pt.st.terms) > 0 {
			return 0
		}
		return 1
	}
	urgency := 0
	if len(s.facts.first) > 0 {
		urgency = cmp.Or(cmp.Compare(s.turn(x), s.turn(y)), cmp.Compare(s.p.classes[y.Class].Priority, s.p.classes[x.Class].Priority))
	}
	rank := cmp.Compare(x.rank, y.rank)
	if s.facts.bySize() {
		rank = 0
	}
	return cmp.Or(urgency, cmp.Compare(s.facts.shuffled(x.Class), s.facts.shuffled(y.Class)), rank,
		cmp.Compare(size(y, 0), size(x, 0)), cmp.Compare(size(y, 1), size(x, 1)),
		cmp.Compare(free(x), free(y)), cmp.Compare(len(x.Domains), len(y.Domains)), cmp.Compare(x.Class, y.Class), cmp.Compare(x.Stage, y.Stage))
}

// turn is which parts come first: the smallest numbers do.
func (s *settler) turn(pt *Part) int {
	if n := s.facts.first[pt.Class]; n > 0 {
		return n
	}
	return 1 << 30
}

// Promoted reports whether the pods of a class went before the others.
func (st *Settlement) Promoted(class int) bool { return st.facts.first[class] > 0 }
