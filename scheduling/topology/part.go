package topology

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/joinery-sdk/joinery/requirements"
)

// Part is the pods of one class that were settled with the same preferences given up.
type Part struct {
	// Class is the position in the input, and Stage how many preferences were given up.
	Class, Stage int
	// Domains are those that the pods can be in. There is one, without values, where no label matters to the class.
	Domains []Domain
	// Placed is how many pods went to each domain.
	Placed []int

	want     int
	st       stage
	keys     []string
	optional []bool    // by key: only others look at it, so the pods can be on nodes without it
	bundled  []int     // of those placed, how many are in bundles
	refused  []numbers // by domain, the bundles that cannot take one
	full     numbers   // domains of one existing node that has no place for one more
	groupsIn []membership
	rank     int
	tags     []string
	lasting  []Limit // that hold as long as a pod is there
	passing  []Limit // that hold when it comes
	follows  bool    // has affinity by hostname
	crossed  []int   // positions of the keys that the pods spread themselves over
	shared   *domainSet

	// Positions of the keys of spreads, terms and ratios, -1 for hostnames.
	spreadAt, termAt, ratioAt []int
}

// domainSet is domains that several parts have in common: those of equal pods that the same keys matter to.
type domainSet struct {
	list   []Domain
	pinned []requirements.Alternatives // by domain, what its nodes must satisfy; impossible until it is asked for
}

// membership is a group that the part is counted in, the position of its key, and that of its filter; -1 where the part
// is always inside.
type membership struct{ group, key, filter int }

// Follows reports whether the pods have affinity by hostname, so that they go where others are.
func (pt *Part) Follows() bool { return pt.follows }

// partOf is the number of the part of a class at a stage, which is prepared when it is first asked for.
func (s *settler) partOf(class, stage int) int {
	key := [2]int{class, stage}
	if at, ok := s.partAt[key]; ok {
		return at
	}
	pt := *s.p.part(class, stage)
	if len(pt.keys) > 0 && len(s.facts.closed) > 0 {
		pt.Domains = slices.DeleteFunc(slices.Clone(pt.Domains), func(d Domain) bool { return d.room == 0 && s.isClosed(pt.keys, &d) })
	}
	n := len(pt.Domains)
	counts := make([]int, 2*n)
	pt.Placed, pt.bundled = counts[:n:n], counts[n:]
	if pt.follows || s.facts.together || len(s.p.classes[class].Shared) > 0 {
		pt.refused = make([]numbers, n)
	}
	for _, t := range pt.st.terms {
		if !t.anti && !s.p.inNode(t.group) {
			s.followers[t.group] = append(s.followers[t.group], &pt)
		}
	}
	s.parts = append(s.parts, &pt)
	s.partAt[key] = len(s.parts) - 1
	return len(s.parts) - 1
}

// part is what is known of the pods of a class at a stage before anybody is placed. It is worked out once, for every
// settlement asks again; its slices are shared.
func (p *Problem) part(class, stage int) *Part {
	return p.memo.part([2]int{class, stage}, func() *Part { return p.newPart(class, stage) })
}

func (p *Problem) newPart(class, stage int) *Part {
	c := &p.classes[class]
	pt := &Part{Class: class, Stage: stage, st: c.stage(stage)}
	pt.tags, pt.lasting, pt.passing = p.within(c, &pt.st)
	pt.keys, pt.optional = p.keysOf(c, &pt.st)
	for _, g := range c.memberOf {
		group := p.groups[g]
		if p.inNode(g) {
			continue
		}
		m := membership{g, slices.Index(pt.keys, group.key), -1}
		if group.filter != nil {
			if m.filter = slices.Index(pt.keys, group.filter.key); m.filter < 0 && group.filter.side(pt.st.required) == filterOut {
				continue // its pods never count
			}
		}
		pt.groupsIn = append(pt.groupsIn, m)
	}
	if len(pt.keys) == 0 {
		pt.Domains = []Domain{{}}
	} else {
		pt.shared = p.memo.domains(pt, c, func() *domainSet {
			list := p.domains(pt)
			return &domainSet{list, make([]requirements.Alternatives, len(list))}
		})
		pt.Domains = pt.shared.list
	}
	p.locate(pt)
	pt.rank = p.rank(&pt.st)
	for k, key := range pt.keys {
		if slices.ContainsFunc(pt.st.spreads, func(sp spread) bool { return sp.self && sp.key == key }) {
			pt.crossed = append(pt.crossed, k)
		}
	}
	pt.follows = slices.ContainsFunc(pt.st.terms, func(t term) bool { return !t.anti && p.inNode(t.group) })
	return pt
}

// locate finds the keys of the part's constraints.
func (p *Problem) locate(pt *Part) {
	all := make([]int, 0, len(pt.st.spreads)+len(pt.st.terms)+len(pt.st.ratios))
	at := func(group int) {
		all = append(all, slices.Index(pt.keys, p.groups[group].key))
	}
	for _, sp := range pt.st.spreads {
		at(sp.group)
	}
	for _, t := range pt.st.terms {
		at(t.group)
	}
	for _, r := range pt.st.ratios {
		at(r.group)
	}
	a, b := len(pt.st.spreads), len(pt.st.spreads)+len(pt.st.terms)
	pt.spreadAt, pt.termAt, pt.ratioAt = all[:a], all[a:b], all[b:]
}

// required is what the labels of a node in the domain must satisfy to hold a pod of the part.
func (s *settler) required(pt *Part, d int) requirements.Alternatives {
	if len(pt.keys) == 0 {
		return pt.st.required
	}
	if len(pt.Domains) != len(pt.shared.list) { // some are closed
		return pt.st.required.Intersect(s.p.pin(pt.keys, &pt.Domains[d]))
	}
	return s.p.memo.pinned(pt.shared, d, func() requirements.Alternatives {
		return pt.st.required.Intersect(s.p.pin(pt.keys, &pt.Domains[d]))
	})
}

