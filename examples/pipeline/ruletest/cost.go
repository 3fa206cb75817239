package ruletest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/examples/pipeline/protection"
	"github.com/joinery-sdk/joinery/examples/pipeline/regret"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/rulecost"
	"github.com/joinery-sdk/joinery/examples/plan/survive"
)

const hoursPerMonth = 730

// RulesCost demands that no rule, and no two rules together, cost more than AtMostPerMonth dollars
// a month. The cost is how much less the same pods would cost without a rule of a pool or of pods
// ([rulecost]), or how much more consolidation would save without a PodDisruptionBudget or a
// do-not-disrupt annotation ([protection]). Plans are made without each rule that the demand
// covers, with the effort of the plan, unless a bound shows that the rule cannot cost too much. Of
// pairs, only the most promising are tried. The zero value demands that no rule costs anything.
type RulesCost struct {
	AtMostPerMonth float64 `json:"atMostPerMonth"`
	// Of selects the rules, by names as --rules-cost prints them: "NodePool general:
	// kubernetes.io/arch*" or "Deployment shop/*". * stands for any text, and commas separate
	// alternatives. Empty means all rules.
	Of string `json:"of,omitempty"`
	// Except selects rules that may cost more, in the same form.
	Except string `json:"except,omitempty"`
	// Proved also demands that no other plan saves more. Then the upper end of each rule's interval
	// counts.
	Proved bool `json:"proved,omitempty"`
}

func (c *RulesCost) faults() []*fieldError {
	if c == nil || c.AtMostPerMonth >= 0 && !math.IsInf(c.AtMostPerMonth, 0) {
		return nil
	}
	return []*fieldError{{".atMostPerMonth", fmt.Sprintf("%v: want dollars, 0 or more", c.AtMostPerMonth)}}
}

func (c *RulesCost) text() string {
	out := "no rule costs more than " + dollars(c.AtMostPerMonth) + " a month"
	if c.Of != "" {
		out += " of " + c.Of
	}
	if c.Except != "" {
		out += ", except " + c.Except
	}
	if c.Proved {
		out += ", which is proved"
	}
	return out
}

// Regret limits by how many percent the cost of a recorded history may exceed what was necessary
// ([regret]). At least one field is set. [Rule.Validate] rejects the zero value, which demands
// nothing.
type Regret struct {
	// AboveBound compares what was paid with a lower bound for any policy that knows only the
	// present.
	AboveBound *float64 `json:"aboveBound,omitempty"`
	// AbovePolicy compares it with what our policy would have paid on the same arrivals.
	AbovePolicy *float64 `json:"abovePolicy,omitempty"`
}

func (g *Regret) faults() []*fieldError {
	if g == nil {
		return nil
	}
	var out []*fieldError
	if g.AboveBound == nil && g.AbovePolicy == nil {
		out = append(out, &fieldError{"", "want aboveBound or abovePolicy, in percent"})
	}
	for _, f := range []struct {
		path    string
		percent *float64
	}{{".aboveBound", g.AboveBound}, {".abovePolicy", g.AbovePolicy}} {
		if p := f.percent; p != nil && (!(*p >= 0) || math.IsInf(*p, 0)) {
			out = append(out, &fieldError{f.path, fmt.Sprintf("%v: want percent, 0 or more", *p)})
		}
	}
	return out
}

func (g *Regret) text() string {
	var out []string
	if g.AboveBound != nil {
		out = append(out, fmt.Sprintf("at most %g%% above the bound", *g.AboveBound))
	}
	if g.AbovePolicy != nil {
		out = append(out, fmt.Sprintf("at most %g%% above our policy", *g.AbovePolicy))
	}
	return "its past cost " + strings.Join(out, ", ")
}

// Guarded returns the plan with what is known about its cluster beyond pods and nodes, at a moment.
// So a rule about [RulesCost] also covers PodDisruptionBudgets and do-not-disrupt annotations.
// [Scenario.Solve] does this with its manifests.
func (p *Plan) Guarded(objects simulate.Objects, now time.Time) *Plan {
	out := *p
	out.objects, out.now, out.charges = &objects, now, nil
	return &out
}

// Recorded returns the plan with a recorded history, for rules about [Regret].
func (p *Plan) Recorded(past *regret.Report) *Plan {
	out := *p
	out.past = past
	return &out
}

// charge is the cost of one rule, or of two together, in dollars a month. tried says that a plan
// without it was made with the effort of the plan. Only then is its cost known, and else only
// within says that a bound keeps it below the limit.
type charge struct {
	names         []string
	cost, atMost  float64
	tried, within bool
}

func (c *charge) name() string { return strings.Join(c.names, " and, only together with it, ") }

// means reports whether the demand covers the rule, or both rules if there are two.
func (c *RulesCost) means(of *charge) bool { return !slices.ContainsFunc(of.names, c.leavesOut) }

func (c *RulesCost) leavesOut(name string) bool {
	return c.Of != "" && !matches(c.Of, name) || c.Except != "" && matches(c.Except, name)
}

