package ruletest

import (
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

// Explaining a broken rule plans again at most maxTries and maxWays times. All broken rules of a
// plan share a budget. It counts the pods and instance types that are planned again, and allows
// minPlans plans of any size. So the explanations take a few times as long as the plan, and do not
// depend on the machine.
const (
	maxTries = 48 // without one thing
	maxWays  = 64 // forced to keep the rule, see [inquiry.ways]
	maxSpent = 15_000
	minPlans = 8
)

// inquiry looks for what moved the pods of one broken rule.
type inquiry struct {
	plan     *Plan
	rule     *Rule
	subjects []member
	broken   []member        // the subjects that are to blame, or all of them
	placed   map[string]bool // the pods of the plan that have a place
	removed  map[string]bool // constraints of pods that were left out
	tries    int             // plans made again, of most
	most     int
	until    int      // what the plan may have spent by then
	untried  []string // what was not tried
	forcing  edits    // what the pods are forced to in all further plans
	out      []string
	fix      plan.Fix
	// cheapest is the least cost found for the pods without one thing, and that thing.
	cheapest float64
	dearest  string
}

// explain names what is to blame for the breaches. It tries these steps until one finds something:
// single constraints of the pods that no place of LandsOn satisfies; each constraint of any pod and
// each setting of the pools without which the rule holds; all that the pods require against the
// rule; the result of forcing the pods to keep the rule. rules is how many broken rules, including
// this one, share what remains of the budget.
func (p *Plan) explain(res *Result, rules int) {
	r, share := &res.Rule, p.share(rules)
	q := inquiry{plan: p, rule: r, subjects: r.choose(p.members), placed: map[string]bool{}, most: maxTries, until: p.spent + share}
	q.run(res.Breaches, share)
	res.MovedBy, res.Fix, res.Untried = q.out, q.fix, q.untried
}

func (q *inquiry) run(breaches []Breach, share int) {
	p, r := q.plan, q.rule
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
		return
	}
	landing := requirements.AnyOf(requirements.Set{})
	if len(r.LandsOn) > 0 {
		landing = p.alternatives(r.LandsOn)
	}
	if q.contradictions(landing, false); len(q.out) > 0 {
		return
	}
	q.givenUp()
	if q.misplaced() { // then half of the share is for forcing them
		q.until -= share / 2
		q.loosen()
		q.until += share / 2
	} else {
		q.loosen()
	}
	if len(q.out) == 0 {
		q.contradictions(landing.Intersect(p.elsewhere(r.NeverOn)), true)
	}
	if len(q.out) == 0 {
		q.force()
	}
}

// misplaced reports whether the plan breaks what the rule says about places.
func (q *inquiry) misplaced() bool {
	r := q.rule
	places := Rule{Pods: r.Pods, Labels: r.Labels, LandsOn: r.LandsOn, NeverOn: r.NeverOn, Together: r.Together, Apart: r.Apart, Spread: r.Spread}
	return len(q.plan.breaches(&places)) > 0
}

// planSize is what one plan takes from the budget.
func (p *Plan) planSize() int {
	s := p.packed.Problem.Snapshot()
	size := len(s.Pods) + 1
	for i := range s.Pools {
		size += len(s.Pools[i].Types)
	}
	return size
}

// share returns what one of so many rules may spend: an equal share, but at least one plan as long
// as the budget lasts.
func (p *Plan) share(rules int) int {
	size := p.planSize()
	remaining := max(maxSpent, minPlans*size) - p.spent
	return min(max(remaining/rules, size), remaining)
}

func (q *inquiry) say(format string, args ...any) {
	marks := strings.NewReplacer(markKept+"=yes", "the pods of the rule", markCompany+"=yes", "the pods that the rule names", markAvoided+"=yes", "the pods that the rule names",
		markDistinct+"=yes", "the pods that were kept in different places")
	if text := marks.Replace(fmt.Sprintf(format, args...)); !slices.Contains(q.out, text) {
		q.out = append(q.out, text)
	}
}

// exhausted says that nothing is to blame. If something was not tried, it only says what was found
// of the rest.
func (q *inquiry) exhausted(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); len(q.untried) == 0 {
		q.say("%s", text)
	} else if kept, ok := strings.CutPrefix(text, "nothing: "); ok {
		q.say("nothing that was tried: %s", strings.TrimSuffix(kept, ", but no manifest asks for it"))
	} else {
		q.say("nothing that was tried")
	}
}

