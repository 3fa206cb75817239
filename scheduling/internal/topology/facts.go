package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/once"
)

// Facts is what earlier assignments and their packing found. The zero value has no facts. Facts are
// immutable.
type Facts struct {
	// caps limits pods by what could be packed.
	caps map[capped]int
	// closed are the domains that no new node may be in; nil means none.
	closed *closing
	// blame is how often a class was unplaced, or awaited by an unplaced one. Classes with more blame
	// are assigned earlier.
	blame map[int]int
	// variant selects other choices of domains; 0 is the usual one.
	variant int
}

// Own returns the least price, in dollars an hour, of what a pod of the class takes of a new node
// when it has given up all preferences; 0 if it fits none.
func (p *Problem) Own(class int) float64 {
	c := &p.classes[class]
	least, required := unsold, p.relax(c, len(c.soft)).required
	for _, cell := range p.cells() {
		if cell.holds(c.Requests) && required.Compatible(cell.labels, requirements.Keys{}) {
			least = min(least, cell.price(c.Requests))
		}
	}
	if least >= unsold {
		return 0
	}
	return least
}

// capped identifies the pods of a class and level in a domain, by the text of the domain.
type capped struct {
	class, level int
	domain       string
}

// side is the nodes that have a label key and pass a filter; -1 for all that have the key.
type side struct {
	key    string
	filter int
}

// closedDomain is a value of the key on nodes of a side.
type closedDomain struct {
	side
	value string
}

// closing is domains that no new node may be in, and what follows from that for all assignments. It
// is safe for concurrent use.
type closing struct {
	domains map[closedDomain]bool
	open    requirements.Alternatives // what a new node must satisfy to be outside all of them

	left once.Map[[2]int, []Domain] // the remaining domains, by class and level
}

// closing closes domains, without those that some class needs. It modifies them.
func (p *Problem) closing(domains map[closedDomain]bool) *closing {
	open, key := p.keepNeeded(domains), []byte(nil)
	for _, d := range slices.SortedFunc(maps.Keys(domains), closedDomain.compare) {
		key = fmt.Appendf(key, "%q %d %q ", d.key, d.filter, d.value)
	}
	return p.memo.closings.Of(string(key), func() *closing { return &closing{domains: domains, open: open} })
}

func (d closedDomain) compare(e closedDomain) int {
	return cmp.Or(cmp.Compare(d.key, e.key), cmp.Compare(d.filter, e.filter), cmp.Compare(d.value, e.value))
}

// sides returns the sides of closed domains, in order.
func sides(closed map[closedDomain]bool) []side {
	var out []side
	for k := range closed {
		out = append(out, k.side)
	}
	slices.SortFunc(out, func(a, b side) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.filter, b.filter)) })
	return slices.Compact(out)
}

// next returns the facts for another attempt. Caps hold for only one order of assignment.
func (f Facts) next() Facts {
	f.caps = nil
	return f
}

// keep returns what the labels of a node in no closed domain must satisfy.
func (f Facts) keep(required requirements.Alternatives) requirements.Alternatives {
	if f.closed == nil {
		return required
	}
	return required.Intersect(f.closed.open)
}

// Blamed returns the blame of the class.
func (f Facts) Blamed(class int) int { return f.blame[class] }

// Order returns the ranks of classes by blame. Facts with equal ranks give the same order of
// assignment.
func (f Facts) Order(classes int) []int {
	levels := slices.Compact(slices.Sorted(maps.Values(f.blame)))
	out := make([]int, classes)
	for i := range classes {
		if f.blame[i] > 0 {
			at, _ := slices.BinarySearch(levels, f.blame[i])
			out[i] = at + 1
		}
	}
	return out
}

// Blame returns the facts with more blame for these classes.
func (st *Assignment) Blame(classes []int) Facts {
	out := st.Facts.next()
	out.blame = map[int]int{}
	maps.Copy(out.blame, st.Facts.blame)
	for _, i := range classes {
		out.blame[i]++
	}
	return out
}

// Followed returns the classes and all others with pods that these have required affinity to,
// directly or through others.
func (p *Problem) Followed(classes []int) []int {
	all := slices.Clone(classes)
	for k := 0; k < len(all); k++ {
		for _, t := range p.classes[all[k]].all.Terms {
			if !binds(&t) || t.Anti {
				continue
			}
			for _, m := range p.groups[t.Group].members {
				if p.classes[m].Count > 0 && !slices.Contains(all, m) {
					all = append(all, m)
				}
			}
		}
	}
	return all
}

