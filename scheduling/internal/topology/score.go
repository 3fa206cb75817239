package topology

import (
	"cmp"
	"slices"

	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// score rates a domain for one more pod of a class. Its terms are compared in this order; smaller
// is better.
type score struct {
	// variant is arbitrary. It is 0 in all attempts except those of [Assignment.Vary].
	variant int
	// awaiting is the negated number of classes whose affinity can be met by a pod of this class in
	// the domain.
	awaiting int
	// averse is how many pods there have preferred anti-affinity to the class.
	averse int
	// buying is 0 if an existing node there has free capacity, and 1 otherwise. The first pod of a
	// class whose pods must be together looks at all of them.
	buying int
	// unlabelled is how many keys of the pod's anti-affinity are missing on nodes there, so that
	// the term would not separate it.
	unlabelled int
	// invented is how many values there neither a node nor an earlier pod has.
	invented int
	// avoided is 1 for a new node in a zone that the class avoids.
	avoided int
	// price is the price of the pod, or of these pods, on new nodes, and 0 on existing ones.
	price float64
	// counted is how many pods of the class's groups and spreads are there.
	counted int
}

func (a score) compare(b score) int {
	return cmp.Or(cmp.Compare(a.variant, b.variant), cmp.Compare(a.awaiting, b.awaiting), cmp.Compare(a.averse, b.averse),
		cmp.Compare(a.buying, b.buying), cmp.Compare(a.unlabelled, b.unlabelled), cmp.Compare(a.invented, b.invented), cmp.Compare(a.avoided, b.avoided), cmp.Compare(a.price, b.price), cmp.Compare(a.counted, b.counted))
}

// best returns the allowed domain with the best score, the first of equal ones; -1 if none is
// allowed.
func (s *assigner) best(i int) int {
	rc, best := s.classes[i], -1
	together := rc.together && rc.want > 1 && !slices.ContainsFunc(rc.at.Terms, func(t interpod.Term) bool { return t.Self && !t.Anti && s.state.Total(t.Group) > 0 })
	var least score
	for d := range rc.Domains {
		if rc.isFull(d) || !s.allowed(rc, d) {
			continue
		}
		at := score{
			variant: s.facts.arbitrary(rc.Class, d), unlabelled: s.unlabelled(rc, d), awaiting: -s.awaiting(rc, d), averse: s.averse(rc, d), counted: s.counted(rc, d),
		}
		buys := 0
		if together {
			buys = rc.want - min(rc.want, s.copiesIn(i, d))
		} else if s.roomIn(i, d) < 0 {
			buys = 1
		}
		if buys > 0 {
			at.buying, at.price = 1, float64(buys)*rc.Domains[d].price
			if s.p.avoids(rc, d) {
				at.avoided = 1
			}
			for _, v := range rc.Domains[d].fresh {
				if !s.opened[v] {
					at.invented++
				}
			}
		}
		if best < 0 || at.compare(least) < 0 {
			best, least = d, at
		}
	}
	return best
}

// roomIn returns the first existing node of the domain with room for one more pod of the class
// beside all pods assigned so far; -1 for none. It is not known yet where those are packed, so they
// are assumed to fill the nodes in order.
func (s *assigner) roomIn(i, d int) int {
	rc := s.classes[i]
	nodes, k := s.p.nodesIn(rc, d), s.nextRoom[[2]int{i, d}]
	for k < len(nodes) && !fits(s.p.onNode(&s.p.classes[rc.Class], nodes[k]), s.room[nodes[k]]) {
		k++
	}
	if k == len(nodes) {
		return -1
	}
	s.nextRoom[[2]int{i, d}] = k
	return nodes[k]
}

// copiesIn returns how many pods of the class have room on existing nodes of the domain.
func (s *assigner) copiesIn(i, d int) int {
	rc, n := s.classes[i], 0
	for _, node := range s.p.nodesIn(rc, d) {
		n += copies(s.room[node], s.p.onNode(&s.p.classes[rc.Class], node))
	}
	return n
}

// mostSuited limits the pairs of class and existing node that are compared only to know the room
// that pods without constraints take.
const mostSuited = 1 << 20

// fill takes the room of n pods on existing nodes. The pods of a bundle are on its node.
func (s *assigner) fill(i, d, n, bundle int) {
	if len(s.classes[i].keys) == 0 && len(s.p.classes)*len(s.p.nodes) > mostSuited {
		return
	}
	class := &s.p.classes[s.classes[i].Class]
	for n > 0 {
		var at int
		if bundle >= 0 {
			at = s.bundles[bundle].node
		} else {
			at = s.roomIn(i, d)
		}
		if at < 0 {
			return
		}
		requests := s.p.onNode(class, at)
		most := n
		if bundle < 0 {
			most = min(n, copies(s.room[at], requests))
		}
		for r, q := range requests {
			s.room[at][r] -= q * int64(most)
		}
		n -= most
	}
}

// unlabelled returns score.unlabelled.
func (s *assigner) unlabelled(rc *RelaxedClass, d int) int {
	n := 0
	for i := range rc.at.Terms {
		if t := &rc.at.Terms[i]; t.Anti && !s.p.withinNode[t.Group] && rc.Domains[d].at[s.p.groups[t.Group].keyID] < 0 {
			n++
		}
	}
	return n
}

// awaiting returns how many classes wait for a pod of this class in the domain. They have affinity
// to it, no pod that meets it is where they can be, and the domain suits them.
func (s *assigner) awaiting(rc *RelaxedClass, d int) int {
	n := 0
	for _, g := range s.p.classes[rc.Class].all.MemberOf {
		for _, f := range s.followers[g] {
			if f != rc && f.want > 0 && s.waits(f, g, rc, d) {
				n++
			}
		}
	}
	return n
}

// waits reports whether a class with affinity to a group waits for a pod of another class in a
// domain.
func (s *assigner) waits(f *RelaxedClass, group int32, rc *RelaxedClass, d int) bool {
	if s.p.withinNode[group] {
		if s.state.Total(group) > 0 {
			return false
		}
		var few [4][2]int
		both := commonKeys(few[:0], rc, f)
		i, j := s.relaxed(f.Class, f.Level), s.relaxed(rc.Class, rc.Level)
		for e := range f.Domains {
			if agree(both, &rc.Domains[d], &f.Domains[e]) && s.shareNode(i, e, j, d) {
				return true
			}
		}
		return false
	}
	id, here := s.p.groups[group].keyID, false
	for e := range f.Domains {
		v := f.Domains[e].at[id]
		if v >= 0 && s.state.Members(group, v) > 0 {
			return false
		}
		here = here || v == rc.Domains[d].at[id]
	}
	return here
}

// averse returns score.averse.
func (s *assigner) averse(rc *RelaxedClass, d int) int {
	n := 0
	for _, m := range rc.counted {
		if v := rc.Domains[d].at[s.p.groups[m.group].keyID]; v >= 0 {
			n += int(s.state.Averse(m.group, v))
		}
	}
	return n
}

// counted returns score.counted.
func (s *assigner) counted(rc *RelaxedClass, d int) int {
	n := int32(0)
	at := rc.Domains[d].at
	for _, m := range rc.counted {
		if v := at[s.p.groups[m.group].keyID]; v >= 0 {
			n += s.state.Members(m.group, v)
		}
	}
	for i := range rc.at.Spreads {
		if sp := &rc.at.Spreads[i]; !sp.Self && !s.p.withinNode[sp.Group] {
			n += s.state.Members(sp.Group, at[s.p.groups[sp.Group].keyID])
		}
	}
	return int(n)
}
