package ruletest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan/survive"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// Result is what became of a rule.
type Result struct {
	Rule Rule
	// Pods is how many pending pods the rule speaks of.
	Pods int
	// Breaches say who broke it; none means that the rule holds.
	Breaches []Breach
	// MovedBy names the constraints that are to blame, each found by planning again without it or against it.
	MovedBy []string
	// Fix is a change that gives refused pods a place, which planning again with it has verified; empty where there is none.
	Fix string
	// Known says how far it is known what the rule asks, with an interval or a proof, where the plan itself does not show it.
	Known string
	// Invalid is why the rule makes no sense; it was not checked then.
	Invalid error
}

// Breach is one way in which a rule is broken.
type Breach struct {
	// Pod is namespace/name; empty where no single pod is to blame.
	Pod string
	// Why says what is instead of what should be.
	Why string
}

// Holds reports whether the rule makes sense and holds.
func (r Result) Holds() bool { return len(r.Breaches) == 0 && r.Invalid == nil }

// String is the result for people: one line if the rule holds, else who broke it and what moved them.
func (r Result) String() string {
	at := ""
	if r.Rule.Position.File != "" {
		at = " (" + r.Rule.Position.String() + ")"
	}
	switch {
	case r.Invalid != nil:
		return fmt.Sprintf("%s%s makes no sense: %v", r.Rule.title(), at, r.Invalid)
	case r.Holds() && (r.Rule.RulesCost != nil || r.Rule.Regret != nil):
		return fmt.Sprintf("%s%s holds: %s", r.Rule.title(), at, r.Known)
	case r.Holds():
		return fmt.Sprintf("%s%s holds for %s", r.Rule.title(), at, plural(r.Pods, "pod"))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s is broken\n", r.Rule.title(), at)
	for _, g := range grouped(r.Breaches) {
		b.WriteString("  " + g + "\n")
	}
	for _, m := range r.MovedBy {
		b.WriteString("  moved by " + m + "\n")
	}
	if r.Fix != "" {
		b.WriteString("  " + r.Fix + " (verified)\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// grouped tells each reason once, and of many different ones the first.
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
		who := pods[why][0]
		if n := len(pods[why]); n > 1 {
			who = fmt.Sprintf("%s and %d more", who, n-1)
		}
		if who == "" {
			out = append(out, why)
			continue
		}
		out = append(out, who+": "+why)
	}
	return out
}

// Check checks rules and says of each what became of it, in their order. A rule that is broken is looked into by planning
// again with one constraint changed at a time, within a budget that keeps large plans quick.
func (p *Plan) Check(rules ...Rule) []Result {
	out := make([]Result, 0, len(rules))
	for i := range rules {
		r := &rules[i]
		res := Result{Rule: *r, Invalid: r.Validate()}
		if res.Invalid == nil {
			res.Pods = len(r.choose(p.members))
			if res.Breaches = p.slips(r); res.Breaches == nil {
				if res.Breaches = p.breaches(r); len(res.Breaches) > 0 {
					res.MovedBy, res.Fix = p.movedBy(r, res.Breaches)
				}
				res.Breaches = append(res.Breaches, p.survival(r)...)
				costs, known := p.rulesCost(r.RulesCost)
				res.Breaches, res.Known = append(res.Breaches, costs...), known
				if r.Regret != nil {
					past, spent := r.Regret.Check(p.past)
					res.Breaches, res.Known = append(res.Breaches, past...), strings.Trim(known+"; "+spent, "; ")
				}
			}
		}
		out = append(out, res)
	}
	return out
}

// slips are what the rule says of pods and places that are not there: it was probably written wrong.
func (p *Plan) slips(r *Rule) []Breach {
	subjects, wide := r.choose(p.members), r.AtMostPerHour != nil || r.RulesCost != nil || r.Regret != nil
	if r.Survives != "" { // it speaks of pods that run, too
		subjects = append(subjects, r.choose(p.running)...)
	}
	if len(subjects) == 0 && (r.Pods != "" || r.Labels != "" || !wide) {
		return []Breach{{Why: "no pending pod is meant by it" + p.nearestPod(r.Pods)}}
	}
	var out []Breach
	for _, c := range []*Company{r.Together, r.Apart} {
		there := func(m member) bool { return matchesPod(c.With, m.name) }
		if c != nil && c.With != "" && !slices.ContainsFunc(p.members, there) && !slices.ContainsFunc(p.running, there) {
			out = append(out, Breach{Why: fmt.Sprintf("no pending or running pod is meant by %q%s", c.With, p.nearestPod(c.With))})
		}
	}
	return append(out, p.strangers(r)...)
}

// breaches are the ways in which the plan breaks the rule, demand by demand.
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

// halves are the pods without a place where others have one, but for those that a group can do without.
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
			out = append(out, Breach{m.name, fmt.Sprintf("it has no place, and %d of the others have one", placed)})
		}
	}
	return out
}

