package picture

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
)

// Chart is lines with a common horizontal axis.
type Chart struct {
	Title string
	// X is the label of the horizontal axis. Ticks are its marks; nil means that numbers are
	// chosen.
	X     string
	Ticks []Tick
	Lines []Line
	// Steps says that a value holds until the next point, as a cost does. Otherwise points are
	// joined and marked.
	Steps bool
}

// Tick is a mark of an axis.
type Tick struct {
	At    float64
	Label string
}

// Line is one line of a chart, from left to right.
type Line struct {
	Name   string
	Points []Point
}

// Point is a point of a line.
type Point struct{ X, Y float64 }

// The size of a chart, in units of its view box.
const (
	chartWidth, chartHeight        = 480.0, 260.0
	chartLeft, chartRight          = 52.0, 12.0
	chartTop, chartBottom, perLine = 44.0, 36.0, 150.0
)

// stroke is a colour that can be distinguished on white and on black, also by colour-blind readers,
// plus dashes, so that lines on top of each other can both be seen.
type stroke struct{ colour, dashes string }

func strokes() []stroke {
	return []stroke{{"#888888", "none"}, {"#d1495b", "10 3"}, {"#0a8bb0", "none"}, {"#d98e04", "6 4"}, {"#9b5fc0", "3 6"}}
}

// SVG draws the chart. Both axes begin at 0, or at the smallest value if that is negative. With
// Steps the horizontal axis begins at the first point.
func (c Chart) SVG() template.HTML {
	lowX, highX, highY := math.Inf(1), math.Inf(-1), 0.0
	for _, l := range c.Lines {
		for _, p := range l.Points {
			lowX, highX, highY = math.Min(lowX, p.X), math.Max(highX, p.X), math.Max(highY, p.Y)
		}
	}
	if !c.Steps {
		lowX = math.Min(lowX, 0)
	}
	top, rows := chartTop, 0
	if len(c.Lines) > 1 {
		rows = (len(c.Lines) + 2) / 3
		top += float64(16 * rows)
	}
	highY = nice(highY)
	base := chartHeight - chartBottom
	x := func(v float64) float64 {
		return chartLeft + (chartWidth-chartLeft-chartRight)*(v-lowX)/math.Max(highX-lowX, 1e-9)
	}
	y := func(v float64) float64 { return base - (base-top)*v/highY }

	var d drawing
	d.f(`<text x="%g" y="16" class="strong">%s</text>`, chartLeft, escape(c.Title))
	for i, l := range c.Lines {
		if rows == 0 {
			break
		}
		s, at, down := strokes()[i%len(strokes())], chartLeft+float64(i%3)*perLine*0.93, 34+16*float64(i/3)
		d.f(`<path class="plot" stroke="%s" stroke-dasharray="%s" d="M%g %gh24"/><text x="%g" y="%g" class="small">%s</text>`, s.colour, s.dashes, at, down, at+30, down+4, escape(l.Name))
	}
	for k := range 5 {
		v := highY * float64(k) / 4
		d.f(`<path class="grid" d="M%g %.1fH%g"/><text x="%g" y="%.1f" class="dim" text-anchor="end">%s</text>`, chartLeft, y(v), chartWidth-chartRight, chartLeft-6, y(v)+4, short(v))
	}
	for _, t := range c.ticks(lowX, highX) {
		d.f(`<text x="%.1f" y="%.1f" class="dim" text-anchor="middle">%s</text>`, x(t.At), base+15, escape(t.Label))
	}
	d.f(`<text x="%g" y="%g" class="dim" text-anchor="end">%s</text>`, chartWidth-chartRight, chartHeight-4, escape(c.X))
	for i, l := range c.Lines {
		s := strokes()[i%len(strokes())]
		if len(c.Lines) == 1 {
			s = strokes()[2]
		}
		d.f(`<path class="plot" stroke="%s" stroke-dasharray="%s" d="`, s.colour, s.dashes)
		for k, p := range l.Points {
			switch {
			case k == 0:
				d.f("M%.1f %.1f", x(p.X), y(p.Y))
			case c.Steps:
				d.f("H%.1fV%.1f", x(p.X), y(p.Y))
			default:
				d.f("L%.1f %.1f", x(p.X), y(p.Y))
			}
		}
		d.f(`"/>`)
		if c.Steps {
			continue
		}
		for _, p := range l.Points {
			d.f(`<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s: %s</title></circle>`, x(p.X), y(p.Y), s.colour, short(p.X), short(p.Y))
		}
	}
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %g %g" class="chart" role="img" aria-label="%s">%s</svg>`, chartWidth, chartHeight, escape(c.Title), d.String())) //nolint:gosec // every text in it is escaped
}

// Drawing writes charts one below the other as an SVG file. The error is the writer's.
func Drawing(w io.Writer, title string, charts ...Chart) error {
	var d drawing
	d.f(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img"><title>%s</title><style>%s</style><rect width="100%%" height="100%%" fill="var(--bg)"/>`,
		chartWidth, chartHeight*float64(len(charts)), escape(title), escape(string(Style)))
	for i, c := range charts {
		d.f("\n"+`<svg y="%g" width="%g" height="%g"><g>%s</g></svg>`, chartHeight*float64(i), chartWidth, chartHeight, c.SVG())
	}
	d.f("\n</svg>\n")
	_, err := io.WriteString(w, d.String())
	return err
}

// ticks returns the marks of the horizontal axis.
func (c Chart) ticks(low, high float64) []Tick {
	if c.Ticks != nil || !(high > low) {
		return c.Ticks
	}
	var out []Tick
	step := nice((high - low) / 5)
	for k := int(math.Ceil(low / step)); float64(k)*step <= high; k++ { // adding steps would not reach 0 exactly
		out = append(out, Tick{float64(k) * step, short(float64(k) * step)})
	}
	return out
}

// short formats a number for an axis.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 3, 64) + "M"
	case a >= 1e4:
		return strconv.FormatFloat(v/1e3, 'g', 3, 64) + "k"
	default:
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
}

// nice returns the next round number.
func nice(v float64) float64 {
	if !(v > 0) {
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