// Rivals returns the classes whose pods may keep pods of these classes out of domains: by
// anti-affinity of either, or because a hard spread of these counts them or the domains that they
// bring.
func (p *Problem) Rivals(classes []int) []int {
	var out []int
	spread := slices.ContainsFunc(classes, func(i int) bool { return p.spreads(&p.classes[i].all) })
	avoids := func(a, b int) bool {
		return slices.ContainsFunc(p.classes[a].all.Terms, func(t interpod.Term) bool {
			return t.Hard && t.Anti && !p.groups[t.Group].hostname && slices.Contains(p.classes[b].all.MemberOf, t.Group)
		})
	}
	for k := range p.classes {
		if spread || slices.ContainsFunc(classes, func(i int) bool { return avoids(i, k) || avoids(k, i) }) {
			out = append(out, k)
		}
	}
	return out
}

// InOrder returns facts by which the classes are assigned and packed in this order.
func InOrder(classes []int) Facts {
	out := Facts{blame: map[int]int{}}
	for k, i := range classes {
		out.blame[i] = len(classes) - k
	}
	return out
}

// Vary returns the facts with other choices of domains; variant is 1 or more.
func (st *Assignment) Vary(variant int) Facts {
	out := st.Facts.next()
	out.variant = variant
	return out
}

// arbitrary returns a number for a class and domain that depends on the variant and is always the
// same; 0 for variant 0. As the first term of a score it makes other choices. The usual choices
// leave pods unplaced if, for example, a pod was assigned to a zone where pods with affinity to it
// cannot be.
func (f Facts) arbitrary(class, domain int) int {
	if f.variant == 0 {
		return 0
	}
	const choices = 16
	return int(mix(uint64(f.variant)<<48|uint64(class)<<24|uint64(domain)) % choices)
}

// mix spreads the bits of a number, as the finalizer of splitmix64 does.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// ClosedFor returns the zones that [Assignment.Close] would leave closed for the unplaced classes, or
// those that are closed now if it would close none.
func (st *Assignment) ClosedFor(unplaced []int) []string {
	if facts, ok := st.Close(unplaced); ok {
		return facts.Closed()
	}
	return st.Facts.Closed()
}

// Close returns the facts with more closed domains: those where the spreads of these classes count
// no pods, such as a zone with small types only. PodTopologySpread counts such a domain as soon as
// it has a node, and then limits all others to the skew. So without new nodes there, more pods can
// be placed. Domains with an existing node stay open, and so do those without which a class fits
// nowhere. It reports whether any was closed.
func (st *Assignment) Close(unplaced []int) (Facts, bool) { return st.close(unplaced, st.held) }

// CloseImpossible is [Assignment.Close] for domains where the spreads can count no pods, such as a
// zone in which only other pools buy. Closing them leaves these pods all their places.
func (st *Assignment) CloseImpossible(unplaced []int) (Facts, bool) {
	return st.close(unplaced, st.possible)
}

// close closes the domains that are not among those that open returns for a group, if it returns
// any.
func (st *Assignment) close(unplaced []int, open func(group int32) map[string]bool) (Facts, bool) {
	closed := map[closedDomain]bool{}
	if c := st.Facts.closed; c != nil {
		maps.Copy(closed, c.domains)
	}
	before := len(closed)
	for _, rc := range st.Classes {
		if !slices.Contains(unplaced, rc.Class) {
			continue
		}
		for _, sp := range rc.at.Spreads {
			if st.p.withinNode[sp.Group] || !sp.Hard {
				continue
			}
			kept := open(sp.Group)
			for _, v := range st.p.universe(sp.Group, st.Facts.closed) {
				if k := (closedDomain{st.p.side(sp.Group), v}); len(kept) > 0 && !kept[v] && !st.p.stands(k) {
					closed[k] = true
				}
			}
		}
	}
	if len(closed) == before {
		return Facts{}, false
	}
	out := st.Facts.next()
	out.closed = st.p.closing(closed)
	return out, len(out.closed.domains) > before
}

// held returns the values where members of the group were placed.
func (st *Assignment) held(group int32) map[string]bool {
	out := map[string]bool{}
	name := st.p.groups[group].key
	for _, rc := range st.Classes {
		if !slices.ContainsFunc(rc.counted, func(m membership) bool { return m.group == group }) {
			continue
		}
		at := slices.IndexFunc(rc.keys, func(k key) bool { return k.name == name })
		for d, n := range rc.Placed {
			if n > 0 {
				out[rc.Domains[d].Values[at]] = true
			}
		}
	}
	return out
}

