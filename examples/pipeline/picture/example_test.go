package picture_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/joinery-sdk/joinery/examples/pipeline/picture"
)

// A page of one node, which is one file.
func ExamplePage() {
	n := picture.Node{Name: "node-a", Type: "m5.large", CPU: 2000, Memory: 8 << 30, Pods: []picture.Pod{{App: "web", CPU: 1500, Memory: 1 << 30}}}
	p := picture.Page{Title: "One node", Sections: []picture.Section{{Title: "Now", Nodes: []picture.Node{n}}}}
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Contains(out.String(), "web × 1"), strings.Contains(out.String(), "http"))
	// Output: true false
}

// The same app has the same colour wherever it is drawn.
func ExampleLegend() {
	for _, e := range picture.Legend([]picture.Node{{Pods: []picture.Pod{{App: "web"}, {App: "db"}, {App: "web"}}}}) {
		fmt.Println(e.HTML())
	}
	// Output:
	// <span><i style="background: hsl(245 60% 52%)"></i>web × 2</span>
	// <span><i style="background: hsl(6 60% 52%)"></i>db × 1</span>
}

// A line over numbers; steps hold until the next point.
func ExampleChart() {
	c := picture.Chart{Title: "Cost", X: "nodes", Lines: []picture.Line{{Points: []picture.Point{{X: 4, Y: 1.2}, {X: 8, Y: 1}}}}}
	fmt.Println(strings.HasPrefix(string(c.SVG()), "<svg"))
	// Output: true
}
