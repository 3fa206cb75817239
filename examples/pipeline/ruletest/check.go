package ruletest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// Result is the result of checking a rule.
type Result struct {
	Rule Rule
	// Pods is how many pending pods the rule is about.
	Pods int
	// Breaches say how it is broken. None means that the rule holds.
	Breaches []Breach
	// MovedBy names the constraints to blame. There are two kinds: the rule would hold in a new
	// plan without it, or no place of the rule can satisfy it. If there is none, MovedBy says what
	// stops the pods when they are forced to keep the rule, or what that costs.
	MovedBy []string
	// Fix is a change that gives refused pods a place, verified by planning again. Its Text is empty
	// if none was found.
	Fix plan.Fix
	// Untried names changes that were not tried because the budget for explanations was used up: one
	// of them may be to blame, too.
	Untried []string
	// Known says what was found for RulesCost and Regret of the rule: an interval, a proof, or
	// percentages.
	Known string
	// Notes say what a rule that holds may have missed: its pods without a place, with the reason, and
	// labels that it only forbids and that nothing has, which may be typos.
	Notes []string
	// Invalid is why the rule makes no sense. Such a rule was not checked.
	Invalid error
}

// Breach is one way in which a rule is broken.
type Breach struct {
	// Pod is namespace/name. It is empty if no single pod is to blame.
	Pod string
	// Why says what the plan does instead of what the rule demands.
	Why string
}

// Holds reports whether the rule is valid and holds.
func (r Result) Holds() bool { return len(r.Breaches) == 0 && r.Invalid == nil }

