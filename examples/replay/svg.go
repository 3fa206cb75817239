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
	left, right, top = 70.0, 20.0, 40.0
	chart, gap       = 220.0, 60.0
)

func colours() []string { return []string{"#888888", "#d1495b", "#00798c", "#edae49", "#66a182"} }

// draw draws price and evictions over the day, one line for each regime.
func draw(w io.Writer, list []outcome) error {
	f := func(format string, args ...any) { fmt.Fprintf(w, format, args...) }
	f(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12">`+"\n", width, height)
	f(`<rect width="100%%" height="100%%" fill="white"/>` + "\n")
	for i, o := range list {
		x := left + float64(i)*170
		f(`<line x1="%g" y1="18" x2="%g" y2="18" stroke="%s" stroke-width="3"/><text x="%g" y="22">%s: $%.2f</text>`+"\n", x, x+18, colours()[i%5], x+24, o.regime, o.cost)
	}
	panel(f, top, "dollars an hour", list, func(p point) float64 { return p.pricePerHour })
	panel(f, top+chart+gap, "evictions so far", list, func(p point) float64 { return float64(p.evictions) })
	_, err := fmt.Fprintln(w, "</svg>")
	return err
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
		f(`<line x1="%g" y1="%.1f" x2="%g" y2="%.1f" stroke="#dddddd"/><text x="%g" y="%.1f" text-anchor="end">%g</text>`+"\n", left, at, width-right, at, left-6, at+4, v)
	}
	for t := from; !t.After(to); t = t.Add(4 * time.Hour) {
		f(`<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x(t), base+16, t.UTC().Format("15:04"))
	}
	for i, o := range list {
		f(`<polyline fill="none" stroke="%s" stroke-width="1.5" points="`, colours()[i%5])
		for _, p := range o.points {
			f("%.1f,%.1f ", x(p.at), base-chart*value(p)/math.Max(most, 1e-9))
		}
		f(`"/>` + "\n")
	}
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
