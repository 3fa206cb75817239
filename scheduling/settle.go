package scheduling

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// facts is what earlier rounds found out. It only ever grows, which is why the rounds end.
type facts struct {
	// caps says how many pods of a class and stage a domain holds at most, where packing could not place more.
	caps map[capKey]int
	// closed are domains that no new node may be in, by key and value: a spread counts them as soon as one is.
	closed map[closedKey]bool
}

type capKey struct {
	class, stage int
	domain       string
}

type closedKey struct{ key, value string }

// settler gives pods to domains, one after the other, as kube-scheduler would accept them: a pod goes only where its
// constraints hold given all pods before it, so the order of settling is an order of binding.
type settler struct {
	p      *Problem
	facts  *facts
	groups []groupCount
	parts  []*part
	picks  []pick // in the order of placing

	followers map[int][]*part // by group, those with affinity to it
	bundles   []*bundle
	rooms     map[int][]int64 // what pods that must be in a room have left of it
}

// groupCount is the state of one group while settling.
type groupCount struct {
	counts   map[string]int
	owners   map[string]int
	total    int
	universe []string // values that an eligible node may have
}

// part is the pods of one class at one stage.
type part struct {
	class, stage int
	want         int
	st           stage
	keys         []string
	domains      []domain
	placed       []int // by domain; with no keys there is one nameless domain
	groupsIn     []membership
	rank         int
	tags         []string
	limits       []Limit
}

// membership is a group that the part is counted in, the position of its key, and that of its filter; -1 where the part
// is always inside.
type membership struct{ group, key, filter int }

// pick is one or more pods of a part placed in a domain, one after the other; bundle is the bundle that they joined, or
// -1 where they were placed on their own, even if others have joined them later.
type pick struct{ part, domain, bundle, count int }

func (p *Problem) newSettler(f *facts) *settler {
	s := &settler{p: p, facts: f, followers: map[int][]*part{}, groups: make([]groupCount, len(p.groups.all))}
	for i, g := range p.groups.all {
		gc := &s.groups[i]
		gc.counts, gc.owners = map[string]int{}, map[string]int{}
		for v, n := range g.counts {
			gc.counts[v] = n
			gc.total += n
		}
		for v, n := range g.owners {
			gc.owners[v] = n
		}
		if g.key != corev1.LabelHostname {
			gc.universe = p.universe(g, f)
		}
	}
	return s
}

// universe lists the values of the group's key on nodes that exist or may be bought, as far as the group's filter lets
// them count. It may list more than the plan will have, which only makes spreads stricter.
func (p *Problem) universe(g *group, f *facts) []string {
	seen := map[string]bool{}
	anything := requirements.AnyOf(requirements.Set{})
	for i := range p.cells {
		c := &p.cells[i]
		if !g.filter.passes(c.labels) {
			continue
		}
		p.combinations(c.labels, anything, []string{g.key}, func(v []string) {
			if !f.closed[closedKey{g.key, v[0]}] {
				seen[v[0]] = true
			}
		})
	}
	for i := range p.Rooms {
		if v, ok := p.Rooms[i].value(g.key); ok && g.filter.passes(p.Rooms[i].Labels) {
			seen[v] = true
		}
	}
	return sortedTrue(seen)
}

