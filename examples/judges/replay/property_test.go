package replay_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/pipeline"
)

var (
	scenarios = flag.Int("scenarios", 200, "how many random scenarios to judge")
	first     = flag.Uint64("seed", 1, "the seed of the first scenario; the others follow")
	size      = flag.Int("pods", 0, "pods a scenario; 0 draws a size from 5 to 200 for each")
)

// planned reads the scenario as a user's manifests and plans it.
func planned(s scenario.Scenario) (*pipeline.Packed, error) {
	snapshot, err := replay.Snapshot(s)
	if err != nil {
		return nil, err
	}
	return pipeline.Run(snapshot, nil, nil)
}

// Every plan must be accepted by kube-scheduler, bind by bind, in the plan's own order.
func TestPlansAreAccepted(t *testing.T) {
	verdicts := make([]outcome, *scenarios)
	var next, bad atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(verdicts) || bad.Load() > 5 {
					return
				}
				verdicts[i] = judge(t.Context(), drawn(*first+uint64(i)))
				if v := &verdicts[i]; v.refused() {
					bad.Add(1)
				} else { // thousands of clusters are a lot to keep
					v.scenario, v.verdict = scenario.Scenario{}, kubejudge.Verdict{}
				}
			}
		})
	}
	wg.Wait()
	placed, pending := 0, 0
	for i := range verdicts {
		v := &verdicts[i]
		placed, pending = placed+v.placed, pending+v.pending
		if v.refused() {
			t.Errorf("%s\n%v\n%s", v.scenario, v.err, v.verdict)
			keep(t, v.scenario)
		}
	}
	fmt.Printf("%d scenarios, %d of %d pods placed\n", len(verdicts), placed, pending)
}

// drawn is the scenario of the seed.
func drawn(seed uint64) scenario.Scenario {
	pods := *size
	if pods == 0 {
		pods = 5 + int(seed*37%196)
	}
	return scenario.Generate(seed, scenario.Options{Pods: pods, NoVolumes: *noVolumes, Limits: seed%4 == 0})
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
func judge(ctx context.Context, s scenario.Scenario) (out outcome) {
	out.scenario, out.pending = s, len(s.Pods)
	packed, err := planned(s)
	if err != nil {
		out.err = err
		return out
	}
	out.placed = len(packed.Result.Order)
	if out.err = packed.Instance.VerifyBound(packed.Plan); out.err != nil {
		return out
	}
	nodes, plan, err := replay.Plan(packed)
	if err != nil {
		out.err = err
		return out
	}
	cluster, plan, err := s.Planned(ctx, nodes, nil, plan)
	if err != nil {
		out.err = err
		return out
	}
	if cluster, out.err = kubejudge.Admit(ctx, cluster); out.err == nil {
		out.verdict, out.err = kubejudge.Judge(ctx, cluster, plan)
	}
	return out
}

var dump = flag.String("dump", "", "directory to write scenarios with a refused plan to, as manifests and catalogue")

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

var noVolumes = flag.Bool("no-volumes", false, "leave volumes out")
