package main

import (
	"fmt"
	"io"
	"math"
	"time"
)

// The size of the drawing, and of what stands around the charts.
const (
	width, height    = 960.0, 620.0
	left, right, top = 70.0, 40.0, 40.0
	chart, gap       = 220.0, 60.0
)

// line is how a regime is drawn: a colour that can be told from the others on white and on black, and by those who do not see
// colours; and dashes, so that lines which lie on each other can both be seen.
type line struct{ colour, dashes string }

func lines() []line {
	return []line{{"#888888", ""}, {"#d1495b", "10 3"}, {"#0a8bb0", ""}, {"#d98e04", "6 4"}, {"#9b5fc0", "3 6"}}
}

const style = `<style>
.back { fill: #ffffff } .grid { stroke: #dddddd } text { fill: #222222 }
@media (prefers-color-scheme: dark) { .back { fill: #181a1b } .grid { stroke: #3a3d3f } text { fill: #e8e6e3 } }
</style>`

// draw draws price and evictions over the day, one line for each regime.
func draw(w io.Writer, list []outcome) error {
	f := func(format string, args ...any) { fmt.Fprintf(w, format, args...) }
	f(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12" role="img">`+"\n", width, height)
	f("<title>Price and evictions over the day</title>\n%s\n", style)
	f(`<rect class="back" width="100%%" height="100%%"/>` + "\n")
	for i, o := range list {
		x, l := left+float64(i)*(width-left-right)/float64(len(list)), lines()[i%len(lines())]
		f(`<line x1="%g" y1="18" x2="%g" y2="18" %s/><text x="%g" y="22">%s: $%.2f</text>`+"\n", x, x+30, stroke(l, 3), x+36, o.regime, o.cost)
	}
	panel(f, top, "dollars an hour", list, func(p point) float64 { return p.pricePerHour })
	panel(f, top+chart+gap, "evictions so far", list, func(p point) float64 { return float64(p.evictions) })
	_, err := fmt.Fprintln(w, "</svg>")
	return err
}

func stroke(l line, width float64) string {
	text := fmt.Sprintf(`stroke="%s" stroke-width="%g"`, l.colour, width)
	if l.dashes != "" {
		text += fmt.Sprintf(` stroke-dasharray="%s"`, l.dashes)
	}
	return text
}

func panel(f func(string, ...any), y float64, title string, list []outcome, value func(point) float64) {
	most := 0.0
	for _, o := range list {
		for _, p := range o.points {
			most = math.Max(most, value(p))
		}
	}
	most = nice(most)
	from, to := list[0].points[0].at, list[0].points[len(list[0].points)-1].at
	x := func(t time.Time) float64 {
		return left + (width-left-right)*float64(t.Sub(from))/math.Max(1, float64(to.Sub(from)))
	}
	f(`<text x="%g" y="%g" font-weight="bold">%s</text>`+"\n", left, y+12, title)
	base := y + 20 + chart
	for k := range 5 {
		v := most * float64(k) / 4
		at := base - chart*float64(k)/4
		f(`<line class="grid" x1="%g" y1="%.1f" x2="%g" y2="%.1f"/><text x="%g" y="%.1f" text-anchor="end">%g</text>`+"\n", left, at, width-right, at, left-6, at+4, v)
	}
	for t, step := from, every(to.Sub(from)); !t.After(to); t = t.Add(step) {
		f(`<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x(t), base+16, t.UTC().Format("15:04"))
	}
	for i, o := range list {
		f(`<polyline fill="none" %s points="`, stroke(lines()[i%len(lines())], 1.8))
		for k, p := range o.points { // what holds, holds until the next point
			if k > 0 {
				f("%.1f,%.1f ", x(p.at), base-chart*value(o.points[k-1])/math.Max(most, 1e-9))
			}
			f("%.1f,%.1f ", x(p.at), base-chart*value(p)/math.Max(most, 1e-9))
		}
		f(`"/>` + "\n")
	}
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

// nice is the next round number.
func nice(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 4, 8, 10} {
		if v <= m*unit {
			return m * unit
		}
	}
	return v
}