// addPart prepares the pods of a class at a stage.
func (s *settler) addPart(class, stageNo, want int) {
	p := s.p
	c := p.Classes[class]
	pt := &part{class: class, stage: stageNo, want: want, st: p.stageOf(c, stageNo)}
	pt.tags, pt.limits = p.within(class, &pt.st)
	var keys []string
	use := func(g int) {
		if !p.onHostname(g) {
			keys = append(keys, p.groups.all[g].key)
		}
	}
	for _, sp := range pt.st.spreads {
		use(sp.group)
	}
	for _, t := range pt.st.terms {
		use(t.group)
	}
	for _, g := range c.memberOf {
		use(g)
		if f := p.groups.all[g].filter; f != nil && !p.onHostname(g) && f.side(pt.st.required) == "" {
			keys = append(keys, f.key)
		}
	}
	slices.Sort(keys)
	pt.keys = slices.Compact(keys)
	for _, g := range c.memberOf {
		group := p.groups.all[g]
		if p.onHostname(g) {
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
		pt.domains = []domain{{}}
	} else {
		pt.domains = p.domains(pt.st.required, c.requests, pt.keys, pt.tags, pt.limits)
		pt.domains = slices.DeleteFunc(pt.domains, func(d domain) bool { return d.room == 0 && s.isClosed(pt.keys, &d) })
	}
	pt.placed = make([]int, len(pt.domains))
	pt.rank = pt.ranking(s)
	for _, t := range pt.st.terms {
		if !t.anti && !p.onHostname(t.group) {
			s.followers[t.group] = append(s.followers[t.group], pt)
		}
	}
	s.parts = append(s.parts, pt)
}

func (s *settler) isClosed(keys []string, d *domain) bool {
	for i, k := range keys {
		if s.facts.closed[closedKey{k, d.values[i]}] {
			return true
		}
	}
	return false
}

// ranking orders parts: pods that depend on nobody but themselves come first, then those that follow others, and last
// those that spread by pods they are not among.
func (pt *part) ranking(s *settler) int {
	rank := 0
	for _, sp := range pt.st.spreads {
		if !s.p.onHostname(sp.group) && !sp.self {
			rank = 2
		}
	}
	for _, t := range pt.st.terms {
		if !t.anti && !t.self {
			rank = max(rank, 1)
		}
	}
	return rank
}

// constrained reports whether the part asks anything about other pods, rather than only being counted.
func (pt *part) constrained() bool { return len(pt.st.spreads)+len(pt.st.terms) > 0 }

// compareParts is the order of settling: by rank, then the largest pods first, for they are the hardest to place; of
// equals, pods that are only counted come last, where they disturb nobody.
func (s *settler) compareParts(x, y *part) int {
	a, b := s.p.Classes[x.class], s.p.Classes[y.class]
	free := func(pt *part) int {
		if pt.constrained() {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(b.requests[0], a.requests[0]), cmp.Compare(b.requests[1], a.requests[1]),
		cmp.Compare(free(x), free(y)), cmp.Compare(len(x.domains), len(y.domains)), cmp.Compare(x.class, y.class), cmp.Compare(x.stage, y.stage))
}

// run places all that can be placed, gives up preferences of what cannot, and returns what is left at the last stage,
// by class.
func (s *settler) run() map[int]int {
	left := map[int]int{}
	for i, c := range s.p.Classes {
		if c.Refusal == nil {
			first := 0
			if s.p.options.IgnorePreferences {
				first = len(c.soft)
			}
			s.addPart(i, first, len(c.Pods))
		}
	}
	for {
		s.laps()
		moved := false
		for _, pt := range slices.Clone(s.parts) {
			if pt.want == 0 {
				continue
			}
			if pt.stage < len(s.p.Classes[pt.class].soft) {
				s.addPart(pt.class, pt.stage+1, pt.want)
				moved = true
			} else {
				left[pt.class] += pt.want
			}
			pt.want = 0
		}
		if !moved {
			return left
		}
	}
}

// laps goes round the parts until nothing can be placed any more.
func (s *settler) laps() {
	order := make([]int, len(s.parts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return s.compareParts(s.parts[a], s.parts[b])
	})
	for progress := true; progress; {
		progress = false
		for _, i := range order {
			progress = s.place(i) || progress
		}
	}
}

// place gives as many pods of the part to domains as its constraints allow now.
func (s *settler) place(i int) bool {
	pt := s.parts[i]
	if pt.want == 0 || len(pt.domains) == 0 {
		return false
	}
	if s.follows(pt) {
		return s.placeNear(i)
	}
	if len(pt.keys) == 0 {
		n := min(pt.want, s.capOf(pt, 0)-pt.placed[0])
		if n <= 0 {
			return false
		}
		s.take(i, 0, n, -1)
		return true
	}
	var quota []int
	if pt.crossed() {
		quota = s.quota(pt)
	}
	moved := false
	for pt.want > 0 {
		d := s.best(pt, quota)
		if d < 0 && quota != nil {
			quota = nil
			continue
		}
		if d < 0 {
			break
		}
		s.take(i, d, 1, -1)
		if quota != nil {
			quota[d]--
		}
		moved = true
	}
	return moved
}

// placeNear places pods that must share a node with others, one by one, in the first domain where they find a seat.
func (s *settler) placeNear(i int) bool {
	pt := s.parts[i]
	moved := false
	for pt.want > 0 {
		found := false
		for d := range pt.domains {
			if pt.placed[d] >= s.capOf(pt, d) || len(pt.keys) > 0 && !s.allowed(pt, d) {
				continue
			}
			if b := s.seatNear(i, d); b >= 0 {
				s.take(i, d, 1, b)
				found, moved = true, true
				break
			}
		}
		if !found {
			break
		}
	}
	return moved
}

func (s *settler) capOf(pt *part, d int) int {
	if n, ok := s.facts.caps[capKey{pt.class, pt.stage, pt.domains[d].text()}]; ok {
		return n
	}
	return 1 << 30
}

// take records pods in a domain.
func (s *settler) take(i, d, n, bundle int) {
	pt := s.parts[i]
	pt.want -= n
	pt.placed[d] += n
	s.count(pt, d, n)
	if k := len(s.picks) - 1; k >= 0 && s.picks[k].part == i && s.picks[k].domain == d && s.picks[k].bundle == bundle {
		s.picks[k].count += n
		return
	}
	s.picks = append(s.picks, pick{i, d, bundle, n})
}

func (s *settler) count(pt *part, d, n int) {
	for _, g := range s.p.Classes[pt.class].memberOf {
		if s.p.onHostname(g) {
			s.groups[g].total += n
		}
	}
	for _, m := range pt.groupsIn {
		if m.filter >= 0 && pt.domains[d].values[m.filter] != filterIn {
			continue
		}
		g := &s.groups[m.group]
		g.counts[pt.domains[d].values[m.key]] += n
		g.total += n
	}
	for _, t := range pt.st.terms {
		// A preference keeps its owner away from others, but nobody away from its owner.
		if t.anti && t.hard && !s.p.onHostname(t.group) {
			s.groups[t.group].owners[s.valueOf(pt, d, t.group)] += n
		}
	}
}

func (s *settler) valueOf(pt *part, d, group int) string {
	return pt.domains[d].values[slices.Index(pt.keys, s.p.groups.all[group].key)]
}

// best is the allowed domain that is cheapest, of equals the one with the fewest pods counted, then with most room on
// existing nodes; -1 if none is allowed.
func (s *settler) best(pt *part, quota []int) int {
	best := -1
	var bestKey [4]float64
	for d := range pt.domains {
		if pt.placed[d] >= s.capOf(pt, d) || quota != nil && quota[d] <= 0 || !s.allowed(pt, d) {
			continue
		}
		dom := &pt.domains[d]
		free := 0.0
		if dom.room > pt.placed[d] {
			free = 1
		}
		key := [4]float64{-float64(s.awaited(pt, d)), -free, dom.price, s.crowd(pt, d)}
		if free == 1 {
			key[2] = 0
		}
		if quota != nil { // the quota has thought of price and balance; keep the ways open
			key = [4]float64{key[0], float64(-quota[d]), s.crowd(pt, d)}
		}
		if best < 0 || slices.Compare(key[:], bestKey[:]) < 0 {
			best, bestKey = d, key
		}
	}
	return best
}

// awaited is how many parts wait for a pod of this one in the domain: they have affinity to it, and nobody whom they could
// follow is in any domain of theirs yet.
func (s *settler) awaited(pt *part, d int) int {
	n := 0
	for _, m := range pt.groupsIn {
		value := pt.domains[d].values[m.key]
		for _, f := range s.followers[m.group] {
			if f != pt && s.waits(f, m.group, value) {
				n++
			}
		}
	}
	return n
}

// waits reports whether a part that follows a group can be at the value, and has no member of the group anywhere it can
// be.
func (s *settler) waits(f *part, group int, value string) bool {
	if f.want == 0 {
		return false
	}
	here := false
	for d := range f.domains {
		v := s.valueOf(f, d, group)
		if s.groups[group].counts[v] > 0 {
			return false
		}
		here = here || v == value
	}
	return here
}

// crowd is how many pods are counted in the domain already, over all groups the part is in or spreads by.
func (s *settler) crowd(pt *part, d int) float64 {
	sum := 0
	for _, m := range pt.groupsIn {
		sum += s.groups[m.group].counts[pt.domains[d].values[m.key]]
	}
	for _, sp := range pt.st.spreads {
		if !sp.self && !s.p.onHostname(sp.group) {
			sum += s.groups[sp.group].counts[s.valueOf(pt, d, sp.group)]
		}
	}
	return float64(sum)
}

// allowed reports whether kube-scheduler would let one more pod of the part into the domain now.
func (s *settler) allowed(pt *part, d int) bool {
	for _, sp := range pt.st.spreads {
		if s.p.onHostname(sp.group) {
			continue
		}
		g := &s.groups[sp.group]
		least := g.least()
		if len(g.universe) < sp.minDomains {
			least = 0
		}
		self := 0
		if sp.self {
			self = 1
		}
		if g.counts[s.valueOf(pt, d, sp.group)]+self-least > sp.maxSkew {
			return false
		}
	}
	for _, t := range pt.st.terms {
		if s.p.onHostname(t.group) {
			continue
		}
		g := &s.groups[t.group]
		n := g.counts[s.valueOf(pt, d, t.group)]
		if t.anti && n > 0 || !t.anti && n == 0 && !(t.self && g.total == 0) {
			return false
		}
	}
	for _, m := range pt.groupsIn {
		if s.groups[m.group].owners[pt.domains[d].values[m.key]] > 0 {
			return false
		}
	}
	return true
}

// least is the smallest count over the values that count.
func (g *groupCount) least() int {
	if len(g.universe) == 0 {
		return 0
	}
	least := 1 << 30
	for _, v := range g.universe {
		least = min(least, g.counts[v])
	}
	return least
}

// within translates constraints that act within one node into tags and limits.
func (p *Problem) within(class int, st *stage) (tags []string, limits []Limit) {
	c := p.Classes[class]
	tags, limits = portTags(c.ports)
	for _, g := range c.memberOf {
		if group := p.groups.all[g]; p.onHostname(g) && group.watched {
			tags = append(tags, group.tag())
		}
	}
	for _, sp := range st.spreads {
		if p.onHostname(sp.group) {
			limits = append(limits, Limit{p.groups.all[sp.group].tag(), sp.maxSkew})
		}
	}
	for _, t := range st.terms {
		if !p.onHostname(t.group) || !t.anti {
			continue
		}
		most := 0
		if t.self {
			most = 1
		}
		limits = append(limits, Limit{p.groups.all[t.group].tag(), most})
	}
	return tags, limits
}
