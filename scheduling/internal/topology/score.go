package topology

import (
	"cmp"
	"slices"
)

// score is how well a pod of some class would be placed in a domain. Its terms are compared one after the other, as they
// are listed; the smaller is the better.
type score struct {
	// leaning is a whim of the attempt, 0 in the usual ones.
	leaning int
	// unlabelled is how many labels by which the pod keeps away from others nodes there lack, so that it would not be apart.
	unlabelled int
	// unawaited is how many classes wait for a pod of this one in the domain, below zero.
	unawaited int
	// averse is how many pods in the domain would rather have none of this class there.
	averse int
	// occupied is 1 where no existing node there has capacity left, and 0 elsewhere.
	occupied int
	// price is what the pod costs there; 0 on an existing node.
	price float64
	// crowd is how many pods are counted there already.
	crowd int
}

func (a score) compare(b score) int {
	return cmp.Or(cmp.Compare(a.leaning, b.leaning), cmp.Compare(a.unlabelled, b.unlabelled), cmp.Compare(a.unawaited, b.unawaited), cmp.Compare(a.averse, b.averse),
		cmp.Compare(a.occupied, b.occupied), cmp.Compare(a.price, b.price), cmp.Compare(a.crowd, b.crowd))
}

// best is the allowed domain with the best score, of equals the first; -1 if none is allowed.
func (s *assigner) best(i int) int {
	rc, best := s.classes[i], -1
	var least score
	for d := range rc.Domains {
		if rc.isFull(d) || !s.allowed(rc, d) {
			continue
		}
		at := score{
			leaning: s.facts.leaning(rc.Class, d), unlabelled: s.unlabelled(rc, d), unawaited: -s.awaited(rc, d) - s.awaitedNear(rc, d), averse: s.averse(rc, d), crowd: s.crowd(rc, d),
		}
		if rc.Domains[d].room <= rc.Placed[d] {
			at.occupied, at.price = 1, rc.Domains[d].price
		}
		if best < 0 || at.compare(least) < 0 {
			best, least = d, at
		}
	}
	return best
}

// unlabelled is how many labels that own anti-affinity speaks of nodes in the domain lack.
func (s *assigner) unlabelled(rc *RelaxedClass, d int) int {
	n := 0
	for i := range rc.at.Terms {
		if t := &rc.at.Terms[i]; t.Anti && !s.p.withinNode[t.Group] && rc.Domains[d].at[s.p.groups[t.Group].keyID] < 0 {
			n++
		}
	}
	return n
}

// awaited is how many classes wait for a pod of this one in the domain: they have affinity to it, and no pod that they could
// follow is in any domain of theirs yet. Those that wait for these in turn, by the same label, count with them: what they
// follow must be where the last of a chain can be.
func (s *assigner) awaited(rc *RelaxedClass, d int) int {
	var chain []*RelaxedClass
	for _, m := range rc.counted {
		id := s.p.groups[m.group].keyID
		chain = s.await(chain, rc, m.group, rc.Domains[d].at[id])
		for k := 0; k < len(chain); k++ {
			for _, next := range chain[k].counted {
				if s.p.groups[next.group].keyID == id {
					chain = s.await(chain, rc, next.group, rc.Domains[d].at[id])
				}
			}
		}
	}
	return len(chain)
}

// await adds to the chain the classes that wait for a member of a group at a value.
func (s *assigner) await(chain []*RelaxedClass, first *RelaxedClass, group, value int32) []*RelaxedClass {
	for _, f := range s.followers[group] {
		if f != first && !slices.Contains(chain, f) && s.waits(f, group, value) {
			chain = append(chain, f)
		}
	}
	return chain
}

// waits reports whether a class that follows a group can be at the value, and has no member of the group anywhere it can
// be.
func (s *assigner) waits(f *RelaxedClass, group, value int32) bool {
	if f.want == 0 {
		return false
	}
	here := false
	for d := range f.Domains {
		v := f.Domains[d].at[s.p.groups[group].keyID]
		if v >= 0 && s.state.Members(group, v) > 0 {
			return false
		}
		here = here || v == value
	}
	return here
}

// averse is how many pods in the domain would rather have no pod of the class there.
func (s *assigner) averse(rc *RelaxedClass, d int) int {
	n := 0
	for _, m := range rc.counted {
		if v := rc.Domains[d].at[s.p.groups[m.group].keyID]; v >= 0 {
			n += int(s.state.Averse(m.group, v))
		}
	}
	return n
}

// crowd is how many pods are counted in the domain already, over all groups the class is in or spreads by.
func (s *assigner) crowd(rc *RelaxedClass, d int) int {
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

// awaitedNear is how many classes wait for a pod of this one in the domain to share its node: no pod that they could follow is
// anywhere yet, and they can be in the domain.
func (s *assigner) awaitedNear(rc *RelaxedClass, d int) int {
	n := 0
	var few [4][2]int
	for _, g := range s.p.classes[rc.Class].all.MemberOf {
		if !s.p.withinNode[g] || s.state.Total(g) > 0 {
			continue
		}
		for _, f := range s.followers[g] {
			if f == rc || f.want == 0 {
				continue
			}
			both := commonKeys(few[:0], rc, f)
			if slices.ContainsFunc(f.Domains, func(e Domain) bool { return agree(both, &rc.Domains[d], &e) }) {
				n++
			}
		}
	}
	return n
}
