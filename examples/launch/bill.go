package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/purchase"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/report"
)

// bill is a purchase, or a plan that still needs agreement.
type bill struct {
	purchase.Report
	Launched []launchedNode `json:"launched"`
}

// launchedNode is a node that was bought.
type launchedNode struct {
	Name     string `json:"name"`
	Instance string `json:"instance"`
	Image    string `json:"image"`
}

func planned(market *pipeline.Market, packed *plan.Plan) *bill {
	r := report.Of(packed)
	r.Summary.Prices, r.Summary.Notes = report.Prices{List: market.List, Date: market.Date}, slices.Concat(r.Summary.Notes, market.Notes)
	return &bill{Report: purchase.Report{Report: r}}
}

func billOf(market *pipeline.Market, bought *pipeline.Purchase) *bill {
	b := &bill{Report: purchase.Of(market, bought), Launched: []launchedNode{}}
	for _, n := range purchase.Nodes(bought) {
		b.Launched = append(b.Launched, launchedNode{n.Name, n.Launch.ID, n.Launch.ImageID})
	}
	return b
}

const hoursPerMonth = 730

// write draws the bill for people: the nodes with their instances once they have them, the total,
// what was refused, and pods without a node.
func (b *bill) write(w io.Writer, style terminal.Style) error {
	s := &b.Summary
	fmt.Fprintf(w, "%s   %s\n", terminal.Plural(s.Pods, "pending pod"), style.Dim(s.Prices.List+" of "+cmp.Or(s.Prices.Date, "today")))
	for _, n := range s.Notes {
		fmt.Fprintln(w, style.Dim("note: "+n))
	}
	fmt.Fprintln(w)
	if len(b.NewNodes) > 0 {
		if err := b.writeNodes(w, style); err != nil {
			return err
		}
	}
	placed := fmt.Sprintf("%s of %s placed", terminal.Count(s.Scheduled), terminal.Plural(s.Scheduled+s.Unschedulable, "pod"))
	if s.Unschedulable > 0 {
		placed = style.Bad(placed)
	}
	fmt.Fprintf(w, "%s   %s/h   %s/month   no plan for these pods costs less than %s/h (gap %.1f%%)   %s\n", style.Bold(terminal.Plural(s.NewNodes, "new node")),
		terminal.Dollars(s.PricePerHour), terminal.Dollars(s.PricePerHour*hoursPerMonth), terminal.Dollars(s.LowerBoundPerHour), s.GapPercent, placed)
	if s.Plans > 0 {
		if err := b.WriteRefused(w, style); err != nil {
			return err
		}
	}
	b.writeUnplaced(w, style)
	return nil
}

func (b *bill) writeNodes(w io.Writer, style terminal.Style) error {
	header := []string{"NODE", "POOL", "TYPE", "ZONE", "CAPACITY", ">PRICE/H", ">PODS"}
	if b.Launched != nil {
		header = append(header, "INSTANCE", "IMAGE")
	}
	t := terminal.NewTable(style, header...)
	for i, n := range b.NewNodes {
		row := []string{n.Name, n.NodePool, n.InstanceType, n.Zone, n.CapacityType, terminal.Dollars(n.PricePerHour), terminal.Count(len(n.Pods))}
		if b.Launched != nil {
			row = append(row, b.Launched[i].Instance, b.Launched[i].Image)
		}
		t.Row(row...)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// writeUnplaced names the pods without a node, those with the same reason in one line.
func (b *bill) writeUnplaced(w io.Writer, style terminal.Style) {
	for i := 0; i < len(b.Unschedulable); {
		j := i + 1
		for j < len(b.Unschedulable) && b.Unschedulable[j].Message == b.Unschedulable[i].Message {
			j++
		}
		name := b.Unschedulable[i].Pod
		if j-i > 1 {
			name = fmt.Sprintf("%s and %s", name, terminal.Plural(j-i-1, "other pod"))
		}
		fmt.Fprintf(w, "\n%s can't be placed: %s\n  provision says more: which pools and types it tried, and what would help\n", style.Bad(name), b.Unschedulable[i].Message)
		i = j
	}
	for _, x := range b.Ignored {
		fmt.Fprintln(w, style.Dim(fmt.Sprintf("%s is not ours to place: %s", x.Pod, x.Why)))
	}
}
