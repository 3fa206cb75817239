package program

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
	lib "github.com/joinery-sdk/joinery/examples/plan/report"
)

// assertion is what became of a rule, as scripts read it.
type assertion struct {
	Rule    string   `json:"rule"`
	At      string   `json:"at"`
	Holds   bool     `json:"holds"`
	Pods    int      `json:"pods"`
	Broken  []breach `json:"broken,omitempty"`
	MovedBy []string `json:"movedBy,omitempty"`
	Untried []string `json:"untried,omitempty"`
	Known   string   `json:"known,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	Fix     *fixJSON `json:"fix,omitempty"`
	text    string
}

type breach struct {
	Pod string `json:"pod,omitempty"`
	Why string `json:"why"`
}

// readRules reads the file of --assert; there are no rules without one. It is read before anything
// is planned.
func (o *options) readRules() ([]ruletest.Rule, error) {
	if o.assert == "" {
		return nil, nil
	}
	rules, err := ruletest.ReadFile(o.assert)
	if missing, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, inputs.Bad(fmt.Errorf("--assert: %w", missing))
	}
	if err != nil {
		return nil, inputs.Bad(err)
	}
	return rules, nil
}

// asserted is a report with what became of the rules.
type asserted struct {
	*report
	Assertions []assertion `json:"assertions"`
}

// assertRules checks the rules against the plan and prints both. A broken rule makes the exit code
// that of a pod without a place; pods without a place that the rules do not mind do so too.
func (o *options) assertRules(cmd *cobra.Command, out io.Writer, r *report, packed *plan.Plan, rules []ruletest.Rule) error {
	how, err := o.planning.Options()
	if err != nil {
		return err
	}
	full, held := asserted{r, []assertion{}}, 0
	done := terminal.Progress(cmd.ErrOrStderr(), "checking "+terminal.Plural(len(rules), "rule"))
	results := ruletest.NewPlan(packed, how.Packing).Guarded(o.objects, time.Now()).Check(rules...)
	done()
	for _, res := range results {
		a := assertion{Rule: res.Rule.String(), At: res.Rule.Position.String(), Holds: res.Holds(), Pods: res.Pods, MovedBy: res.MovedBy, Untried: res.Untried, Known: res.Known, Notes: res.Notes, text: res.String()}
		for _, b := range res.Breaches {
			a.Broken = append(a.Broken, breach(b))
		}
		if res.Fix.Text != "" {
			a.Fix = r.shared(lib.FixOf(&res.Fix))
		}
		if a.Holds {
			held++
		}
		full.Assertions = append(full.Assertions, a)
	}
	if o.Output == "json" || o.Output == "yaml" {
		err = inputs.Encode(out, o.Output, full)
	} else if err = o.print(cmd, out, r); err == nil {
		full.write(out, terminal.StyleOf(cmd.OutOrStdout()), held)
	}
	if err == nil && (held < len(rules) || r.Summary.Unschedulable > 0) {
		return &inputs.ExitError{Code: inputs.ExitNotAll}
	}
	return err
}

// write lists the rules: those that hold in a line each, the others with what moved their pods.
func (a *asserted) write(w io.Writer, style terminal.Style, held int) {
	fmt.Fprintln(w)
	for i := range a.Assertions {
		if r := &a.Assertions[i]; r.Holds {
			fmt.Fprintf(w, "%s %s\n", style.Good("ok    "), r.text)
		} else {
			fmt.Fprintf(w, "%s %s\n", style.Bad("BROKEN"), r.text)
		}
	}
	fmt.Fprintf(w, "%d of %s kept\n", held, terminal.Plural(len(a.Assertions), "rule"))
	if n := a.Summary.Unschedulable; n > 0 && held == len(a.Assertions) {
		fmt.Fprintf(w, "%s no place, so the exit code is %d\n", map[bool]string{true: "1 pod has", false: fmt.Sprintf("%d pods have", n)}[n == 1], inputs.ExitNotAll)
	}
}
