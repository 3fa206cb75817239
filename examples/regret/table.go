package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/examples/pipeline/regret"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
)

// span is a time from and to, with the day only once.
func span(from, to time.Time) string {
	const day, clock = "2006-01-02 15:04", "15:04"
	from, to = from.UTC(), to.UTC()
	if from.Format(time.DateOnly) == to.Format(time.DateOnly) {
		return from.Format(day) + " to " + to.Format(clock)
	}
	return from.Format(day) + " to " + to.Format(day)
}

// percent is how much more a is than b.
func percent(a, b float64) string {
	if b <= 0 {
		return ""
	}
	return fmt.Sprintf("%+.1f%%", 100*(a/b-1))
}

// write prints the report for people: the hours, their sum, and the decisions.
func (r *report) write(w io.Writer, s terminal.Style, wide bool) error {
	sum := &r.Summary
	fmt.Fprintf(w, "%s UTC   %s\n\n", span(sum.From, sum.To), r.dated())
	if sum.NoPods {
		return r.paidOnly(w, s)
	}
	t := terminal.NewTable(s, "HOUR", ">PAID", ">OUR POLICY", ">BOUND NOW", ">BOUND", ">PAID/OURS", ">OURS/BOUND")
	for _, h := range r.Hours {
		t.Row(h.From.Format("01-02 15:04"), terminal.Dollars(h.Paid), terminal.Dollars(h.Policy), terminal.Dollars(h.BoundPresent), terminal.Dollars(h.Bound), percent(h.Paid, h.Policy), percent(h.Policy, h.Bound))
	}
	t.Row("", "", "", "", "", "", "")
	t.Row("sum", terminal.Dollars(sum.Paid), terminal.Dollars(sum.Policy), terminal.Dollars(sum.BoundPresent), terminal.Dollars(sum.Bound), percent(sum.Paid, sum.Policy), percent(sum.Policy, sum.Bound))
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nBOUND NOW: the least that any policy pays that knows only the present. BOUND: the least that any policy pays.\n")
	text := fmt.Sprintf("%s could have been saved by our policy, with %s and %s", s.Bold(money(sum.Paid-sum.Policy)), plural(sum.Launches, "launch", "launches"), plural(sum.Evictions, "eviction", "evictions"))
	if sum.Paid < sum.Policy {
		text = fmt.Sprintf("our policy would have cost %s more", s.Bold(money(sum.Policy-sum.Paid)))
	}
	took := ""
	if sum.Seconds != nil {
		took = " (computed in " + terminal.Duration(time.Duration(sum.Seconds.Audit*float64(time.Second))) + ")"
	}
	fmt.Fprintf(w, "%s%s\n", text, took)
	return r.decisions(w, s, wide)
}

// paidOnly prints what is known without pods.
func (r *report) paidOnly(w io.Writer, s terminal.Style) error {
	t := terminal.NewTable(s, "HOUR", ">PAID", ">OUR POLICY", ">BOUND")
	for _, h := range r.Hours {
		t.Row(h.From.Format("01-02 15:04"), terminal.Dollars(h.Paid), "?", "?")
	}
	t.Row("", "", "", "")
	t.Row("sum", terminal.Dollars(r.Summary.Paid), "?", "?")
	return t.Write(w)
}

func (r *report) dated() string {
	if r.Summary.Prices.Date == "" {
		return r.Summary.Prices.List
	}
	return r.Summary.Prices.List + " of " + r.Summary.Prices.Date
}

// money is dollars, and less than nothing with a sign.
func money(v float64) string {
	if v < 0 {
		return "-" + terminal.Dollars(-v)
	}
	return terminal.Dollars(v)
}

func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return terminal.Count(n) + " " + more
}

// decisions prints what cost most. What would have been better is broken to the width of the
// terminal.
func (r *report) decisions(w io.Writer, s terminal.Style, wide bool) error {
	if len(r.Decisions) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	header := []string{">COST MORE", "NODE", "TYPE", "FROM", ">HOURS", ">USED", "WHAT"}
	if wide {
		header = []string{">COST MORE", "NODE", "TYPE", "FROM", ">HOURS", ">USED", ">PAID", ">OURS", ">BOUND", "WHAT"}
	}
	used := 9 + 2 + 10 + 2 + 5 + 2 + 6 + 2 + 4 + 2
	for _, d := range r.Decisions {
		used = max(used, 33+len(d.Node)+len(d.InstanceType)+4)
	}
	room := 0
	if s.Width > 0 {
		room = max(s.Width-used, 24)
	}
	t := terminal.NewTable(s, header...)
	for i := range r.Decisions {
		d := &r.Decisions[i]
		row := []string{terminal.Dollars(d.Regret), d.Node, d.InstanceType, d.From.Format("15:04"), fmt.Sprintf("%.1f", d.To.Sub(d.From).Hours()), fmt.Sprintf("%.0f%%", d.UsedPercent)}
		if wide {
			row = append(row, terminal.Dollars(d.Paid), terminal.Dollars(d.Policy), terminal.Dollars(d.Bound))
		}
		for k, line := range broken(d.what(), room) {
			if k > 0 {
				row = make([]string, len(header)-1)
			}
			t.Row(append(row, line)...)
		}
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nall others together: %s\n", r.others())
	return nil
}

// others says how the other nodes compare with our policy, together.
func (r *report) others() string {
	if r.Others < 0 {
		return terminal.Dollars(-r.Others) + " less than under our policy"
	}
	return terminal.Dollars(r.Others) + " more than under our policy"
}

// what says what was decided, and what would have been better.
func (d *decision) what() string {
	when := ""
	if d.At != nil {
		when = " at " + d.At.Format("15:04")
	}
	saves := ""
	if d.SavesPerH > 0 {
		saves = fmt.Sprintf(" (saves %s/h)", terminal.Dollars(d.SavesPerH))
	}
	switch regret.Kind(d.Kind) {
	case regret.Waited:
		return "pods that waited"
	case regret.Spare:
		return "nodes of our policy without pods"
	case regret.Together:
		return "no cheaper place while all other nodes stay; our policy moved others, too"
	case "":
		return "not looked at"
	case regret.Protected:
		return d.Kind + when + ": " + d.Better + saves + ", but " + d.Keeps
	default:
		return d.Kind + when + ": " + d.Better + saves
	}
}

// broken is the text in lines of at most so many columns; 0 for any number.
func broken(text string, room int) []string {
	if room <= 0 {
		return []string{text}
	}
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > room {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
