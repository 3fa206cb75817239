package simulate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
)

func run(t testing.TB, o fragment.Options, opts *deprovision.Options) deprovision.Result {
	c, err := fragment.Generate(o)
	require.NoError(t, err)
	start := time.Now()
	sim, nominated, err := simulate.New(c.Snapshot)
	require.NoError(t, err)
	compiled := time.Since(start)
	r := deprovision.Plan(simulate.Cluster(c.Manifests, c.Snapshot, nominated, fragment.Now()), sim, opts)
	fmt.Printf("%d nodes %d pods: compile %v plan %v: $%.2f -> $%.2f (%.1f%%), %d commands, %d evictions, %.2f evictions/$, %d questions, %d avoided\n",
		len(c.Snapshot.Nodes), len(c.Snapshot.Pods), compiled, time.Since(start)-compiled, r.PricePerHour, r.PricePerHourAfter,
		100*(1-r.PricePerHourAfter/r.PricePerHour), len(r.Commands), r.Evictions, float64(r.Evictions)/(r.PricePerHour-r.PricePerHourAfter), r.Questions, r.Avoided)
	return r
}

func TestTry(t *testing.T) {
	for _, n := range []int{50, 1000} {
		for _, c := range []bool{false, true} {
			o := fragment.Options{Nodes: n, Constrained: c}
			run(t, o, nil)
			if n < 1000 {
				run(t, o, &deprovision.Options{Search: deprovision.SearchKarpenter})
			}
		}
	}
}

func TestLook(t *testing.T) {
	r := run(t, fragment.Options{Nodes: 50}, nil)
	for _, c := range r.Commands {
		fmt.Print(c.Method, " ", c.Kind, " -", len(c.Nodes), " +", len(c.NewNodes), " pods ", len(c.Placements), fmt.Sprintf(" saves %.3f ", c.SavingsPerHour), c.Why, "\n")
	}
}

func TestBig(t *testing.T) {
	run(t, fragment.Options{Nodes: 1000}, nil)
	run(t, fragment.Options{Nodes: 300, Constrained: true}, nil)
}
