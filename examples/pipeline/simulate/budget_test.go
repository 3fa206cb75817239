package simulate_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
)

// leaving is how many nodes of a command leave at the same time, at most.
func leaving(c *giveback.Command) int {
	most := 0
	for _, wave := range c.Waves {
		most = max(most, len(wave))
	}
	return cmp.Or(most, len(c.Nodes))
}

// untilQuiet plans a cluster and applies the plan, hour by hour, until it has found nothing by day and by night. It returns the price at the end.
// Each plan gives back no more nodes than the budgets allow at its moment.
func untilQuiet(t *testing.T, c *fragment.Cluster) float64 {
	t.Helper()
	s, at := c.Snapshot, fragment.Now()
	for quiet := 0; ; at = at.Add(time.Hour) {
		sim, nominated, err := simulate.New(s)
		require.NoError(t, err)
		r, err := giveback.Make(t.Context(), simulate.Cluster(c.Manifests, s, nominated, at), sim, nil)
		require.NoError(t, err)
		allowed := len(s.Nodes)
		for _, b := range s.Pools[0].Disruption.Budgets {
			active, err := b.Active(at)
			require.NoError(t, err)
			if active {
				allowed = min(allowed, b.Allowed(len(s.Nodes)))
			}
		}
		taken := 0
		for i := range r.Commands {
			taken += leaving(&r.Commands[i])
			if s, err = simulate.Apply(s, &r.Commands[i], at); err != nil {
				require.NoError(t, err)
			}
		}
		require.LessOrEqual(t, taken, allowed)
		for _, v := range r.Verdicts {
			if v.Outcome == giveback.OverBudget && taken > 0 {
				require.Contains(t, v.Detail, fmt.Sprintf("; this plan takes %d", taken))
			} else {
				require.NotContains(t, v.Detail, "this plan takes")
			}
		}
		if quiet++; len(r.Commands) > 0 {
			quiet = 0
		} else {
			at = at.Add(8 * time.Hour)
		}
		if quiet == 2 || quiet == 1 && len(s.Pools[0].Disruption.Budgets) == 1 {
			return r.PricePerHourAfter.Dollars()
		}
	}
}

// Plans under a budget, made again until quiet, keep to it each time and come to an end. They end at most 1% dearer than without a budget in the
// mean, and 3% at worst.
func TestPlansUnderBudgetsUntilQuiet(t *testing.T) {
	draws := 2
	if testing.Short() {
		draws = 1
	}
	if parts, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); err == nil {
		draws = max(draws, 12/parts)
	}
	for _, budget := range []string{`{nodes: "1"}`, `{nodes: "10%"}`, `{nodes: "0", schedule: "0 9 * * *", duration: 8h}, {nodes: "3"}`} {
		mean, most, n := 0.0, 0.0, 0
		for draw := range draws {
			for _, size := range []int{8, 20} {
				o := fragment.Options{Nodes: size, Seed: rand.New(rand.NewPCG(uint64(draw), uint64(size))).Uint64(), Constrained: draw%2 == 1}
				free, err := fragment.Generate(o)
				require.NoError(t, err)
				o.Pool = strings.Replace(fragment.Pool, `{nodes: "100%"}`, budget, 1)
				held, err := fragment.Generate(o)
				require.NoError(t, err)
				dearer := untilQuiet(t, held)/untilQuiet(t, free) - 1
				mean, most, n = mean+dearer, max(most, dearer), n+1
			}
		}
		require.LessOrEqual(t, mean/float64(n), 0.01, budget)
		require.LessOrEqual(t, most, 0.03, budget)
		t.Logf("budgets %s: %d clusters end %.2f%% dearer in the mean and %.2f%% at most", budget, n, 100*mean/float64(n), 100*most)
	}
}
