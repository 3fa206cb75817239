package program

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
)

// hoursPerMonth is what clouds reckon with.
const hoursPerMonth = 730

// write prints the plan for people: the commands, their totals, and why other nodes stay.
func (r *report) write(w io.Writer, s terminal.Style, wide bool) error {
	fmt.Fprintf(w, "%s, %s, %s   %s   at %s\n\n", terminal.Plural(r.Summary.Nodes, "node"), terminal.Plural(r.pools, "pool"), terminal.Plural(r.market.Len(), "type"),
		r.dated(), r.now.UTC().Format("2006-01-02 15:04"))
	if len(r.Commands) > 0 {
		if err := r.commands(w, s); err != nil {
			return err
		}
		if wide {
			r.moves(w, s)
		}
	}
	r.total(w, s)
	return r.verdicts(w, s)
}

// writeSample says that the built-in sample was planned.
func writeSample(w io.Writer, style terminal.Style, text string) {
	if text != "" {
		fmt.Fprintln(w, style.Dim(text))
	}
}

// dated is the list of prices with its day.
func (r *report) dated() string {
	if r.Summary.Prices.Date == "" {
		return r.Summary.Prices.List
	}
	return r.Summary.Prices.List + " of " + r.Summary.Prices.Date
}

// saved is what a command saves an hour, or a question mark where that is not known.
func saved(c change) string {
	switch {
	case c.Unpriced:
		return "?"
	case c.SavingsPerHour < 0:
		return "-" + terminal.Dollars(-c.SavingsPerHour)
	}
	return terminal.Dollars(c.SavingsPerHour)
}

func (r *report) commands(w io.Writer, s terminal.Style) error {
	t := terminal.NewTable(s, ">#", "METHOD", "GIVE BACK", "BUY", ">SAVES/H", ">PODS", ">COST", "WHY")
	for i, c := range r.Commands {
		for k := range max(len(c.Nodes), len(c.Replacements)) {
			row := make([]string, 8)
			if k < len(c.Nodes) {
				row[2] = c.Nodes[k]
			}
			if k < len(c.Replacements) {
				x := c.Replacements[k]
				row[3] = fmt.Sprintf("%s %s %s %s", x.InstanceType, x.Zone, x.CapacityType, terminal.Dollars(x.PricePerHour))
			}
			if k == 0 {
				row[0], row[1], row[5], row[6] = fmt.Sprint(i+1), c.Method, fmt.Sprint(len(c.Pods)), fmt.Sprintf("%.1f", c.DisruptionCost)
				row[4] = saved(c)
				row[7] = c.Why
				if c.AtOnce {
					row[7] += "; at once, without waiting for new nodes"
				}
				if len(c.Replacements) == 0 {
					row[3] = s.Dim("nothing")
				}
			}
			t.Row(row...)
		}
	}
	return t.Write(w)
}

// moves lists where every pod goes.
func (r *report) moves(w io.Writer, s terminal.Style) {
	fmt.Fprintln(w)
	for i, c := range r.Commands {
		to := map[string][]string{}
		for pod, node := range c.Placements {
			to[node] = append(to[node], pod)
		}
		for _, x := range c.Replacements {
			to[x.Name+" (new)"] = x.Pods
		}
		for _, node := range slices.Sorted(maps.Keys(to)) {
			slices.Sort(to[node])
			fmt.Fprintf(w, "%d  %s <- %s\n", i+1, s.Bold(node), strings.Join(to[node], ", "))
		}
		if len(c.Stranded) > 0 {
			fmt.Fprintf(w, "%d  %s <- %s\n", i+1, s.Warn("no place"), strings.Join(c.Stranded, ", "))
		}
	}
}

func (r *report) total(w io.Writer, s terminal.Style) {
	x := r.Summary
	took := ""
	if t := x.Seconds; t != nil {
		took = "   planned in " + terminal.Duration(time.Duration((t.Compile+t.Rank+t.Plan)*float64(time.Second)))
	}
	cost, unknown := terminal.Dollars(x.PricePerHour)+"/h", ""
	if x.Unpriced > 0 {
		unknown = fmt.Sprintf("  without %s of unknown price", terminal.Plural(x.Unpriced, "node"))
	}
	if x.Unpriced == x.Nodes && x.Nodes > 0 {
		cost, unknown = "?/h", ""
	}
	if len(r.Commands) == 0 {
		why := "no change pays"
		if len(r.Verdicts) > 0 && !slices.ContainsFunc(r.Verdicts, func(v verdict) bool { return v.Verdict != string(giveback.NotAsked) }) {
			why = "no requested method applies"
		}
		fmt.Fprintf(w, "%s: %s at %s, and %s%s\n", s.Bold("nothing to give back"), terminal.Plural(x.Nodes, "node"), cost+unknown, why, took)
		return
	}
	saved := x.PricePerHour - x.PricePerHourAfter
	less := fmt.Sprintf("%.1f%% less, %s a month", 100*saved/max(x.PricePerHour, 1e-9), terminal.Dollars(saved*hoursPerMonth))
	if saved < 0 {
		less = fmt.Sprintf("%s an hour more", terminal.Dollars(-saved))
	}
	after := terminal.Dollars(x.PricePerHourAfter)
	if slices.ContainsFunc(r.Commands, func(c change) bool { return c.Unpriced }) {
		after, less = "?", "the saving is not known"
	}
	stranded := ""
	switch {
	case x.Stranded == 1:
		stranded = ", " + s.Warn("1 pod loses its place")
	case x.Stranded > 1:
		stranded = ", " + s.Warn(fmt.Sprintf("%d pods lose their places", x.Stranded))
	}
	fmt.Fprintf(w, "\n%d -> %s  %s -> %s/h  (%s)  %s move%s%s%s%s\n", x.Nodes, s.Bold(terminal.Plural(x.NodesAfter, "node")), cost,
		s.Bold(after), s.Good(less), terminal.Plural(x.Evictions, "pod"), third(x.Evictions), stranded, unknown, took)
}

func third(n int) string {
	if n == 1 {
		return "s"
	}
	return ""
}

// order is that in which verdicts are shown: what people can do something about first.
func order() []string {
	return []string{"blocked", "budget", "outranked", "would-not-fit", "no-saving", "not-asked"}
}

func (r *report) verdicts(w io.Writer, s terminal.Style) error {
	var stay []verdict
	for _, v := range r.Verdicts {
		if v.Verdict != "chosen" {
			stay = append(stay, v)
		}
	}
	if len(stay) == 0 {
		return nil
	}
	slices.SortStableFunc(stay, func(a, b verdict) int {
		return cmp.Or(cmp.Compare(slices.Index(order(), a.Verdict), slices.Index(order(), b.Verdict)), strings.Compare(a.Node, b.Node))
	})
	fmt.Fprintln(w)
	t := terminal.NewTable(s, "STAYS", ">PRICE/H", ">COST", "VERDICT", "WHY")
	for _, v := range stay {
		why := []string{v.Detail}
		if len(v.By) > 0 {
			why = v.By
		}
		why = slices.Concat(why, v.Notes)
		price := "?"
		if v.PricePerHour > 0 {
			price = terminal.Dollars(v.PricePerHour)
		}
		word := s.Dim(v.Verdict)
		if v.Verdict == "blocked" || v.Verdict == "budget" {
			word = s.Warn(v.Verdict)
		}
		for i, text := range why {
			if i == 0 {
				t.Row(v.Node, price, fmt.Sprintf("%.1f", v.DisruptionCost), word, text)
			} else {
				t.Row("", "", "", "", text)
			}
		}
	}
	return t.Write(w)
}
