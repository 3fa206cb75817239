package program

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack/frontier"
	"github.com/joinery-sdk/joinery/examples/pipeline/picture"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// draw writes the plan as a page: the cluster before and after, what fewer or smaller nodes would
// cost, and which pods have no place and why.
func (r *report) draw(ctx context.Context, w io.Writer, packed *plan.Plan) error {
	sum := &r.Summary
	page := picture.Page{
		Title:    "Plan of " + terminal.Plural(sum.NewNodes, "new node"),
		Subtitle: strings.Join(append([]string{sum.Prices.List + dated(sum.Prices.Date)}, sum.Notes...), "; "),
		Figures: []picture.Figure{
			{Value: terminal.Count(sum.NewNodes), Label: "new nodes"},
			{Value: terminal.Dollars(sum.PricePerHour), Label: "an hour"},
			{Value: terminal.Dollars(sum.LowerBoundPerHour), Label: "no plan for these pods costs less"},
			{Value: fmt.Sprintf("%d of %d", sum.Scheduled, sum.Pods-sum.Ignored), Label: "pods placed"},
		},
	}
	if r.sample != "" {
		page.Subtitle = "Built-in sample. " + page.Subtitle
	}
	if choices := r.choices(); len(choices) > 0 {
		page.Subtitle += ". " + strings.Join(choices, "; ")
	}
	if len(r.Gangs) > 0 {
		page.Sections = append(page.Sections, r.gangsSection())
	}
	if len(r.Buffers) > 0 {
		page.Sections = append(page.Sections, r.buffersSection())
	}
	var refused picture.Section
	for pods := range r.refusals() {
		n := picture.Notice{Subject: refusedPods(pods), Text: pods[0].Message}
		if pods[0].Fix != nil {
			n.Hint = "verified to help: " + pods[0].Fix.Change
		}
		refused.Notices = append(refused.Notices, n)
	}
	if len(refused.Notices) > 0 {
		refused.Title = "Without a place"
		page.Sections = append(page.Sections, refused)
	}
	var ignored picture.Section
	for _, i := range r.Ignored {
		ignored.Notices = append(ignored.Notices, picture.Notice{Subject: i.Pod, Text: i.Why})
	}
	if len(ignored.Notices) > 0 {
		ignored.Title = "Not ours to place"
		page.Sections = append(page.Sections, ignored)
	}
	before, after := r.nodes(packed)
	if len(before) > 0 {
		page.Sections = append(page.Sections, picture.Section{Title: "Before", Nodes: before})
	}
	page.Sections = append(page.Sections, picture.Section{Title: "After", Note: "Nodes with a dashed edge are to be bought.", Nodes: after})
	trade, err := r.trade(ctx, packed)
	if err != nil {
		return err
	}
	if len(trade.Charts) > 0 {
		page.Sections = append(page.Sections, trade)
	}
	if r.RulesCost != nil {
		page.Sections = append(page.Sections, rulesSection(r.RulesCost))
	}
	if r.Survival != nil {
		page.Sections = append(page.Sections, r.Survival.section())
	}
	return page.Write(w)
}

// nodes are those of the cluster as they are and as the plan leaves them, those to buy last.
func (r *report) nodes(packed *plan.Plan) (before, after []picture.Node) {
	on, running := map[string][]picture.Pod{}, map[string][]*corev1.Pod{}
	for _, p := range r.running {
		running[p.Spec.NodeName] = append(running[p.Spec.NodeName], p)
	}
	for _, b := range packed.Bindings() {
		on[b.Node] = append(on[b.Node], picture.PodOf(b.Pod))
	}
	for i := range packed.Problem.Existing {
		node := packed.Problem.Existing[i].Node
		n := picture.NodeOf(node, running[node.Name])
		before = append(before, n)
		n.Pods = append(slices.Clip(n.Pods), on[n.Name]...)
		after = append(after, n)
	}
	for _, x := range packed.NewNodes() {
		n := picture.NodeOf(x.Node(), x.Pods)
		n.Name, n.State, n.Price = x.Name, picture.Coming, terminal.Dollars(x.PricePerHour)+"/h"
		after = append(after, n)
	}
	return before, after
}

