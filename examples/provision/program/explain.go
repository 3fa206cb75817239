package program

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// explain tells the story of a pod, or of a workload: that of its first pod with a place, of its
// first without one, and of its first that is not ours to place.
func explain(w io.Writer, style terminal.Style, packed *plan.Plan, r *report, asked string) error {
	pods := podsNamed(packed, asked)
	if len(pods) == 0 {
		return inputs.Bad(noSuchPod(packed, asked))
	}
	writeSample(w, style, r.sample)
	placed := map[*corev1.Pod]bool{}
	for _, b := range packed.Bindings() {
		placed[b.Pod] = true
	}
	ignored := map[*corev1.Pod]string{}
	for _, i := range packed.Problem.Ignored {
		ignored[i.Pod] = i.Why
	}
	var first []*corev1.Pod
	told := map[string]int{}
	for _, pod := range pods {
		fate := "with a place"
		if _, not := ignored[pod]; not {
			fate = "not ours to place"
		} else if !placed[pod] {
			fate = "without a place"
		}
		if told[fate]++; told[fate] == 1 {
			first = append(first, pod)
		}
	}
	if len(pods) > 1 {
		var parts []string
		for _, fate := range []string{"with a place", "without a place", "not ours to place"} {
			if told[fate] > 0 {
				parts = append(parts, fmt.Sprintf("%s %s", terminal.Count(told[fate]), fate))
			}
		}
		fmt.Fprintf(w, "%s: %s, %s\n", asked, terminal.Plural(len(pods), "pending pod"), strings.Join(parts, ", "))
	}
	for i, pod := range first {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if why, not := ignored[pod]; not {
			fmt.Fprintf(w, "%s is not ours to place: %s\n", podName(pod), why)
			continue
		}
		explainPod(w, style, packed, r, pod)
	}
	if told["without a place"] > 0 {
		return &inputs.ExitError{Code: inputs.ExitNotAll}
	}
	return nil
}

// explainPod tells the story of a pod that is planned.
func explainPod(w io.Writer, style terminal.Style, packed *plan.Plan, r *report, pod *corev1.Pod) {
	full := podName(pod)
	class, _ := packed.Problem.Class(pod.Namespace, pod.Name)
	writeAsks(w, style, packed, class, full)
	for i := range r.Unschedulable {
		if r.Unschedulable[i].Pod == full {
			one := report{Unschedulable: r.Unschedulable[i : i+1]}
			one.writeRefusals(w, style)
			return
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
	writePreferences(w, style, packed, class, pod.Name)
}

// pendingPods returns the pods that are planned and those that are not ours to place, sorted.
func pendingPods(packed *plan.Plan) []*corev1.Pod {
	var out []*corev1.Pod
	for _, c := range packed.Problem.Classes {
		out = append(out, c.Pods...)
	}
	for _, i := range packed.Problem.Ignored {
		out = append(out, i.Pod)
	}
	slices.SortFunc(out, scheduling.ComparePods)
	return out
}

// podsNamed returns the pod of this name, or else the pods of the workload of this name.
func podsNamed(packed *plan.Plan, asked string) []*corev1.Pod {
	full, pods := asked, pendingPods(packed)
	if !strings.Contains(asked, "/") {
		full = corev1.NamespaceDefault + "/" + asked
	}
	if i := slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return podName(pod) == full }); i >= 0 {
		return pods[i : i+1]
	}
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return !slices.Contains(workloadNames(pod), full) && !isOwner(pod, asked) })
}

// workloadNames returns the names of a pod's workload: as tables print it, and that of its owner.
func workloadNames(pod *corev1.Pod) []string {
	_, owner, _ := strings.Cut(plan.WorkloadOf(pod), " ")
	return append(byWorkload([]string{podName(pod)}), owner)
}

// isOwner reports whether a name with a kind, as --headroom takes it, is that of the pod's
// workload.
func isOwner(pod *corev1.Pod, asked string) bool {
	parts := strings.Split(asked, "/")
	if len(parts) == 2 {
		parts = append([]string{corev1.NamespaceDefault}, parts...)
	}
	kind, owner, _ := strings.Cut(plan.WorkloadOf(pod), " ")
	return len(parts) == 3 && owner == parts[0]+"/"+parts[2] && strings.EqualFold(kind, inputs.Kind(parts[1]))
}

// noSuchPod lists the workloads that exist, and names what may have been meant: the pods and
// workloads of this name in other namespaces, or else the name that is nearest.
func noSuchPod(packed *plan.Plan, asked string) error {
	full := asked
	if !strings.Contains(asked, "/") {
		full = corev1.NamespaceDefault + "/" + asked
	}
	short := full[strings.LastIndexByte(full, '/'):]
	var names, workloads, meant []string
	for _, pod := range pendingPods(packed) {
		own := workloadNames(pod)
		workloads = append(workloads, own[1])
		for _, name := range append(own, podName(pod)) {
			names = append(names, name)
			if strings.HasSuffix(name, short) && strings.Count(name, "/") == 1 {
				meant = append(meant, strconv.Quote(name))
			}
		}
	}
	if len(meant) == 0 {
		if near, ok := requirements.Nearest(full, names); ok {
			meant = append(meant, strconv.Quote(near))
		}
	}
	slices.Sort(meant)
	meant = slices.Compact(meant)
	hint := ""
	if len(meant) > 0 {
		hint = fmt.Sprintf(" (did you mean %s?)", strings.Join(meant[:min(3, len(meant))], " or "))
	}
	slices.Sort(workloads)
	return fmt.Errorf("--explain %q: no pending pod or workload has this name%s; %s", asked, hint, existing(slices.Compact(workloads)))
}

// existing lists workloads, and counts those after the eighth if there is more than one.
func existing(workloads []string) string {
	const most = 8
	switch n := len(workloads) - most; {
	case len(workloads) == 0:
		return "there are none"
	case n > 1:
		return fmt.Sprintf("there are %s and %d more", strings.Join(workloads[:most], ", "), n)
	}
	return "there are " + strings.Join(workloads, ", ")
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
