package ruletest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Explaining a broken rule plans again at most maxTries times. All rules of a plan together plan at
// most maxSpent pods again. So the explanation stays quick and does not depend on the machine.
const (
	maxTries = 48
	maxSpent = 400_000
)

// inquiry looks for what moved the pods of one broken rule.
type inquiry struct {
	plan     *Plan
	rule     *Rule
	subjects []member
	broken   []member // the subjects that are to blame, or all of them
	tries    int
	out      []string
	fix      string
	// cheapest is the least cost found for the pods without one thing, and that thing.
	cheapest float64
	dearest  string
}

// movedBy names what is to blame for the breaches. It tries three steps: what the pods themselves
// require against the rule; each constraint of theirs and each setting of the pools without which
// the rule holds; the result of forcing the pods to keep the rule.
func (p *Plan) movedBy(r *Rule, breaches []Breach) (by []string, fix string) {
	q := inquiry{plan: p, rule: r, subjects: r.choose(p.members)}
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
		return nil, ""
	}
	if q.contradictions(); len(q.out) > 0 {
		return q.out, ""
	}
	q.givenUp()
	q.loosen()
	if len(q.out) == 0 {
		q.force()
	}
	return q.out, q.fix
}

func (q *inquiry) say(format string, args ...any) {
	marks := strings.NewReplacer(labelMark+"=kept", "the pods of the rule", labelMark+"=company", "the pods that the rule names")
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
	const least = 0.00005
	if price, _ := after.price(q.rule, q.rule.choose(after.members)); price < q.cheapest-least {
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
	if q.tries++; q.tries > maxTries || q.plan.spent+cost > maxSpent {
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
	const least = 0.00005
	d := (after.packed.Cost() - q.plan.packed.Cost()).Dollars()
	switch {
	case math.Abs(d) < least:
		return ", at the same price"
	case d > 0:
		return fmt.Sprintf(", for $%.4g/h more", d)
	}
	return fmt.Sprintf(", for $%.4g/h less", -d)
}

// changed returns the snapshot with edited copies of the rule's pods, and of the marked pods that
// the rule wants them with or without.
func (q *inquiry) changed(how func(*corev1.Pod), marked ...member) func() scheduling.Snapshot {
	return func() scheduling.Snapshot {
		mark := func(pod *corev1.Pod) { pod.Labels = with(pod.Labels, labelMark, "company") }
		mine, company := q.subjects, marked
		s := q.plan.packed.Problem.Snapshot()
		pods := map[*corev1.Pod][]func(*corev1.Pod){}
		for _, m := range mine {
			pods[m.pod] = append(pods[m.pod], how)
		}
		for _, m := range company {
			pods[m.pod] = append(pods[m.pod], mark)
		}
		s.Pods = slices.Clone(s.Pods)
		for i, pod := range s.Pods {
			if edits := pods[pod]; edits != nil {
				c := *pod
				for _, edit := range edits {
					edit(&c)
				}
				s.Pods[i] = &c
			}
		}
		return s
	}
}

func (q *inquiry) withoutConstraint(text string) func() scheduling.Snapshot {
	return q.changed(func(pod *corev1.Pod) {
		for _, c := range slices.Backward(constraintsOf(&pod.Spec)) {
			if c.text == text {
				c.drop(&pod.Spec)
			}
		}
	})
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
	var after *Plan
	switch {
	case len(r.LandsOn) > 0 && q.breaks(func(r *Rule) { r.LandsOn = q.rule.LandsOn }):
		after = q.again(q.changed(requiring(q.plan.alternatives(r.LandsOn))), nil)
	case len(r.NeverOn) > 0 && q.breaks(func(r *Rule) { r.NeverOn = q.rule.NeverOn }):
		after = q.again(q.changed(requiring(q.plan.elsewhere(r.NeverOn))), nil)
	case r.Together != nil && q.breaks(func(r *Rule) { r.Together = q.rule.Together }):
		after = q.again(q.joined(r.Together, true), nil)
	case r.Apart != nil && q.breaks(func(r *Rule) { r.Apart = q.rule.Apart }):
		if key := topologyKey(r.Apart.By); r.Apart.Most > 1 {
			after = q.again(q.changed(spread(key, r.Apart.Most)), nil)
			break
		}
		after = q.again(q.joined(r.Apart, false), nil)
	case r.Spread != nil && q.breaks(func(r *Rule) { r.Spread = q.rule.Spread }):
		after = q.again(q.changed(spread(topologyKey(r.Spread.By), max(1, r.Spread.Skew))), nil)
	case r.Placed && q.breaks(func(r *Rule) { r.Placed = true }), r.AllOrNothing && q.breaks(func(r *Rule) { r.AllOrNothing = true }):
		q.refusals(q.plan)
		return
	case r.AtMostPerHour != nil && q.dearest != "":
		q.say("%s, more than anything else: without it they cost $%.4g/h", q.dearest, q.cheapest)
		return
	case r.AtMostPerHour != nil:
		q.say("their size: no single constraint of theirs and no setting of a pool makes them dearer")
		return
	default:
		if r.Refused == nil {
			q.say("no single constraint of these pods or setting of a pool")
		}
		return
	}
	if after == nil {
		return
	}
	q.outcome(after)
}

// joined keeps the pods together with the company or away from it. The company is each other, or
// the pods that it names.
func (q *inquiry) joined(c *Company, near bool) func() scheduling.Snapshot {
	key := topologyKey(c.By)
	if c.With == "" {
		return q.changed(joined(key, near, "kept"))
	}
	var marked []member
	for _, m := range slices.Concat(q.plan.running, q.plan.members) {
		if matchesPod(c.With, m.name) {
			marked = append(marked, m)
		}
	}
	return q.changed(joined(key, near, "company"), marked...)
}

// breaks reports whether a part of the rule is broken by itself.
func (q *inquiry) breaks(part func(*Rule)) bool {
	only := Rule{Pods: q.rule.Pods, Labels: q.rule.Labels}
	part(&only)
	return len(q.plan.breaches(&only)) > 0
}

// outcome describes what happens to pods that are forced to keep the rule.
func (q *inquiry) outcome(after *Plan) {
	lost := 0
	was := map[string]bool{}
	for _, m := range q.plan.members {
		was[m.name] = m.site != nil
	}
	mine := map[string]bool{}
	for _, m := range q.subjects {
		mine[m.name] = true
	}
	refused := false
	for _, m := range after.members {
		if m.site == nil && mine[m.name] {
			refused = true
		} else if m.site == nil && was[m.name] {
			lost++
		}
	}
	switch {
	case refused:
		q.refusals(after)
	case lost > 0:
		q.say("lack of room: with the rule kept, %s of others would have no place", plural(lost, "pod"))
	case after.packed.Cost() > q.plan.packed.Cost():
		q.say("the price: to keep the rule costs%s", q.difference(after)[len(", for"):])
	case len(after.breaches(q.rule)) > 0:
		q.say("no single constraint of these pods or setting of a pool")
	default:
		q.say("nothing: the rule can be kept%s, but no manifest asks for it", q.difference(after))
	}
}

// refusals adds the reasons why the rule's pods find no place in a plan. If some pool fails only
// because of what was forced on the pods, it gives the reasons of the others.
func (q *inquiry) refusals(plan *Plan) {
	forced := map[string]bool{}
	for r := range plan.alternatives(q.rule.LandsOn).All() {
		for one := range r.All() {
			forced[one.Key()] = true
		}
	}
	told := map[int]bool{}
	for _, m := range q.rule.choose(plan.members) {
		if m.site != nil || m.class < 0 || told[m.class] {
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
				q.say("pool %q, which refuses them: %s", r.Pool, r.Detail)
			}
		}
		if plan == q.plan && q.fix == "" {
			q.fix = plan.packed.Fix(m.class, reasons, false).Text
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
