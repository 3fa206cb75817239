package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Promote makes facts of pods that were left over although something could hold them: that their classes, and those whom
// they follow, go before the others next time; and where that did not help already, that the preferences of others which
// may keep them away are given up, and those which may keep whom they follow from where they can be, one at a time. What packing found out under the old order is forgotten. It reports whether that is
// anything new.
func (st *Settlement) Promote(left []int) (Facts, bool) {
	next := Facts{closed: st.facts.closed, first: maps.Clone(st.facts.first), given: maps.Clone(st.facts.given)}
	if next.first == nil {
		next.first, next.given = map[int]int{}, map[int]int{}
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

// Favour is the facts for settling with these classes, and whom they follow, before all others. What packing found out
// under the old order is forgotten.
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
	return Facts{closed: st.facts.closed, first: first, given: st.facts.given}
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
	return cmp.Or(urgency, cmp.Compare(s.facts.shuffled(x.Class), s.facts.shuffled(y.Class)), rank, cmp.Compare(size(y, 0), size(x, 0)), cmp.Compare(size(y, 1), size(x, 1)),
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
