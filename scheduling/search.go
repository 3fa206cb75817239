package scheduling

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
)

// search is the progress of Squeaky Wheel Optimization (D. Joslin, D. Clements, 1999). An attempt
// blames the pods that it could not place although some node could hold them, with or without those
// to which they have affinity. The next one assigns and packs in the order blame, priority, rank.
// When blame no longer helps, one or two attempts close domains, one puts small pods first, one goes
// by priority and rank alone, and the others vary choices of domains.
type search struct {
	rounds   int      // of this attempt so far
	all      int      // of all attempts so far
	attempt  int      // attempts before this one
	orders   []string // orders of blame in the attempts so far
	closings int      // how often it tried to close domains; not 0 if blame has stopped helping
	variant  int
	idle     int    // attempts since the best one
	best     *state // nil for none
	loose    bool   // the search is over; this round packs the best plan without needless ties to domains
}

const (
	// defaultAttempts is the default of Options.Attempts: see docs/decisions/squeaky-wheel.md.
	defaultAttempts = 8
	// searchedPods limits the searches of large snapshots: attempts, then tries to place more, then
	// tries to lower the cost. Each ends once its rounds have planned so many pods, attempts after two.
	searchedPods = 15_000
	patience     = 2 // how many attempts may blame without finding a better plan
)

// conclude follows a verified state. It returns the first round of the next attempt, or the last
// round of the best plan.
func (s *state) conclude() *state {
	if len(s.bound) == s.p.pending() {
		return s.loosen()
	}
	next := s.search
	next.rounds, next.all, next.attempt, next.idle = 0, next.all+1, next.attempt+1, next.idle+1
	if next.best == nil || s.p.compare(s, next.best) < 0 {
		next.best, next.idle = s, 0
	}
	unplaced := s.unplaced()
	most := cmp.Or(s.p.options.Attempts, defaultAttempts)
	if len(unplaced) == 0 || next.attempt >= most || next.attempt > 1 && next.all*s.p.pending() >= searchedPods && s.p.options.Attempts == 0 {
		return next.best.loosen()
	}
	facts := s.step(&next, unplaced)
	return s.p.state(s.p.topology.Assign(facts), next)
}

// loosen returns the round that packs the plan without ties to domains that the placed pods do not
// need, or the plan itself if it has none.
func (s *state) loosen() *state {
	loose := s.assigned.Loosen(func(class int) bool { return s.placed[class] > 0 })
	if loose == nil {
		return s
	}
	last := s.search
	last.best, last.loose = s, true
	return s.p.state(loose, last)
}

// step returns the facts of the next attempt.
func (s *state) step(next *search, unplaced []int) topology.Facts {
	if next.closings == 0 && next.idle < patience {
		for _, classes := range [][]int{s.p.topology.Followed(unplaced), unplaced} {
			facts := s.assigned.Blame(classes)
			if order := fmt.Sprint(facts.Order(len(s.p.Classes))); !slices.Contains(next.orders, order) {
				next.orders = append(slices.Clip(next.orders), order)
				return facts
			}
		}
	}
	for best := next.best.assigned; next.closings < 2; {
		closed := best.CloseImpossible
		if next.closings++; next.closings == 2 {
			closed = best.Close
		}
		if facts, ok := closed(next.best.unplaced()); ok {
			return facts
		}
	}
	if next.variant++; next.variant == 1 { // where not all pods have room, small ones leave room for more
		return topology.InOrder(s.p.smallFirst())
	}
	if next.variant == 2 && s.p.hasPriorities() { // blame may have put pods before others of higher priority
		return topology.Facts{}
	}
	return next.best.assigned.Vary(next.variant)
}

// triedDecisions limits the plans that are made only to be compared with the best one. Each costs
// as much as one attempt. mostElsewhere of them are for bins with leastUnused of the cost unused.
// mostExtensions limits how often nodes are added to a plan and its pods are planned anew.
const triedDecisions, mostElsewhere, leastUnused, mostExtensions = 12, 4, 0.01, 3

