package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/once"
)

// RelaxedClass is a class at one level of preference relaxation.
type RelaxedClass struct {
	*relaxed
	// Domains are those that the pods can be in. If no label matters to the class, there is one
	// domain without values.
	Domains []Domain
	// Placed is how many pods each domain has.
	Placed []int

	want    int       // pods to place
	most    []int     // by domain, a limit on its pods
	bundled []int     // by domain, how many of Placed are in bundles
	near    []company // by domain, of pods that may join others on a node
}

// relaxed is a relaxed class before assignment.
type relaxed struct {
	// Class is the position in the input, and Level how many preferences were given up.
	Class, Level int
	// Follows says that the pods have affinity by hostname.
	Follows bool

	at    relaxation
	hosts []interpod.Term // of affinity by hostname
	keys  []key
	// together says that the pods have required affinity to each other, so that the first one
	// chooses a domain for all.
	together bool
	domains  []Domain // including closed ones
	counted  []membership
	rank     int
	tags     []string
	lasting  []Limit // hold as long as a pod is on the node
	passing  []Limit // hold when a pod is bound
}

// membership is a group that counts the class, and the position of its filter among the keys. It is
// -1 if all nodes of the class pass the filter.
type membership struct {
	group  int32
	filter int
}

// relaxed returns the index of a class at a level in s.classes; the first call adds it.
func (s *assigner) relaxed(class, level int) int {
	for _, at := range s.levels[class] {
		if s.classes[at].Level == level {
			return at
		}
	}
	rc := &RelaxedClass{relaxed: s.p.relaxed(class, level)}
	rc.Domains = rc.domains
	if closed := s.facts.closed; closed != nil && len(rc.keys) > 0 {
		rc.Domains = closed.left.Of([2]int{class, level}, func() []Domain {
			return slices.DeleteFunc(slices.Clone(rc.domains), func(d Domain) bool {
				return d.free == 0 && !s.p.sold(s.p.classes[class].Requests, d.required().Intersect(closed.open))
			})
		})
	}
	n := len(rc.Domains)
	counts := make([]int, 3*n)
	rc.Placed, rc.bundled, rc.most = counts[:n:n], counts[n:2*n:2*n], counts[2*n:]
	spreads := s.p.spreads(&rc.at.Constraints)
	for d := range rc.Domains {
		dom := &rc.Domains[d]
		if rc.most[d] = unbounded; dom.price >= unsold || !spreads && s.p.avoids(rc, d) {
			rc.most[d] = dom.free
		}
		if most, ok := s.facts.caps[capped{class, level, dom.text}]; ok {
			rc.most[d] = min(most, rc.most[d])
		}
	}
	if rc.Follows || len(s.p.classes[class].Shared) > 0 {
		rc.near = make([]company, n)
	}
	for _, t := range rc.at.Terms {
		if !t.Anti {
			s.followers[t.Group] = append(s.followers[t.Group], rc)
		}
	}
	s.classes = append(s.classes, rc)
	s.levels[class] = append(s.levels[class], len(s.classes)-1)
	return len(s.classes) - 1
}

// relaxed returns a class at a level before assignment. It is computed once, and all assignments
// share it.
func (p *Problem) relaxed(class, level int) *relaxed {
	return p.memo.classes.Of([2]int{class, level}, func() *relaxed { return p.newRelaxed(class, level) })
}

