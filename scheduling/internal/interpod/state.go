package interpod

import (
	"slices"
	"sync"
)

// Absent is the value of a key that a place does not have.
const Absent int32 = -1

// Values numbers the values of label keys. It is safe for concurrent use, and only grows.
type Values struct {
	mu    sync.Mutex
	byKey []map[string]int32
}

// Of returns the number of a value of a key, a new one if it is not known.
func (v *Values) Of(key int32, value string) int32 {
	v.mu.Lock()
	defer v.mu.Unlock()
	for int(key) >= len(v.byKey) {
		v.byKey = append(v.byKey, map[string]int32{})
	}
	id, ok := v.byKey[key][value]
	if !ok {
		id = int32(len(v.byKey[key]))
		v.byKey[key][value] = id
	}
	return id
}

// At returns the values of a node with these labels, by key of the index.
func (v *Values) At(x *Index, labels map[string]string) []int32 {
	out := make([]int32, len(x.keys.list))
	for k, key := range x.keys.list {
		out[k] = Absent
		if value, ok := labels[key]; ok {
			out[k] = v.Of(int32(k), value)
		}
	}
	return out
}

// Find returns the number of a value, or [Absent] if it has none.
func (v *Values) Find(key int32, value string) int32 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if int(key) < len(v.byKey) {
		if id, ok := v.byKey[key][value]; ok {
			return id
		}
	}
	return Absent
}

// Len returns the number of values of a key.
func (v *Values) Len(key int32) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if int(key) >= len(v.byKey) {
		return 0
	}
	return len(v.byKey[key])
}

// State counts pods by group and value. A place is given by its values, one for each key of the
// index, and by the filters that it passes. It is not safe for concurrent use.
type State struct {
	index   *Index
	groups  []tally
	domains []table // nodes by value, for the groups of spreads; see Group.domain

	// CountSold says that spreads also count values without nodes if such nodes are for sale. While
	// there are some, a value takes no more pods than it had at the start, or than the skew allows
	// beside an empty value. kube-scheduler counts only nodes that are there.
	CountSold bool
	start     []table // members by value, by group
}

// tally is the counts of one group.
type tally struct {
	counts  table           // members, by value
	keepers table           // pods whose required anti-affinity looks at the group
	averse  table           // pods whose preferred anti-affinity does
	total   int32           // members on places that have the key
	most    map[int32]int32 // of a ratio: how many members each value may have

	// least is the least count over the domains of a spread, and have how many domains have it at
	// least. at is the turn of the domains at which they were computed, counted from 1; 0 for none.
	least, have, at int32
}

// NewState returns a state without pods and nodes. values only decide how keys are counted.
func NewState(x *Index, values *Values) *State {
	s := &State{index: x, groups: make([]tally, len(x.groups.list)), domains: make([]table, len(x.domains.list))}
	most := x.most(values)
	for i, g := range x.groups.list {
		n := values.Len(g.Key)
		s.groups[i] = tally{counts: newTable(n), keepers: newTable(n), averse: newTable(n), most: most[int32(i)]}
	}
	for i, d := range x.domains.list {
		s.domains[i] = newTable(values.Len(d.key))
	}
	return s
}

// Begin makes the present counts those of the start; see [State.CountSold].
func (s *State) Begin() {
	s.start = make([]table, len(s.groups))
	for i := range s.groups {
		s.start[i] = s.groups[i].counts.clone()
	}
}

// atStart returns the count at the start, and 0 if there was none.
func (s *State) atStart(group, value int32) int32 {
	if s.start == nil {
		return 0
	}
	return s.start[group].get(value)
}

// Clone returns an independent copy.
func (s *State) Clone() *State {
	out := &State{index: s.index, groups: slices.Clone(s.groups), domains: slices.Clone(s.domains), CountSold: s.CountSold, start: s.start}
	for i := range out.groups {
		g := &out.groups[i]
		g.counts, g.keepers, g.averse = g.counts.clone(), g.keepers.clone(), g.averse.clone()
	}
	for i := range out.domains {
		out.domains[i] = out.domains[i].clone()
	}
	return out
}