// decide looks for a better plan by decisions that come before the assignment of domains, such as
// giving up preferences that cost more than their price, or buying nothing in a zone. A decision is
// kept if the whole plan with it is better by the objective.
func (v *solver) decide(best *state) (*state, error) {
	d := decisions{solver: v, base: best.p, best: best}
	d.begin()
	d.gone()
	d.reopen()
	d.relax()
	d.gather()
	d.extend()
	d.admit()
	d.leaveOut()
	d.hosts()
	d.fewer()
	if best.p.options.Attempts == 1 { // what follows looks for lower costs
		return d.best, d.err
	}
	d.begin()
	d.overNodes()
	d.preferences()
	if best.p.options.LeaveZones {
		d.zones()
	}
	d.elsewhere(true)
	d.elsewhere(false)
	d.first()
	return d.best, d.err
}

// decisions is the search of decide. An error ends it.
type decisions struct {
	*solver
	base              *Problem // without decisions
	best              *state
	tried, fewerTried int
	until             int // no further plan is tried if the solver has planned this many pods
	err               error
}

// begin gives the tries that follow what searchedPods allows. One plan is made already.
func (d *decisions) begin() { d.until = d.pods - d.base.pending() + searchedPods }

// plan returns the plan of a problem with a choice; nil if it is not possible.
func (d *decisions) plan(p Problem, c topology.Choice, from *topology.Assignment, attempts int) *state {
	if d.err != nil || d.ctx.Err() != nil {
		return nil
	}
	t, ok := p.topology.With(c, from)
	if !ok {
		return nil
	}
	p.topology, p.options.Attempts = t, attempts
	at, err := d.solve(&p)
	d.err = err
	return at
}

// try plans with a choice, and keeps the plan if it is better. cheaper says whether the plan costs
// less, regardless of its preferences.
func (d *decisions) try(c topology.Choice) (kept, cheaper bool) {
	p := d.best.p
	if d.best.cost() == 0 && len(d.best.unplaced()) == 0 || d.tried == triedDecisions || d.pods >= d.until && p.options.Attempts == 0 {
		return false, false
	}
	at := d.plan(*p, c, d.best.assigned, 1)
	if at == nil {
		return false, false
	}
	d.tried++
	if at, _ = at.extend(); p.comparePlaced(at, d.best) > 0 {
		return false, false
	}
	cheaper = compareCosts(at.cost(), d.best.cost()) < 0
	if kept = p.compare(at, d.best) < 0; kept {
		d.best = at
	}
	return kept, cheaper
}

// gone plans as if leaving nodes were already gone, if some pods are unplaced beside them.
func (d *decisions) gone() {
	p := d.best.p
	if len(d.best.bound) == p.pending() {
		return
	}
	c := p.topology.Choice()
	c.Gone = true
	if at := d.plan(*p, c, d.best.assigned, p.options.Attempts); at != nil && p.compare(at, d.best) < 0 {
		d.best = at
	}
}

// place plans with a choice, and keeps the plan if it places more.
func (d *decisions) place(c topology.Choice) {
	p := d.best.p
	if at := d.plan(*p, c, &topology.Assignment{}, 1); at != nil && p.comparePlaced(at, d.best) < 0 {
		d.best = at
	}
}