// allCharges returns the costs of all rules, of which those that the demand covers are tried. They
// are computed once for each demand.
func (p *Plan) allCharges(ctx context.Context, demand *RulesCost) ([]charge, error) {
	if known, ok := p.charges[*demand]; ok {
		return known, nil
	}
	snapshot, by := p.packed.Problem.Snapshot(), p.packed.Options()
	const rounding = 1e-6
	narrow, err := rulecost.Of(ctx, p.packed, snapshot, &by, &rulecost.Options{
		Only:   func(r rulecost.Rule) bool { return !demand.leavesOut(r.String()) },
		Enough: demand.AtMostPerMonth / hoursPerMonth,
	})
	if err != nil {
		return nil, err
	}
	out := []charge{}
	for _, c := range slices.Concat(narrow.Rules, narrow.Pairs) {
		one := charge{cost: hoursPerMonth * c.PerHour, atMost: hoursPerMonth * c.HighPerHour, tried: c.State == rulecost.Verified}
		if c.State == rulecost.Quick && one.cost >= one.atMost-rounding { // no other plan saves more
			one.tried = true
		}
		one.within = one.atMost <= demand.AtMostPerMonth+rounding
		for _, r := range c.Rules {
			one.names = append(one.names, r.String())
		}
		out = append(out, one)
	}
	if p.objects != nil && len(snapshot.Nodes) > 0 {
		cluster := protection.Cluster{
			Snapshot: snapshot, Objects: *p.objects, By: &plan.Options{Objective: by.Objective, Groups: by.Groups}, Now: p.now,
			Only: func(r protection.Rule) bool { return !demand.leavesOut(r.String()) },
		}
		cluster.Objects.Groups = by.Groups
		keeping, err := protection.Of(ctx, cluster, &giveback.Options{Objective: policy.AnySaving()}, math.MaxInt)
		if err != nil {
			return nil, err
		}
		for _, c := range keeping.Rules {
			out = append(out, charge{names: []string{c.String()}, cost: hoursPerMonth * c.PerHour, atMost: hoursPerMonth * max(c.PerHour, c.HighPerHour), tried: c.Verified})
		}
	}
	slices.SortStableFunc(out, func(a, b charge) int { return cmp.Compare(b.cost, a.cost) })
	if p.charges == nil {
		p.charges = map[RulesCost][]charge{}
	}
	p.charges[*demand] = out
	return out, nil
}

// rulesCost returns the rules that cost more than allowed, and how well the costs of the others are
// known.
func (p *Plan) rulesCost(c *RulesCost) (out []Breach, known string) {
	if c == nil {
		return nil, ""
	}
	all, err := p.allCharges(context.Background(), c)
	if err != nil {
		return []Breach{{Why: err.Error()}}, ""
	}
	for _, patterns := range []string{c.Of, c.Except} {
		for pattern := range strings.SplitSeq(patterns, ",") {
			if pattern = strings.TrimSpace(pattern); pattern != "" && !slices.ContainsFunc(all, func(x charge) bool {
				return slices.ContainsFunc(x.names, func(n string) bool { return glob(pattern, n) })
			}) {
				out = append(out, Breach{Why: fmt.Sprintf("no rule is called %q", pattern)})
			}
		}
	}
	var dearest *charge
	meant, tried, untried, atMost := 0, 0, 0, 0.0
	for i := range all {
		x := &all[i]
		if !c.means(x) {
			continue
		}
		meant++
		atMost = max(atMost, x.atMost)
		switch {
		case x.tried:
			if tried++; dearest == nil {
				dearest = x
			}
		case !x.within:
			untried++
		}
		const rounding = 1e-6
		switch {
		case x.cost > c.AtMostPerMonth+rounding:
			out = append(out, Breach{Why: fmt.Sprintf("%s costs %s a month, verified by a plan without it, want at most %s; other plans may save up to %s", x.name(), money(x.cost), money(c.AtMostPerMonth), upTo(x.atMost))})
		case c.Proved && x.tried && x.atMost > c.AtMostPerMonth+rounding:
			out = append(out, Breach{Why: fmt.Sprintf("%s costs %s a month in the plans that were found, and may cost up to %s, want at most %s", x.name(), money(x.cost), upTo(x.atMost), money(c.AtMostPerMonth))})
		}
	}
	switch {
	case meant == 0:
		return out, "there are no such rules"
	case untried > 0:
		return append(out, Breach{Why: fmt.Sprintf("%s not tried, so nothing says that it costs at most %s: raise the time or the effort of the plan", plural(untried, "rule"), money(c.AtMostPerMonth))}), ""
	}
	known = "by the bounds none costs more than " + upTo(atMost)
	switch {
	case tried == 0:
		return out, fmt.Sprintf("of %s: %s a month", plural(meant, "rule"), known)
	case tried < meant:
		return out, fmt.Sprintf("of %s the dearest of %d that were tried costs %s a month, %s; %s", plural(meant, "rule"), tried, dollars(dearest.cost), dearest.name(), known)
	}
	return out, fmt.Sprintf("of %s the dearest costs %s a month, %s; %s", plural(meant, "rule"), dollars(dearest.cost), dearest.name(), known)
}

