package ruletest

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// force makes the pods keep the rule and describes the result.
func (q *inquiry) force() {
	switch r := q.rule; {
	case q.misplaced():
		q.tryWays()
	case (r.Placed || r.Survives != "") && q.breaks(func(r *Rule) { r.Placed = true }), r.AllOrNothing && q.breaks(func(r *Rule) { r.AllOrNothing = true }):
		q.refusals(q.plan, "", "")
	case r.AtMostPerHour != nil && q.dearest != "":
		most := "any other single constraint or setting of a pool"
		if len(q.untried) > 0 {
			most = "the others that were tried"
		}
		q.say("%s, more than %s: without it they cost %s/h", q.dearest, most, money(q.cheapest))
	case r.AtMostPerHour != nil:
		q.exhausted("their size: no single constraint of theirs and no setting of a pool makes them dearer")
	case r.Refused == nil:
		q.exhausted(noSingle)
	}
}

const noSingle = "no single constraint of these pods or setting of a pool"

// breaks reports whether a part of the rule is broken by itself.
func (q *inquiry) breaks(part func(*Rule)) bool {
	only := Rule{Pods: q.rule.Pods, Labels: q.rule.Labels}
	part(&only)
	return len(q.plan.breaches(&only)) > 0
}

// trial is a plan in which the pods are forced to keep the rule in one way.
type trial struct {
	way
	after *Plan
	// refused counts pods of the rule and lost counts other pods that have no place. broken counts
	// the ways in which the plan still breaks the rule, except for its price.
	refused, broken, lost int
}

func (t *trial) kept() bool { return t.refused+t.broken+t.lost == 0 }

func (t *trial) compare(o *trial) int {
	return cmp.Or(cmp.Compare(t.refused, o.refused), cmp.Compare(t.broken, o.broken), cmp.Compare(t.lost, o.lost), cmp.Compare(t.after.packed.Cost(), o.after.packed.Cost()))
}

// tryWays forces the pods in each way and describes the best result: the cheapest plan that keeps
// the rule, if there is one. A plan at today's price ends the search.
func (q *inquiry) tryWays() {
	q.tries, q.most = 0, maxWays
	var best *trial
	tried := 0
	for w := range q.ways() {
		after, ok := q.again(q.edited(w.pods), nil)
		if !ok {
			q.untried = append(q.untried, strings.TrimSuffix("pods that keep the rule: "+w.text, ": "))
			break
		}
		if after == nil {
			continue
		}
		t := q.judge(w, after)
		if tried++; best == nil || t.compare(best) < 0 {
			best = t
		}
		if best.kept() && best.after.packed.Cost() <= q.plan.packed.Cost() {
			break
		}
	}
	if best != nil {
		q.outcome(best, tried)
	}
}

func (q *inquiry) judge(w way, after *Plan) *trial {
	t := &trial{way: w, after: after}
	mine := map[string]bool{}
	for _, m := range q.subjects {
		mine[m.name] = true
	}
	for _, m := range after.members {
		switch {
		case m.site != nil:
		case mine[m.name] && q.wanted(m.name):
			t.refused++
		case !mine[m.name] && q.placed[m.name]:
			t.lost++
		}
	}
	priceless := *q.rule
	priceless.AtMostPerHour = nil
	t.broken = len(after.breaches(&priceless))
	return t
}

// wanted reports whether a pod of the rule should have a place: the rule demands it, or the pod has
// one already.
func (q *inquiry) wanted(name string) bool {
	return q.placed[name] || q.rule.Placed || q.rule.AllOrNothing || len(q.rule.LandsOn) > 0 || q.rule.Survives != ""
}