// admit plans, class by class, one class with unplaced pods beside the placed ones of the same and of
// higher priorities, if pods may go to pools with minValues. [decisions.extend] buys nothing there,
// and one class that has no place may tie all others to domains that have too few values.
func (d *decisions) admit() {
	p := d.best.p
	if len(d.best.unplaced()) == 0 || !slices.ContainsFunc(p.Pools, func(pool PoolState) bool { return len(pool.MinValues) > 0 }) {
		return
	}
	order := slices.DeleteFunc(p.smallFirst(), func(i int) bool { return p.Classes[i].Refusal != nil || !p.topology.Holdable(i) })
	slices.SortStableFunc(order, p.largeFirst)
	for _, i := range order {
		for tries := 0; tries < 2 && d.best.placed[i] < len(p.Classes[i].Pods) && d.pods < d.until; tries++ {
			c := d.best.p.topology.Choice()
			if tries == 1 && p.mayGiveUp() {
				c.GivenUp = p.topology.EveryPreference()
			}
			c.Only = slices.Clone(d.best.placed)
			for k := range c.Only {
				if p.Classes[k].priority < p.Classes[i].priority {
					c.Only[k] = 0
				}
			}
			for _, k := range append(p.topology.Followed([]int{i}), i) {
				c.Only[k] = len(p.Classes[k].Pods)
			}
			d.place(c)
		}
	}
}

// leaveOutPods limits the pods of all plans of leaveOut.
const leaveOutPods = 4_000

// leaveOut leaves out a class that may keep others out of domains, and then adds its pods where they
// fit, those with the fewest placed pods first. If that places more, it leaves out another one too.
func (d *decisions) leaveOut() {
	p, out, until := d.base, []int(nil), min(d.until, d.pods+leaveOutPods)
	for again := p.options.Attempts != 1; again; {
		before, unplaced := d.best, d.best.unplaced()
		rivals := slices.DeleteFunc(p.topology.Rivals(unplaced), func(k int) bool {
			urgent := func(i int) bool { return i != k && p.Classes[i].priority >= p.Classes[k].priority }
			return before.placed[k] == 0 || slices.Contains(out, k) || !slices.ContainsFunc(unplaced, urgent)
		})
		slices.SortStableFunc(rivals, func(a, b int) int {
			return cmp.Or(cmp.Compare(p.Classes[a].priority, p.Classes[b].priority), cmp.Compare(before.placed[a], before.placed[b]))
		})
		again = false
		for _, k := range rivals {
			if d.pods >= until {
				return
			}
			c := d.best.p.topology.Choice()
			c.Only, c.Without = make([]int, len(p.Classes)), nil
			for i := range c.Only {
				if i != k && !slices.Contains(out, i) {
					c.Only[i] = len(p.Classes[i].Pods)
				}
			}
			at, _ := d.extended(d.plan(*p, c, &topology.Assignment{}, d.attempts(p.pending())))
			if at != nil && p.comparePlaced(at, d.best) < 0 {
				d.best, out, again = at, append(out, k), true
				break
			}
		}
	}
}

// fewer adds a half to 1/leastPart of a priority's unplaced pods to the placed ones. mostFewer
// limits its plans, and fewerPods the pods of each, over all of its attempts.
const leastPart, mostFewer, fewerPods = 8, 6, 2_000

// fewer plans again with fewer pods, if not all have room: for each priority, as many of the smallest
// as are placed, and some more. With [Options.Rank], only if pods of a lower rank may have their room.
func (d *decisions) fewer() {
	p := d.base
	if p.options.Attempts == 1 || len(d.best.unplaced()) == 0 {
		return
	}
	order := slices.DeleteFunc(p.smallFirst(), func(i int) bool { return p.Classes[i].Refusal != nil || !p.topology.Holdable(i) })
	for k, i := range order {
		level := p.Classes[i].priority
		below := func(j int) bool { return p.Classes[j].priority < level && d.best.placed[j] > 0 }
		if k > 0 && p.Classes[order[k-1]].priority == level || p.options.Rank != nil && !slices.ContainsFunc(order, below) {
			continue
		}
		for part, last := 2, 0; part <= leastPart; part *= 2 {
			n, more := 0, 0
			for _, i := range order {
				if c := p.Classes[i]; c.priority == level {
					n, more = n+d.best.placed[i], more+len(c.Pods)-d.best.placed[i]
				}
			}
			if n += max(1, more/part); more == 0 || n == last {
				break
			}
			d.smallest(order, level, n)
			last = n
		}
	}
}