// keysOf lists the keys whose values matter to a class at a stage: of its own constraints, and of groups that count it,
// with their filters where it may be on either side. Keys that only groups look at are optional.
func (p *Problem) keysOf(c *class, st *stage) (keys []string, optional []bool) {
	use := func(g int) {
		if !p.inNode(g) {
			keys = append(keys, p.groups[g].key)
		}
	}
	for _, sp := range st.spreads {
		use(sp.group)
	}
	for _, t := range st.terms {
		use(t.group)
	}
	for _, r := range st.ratios {
		use(r.group)
	}
	own := len(keys)
	for _, id := range c.memberOf {
		use(id)
		if g := p.groups[id]; g.filter != nil && !p.inNode(id) && g.filter.side(st.required) == "" {
			keys = append(keys, g.filter.key)
		}
	}
	all := slices.Compact(slices.Sorted(slices.Values(keys)))
	optional = make([]bool, len(all))
	for i, k := range all {
		optional[i] = !slices.Contains(keys[:own], k) && p.filters[k] == nil
	}
	return all, optional
}

// isClosed reports whether no new node may be in the domain, as far as its values tell.
func (s *settler) isClosed(keys []string, d *Domain) bool {
	for i, k := range keys {
		if s.facts.closed[closedKey{k, d.Values[i], ""}] {
			return true
		}
		for j, f := range keys {
			if s.p.filters[f] != nil && d.Values[j] == filterIn && s.facts.closed[closedKey{k, d.Values[i], f}] {
				return true
			}
		}
	}
	return false
}

// rank orders parts: pods that depend on nobody but themselves come first, then those that follow others or would rather
// keep away from them, and last those that spread by pods they are not among.
func (p *Problem) rank(st *stage) int {
	rank := 0
	for _, sp := range st.spreads {
		if !p.inNode(sp.group) && !sp.self {
			rank = 2
		}
	}
	for _, t := range st.terms {
		if !t.self && (!t.anti || !t.hard) {
			rank = max(rank, 1)
		}
	}
	return rank
}

// within translates constraints that act within one node into tags and limits. Those of spreads only hold when a pod comes: others
// that they count may come later.
func (p *Problem) within(c *class, st *stage) (tags []string, lasting, passing []Limit) {
	tags, lasting = slices.Clip(c.Tags), slices.Clip(c.Limits)
	for _, id := range c.memberOf {
		if g := p.groups[id]; p.inNode(id) && g.watched {
			tags = append(tags, g.tag)
		}
	}
	for _, sp := range st.spreads {
		if g := p.groups[sp.group]; p.inNode(sp.group) {
			passing = append(passing, Limit{g.tag, sp.maxSkew})
		}
	}
	for _, t := range st.terms {
		g := p.groups[t.group]
		if !p.inNode(t.group) || !t.anti {
			continue
		}
		most := 0
		if t.self {
			most = 1
		}
		lasting = append(lasting, Limit{g.tag, most})
	}
	return tags, lasting, passing
}

// valueOf is the domain's value of the group's key.
func (s *settler) valueOf(pt *Part, d, group int) string {
	return pt.Domains[d].Values[slices.Index(pt.keys, s.p.groups[group].key)]
}

// memo remembers what every settlement of a problem would work out again: it follows from the problem alone. It is safe
// for concurrent use.
type memo struct {
	mu        sync.Mutex
	parts     map[[2]int]*Part
	universes map[int]universe
	sets      map[string]*domainSet
	once      sync.Once
	cells     []cell
}

func newMemo() *memo {
	return &memo{parts: map[[2]int]*Part{}, universes: map[int]universe{}, sets: map[string]*domainSet{}}
}

func (m *memo) part(key [2]int, make func() *Part) *Part { return remembered(m, m.parts, key, make) }

func (m *memo) universe(group int, make func() universe) universe {
	return remembered(m, m.universes, group, make)
}

// domains are those of a part of the class.
func (m *memo) domains(pt *Part, c *class, make func() *domainSet) *domainSet {
	var few [256]byte
	key := pt.st.required.AppendKey(few[:0])
	key = binary.AppendUvarint(key, uint64(len(pt.keys)))
	for i, k := range pt.keys {
		key = append(binary.AppendUvarint(key, uint64(len(k))), k...)
		flag := byte(0)
		if pt.optional[i] {
			flag = 1
		}
		key = append(key, flag)
	}
	for _, q := range c.Requests {
		key = binary.AppendVarint(key, q)
	}
	for _, sh := range c.Shared {
		key = append(append(key, sh.Name...), 0)
	}
	return remembered(m, m.sets, string(key), make)
}

// pinned is what the nodes of one domain must satisfy. The requirement is impossible before it is worked out, and if it is
// impossible it is worked out again.
func (m *memo) pinned(set *domainSet, d int, make func() requirements.Alternatives) requirements.Alternatives {
	m.mu.Lock()
	defer m.mu.Unlock()
	if set.pinned[d].IsImpossible() {
		set.pinned[d] = make()
	}
	return set.pinned[d]
}

// remembered makes what is not there yet. Two callers at once may both make it; it is the same.
func remembered[K comparable, V any](m *memo, of map[K]V, key K, make func() V) V {
	m.mu.Lock()
	v, ok := of[key]
	m.mu.Unlock()
	if ok {
		return v
	}
	v = make()
	m.mu.Lock()
	of[key] = v
	m.mu.Unlock()
	return v
}
