package topology

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// Assignment is the pods by domain. It is immutable and safe for concurrent use.
type Assignment struct {
	// Classes are the pods by class and relaxation level.
	Classes []*RelaxedClass
	// Lots are what must be packed: bundles first, then pods on their own.
	Lots []Lot
	// Picks are the pods in the order of assignment. kube-scheduler accepts them in this order.
	Picks []Pick
	// Unplaced is how many pods of each class have no domain.
	Unplaced []int
	// Facts are the facts that it was given.
	Facts Facts

	p *Problem
}

// Lot is a number of equal units to pack: pods of one class and domain, or bundles of pods that
// must share a node.
type Lot struct {
	// Count is the number of units.
	Count int
	// Slots are the pods of one unit.
	Slots []Slot
	// Bundles are the numbers of the bundles, as in Pick.Bundle; empty for pods on their own.
	Bundles []int
	// Node is the existing node that they must be on, -1 for any.
	Node int
	// Loose says that the pods may leave their domain; see [Assignment.Loosen].
	Loose bool
	// Requests is what one unit takes.
	Requests []int64
	// Required is what the labels of the node must satisfy.
	Required requirements.Alternatives
	// Tags and Limits are the constraints within a node.
	Tags   []string
	Limits []Limit
}

// Slot is a number of pods of one relaxed class, by position in Assignment.Classes, in a domain.
type Slot struct{ Relaxed, Domain, Count int }

// Pick is one or more pods of a relaxed class that were assigned to a domain in a row. Bundle is
// the bundle that they joined. It is -1 if they were on their own then, even if others joined them
// later.
type Pick struct{ Relaxed, Domain, Bundle, Count int }

// Start assigns without facts, or with those that [Problem.With] took over. If pods are unplaced,
// it tries another choice of domains and closed domains. It keeps the assignment with the fewest
// unplaced pods of the highest priority at which they differ.
func (p *Problem) Start() *Assignment {
	best := p.Assign(p.first)
	if len(best.unplaced()) == 0 || p.chosen {
		return best
	}
	try := func(f Facts) {
		if other := p.Assign(f); other.leavesFewer(best) {
			best = other
		}
	}
	try(best.Vary(1))
	if closed, ok := best.Close(best.unplaced()); ok {
		try(closed)
	}
	return best
}

// Assign assigns all pods, given the facts. It costs about O(pods x domains x constraints) for pods
// that have constraints or are counted, and O(classes) for the others.
func (p *Problem) Assign(f Facts) *Assignment {
	s := p.newAssigner(f)
	out := &Assignment{p: p, Facts: f}
	out.Unplaced = s.run()
	out.Classes, out.Picks = s.classes, s.picks
	out.Lots = s.lots()
	return out
}

// unplaced returns the classes with unplaced pods.
func (st *Assignment) unplaced() []int {
	var out []int
	for i, n := range st.Unplaced {
		if n > 0 {
			out = append(out, i)
		}
	}
	return out
}

// leavesFewer reports whether fewer pods are unplaced than in another assignment, at the highest
// priority at which they differ.
func (st *Assignment) leavesFewer(other *Assignment) bool {
	fewer := map[int32]int{}
	for i := range st.Unplaced {
		fewer[st.p.classes[i].Priority] += other.Unplaced[i] - st.Unplaced[i]
	}
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(fewer))) {
		if n := fewer[priority]; n != 0 {
			return n > 0
		}
	}
	return false
}

// lots makes lots of the assigned pods. Equal bundles are one lot.
func (s *assigner) lots() []Lot {
	out := make([]Lot, 0, len(s.bundles)+len(s.classes))
	keep := s.facts.keep
	at := map[string]int{}
	for i, b := range s.bundles {
		text := fmt.Sprint(b.slots, b.node)
		k, ok := at[text]
		if !ok {
			k = len(out)
			at[text] = k
			out = append(out, Lot{Slots: b.slots, Node: b.node, Requests: b.requests, Required: keep(b.required), Tags: b.tags, Limits: s.limitsOf(b)})
		}
		out[k].Count++
		out[k].Bundles = append(out[k].Bundles, i)
	}
	slots := make([]Slot, 0, cap(out)) // of pods on their own
	for i, rc := range s.classes {
		for d, n := range rc.Placed {
			if n -= rc.bundled[d]; n <= 0 {
				continue
			}
			slots = append(slots, Slot{i, d, 1})
			out = append(out, Lot{
				Count: n, Slots: slots[len(slots)-1 : len(slots) : len(slots)], Node: -1, Requests: s.p.classes[rc.Class].Requests,
				Required: keep(rc.Domains[d].required()), Tags: rc.tags, Limits: slices.Concat(rc.lasting, rc.passing),
			})
		}
	}
	return out
}

