package main

import (
	"fmt"
	"io"
	"time"

	"github.com/joinery-sdk/joinery/examples/pipeline/picture"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
)

// charts are price and evictions over the day, one line for each regime.
func charts(list []outcome) []picture.Chart {
	price := picture.Chart{Title: "Dollars an hour", X: "time (UTC)", Steps: true}
	evictions := picture.Chart{Title: "Evictions so far", X: "time (UTC)", Steps: true}
	for _, o := range list {
		var cost, moved []picture.Point
		for _, p := range o.points {
			x := float64(p.at.Unix())
			cost, moved = append(cost, picture.Point{X: x, Y: p.pricePerHour}), append(moved, picture.Point{X: x, Y: float64(p.evictions)})
		}
		price.Lines = append(price.Lines, picture.Line{Name: fmt.Sprintf("%s: $%.2f", o.regime, o.cost), Points: cost})
		evictions.Lines = append(evictions.Lines, picture.Line{Name: fmt.Sprintf("%s: %d", o.regime, o.evictions), Points: moved})
	}
	from, to := list[0].points[0].at, list[0].points[len(list[0].points)-1].at
	for t, step := from, every(to.Sub(from)); !t.After(to); t = t.Add(step) {
		price.Ticks = append(price.Ticks, picture.Tick{At: float64(t.Unix()), Label: t.UTC().Format("15:04")})
	}
	evictions.Ticks = price.Ticks
	return []picture.Chart{price, evictions}
}

// page is the day as a page.
func page(w io.Writer, list []outcome) error {
	p := picture.Page{Title: "A day under several policies", Subtitle: "Costs are for the whole day. Savings are compared with giving back only the nodes that must go."}
	table := picture.Section{}
	for _, o := range list {
		p.Figures = append(p.Figures, picture.Figure{Value: terminal.Dollars(o.cost), Label: o.regime})
		text := fmt.Sprintf("%s, %s launched, %s taken by the cloud; a pod waits %s", terminal.Plural(o.evictions, "eviction"), terminal.Plural(o.launches, "node"), terminal.Count(o.interrupted), terminal.Duration(o.perArrival()))
		if saved := list[0].cost - o.cost; saved > 0.005 {
			text = fmt.Sprintf("%.1f%% saved; ", 100*saved/list[0].cost) + text
		}
		table.Notices = append(table.Notices, picture.Notice{Subject: o.regime, Text: text})
	}
	p.Sections = []picture.Section{table, {Title: "Over the day", Charts: charts(list)}}
	return p.Write(w)
}

// every is how far apart times are written, so that there are at most eight.
func every(day time.Duration) time.Duration {
	for _, step := range []time.Duration{15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour} {
		if day/step < 8 {
			return step
		}
	}
	return 24 * time.Hour * (1 + day/(8*24*time.Hour))
}
