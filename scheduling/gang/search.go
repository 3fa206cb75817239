package gang

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joinery-sdk/joinery/scheduling"
)

const (
	// mostDrafts and draftedPods limit the drafts that look for a better set of groups: their
	// number, and the pods of all of them. A draft takes about 30 microseconds a pod, so the search
	// ends within half a second. Sets that limits refute take no draft, and sets that fail refute
	// others.
	mostDrafts  = 64
	draftedPods = 15_000
	// mostSets limits the sets that are looked at in one step of the search, planned or not.
	mostSets = 20_000
)

// mostDrafts returns how many drafts look for a better set.
func (a *admission) mostDrafts() int { return min(mostDrafts, draftedPods/max(1, len(a.of))) }

// bestSet finds the best set of groups that fit together. It starts with as many as the limits
// admit, in the order of bestFirst. It then removes those that are not whole in a draft, adds
// others, exchanges some, and at last does without some for other pods of a higher priority.
func (a *admission) bestSet(all []bool) (*attempt, error) {
	var queue []int
	set := slices.Clone(all)
	for i := range a.groups {
		if all[i] && a.groups[i].need > 0 {
			queue, set[i] = append(queue, i), false
		}
	}
	queue = a.bestFirst(queue)
	if err := a.refuteAlone(queue); err != nil {
		return nil, err
	}
	for _, g := range queue {
		if next := with(set, g); a.suits(next) {
			set = next
		}
	}
	at, err := a.explore(set)
	for err == nil {
		broken := a.broken(at)
		if len(broken) == 0 {
			break
		}
		a.fail(set)
		set = without(set, broken)
		at, err = a.explore(set)
	}
	if err == nil {
		at, err = a.extend(at, slices.DeleteFunc(slices.Clone(queue), func(g int) bool { return set[g] }))
	}
	if err == nil {
		at, err = a.exchange(at, queue)
	}
	if err == nil {
		at, err = a.forgo(at)
	}
	return at, err
}

// forgo leaves out the groups below a priority of which pods are unplaced, if that places more of
// these. The pods are in no group, or their group can do without them. Then it adds the groups again
// as far as they fit.
func (a *admission) forgo(at *attempt) (*attempt, error) {
	wanted := map[int32]int{} // pods by priority, without those of groups that wait
	for _, c := range a.base.Classes {
		for _, pod := range c.Pods {
			if g, ok := a.of[nameOf(pod)]; c.Refusal == nil && (!ok || at.set[g]) {
				wanted[priorityOf(pod)]++
			}
		}
	}
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(wanted))) {
		var lower []int
		for g := range a.groups {
			if at.set[g] && a.groups[g].need > 0 && a.groups[g].priority < priority {
				lower = append(lower, g)
			}
		}
		if len(lower) == 0 || at.pods[priority] >= wanted[priority] {
			continue
		}
		next, better, spent, err := a.try(without(at.set, lower), at)
		if err != nil || spent {
			return at, err
		}
		if better {
			if at, err = a.extend(next, a.bestFirst(lower)); err != nil {
				return nil, err
			}
		}
	}
	return at, nil
}

// bestFirst returns groups by priority, and at equal priority the smallest first, which makes the
// most groups whole if one resource is scarce.
func (a *admission) bestFirst(groups []int) []int {
	groups = slices.Clone(groups)
	slices.SortStableFunc(groups, func(x, y int) int {
		return cmp.Or(cmp.Compare(a.groups[y].priority, a.groups[x].priority), cmp.Compare(a.share(x), a.share(y)), cmp.Compare(a.groups[x].need, a.groups[y].need))
	})
	return groups
}

// refuteAlone finds the groups that have no place in any of their choices of domains, even if
// nothing else is planned. Sets with them are not tried.
func (a *admission) refuteAlone(groups []int) error {
	known := map[int]bool{}
	for _, g := range groups {
		set := with(make([]bool, len(a.groups)), g)
		if kind := a.groups[g].kind; known[kind] || a.groups[g].selects || !a.suits(set) {
			continue
		} else {
			known[kind] = true
		}
		possible, err := a.isPossible(g)
		if err != nil {
			return err
		}
		if !possible {
			a.fail(set)
		}
	}
	return nil
}

