package program

import (
	"fmt"
	"io"

	"github.com/joinery-sdk/joinery/examples/pipeline/picture"
	"github.com/joinery-sdk/joinery/examples/pipeline/protection"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
)

// writeRulesCost prints what the rules cost that keep pods where they are.
func writeRulesCost(w io.Writer, s terminal.Style, r *protection.Report) error {
	if len(r.Rules) == 0 {
		fmt.Fprintln(w, "No PodDisruptionBudget and no do-not-disrupt annotation keeps a pod where it is.")
		return nil
	}
	t := terminal.NewTable(s, "RULE", ">A MONTH", ">AT MOST", ">NODES")
	unknown := 0
	for _, c := range r.Rules {
		if !c.Verified {
			unknown++
			continue
		}
		t.Row(c.String(), monthly(c.PerHour), monthly(c.HighPerHour), fmt.Sprint(c.Nodes))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nThe bill after consolidation is %s a month. The cost of a rule is how much lower the bill would be without this rule alone, verified by planning again. It is at most the cost of the nodes with its pods.\n", monthly(r.PerHour))
	if unknown > 0 {
		fmt.Fprintf(w, "%s with cheaper nodes not tried.\n", terminal.Plural(unknown, "more rule"))
	}
	return nil
}

func monthly(perHour float64) string { return terminal.Dollars(perHour * hoursPerMonth) }

// rulesSection is what rules cost as a part of the page: those that cost anything.
func rulesSection(r *protection.Report) picture.Section {
	out := picture.Section{Title: "What it costs to keep pods where they are", Note: "The cost of a rule is how much lower the bill after consolidation would be without this rule alone."}
	for _, c := range r.Rules {
		if c.PerHour > 0 {
			out.Notices = append(out.Notices, picture.Notice{
				Subject: monthly(c.PerHour) + " a month", Text: c.String(),
				Hint: fmt.Sprintf("verified; at most %s, the cost of the %s with its pods", monthly(c.HighPerHour), terminal.Plural(c.Nodes, "node")),
			})
		}
	}
	if len(out.Notices) == 0 {
		out.Notices = []picture.Notice{{Subject: "Nothing", Text: "No rule that was lifted makes the cluster cheaper."}}
	}
	return out
}
