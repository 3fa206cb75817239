package ruletest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Explaining a broken rule plans again at most maxTries and maxWays times. All rules of a plan
// together plan at most maxSpent pods again. So the explanation stays quick and does not depend on
// the machine.
const (
	maxTries = 48 // without one thing
	maxWays  = 64 // forced to keep the rule, see [inquiry.ways]
	maxSpent = 400_000
)

// inquiry looks for what moved the pods of one broken rule.
type inquiry struct {
	plan     *Plan
	rule     *Rule
	subjects []member
	broken   []member        // the subjects that are to blame, or all of them
	placed   map[string]bool // the pods of the plan that have a place
	tries    int             // plans made again, of most
	most     int
	cut      bool // some were not made
	out      []string
	fix      plan.Fix
	// cheapest is the least cost found for the pods without one thing, and that thing.
	cheapest float64
	dearest  string
}

// movedBy names what is to blame for the breaches. It tries three steps: what the pods themselves
// require against the rule; each constraint of theirs and each setting of the pools without which
// the rule holds; the result of forcing the pods to keep the rule.
func (p *Plan) movedBy(r *Rule, breaches []Breach) (by []string, fix plan.Fix) {
	q := inquiry{plan: p, rule: r, subjects: r.choose(p.members), placed: map[string]bool{}, most: maxTries}
	for _, m := range p.members {
		q.placed[m.name] = m.site != nil
	}
	if r.AtMostPerHour != nil {
		q.cheapest, _ = p.price(r, q.subjects)
	}
	guilty := map[string]bool{}
	for _, b := range breaches {
		guilty[b.Pod] = true
	}
	for _, m := range q.subjects {
		if m.class >= 0 && (guilty[m.name] || guilty[""]) {
			q.broken = append(q.broken, m)
		}
	}
	if len(q.broken) == 0 {
		return nil, plan.Fix{}
	}
	if q.contradictions(); len(q.out) > 0 {
		return q.out, plan.Fix{}
	}
	q.givenUp()
	q.loosen()
	if len(q.out) == 0 {
		q.force()
	}
	return q.out, q.fix
}

func (q *inquiry) say(format string, args ...any) {
	marks := strings.NewReplacer(markKept+"=yes", "the pods of the rule", markCompany+"=yes", "the pods that the rule names", markAvoided+"=yes", "the pods that the rule names",
		markDistinct+"=yes", "the pods that were kept in different places")
	if text := marks.Replace(fmt.Sprintf(format, args...)); !slices.Contains(q.out, text) {
		q.out = append(q.out, text)
	}
}

// contradictions finds what the pods require and no place of the rule has.
func (q *inquiry) contradictions() {
	if len(q.rule.LandsOn) == 0 {
		return
	}
	wanted := q.plan.alternatives(q.rule.LandsOn)
	seen := map[int]bool{}
	for _, m := range q.broken {
		if seen[m.class] {
			continue
		}
		seen[m.class] = true
		asked := q.plan.packed.Problem.Classes[m.class].Required
		if asked.IsImpossible() || !asked.Intersect(wanted).IsImpossible() {
			continue
		}
		var by []string
		for _, c := range constraintsOf(&m.pod.Spec) {
			if q.contradicts(m.pod, c, wanted) {
				by = append(by, c.text)
			}
		}
		for _, c := range q.plan.packed.Problem.Options().Constraints {
			if narrowed, refusal := c.Narrow(m.pod, requirements.AnyOf(requirements.Set{})); refusal == nil && narrowed.Intersect(wanted).IsImpossible() {
				by = append(by, constraintName(c))
			}
		}
		if len(by) == 0 {
			q.say("what %s requires of its node: %s", m.name, asked)
		}
		for _, text := range by {
			q.say("%s of %s, which the rule contradicts", text, m.name)
		}
	}
}

// contradicts reports whether a node selector or affinity alone excludes all of the wanted nodes.
func (q *inquiry) contradicts(pod *corev1.Pod, c constraint, wanted requirements.Alternatives) bool {
	only := corev1.PodSpec{NodeSelector: pod.Spec.NodeSelector, Affinity: pod.Spec.Affinity}
	for _, other := range slices.Backward(constraintsOf(&only)) {
		if other.text != c.text {
			other.drop(&only)
		}
	}
	asked, err := kube.FromPod(&only)
	return err == nil && requirements.KubernetesAliases().Alternatives(asked.Required).Intersect(wanted).IsImpossible()
}

// givenUp lists the preferences that the pods were placed without. Such a preference can only
// explain why a pod is not where it should be, so only rules with LandsOn are examined.
func (q *inquiry) givenUp() {
	for i, m := range q.broken {
		const enough = 64
		if m.site == nil || i > enough || len(q.rule.LandsOn) == 0 {
			continue
		}
		gone, _ := q.plan.packed.GivenUp(m.pod)
		for _, g := range gone {
			q.say("giving up %s", g)
		}
	}
}

