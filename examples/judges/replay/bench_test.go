package replay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Scenarios of all constraints, in most of which some pods can't be placed: the mean and the slowest of eight plans, and of plans
// with an explanation and a fix sought for every refused class. The search must place as many pods as its first attempt alone.
func BenchmarkAllConstraints(b *testing.B) {
	for _, pods := range []int{200, 1500} {
		var snapshots []scheduling.Snapshot
		alone := 0
		for seed := range uint64(8) {
			s, err := replay.Snapshot(scenario.Generate(700_000+seed, scenario.Options{Pods: pods, Limits: seed%4 == 0}))
			if err != nil {
				b.Fatal(err)
			}
			snapshots = append(snapshots, s)
			first, err := plan.Make(b.Context(), s, &plan.Options{Scheduling: &scheduling.Options{Attempts: 1}})
			if err != nil {
				b.Fatal(err)
			}
			alone += len(first.Bindings())
		}
		for _, fixes := range []bool{false, true} {
			b.Run(fmt.Sprintf("pods=%d/fixes=%v", pods, fixes), func(b *testing.B) {
				var slowest time.Duration
				placed := 0
				for b.Loop() {
					placed = 0
					for _, s := range snapshots {
						start := time.Now()
						p, err := plan.Make(b.Context(), s, nil)
						if err != nil {
							b.Fatal(err)
						}
						for _, u := range p.Unplaced() {
							u.Reasons()
						}
						if fixes {
							p.FirstFixes(false)
						}
						slowest = max(slowest, time.Since(start))
						placed += len(p.Bindings())
					}
					if placed < alone {
						b.Fatalf("%d pods placed, %d by the first attempt alone", placed, alone)
					}
				}
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/float64(len(snapshots)), "s/plan")
				b.ReportMetric(slowest.Seconds(), "s/slowest")
				b.ReportMetric(float64(placed), "placed")
				b.ReportMetric(float64(alone), "placed-at-first")
			})
		}
	}
}
