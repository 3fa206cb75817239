package program

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// comparison is two plans side by side.
type comparison struct {
	Before summary  `json:"before"`
	After  summary  `json:"after"`
	Lost   []string `json:"lost"`   // pods that have no place, and had one or were not there
	Gained []string `json:"gained"` // pods that have one, and had none or were not there
	Gone   []string `json:"gone"`   // pods that had one and are not there any more
	// Ignored are pods that the second plan does not plan. Those that had a place are also lost.
	Ignored []ignored `json:"ignored"`

	nodes  []plan.NodeChange
	sample string
}

// compare plans twice, the second time with the objects of another file in place of those of the
// same kind and name.
func (o *options) compare(cmd *cobra.Command, out io.Writer, stdin io.Reader) error {
	var piped []byte
	if slices.Contains(o.Files, "-") || o.diff == "-" { // read once, used twice
		var err error
		if piped, err = o.Keep(stdin); err != nil {
			return inputs.Bad(err)
		}
	}
	done := terminal.Progress(cmd.ErrOrStderr(), "planning twice")
	before, first, err := o.plan(cmd, bytes.NewReader(piped))
	if err != nil {
		done()
		return err
	}
	changed := *o
	changed.Replace = []string{o.diff}
	after, second, err := changed.plan(cmd, bytes.NewReader(piped))
	done()
	if err != nil {
		return err
	}
	d := plan.Diff(first, second)
	c := comparison{Before: before.Summary, After: after.Summary, Lost: d.Lost, Gained: d.Gained, Gone: d.Gone, Ignored: []ignored{}, nodes: d.Nodes, sample: o.Sample()}
	for _, pod := range slices.Sorted(maps.Keys(d.Ignored)) {
		c.Ignored = append(c.Ignored, ignored{Pod: pod, Why: d.Ignored[pod]})
	}
	if o.Output == "json" || o.Output == "yaml" {
		err = inputs.Encode(out, o.Output, c)
	} else {
		err = c.write(out, terminal.StyleOf(cmd.OutOrStdout()))
	}
	switch {
	case err != nil:
		return err
	case len(c.Lost) > 0:
		return &inputs.ExitError{Code: inputs.ExitNotAll}
	case c.After.PricePerHour > c.Before.PricePerHour:
		return &inputs.ExitError{Code: inputs.ExitDearer}
	}
	return nil
}

func (c *comparison) write(w io.Writer, style terminal.Style) error {
	writeSample(w, style, c.sample)
	t := terminal.NewTable(style, "", ">BEFORE", ">AFTER", ">CHANGE")
	count := func(name string, a, b int) {
		t.Row(name, terminal.Count(a), terminal.Count(b), signed(b-a, terminal.Count(abs(b-a))))
	}
	count("new nodes", c.Before.NewNodes, c.After.NewNodes)
	money := c.After.PricePerHour - c.Before.PricePerHour
	change := signed(compareZero(money), terminal.Dollars(max(money, -money)))
	if money > 0 {
		change = style.Bad(change)
	} else if money < 0 {
		change = style.Good(change)
	}
	t.Row("price per hour", terminal.Dollars(c.Before.PricePerHour), terminal.Dollars(c.After.PricePerHour), change)
	t.Row("no plan costs less than", terminal.Dollars(c.Before.LowerBoundPerHour), terminal.Dollars(c.After.LowerBoundPerHour), "")
	count("pods placed", c.Before.Scheduled, c.After.Scheduled)
	count("pods without a place", c.Before.Unschedulable, c.After.Unschedulable)
	if c.Before.Ignored+c.After.Ignored > 0 {
		count("pods not ours to place", c.Before.Ignored, c.After.Ignored)
	}
	for _, n := range c.nodes {
		count(fmt.Sprintf("  %s  %s  %s", n.Pool, n.InstanceType, n.CapacityType), n.Before, n.After)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	for _, i := range c.Ignored {
		if _, lost := slices.BinarySearch(c.Lost, i.Pod); lost {
			fmt.Fprintf(w, "%s had a place and is not planned any more: %s\n", style.Bad(i.Pod), i.Why)
			continue
		}
		fmt.Fprintln(w, style.Dim(fmt.Sprintf("%s is not ours to place: %s", i.Pod, i.Why)))
	}
	for _, p := range c.Lost {
		if _, named := slices.BinarySearchFunc(c.Ignored, p, func(i ignored, pod string) int { return strings.Compare(i.Pod, pod) }); !named {
			fmt.Fprintf(w, "%s has no place\n", style.Bad(p))
		}
	}
	for _, p := range c.Gone {
		fmt.Fprintf(w, "%s is gone\n", p)
	}
	for _, p := range c.Gained {
		fmt.Fprintf(w, "%s gains a place\n", style.Good(p))
	}
	return nil
}

func abs(n int) int { return max(n, -n) }

func compareZero(v float64) int {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

func signed(sign int, text string) string {
	switch {
	case sign > 0:
		return "+" + text
	case sign < 0:
		return "-" + text
	}
	return "="
}