// String returns one line if the rule holds, otherwise what broke it and what moved the pods.
func (r Result) String() string {
	at := ""
	if r.Rule.Position.File != "" {
		at = " (" + r.Rule.Position.String() + ")"
	}
	switch {
	case r.Invalid != nil:
		var faults []string
		for _, fault := range r.Rule.faults() {
			faults = append(faults, fault.Error())
		}
		return fmt.Sprintf("%s%s makes no sense: %s", r.Rule.title(), at, strings.Join(faults, "; "))
	case r.Holds():
		held := " for " + plural(r.Pods, "pod")
		if r.Rule.RulesCost != nil || r.Rule.Regret != nil {
			held = ": " + r.Known
		}
		return strings.Join(append([]string{r.Rule.title() + at + " holds" + held}, r.Notes...), "; ")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s is broken\n", r.Rule.title(), at)
	for _, g := range grouped(r.Breaches) {
		b.WriteString("  " + g + "\n")
	}
	for _, m := range r.MovedBy {
		b.WriteString("  moved by " + m + "\n")
	}
	if len(r.Untried) > 0 {
		fmt.Fprintf(&b, "  not tried, because the work for explanations is limited: %s\n", few(r.Untried))
	}
	if r.Fix.Text != "" {
		b.WriteString("  " + r.Fix.Text + " (verified)\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// grouped lists each reason once, with the first of its pods and how many others it has, and at most
// eight reasons.
func grouped(list []Breach) []string {
	const most = 8
	var order []string
	pods := map[string][]string{}
	for _, b := range list {
		if pods[b.Why] == nil {
			order = append(order, b.Why)
		}
		pods[b.Why] = append(pods[b.Why], b.Pod)
	}
	var out []string
	for i, why := range order {
		if i == most {
			return append(out, fmt.Sprintf("and in %d more ways", len(order)-most))
		}
		text := why
		if who := pods[why][0]; who != "" {
			text = who + ": " + why
		}
		if n := len(pods[why]); n > 1 {
			text += fmt.Sprintf("; likewise %d more", n-1)
		}
		out = append(out, text)
	}
	return out
}

// Check checks rules and returns their results in order. To explain a broken rule it plans again
// with one constraint changed at a time. All broken rules share a budget. It counts pods and
// instance types that are planned again, not time, so the explanation is the same on every machine.
// When the budget is used up, no further changes are tried, and Untried names them.
func (p *Plan) Check(rules ...Rule) []Result {
	out, broken := make([]Result, len(rules)), 0
	var checked []*Result
	for i, r := range rules {
		res := &out[i]
		if res.Rule, res.Invalid = r, r.Validate(); res.Invalid != nil {
			continue
		}
		res.Pods = len(r.choose(p.members))
		if res.Breaches = p.slips(&r); res.Breaches != nil {
			continue
		}
		checked = append(checked, res)
		if res.Breaches = p.breaches(&r); len(res.Breaches) > 0 {
			broken++
		}
	}
	for _, res := range checked {
		r := &res.Rule
		res.Notes = p.notes(r)
		if len(res.Breaches) > 0 {
			p.explain(res, broken)
			broken--
		}
		res.Breaches = append(res.Breaches, p.survival(r)...)
		costs, known := p.rulesCost(r.RulesCost)
		res.Breaches, res.Known = append(res.Breaches, costs...), known
		if r.Regret != nil {
			past, spent := r.Regret.Check(p.past)
			res.Breaches, res.Known = append(res.Breaches, past...), strings.Trim(known+"; "+spent, "; ")
		}
	}
	return out
}

// breaches returns the ways in which the plan breaks the rule, demand by demand.
func (p *Plan) breaches(r *Rule) []Breach {
	subjects := r.choose(p.members)
	var out []Breach
	bad := badSites{}
	for _, m := range subjects {
		out = append(out, p.ofOne(r, m, bad)...)
	}
	if r.AllOrNothing {
		out = append(out, p.halves(subjects)...)
	}
	if r.Together != nil {
		out = append(out, p.together(r, subjects)...)
	}
	if r.Apart != nil {
		out = append(out, p.apart(r, subjects)...)
	}
	if r.Spread != nil {
		out = append(out, p.spread(r, subjects)...)
	}
	if r.AtMostPerHour != nil {
		out = append(out, p.cost(r, subjects)...)
	}
	return out
}

// halves returns the pods without a place if others have one, except those that a group can do
// without.
func (p *Plan) halves(subjects []member) []Breach {
	placed := 0
	for _, m := range subjects {
		if m.site != nil {
			placed++
		}
	}
	if placed == 0 {
		return nil
	}
	enough := map[string]bool{} // groups that have their minimum
	groups := p.packed.Options().Groups
	for _, g := range p.packed.Gangs() {
		at := slices.IndexFunc(groups, func(x gang.Group) bool { return x.Name == g.Name })
		enough[g.Name] = groups[at].Minimum > 0 && g.Running+g.Placed >= groups[at].Minimum
	}
	var out []Breach
	for _, m := range subjects {
		spare := slices.ContainsFunc(groups, func(g gang.Group) bool { return enough[g.Name] && g.Member(m.pod) })
		if m.site == nil && !spare {
			have := "have"
			if placed == 1 {
				have = "has"
			}
			out = append(out, Breach{m.name, fmt.Sprintf("it has no place%s, and %d of the others %s one", m.notPlanned(), placed, have)})
		}
	}
	return out
}

// badSites caches, by node, what makes it wrong for the pods of a rule; nothing if it is right.
type badSites map[*site][]string

func (b badSites) of(r *Rule, s *site) []string {
	out, ok := b[s]
	if ok {
		return out
	}
	if misses := missed(r.LandsOn, s); misses != "" {
		out = append(out, fmt.Sprintf("is on %s: %s", s, misses))
	}
	for i := range r.NeverOn {
		if len(r.NeverOn[i].unmet(s)) == 0 {
			out = append(out, fmt.Sprintf("is on %s, which is %s", s, r.NeverOn[i].text()))
			break
		}
	}
	b[s] = out
	return out
}

// ofOne returns the breaches by which one pod alone breaks the rule.
func (p *Plan) ofOne(r *Rule, m member, bad badSites) []Breach {
	var out []Breach
	add := func(why string) { out = append(out, Breach{m.name, why}) }
	if (r.Placed || len(r.LandsOn) > 0 || r.Survives != "") && m.site == nil {
		add("has no place" + m.notPlanned())
	}
	if m.site != nil {
		for _, why := range bad.of(r, m.site) {
			add(why)
		}
	}
	if f := r.Refused; f != nil {
		switch {
		case m.site != nil:
			add("is placed, on " + m.site.String())
		case m.class < 0:
			add("is not ours to place: " + m.why)
		case !slices.ContainsFunc(p.reasons(m.class), f.fits):
			add("is refused, but for another reason: " + reasonsText(p.reasons(m.class)))
		}
	}
	return out
}

// missed returns why the site matches none of the places, or nothing if it matches one.
func missed(places []Place, s *site) string {
	if len(places) == 0 {
		return ""
	}
	var best []string
	for i := range places {
		unmet := places[i].unmet(s)
		if len(unmet) == 0 {
			return ""
		}
		if best == nil || len(unmet) < len(best) {
			best = unmet
		}
	}
	return strings.Join(best, ", ")
}

func (f *Refusal) fits(reason scheduling.Reason) bool {
	return (f.Stage == "" || f.Stage == reason.Stage) && (f.Pool == "" || f.Pool == reason.Pool) &&
		strings.Contains(strings.ToLower(reason.String()), strings.ToLower(f.Text))
}

// reasonsText joins reasons in one line.
func reasonsText(reasons []scheduling.Reason) string {
	var out []string
	for _, r := range reasons {
		if text := r.String(); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

// company returns the placed pods, pending and running ones, that match the patterns of With.
func (p *Plan) company(patterns string) []member {
	var out []member
	for _, m := range slices.Concat(p.running, p.members) {
		if m.site != nil && matchesPod(patterns, m.name) {
			out = append(out, m)
		}
	}
	return out
}

// together finds pods that are alone. Without With it finds those that are not where the others
// are: where most of the running ones are, or else where most are planned.
func (p *Plan) together(r *Rule, subjects []member) []Breach {
	key := placeKey(r.Together.By)
	var out []Breach
	if r.Together.With != "" {
		others := p.company(r.Together.With)
		if len(others) == 0 {
			return []Breach{{Why: fmt.Sprintf("no pod that %q matches has a place", r.Together.With)}}
		}
		for _, m := range subjects {
			if m.site == nil {
				continue
			}
			beside := slices.ContainsFunc(others, func(o member) bool { return o.pod != m.pod && shares(m.site, o.site, key) })
			if !beside {
				out = append(out, Breach{m.name, fmt.Sprintf("is on %s; no pod of %s is there by %s: they are on %s", m.site, r.Together.With, r.Together.By, valuesText(others, key))})
			}
		}
		return out
	}
	running := counts(r.choose(p.running), key)
	count := counts(slices.Concat(r.choose(p.running), subjects), key)
	var most string
	for _, v := range slices.Sorted(maps.Keys(count)) {
		if cmp.Or(cmp.Compare(len(running[v]), len(running[most])), cmp.Compare(len(count[v]), len(count[most]))) > 0 {
			most = v
		}
	}
	for _, m := range subjects {
		switch value, has := valueOf(m.site, key); {
		case m.site == nil:
		case !has:
			out = append(out, Breach{m.name, fmt.Sprintf("is on %s, which has no label %s", m.site, key)})
		case value != most:
			out = append(out, Breach{m.name, fmt.Sprintf("is on %s, but %s on %s %s", m.site, ofThemAre(len(count[most])), word(key), most)})
		}
	}
	return out
}

// apart finds pods that are not alone. Running pods are company: they break nothing among
// themselves, because no plan can mend that.
func (p *Plan) apart(r *Rule, subjects []member) []Breach {
	key := placeKey(r.Apart.By)
	var out []Breach
	if r.Apart.With != "" {
		others := p.company(r.Apart.With)
		for _, m := range subjects {
			if m.site == nil {
				continue
			}
			if i := slices.IndexFunc(others, func(o member) bool { return o.pod != m.pod && shares(m.site, o.site, key) }); i >= 0 {
				out = append(out, Breach{m.name, fmt.Sprintf("is on %s, and shares its %s with %s", m.site, r.Apart.By, others[i].name)})
			}
		}
		return out
	}
	most := cmp.Or(r.Apart.Most, 1)
	running := counts(r.choose(p.running), key)
	count := counts(slices.Concat(r.choose(p.running), subjects), key) // the running ones first
	for _, value := range slices.Sorted(maps.Keys(count)) {
		members, at := count[value], max(most, len(running[value]))
		if len(members) <= at {
			continue
		}
		late := members[at]
		why := fmt.Sprintf("is on %s, and shares its %s with %s", late.site, r.Apart.By, members[0].name)
		if most > 1 || len(members) > 2 {
			why = fmt.Sprintf("%s on %s %s, want at most %d", ofThemAre(len(members)), word(key), value, most)
		}
		out = append(out, Breach{late.name, why})
	}
	return out
}

// spread compares the number of pods at each value. Two values differ too much only if the plan
// takes part: it places a pod at the fuller one, or all pods of the emptier one.
func (p *Plan) spread(r *Rule, subjects []member) []Breach {
	key := placeKey(r.Spread.By)
	running := counts(r.choose(p.running), key)
	count := counts(slices.Concat(r.choose(p.running), subjects), key)
	var texts []string
	// How many pods are at each value, at those with a planned pod, and at those without a running
	// one.
	var all, joined, added []int
	for _, value := range slices.Sorted(maps.Keys(count)) {
		n := len(count[value])
		texts = append(texts, fmt.Sprintf("%d on %s %s", n, word(key), value))
		all = append(all, n)
		if n > len(running[value]) {
			joined = append(joined, n)
		}
		if len(running[value]) == 0 {
			added = append(added, n)
		}
	}
	skew := 0
	if len(joined) > 0 {
		skew = slices.Max(joined) - slices.Min(all)
	}
	if len(added) > 0 {
		skew = max(skew, slices.Max(all)-slices.Min(added))
	}
	var out []Breach
	if n := r.Spread.AtLeast; len(count) < n {
		out = append(out, Breach{Why: fmt.Sprintf("they are on %s, want at least %d: %s", plural(len(count), "value"), n, strings.Join(texts, ", "))})
	}
	if s := r.Spread.Skew; s > 0 && skew > s {
		out = append(out, Breach{Why: fmt.Sprintf("they differ by %d, want at most %d: %s", skew, s, strings.Join(texts, ", "))})
	}
	return out
}

func shares(a, b *site, key string) bool {
	x, ok := valueOf(a, key)
	y, has := valueOf(b, key)
	return ok && has && x == y
}

// valueOf returns the value of a label of a site, or its name.
func valueOf(s *site, key string) (string, bool) {
	switch {
	case s == nil:
		return "", false
	case key == requirements.NodeNameKey:
		return s.name, true
	}
	v, ok := s.labels[key]
	return v, ok
}

// counts returns the pods at each value of a key.
func counts(list []member, key string) map[string][]member {
	out := map[string][]member{}
	for _, m := range list {
		if v, ok := valueOf(m.site, key); ok {
			out[v] = append(out[v], m)
		}
	}
	return out
}

// valuesText lists where pods are.
func valuesText(list []member, key string) string {
	values := slices.Sorted(maps.Keys(counts(list, key)))
	if len(values) > 5 {
		values = append(values[:5], fmt.Sprintf("%d more", len(values)-5))
	}
	if len(values) == 0 {
		return "nodes without the label"
	}
	return strings.Join(values, ", ")
}

// word returns the everyday name of a key.
func word(key string) string {
	for _, short := range []string{"node", "zone"} {
		if placeKey(short) == key {
			return short
		}
	}
	return key
}