// contradictions finds what the pods require and no wanted place has. With all, it also finds
// requirements that only together exclude the wanted places, and a rule that wants no place.
func (q *inquiry) contradictions(wanted requirements.Alternatives, all bool) {
	if wanted.IsImpossible() && all {
		q.say("the rule itself: it leaves no place on any node")
		return
	}
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
			if c == nil {
				continue
			}
			if narrowed, refusal := c.Narrow(m.pod, requirements.AnyOf(requirements.Set{})); refusal == nil && narrowed.Intersect(wanted).IsImpossible() {
				by = append(by, constraintName(c))
			}
		}
		if len(by) == 0 && all {
			q.say("what %s requires of its node: %s, which the rule contradicts", m.name, asked)
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

// loosen removes one thing at a time and names those without which the rule holds. What the broken
// pods and the pools state comes first, because the number of plans is limited.
func (q *inquiry) loosen() {
	q.removed = map[string]bool{}
	q.constraints(q.broken, q.subjects, false)
	options := q.plan.packed.Problem.Options()
	for i, c := range options.Constraints {
		if c == nil {
			continue
		}
		o := *options
		o.Constraints = without(o.Constraints, i)
		q.blame(constraintName(c), q.edited(nil), &o)
	}
	q.quotas()
	pools := q.plan.packed.Problem.Snapshot().Pools
	for i := range pools {
		pool := &pools[i]
		for r := range pool.Requirements.All() {
			if q.rule.AtMostPerHour != nil && r.Key() == corev1.LabelOSStable { // no user chooses it for its price
				continue
			}
			q.blame(fmt.Sprintf("requirement %s of pool %q", r, pool.Name), q.withPool(i, func(p *scheduling.Pool) {
				p.Requirements, p.MinValues = p.Requirements.Without(requirements.KeysOf(r.Key())), maps.Clone(p.MinValues)
				delete(p.MinValues, r.Key())
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
	q.constraints(q.subjects, q.subjects, false)
	others := slices.DeleteFunc(slices.Clone(q.plan.members), func(m member) bool {
		return slices.ContainsFunc(q.subjects, func(s member) bool { return s.pod == m.pod })
	})
	q.constraints(others, others, true)
}

// constraints removes each constraint of the listed pods from all pods of a group that state it.
func (q *inquiry) constraints(list, group []member, named bool) {
	classes := map[int]bool{}
	for _, m := range list {
		if m.class < 0 || classes[m.class] {
			continue
		}
		classes[m.class] = true
		for _, c := range constraintsOf(&m.pod.Spec) {
			text := c.text
			if named {
				text += " of " + m.name
			}
			if key := fmt.Sprint(named, c.text); !q.removed[key] {
				q.removed[key] = true
				q.blame(text, q.withoutConstraint(group, c.text), nil)
			}
		}
	}
}

// quotas removes one CapacityQuota at a time.
func (q *inquiry) quotas() {
	for i, quota := range q.plan.packed.Problem.Snapshot().Quotas {
		q.blame(fmt.Sprintf("quota %q", quota.Name), func() scheduling.Snapshot {
			s := q.edited(nil)()
			s.Quotas = without(s.Quotas, i)
			return s
		}, nil)
	}
}

// blame plans a snapshot and, if the rule holds, blames the thing that is missing from it.
func (q *inquiry) blame(what string, s func() scheduling.Snapshot, options *scheduling.Options) {
	after, tried := q.again(s, options)
	if !tried {
		q.untried = append(q.untried, what)
	}
	if after == nil {
		return
	}
	if q.rule.Refused == nil && q.loses(after) { // a pod without a place breaks no rule
		return
	}
	holds := "the rule holds"
	if q.rule.Survives != "" { // no failure is rehearsed here
		holds += " while nothing is lost"
	}
	switch {
	case len(after.breaches(q.rule)) > 0:
	case q.forcing == nil:
		q.say("%s: without it %s%s", what, holds, q.difference(after))
		return
	case q.judge(way{}, after).kept():
		q.say("%s: without it the rule can be kept%s, but no manifest asks for it", what, q.difference(after))
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

// again plans a snapshot, unless the budget is used up. The plan is nil if the snapshot cannot be
// planned.
func (q *inquiry) again(snapshot func() scheduling.Snapshot, options *scheduling.Options) (after *Plan, tried bool) {
	size := q.plan.planSize()
	if q.tries++; q.tries > q.most || q.plan.spent+size > q.until {
		return nil, false
	}
	q.plan.spent += size
	how := q.plan.packed.Options()
	how.Packing = q.plan.packing
	if options != nil {
		how.Scheduling = options
	}
	packed, err := plan.Unproved(context.Background(), snapshot(), &how)
	if err != nil {
		return nil, true
	}
	return NewPlan(packed, q.plan.packing), true
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
			if list := slices.Concat(pods[pod], q.forcing[pod]); list != nil {
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

func (q *inquiry) withoutConstraint(group []member, text string) func() scheduling.Snapshot {
	pods := edits{}
	pods.add(group, func(pod *corev1.Pod) {
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
		s := q.edited(nil)()
		s.Pools = slices.Clone(s.Pools)
		how(&s.Pools[i])
		return s
	}
}

// constraintName returns the name of a constraint, or its type.
func constraintName(c scheduling.Constraint) string {
	if n, ok := c.(fmt.Stringer); ok {
		return n.String()
	}
	return fmt.Sprintf("a constraint of the caller (%T)", c)
}