// loosen removes one thing at a time and names those without which the rule holds.
func (q *inquiry) loosen() {
	seen := map[string]bool{}
	classes := map[int]bool{}
	for _, m := range q.broken {
		if classes[m.class] {
			continue
		}
		classes[m.class] = true
		for _, c := range constraintsOf(&m.pod.Spec) {
			if seen[c.text] {
				continue
			}
			seen[c.text] = true
			q.blame(c.text, q.withoutConstraint(c.text), nil)
		}
	}
	options := q.plan.packed.Problem.Options()
	for i, c := range options.Constraints {
		o := *options
		o.Constraints = without(o.Constraints, i)
		q.blame(constraintName(c), q.plan.packed.Problem.Snapshot, &o)
	}
	q.quotas()
	pools := q.plan.packed.Problem.Snapshot().Pools
	for i := range pools {
		pool := &pools[i]
		for r := range pool.Requirements.All() {
			if q.rule.AtMostPerHour == nil || r.Key() == corev1.LabelOSStable { // no user chooses the operating system
				continue
			}
			q.blame(fmt.Sprintf("requirement %s of pool %q", r, pool.Name), q.withPool(i, func(p *scheduling.Pool) {
				p.Requirements = p.Requirements.Without(requirements.KeysOf(r.Key()))
			}), nil)
		}
		if pool.Weight != 0 {
			q.blame(fmt.Sprintf("weight %d of pool %q", pool.Weight, pool.Name), q.withPool(i, func(p *scheduling.Pool) { p.Weight = 0 }), nil)
		}
		for _, name := range slices.Sorted(maps.Keys(pool.Limits)) {
			limit := pool.Limits[name]
			q.blame(fmt.Sprintf("limit of %s %s of pool %q", limit.String(), name, pool.Name), q.withPool(i, func(p *scheduling.Pool) {
				p.Limits = maps.Clone(p.Limits)
				delete(p.Limits, name)
			}), nil)
		}
		for k, t := range pool.Taints {
			q.blame(fmt.Sprintf("taint %s of pool %q", t.ToString(), pool.Name), q.withPool(i, func(p *scheduling.Pool) { p.Taints = without(p.Taints, k) }), nil)
		}
	}
}

// quotas removes one CapacityQuota at a time.
func (q *inquiry) quotas() {
	for i, quota := range q.plan.packed.Problem.Snapshot().Quotas {
		q.blame(fmt.Sprintf("quota %q", quota.Name), func() scheduling.Snapshot {
			s := q.plan.packed.Problem.Snapshot()
			s.Quotas = without(s.Quotas, i)
			return s
		}, nil)
	}
}

// blame plans a snapshot and, if the rule holds, blames the thing that is missing from it.
func (q *inquiry) blame(what string, s func() scheduling.Snapshot, options *scheduling.Options) {
	after := q.again(s, options)
	if after == nil {
		return
	}
	if q.rule.Refused == nil && q.loses(after) { // a pod without a place breaks no rule
		return
	}
	if len(after.breaches(q.rule)) == 0 {
		q.say("%s: without it the rule holds%s", what, q.difference(after))
		return
	}
	if q.rule.AtMostPerHour == nil {
		return
	}
	const rounding = 1e-9
	if price, _ := after.price(q.rule, q.rule.choose(after.members)); price < q.cheapest-rounding {
		q.cheapest, q.dearest = price, what
	}
}

// loses reports whether a pod of the rule that had a place has none in another plan.
func (q *inquiry) loses(after *Plan) bool {
	placed := map[string]bool{}
	for _, m := range after.members {
		placed[m.name] = m.site != nil
	}
	return slices.ContainsFunc(q.subjects, func(m member) bool { return m.site != nil && !placed[m.name] })
}

// again plans a snapshot. It returns nil if the budget is used up or the snapshot cannot be
// planned.
func (q *inquiry) again(snapshot func() scheduling.Snapshot, options *scheduling.Options) *Plan {
	cost := len(q.plan.packed.Problem.Snapshot().Pods) + 1
	if q.tries++; q.tries > q.most || q.plan.spent+cost > maxSpent {
		q.cut = true
		return nil
	}
	q.plan.spent += cost
	how := q.plan.packed.Options()
	how.Packing = q.plan.packing
	if options != nil {
		how.Scheduling = options
	}
	packed, err := plan.Make(context.Background(), snapshot(), &how)
	if err != nil {
		return nil
	}
	return NewPlan(packed, q.plan.packing)
}

// difference says how much more or less another plan costs.
func (q *inquiry) difference(after *Plan) string {
	switch d := after.packed.Cost() - q.plan.packed.Cost(); {
	case d == 0:
		return ", at the same price"
	case d > 0:
		return fmt.Sprintf(", for %v/h more", d)
	default:
		return fmt.Sprintf(", for %v/h less", -d)
	}
}

// edits are changes of the manifests of pods.
type edits map[*corev1.Pod][]func(*corev1.Pod)

// add adds a change of each of some pods.
func (e edits) add(list []member, how func(*corev1.Pod)) {
	for _, m := range list {
		e[m.pod] = append(e[m.pod], how)
	}
}