// outcome describes what happens to pods that are forced to keep the rule: the best trial. tried
// is how many there were.
func (q *inquiry) outcome(t *trial, tried int) {
	how := ""
	if t.text != "" {
		how = " if " + t.text
	}
	others := ""
	if n := tried - 1; n > 0 {
		others = fmt.Sprintf("; %s to keep the rule failed, too", plural(n, "other way"))
	}
	switch {
	case t.refused > 0:
		q.forcing, q.tries, q.most = t.pods, 0, maxTries
		if q.loosen(); len(q.out) == 0 {
			q.refusals(t.after, how, others)
		}
	case t.broken > 0 && t.text == "":
		q.exhausted(noSingle)
	case t.broken > 0:
		q.exhausted("%s, and the rule is still broken%s%s", noSingle, how, others)
	case t.lost > 0:
		q.say("lack of room: with the rule kept, %s of others would have no place%s%s", plural(t.lost, "pod"), how, others)
	case len(t.after.breaches(q.rule)) > 0:
		q.say("the price: all but its limit can be kept%s", q.difference(t.after))
	case t.after.packed.Cost() > q.plan.packed.Cost():
		if pool := q.heavier(t.after); pool != nil { // it would decide without the price
			q.say("weight %d of pool %q, and the price: to keep the rule costs at most%s", pool.Weight, pool.Name, q.difference(t.after)[len(", for"):])
			return
		}
		q.say("the price: to keep the rule costs at most%s", q.difference(t.after)[len(", for"):])
	default:
		q.exhausted("nothing: the rule can be kept%s, but no manifest asks for it", q.difference(t.after))
	}
}

// heavier returns a pool of new nodes of broken pods that is heavier than all pools of their nodes
// in another plan; nil if there is none.
func (q *inquiry) heavier(after *Plan) *scheduling.Pool {
	pools := q.plan.packed.Problem.Snapshot().Pools
	of := func(m *member) *scheduling.Pool {
		if m.site == nil || !m.site.bought {
			return nil
		}
		if i := slices.IndexFunc(pools, func(p scheduling.Pool) bool { return p.Name == m.site.pool }); i >= 0 {
			return &pools[i]
		}
		return nil
	}
	var out *scheduling.Pool
	broken := map[string]bool{}
	for i := range q.broken {
		broken[q.broken[i].name] = true
		if p := of(&q.broken[i]); p != nil && (out == nil || p.Weight > out.Weight) {
			out = p
		}
	}
	for i := range after.members {
		if p := of(&after.members[i]); broken[after.members[i].name] && (out == nil || p != nil && p.Weight >= out.Weight) {
			return nil
		}
	}
	return out
}

// asRule returns a reason for pods that were forced to keep the rule. It says that the rule asks for
// a label if the pod itself does not.
func (q *inquiry) asRule(r scheduling.Reason, name string) string {
	own := requirements.Keys{}
	for _, m := range q.subjects {
		if m.name == name && m.class >= 0 {
			own = q.plan.packed.Problem.Classes[m.class].Required.Keys()
		}
	}
	switch {
	case r.Key != "" && !own.Contains(r.Key):
		if rest, ok := strings.CutPrefix(r.Detail, "it requires "); ok {
			return "the rule requires " + rest
		}
	case r.Pool == "" && own.Len() == 0:
		return strings.Replace(r.Detail, "without the labels it requires", "without the labels that the rule requires", 1)
	}
	return r.Detail
}

// refusals adds the reasons why the rule's pods find no place in a plan. how is how they were
// forced, and others is what to say of other ways. If some pool fails only because of what was
// forced on the pods, it gives the reasons of the others.
func (q *inquiry) refusals(plan *Plan, how, others string) {
	forced := map[string]bool{}
	for r := range plan.alternatives(q.rule.LandsOn).All() {
		for one := range r.All() {
			forced[one.Key()] = true
		}
	}
	told := map[int]bool{}
	for _, m := range q.rule.choose(plan.members) {
		if m.site != nil || m.class < 0 || told[m.class] || !q.wanted(m.name) {
			continue
		}
		told[m.class] = true
		reasons := plan.reasons(m.class)
		telling := slices.DeleteFunc(slices.Clone(reasons), func(r scheduling.Reason) bool {
			return r.Stage == scheduling.StageRequirement && forced[r.Key]
		})
		if len(telling) == 0 {
			telling = reasons
		}
		for _, r := range telling {
			beside, forcedOn := besideMarks(r.Detail)
			if plan != q.plan {
				r.Detail = q.asRule(r, m.name)
			}
			switch {
			case plan != q.plan && r.Stage == scheduling.StagePod && q.placed[m.name]: // it contradicts what was forced
				at := slices.IndexFunc(q.subjects, func(s member) bool { return s.name == m.name })
				q.say("what %s requires of its node%s: %s%s", m.name, how, q.plan.packed.Problem.Classes[q.subjects[at].class].Required, others)
			case r.Pool == "" && !forcedOn:
				q.say("%s", r.Detail)
			case !forcedOn:
				q.say("pool %q, which refuses them%s: %s%s", r.Pool, how, r.Detail, others)
			case r.Pool != "":
				q.say("pool %q, which has no place for them%s%s%s", r.Pool, cmp.Or(how, " that keeps the rule"), beside, others)
			}
		}
		if plan == q.plan && q.fix.Text == "" {
			q.fix = plan.packed.Fix(m.class, reasons, false)
		}
	}
}

