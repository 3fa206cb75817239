package program

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/picture"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/survive"
)

// bufferNamespace is where the objects of headroom go.
const bufferNamespace = "default"

// survival is what --survives found, as scripts read it.
type survival struct {
	Holds     bool               `json:"holds"`
	Failures  []rehearsedFailure `json:"failures"`
	Workloads []survivor         `json:"workloads"`
	Headroom  headroom           `json:"headroom"`
}

type rehearsedFailure struct {
	survive.Failure
	Displaced int      `json:"displaced"`
	Ignored   int      `json:"ignored,omitempty"` // those that are not ours to place
	Waiting   []string `json:"waiting"`
	Lost      []string `json:"lost"`
	Why       string   `json:"why,omitempty"`
	// NotOurs are the ignored pods and why they are.
	NotOurs []ignored `json:"notOurs,omitempty"`
}

// survivor is the worst that happens to a workload.
type survivor struct {
	Workload string          `json:"workload"`
	Pods     int             `json:"pods"`
	Waiting  int             `json:"waiting"`
	Lost     int             `json:"lost"`
	Worst    survive.Failure `json:"worst"`
}

type headroom struct {
	Nodes             []spare           `json:"nodes"`
	PricePerHour      float64           `json:"pricePerHour"`
	LowerBoundPerHour float64           `json:"lowerBoundPerHour"`
	Unmet             []survive.Failure `json:"unmet"`
	// Objects are PodTemplates and CapacityBuffers that can be applied.
	Objects []any `json:"objects"`
}

