package simulate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
)

// bench compiles and plans, and asserts that at least so many percent of the price are saved.
func bench(b *testing.B, o fragment.Options, atLeast float64) {
	c, err := fragment.Generate(o)
	require.NoError(b, err)
	var r giveback.Result
	b.ReportAllocs()
	for b.Loop() {
		sim, nominated, err := simulate.New(c.Snapshot)
		require.NoError(b, err)
		r, err = giveback.Make(b.Context(), simulate.Cluster(c.Manifests, c.Snapshot, nominated, fragment.Now()), sim, nil)
		require.NoError(b, err)
	}
	require.GreaterOrEqual(b, percent(r), atLeast)
	require.Len(b, r.Verdicts, o.Nodes)
	b.ReportMetric(percent(r), "%saved")
	b.ReportMetric(float64(len(c.Snapshot.Pods)), "pods")
	b.ReportMetric(float64(r.Evictions), "evictions")
	b.ReportMetric(float64(r.Evictions)/(r.PricePerHour-r.PricePerHourAfter).Dollars(), "evictions/$")
	b.ReportMetric(float64(len(r.Commands)), "commands")
	b.ReportMetric(float64(r.Questions), "questions")
	b.ReportMetric(float64(r.Avoided), "avoided")
}

// To the fixed point.
func Benchmark50Nodes(b *testing.B)   { bench(b, fragment.Options{Nodes: 50}, 63) }
func Benchmark1000Nodes(b *testing.B) { bench(b, fragment.Options{Nodes: 1000}, 63.5) }

func Benchmark1000NodesConstrained(b *testing.B) {
	bench(b, fragment.Options{Nodes: 1000, Constrained: true}, 65.5)
}

func Benchmark5000Nodes(b *testing.B) {
	bench(b, fragment.Options{Nodes: 5000, PodsPerNode: 30}, 66)
}

func Benchmark5000NodesConstrained(b *testing.B) {
	bench(b, fragment.Options{Nodes: 5000, PodsPerNode: 30, Constrained: true}, 73)
}