// isPossible reports whether what a group needs has, or may have, places in one of its choices of
// domains if nothing else is planned.
func (a *admission) isPossible(g int) (bool, error) {
	choices, all := a.choices(g)
	for _, by := range []method{byDraft, bySearch} {
		if by == bySearch && a.groups[g].need > searchedPods {
			return true, nil
		}
		if possible, err := a.holdsAlone(g, free, choice{}, by); err != nil || possible {
			return possible, err
		}
		for i, c := range choices {
			if possible, err := a.holdsAlone(g, i, c, by); err != nil || possible {
				return possible, err
			}
		}
	}
	return !all, nil
}

// try drafts a set and reports whether it is better than an attempt. spent says that no draft was
// made because none remains.
func (a *admission) try(set []bool, at *attempt) (next *attempt, better, spent bool, err error) {
	if a.drafts--; a.drafts < 0 || a.ctx.Err() != nil {
		a.complete = false
		return at, false, true, nil
	}
	next, err = a.explore(set)
	if err != nil {
		return at, false, false, err
	}
	a.drafts -= next.work / draftWork
	if len(a.broken(next)) > 0 {
		a.fail(set)
		return at, false, false, nil
	}
	if !a.better(next, at) {
		return at, false, false, nil
	}
	return next, true, false, nil
}

// extend adds groups of a queue: as many as the limits admit at once, half as many if they do not
// fit, twice as many if they do.
func (a *admission) extend(at *attempt, queue []int) (*attempt, error) {
	for size := len(queue); len(queue) > 0; {
		var block []int
		set := at.set
		queue = slices.DeleteFunc(queue, func(g int) bool { return !a.suits(with(at.set, g)) })
		for _, g := range queue {
			if next := with(set, g); len(block) < size && a.suits(next) {
				set, block = next, append(block, g)
			}
		}
		if len(block) == 0 {
			break
		}
		next, better, spent, err := a.try(set, at)
		if err != nil || spent {
			return at, err
		}
		switch {
		case better:
			at, size = next, 2*size
			queue = slices.DeleteFunc(queue, func(g int) bool { return slices.Contains(block, g) })
		case len(block) == 1:
			queue = slices.DeleteFunc(queue, func(g int) bool { return g == block[0] })
		default:
			size = len(block) / 2
		}
	}
	return at, nil
}

// exchange looks for a better set that differs from the best one by a few groups: by any number out
// of up to 14 groups, by three out of 50, by one out of thousands. Better sets are tried before
// equally good ones that may be cheaper, with fewer differences first.
func (a *admission) exchange(at *attempt, groups []int) (*attempt, error) {
	type candidate struct {
		set     []bool
		changes int
		value   value
	}
	for {
		var all []candidate
		seen := map[string]bool{string(a.keyOf(at.set)): true}
		now := a.value(at.set)
		changes := changesOf(len(groups))
		var extend func(set []bool, from, n int)
		extend = func(set []bool, from, n int) {
			if n > 0 {
				if v := a.value(set); v.compare(now) >= 0 && a.suits(set) {
					if key := string(a.keyOf(set)); !seen[key] {
						seen[key] = true
						all = append(all, candidate{set, n, v})
					}
				}
			}
			if n == changes {
				return
			}
			for i := from; i < len(groups); i++ {
				next := slices.Clone(set)
				next[groups[i]] = !next[groups[i]]
				extend(next, i+1, n+1)
			}
		}
		extend(at.set, 0, 0)
		even := func(c candidate) int { return 1 - min(1, c.value.compare(now)) }
		slices.SortStableFunc(all, func(x, y candidate) int {
			return cmp.Or(cmp.Compare(even(x), even(y)), cmp.Compare(x.changes, y.changes), y.value.compare(x.value))
		})
		found := false
		for _, c := range all {
			if !a.suits(c.set) { // a set of the same kinds has failed meanwhile
				continue
			}
			next, better, spent, err := a.try(c.set, at)
			if err != nil || spent {
				return at, err
			}
			if better {
				at, found = next, true
				break
			}
		}
		if !found {
			return at, nil
		}
	}
}

