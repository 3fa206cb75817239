package topology

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joinery-sdk/joinery/scheduling/topology/quota"
)

// settler gives pods to domains, one after the other, as kube-scheduler would accept them: a pod goes only where its
// constraints hold given all pods before it, so the order of settling is an order of binding.
type settler struct {
	p      *Problem
	facts  Facts
	groups []groupCount
	parts  []*Part
	partAt map[[2]int]int // by class and stage
	picks  []Pick         // in the order of placing

	followers map[int][]*Part // by group, those with affinity to it
	bundles   []*bundle
	on        map[int][]int      // by existing node, the numbers of the bundles that are tied to it
	couples   map[[4]int]*bundle // two that share a node, by the part and domain of each; nil for those that cannot
	free      map[int][]int64    // what pods that must be on a node have left of it
	bought    map[int]int        // the bundles of nodes to buy whose pods stay together
}

func (p *Problem) newSettler(f Facts) *settler {
	s := &settler{
		p: p, facts: f, groups: make([]groupCount, len(p.groups)), partAt: map[[2]int]int{}, followers: map[int][]*Part{},
		on: map[int][]int{}, couples: map[[4]int]*bundle{}, free: map[int][]int64{}, bought: map[int]int{},
	}
	for i, g := range p.groups {
		gc := &s.groups[i]
		gc.counts, gc.owners, gc.wary = map[string]int{}, map[string]int{}, map[string]int{}
		for v, n := range g.counts {
			gc.counts[v] = n
			gc.total += n
		}
		maps.Copy(gc.owners, g.owners)
		if !p.inNode(i) {
			gc.universe = p.universe(i, f)
		}
	}
	return s
}

// run places all that can be placed, gives up preferences of what cannot, and returns what is left at the last stage,
// by class.
func (s *settler) run() []int {
	left := make([]int, len(s.p.classes))
	anybody := func(*Part) bool { return true }
	if s.facts.seats != nil {
		s.follow(s.facts.seats, 0)
	}
	settled := s.placed()
	if s.facts.ahead != nil {
		s.await(s.facts.ahead)
		for more := true; more; more = s.relax(anybody) {
			s.laps(anybody)
		}
		settled = s.facts.ahead
	}
	rest := make([]int, len(settled))
	for i, n := range settled {
		rest[i] = s.p.classes[i].Count - n
	}
	s.await(rest)
	for _, promoted := range []bool{true, false} {
		among := func(pt *Part) bool { return !promoted || s.facts.first[pt.Class] > 0 }
		for more := !promoted || len(s.facts.first) > 0; more; more = s.relax(among) {
			s.laps(among)
		}
	}
	for _, pt := range s.parts {
		left[pt.Class] += pt.want
	}
	return left
}

// await lets more pods of each class wait for a place, with no more preferences given up than it has to.
func (s *settler) await(more []int) {
	for i, n := range more {
		if n <= 0 {
			continue
		}
		first := s.facts.given[i]
		if s.p.ignoresSoft {
			first = len(s.p.classes[i].soft)
		}
		s.parts[s.partOf(i, first)].want += n
	}
}

// placed is how many pods of each class have a place.
func (s *settler) placed() []int {
	out := make([]int, len(s.p.classes))
	for _, pick := range s.picks {
		out[s.parts[pick.Part].Class] += pick.Count
	}
	return out
}

// relax gives up one preference of each class that has pods waiting and least depends on others, and reports whether
// there was any to give up. The others wait for what comes of it: they may get their way after all.
func (s *settler) relax(among func(*Part) bool) bool {
	least := 3
	can := func(pt *Part) bool { return pt.want > 0 && pt.Stage < len(s.p.classes[pt.Class].soft) && among(pt) }
	for _, pt := range s.parts {
		if can(pt) {
			least = min(least, pt.rank)
		}
	}
	for _, pt := range slices.Clone(s.parts) {
		if can(pt) && pt.rank == least {
			want := pt.want
			pt.want = 0
			s.parts[s.partOf(pt.Class, pt.Stage+1)].want += want
		}
	}
	return least < 3
}

