package replay_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// Which scenarios the tests of this package draw.
var (
	scenarios = flag.Int("scenarios", 100, "how many random scenarios to judge")
	from      = flag.Uint64("from", 1, "the seed of the first scenario; the others follow")
	size      = flag.Int("pods", 0, "pods a scenario, 1500 for large ones; 0 draws a size from 5 to 200 for each")
	density   = flag.Int("density", 0, "constraints a pod in percent of usual; 0 draws it for each scenario")
	nominated = flag.Bool("nominated", false, "draw nominated pods of any priority")
	noVolumes = flag.Bool("no-volumes", false, "leave volumes out")
	limit     = flag.Duration("limit", 5*time.Minute, "how long one scenario may take before the test is ended with its seed")
	dump      = flag.String("dump", "", "directory to write scenarios with a refused plan to, as manifests and catalogue")
)

// drawn is the scenario of a seed, of every fourth with limits.
func drawn(seed uint64) scenario.Scenario { return draw(seed, true) }

func draw(seed uint64, changing bool) scenario.Scenario {
	pods := *size
	if pods == 0 {
		pods = 5 + int(seed*37%196)
	}
	return scenario.Generate(seed, scenario.Options{Pods: pods, Density: *density, NoVolumes: *noVolumes, Limits: seed%4 == 0, Changing: changing, Nominated: *nominated})
}

// Every plan must be accepted by kube-scheduler, bind by bind, in the plan's own order.
func TestPlansAreAccepted(t *testing.T) { allAccepted(t, *scenarios, drawn) }

// The same where constraints depend on each other more than usual.
func TestTangledPlansAreAccepted(t *testing.T) { allAccepted(t, *scenarios/4, scenario.Tangled) }

func allAccepted(t *testing.T, n int, draw func(uint64) scenario.Scenario) {
	t.Helper()
	outcomes := make([]outcome, n)
	inParallel(n, func(i int) {
		o := judge(t.Context(), draw(*from+uint64(i)))
		if !o.refused() { // thousands of clusters are a lot to keep
			o.scenario, o.verdict = scenario.Scenario{}, kubejudge.Verdict{}
		}
		outcomes[i] = o
	})
	placed, pending, refused := 0, 0, 0
	plugins := map[string]int{}
	for i := range outcomes {
		o := &outcomes[i]
		placed, pending = placed+o.placed, pending+o.pending
		if !o.refused() {
			continue
		}
		refused++
		if len(o.verdict.Refused) > 0 {
			plugins[o.verdict.Refused[0].Plugin]++
		}
		if refused <= 5 {
			t.Errorf("%s\n%v\n%s", o.scenario, o.err, o.verdict)
		}
		keep(t, o.scenario)
	}
	fmt.Printf("%d scenarios, %d of %d pods placed, %d plans refused, first by %v\n", n, placed, pending, refused, plugins)
	require.Zero(t, refused)
}

// inParallel calls do with 0 to n-1 on all cores. One that takes longer than -limit ends the test with what each
// goroutine is doing.
func inParallel(n int, do func(int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				late := time.AfterFunc(*limit, func() { panic(fmt.Sprintf("seed %d is not done after %v", *from+uint64(i), *limit)) })
				do(i)
				late.Stop()
			}
		})
	}
	wg.Wait()
}

// planned reads the scenario as a user's manifests and plans it.
func planned(ctx context.Context, s scenario.Scenario) (*plan.Plan, error) {
	snapshot, err := replay.Snapshot(s)
	if err != nil {
		return nil, err
	}
	return plan.Make(ctx, snapshot, nil)
}

// outcome is what became of one scenario.
type outcome struct {
	scenario        scenario.Scenario
	verdict         kubejudge.Verdict
	placed, pending int
	err             error
}

func (o *outcome) refused() bool { return o.err != nil || !o.verdict.Valid() }

// judge plans the scenario, checks the bound and replays the plan.
func judge(ctx context.Context, s scenario.Scenario) outcome { return judgeOf(ctx, s, planned) }

func judgeOf(ctx context.Context, s scenario.Scenario, planned func(context.Context, scenario.Scenario) (*plan.Plan, error)) (out outcome) {
	return judgeWith(ctx, s, planned, func(*kubejudge.Scenario) {})
}

// judgeWith is judgeOf with something more that kube-scheduler knows when the plan's pods are bound.
func judgeWith(ctx context.Context, s scenario.Scenario, planned func(context.Context, scenario.Scenario) (*plan.Plan, error), more func(*kubejudge.Scenario)) (out outcome) {
	out.scenario, out.pending = s, len(s.Pods)
	packed, err := planned(ctx, s)
	if err != nil {
		out.err = err
		return out
	}
	out.placed = len(packed.Bindings())
	if out.err = errors.Join(packed.Instance.VerifyBound(packed.Packing), packed.Bound.Verify()); out.err != nil {
		return out
	}
	if packed.Bound.Kind == "" {
		out.err = errors.New("the plan is no packing of its relaxation, so it has no bound")
		return out
	}
	nodes, order := replay.Steps(packed)
	cluster, order, err := s.PlannedSteps(ctx, nodes, order)
	if err != nil {
		out.err = err
		return out
	}
	more(&cluster)
	out.verdict, out.err = kubejudge.JudgeSteps(ctx, cluster, order)
	return out
}

// keep writes a scenario to where a person can look at it with the provision program.
func keep(t *testing.T, s scenario.Scenario) {
	t.Helper()
	if *dump == "" {
		return
	}
	text, err := s.YAML()
	require.NoError(t, err)
	types, err := scenario.CatalogueJSON(s.Catalogue)
	require.NoError(t, err)
	base := filepath.Join(*dump, fmt.Sprintf("seed-%d", s.Seed))
	require.NoError(t, os.WriteFile(base+".yaml", text, 0o600))
	require.NoError(t, os.WriteFile(base+".json", types, 0o600))
}
