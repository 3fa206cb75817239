package program

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
)

// explainPod tells one pod's story.
func explainPod(w io.Writer, style terminal.Style, packed *plan.Plan, r *report, name string) error {
	namespace, short, ok := strings.Cut(name, "/")
	if !ok {
		namespace, short = "default", name
	}
	full := namespace + "/" + short
	for _, i := range r.Ignored {
		if i.Pod == full {
			writeSample(w, style, r.sample)
			fmt.Fprintf(w, "%s is not ours to place: %s\n", full, i.Why)
			return nil
		}
	}
	class, ok := packed.Problem.Class(namespace, short)
	if !ok {
		return inputs.Bad(noSuchPod(packed, name, short))
	}
	writeSample(w, style, r.sample)
	writeAsks(w, style, packed, class, full)
	for i := range r.Unschedulable {
		if r.Unschedulable[i].Pod == full {
			one := report{Unschedulable: r.Unschedulable[i : i+1]}
			one.writeRefusals(w, style)
			return &inputs.ExitError{Code: inputs.ExitNotAll}
		}
	}
	for i := range r.ExistingNodes {
		if n := &r.ExistingNodes[i]; slices.Contains(n.Pods, full) {
			fmt.Fprintf(w, "goes to existing node %s, at no extra cost\n", style.Bold(n.Name))
		}
	}
	for i := range r.NewNodes {
		if n := &r.NewNodes[i]; slices.Contains(n.Pods, full) {
			writeNode(w, style, n)
		}
	}
	writePreferences(w, style, packed, class, short)
	return nil
}

// noSuchPod names what may have been meant: the pods of this name in other namespaces, or else the
// name that is nearest.
func noSuchPod(packed *plan.Plan, asked, short string) error {
	var names, elsewhere []string
	for _, c := range packed.Problem.Classes {
		for _, p := range c.Pods {
			names = append(names, podName(p))
			if p.Name == short {
				elsewhere = append(elsewhere, strconv.Quote(podName(p)))
			}
		}
	}
	if len(elsewhere) == 0 {
		full := asked
		if !strings.Contains(asked, "/") {
			full = "default/" + asked
		}
		if near, ok := requirements.Nearest(full, names); ok {
			elsewhere = append(elsewhere, strconv.Quote(near))
		}
	}
	hint := ""
	if len(elsewhere) > 0 {
		slices.Sort(elsewhere)
		hint = fmt.Sprintf(" (did you mean %s?)", strings.Join(elsewhere[:min(3, len(elsewhere))], " or "))
	}
	return fmt.Errorf("--explain %q: no pending pod has this name%s", asked, hint)
}

func writeAsks(w io.Writer, style terminal.Style, packed *plan.Plan, class int, full string) {
	c := packed.Problem.Classes[class]
	var parts []string
	for _, name := range resources.Names(c.Requests) {
		if name != "pods" {
			parts = append(parts, fmt.Sprintf("%s %s", name, resources.Humane(name, resources.Request(name, c.Requests[name]))))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "only a slot for a pod")
	}
	fmt.Fprintf(w, "%s asks %s", style.Bold(full), strings.Join(parts, ", "))
	if n := len(c.Pods); n > 1 {
		fmt.Fprintf(w, " (one of %d alike)", n)
	}
	fmt.Fprintln(w)
	if text := c.Required.String(); text != "anything" {
		fmt.Fprintf(w, "needs a node with %s\n", text)
	}
}

func writeNode(w io.Writer, style terminal.Style, n *newNode) {
	fmt.Fprintf(w, "goes to new node %s: %s in %s, %s, %s/h, pool %q\n", style.Bold(n.Name), n.InstanceType, n.Zone, n.CapacityType,
		terminal.Dollars(n.PricePerHour), n.NodePool)
	fmt.Fprintf(w, "  shares it with %s; cpu %s, memory %s full\n", terminal.Plural(len(n.Pods)-1, "other pod"), terminal.Percent(n.use["cpu"].share()), terminal.Percent(n.use["memory"].share()))
	if len(n.daemons) > 0 {
		fmt.Fprintf(w, "  beside %s: %s\n", terminal.Plural(len(n.daemons), "daemon"), strings.Join(n.daemons, ", "))
	}
	if next := nextCheapest(n); next != "-" {
		fmt.Fprintf(w, "  next cheapest type that would hold the same pods: %s/h\n", next)
	}
}

func writePreferences(w io.Writer, style terminal.Style, packed *plan.Plan, class int, short string) {
	for _, pod := range packed.Problem.Classes[class].Pods {
		if pod.Name != short {
			continue
		}
		gone, kept := packed.GivenUp(pod)
		for _, p := range kept {
			fmt.Fprintf(w, "  %s %s\n", style.Good("kept"), p)
		}
		for _, p := range gone {
			fmt.Fprintf(w, "  %s %s\n", style.Warn("given up"), p)
		}
	}
}
