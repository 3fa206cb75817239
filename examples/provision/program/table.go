package program

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	lib "github.com/joinery-sdk/joinery/examples/plan/report"
	"github.com/joinery-sdk/joinery/scheduling/buffer"
)

// write draws the report for people. Wide adds what the usual table has no room for.
func (r *report) write(w io.Writer, style terminal.Style, wide bool) error {
	s := &r.Summary
	writeSample(w, style, r.sample)
	pools := terminal.Plural(s.pools, "pool")
	if s.static > 0 {
		if pools += ", "; s.pools == 0 {
			pools = ""
		}
		pools += terminal.Plural(s.static, "static pool")
	}
	fmt.Fprintf(w, "%s, %s, %s   %s\n", terminal.Plural(s.Pods, "pending pod"), pools, terminal.Plural(s.types, "type"),
		style.Dim(strings.TrimSpace(s.Prices.List+dated(s.Prices.Date))))
	for _, n := range s.Notes {
		fmt.Fprintln(w, style.Dim("note: "+n))
	}
	fmt.Fprintln(w)
	if err := r.writeNodes(w, style, wide); err != nil {
		return err
	}
	if err := r.writeExisting(w, style); err != nil {
		return err
	}
	if err := r.writeGangs(w, style); err != nil {
		return err
	}
	r.writeTotals(w, style)
	if err := r.writeBuffers(w, style); err != nil {
		return err
	}
	if err := r.writeCurve(w, style); err != nil {
		return err
	}
	if r.bought != nil {
		if err := r.bought.WriteRefused(w, style); err != nil {
			return err
		}
	}
	r.writeRefusals(w, style)
	for _, i := range r.Ignored {
		fmt.Fprintf(w, "%s\n", style.Dim(fmt.Sprintf("%s is not ours to place: %s", i.Pod, i.Why)))
	}
	return nil
}

// writeSample says that the built-in sample was planned.
func writeSample(w io.Writer, style terminal.Style, text string) {
	if text != "" {
		fmt.Fprintln(w, style.Dim(text))
	}
}

func dated(date string) string {
	if date == "" {
		return ""
	}
	return " of " + date
}