type spare struct {
	Pool         string  `json:"pool"`
	InstanceType string  `json:"instanceType"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	PricePerHour float64 `json:"pricePerHour"`
}

// addSurvival says in the report what the plan would live through, with the nodes that are kept
// free for CapacityBuffers.
func (o *options) addSurvival(ctx context.Context, r *report, packed *plan.Plan, kept []*corev1.Node) error {
	kinds, err := survive.ParseKinds(o.survives)
	if err != nil {
		return err
	}
	by := packed.Options()
	found, err := survive.Of(ctx, packed, &by, kinds, kept...)
	if err != nil {
		return err
	}
	out := &survival{Holds: found.Holds(), Failures: []rehearsedFailure{}, Workloads: []survivor{}}
	for _, f := range found.Failures {
		x := rehearsedFailure{Failure: f.Failure, Displaced: f.Displaced, Ignored: len(f.Ignored), Waiting: namesOfPods(f.Waiting), Lost: namesOfPods(f.Lost), Why: f.Why}
		for _, i := range f.Ignored {
			x.NotOurs = append(x.NotOurs, ignored{Pod: podName(i.Pod), Why: i.Why})
		}
		out.Failures = append(out.Failures, x)
	}
	for _, w := range found.Workloads {
		out.Workloads = append(out.Workloads, survivor{w.Workload, w.Pods, w.Waiting, w.Lost, w.Worst})
	}
	h := &found.Headroom
	out.Headroom = headroom{Nodes: []spare{}, PricePerHour: h.PricePerHour, LowerBoundPerHour: h.LowerBoundPerHour, Unmet: append([]survive.Failure{}, h.Unmet...), Objects: []any{}}
	for i := range h.Spares {
		s := &h.Spares[i]
		out.Headroom.Nodes = append(out.Headroom.Nodes, spare{s.Pool, s.InstanceType, s.Zone, s.CapacityType, s.PricePerHour})
	}
	for _, b := range h.Buffers(bufferNamespace) {
		out.Headroom.Objects = append(out.Headroom.Objects, b.Template, b.Object)
	}
	r.Survival = out
	return nil
}

func namesOfPods(pods []*corev1.Pod) []string {
	out := make([]string, len(pods))
	for i, p := range pods {
		out[i] = podName(p)
	}
	return out
}

func (s *survival) write(out io.Writer, style terminal.Style) error {
	t := terminal.NewTable(style, "LOSS OF", ">DISPLACED", ">WAIT", ">LOST")
	for _, f := range s.Failures {
		t.Row(f.String(), fmt.Sprint(f.Displaced), fmt.Sprint(len(f.Waiting)), fmt.Sprint(len(f.Lost)))
	}
	if err := t.Write(out); err != nil {
		return err
	}
	s.writeReasons(out)
	fmt.Fprintln(out)
	if len(s.Workloads) > 0 {
		t = terminal.NewTable(style, "WORKLOAD", ">PODS", ">WAIT", ">LOST", "AT WORST AFTER THE LOSS OF")
		for _, w := range s.Workloads {
			t.Row(w.Workload, fmt.Sprint(w.Pods), fmt.Sprint(w.Waiting), fmt.Sprint(w.Lost), w.Worst.String())
		}
		if err := t.Write(out); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out, s.verdict())
	for _, i := range s.notOurs() {
		fmt.Fprintf(out, "%s is not ours to place: %s\n", i.Pod, i.Why)
	}
	for _, n := range s.Headroom.Nodes {
		fmt.Fprintf(out, "  %s\n", n)
	}
	if len(s.Headroom.Objects) > 0 {
		fmt.Fprintln(out, "-o yaml prints it as CapacityBuffers, in survival.headroom.objects.")
	}
	return nil
}

// writeReasons says why pods are lost, each reason once, in lines that fit a terminal.
func (s *survival) writeReasons(out io.Writer) {
	var reasons []string
	after := map[string][]string{}
	for _, f := range s.Failures {
		if f.Why == "" {
			continue
		}
		if after[f.Why] == nil {
			reasons = append(reasons, f.Why)
		}
		after[f.Why] = append(after[f.Why], f.String())
	}
	for _, why := range reasons {
		const few = 3
		of := after[why]
		if n := len(of) - few; n > 1 {
			of = append(slices.Clone(of[:few]), fmt.Sprintf("%d more", n))
		}
		fmt.Fprintln(out)
		line := "lost after the loss of"
		for word := range strings.FieldsSeq(strings.Join(of, ", ") + ": " + why) {
			const width = 100
			if len(line)+1+len(word) > width {
				fmt.Fprintln(out, line)
				line = " "
			}
			line += " " + word
		}
		fmt.Fprintln(out, line)
	}
}

func (s spare) String() string {
	return fmt.Sprintf("%s in %s, %s, pool %s, $%.4f/h", s.InstanceType, s.Zone, s.CapacityType, s.Pool, s.PricePerHour)
}

// notOurs returns the pods that some failure displaces and that are not ours to place, each once.
func (s *survival) notOurs() []ignored {
	var out []ignored
	for _, f := range s.Failures {
		out = append(out, f.NotOurs...)
	}
	slices.SortFunc(out, func(a, b ignored) int { return strings.Compare(a.Pod, b.Pod) })
	return slices.CompactFunc(out, func(a, b ignored) bool { return a.Pod == b.Pod })
}

// verdict is the answer in a sentence or two.
func (s *survival) verdict() string {
	lost := 0
	for _, f := range s.Failures {
		lost = max(lost, len(f.Lost))
	}
	text := "Every displaced pod has a place at once after each of these losses."
	switch {
	case len(s.Headroom.Nodes) > 0:
		text = fmt.Sprintf("With %s of headroom no pod waits. That costs %s a month; no headroom that achieves it costs less than %s.",
			terminal.Plural(len(s.Headroom.Nodes), "node"), monthly(s.Headroom.PricePerHour), monthly(s.Headroom.LowerBoundPerHour))
	case !s.Holds && len(s.Headroom.Unmet) == 0:
		text = "No headroom helps the pods that are lost."
	}
	if n := len(s.Headroom.Unmet); n > 0 {
		text = fmt.Sprintf("Limits of pools leave no room for enough headroom: pods still wait after the loss of %s", s.Headroom.Unmet[0])
		if n > 1 {
			text += fmt.Sprintf(", and after %d more of these losses", n-1)
		}
		text += "."
	}
	if lost > 0 && len(s.Headroom.Nodes) > 0 {
		text += fmt.Sprintf(" It does not help lost pods (%d at worst).", lost)
	}
	if n := len(s.notOurs()); n > 0 {
		text += fmt.Sprintf(" This does not count %s not ours to place.", terminal.Plural(n, "displaced pod"))
	}
	return text
}

// section is what would be lived through as a part of the page.
func (s *survival) section() picture.Section {
	out := picture.Section{Title: "What it would live through", Note: s.verdict()}
	for _, f := range s.Failures {
		if len(f.Waiting)+len(f.Lost) > 0 {
			out.Notices = append(out.Notices, picture.Notice{
				Subject: "Loss of " + f.String(), Text: fmt.Sprintf("%d of %s wait for nodes, %d are lost", len(f.Waiting), terminal.Plural(f.Displaced, "pod"), len(f.Lost)), Hint: f.Why,
			})
		}
	}
	for _, i := range s.notOurs() {
		out.Notices = append(out.Notices, picture.Notice{Subject: i.Pod, Text: "not ours to place: " + i.Why})
	}
	for _, n := range s.Headroom.Nodes {
		out.Notices = append(out.Notices, picture.Notice{Subject: "Headroom", Text: n.String()})
	}
	return out
}