// domainsOf returns the domains of the spreads of a group.
func (s *State) domainsOf(group int32) *table { return &s.domains[s.index.groups.list[group].domain] }

// Add adds n pods at a place; n may be negative. Terminating pods count only for affinity.
func (s *State) Add(c *Constraints, values []int32, passes func(filter int32) bool, terminating bool, n int32) {
	for _, id := range c.MemberOf {
		g := &s.index.groups.list[id]
		v := values[g.Key]
		if v < 0 || (g.Spread || g.Ratio != "") && terminating || g.Filter >= 0 && !passes(g.Filter) {
			continue
		}
		s.Count(id, v, n)
	}
	for i := range c.Terms {
		t := &c.Terms[i]
		if !t.Anti {
			continue
		}
		if v := values[s.index.groups.list[t.Group].Key]; v >= 0 {
			s.Keep(t, v, n)
		}
	}
}

// Count adds members of a group at a value.
func (s *State) Count(group, value, n int32) {
	g := &s.groups[group]
	if g.at > 0 {
		switch {
		case n < 0:
			g.at = 0
		case g.counts.get(value) == g.least && s.domainsOf(group).get(value) > 0:
			if g.have--; g.have <= 0 {
				g.at = 0
			}
		}
	}
	g.counts.add(value, n)
	g.total += n
}

// CountApart adds members of a group at an unknown value, for example on a node that is not chosen
// yet.
func (s *State) CountApart(group, n int32) { s.groups[group].total += n }

// Keep adds n pods at a value that have this anti-affinity term.
func (s *State) Keep(t *Term, value, n int32) {
	if t.Hard {
		s.groups[t.Group].keepers.add(value, n)
	} else {
		s.groups[t.Group].averse.add(value, n)
	}
}

// AddNode adds n nodes with these values to the domains of the spreads whose filters they pass; n
// may be negative.
func (s *State) AddNode(values []int32, passes func(filter int32) bool, n int32) {
	for i := range s.domains {
		d := s.index.domains.list[i]
		if v := values[d.key]; v >= 0 && (d.filter < 0 || passes(d.filter)) {
			s.domains[i].add(v, n)
		}
	}
}

// AddDomain adds a value to the domains of a group's spreads.
func (s *State) AddDomain(group, value int32) { s.domainsOf(group).add(value, 1) }

// Members returns how many members of a group are at a value.
func (s *State) Members(group, value int32) int32 { return s.groups[group].counts.get(value) }

// Room returns how many more members of a ratio a value may have.
func (s *State) Room(group, value int32) int32 {
	return s.groups[group].most[value] - s.Members(group, value)
}

// Total returns how many members a group has.
func (s *State) Total(group int32) int32 { return s.groups[group].total }

// Kept reports whether required anti-affinity of some pod looks at a group.
func (s *State) Kept(group int32) bool { return s.groups[group].keepers.live > 0 }

// Averse returns how many pods at a value have preferred anti-affinity to a group.
func (s *State) Averse(group, value int32) int32 { return s.groups[group].averse.get(value) }

// Rule is a rule of kube-scheduler.
type Rule uint8

// The rules. KeptRule is required anti-affinity of another pod. RatioRule says that a value already
// has its share of a ratio's pods.
const (
	None Rule = iota
	SpreadRule
	AffinityRule
	AntiAffinityRule
	KeptRule
	RatioRule
)

// Violation is the constraint that keeps a pod from a place. The zero value means none.
type Violation struct {
	Rule  Rule
	Group int32
}

// OK reports whether there is no violation.
func (v Violation) OK() bool { return v.Rule == None }

