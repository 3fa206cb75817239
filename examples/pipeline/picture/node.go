package picture

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
)

// State says whether a node stays.
type State string

// States. The zero value is an existing node that stays.
const (
	Coming State = "coming"
	Going  State = "going"
)

// Node is a node and the pods that run on it.
type Node struct {
	// Name, Type, Where and Price are written on the node. Pool and Why are shown on hover.
	Name, Type, Where, Price string
	Pool, Why                string
	State                    State
	// CPU (in thousandths) and Memory (in bytes) are what pods may use of the node.
	CPU, Memory int64
	Pods        []Pod
}

// Pod is a pod on a node, with its requests in the units of [Node]. Pods of the same app have the
// same colour.
type Pod struct {
	App         string
	CPU, Memory int64
}

// The size of a node, in units of its view box.
const (
	nodeWidth   = 200
	margin      = 9
	square, gap = 9, 2
	perRow      = (nodeWidth - 2*margin + gap) / (square + gap)
	mostRows    = 8
)

// SVG draws the node: a bar for each resource, divided by app, and a square for each pod.
func (n Node) SVG() template.HTML {
	pods := slices.Clone(n.Pods)
	slices.SortStableFunc(pods, func(a, b Pod) int { return strings.Compare(a.App, b.App) })
	var d drawing
	y := 18
	d.text(margin, y, "strong", cut(n.Type, 20))
	d.f(`<text x="%d" y="%d" class="dim" text-anchor="end">%s</text>`, nodeWidth-margin, y, escape(n.Price))
	for class, line := range pairs("dim", cut(n.Name, 32), "dim", cut(n.Where, 32), "state", string(n.State)) {
		if line != "" && line != n.Type {
			y += 15
			d.text(margin, y, class, line)
		}
	}
	cpu := n.bar(&d, y+7, "cpu", n.CPU, pods, func(p *Pod) int64 { return p.CPU })
	memory := n.bar(&d, y+16, "memory", n.Memory, pods, func(p *Pod) int64 { return p.Memory })
	y += 29
	shown := min(len(pods), perRow*mostRows)
	for i, p := range pods[:shown] {
		d.f(`<rect x="%d" y="%d" width="%d" height="%d" rx="2" fill="%s"><title>%s</title></rect>`,
			margin+i%perRow*(square+gap), y+i/perRow*(square+gap), square, square, Colour(p.App), escape(p.App))
	}
	y += (shown + perRow - 1) / perRow * (square + gap)
	if more := len(pods) - shown; more > 0 {
		y += 12
		d.text(margin, y, "dim", fmt.Sprintf("and %d more", more))
	}
	height := y + 7
	lines := []string{n.Name, n.Pool, n.Type, n.Where, fmt.Sprintf("cpu %s, memory %s, %s", cpu, memory, terminal.Plural(len(pods), "pod")), n.Why}
	said := strings.Join(slices.DeleteFunc(lines, func(s string) bool { return s == "" }), "\n")
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %d %d" class="node %s" role="img"><title>%s</title><rect class="card" x=".5" y=".5" width="%d" height="%d" rx="6"/>%s</svg>`, //nolint:gosec // every text in it is escaped
		nodeWidth, height, n.State, escape(said), nodeWidth-1, height-1, d.String()))
}

// bar draws the apps' shares of a resource and returns the percentage in use.
func (n Node) bar(d *drawing, y int, what string, room int64, pods []Pod, amount func(*Pod) int64) string {
	const width = nodeWidth - 2*margin
	d.f(`<rect class="room" x="%d" y="%d" width="%d" height="6" rx="2"/>`, margin, y, width)
	if room <= 0 {
		return terminal.Percent(0)
	}
	at, sum := 0.0, int64(0)
	for i := 0; i < len(pods); {
		app, has := pods[i].App, int64(0)
		for ; i < len(pods) && pods[i].App == app; i++ {
			has += amount(&pods[i])
		}
		sum += has
		wide := min(width*float64(has)/float64(room), width-at)
		if wide > 0 {
			d.f(`<rect x="%.1f" y="%d" width="%.1f" height="6" fill="%s"><title>%s: %s of the %s</title></rect>`, margin+at, y, wide, Colour(app), escape(app), terminal.Percent(float64(has)/float64(room)), what)
		}
		at += wide
	}
	return terminal.Percent(float64(sum) / float64(room))
}

// Entry is an app in a legend.
type Entry struct {
	App  string
	Pods int
}

// HTML returns the entry as shown in legends: a square in the app's colour, its name and its number
// of pods.
func (e Entry) HTML() template.HTML {
	return template.HTML(fmt.Sprintf(`<span><i style="background: %s"></i>%s × %d</span>`, Colour(e.App), escape(e.App), e.Pods)) //nolint:gosec // the name is escaped
}

// legendLength is how many apps a legend names; the rest are one entry.
const legendLength = 24

// Legend returns the apps of the nodes, those with the most pods first.
func Legend(nodes []Node) []Entry {
	count := map[string]int{}
	for i := range nodes {
		for _, p := range nodes[i].Pods {
			count[p.App]++
		}
	}
	var out []Entry
	for _, app := range slices.Sorted(maps.Keys(count)) {
		out = append(out, Entry{app, count[app]})
	}
	slices.SortStableFunc(out, func(a, b Entry) int { return cmp.Compare(b.Pods, a.Pods) })
	if len(out) > legendLength {
		rest := Entry{App: fmt.Sprintf("%d other apps", len(out)-legendLength)}
		for _, e := range out[legendLength:] {
			rest.Pods += e.Pods
		}
		out = append(out[:legendLength:legendLength], rest)
	}
	return out
}

// Colour returns the colour of an app, the same on every page.
func Colour(app string) string {
	h := 0
	for _, c := range app {
		h = (h*31 + int(c)) % 9973
	}
	return fmt.Sprintf("hsl(%d 60%% 52%%)", h*137%360)
}
