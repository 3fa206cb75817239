package picture_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/picture"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
)

// wellFormed reads a drawing as XML and gives its texts.
func wellFormed(t *testing.T, svg string) string {
	t.Helper()
	var text strings.Builder
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		require.NoError(t, err, svg)
		if chars, ok := token.(xml.CharData); ok {
			text.Write(chars)
		}
	}
}

func node(apps ...string) picture.Node {
	n := picture.Node{Name: "node-a", Type: "m5.large", CPU: 2000, Memory: 8 << 30}
	for _, app := range apps {
		n.Pods = append(n.Pods, picture.Pod{App: app, CPU: 500, Memory: 1 << 30})
	}
	return n
}

func TestNode(t *testing.T) {
	svg := string(node("web", "db", "web").SVG())
	assert.Contains(t, wellFormed(t, svg), "cpu 75%, memory 38%, 3 pods")
	assert.Equal(t, 3, strings.Count(svg, `width="9"`), "a square for each pod")
	assert.Contains(t, svg, "<title>web: 50% of the cpu</title>")
	assert.Less(t, strings.Index(svg, "db: 25% of the cpu"), strings.Index(svg, "web: 50% of the cpu"), "apps stand in the order of their names")
}

// Names are whatever users write.
func TestNamesAreEscaped(t *testing.T) {
	evil := `<script>alert("&')</script>`
	n := node(evil)
	n.Name, n.Type, n.Where, n.Price, n.Pool, n.Why = evil, evil, evil, evil, evil, evil
	c := picture.Chart{Title: evil, X: evil, Ticks: []picture.Tick{{Label: evil}}, Lines: []picture.Line{{Name: evil, Points: []picture.Point{{X: 1, Y: 1}}}, {Name: evil}}}
	var out bytes.Buffer
	page := picture.Page{Title: evil, Subtitle: evil, Figures: []picture.Figure{{Value: evil, Label: evil}}, Sections: []picture.Section{
		{Title: evil, Note: evil, Notices: []picture.Notice{{Subject: evil, Text: evil, Hint: evil}}, Nodes: []picture.Node{n}, Charts: []picture.Chart{c}},
	}}
	require.NoError(t, page.Write(&out))
	assert.NotContains(t, out.String(), "<script")
	assert.NotContains(t, out.String(), "ZgotmplZ", "nothing was taken for unsafe and left out")
	wellFormed(t, string(n.SVG()))
	wellFormed(t, string(c.SVG()))
	out.Reset()
	require.NoError(t, picture.Drawing(&out, evil, c, c))
	assert.NotContains(t, wellFormed(t, out.String()), "</svg>")
}

// However much there is on a node, it is drawn, and in bounds.
func TestManyPods(t *testing.T) {
	n := node()
	for i := range 1000 {
		n.Pods = append(n.Pods, picture.Pod{App: fmt.Sprintf("app-%d", i%40), CPU: 500})
	}
	text := wellFormed(t, string(n.SVG()))
	assert.Contains(t, text, "and 872 more")
	assert.Contains(t, text, "cpu 25000%")
	legend := picture.Legend([]picture.Node{n, n})
	assert.Len(t, legend, 25)
	assert.Equal(t, picture.Entry{App: "16 other apps", Pods: 800}, legend[24])
	for _, nothing := range []picture.Node{{}, {Pods: []picture.Pod{{App: "a", CPU: 1}}}} {
		assert.Contains(t, wellFormed(t, string(nothing.SVG())), "cpu 0%")
	}
}

// A page shows the percentages of a table, which are rounded, and one pod is "1 pod".
func TestPercentagesAreThoseOfTables(t *testing.T) {
	n := picture.Node{Name: "n", CPU: 1000, Memory: 1000, Pods: []picture.Pod{{App: "web", CPU: 996, Memory: 994}}}
	text := wellFormed(t, string(n.SVG()))
	assert.Contains(t, text, "cpu "+terminal.Percent(0.996)+", memory "+terminal.Percent(0.994)+", 1 podnweb:")
	assert.Contains(t, text, "cpu 100%, memory 99%")
	assert.Contains(t, text, "web: 100% of the cpu")
}

func TestChart(t *testing.T) {
	svg := string(picture.Chart{Title: "cost", Lines: []picture.Line{{Points: []picture.Point{{X: 10, Y: 3}, {X: 20, Y: 2}}}}}.SVG())
	wellFormed(t, svg)
	assert.Equal(t, 2, strings.Count(svg, "<circle"))
	assert.Contains(t, svg, ">4</text>", "the axis ends at a round number")
	steps := string(picture.Chart{Steps: true, Lines: []picture.Line{{Name: "a", Points: []picture.Point{{X: 10, Y: 3}, {X: 20, Y: 2}}}, {Name: "b"}}}.SVG())
	assert.Zero(t, strings.Count(steps, "<circle"))
	assert.Equal(t, 4, strings.Count(steps, `class="plot"`), "two lines, each in the legend")
	assert.Contains(t, string(picture.Chart{Steps: true, Lines: []picture.Line{{Points: []picture.Point{{X: -0.65, Y: 1}, {X: 0, Y: 2}}}}}.SVG()), ">0</text><text", "0 is 0")
	for _, c := range []picture.Chart{{}, {Lines: []picture.Line{{Points: []picture.Point{{X: 5, Y: 0}}}}}, {Steps: true, Lines: []picture.Line{{Points: []picture.Point{{X: 5, Y: 1e7}}}}}} {
		assert.NotContains(t, string(c.SVG()), "NaN")
		wellFormed(t, string(c.SVG()))
	}
}

func TestObjects(t *testing.T) {
	pod := func(labels map[string]string, owner string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x-1", Labels: labels}}
		if owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Name: owner}}
		}
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("1Mi")}}}}
		return p
	}
	for want, p := range map[string]*corev1.Pod{
		"x-1": pod(nil, ""), "set": pod(nil, "set"), "web": pod(map[string]string{"app": "web"}, "set"), "shop": pod(map[string]string{"app": "web", "app.kubernetes.io/name": "shop"}, ""),
	} {
		assert.Equal(t, picture.Pod{App: want, CPU: 250, Memory: 1 << 20}, picture.PodOf(p))
	}
	ended := pod(nil, "")
	ended.Status.Phase = corev1.PodSucceeded
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"topology.kubernetes.io/zone": "z1", "karpenter.sh/nodepool": "p"}}}
	n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")}
	got := picture.NodeOf(n, []*corev1.Pod{ended, pod(nil, "")})
	assert.Equal(t, picture.Node{Name: "n", Type: "n", Where: "z1", Pool: "p", CPU: 2000, Memory: 4 << 30, Pods: []picture.Pod{{App: "x-1", CPU: 250, Memory: 1 << 20}}}, got)
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteSaysWhatFails(t *testing.T) {
	require.ErrorContains(t, new(picture.Page).Write(broken{}), "disk full")
	require.ErrorContains(t, picture.Drawing(broken{}, ""), "disk full")
}
