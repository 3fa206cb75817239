package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// perSecond is how many pods were placed a second.
func (s *side) perSecond() float64 { return float64(s.placed) / s.time.Seconds() }

// against is how many times as many pods a second we place, and by how much less we pay.
func (s *side) against(theirs *side) (speed, price string) {
	if theirs.gaveUp {
		return "", ""
	}
	return fmt.Sprintf("%.0fx", s.perSecond()/theirs.perSecond()), fmt.Sprintf("%+.1f%%", 100*(s.price/theirs.price-1))
}

// line is the row for somebody who waits.
func (r *row) line() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%-12s %6d pods:", r.family, r.pods)
	for i := range r.ours {
		s := &r.ours[i]
		speed, price := s.against(&r.theirs)
		fmt.Fprintf(&text, " %s %d placed, %d nodes, $%.2f/h, %s %s %s;", s.effort, s.placed, s.nodes, s.price, seconds(s.time), speed, price)
	}
	if r.theirs.gaveUp {
		return text.String() + fmt.Sprintf(" Karpenter took longer than %v", r.theirs.time)
	}
	return text.String() + fmt.Sprintf(" Karpenter %d, %d, $%.2f/h, %s", r.theirs.placed, r.theirs.nodes, r.theirs.price, seconds(r.theirs.time))
}

// document is the whole of VERSUS.md.
func document(rows []row, grown []point, now time.Time) string {
	var b strings.Builder
	b.WriteString("# Versus Karpenter\n\n")
	fmt.Fprintf(&b, "Written by `make versus` on %s: Karpenter %s, kube-scheduler %s, %s, %d cores, %s.\n\n",
		now.UTC().Format(time.DateOnly), version("sigs.k8s.io/karpenter"), version("k8s.io/kubernetes"), runtime.Version(), runtime.NumCPU(), runtime.GOARCH)
	if len(rows) > 0 {
		fmt.Fprintf(&b, `Both planners get the same pods (seed %d), one pool that may buy everything, and the same catalogue, as objects in memory, in
one process. Time is compile and solve together, the median of the runs, which alternate; Karpenter has 2 workers. Price is
that of the cheapest offering of each node. Accepted says how many of the placed pods kube-scheduler's own plugins let on
to their planned nodes: ours in the plan's own order, Karpenter's, which has none, in the best of seven orders, lap after
lap. Larger plans are not judged (a dash), for judging takes the square of their size. Ours has a row
for each effort: fast is first fit, and searches where that takes milliseconds; default looks for the cheapest plan.

`, seed)
	}
	for _, f := range families() {
		var own []row
		for _, r := range rows {
			if r.family == f.name {
				own = append(own, r)
			}
		}
		if len(own) == 0 {
			continue
		}
		fmt.Fprintf(&b, "## %s\n\nPods: %s.\n\n", f.name, f.what)
		b.WriteString("| pods | runs | | placed | accepted | nodes | USD/h | seconds | pods/s | speed | price |\n")
		b.WriteString("| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
		for _, r := range own {
			for i := range r.ours {
				s := &r.ours[i]
				speed, price := s.against(&r.theirs)
				pods, runs := "", ""
				if i == 0 {
					pods, runs = fmt.Sprint(r.pods), fmt.Sprint(r.runs)
				}
				fmt.Fprintf(&b, "| %s | %s | Joinery, %s | %s | %s | %s |\n", pods, runs, s.effort, s.cells(), speed, price)
			}
			if r.theirs.gaveUp {
				fmt.Fprintf(&b, "| | | Karpenter | over %v | | | | | | | |\n", r.theirs.time)
			} else {
				fmt.Fprintf(&b, "| | | Karpenter | %s | | |\n", r.theirs.cells())
			}
		}
		b.WriteString("\n")
	}
	if len(grown) > 0 {
		fmt.Fprintf(&b, "## Growth\n\nJoinery alone, %s pods.\n\n", families()[0].name)
	}
	for pair := range slices.Chunk(grown, 2) {
		small, large := pair[0], pair[1]
		fmt.Fprintf(&b, "- %s: %d of %d placed in %s, %d of %d in %s: %.1f times the time for %.0f times the pods.\n", small.effort,
			small.placed, small.pods, seconds(small.time), large.placed, large.pods, seconds(large.time),
			large.time.Seconds()/small.time.Seconds(), float64(large.pods)/float64(small.pods))
	}
	return b.String()
}

func (s *side) cells() string {
	accepted := "-"
	if s.accepted >= 0 {
		accepted = fmt.Sprint(s.accepted)
	}
	return fmt.Sprintf("%d | %s | %d | %.2f | %s | %.0f", s.placed, accepted, s.nodes, s.price, seconds(s.time), s.perSecond())
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

// version is that of a module in this build.
func version(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "(unknown)"
}