// smallest plans the pods of higher priority that the best plan places, the n smallest of the
// priority, and one of each other class that these follow. The rest are added where they fit.
func (d *decisions) smallest(order []int, priority int32, n int) {
	if d.err != nil || d.ctx.Err() != nil || d.fewerTried == mostFewer {
		return
	}
	d.fewerTried++
	other, c, pods := *d.base, d.best.p.topology.Choice(), 0
	c.Only, c.Without = make([]int, len(other.Classes)), nil
	urgent := slices.DeleteFunc(slices.Clone(order), func(i int) bool { return other.Classes[i].priority < priority })
	for _, i := range other.topology.Followed(urgent) { // those of lower priority
		c.Only[i] = 1
	}
	for _, i := range urgent {
		if c.Only[i] = d.best.placed[i]; other.Classes[i].priority == priority {
			c.Only[i] = min(n, len(other.Classes[i].Pods))
			n -= c.Only[i]
		}
		pods += c.Only[i]
	}
	verifier := *other.verifier
	verifier.order, other.verifier = other.bySize, &verifier
	at, all := d.extended(d.plan(other, c, &topology.Assignment{}, d.attempts(pods))) // blame and closed domains come from other pods
	if all && other.compare(at, d.best) < 0 {                                         // otherwise pods may fit that were not added
		d.best = at
	}
}

// gather tries to buy in one zone only, or only where nodes are, if that places more of the pods that
// spread over zones although they must be in one.
func (d *decisions) gather() {
	c, zones := d.best.p.topology.Choice(), d.base.topology.Zones()
	for k := 0; k <= len(zones) && d.pods < d.until && slices.ContainsFunc(d.best.unplaced(), d.base.topology.Gathers); k++ {
		c.Without = append(slices.Clone(zones[:k]), zones[min(k+1, len(zones)):]...)
		d.place(c)
	}
}

// first lets the pods of new nodes choose before others, which may have taken their existing nodes.
func (d *decisions) first() {
	c := d.best.p.topology.Choice()
	for _, b := range d.best.contents() {
		c.First = append(c.First, b.classes...)
	}
	if len(d.base.Existing) > 0 {
		d.try(c)
	}
}

// relax gives up all preferences if that places more pods.
func (d *decisions) relax() {
	p := d.best.p
	if !p.mayGiveUp() || len(d.best.unplaced()) == 0 {
		return
	}
	c := p.topology.Choice()
	c.GivenUp = p.topology.EveryPreference()
	if at := d.plan(*p, c, &topology.Assignment{}, p.options.Attempts); at != nil && p.comparePlaced(at, d.best) < 0 {
		d.best = at
	}
}