func (p *Problem) newRelaxed(class, level int) *relaxed {
	c := &p.classes[class]
	rc := &relaxed{Class: class, Level: level, at: p.relax(c, level)}
	rc.tags, rc.lasting, rc.passing = p.within(c.Class, &rc.at.Constraints)
	rc.keys = p.keysOf(c, &rc.at)
	rc.together = slices.ContainsFunc(rc.at.Terms, func(t interpod.Term) bool { return binds(&t) && !t.Anti && t.Self })
	for _, g := range c.all.MemberOf {
		group := &p.groups[g]
		if p.withinNode[g] {
			continue
		}
		m := membership{g, -1}
		if group.filter >= 0 {
			m.filter = slices.IndexFunc(rc.keys, func(k key) bool { return k.filter == int(group.filter) })
			if m.filter < 0 && p.filters[group.filter].side(rc.at.required) == filterOut {
				continue // no node of the class passes
			}
		}
		rc.counted = append(rc.counted, m)
	}
	if len(rc.keys) == 0 {
		anywhere := func() requirements.Alternatives { return rc.at.required }
		rc.domains = []Domain{{node: -1, at: slices.Repeat([]int32{interpod.Absent}, len(p.index.Keys())), required: anywhere}}
	} else {
		text := rc.at.required.AppendKey(nil) // with everything else that domains depend on
		for _, k := range rc.keys {
			text = strconv.AppendBool(append(text, k.name...), k.optional)
		}
		for _, q := range c.Requests {
			text = strconv.AppendInt(append(text, ' '), q, 36)
		}
		for _, sh := range c.Shared {
			text = append(append(text, '/'), sh.Name...)
		}
		if rc.together { // prices depend on how many there are
			text = strconv.AppendInt(append(text, '#'), int64(c.Count), 10)
		}
		rc.domains = p.memo.domains.Of(string(text), func() []Domain { return p.domains(rc) })
	}
	rc.rank = p.rank(&rc.at)
	for _, t := range rc.at.Terms {
		if !t.Anti && p.withinNode[t.Group] {
			rc.hosts = append(rc.hosts, t)
		}
	}
	rc.Follows = len(rc.hosts) > 0
	return rc
}

// keysOf returns the keys of a class's domains at a level: those of its constraints, and those of
// groups that count it. If nodes of the class may or may not pass a filter, the filter is a key
// too. Keys only of its own anti-affinity and of groups are optional: on a node without the label
// the constraint does not apply. Anti-affinity to a group without a pod has no key, and neither has a
// group that nothing counts.
func (p *Problem) keysOf(c *class, at *relaxation) []key {
	var all []key
	add := func(k key) {
		if at := slices.IndexFunc(all, func(o key) bool { return o.name == k.name }); at >= 0 {
			all[at].optional = all[at].optional && k.optional
		} else {
			all = append(all, k)
		}
	}
	use := func(g int32, optional bool) {
		if !p.withinNode[g] {
			add(key{name: p.groups[g].key, id: p.groups[g].keyID, filter: -1, optional: optional})
		}
	}
	for _, sp := range at.Spreads {
		use(sp.Group, false)
	}
	for _, t := range at.Terms {
		if !t.Anti || p.populated(t.Group) && !p.memo.marked(t.Group, vacant) {
			use(t.Group, t.Anti)
		}
	}
	for _, g := range c.all.Ratios {
		use(g, false)
	}
	for _, g := range c.all.MemberOf {
		if p.memo.marked(g, idle) {
			continue
		}
		use(g, true)
		if f := p.groups[g].filter; f >= 0 && !p.withinNode[g] && p.filters[f].side(at.required) == "" {
			add(key{name: p.filters[f].key, id: -1, filter: int(f)})
		}
	}
	slices.SortFunc(all, func(a, b key) int { return cmp.Compare(a.name, b.name) })
	return all
}

// rank orders classes: 0 for pods without constraints on other classes, 1 for affinity and
// preferred anti-affinity to others, 2 for spreads that count others.
func (p *Problem) rank(at *relaxation) int {
	rank := 0
	for _, sp := range at.Spreads {
		if !p.withinNode[sp.Group] && !sp.Self {
			rank = 2
		}
	}
	for _, t := range at.Terms {
		if !t.Self && (!t.Anti || !t.Hard) {
			rank = max(rank, 1)
		}
	}
	return rank
}

