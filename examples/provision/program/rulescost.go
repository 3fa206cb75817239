package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/joinery-sdk/joinery/examples/pipeline/picture"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/rulecost"
	"github.com/joinery-sdk/joinery/scheduling"
)

const hoursOfMonth = 730

// addRulesCost says in the report what each rule costs.
func (o *options) addRulesCost(ctx context.Context, r *report, packed *plan.Plan, s scheduling.Snapshot) error {
	by, err := o.planning.Options()
	if err != nil {
		return err
	}
	by.Groups = o.groups
	r.RulesCost, err = rulecost.Of(ctx, packed, s, by, nil)
	return err
}

// writeAnswers prints what was asked about the plan instead of the plan: what its rules cost, and
// what it would live through.
func (r *report) writeAnswers(out io.Writer, style terminal.Style) error {
	if r.RulesCost != nil {
		if err := writeRulesCost(out, style, r.RulesCost); err != nil {
			return err
		}
	}
	if r.Survival != nil {
		if r.RulesCost != nil {
			fmt.Fprintln(out)
		}
		if err := r.Survival.write(out, style); err != nil {
			return err
		}
	}
	if err := errors.Join(r.writeBuffers(out, style), r.writeCurve(out, style)); err != nil {
		return err
	}
	r.writeRefusals(out, style)
	return nil
}

func writeRulesCost(out io.Writer, style terminal.Style, r *rulecost.Report) error {
	t := terminal.NewTable(style, "RULE", ">A MONTH", ">BETWEEN", ">AND", "")
	ranked := 0
	for _, c := range append(append([]rulecost.Cost{}, r.Rules...), r.Pairs...) {
		if c.State == rulecost.Ranked {
			ranked++
			continue
		}
		t.Row(namesOf(c), monthly(c.PerHour), monthly(c.LowPerHour), monthly(c.HighPerHour), saidOf(c))
	}
	if err := t.Write(out); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe bill is %s a month. The cost of a rule is how much less the same pods would cost without it. What two rules both forbid costs nothing until both are lifted.\n", monthly(r.PerHour))
	if ranked > 0 {
		fmt.Fprintf(out, "Not tried: %s. By an estimate they save less, but any may cost more; an assertion rulesCost tries each.\n", terminal.Plural(ranked, "rule"))
	}
	return nil
}

func namesOf(c rulecost.Cost) string {
	var names []string
	for _, rule := range c.Rules {
		names = append(names, rule.String())
	}
	return strings.Join(names, "  and  ")
}

func saidOf(c rulecost.Cost) string {
	switch {
	case len(c.Rules) > 1:
		return "verified, and only together"
	case c.State == rulecost.Verified:
		return "verified"
	}
	return "at least, by a quick plan"
}

func monthly(perHour float64) string { return terminal.Dollars(perHour * hoursOfMonth) }

// rulesSection is what rules cost as a part of the page: those that cost anything.
func rulesSection(r *rulecost.Report) picture.Section {
	out := picture.Section{Title: "What rules cost", Note: "The cost of a rule is how much less the same pods would cost without it. The interval says what other plans could save."}
	for _, c := range append(append([]rulecost.Cost{}, r.Rules...), r.Pairs...) {
		if c.PerHour > 0 {
			out.Notices = append(out.Notices, picture.Notice{
				Subject: monthly(c.PerHour) + " a month", Text: namesOf(c),
				Hint: fmt.Sprintf("%s; between %s and %s", saidOf(c), monthly(c.LowPerHour), monthly(c.HighPerHour)),
			})
		}
	}
	if len(out.Notices) == 0 {
		out.Notices = []picture.Notice{{Subject: "Nothing", Text: "No rule that was lifted makes the plan cheaper."}}
	}
	return out
}