// possible returns the values where members of the group could be placed, and where packing did not
// find that none has room.
func (st *Assignment) possible(group int32) map[string]bool {
	out := map[string]bool{}
	name := st.p.groups[group].key
	for _, rc := range st.Classes {
		at := slices.IndexFunc(rc.keys, func(k key) bool { return k.name == name })
		if at < 0 || !slices.ContainsFunc(rc.counted, func(m membership) bool { return m.group == group }) {
			continue
		}
		for d := range rc.Domains {
			if most, known := st.Facts.caps[capped{rc.Class, rc.Level, rc.Domains[d].text}]; !known || most > 0 {
				out[rc.Domains[d].Values[at]] = true
			}
		}
	}
	return out
}

// side returns the side of the nodes on which the group's spreads count.
func (p *Problem) side(group int32) side {
	return side{p.groups[group].key, int(p.groups[group].filter)}
}

// stands reports whether an existing node is in the domain.
func (p *Problem) stands(k closedDomain) bool {
	return slices.ContainsFunc(p.nodes, func(n Node) bool {
		v, ok := n.value(k.key)
		return ok && v == k.value && (k.filter < 0 || p.filters[k.filter].passes(n.Labels))
	})
}

// mostClosings limits the alternatives of open. A node must be outside each closed domain or its
// filter, and these choices multiply.
const mostClosings = 32

// keepNeeded removes from closed the domains without which a class fits nowhere, and those beyond
// mostClosings. It returns what a new node must satisfy to be outside the others.
func (p *Problem) keepNeeded(closed map[closedDomain]bool) requirements.Alternatives {
	alternatives := 1
	for _, sd := range sides(closed) {
		if sd.filter < 0 {
			continue
		}
		n := 1 + p.filters[sd.filter].on(filterOut).Len()
		if alternatives*n > mostClosings {
			maps.DeleteFunc(closed, func(c closedDomain, _ bool) bool { return c.side == sd })
			continue
		}
		alternatives *= n
	}
	open := p.open(closed)
	for i := range p.classes {
		c := &p.classes[i]
		if p.choice.Pods(i, c.Count) == 0 {
			continue
		}
		required := p.relax(c, len(c.soft)).required
		if p.someNode(c.Requests, required.Intersect(open)) {
			continue
		}
		maps.DeleteFunc(closed, func(k closedDomain, _ bool) bool {
			there := requirements.AnyOf(requirements.MustOf(requirements.In(k.key, k.value)))
			if k.filter >= 0 {
				there = there.Intersect(p.filters[k.filter].on(filterIn))
			}
			return p.someNode(c.Requests, required.Intersect(there))
		})
		open = p.open(closed)
	}
	return open
}

// open returns what a new node must satisfy to be outside all closed domains.
func (p *Problem) open(closed map[closedDomain]bool) requirements.Alternatives {
	out := requirements.AnyOf(requirements.Set{})
	for _, sd := range sides(closed) {
		var values []string
		for k := range closed {
			if k.side == sd {
				values = append(values, k.value)
			}
		}
		elsewhere := requirements.AnyOf(requirements.MustOf(requirements.NotIn(sd.key, values...)))
		if sd.filter >= 0 {
			elsewhere = either(elsewhere, p.filters[sd.filter].on(filterOut))
		}
		out = out.Intersect(elsewhere)
	}
	return out
}

// Holdable reports whether some node, existing or to buy, could hold a pod of the class if it were
// the only one. It is computed once.
func (p *Problem) Holdable(class int) bool {
	c := &p.classes[class]
	rc := p.relaxed(class, len(c.soft))
	return p.memo.held.Of(class, func() bool {
		return len(p.suitable(rc)) > 0 || p.sold(c.Requests, rc.at.required)
	})
}

// someNode reports whether some node, existing or to buy, suits the requests and requirements.
func (p *Problem) someNode(requests []int64, required requirements.Alternatives) bool {
	return p.sold(requests, required) || slices.ContainsFunc(p.nodes, func(n Node) bool {
		return fits(requests, n.Free) && required.Compatible(n.Labels, requirements.Keys{})
	})
}

// sold reports whether some node to buy suits the requests and requirements.
func (p *Problem) sold(requests []int64, required requirements.Alternatives) bool {
	return slices.ContainsFunc(p.cells(), func(c cell) bool {
		return c.holds(requests) && required.Compatible(c.labels, requirements.Keys{})
	})
}