func (r *report) writeNodes(w io.Writer, style terminal.Style, wide bool) error {
	if len(r.NewNodes) == 0 {
		return nil
	}
	header := []string{"NODE", "POOL", "TYPE", "ZONE", "CAPACITY", ">PRICE/H", "CPU", "MEMORY", ">PODS"}
	if wide {
		header = append(header, "OTHER RESOURCES", "DAEMONS", "NEXT CHEAPEST", "HOLDS")
	}
	t := terminal.NewTable(style, header...)
	rows := grouped(r.NewNodes, wide)
	for _, g := range rows {
		n := &r.NewNodes[g.first]
		name := n.Name
		if g.count > 1 {
			name = fmt.Sprintf("%s x %d", name, g.count)
		}
		row := []string{
			name, n.NodePool, n.InstanceType, n.Zone, n.CapacityType, terminal.Dollars(n.PricePerHour),
			style.Bar(n.use["cpu"].share()), style.Bar(n.use["memory"].share()), fmt.Sprintf("%d/%s", len(n.Pods), n.Allocatable["pods"]),
		}
		if wide {
			row = append(row, others(n), strings.Join(n.daemons, ","), nextCheapest(n), workloads(n.Pods))
		}
		t.Row(row...)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return nil
}

// group is a run of nodes that look the same.
type group struct{ first, count int }

// manyNodes is how many nodes a table shows one by one; of more, those that look alike share a row.
const manyNodes = 40

func grouped(nodes []newNode, wide bool) []group {
	var out []group
	for i := range nodes {
		if k := len(out) - 1; k >= 0 && len(nodes) > manyNodes && !wide && alike(&nodes[out[k].first], &nodes[i]) {
			out[k].count++
			continue
		}
		out = append(out, group{i, 1})
	}
	return out
}

func alike(a, b *newNode) bool {
	return a.NodePool == b.NodePool && a.InstanceType == b.InstanceType && a.Zone == b.Zone && a.CapacityType == b.CapacityType &&
		len(a.Pods) == len(b.Pods) && a.use["cpu"] == b.use["cpu"] && a.use["memory"] == b.use["memory"]
}

// others is how full the node is of anything but cpu, memory and pods that its pods ask for.
func others(n *newNode) string {
	var parts []string
	for name, u := range n.use {
		if u.used > 0 && name != "cpu" && name != "memory" && name != "pods" {
			parts = append(parts, name+" "+terminal.Percent(u.share()))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func nextCheapest(n *newNode) string {
	for _, a := range n.Alternatives {
		if a.InstanceType != n.InstanceType {
			return fmt.Sprintf("%s %s", a.InstanceType, terminal.Dollars(a.PricePerHour))
		}
	}
	return "-"
}

// workloads sums pods up by workload, without the name of the default namespace.
func workloads(pods []string) string {
	short := make([]string, len(pods))
	for i, p := range pods {
		short[i] = strings.TrimPrefix(p, "default/")
	}
	return strings.Join(byWorkload(short), ", ")
}

// byWorkload counts pods by the name before their number, in the order of names.
func byWorkload(pods []string) []string {
	count := map[string]int{}
	var order []string
	for _, p := range pods {
		name := strings.TrimSuffix(strings.TrimRight(p, "0123456789"), "-")
		if count[name] == 0 {
			order = append(order, name)
		}
		count[name]++
	}
	slices.Sort(order)
	for i, name := range order {
		if count[name] > 1 {
			order[i] = fmt.Sprintf("%s x%d", name, count[name])
		}
	}
	return order
}

func (r *report) writeExisting(w io.Writer, style terminal.Style) error {
	if len(r.ExistingNodes) == 0 {
		return nil
	}
	t := terminal.NewTable(style, "EXISTING NODE", ">NEW PODS", "HOLDS")
	for _, n := range r.ExistingNodes {
		t.Row(n.Name, terminal.Count(len(n.Pods)), workloads(n.Pods))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return nil
}

// writeBuffers writes a line for each buffer.
func (r *report) writeBuffers(w io.Writer, style terminal.Style) error {
	if len(r.Buffers) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := terminal.NewTable(style, "BUFFER", ">PODS", ">FIT NOW", ">WITH NEW", ">NEW NODES", ">PRICE/H", ">LOWER BOUND")
	for _, b := range r.Buffers {
		price, bound := "", ""
		if len(b.Nodes) > 0 {
			price, bound = terminal.Dollars(b.PricePerHour), terminal.Dollars(b.LowerBoundPerHour)
		}
		t.Row(b.Buffer, fmt.Sprint(b.Existing+b.New+b.Waiting), fmt.Sprint(b.Existing), fmt.Sprint(b.New), fmt.Sprint(len(b.Nodes)), price, bound)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	for _, b := range r.Buffers {
		if b.Reason == buffer.Infeasible || b.Reason == buffer.NotReady {
			fmt.Fprintf(w, "%s: %s\n", b.Buffer, b.Message)
		}
	}
	return nil
}

// writeGangs writes a line for each group of pods that run only together.
func (r *report) writeGangs(w io.Writer, style terminal.Style) error {
	if len(r.Gangs) == 0 {
		return nil
	}
	t := terminal.NewTable(style, "GROUP", "PODS", "DOMAIN", ">NODES", ">NEW", ">PRICE/H", ">LOWER BOUND")
	for _, g := range r.Gangs {
		row := []string{g.Name, podsOf(g), g.Domain, terminal.Count(len(g.Nodes)), terminal.Count(g.NewNodes), terminal.Dollars(g.PricePerHour), terminal.Dollars(g.LowerBoundPerHour)}
		if g.Placed == 0 {
			row = []string{g.Name, podsOf(g), "", "", "", "", ""}
		}
		t.Row(row...)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return nil
}

// podsOf counts the pods of a group by what becomes of them.
func podsOf(g lib.Gang) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{g.Running, "running"}, {g.Placed, "placed"}, {g.Waiting, "waiting"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", terminal.Count(p.n), p.what))
		}
	}
	return strings.Join(parts, ", ")
}

const hoursPerMonth = 730

func (r *report) writeTotals(w io.Writer, style terminal.Style) {
	s := &r.Summary
	var parts []string
	parts = append(parts, style.Bold(terminal.Plural(s.NewNodes, "new node")))
	if s.NewNodes > 0 {
		parts = append(parts, style.Bold(terminal.Dollars(s.PricePerHour)+"/h"), terminal.Dollars(s.PricePerHour*hoursPerMonth)+"/month")
		if s.ObjectivePerHour > 0 {
			parts = append(parts, fmt.Sprintf("counted as %s/h", terminal.Dollars(s.ObjectivePerHour)))
		}
		parts = append(parts,
			fmt.Sprintf("no plan for these pods costs less than %s/h (gap %.1f%%)", terminal.Dollars(s.LowerBoundPerHour), s.GapPercent))
	}
	placed := fmt.Sprintf("%s of %s placed", terminal.Count(s.Scheduled), terminal.Plural(s.Scheduled+s.Unschedulable, "pod"))
	if s.Unschedulable > 0 {
		placed = style.Bad(placed)
	} else {
		placed = style.Good(placed)
	}
	if s.Seconds != nil {
		placed += style.Dim(" in " + terminal.Duration(duration(s.Seconds.Compile+s.Seconds.Solve)))
	}
	fmt.Fprintln(w, strings.Join(append(parts, placed), "   "))
	for _, line := range r.choices() {
		fmt.Fprintln(w, style.Dim(line))
	}
}

// choices says what the choices of the plan cost, where they do: zones, pools and preferences, and
// the weights of pools among them.
func (r *report) choices() []string {
	var out []string
	s := &r.Summary
	if s.ChoiceLowerBoundPerHour > 0 {
		out = append(out, fmt.Sprintf("with these zones and this order of pools, at least %s/h", terminal.Dollars(s.ChoiceLowerBoundPerHour)))
	}
	if s.WeightsPerHour > 0 {
		out = append(out, fmt.Sprintf("the weights of pools cost %s/h: with equal weights, the nodes for the same pods cost that much less", terminal.Dollars(s.WeightsPerHour)))
	}
	return out
}

// refusals are the pods without a place, those that share a refusal together.
func (r *report) refusals() iter.Seq[[]unschedulable] {
	return func(yield func([]unschedulable) bool) {
		for i, j := 0, 0; i < len(r.Unschedulable); i = j {
			for j = i + 1; j < len(r.Unschedulable) && sameRefusal(r.Unschedulable[i], r.Unschedulable[j]); {
				j++
			}
			if !yield(r.Unschedulable[i:j]) {
				return
			}
		}
	}
}

// writeRefusals tells each refusal once for all pods that share it, and each fix once.
func (r *report) writeRefusals(w io.Writer, style terminal.Style) {
	untried, told := 0, []unschedulable{}
	for pods := range r.refusals() {
		u := pods[0]
		fmt.Fprintf(w, "\n%s can't be placed: %s\n", style.Bad(refusedPods(pods)), u.Message)
		width := 0
		for _, reason := range u.Reasons {
			width = max(width, len(reason.NodePool))
		}
		if len(u.Reasons) > 1 || !strings.HasSuffix(u.Message, u.Reasons[0].Detail) {
			for _, reason := range u.Reasons {
				fmt.Fprintf(w, "  %-*s  %s\n", width, reason.NodePool, reason.Detail)
			}
		}
		if at := slices.IndexFunc(told, func(o unschedulable) bool { return sameFix(o, u) }); at >= 0 {
			fmt.Fprintf(w, "  %s\n", style.Good("the change for "+told[at].Pod+" is for these pods, too"))
		} else if u.Fix != nil {
			told = append(told, u)
			fmt.Fprintf(w, "  %s\n", style.Good(u.Fix.Change+" (verified)"))
		}
		untried += u.Untried
	}
	switch {
	case untried == 1:
		fmt.Fprintln(w, "\n1 more change that may help was not tried; --fixes all tries it")
	case untried > 1:
		fmt.Fprintf(w, "\n%s more changes that may help were not tried; --fixes all tries them\n", terminal.Count(untried))
	}
}

// refusedPods names pods that are refused alike: a pod and how many more of its workload, or else
// their workloads.
func refusedPods(pods []unschedulable) string {
	names := make([]string, len(pods))
	for i, u := range pods {
		names[i] = u.Pod
	}
	all := byWorkload(names)
	switch {
	case len(pods) == 1:
		return names[0]
	case len(all) == 1:
		return fmt.Sprintf("%s and %d more like it", names[0], len(names)-1)
	case len(all) > manyWorkloads:
		rest := terminal.Plural(len(all)-manyWorkloads, "more workload")
		return fmt.Sprintf("%s and %s, %s in all,", strings.Join(all[:manyWorkloads], ", "), rest, terminal.Plural(len(names), "pod"))
	}
	return strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}

// manyWorkloads is how many workloads a sentence names.
const manyWorkloads = 4

// sameFix reports whether one change was tried for both pods.
func sameFix(a, b unschedulable) bool {
	return a.Fix != nil && b.Fix != nil && a.Fix.Change == b.Fix.Change && slices.Contains(a.Fix.Classes, b.Class)
}

// sameRefusal reports whether two pods are refused alike, and one change was tried for both, or
// none.
func sameRefusal(a, b unschedulable) bool {
	if (a.Fix != nil || b.Fix != nil) && !sameFix(a, b) {
		return false
	}
	return a.Message == b.Message && slices.EqualFunc(a.Reasons, b.Reasons, func(x, y reasonJSON) bool {
		return x.NodePool == y.NodePool && x.Detail == y.Detail
	})
}