// edited returns the snapshot with edited copies of pods.
func (q *inquiry) edited(pods edits) func() scheduling.Snapshot {
	return func() scheduling.Snapshot {
		s := q.plan.packed.Problem.Snapshot()
		s.Pods = slices.Clone(s.Pods)
		for i, pod := range s.Pods {
			if list := pods[pod]; list != nil {
				c := *pod
				for _, edit := range list {
					edit(&c)
				}
				s.Pods[i] = &c
			}
		}
		return s
	}
}

func (q *inquiry) withoutConstraint(text string) func() scheduling.Snapshot {
	pods := edits{}
	pods.add(q.subjects, func(pod *corev1.Pod) {
		for _, c := range slices.Backward(constraintsOf(&pod.Spec)) {
			if c.text == text {
				c.drop(&pod.Spec)
			}
		}
	})
	return q.edited(pods)
}

func (q *inquiry) withPool(i int, how func(*scheduling.Pool)) func() scheduling.Snapshot {
	return func() scheduling.Snapshot {
		s := q.plan.packed.Problem.Snapshot()
		s.Pools = slices.Clone(s.Pools)
		how(&s.Pools[i])
		return s
	}
}

// force makes the pods keep the rule and describes the result.
func (q *inquiry) force() {
	r := q.rule
	places := Rule{Pods: r.Pods, Labels: r.Labels, LandsOn: r.LandsOn, NeverOn: r.NeverOn, Together: r.Together, Apart: r.Apart, Spread: r.Spread}
	switch {
	case len(q.plan.breaches(&places)) > 0:
		q.tryWays()
	case r.Placed && q.breaks(func(r *Rule) { r.Placed = true }), r.AllOrNothing && q.breaks(func(r *Rule) { r.AllOrNothing = true }):
		q.refusals(q.plan, "")
	case r.AtMostPerHour != nil && q.dearest != "":
		most := "any other single constraint or setting of a pool"
		if q.cut {
			most = "the others that were tried"
		}
		q.say("%s, more than %s: without it they cost %s/h", q.dearest, most, money(q.cheapest))
	case r.AtMostPerHour != nil:
		q.say("their size: no single constraint of theirs and no setting of a pool makes them dearer")
	case r.Refused == nil:
		q.say(noSingle)
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
	text  string
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
	var tried []string
	for w := range q.ways() {
		after := q.again(q.edited(w.pods), nil)
		if after == nil {
			break
		}
		t := q.judge(w.text, after)
		if tried = append(tried, w.text); best == nil || t.compare(best) < 0 {
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

func (q *inquiry) judge(text string, after *Plan) *trial {
	t := &trial{text: text, after: after}
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
	return q.placed[name] || q.rule.Placed || q.rule.AllOrNothing || len(q.rule.LandsOn) > 0
}

// outcome describes what happens to pods that are forced to keep the rule: the best trial. tried
// says what was tried, in words.
func (q *inquiry) outcome(t *trial, tried []string) {
	how := ""
	if t.text != "" {
		how = " with " + t.text
	}
	switch {
	case t.refused > 0:
		q.refusals(t.after, how)
	case t.broken > 0 && t.text == "":
		q.say(noSingle)
		return
	case t.broken > 0:
		q.say("%s, and the rule is still broken%s", noSingle, how)
	case t.lost > 0:
		q.say("lack of room: with the rule kept%s, %s of others would have no place", strings.Replace(how, " with ", " by ", 1), plural(t.lost, "pod"))
	case len(t.after.breaches(q.rule)) > 0:
		q.say("the price: all but its limit can be kept%s", q.difference(t.after))
		return
	case t.after.packed.Cost() > q.plan.packed.Cost():
		q.say("the price: to keep the rule costs at most%s", q.difference(t.after)[len(", for"):])
		return
	default:
		q.say("nothing: the rule can be kept%s, but no manifest asks for it", q.difference(t.after))
		return
	}
	if others := slices.DeleteFunc(tried, func(text string) bool { return text == t.text }); len(others) > 0 {
		const most = 4
		if n := len(others); n > most {
			others = append(others[:most], fmt.Sprintf("%d more", n-most))
		}
		q.say("what was tried besides, without success: %s", strings.Join(others, "; "))
	}
}

// refusals adds the reasons why the rule's pods find no place in a plan. how is how they were
// forced. If some pool fails only because of what was forced on the pods, it gives the reasons of
// the others.
func (q *inquiry) refusals(plan *Plan, how string) {
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
			if r.Pool == "" {
				q.say("%s", r.Detail)
			} else {
				q.say("pool %q, which refuses them%s: %s", r.Pool, how, r.Detail)
			}
		}
		if plan == q.plan && q.fix.Text == "" {
			q.fix = plan.packed.Fix(m.class, reasons, false)
		}
	}
}

// constraintName returns the name of a constraint, or its type.
func constraintName(c scheduling.Constraint) string {
	if n, ok := c.(fmt.Stringer); ok {
		return n.String()
	}
	return fmt.Sprintf("a constraint of the caller (%T)", c)
}
