package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/budget"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// leftFor is how many nodes the budgets allow, beside those that the commands take, for what gives back each node.
func leftFor(c *deprovision.Cluster, o *giveback.Options, r *giveback.Result) map[string]int {
	pools, zones := budget.New(c.Pools, budget.Count(c.Nodes), c.Now), budget.Zones(o.ZoneBudgets, c.Nodes, c.Now)
	for i := range r.Commands {
		x := &r.Commands[i]
		for _, n := range x.Nodes {
			later := len(x.Waves) > 0 && !slices.Contains(x.Waves[0], n.Name)
			if !later && (x.Method != eligibility.Unhealthy || n.Node.Initialized()) {
				pools, zones = pools.Take(n.Pool, 1), zones.Take(n.Zone, 1)
			}
		}
	}
	out := map[string]int{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		at := slices.IndexFunc(r.Verdicts, func(v giveback.Verdict) bool { return v.Node == n.Name() })
		reason := nodepool.Underutilized
		switch method := r.Verdicts[at].Method; {
		case method == eligibility.Unhealthy:
			reason = nodepool.Unhealthy
		case method == eligibility.Drift:
			reason = nodepool.Drifted
		case len(n.Reschedulable()) == 0:
			reason = nodepool.Empty
		}
		out[n.Name()] = min(pools.Left(n.PoolName(), reason), zones.Left(n.Zone, reason))
	}
	return out
}

// A verdict that names a budget although the plan leaves some of it says what needs more: the nodes that go only together, or a node that must go.
func TestVerdictsSayWhatNeedsMoreThanIsLeft(t *testing.T) {
	more := regexp.MustCompile(`in this plan it goes together with (\S+?)( and (\d+) more)?: budgets|moves whole, with all (\d+) nodes|reserved for nodes that come first|drift goes zone by zone|evictions are limited`)
	seen := map[string]int{}
	judge := func(name string, c *deprovision.Cluster, o *giveback.Options, r *giveback.Result) {
		left := leftFor(c, o, r)
		for _, v := range r.Verdicts {
			if v.Outcome != giveback.OverBudget || left[v.Node] == 0 {
				continue
			}
			m := more.FindStringSubmatch(v.Detail)
			if !assert.NotNil(t, m, "%s: %d left for %s: %s", name, left[v.Node], v.Node, v.Detail) {
				continue
			}
			if m[1] == "" {
				seen["other"]++
				continue
			}
			seen["together"]++
			size, _ := strconv.Atoi(m[3])
			assert.Equal(t, giveback.OverBudget, said(t, *r, m[1]).Outcome, "%s: %s: %s", name, v.Node, v.Detail)
			assert.Less(t, min(left[v.Node], left[m[1]]), 2+size, "%s: %s: %s", name, v.Node, v.Detail)
		}
	}
	for seed := range drawings(t) / 2 {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		w := drawScarce(r)
		for i := range w.s.Pools {
			w.s.Pools[i].Disruption.Budgets = []nodepool.Budget{{Nodes: 1 + r.IntN(3)}}
		}
		o := giveback.Options{TerminateFirst: []eligibility.Method{eligibility.Unhealthy, eligibility.Drift}, DriftByZone: r.IntN(4) == 0}
		if r.IntN(2) == 0 {
			o.ZoneBudgets = []nodepool.Budget{{Nodes: 1 + r.IntN(2)}}
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
		judge(fmt.Sprintf("scarce %d", seed), &c, &o, &result)
	}
	for seed := range uint64(drawings(t) / 3) {
		d := draw(seed, false)
		r, c, _ := d.plan(t, d.s)
		judge(fmt.Sprintf("drawn %d", seed), &c, &giveback.Options{}, &r)
	}
	fragments, step := uint64(drawings(t)/15), uint64(1)
	if testing.Short() { // the tightest budget alone, which has most nodes that go only together
		fragments, step = 33, 3
	}
	for seed := uint64(0); seed < fragments; seed += step {
		pool := strings.Replace(fragment.Pool, `"100%"`, fmt.Sprintf(`"%d"`, 2+seed%3), 1)
		f, err := fragment.Generate(fragment.Options{Nodes: 6 + int(seed%10), Seed: seed, Pool: pool, Gangs: int(seed % 4)})
		require.NoError(t, err)
		sim, nominated, err := simulate.New(f.Snapshot)
		require.NoError(t, err)
		c := simulate.Cluster(f.Manifests, f.Snapshot, nominated, fragment.Now())
		r, err := giveback.Make(t.Context(), c, sim, &giveback.Options{})
		require.NoError(t, err)
		judge(fmt.Sprintf("fragments %d", seed), &c, &giveback.Options{}, &r)
	}
	t.Log(seen)
	assert.Greater(t, seen["together"], 10)
}