// Check returns the first constraint that keeps one more pod from a place. Groups in skip, by
// number, are not checked; nil skips none. It costs O(constraints), and rarely a look at all
// domains.
//
// Some pods and nodes may move at an unknown moment; low is nil if none do. To be right at every
// moment, s and low are two counts. The upper count s has a moving pod at its old and its new
// place, and no moving node as a domain. The lower count low has a moving pod nowhere, and a moving
// node as a domain. A pod is then accepted only if kube-scheduler would accept it at every moment.
func (s *State) Check(c *Constraints, values []int32, skip []bool, low *State) Violation {
	skipped := func(g int32) bool { return skip != nil && skip[g] }
	met, anywhere, self, missing := true, int32(0), true, int32(0)
	for i := range c.Terms {
		t := &c.Terms[i]
		if t.Hard && !t.Anti {
			anywhere += s.groups[t.Group].total
			self = self && t.Self
		}
		if skipped(t.Group) {
			continue
		}
		v := values[s.index.groups.list[t.Group].Key]
		n := int32(0)
		if v >= 0 {
			n = s.Members(t.Group, v)
		}
		if low != nil && t.Hard && !t.Anti && n > 0 { // the pods that it follows may be elsewhere
			n = low.Members(t.Group, v)
		}
		switch {
		case t.Anti && n > 0:
			return Violation{AntiAffinityRule, t.Group}
		case t.Anti || n > 0:
		case v < 0:
			return Violation{AffinityRule, t.Group}
		case t.Hard:
			met, missing = false, t.Group
		case !t.Self || s.groups[t.Group].total > 0: // a preferred term counts by itself
			return Violation{AffinityRule, t.Group}
		}
	}
	if !met && (anywhere > 0 || !self) { // the first pod that meets its own terms may be anywhere
		return Violation{AffinityRule, missing}
	}
	for _, id := range c.MemberOf {
		if v := values[s.index.groups.list[id].Key]; v >= 0 && !skipped(id) && s.groups[id].keepers.get(v) > 0 {
			return Violation{KeptRule, id}
		}
	}
	for _, id := range c.Ratios {
		if v := values[s.index.groups.list[id].Key]; v < 0 || s.Members(id, v) >= s.groups[id].most[v] {
			return Violation{RatioRule, id}
		}
	}
	for i := range c.Spreads {
		if sp := &c.Spreads[i]; !skipped(sp.Group) && !s.Even(sp, values, low) {
			return Violation{SpreadRule, sp.Group}
		}
	}
	return Violation{}
}

// Even reports whether one more pod at the place keeps within the skew of a spread. With low, it
// must do so however others move: the count of its domain is compared with the least lower count of
// all other domains.
func (s *State) Even(sp *Spread, values []int32, low *State) bool {
	v := values[s.index.groups.list[sp.Group].Key]
	if v < 0 {
		return false
	}
	n := s.Members(sp.Group, v)
	if sp.Self {
		n++
	}
	if n-s.least(sp) > sp.MaxSkew {
		return false
	}
	if s.CountSold && n > max(sp.MaxSkew, s.atStart(sp.Group, v)) && slices.ContainsFunc(sp.Sold, func(v int32) bool { return s.domainsOf(sp.Group).get(v) <= 0 }) {
		return false
	}
	if low == nil || n-low.least(sp) <= sp.MaxSkew {
		return true
	}
	own := low.Members(sp.Group, v)
	if own > low.least(sp) {
		return false
	}
	low.Count(sp.Group, v, n-own) // the least without its own domain
	least := low.least(sp)
	low.Count(sp.Group, v, own-n)
	return n-least <= sp.MaxSkew
}

// least returns the count from which the skew of a spread is measured: the least of all domains, or
// 0 if there are fewer than minDomains. It is kept until all domains with the least count have
// risen.
func (s *State) least(sp *Spread) int32 {
	domains, g := s.domainsOf(sp.Group), &s.groups[sp.Group]
	if domains.live < sp.MinDomains {
		return 0
	}
	if g.at != domains.turns+1 {
		g.least, g.have = g.counts.least(domains)
		g.at = domains.turns + 1
	}
	return g.least
}