// Loosen returns the assignment with pods tied to their domains only where placed pods need it.
// Pods that a constraint counts stay. Of pods that others only have affinity to, one stays in each
// domain. placed says which classes have placed pods. The result is nil if every tie is needed.
func (st *Assignment) Loosen(placed func(class int) bool) *Assignment {
	t := st.ties(placed)
	stays := make([][]bool, len(st.Classes)) // by class and key
	for i, rc := range st.Classes {
		for _, k := range rc.keys {
			stays[i] = append(stays[i], t.needs(rc, k))
		}
	}
	moves := func(sl Slot) bool { return slices.Contains(stays[sl.Relaxed], false) }
	some := false
	for _, lot := range st.Lots {
		some = some || lot.Node < 0 && slices.ContainsFunc(lot.Slots, moves)
		for _, sl := range lot.Slots {
			if lot.Node >= 0 || !moves(sl) {
				t.follow(st.Classes[sl.Relaxed], sl.Domain)
			}
		}
	}
	if !some {
		return nil
	}
	needed := map[[2]int]bool{} // one pod of the relaxed class in the domain is needed
	for _, pk := range st.Picks {
		if t.follow(st.Classes[pk.Relaxed], pk.Domain) {
			needed[[2]int{pk.Relaxed, pk.Domain}] = true
		}
	}
	out := *st
	out.Lots = make([]Lot, 0, len(st.Lots)+len(needed))
	for _, lot := range st.Lots {
		if lot.Node >= 0 || !slices.ContainsFunc(lot.Slots, moves) {
			out.Lots = append(out.Lots, lot)
			continue
		}
		tied, required := false, requirements.AnyOf(requirements.Set{})
		for _, sl := range lot.Slots {
			rc, at := st.Classes[sl.Relaxed], [2]int{sl.Relaxed, sl.Domain}
			tied = tied || needed[at]
			delete(needed, at)
			required = required.Intersect(rc.at.required).Intersect(st.p.pin(rc.keys, &rc.Domains[sl.Domain], stays[sl.Relaxed]))
		}
		if tied {
			one := lot
			one.Count, lot.Count = 1, lot.Count-1
			if len(lot.Bundles) > 0 {
				one.Bundles, lot.Bundles = lot.Bundles[:1], lot.Bundles[1:]
			}
			out.Lots = append(out.Lots, one)
		}
		if lot.Count > 0 {
			lot.Required, lot.Loose = st.Facts.keep(required), true
			out.Lots = append(out.Lots, lot)
		}
	}
	return &out
}

// ties are what placed pods look at.
type ties struct {
	p       *Problem
	counted []bool            // by group: a constraint counts its pods in each domain
	follows map[followed]bool // where pods need one that they follow, and have none yet
}

// followed is a group and a value of its key.
type followed struct{ group, value int32 }

func (st *Assignment) ties(placed func(class int) bool) ties {
	t := ties{st.p, slices.Clone(st.p.kept), map[followed]bool{}}
	for _, rc := range st.Classes {
		if !placed(rc.Class) {
			continue
		}
		for d, n := range rc.Placed {
			if n == 0 {
				continue
			}
			for _, sp := range rc.at.Spreads {
				t.counted[sp.Group] = true
			}
			for _, term := range rc.at.Terms {
				at := followed{term.Group, rc.Domains[d].at[st.p.groups[term.Group].keyID]}
				switch {
				case term.Anti:
					t.counted[term.Group] = true
				case at.value >= 0 && st.p.running.Members(at.group, at.value) == 0:
					t.follows[at] = true
				}
			}
		}
	}
	return t
}

// needs reports whether pods of the class must keep their value of the key.
func (t *ties) needs(rc *RelaxedClass, k key) bool {
	if !k.optional && k.filter < 0 || slices.ContainsFunc(rc.at.Terms, func(term interpod.Term) bool { return t.p.groups[term.Group].keyID == k.id }) {
		return true
	}
	return slices.ContainsFunc(rc.counted, func(m membership) bool {
		g := &t.p.groups[m.group]
		return t.counted[m.group] && (k.filter < 0 && g.keyID == k.id || k.filter >= 0 && int(g.filter) == k.filter)
	})
}

// follow reports whether pods need a pod of the class in the domain to follow. From then on they
// have one.
func (t *ties) follow(rc *RelaxedClass, d int) (yes bool) {
	for _, m := range rc.counted {
		at := followed{m.group, rc.Domains[d].at[t.p.groups[m.group].keyID]}
		yes = yes || t.follows[at]
		delete(t.follows, at)
	}
	return yes
}

// Learn adds to the facts how many pods of a relaxed class a domain holds at most, if missing pods
// could not be packed there. It reports whether another assignment can differ.
func (st *Assignment) Learn(missing func(relaxed, domain int) int) (Facts, bool) {
	next := st.Facts
	next.caps = map[capped]int{} // facts are immutable
	maps.Copy(next.caps, st.Facts.caps)
	news := false
	for i, rc := range st.Classes {
		for d, n := range rc.Placed {
			unpacked := missing(i, d)
			if unpacked <= 0 {
				continue
			}
			key := capped{rc.Class, rc.Level, rc.Domains[d].text}
			if have, ok := next.caps[key]; ok && have <= n-unpacked {
				continue
			}
			next.caps[key] = n - unpacked
			// Pods without domains, preferences and groups would be assigned as before.
			c := &st.p.classes[rc.Class]
			news = news || len(rc.keys) > 0 || rc.Level < len(c.soft) || len(c.all.MemberOf) > 0
		}
	}
	return next, news
}
