package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
)

// comparison is two plans side by side.
type comparison struct {
	Before summary  `json:"before"`
	After  summary  `json:"after"`
	Lost   []string `json:"lost"`   // pods that had a place and have none
	Gained []string `json:"gained"` // pods that had none and have one
}

// compare plans twice, the second time with the objects of another file in place of those of the same kind and name.
func (o *options) compare(cmd *cobra.Command, out io.Writer, market *pipeline.Market, stdin io.Reader) error {
	var piped []byte
	if slices.Contains(o.Files, "-") || o.diff == "-" { // read once, used twice
		var err error
		if piped, err = io.ReadAll(stdin); err != nil {
			return inputs.Bad(err)
		}
	}
	done := terminal.Progress(cmd.ErrOrStderr(), "planning twice")
	before, _, err := o.plan(cmd, market, bytes.NewReader(piped))
	if err != nil {
		done()
		return err
	}
	changed := *o
	changed.Replace = []string{o.diff}
	after, _, err := changed.plan(cmd, market, bytes.NewReader(piped))
	done()
	if err != nil {
		return err
	}
	c := comparison{Before: before.Summary, After: after.Summary, Lost: []string{}, Gained: []string{}}
	was, is := map[string]bool{}, map[string]bool{}
	for _, p := range before.BindingOrder {
		was[p] = true
	}
	for _, p := range after.BindingOrder {
		is[p] = true
		if !was[p] {
			c.Gained = append(c.Gained, p)
		}
	}
	for _, p := range before.BindingOrder {
		if !is[p] {
			c.Lost = append(c.Lost, p)
		}
	}
	slices.Sort(c.Lost)
	slices.Sort(c.Gained)
	if o.Output == "json" || o.Output == "yaml" {
		err = encode(out, o.Output, c)
	} else {
		err = c.write(out, terminal.StyleOf(cmd.OutOrStdout()), before, after)
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

func (c *comparison) write(w io.Writer, style terminal.Style, before, after *report) error {
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
	t.Row("proven not below", terminal.Dollars(c.Before.LowerBoundPerHour), terminal.Dollars(c.After.LowerBoundPerHour), "")
	count("pods placed", c.Before.Scheduled, c.After.Scheduled)
	count("pods without a place", c.Before.Unschedulable, c.After.Unschedulable)
	types := map[string][2]int{}
	for side, r := range []*report{before, after} {
		for _, n := range r.NewNodes {
			key := fmt.Sprintf("%s  %s  %s", n.NodePool, n.InstanceType, n.CapacityType)
			k := types[key]
			k[side]++
			types[key] = k
		}
	}
	var names []string
	for name := range types {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if k := types[name]; k[0] != k[1] {
			count("  "+name, k[0], k[1])
		}
	}
	if err := t.Write(w); err != nil {
		return err
	}
	for _, p := range c.Lost {
		fmt.Fprintf(w, "%s loses its place\n", style.Bad(p))
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
