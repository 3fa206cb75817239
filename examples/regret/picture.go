package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/joinery-sdk/joinery/examples/pipeline/picture"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
)

// draw writes the report as a page: the bills hour by hour, and the decisions.
func (r *report) draw(w io.Writer, sample bool) error {
	sum := &r.Summary
	page := picture.Page{
		Title: "What the past could have cost", Subtitle: span(sum.From, sum.To) + " UTC, " + r.dated(),
		Figures: []picture.Figure{
			{Value: terminal.Dollars(sum.Paid), Label: "paid"},
			{Value: terminal.Dollars(sum.Policy), Label: "our policy (" + percent(sum.Policy, sum.Paid) + ")"},
			{Value: terminal.Dollars(sum.BoundPresent), Label: "at least, knowing the present"},
			{Value: terminal.Dollars(sum.Bound), Label: "at least, knowing the future"},
			{Value: terminal.Count(sum.Evictions), Label: "evictions of our policy"},
		},
	}
	if sample {
		page.Subtitle = "Built-in sample. " + page.Subtitle
	}
	if sum.NoPods {
		page.Figures = page.Figures[:1]
	} else if sum.BoundPresent == sum.Bound {
		page.Figures = slices.Delete(page.Figures, 2, 3)
		page.Figures[2].Label = "at least, under any policy"
	}
	page.Sections = append(page.Sections, picture.Section{Title: "Hour by hour", Charts: r.charts()})
	list := picture.Section{Title: "What cost most", Note: "Each was planned again, with all other nodes and pods as they were."}
	for i := range r.Decisions {
		d := &r.Decisions[i]
		n := picture.Notice{Subject: terminal.Dollars(d.Regret) + "  " + d.Node, Text: fmt.Sprintf("%s in %s, %s, from %s for %.1f hours, %.0f%% used: paid %s, our policy %s, bound %s", d.InstanceType, d.Zone, d.CapacityType,
			d.From.Format("15:04"), d.To.Sub(d.From).Hours(), d.UsedPercent, terminal.Dollars(d.Paid), terminal.Dollars(d.Policy), terminal.Dollars(d.Bound)), Hint: d.what()}
		if d.Node == "" {
			n.Text, n.Hint = d.what(), ""
		}
		list.Notices = append(list.Notices, n)
	}
	if len(list.Notices) > 0 {
		list.Notices = append(list.Notices, picture.Notice{Subject: "all others", Text: r.others() + ", together"})
		page.Sections = append(page.Sections, list)
	}
	if len(r.Notes) > 0 {
		notes := picture.Section{Title: "What is not in these figures"}
		for _, n := range r.Notes {
			notes.Notices = append(notes.Notices, picture.Notice{Subject: "note", Text: n})
		}
		page.Sections = append(page.Sections, notes)
	}
	return page.Write(w)
}

// charts are the bills an hour, and what was paid beyond our policy and the bound up to each hour.
func (r *report) charts() []picture.Chart {
	names := []string{"paid", "our policy", "bound", "bound now"}
	if r.Summary.NoPods {
		names = names[:1]
	} else if r.Summary.BoundPresent == r.Summary.Bound { // one line would lie on the other
		names = names[:3]
	}
	rates := picture.Chart{Title: "Dollars an hour", X: "time (UTC)", Steps: true}
	more := picture.Chart{Title: "Dollars above the bound so far", X: "time (UTC)", Steps: true}
	for k, name := range names {
		of := func(b bill) float64 { return []float64{b.Paid, b.Policy, b.Bound, b.BoundPresent}[k] }
		line, above := picture.Line{Name: name}, picture.Line{Name: name}
		sofar := 0.0
		for i, h := range r.Hours {
			rate := of(h.bill) * 3600 / float64(max(h.Seconds, 1))
			x, end := float64(h.From.Unix()), float64(h.From.Unix()+h.Seconds)
			line.Points = append(line.Points, picture.Point{X: x, Y: rate})
			above.Points = append(above.Points, picture.Point{X: x, Y: sofar})
			sofar += of(h.bill) - h.Bound
			if i+1 == len(r.Hours) {
				line.Points = append(line.Points, picture.Point{X: end, Y: rate})
				above.Points = append(above.Points, picture.Point{X: end, Y: sofar})
			}
		}
		rates.Lines = append(rates.Lines, line)
		if k < 2 {
			more.Lines = append(more.Lines, above)
		}
	}
	rates.Ticks = r.ticks()
	more.Ticks = rates.Ticks
	if r.Summary.NoPods {
		return []picture.Chart{rates}
	}
	return []picture.Chart{rates, more}
}

// ticks are at most eight, at full hours.
func (r *report) ticks() []picture.Tick {
	const most = 8
	var out []picture.Tick
	hours := int(r.Summary.To.Sub(r.Summary.From).Hours()) + 1
	step := time.Duration((hours+most-1)/most) * time.Hour
	format := "15:04"
	if hours > 48 {
		format = "01-02 15h"
	}
	for t := r.Summary.From.Truncate(time.Hour); !t.After(r.Summary.To); t = t.Add(step) {
		if !t.Before(r.Summary.From) {
			out = append(out, picture.Tick{At: float64(t.Unix()), Label: t.Format(format)})
		}
	}
	return out
}