// survival are the pods that are lost or wait after a failure that the rule speaks of, each with the first such failure.
func (p *Plan) survival(r *Rule) []Breach {
	if r.Survives == "" {
		return nil
	}
	kinds, _ := survive.ParseKinds(r.Survives) // validated
	by := p.packed.Options()
	all, err := survive.Rehearse(context.Background(), p.packed, &by, kinds)
	if err != nil {
		return []Breach{{Why: err.Error()}}
	}
	meant := map[string]bool{}
	for _, m := range slices.Concat(r.choose(p.members), r.choose(p.running)) {
		meant[m.name] = true
	}
	var out []Breach
	add := func(pods []*corev1.Pod, format string, args ...any) {
		for _, pod := range pods {
			if name := nameOf(pod); meant[name] {
				out = append(out, Breach{Pod: name, Why: fmt.Sprintf(format, args...)})
				delete(meant, name)
			}
		}
	}
	for _, o := range all {
		add(o.Lost, "the loss of %s leaves it without a place: %s", o.Failure, o.Why)
	}
	for _, o := range all {
		if !r.MayWait {
			add(o.Waiting, "after the loss of %s it waits for a node to be bought", o.Failure)
		}
	}
	return out
}

// nearestPod is the name that was probably meant by patterns that match no pod.
func (p *Plan) nearestPod(patterns string) string {
	names := map[string]bool{}
	for _, m := range p.members {
		names[m.name] = true
		names[strings.TrimRight(m.name, "0123456789")+"*"] = true
	}
	for _, d := range p.packed.Problem.Snapshot().DaemonSets {
		if matchesPod(patterns, d.Namespace+"/"+d.Name) {
			return fmt.Sprintf("; %s/%s is of a daemon set, whose pods are on every node that takes them: no rule speaks of them", d.Namespace, d.Name)
		}
	}
	for pattern := range strings.SplitSeq(patterns, ",") {
		pattern = strings.TrimSpace(pattern)
		if pattern != "" && !strings.Contains(pattern, "/") {
			pattern = "default/" + pattern
		}
		if text := hint(pattern, slices.Sorted(maps.Keys(names))); text != "" {
			return text
		}
	}
	return ""
}

// strangers are places that name what neither the pools nor the nodes have: a slip in writing would else let a rule about
// what must not happen hold for ever.
func (p *Plan) strangers(r *Rule) []Breach {
	known := p.known()
	var out []Breach
	places := slices.Concat(r.LandsOn, r.NeverOn)
	if r.Refused != nil {
		places = append(places, Place{Pool: r.Refused.Pool})
	}
	for _, place := range places {
		for _, f := range place.fields() {
			if f.want == "" || f.name == "node" {
				continue
			}
			for pattern := range strings.SplitSeq(f.want, ",") {
				pattern = strings.TrimSpace(pattern)
				if slices.ContainsFunc(known[f.key], func(v string) bool { return glob(pattern, v) }) {
					continue
				}
				out = append(out, Breach{Why: fmt.Sprintf("there is no %s %s here%s", f.name, pattern, hint(pattern, known[f.key]))})
			}
		}
	}
	return append(out, p.strangeKeys(r)...)
}