// changesOf returns by how many of n groups sets may differ so that there are at most mostSets of
// them.
func changesOf(n int) int {
	sets, changes := 1, 0
	for level := 1; changes < n; changes++ {
		level = level * (n - changes) / (changes + 1)
		if sets += level; sets > mostSets {
			break
		}
	}
	return max(1, min(changes, n))
}

// keyOf returns equal keys for sets with as many groups of each kind.
func (a *admission) keyOf(set []bool) []byte {
	var out []byte
	for _, n := range a.counts(set) {
		out = append(out, byte(n), byte(n>>8), byte(n>>16))
	}
	return out
}

// with returns the set with one more group.
func with(set []bool, g int) []bool {
	out := slices.Clone(set)
	out[g] = true
	return out
}

// without returns the set without some groups.
func without(set []bool, groups []int) []bool {
	out := slices.Clone(set)
	for _, g := range groups {
		out[g] = false
	}
	return out
}

// value is what a set is worth if all of it fits: its groups and the pods that they need, by
// priority.
type value map[int32]worth

// worth is the value at one priority; the first field counts first.
type worth struct{ groups, needed, pods int }

func (w worth) compare(v worth) int {
	return cmp.Or(cmp.Compare(w.groups, v.groups), cmp.Compare(w.needed, v.needed), cmp.Compare(w.pods, v.pods))
}

// compare is positive if v is better at the highest priority at which the two differ.
func (v value) compare(w value) int {
	priorities := maps.Clone(v)
	maps.Copy(priorities, w)
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(priorities))) {
		if c := v[priority].compare(w[priority]); c != 0 {
			return c
		}
	}
	return 0
}

func (a *admission) value(set []bool) value {
	out := value{}
	for i, in := range set {
		if g := &a.groups[i]; in && g.need > 0 {
			n := out[g.priority]
			n.groups, n.needed = n.groups+1, n.needed+g.need
			out[g.priority] = n
		}
	}
	return out
}

// better reports whether an attempt with whole groups is better than another. At the highest
// priority at which they differ it has more groups, more pods that they need, or more other pods.
// If they do not differ, its price is lower.
func (a *admission) better(next, at *attempt) bool {
	return cmp.Or(a.valueOf(next).compare(a.valueOf(at)), cmp.Compare(at.price, next.price)) > 0
}

// valueOf returns the value of an attempt with whole groups, with the other pods that it places.
func (a *admission) valueOf(x *attempt) value {
	out := a.value(x.set)
	for priority, n := range x.pods {
		w := out[priority]
		w.pods = n
		out[priority] = w
	}
	return out
}

// withSpares returns a plan with the groups of a plan in other domains if it finds one that places
// more pods. Other searches end with the first domains that hold what the groups need. The reasons
// are those of groups that wait.
func (a *admission) withSpares(at *attempt, reasons []*scheduling.Reason) (*attempt, error) {
	d := &descent{admission: a, set: at.set, in: make(domains, len(a.groups)), found: at, spares: true, left: (max(0, a.trials[byDraft]) + 3) / 4}
	for g := range a.groups {
		if group := &a.groups[g]; at.set[g] && group.Key != "" && at.placed[g] < len(group.pods) {
			if choices, _ := a.choices(g); len(choices) > 0 {
				d.groups, d.choices = append(d.groups, g), append(d.choices, choices)
			}
		}
	}
	if len(d.groups) == 0 {
		return at, nil
	}
	complete := a.complete
	err := d.descend(0, 0)
	if a.complete = complete; err != nil || d.found == at {
		return at, err
	}
	t := d.found.trial
	t.by = byPlan
	problem, err := a.compile(t, reasons)
	if err != nil {
		return nil, err
	}
	next, err := a.solve(t, problem)
	if err != nil || !a.holds(next) || a.valueOf(next).compare(a.valueOf(at)) <= 0 {
		return at, err
	}
	return next, nil
}