// trade is what the same pods cost on fewer nodes, and on smaller ones.
func (r *report) trade(ctx context.Context, packed *plan.Plan) (picture.Section, error) {
	out := picture.Section{Title: "What else it could cost"}
	points, err := frontier.Of(ctx, *packed.Instance.Problem(), nil)
	if err != nil {
		return out, err
	}
	var fewer, smaller []picture.Point
	for _, p := range points {
		fewer = append(fewer, picture.Point{X: float64(p.Count), Y: p.Objective.Dollars()})
	}
	fewer = append(fewer, picture.Point{X: float64(r.Summary.NewNodes), Y: cmp.Or(r.Summary.ObjectivePerHour, r.Summary.PricePerHour)})
	slices.SortFunc(fewer, func(a, b picture.Point) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Y, b.Y)) })
	fewer = slices.CompactFunc(fewer, func(a, b picture.Point) bool { return a.X == b.X }) // the cheapest of so many nodes
	var sizes []picture.Tick
	for _, p := range r.curve {
		if p.placed == r.Summary.Scheduled {
			x := math.Log2(float64(p.maxCPU))
			smaller = append(smaller, picture.Point{X: x, Y: p.price})
			sizes = append(sizes, picture.Tick{At: x, Label: strconv.FormatInt(p.maxCPU, 10)})
		}
	}
	if len(fewer) > 1 {
		out.Charts = append(out.Charts, picture.Chart{Title: "Dollars an hour by number of nodes", X: "new nodes", Lines: []picture.Line{{Points: fewer}}})
	}
	if len(smaller) > 1 {
		out.Charts = append(out.Charts, picture.Chart{Title: "Dollars an hour by size of nodes", X: "vCPUs of the largest", Ticks: sizes, Lines: []picture.Line{{Points: smaller}}})
	}
	return out, nil
}

// gangsSection is a notice for each group. What the waiting ones lack is said of their pods.
func (r *report) gangsSection() picture.Section {
	out := picture.Section{Title: "Groups that run only together"}
	for _, g := range r.Gangs {
		n := picture.Notice{Subject: g.Name, Text: podsOf(g)}
		if g.Placed > 0 {
			n.Text += fmt.Sprintf(" on %s, %s of them to be bought for %s/h", terminal.Plural(len(g.Nodes), "node"), terminal.Count(g.NewNodes), terminal.Dollars(g.PricePerHour))
			where := "nodes that hold it"
			if g.Key != "" {
				n.Text += fmt.Sprintf(", all in %s %s", g.Key, g.Domain)
				if where += " in one " + g.Key; g.Values > 1 {
					where = fmt.Sprintf("nodes that hold it in %d values of %s", g.Values, g.Key)
				}
			}
			n.Hint = fmt.Sprintf("no %s cost less than %s/h", where, terminal.Dollars(g.LowerBoundPerHour))
		}
		out.Notices = append(out.Notices, n)
	}
	return out
}

// buffersSection is a notice for each CapacityBuffer: how many of its pods fit, and what that
// takes.
func (r *report) buffersSection() picture.Section {
	out := picture.Section{Title: "Room for more pods"}
	for i := range r.Buffers {
		b := &r.Buffers[i]
		n := picture.Notice{Subject: b.Buffer, Text: fmt.Sprintf("%d of %s fit now", b.Existing, terminal.Plural(b.Existing+b.New+b.Waiting, "pod"))}
		if b.New > 0 {
			n.Text += fmt.Sprintf(", %d more with %s for %s/h", b.New, terminal.Plural(len(b.Nodes), "new node"), terminal.Dollars(b.PricePerHour))
			n.Hint = fmt.Sprintf("no nodes for them cost less than %s/h", terminal.Dollars(b.LowerBoundPerHour))
		}
		if b.Waiting > 0 || b.Existing+b.New == 0 {
			n.Hint = b.Message
		}
		out.Notices = append(out.Notices, n)
	}
	return out
}