// strangeKeys are labels that no node has and no pool could give one.
func (p *Plan) strangeKeys(r *Rule) []Breach {
	var asked []string
	for _, place := range slices.Concat(r.LandsOn, r.NeverOn) {
		set, _ := requirements.Parse(place.Labels) // Validate has seen to that
		for req := range set.All() {
			if !req.AllowsAbsent() {
				asked = append(asked, req.Key())
			}
		}
	}
	for _, c := range []*Company{r.Together, r.Apart} {
		if c != nil {
			asked = append(asked, topologyKey(c.By))
		}
	}
	if r.Spread != nil {
		asked = append(asked, topologyKey(r.Spread.By))
	}
	var known map[string]bool // worked out for the first one
	var out []Breach
	for _, key := range asked {
		if key == corev1.LabelHostname {
			continue
		}
		if known == nil {
			known = p.knownKeys()
		}
		if !known[requirements.KubernetesAliases().Key(key)] {
			out = append(out, Breach{Why: fmt.Sprintf("there is no label %s here%s", key, hint(key, append(slices.Sorted(maps.Keys(known)), "node", "zone")))})
		}
	}
	return out
}

// knownKeys are the labels that nodes have, or can have where they are bought.
func (p *Plan) knownKeys() map[string]bool {
	out := map[string]bool{}
	see := func(s requirements.Set) {
		for req := range s.All() {
			out[req.Key()] = true
		}
	}
	for i := range p.packed.Problem.Existing {
		see(p.packed.Problem.Existing[i].Labels)
	}
	s := p.packed.Problem.Snapshot()
	for i := range s.Pools {
		see(s.Pools[i].NodeRequirements())
		for k := range s.Pools[i].Types {
			see(s.Pools[i].Types[k].Requirements)
			for _, o := range s.Pools[i].Types[k].Offerings {
				see(o.Requirements)
			}
		}
	}
	return out
}

// known lists, by the label keys of places, what pools can buy and nodes have.
func (p *Plan) known() map[string][]string {
	found := map[string]map[string]bool{}
	see := func(key, value string) {
		if value == "" {
			return
		}
		if found[key] == nil {
			found[key] = map[string]bool{}
		}
		found[key][value] = true
	}
	fields := (&Place{}).fields()
	s := p.packed.Problem.Snapshot()
	for i := range s.Pools {
		see(fields[0].key, s.Pools[i].Name)
		if i > 0 && len(s.Pools[i].Types) > 0 && len(s.Pools[i-1].Types) > 0 && &s.Pools[i].Types[0] == &s.Pools[i-1].Types[0] {
			continue // the same slice
		}
		for k := range s.Pools[i].Types {
			t := &s.Pools[i].Types[k]
			see(fields[1].key, t.Name)
			for _, o := range t.Offerings {
				for _, f := range fields[2:4] {
					v, _ := o.Requirements.Get(f.key).Single()
					see(f.key, v)
				}
			}
		}
	}
	for i := range p.packed.Problem.Existing {
		site := existingSite(p.packed.Problem.Existing[i].Node)
		for _, f := range fields {
			see(f.key, f.have(site))
		}
	}
	out := map[string][]string{}
	for key, values := range found {
		out[key] = slices.Sorted(maps.Keys(values))
	}
	return out
}

// badSites remembers what makes a node wrong for the pods of a rule; nothing where it is right.
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

// ofOne are the breaches by which one pod alone breaks the rule.
func (p *Plan) ofOne(r *Rule, m member, bad badSites) []Breach {
	var out []Breach
	add := func(why string) { out = append(out, Breach{m.name, why}) }
	if (r.Placed || len(r.LandsOn) > 0) && m.site == nil {
		why := "has no place"
		if m.class < 0 {
			why += ": it is not ours to place: " + m.why
		}
		add(why)
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

// missed says what keeps the site from being one of the places; nothing if it is one.
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

// reasonsText tells reasons in one line.
func reasonsText(reasons []scheduling.Reason) string {
	var out []string
	for _, r := range reasons {
		if text := r.String(); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}