// way is one way to force pods to keep a rule.
type way struct {
	text string // what the pods are forced to besides the rule's own words, such as "they are evenly spread"
	pods edits
}

// ways yields ways to force pods to keep what the rule says about places. There is one way if
// manifests can say exactly that. They cannot say how many values pods must use at least, or limit
// the skew among values that have pods only. So each of several ways demands a little more:
//
//   - some pods are in different places
//   - all pods are on a set of values, over which the skew is limited
//
// Every plan that keeps the rule is among the plans of some way, unless there are too many sets or
// too many kinds of pods for them all, or nodes share a label kubernetes.io/hostname, which stands
// for the node in manifests.
func (q *inquiry) ways() iter.Seq[way] {
	s := q.rule.Spread
	return func(yield func(way) bool) {
		if s == nil {
			if a := q.rule.Apart; yield(way{"", q.forced()}) && a != nil {
				const steps = 6 // lower limits may fill the nodes better
				for most := a.Most - 1; most > max(0, a.Most-steps); most-- {
					pods := q.forced()
					pods.add(q.subjects, atMost(topologyKey(a.By), most))
					if !yield(way{fmt.Sprintf("at most %d are %s", most, onEach(a.By)), pods}) {
						return
					}
				}
			}
			return
		}
		key := topologyKey(s.By)
		running := q.rule.choose(q.plan.running)
		used := counts(running, placeKey(s.By))
		n := max(0, s.AtLeast-len(used))
		choices := q.distinct(n)
		if len(choices) == 0 {
			beside := ""
			if len(used) > 0 {
				beside = fmt.Sprintf(", beside the %d of running pods", len(used))
			}
			q.say("their number: %s cannot be on %s of %s%s", plural(len(q.planned()), "pod"), plural(n, "value"), key, beside)
			return
		}
		try := func(choice []member, text string, hows ...func(*corev1.Pod)) bool {
			pods := q.forced()
			for _, how := range hows {
				pods.add(q.subjects, how)
			}
			if len(choice) > 0 {
				pods.add(slices.Concat(choice, running), marked(markDistinct))
				pods.add(choice, joined(key, false, markDistinct))
				text = strings.TrimPrefix(fmt.Sprintf("%s and %d of them are %s", text, n, onDifferent(s.By)), " and ")
			}
			return yield(way{text, pods})
		}
		if s.Skew == 0 {
			for _, choice := range choices {
				if !try(choice, "") {
					return
				}
			}
			try(nil, "they are evenly spread", spread(key, 1, max(1, s.AtLeast)))
			return
		}
		for _, choice := range choices {
			if !try(choice, fmt.Sprintf("their skew is at most %d with empty values counted", s.Skew), spread(key, s.Skew, max(1, s.AtLeast))) {
				return
			}
		}
		for _, set := range q.subsets(key, max(1, s.AtLeast), slices.Sorted(maps.Keys(used))) {
			on := q.requiring(requirements.AnyOf(requirements.MustOf(requirements.In(key, set...))))
			for _, choice := range choices {
				if !try(choice, "all are on "+strings.Join(set, ", "), on, spread(key, s.Skew, 1)) {
					return
				}
			}
		}
		for _, most := range q.heights(s.Skew) {
			if !try(choices[0], fmt.Sprintf("at most %d are %s", most, onEach(s.By)), atMost(key, most)) {
				return
			}
		}
	}
}

// onEach and onDifferent name values of a label in words: "in each zone", "on different nodes".
func onEach(by string) string {
	switch short := word(placeKey(by)); short {
	case "zone":
		return "in each zone"
	case "node":
		return "on each node"
	default:
		return "on each value of " + short
	}
}

func onDifferent(by string) string {
	switch short := word(placeKey(by)); short {
	case "zone":
		return "in different zones"
	case "node":
		return "on different nodes"
	default:
		return "on different values of " + short
	}
}