// within translates constraints that act within one node into tags and limits. Limits of spreads
// and preferences hold only when a pod is bound, since kube-scheduler lets later pods exceed them.
func (p *Problem) within(c *Class, at *interpod.Constraints) (tags []string, lasting, passing []Limit) {
	tags, lasting = slices.Clip(c.Tags), slices.Clip(c.Limits)
	for _, g := range at.MemberOf {
		if p.withinNode[g] {
			tags = append(tags, p.groups[g].tag)
		}
	}
	for _, sp := range at.Spreads {
		if p.withinNode[sp.Group] {
			passing = append(passing, Limit{p.groups[sp.Group].tag, int(sp.MaxSkew) + p.choice.LeastOnHosts})
		}
	}
	for _, t := range at.Terms {
		if !p.withinNode[t.Group] || !t.Anti {
			continue
		}
		l := Limit{Tag: p.groups[t.Group].tag}
		if t.Self {
			l.Max = 1
		}
		if t.Hard {
			lasting = append(lasting, l)
		} else {
			passing = append(passing, l)
		}
	}
	return tags, lasting, passing
}

// Alone returns what a pod of the class with such requirements asks of its node when it has given
// up all preferences, regardless of where other pods are. These are the requirements of the node's
// labels, and as tags and limits its host ports and required anti-affinity by hostname. They do not
// depend on the order of binding. If some node lacks a hostname, anti-affinity is left out, since
// it keeps no pods apart there.
func (p *Problem) Alone(class int, required requirements.Alternatives) (all requirements.Alternatives, tags []string, limits []Limit) {
	c := &p.classes[class]
	at := c.relaxFrom(required, len(c.soft))
	if p.hostless {
		return at.required, c.Tags, c.Limits
	}
	tags, limits, _ = p.within(c.Class, &at.Constraints)
	return at.required, tags, limits
}

// PortTags translates host ports into tags and limits. A port conflicts with the same port of the
// same address, and of the wildcard address. So each port adds a tag for the port and one for its
// address. A wildcard port allows one tag of the port. Any other port allows one tag of its address
// and none of the wildcard.
func PortTags(ports []hostport.Port) (tags []string, limits []Limit) {
	for _, p := range ports {
		if p.Disk != "" {
			tags = append(tags, p.String())
			limit := Limit{Tag: p.String(), Max: 1}
			if p.ReadOnly {
				limit = Limit{Tag: p.String() + " written", Max: 0}
			} else {
				tags = append(tags, p.String()+" written")
			}
			limits = append(limits, limit)
			continue
		}
		all := fmt.Sprintf("port %s/%d", p.Protocol, p.Number)
		tags = append(tags, all)
		if p.IP == hostport.AnyAddress {
			tags = append(tags, all+" wildcard")
			limits = append(limits, Limit{Tag: all, Max: 1})
			continue
		}
		own := all + " on " + p.IP
		tags = append(tags, own)
		limits = append(limits, Limit{Tag: own, Max: 1}, Limit{Tag: all + " wildcard", Max: 0})
	}
	return tags, limits
}

// memo keeps what all assignments of a problem compute in the same way.
type memo struct {
	marks     string                            // see Problem.marks
	classes   once.Map[[2]int, *relaxed]        // by class and level
	nodes     once.Map[[2]int, []int]           // by class and level
	universes once.Map[int32, universe]         // by group
	domains   once.Map[string, []Domain]        // shared by relaxed classes that ask the same of nodes
	couples   once.Map[coupled, bool]           // whether some node could hold both
	held      once.Map[int, bool]               // by class
	standing  once.Map[string, map[string]bool] // by label; must not be modified
	preferred once.Map[int32, bool]             // by group, whether others prefer its pods near or away
	closings  once.Map[string, *closing]        // by the domains to close
}

func (m *memo) marked(group int32, mark byte) bool {
	return int(group) < len(m.marks) && m.marks[group]&mark != 0
}

// coupled identifies two pods by class, level and domain.
type coupled struct {
	a, b *relaxed
	d, e string
}
