package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// A verdict that says how many nodes a plan takes counts those that commands of the plan take at once, whatever was tried before.
func TestVerdictsCountWhatThePlanTakes(t *testing.T) {
	said := regexp.MustCompile(`of (pool|zone) (\S+) allows .*; this plan takes (\d+)`)
	rounds, told := 600, 0
	if testing.Short() {
		rounds = 150
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		w := drawScarce(r)
		for i := range w.s.Pools {
			w.s.Pools[i].Disruption.Budgets = []nodepool.Budget{{Nodes: 1 + r.IntN(2)}}
		}
		o := giveback.Options{}
		if r.IntN(2) == 0 {
			o.ZoneBudgets = []nodepool.Budget{{Nodes: 1 + r.IntN(2)}}
		}
		if r.IntN(3) == 0 {
			o.TerminateFirst = []eligibility.Method{eligibility.Unhealthy, eligibility.Drift}
		}
		if r.IntN(4) == 0 {
			o.MaxEvictions = 1 + r.IntN(4)
		}
		sim, nominated, err := simulate.New(w.s)
		require.NoError(t, err)
		c := w.objects.Cluster(w.s, nominated, time.Unix(1e6, 0))
		for i := range c.Nodes {
			n := &c.Nodes[i]
			switch w.due[n.Name()] {
			case eligibility.Unhealthy:
				n.Repair = &eligibility.Repair{Why: "no disk"}
			case eligibility.Drift:
				n.Drifted = []string{"old"}
			default:
			}
			if r.IntN(4) == 0 {
				c.Interruptions = append(c.Interruptions, deprovision.Interruption{Node: n.Name(), Deadline: c.Now.Add(time.Hour), Why: "the cloud takes the machine back"})
			}
		}
		result, err := giveback.Make(t.Context(), c, sim, &o)
		require.NoError(t, err)
		taken := map[string]int{}
		for i := range result.Commands {
			x := &result.Commands[i]
			at := map[string]bool{}
			if len(x.Waves) > 0 {
				for _, name := range x.Waves[0] {
					at[name] = true
				}
			}
			for _, n := range x.Nodes {
				if len(x.Waves) > 0 && !at[n.Name] || x.Method == eligibility.Unhealthy && !n.Node.Initialized() {
					continue
				}
				taken["pool "+n.Node.PoolName()]++
				taken["zone "+n.Node.Zone]++
			}
		}
		for _, v := range result.Verdicts {
			for _, x := range said.FindAllStringSubmatch(v.Detail, -1) {
				told++
				n, _ := strconv.Atoi(x[3])
				require.Equal(t, taken[x[1]+" "+x[2]], n, fmt.Sprintf("seed %d: %s: %s: %s\n%v", seed, v.Node, v.Outcome, v.Detail, going(result)))
			}
		}
	}
	t.Log(told, "verdicts say how many nodes the plan takes")
	require.Greater(t, told, rounds/10)
}
