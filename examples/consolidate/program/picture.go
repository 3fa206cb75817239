package program

import (
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/picture"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/scheduling"
)

// scene is what a page needs besides the report.
type scene struct {
	before   scheduling.Snapshot
	commands []giveback.Command
	now      time.Time
}

// draw writes the plan as a page: saving against evictions, the cluster before and after, and why
// the others stay.
func (r *report) draw(w io.Writer, x scene) error {
	sum := &r.Summary
	page := picture.Page{
		Title:    fmt.Sprintf("%s to give back", terminal.Plural(sum.Nodes-sum.NodesAfter, "node")),
		Subtitle: r.dated() + ", at " + r.now.UTC().Format("2006-01-02 15:04"),
		Figures: []picture.Figure{
			{Value: fmt.Sprintf("%d → %d", sum.Nodes, sum.NodesAfter), Label: "nodes"},
			{Value: terminal.Dollars(sum.PricePerHour) + " → " + terminal.Dollars(sum.PricePerHourAfter), Label: "an hour"},
			{Value: terminal.Dollars((sum.PricePerHour - sum.PricePerHourAfter) * hoursPerMonth), Label: "saved a month"},
			{Value: terminal.Count(sum.Evictions), Label: "pods move"},
		},
	}
	if r.sample != "" {
		page.Subtitle = "Built-in sample. " + page.Subtitle
	}
	if len(r.Commands) > 0 {
		page.Sections = append(page.Sections, r.steps())
	}
	if len(r.Frontier) > 1 {
		line := picture.Line{}
		for _, p := range r.Frontier {
			line.Points = append(line.Points, picture.Point{X: float64(p.Evictions), Y: p.SavingsPerHour})
		}
		page.Sections = append(page.Sections, picture.Section{Title: "Saving against evictions", Charts: []picture.Chart{
			{Title: "Dollars saved an hour", X: "pods that move", Lines: []picture.Line{line}},
		}})
	}
	why, price := map[string]string{}, map[string]float64{}
	stays := picture.Section{Title: "Nodes that stay, and why"}
	for _, v := range r.Verdicts {
		why[v.Node], price[v.Node] = v.Detail, v.PricePerHour
		if v.Verdict != string(giveback.Chosen) {
			stays.Notices = append(stays.Notices, picture.Notice{Subject: v.Node, Text: v.Verdict + ": " + v.Detail})
		}
	}
	state := map[string]picture.State{}
	after := x.before
	for i := range x.commands {
		c := &x.commands[i]
		for _, n := range c.Nodes {
			state[n.Name] = picture.Going
		}
		for _, n := range c.NewNodes {
			state[n.Name], price[n.Name] = picture.Coming, n.PricePerHour.Dollars()
		}
		var err error
		if after, err = simulate.Apply(after, c, x.now); err != nil {
			return err
		}
	}
	nodes := func(s scheduling.Snapshot) []picture.Node {
		on := map[string][]*corev1.Pod{}
		for _, p := range s.Pods {
			on[p.Spec.NodeName] = append(on[p.Spec.NodeName], p)
		}
		var out []picture.Node
		for _, node := range s.Nodes {
			n := picture.NodeOf(node, on[node.Name])
			n.State, n.Why = state[n.Name], why[n.Name]
			if p, ok := price[n.Name]; ok {
				n.Price = terminal.Dollars(p) + "/h"
			}
			out = append(out, n)
		}
		return out
	}
	page.Sections = append(page.Sections, picture.Section{Title: "Before", Note: "The marked nodes are given back.", Nodes: nodes(x.before)},
		picture.Section{Title: "After", Note: "Nodes with a dashed edge are to be bought.", Nodes: nodes(after)})
	if r.RulesCost != nil {
		page.Sections = append(page.Sections, rulesSection(r.RulesCost))
	}
	if len(stays.Notices) > 0 {
		page.Sections = append(page.Sections, stays)
	}
	return page.Write(w)
}

// steps are the commands in the order in which they are to be carried out.
func (r *report) steps() picture.Section {
	out := picture.Section{Title: "What to do, in this order"}
	for i, c := range r.Commands {
		n := picture.Notice{
			Subject: fmt.Sprintf("%d. give back %s", i+1, strings.Join(c.Nodes, ", ")),
			Text:    fmt.Sprintf("%s, saves %s/h, %s: %s", c.Method, saved(c), terminal.Plural(len(c.Pods), "pod"), c.Why),
		}
		if len(c.Nodes) == 0 {
			n.Subject = fmt.Sprintf("%d. buy", i+1)
		}
		var buy []string
		for _, x := range c.Replacements {
			buy = append(buy, fmt.Sprintf("%s in %s, %s, for %s/h", x.InstanceType, x.Zone, x.CapacityType, terminal.Dollars(x.PricePerHour)))
		}
		if len(buy) > 0 {
			n.Hint = "buy first: " + strings.Join(buy, "; ")
		}
		out.Notices = append(out.Notices, n)
	}
	return out
}
