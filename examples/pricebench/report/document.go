package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

func (m *measured) limit() string {
	if m.MaxCPU == 0 {
		return "any"
	}
	return fmt.Sprint(m.MaxCPU)
}

// target is the gap in percent that is aimed at, and whether there is one.
func (m *measured) target() (float64, bool) {
	usual := m.Workload == "mix" || m.Workload == "bimodal" || m.Workload == "distinct"
	switch {
	case m.Variant == "diverse":
		return 10, true
	case m.Variant != "" && m.Pods >= 500:
		return 2, true
	case m.Pods <= 50 && m.Variant == "":
		return 0, usual || m.Workload == "alibaba"
	case m.Pods <= 100:
		return 5, true
	case usual:
		return 2, true
	case m.Workload == "alibaba" && m.MaxCPU == 0:
		return 2, true
	case m.Workload == "alibaba":
		return 0.1, true
	}
	return 0, false
}

func (m *measured) line() string {
	target, mark := "", ""
	if t, ok := m.target(); ok {
		target = fmt.Sprintf("%g%%", t)
		if m.Gap > t+1e-9 {
			mark = " **"
		}
		if t == 0 {
			target = "optimal"
		}
	}
	verified := ""
	if !m.Verified {
		verified = " UNVERIFIED"
	}
	name := m.Workload
	if m.Variant != "" {
		name += ", " + m.Variant
	}
	if m.Seed > 1000 {
		name += " (held out)"
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %d | %.3f | %.3f | %s%s | %.2f%%%s | %s | %+.1f%% | %.3f | %.0f |",
		name, m.limit(), m.Kept, m.Shapes, m.Bins, m.Cost, m.Bound, m.Kind, verified, m.Gap, mark, target, 100*(m.Cost/m.FFD-1), m.Seconds, m.MB)
}

func document(rows []measured, or *solved, effort string, seed uint64, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# What plans cost

Written by `+"`make bench-price`"+` on %s: %s, %d cores, %s, effort %q.

Pods are those of examples/pricebench (seed %d; rows "held out" are another draw, which nothing was measured on before), types the on-demand c, m and r types of us-east-1 from the fifth generation
on, amd64, no metal, of any size or of at most 64 or 16 vCPU; a DaemonSet is deducted. Pods that fit no type are left out.
Bound is proved, and the certificate was checked (Instance.VerifyBound). Gap is how far the cost is above the bound: the
plan may be nearer to the optimum than that, never further. Two stars mark a gap above the target. "FFD" is the cost against
first fit decreasing with right-sizing. Seconds are compile and solve with the proof, the median of as many runs as take half a
second together, at least one and at most 25, in one process; MB is the most memory that it had, the catalogue included.
Shared machines of one kind are at times half as fast as at others, so compare seconds within this file, not with an older one.

Labels and categories have the widest gaps. With ten times the work (effort best), plans of 24 other draws of 50 labelled pods were
1.1%% cheaper and their bounds 1.0%% higher, of 12 of 100 pods 1.7 and 1.1%%, of 6 of 500 pods 0.7 and 0.1%%; the mean gaps are then
4.8, 3.4 and 2.9%%. So both are at fault with few pods, and most of the rest is the bound's: it counts fractions of bins, where a zone or
architecture needs whole ones. On 72 draws of 20 to 50 pods, each with up to 45 seconds of OR-Tools CP-SAT, proved optima were up to 16%%
above the bound of that time; dual ascent (internal/relax) has halved the widest of these gaps since.

| workload | vCPU | pods | shapes | nodes | USD/h | bound | kind | gap | target | FFD | seconds | MB |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |
`, now.Format(time.DateOnly), runtime.Version(), runtime.NumCPU(), runtime.GOARCH, effort, seed)
	missed, slowest, largest := 0, 0.0, 0.0
	for i := range rows {
		m := &rows[i]
		fmt.Fprintln(&b, m.line())
		if t, ok := m.target(); ok && m.Gap > t+1e-9 {
			missed++
		}
		slowest, largest = max(slowest, m.Seconds), max(largest, m.MB)
	}
	fmt.Fprintf(&b, "\n%d rows, %d of them miss their target; the slowest took %.2f s, the largest %.0f MB.\n", len(rows), missed, slowest, largest)
	if or != nil {
		fmt.Fprintf(&b, `
## OR-Library

%d instances of one-dimensional bin packing (Falkenauer) with proven optima: %d are solved to the optimum, by first fit
decreasing %d; %d bounds are above an optimum. All took %.1f s, the slowest %.2f s.
`, or.instances, or.optimal, or.ffd, or.above, or.seconds, or.slowest)
	}
	return b.String()
}