// preferences tries to give up the preferences of all classes; if that is cheaper, but by less than
// they are worth, of halves of the classes; and if it is better, to give halves theirs back. At the
// end it tries to give back the kinds of preferences that are given up last.
func (d *decisions) preferences() {
	p := d.best.p
	if !p.mayGiveUp() {
		return
	}
	var all []int
	for i := range p.Classes {
		if d.best.placed[i] > 0 && len(p.topology.Preferences(i)) > 0 {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int { // those with the dearest pods first
		return cmp.Compare(float64(d.best.placed[b])*p.own[b](), float64(d.best.placed[a])*p.own[a]())
	})
	type trial struct {
		classes []int
		back    bool // whether the classes get their preferences back
	}
	queue := []trial{{classes: all}}
	if slices.ContainsFunc(p.topology.Choice().GivenUp, func(n int) bool { return n > 0 }) { // for more pods; not all need to
		queue = []trial{{all[:len(all)/2], true}, {all[len(all)/2:], true}}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		t := queue[0]
		if len(t.classes) == 0 {
			continue
		}
		kept, cheaper := d.giveUp(func(class, now int) int {
			switch {
			case !slices.Contains(t.classes, class):
				return now
			case t.back:
				return 0
			}
			return len(p.topology.Preferences(class))
		})
		if n := len(t.classes) / 2; n > 0 && (kept != t.back && (kept || cheaper) || t.back && !kept) {
			back := kept || t.back
			queue = append(queue, trial{t.classes[:n], back}, trial{t.classes[n:], back})
		}
	}
	for _, last := range []topology.PreferenceKind{topology.PreferPods, topology.PreferSpread} {
		d.giveUp(func(class, now int) int {
			if first := slices.IndexFunc(p.topology.Preferences(class), func(x topology.Preference) bool { return x.Kind.After(last) }); first >= 0 {
				return min(now, first)
			}
			return now
		})
	}
}

// giveUp tries another number of preferences given up for each class. change makes it from the
// number in the best plan.
func (d *decisions) giveUp(change func(class, now int) int) (kept, cheaper bool) {
	c := d.best.p.topology.Choice()
	next := make([]int, len(d.best.p.Classes))
	copy(next, c.GivenUp)
	for i := range next {
		next[i] = change(i, next[i])
	}
	if slices.Equal(next, c.GivenUp) || c.GivenUp == nil && !slices.ContainsFunc(next, func(n int) bool { return n > 0 }) {
		return false, false
	}
	c.GivenUp = next
	return d.try(c)
}

// reopen tries to buy in a closed zone, or in one that would be closed for unplaced pods, instead of
// an open one. A plan that does not buy there would only close one zone more.
func (d *decisions) reopen() {
	closed := func() []string { return d.best.assigned.ClosedFor(d.best.unplaced()) }
	for _, zone := range closed() {
		for _, open := range d.base.topology.Zones() {
			now, before := closed(), d.best
			if k := slices.Index(now, zone); k >= 0 && !slices.Contains(now, open) {
				d.without(append(slices.Delete(now, k, k+1), open))
				if !slices.ContainsFunc(d.best.bought(), func(b OutcomeBin) bool { return b.labels(d.base)[corev1.LabelTopologyZone] == zone }) {
					d.best = before
				}
			}
		}
	}
	d.tried = 0
}

// zones tries to buy nothing in each zone that has no node now, and then in all of them.
func (d *decisions) zones() {
	zones := d.base.topology.Zones()
	for _, zone := range zones {
		if closed := d.best.assigned.Facts.Closed(); !slices.Contains(closed, zone) {
			d.without(append(closed, zone))
		}
	}
	if len(zones) > 1 {
		d.without(zones)
	}
}

// without tries to buy nothing in some zones.
func (d *decisions) without(zones []string) {
	c := d.best.p.topology.Choice()
	c.Without = zones
	d.try(c)
}

// elsewhere tries other zones, or domains of other labels, for the pods of the bins that cost most
// above what they use or above another node, as domains are chosen by the price of a share of a node.
func (d *decisions) elsewhere(zones bool) {
	for tried := []string(nil); len(tried) < mostElsewhere && (d.pods < d.until || d.base.options.Attempts != 0); {
		at, key, most, into := d.best, "", leastUnused*d.best.cost(), topology.Choice{}
		for i, b := range at.contents() {
			for _, a := range at.p.topology.Elsewhere(at.labelsOf(i), b.classes, b.used) {
				gain := max(b.unused, b.price-a.Price)
				if k := fmt.Sprint(a.Avoided, a.Only, b.classes); (a.Avoided.Key == corev1.LabelTopologyZone) == zones && gain > most && !slices.Contains(tried, k) {
					key, most, into = k, gain, a.Choice
				}
			}
		}
		if key == "" {
			return
		}
		tried = append(tried, key)
		if d.try(into); d.best.givenUp() > at.givenUp() {
			d.best = at // what preferences are worth is decided above
		}
	}
}