// laps goes round the parts until nothing can be placed any more.
func (s *settler) laps(among func(*Part) bool) {
	order := make([]int, 0, len(s.parts))
	for i, pt := range s.parts {
		if pt.want > 0 && among(pt) {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(s.compareParts(s.parts[a], s.parts[b]), cmp.Compare(a, b))
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
	if pt.want == 0 || len(pt.Domains) == 0 {
		return false
	}
	if pt.follows {
		return s.placeNear(i)
	}
	if len(pt.keys) == 0 {
		n := min(pt.want, s.capOf(pt, 0)-pt.Placed[0])
		if n <= 0 {
			return false
		}
		s.take(i, 0, n, -1)
		return true
	}
	shares := s.quota(pt)
	moved := false
	for pt.want > 0 {
		d := s.best(i, shares)
		if d < 0 && shares != nil {
			shares = nil
			continue
		}
		if d < 0 {
			break
		}
		bundle := -1
		if n := s.p.standsOn(pt, d); n >= 0 { // what it has room for is known: packing need not find out, round by round
			if bundle = s.tie(i, d, n); bundle < 0 {
				pt.full.add(d)
				continue
			}
		}
		s.take(i, d, 1, bundle)
		if shares != nil {
			shares[d]--
		}
		moved = true
	}
	return moved
}

// quota divides what the part still wants over its domains if it spreads itself over two keys or more at once; nil if
// not.
func (s *settler) quota(pt *Part) []int {
	if len(pt.crossed) < 2 {
		return nil
	}
	counts := make([]map[string]int, len(pt.crossed))
	for i, k := range pt.crossed {
		for _, sp := range pt.st.spreads {
			if sp.self && sp.key == pt.keys[k] {
				counts[i] = s.groups[sp.group].counts
			}
		}
	}
	spots := make([]quota.Spot, len(pt.Domains))
	for d := range pt.Domains {
		spots[d].Most = s.capOf(pt, d) - pt.Placed[d]
		for _, k := range pt.crossed {
			spots[d].Values = append(spots[d].Values, pt.Domains[d].Values[k])
		}
	}
	return quota.Divide(pt.want, spots, counts)
}

// placeNear places pods that must share a node with others, one by one, in the first domain where they find a seat.
func (s *settler) placeNear(i int) bool {
	pt := s.parts[i]
	moved := false
	for pt.want > 0 {
		found := false
		for d := range pt.Domains {
			if pt.Placed[d] >= s.capOf(pt, d) || len(pt.keys) > 0 && !s.allowed(pt, d) {
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

// capOf is how many pods of the part the domain holds at most, as far as is known.
func (s *settler) capOf(pt *Part, d int) int {
	most := 1 << 30
	if pt.full.has(d) {
		return pt.Placed[d]
	}
	if dom := &pt.Domains[d]; dom.price >= unsold {
		most = dom.room
	}
	if len(s.facts.caps) == 0 {
		return most
	}
	if n, ok := s.facts.caps[capKey{pt.Class, pt.Stage, pt.Domains[d].String()}]; ok {
		return min(n, most)
	}
	return most
}

// take records pods in a domain.
func (s *settler) take(i, d, n, bundle int) {
	pt := s.parts[i]
	pt.want -= n
	pt.Placed[d] += n
	s.count(pt, d, n)
	if k := len(s.picks) - 1; k >= 0 && s.picks[k].Part == i && s.picks[k].Domain == d && s.picks[k].Bundle == bundle {
		s.picks[k].Count += n
		return
	}
	s.picks = append(s.picks, Pick{i, d, bundle, n})
}

// best is the allowed domain where the pod serves others best: somebody waits for it there, and nobody would rather have
// it elsewhere. Of equals it is one with room on existing nodes, then the cheapest, then the one with the fewest pods
// counted; -1 if none is allowed.
func (s *settler) best(i int, shares []int) int {
	pt, best := s.parts[i], -1
	var bestKey [7]float64
	for d := range pt.Domains {
		if pt.Placed[d] >= s.capOf(pt, d) || shares != nil && shares[d] <= 0 || !s.allowed(pt, d) {
			continue
		}
		dom := &pt.Domains[d]
		free := 0.0
		if dom.room > pt.Placed[d] {
			free = 1
		}
		crowd := s.crowd(pt, d)
		key := [7]float64{
			s.facts.leaning(pt.Class, d, crowd), -float64(s.awaited(pt, d) + s.awaitedNear(i, d)),
			float64(s.unwelcome(pt, d)), float64(s.hinders(pt, d)), -free, dom.price, crowd,
		}
		if free == 1 {
			key[5] = 0
		}
		if shares != nil { // the quota has thought of balance; keep the ways open
			key = [7]float64{key[1], float64(-shares[d]), crowd}
		}
		if best < 0 || slices.Compare(key[:], bestKey[:]) < 0 {
			best, bestKey = d, key
		}
	}
	return best
}

// awaited is how many parts wait for a pod of this one in the domain: they have affinity to it, and nobody whom they could
// follow is in any domain of theirs yet.
func (s *settler) awaited(pt *Part, d int) int {
	n := 0
	for _, m := range pt.groupsIn {
		value := pt.Domains[d].Values[m.key]
		for _, f := range s.followers[m.group] {
			if f != pt && s.waits(f, m.group, value) {
				n++
			}
		}
	}
	return n
}

// hinders is how many parts that were left over before spread over a group that the part is in, and can be in the domain
// themselves: a pod elsewhere lets one more of them in, a pod here one less. Only where the reference leads, for where pools
// have limits it costs room.
func (s *settler) hinders(pt *Part, d int) int {
	if len(s.facts.first) == 0 || s.facts.ahead == nil && s.facts.seats == nil {
		return 0
	}
	n := 0
	for _, f := range s.parts {
		if f.Class == pt.Class || f.want == 0 || s.facts.first[f.Class] == 0 {
			continue
		}
		for _, sp := range f.st.spreads {
			at := slices.IndexFunc(pt.groupsIn, func(m membership) bool { return m.group == sp.group })
			if at < 0 {
				continue
			}
			here := pt.Domains[d].Values[pt.groupsIn[at].key]
			if slices.ContainsFunc(f.Domains, func(o Domain) bool { return o.Values[slices.Index(f.keys, sp.key)] == here }) {
				n++
			}
		}
	}
	return n
}

// unwelcome is how many pods in the domain would rather have no pod of the part there.
func (s *settler) unwelcome(pt *Part, d int) int {
	n := 0
	for _, m := range pt.groupsIn {
		n += s.groups[m.group].wary[pt.Domains[d].Values[m.key]]
	}
	return n
}

// waits reports whether a part that follows a group can be at the value, and has no member of the group anywhere it can
// be.
func (s *settler) waits(f *Part, group int, value string) bool {
	if f.want == 0 {
		return false
	}
	here := false
	at := slices.Index(f.keys, s.p.groups[group].key)
	for d := range f.Domains {
		v := f.Domains[d].Values[at]
		if s.groups[group].counts[v] > 0 {
			return false
		}
		here = here || v == value
	}
	return here
}

// crowd is how many pods are counted in the domain already, over all groups the part is in or spreads by.
func (s *settler) crowd(pt *Part, d int) float64 {
	sum := 0
	for _, m := range pt.groupsIn {
		sum += s.groups[m.group].counts[pt.Domains[d].Values[m.key]]
	}
	for i := range pt.st.spreads {
		if sp := &pt.st.spreads[i]; !sp.self && !s.p.inNode(sp.group) {
			sum += s.groups[sp.group].counts[pt.Domains[d].Values[pt.spreadAt[i]]]
		}
	}
	return float64(sum)
}

// groupCount is the state of one group while settling.
type groupCount struct {
	counts   map[string]int
	owners   map[string]int
	wary     map[string]int // pods that would rather not share the value with members
	total    int
	universe []string // values that an eligible node may have
}

// count adds pods of a part in a domain to the groups that they are in, and their anti-affinity to those they keep away.
func (s *settler) count(pt *Part, d, n int) {
	for _, g := range s.p.classes[pt.Class].memberOf {
		if s.p.inNode(g) {
			s.groups[g].total += n
		}
	}
	for _, m := range pt.groupsIn {
		if m.filter >= 0 && pt.Domains[d].Values[m.filter] != filterIn {
			continue
		}
		value := pt.Domains[d].Values[m.key]
		if value == absent {
			continue
		}
		g := &s.groups[m.group]
		g.counts[value] += n
		g.total += n
	}
	for i := range pt.st.terms {
		t := &pt.st.terms[i]
		if !t.anti || s.p.inNode(t.group) {
			continue
		}
		// A preference keeps its owner away from others, but nobody away from its owner who has nowhere better to go.
		to := s.groups[t.group].wary
		if t.hard {
			to = s.groups[t.group].owners
		}
		to[pt.Domains[d].Values[pt.termAt[i]]] += n
	}
}

// allowed reports whether kube-scheduler would let one more pod of the part into the domain now.
func (s *settler) allowed(pt *Part, d int) bool {
	values := pt.Domains[d].Values
	for i := range pt.st.spreads {
		sp := &pt.st.spreads[i]
		if s.p.inNode(sp.group) {
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
		if g.counts[values[pt.spreadAt[i]]]+self-least > sp.maxSkew {
			return false
		}
	}
	for i := range pt.st.terms {
		t := &pt.st.terms[i]
		if s.p.inNode(t.group) {
			continue
		}
		g := &s.groups[t.group]
		n := g.counts[values[pt.termAt[i]]]
		if t.anti && n > 0 || !t.anti && n == 0 && (!t.self || g.total != 0) {
			return false
		}
	}
	for i, r := range pt.st.ratios {
		value := values[pt.ratioAt[i]]
		if s.groups[r.group].counts[value] >= s.p.groups[r.group].most[value] {
			return false
		}
	}
	for _, m := range pt.groupsIn {
		if s.groups[m.group].owners[values[m.key]] > 0 {
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