// Check compares what a recorded history cost with what was necessary. known says how far it is
// above. broken is empty if that is within the demand. A report without pods, or nil, breaks the
// demand, because nothing is known.
func (g Regret) Check(past *regret.Report) (broken []Breach, known string) {
	switch {
	case past == nil:
		return []Breach{{Why: "it needs a recorded past, and none is given: gate reads one with -log or -snapshots, and a test gives one with Recorded"}}, ""
	case past.NoPods:
		return []Breach{{Why: "the record has no pods, so only its bill is known"}}, ""
	}
	paid := past.Paid.Dollars()
	texts := []string{dollars(paid) + " was paid"}
	for _, x := range []struct {
		most  *float64
		least regret.Amount
		whose string
	}{{g.AboveBound, past.Present, "any policy must pay that knows only the present"}, {g.AbovePolicy, past.Policy, "our policy pays"}} {
		if x.most == nil {
			continue
		}
		above := 0.0
		if past.Paid > x.least {
			above = 100 * (paid/x.least.Dollars() - 1) // infinite if nothing had to be paid
		}
		text := fmt.Sprintf("%s%% above the %s that %s", percent(above, *x.most), dollars(x.least.Dollars()), x.whose)
		texts = append(texts, text)
		const rounding = 1e-9
		if above > *x.most+rounding {
			broken = append(broken, Breach{Why: fmt.Sprintf("%s was paid, %s, want at most %g%%", dollars(paid), text, *x.most)})
		}
	}
	if len(broken) > 0 {
		for i := range past.Decisions {
			if d := &past.Decisions[i]; d.Node != "" && d.Better != "" {
				broken = append(broken, Breach{Why: fmt.Sprintf("dearest was node %s (%s): %s more than under our policy; better: %s", d.Node, d.InstanceType, dollars(d.Regret().Dollars()), d.Better)})
				break
			}
		}
	}
	return broken, strings.Join(texts, ", ")
}

// dollars rounds an amount to cents. An amount that no rule may have is shown as it was given.
func dollars(d float64) string {
	if !(d >= 0) || math.IsInf(d, 0) {
		return fmt.Sprintf("%v dollars", d)
	}
	return fmt.Sprintf("$%.2f", d)
}

// upTo rounds an upper bound up to cents.
func upTo(d float64) string {
	const rounding = 1e-6
	return dollars(math.Ceil(100*d-rounding) / 100)
}

// money returns an amount with all its decimals, so that what breaks a limit never looks like it.
func money(d float64) string {
	if price := binpack.Dollars(d); price >= 0 {
		return price.String()
	}
	return dollars(d)
}

// percent returns a percentage with one decimal, or with as many as show on which side of the limit
// it is.
func percent(v, limit float64) string {
	for digits := 1; ; digits++ {
		text := strconv.FormatFloat(v, 'f', digits, 64)
		if shown, err := strconv.ParseFloat(text, 64); err != nil || shown > limit == (v > limit) || digits == 9 {
			return text
		}
	}
}

// cost checks the price of the new nodes with the pods.
func (p *Plan) cost(r *Rule, subjects []member) []Breach {
	sum, texts := p.price(r, subjects)
	const rounding = 1e-9
	if sum <= *r.AtMostPerHour+rounding {
		return nil
	}
	n := len(texts)
	if n > 6 {
		texts = append(texts[:6], fmt.Sprintf("%d more", n-6))
	}
	return []Breach{{Why: fmt.Sprintf("%s for %s/h, want at most %s/h: %s", plural(n, "new node"), money(sum), money(*r.AtMostPerHour), strings.Join(texts, ", "))}}
}

// price adds up the prices of the new nodes with the pods, in dollars an hour, and lists the nodes.
func (p *Plan) price(r *Rule, subjects []member) (sum float64, nodes []string) {
	on := map[*site]bool{}
	for _, m := range subjects {
		on[m.site] = true
	}
	for _, s := range p.fresh {
		if on[s] || r.Pods == "" && r.Labels == "" {
			sum += s.price
			nodes = append(nodes, fmt.Sprintf("%s %s %s %s", s.name, s.typ, s.capacityType, money(s.price)))
		}
	}
	return sum, nodes
}

// survival returns the pods that are lost or wait after a failure of the rule, each with its first
// failure.
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
		for _, i := range o.Ignored {
			add([]*corev1.Pod{i.Pod}, "after the loss of %s it is not ours to place: %s", o.Failure, i.Why)
		}
		add(o.Lost, "the loss of %s leaves it without a place: %s", o.Failure, o.Why)
	}
	for _, o := range all {
		if !r.MayWait {
			add(o.Waiting, "after the loss of %s it waits for a node to be bought", o.Failure)
		}
	}
	return out
}
