package replay_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

var (
	scenarios = flag.Int("scenarios", 200, "how many random scenarios to judge")
	first     = flag.Uint64("seed", 1, "the seed of the first scenario; the others follow")
	size      = flag.Int("pods", 0, "pods a scenario; 0 draws a size from 5 to 200 for each")
)

// planned reads the scenario as a user's manifests and plans it.
func planned(s scenario.Scenario) (*pipeline.Packed, error) {
	text, err := s.YAML()
	if err != nil {
		return nil, err
	}
	m, err := manifests.Parse([]manifests.File{{Name: "scenario.yaml", Data: text}}, nil)
	if err != nil {
		return nil, err
	}
	types, err := scenario.CatalogueJSON(s.Catalogue)
	if err != nil {
		return nil, err
	}
	market, err := pipeline.KWOKMarket("scenario", types)
	if err != nil {
		return nil, err
	}
	snapshot, _, err := pipeline.Snapshot(m, market)
	if err != nil {
		return nil, err
	}
	return pipeline.Run(snapshot, nil, nil)
}

// Every plan must be accepted by kube-scheduler, bind by bind, in the plan's own order.
func TestPlansAreAccepted(t *testing.T) {
	ctx := t.Context()
	placed, pending, bad := 0, 0, 0
	for i := range *scenarios {
		seed := *first + uint64(i)
		pods := *size
		if pods == 0 {
			pods = 5 + int(seed*37%196)
		}
		s := scenario.Generate(seed, scenario.Options{Pods: pods, NoVolumes: *noVolumes, Limits: seed%4 == 0})
		packed, err := planned(s)
		require.NoError(t, err, s.String())
		require.NoError(t, packed.Instance.VerifyBound(packed.Plan), s.String())
		nodes, plan, err := replay.Plan(packed)
		require.NoError(t, err)
		cluster, plan, err := s.Planned(ctx, nodes, nil, plan)
		require.NoError(t, err)
		if cluster, err = kubejudge.Admit(ctx, cluster); err != nil {
			t.Fatal(err)
		}
		verdict, err := kubejudge.Judge(ctx, cluster, plan)
		require.NoError(t, err, s.String())
		placed, pending = placed+len(packed.Result.Order), pending+len(s.Pods)
		if !verdict.Valid() {
			bad++
			t.Errorf("%s\n%s", s, verdict)
			keep(t, s)
			if bad > 5 {
				break
			}
		}
	}
	fmt.Printf("%d scenarios, %d of %d pods placed\n", *scenarios, placed, pending)
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