// forced returns the edits that express all of a rule but its spread.
func (q *inquiry) forced() edits {
	r, pods := q.rule, edits{}
	pods.add(slices.Concat(q.subjects, r.choose(q.plan.running)), marked(markKept))
	if len(r.LandsOn) > 0 {
		pods.add(q.subjects, q.requiring(q.plan.alternatives(r.LandsOn)))
	}
	if len(r.NeverOn) > 0 {
		pods.add(q.subjects, q.requiring(q.plan.elsewhere(r.NeverOn)))
	}
	company := func(c *Company, near bool, mark string) {
		if c == nil {
			return
		}
		key := topologyKey(c.By)
		switch {
		case c.With != "":
			for _, m := range slices.Concat(q.plan.running, q.plan.members) {
				if matchesPod(c.With, m.name) {
					pods.add([]member{m}, marked(mark))
				}
			}
			pods.add(q.subjects, joined(key, near, mark))
		case c.Most > 1:
			pods.add(q.subjects, atMost(key, c.Most))
		default:
			pods.add(q.subjects, joined(key, near, markKept))
		}
	}
	company(r.Together, true, markCompany)
	company(r.Apart, false, markAvoided)
	return pods
}

// planned returns the pods of the rule that are planned.
func (q *inquiry) planned() []member {
	return slices.DeleteFunc(slices.Clone(q.subjects), func(m member) bool { return m.class < 0 })
}

// distinct returns choices of n pods of the rule: one with as many classes as possible, and those
// that differ in their classes, up to a limit. For n = 0 it returns one empty choice.
func (q *inquiry) distinct(n int) [][]member {
	var classes [][]member
	at := map[int]int{}
	for _, m := range q.planned() {
		i, ok := at[m.class]
		if !ok {
			i = len(classes)
			at[m.class] = i
			classes = append(classes, nil)
		}
		classes[i] = append(classes[i], m)
	}
	var mixed []member
	for round := range n {
		for _, c := range classes {
			if round < len(c) && len(mixed) < n {
				mixed = append(mixed, c[round])
			}
		}
	}
	switch {
	case len(mixed) < n:
		return nil
	case n == 0 || len(classes) == 1:
		return [][]member{mixed}
	}
	const most = 12
	out := [][]member{mixed}
	var choose func(from int, chosen []member)
	choose = func(from int, chosen []member) {
		switch {
		case len(out) > most:
		case len(chosen) == n:
			out = append(out, slices.Clone(chosen))
		case from < len(classes):
			for k := min(n-len(chosen), len(classes[from])); k >= 0; k-- {
				choose(from+1, slices.Concat(chosen, classes[from][:k]))
			}
		}
	}
	choose(0, nil)
	return out
}

// subsets returns sets of at least so many known values of a label, all of which contain some
// values. Those that are most like the values in use come first.
func (q *inquiry) subsets(key string, least int, contained []string) [][]string {
	values := q.plan.known()[key]
	const most = 10
	values = values[:min(len(values), most)]
	used := counts(q.subjects, key)
	var out [][]string
	for bits := 1; bits < 1<<len(values); bits++ {
		var set []string
		for i, v := range values {
			if bits>>i&1 == 1 {
				set = append(set, v)
			}
		}
		if len(set) >= least && !slices.ContainsFunc(contained, func(v string) bool { return !slices.Contains(set, v) }) {
			out = append(out, set)
		}
	}
	changes := func(set []string) int {
		n := len(used)
		for _, v := range set {
			if n++; used[v] != nil {
				n -= 2
			}
		}
		return n
	}
	slices.SortStableFunc(out, func(a, b []string) int {
		return cmp.Or(cmp.Compare(changes(a), changes(b)), cmp.Compare(len(a), len(b)))
	})
	return out
}

// heights returns limits of how many pods are on one value with which the values in use may differ
// by at most a skew.
func (q *inquiry) heights(skew int) []int {
	n, out := len(q.planned()), []int{skew, skew + 1}
	const most = 16
	for parts := range min(n, most) {
		if k := n/(parts+1) + min(1, n%(parts+1)); !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// besideMarks returns the constraints between pods in a reason that were not forced on the pods,
// and whether there are forced ones. Those are the rule itself, so they explain nothing.
func besideMarks(detail string) (text string, forced bool) {
	list, ok := strings.CutPrefix(detail, "other pods stand in the way: ")
	if !ok || !strings.Contains(list, markPrefix) {
		return "", false
	}
	if rest := strings.TrimPrefix(markedObstacle.ReplaceAllString(", "+list, ""), ", "); rest != "" {
		text = ", beside " + rest
	}
	return text, true
}
