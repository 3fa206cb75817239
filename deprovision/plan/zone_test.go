package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// zoned is a world with that many nodes of random prices and pods in three zones.
func zoned(rng *rand.Rand, n int) *world {
	var nodes []string
	for i := range n {
		nodes = append(nodes, fmt.Sprintf("n%d %d %d", i, 2+rng.IntN(8), rng.IntN(3)))
	}
	w := newWorld(nodes...)
	for i := range w.Nodes {
		w.Nodes[i].Zone = string(rune('a' + rng.IntN(3)))
	}
	return w
}

// goingByZone counts the nodes that leave first, by zone: all of a command, or those of its first wave.
func goingByZone(w *world, r plan.Result, counts func(eligibility.Method) bool) map[string]int {
	out := map[string]int{}
	for _, c := range r.Commands {
		for _, n := range c.Nodes {
			if counts(c.Method) && (len(c.Waves) == 0 || slices.Contains(c.Waves[0], n.Name)) {
				out[w.node(n.Name).Zone]++
			}
		}
	}
	return out
}

// No plan takes more nodes of a zone than its budget allows, and some go where it allows any.
func TestZoneBudgets(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	bound, went := 0, 0
	for k := range 200 {
		w := zoned(rng, 4+rng.IntN(8))
		for i := range w.Nodes {
			if rng.IntN(3) == 0 {
				w.Nodes[i].Drifted = []string{"x"}
			}
		}
		free := w.plan(plan.Options{})
		most := rng.IntN(3)
		r := w.plan(plan.Options{ZoneBudgets: []nodepool.Budget{{Nodes: most}}})
		for zone, n := range goingByZone(w, r, func(eligibility.Method) bool { return true }) {
			require.LessOrEqual(t, n, most, "%d: zone %s: %v", k, zone, commands(r))
			went += n
		}
		for zone, n := range goingByZone(w, free, func(eligibility.Method) bool { return true }) {
			if n > most {
				bound++
			}
			if most > 0 && n > 0 {
				require.NotEmpty(t, r.Commands, "%d: zone %s", k, zone)
			}
		}
		for _, v := range r.Verdicts {
			if v.Outcome == plan.OverBudget {
				require.Contains(t, v.Detail, fmt.Sprintf("budgets[0] of zone %s allows %d of", w.node(v.Node).Zone, most))
			}
		}
	}
	require.Greater(t, bound, 100)
	require.Greater(t, went, 100)
}

// Drift is in one zone at a time: the one where nodes are leaving for it, or have drifted for longest. A zone in which none can go does not hold
// the others up.
func TestDriftByZone(t *testing.T) {
	options := plan.Options{Methods: []eligibility.Method{eligibility.Drift}, DriftByZone: true}
	rng := rand.New(rand.NewPCG(7, 8))
	several, blocked := 0, 0
	for k := range 200 {
		w := zoned(rng, 4+rng.IntN(8))
		zones := map[string]bool{}
		for i := range w.Nodes {
			if rng.IntN(2) == 0 {
				w.Nodes[i].Drifted, w.Nodes[i].DriftedSince = []string{"x"}, now().Add(-time.Duration(rng.IntN(100))*time.Hour)
				zones[w.Nodes[i].Zone] = true
				if rng.IntN(4) == 0 {
					w.Nodes[i].Node.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
				}
			}
		}
		r := w.plan(options)
		moving := goingByZone(w, r, func(m eligibility.Method) bool { return m == eligibility.Drift })
		require.LessOrEqual(t, len(moving), 1, "%d: %v", k, commands(r))
		plain := w.plan(plan.Options{Methods: options.Methods})
		if len(plain.Commands) > 0 {
			require.Len(t, moving, 1, k)
		}
		for _, v := range plain.Verdicts {
			if v.Outcome == plan.Blocked {
				own := verdict(t, r, v.Node)
				require.Equal(t, v.By, own.By, "%d: %s is blocked in whatever zone it is: %+v", k, v.Node, own)
				blocked++
			}
		}
		if len(zones) > 1 {
			several++
		}
	}
	require.Greater(t, several, 100)
	require.Greater(t, blocked, 100)

	w := newWorld("a1 8 1", "a2 8 1", "b1 8 1", "c1 8 0")
	for i, zone := range []string{"a", "a", "b", "c"} {
		w.Nodes[i].Zone, w.Nodes[i].Drifted, w.Nodes[i].DriftedSince = zone, []string{"x"}, now().Add(-time.Duration(10-i)*time.Hour)
	}
	r := w.plan(options)
	require.Equal(t, plan.Chosen, verdict(t, r, "a1").Outcome)
	require.Equal(t, plan.Chosen, verdict(t, r, "a2").Outcome)
	require.Equal(t, "x, but drift goes zone by zone, and zone a comes first", verdict(t, r, "b1").Detail)

	w.node("c1").Claim.Deleting = true
	require.Contains(t, verdict(t, w.plan(options), "a1").Detail, "zone c comes first")

	w.node("c1").Claim.Deleting = false
	w.node("a1").Node.Annotations, w.node("a2").Node.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}, map[string]string{"karpenter.sh/do-not-disrupt": "true"}
	r = w.plan(options)
	require.Equal(t, plan.Chosen, verdict(t, r, "b1").Outcome)
	require.Contains(t, verdict(t, r, "c1").Detail, "zone b comes first")
}
