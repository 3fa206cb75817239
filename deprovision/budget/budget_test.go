package budget_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision/budget"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// noon is a Thursday.
func noon() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) }

func left(t *testing.T, u budget.Usage, at time.Time, r nodepool.Reason, list ...nodepool.Budget) int {
	t.Helper()
	p := nodepool.NodePool{Name: "default", Disruption: nodepool.Disruption{Budgets: list}}
	return budget.New([]nodepool.NodePool{p}, map[string]budget.Usage{"default": u}, at).Left("default", r)
}

func TestLeft(t *testing.T) {
	ten := budget.Usage{Nodes: 10}
	assert.Equal(t, budget.Unlimited, left(t, ten, noon(), nodepool.Empty), "no budgets, no limit")
	assert.Equal(t, 0, left(t, ten, noon(), nodepool.Empty, nodepool.Budget{}))
	assert.Equal(t, 1, left(t, ten, noon(), nodepool.Empty, nodepool.Budget{Nodes: 5, Percent: true}), "shares round up")
	assert.Equal(t, 2, left(t, ten, noon(), nodepool.Empty, nodepool.Budget{Nodes: 5}, nodepool.Budget{Nodes: 2}), "the smallest decides")
	assert.Equal(t, 3, left(t, budget.Usage{Nodes: 10, Leaving: 2}, noon(), nodepool.Empty, nodepool.Budget{Nodes: 5}))
	assert.Equal(t, 0, left(t, budget.Usage{Nodes: 10, Leaving: 9}, noon(), nodepool.Empty, nodepool.Budget{Nodes: 5}), "never below none")
	drifted := nodepool.Budget{Nodes: 0, Reasons: []nodepool.Reason{nodepool.Drifted}}
	assert.Equal(t, 0, left(t, ten, noon(), nodepool.Drifted, drifted))
	assert.Equal(t, budget.Unlimited, left(t, ten, noon(), nodepool.Empty, drifted))
}

// A repair is what makes a node ready again, so nodes that are not ready do not use up its budget.
func TestUnhealthy(t *testing.T) {
	five := nodepool.Budget{Nodes: 5}
	for _, r := range budget.Reasons() {
		want := 2
		if r == nodepool.Unhealthy {
			want = 4
		}
		assert.Equal(t, want, left(t, budget.Usage{Nodes: 10, Leaving: 1, NotReady: 2}, noon(), r, five), r)
	}
	only := nodepool.Budget{Nodes: 0, Reasons: []nodepool.Reason{nodepool.Unhealthy}}
	assert.Equal(t, 0, left(t, budget.Usage{Nodes: 10}, noon(), nodepool.Unhealthy, only))
	assert.Equal(t, budget.Unlimited, left(t, budget.Usage{Nodes: 10}, noon(), nodepool.Drifted, only))

	p := nodepool.NodePool{Name: "default", Disruption: nodepool.Disruption{Budgets: []nodepool.Budget{five}}}
	l := budget.New([]nodepool.NodePool{p}, map[string]budget.Usage{"default": {Nodes: 10, NotReady: 2}}, noon())
	assert.Equal(t, "budgets[0] of pool default allows 5 of 10 nodes at once, and 2 are being removed or not ready", l.Why("default", nodepool.Drifted))
	assert.Equal(t, "budgets[0] of pool default allows 5 of 10 nodes at once", l.Why("default", nodepool.Unhealthy))
}

// A budget with reasons limits only these, but nodes that go for any reason use it up. What uses a budget up matters only if it
// allows any node.
func TestTextsOfBudgetsWithReasons(t *testing.T) {
	reasons := func(list ...nodepool.Reason) []nodepool.Reason { return list }
	for _, c := range []struct {
		budget nodepool.Budget
		usage  budget.Usage
		taken  int
		want   string
	}{
		{nodepool.Budget{Reasons: reasons(nodepool.Underutilized)}, budget.Usage{Nodes: 14, Leaving: 1}, 3, "budgets[0] of pool default allows 0 of 14 nodes at once for the reason Underutilized"},
		{nodepool.Budget{}, budget.Usage{Nodes: 14, Leaving: 1}, 3, "budgets[0] of pool default allows 0 of 14 nodes at once"},
		{nodepool.Budget{Nodes: 2, Reasons: reasons(nodepool.Underutilized)}, budget.Usage{Nodes: 14}, 3, "budgets[0] of pool default allows 2 of 14 nodes at once for the reason Underutilized; this plan takes 3; nodes that go for other reasons count, too"},
		{nodepool.Budget{Nodes: 2, Reasons: reasons(nodepool.Underutilized)}, budget.Usage{Nodes: 14}, 0, "budgets[0] of pool default allows 2 of 14 nodes at once for the reason Underutilized"},
		{nodepool.Budget{Nodes: 2, Reasons: reasons(nodepool.Empty, nodepool.Underutilized)}, budget.Usage{Nodes: 14, Leaving: 2}, 0, "budgets[0] of pool default allows 2 of 14 nodes at once for the reasons Empty and Underutilized, and 2 are being removed; nodes that go for other reasons count, too"},
		{nodepool.Budget{Nodes: 2, Reasons: budget.Reasons()}, budget.Usage{Nodes: 14}, 2, "budgets[0] of pool default allows 2 of 14 nodes at once; this plan takes 2"},
	} {
		pool := nodepool.NodePool{Name: "default", Disruption: nodepool.Disruption{Budgets: []nodepool.Budget{c.budget}}}
		l := budget.New([]nodepool.NodePool{pool}, map[string]budget.Usage{"default": c.usage}, noon()).Take("default", c.taken)
		assert.Equal(t, c.want, l.Why("default", nodepool.Underutilized))
		assert.Equal(t, max(0, c.budget.Nodes-c.usage.Leaving-c.taken), l.Left("default", nodepool.Underutilized))
		if len(c.budget.Reasons) == 1 {
			assert.Empty(t, l.Why("default", nodepool.Drifted))
		}
	}
}

func TestSchedules(t *testing.T) {
	office := nodepool.Budget{Nodes: 0, Schedule: "0 9 * * mon-fri", Duration: 8 * time.Hour}
	for at, want := range map[time.Time]int{
		noon(): 0, noon().Add(-3 * time.Hour): 0, noon().Add(-3*time.Hour - time.Minute): budget.Unlimited,
		noon().Add(5*time.Hour + time.Minute): budget.Unlimited, noon().AddDate(0, 0, 2): budget.Unlimited,
		noon().In(time.FixedZone("", 5*3600)): 0,
	} {
		assert.Equal(t, want, left(t, budget.Usage{Nodes: 10}, at, nodepool.Underutilized, office), at)
	}
	assert.Equal(t, 0, left(t, budget.Usage{Nodes: 10}, noon(), nodepool.Empty, nodepool.Budget{Nodes: 5, Schedule: "whenever"}), "what cannot be read allows nothing")
}

// Nodes that were never ready do not count, unless they reboot; each node uses up a budget once.
func TestCount(t *testing.T) {
	pool := &nodepool.NodePool{Name: "default"}
	node := func(labels string, ready corev1.ConditionStatus, taints ...string) eligibility.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"karpenter.sh/" + labels: "true"}}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		for _, key := range taints {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "karpenter.sh/" + key, Effect: corev1.TaintEffectNoSchedule})
		}
		return eligibility.Node{Node: n, Pool: pool}
	}
	for name, c := range map[string]struct {
		node eligibility.Node
		want budget.Usage
	}{
		"ready":               {node("initialized", "True"), budget.Usage{Nodes: 1}},
		"not ready":           {node("initialized", "Unknown"), budget.Usage{Nodes: 1, NotReady: 1}},
		"leaving":             {node("initialized", "True", "disrupted"), budget.Usage{Nodes: 1, Leaving: 1}},
		"leaving, not ready":  {node("initialized", "False", "disrupted"), budget.Usage{Nodes: 1, Leaving: 1}},
		"starting":            {node("registered", "True"), budget.Usage{}},
		"starting, not ready": {node("registered", "False"), budget.Usage{}},
		"rebooting":           {node("registered", "False", "rebooting"), budget.Usage{Nodes: 1, Leaving: 1}},
		"told to reboot":      {node("initialized", "True", "rebooting"), budget.Usage{Nodes: 1, Leaving: 1}},
		"of no pool":          {eligibility.Node{Node: node("initialized", "True").Node}, budget.Usage{}},
	} {
		assert.Equal(t, c.want, budget.Count([]eligibility.Node{c.node})["default"], name)
	}
}

func TestUnknownPool(t *testing.T) {
	assert.Equal(t, 0, budget.Ledger{}.Left("none", nodepool.Empty))
	assert.Empty(t, budget.Ledger{}.Why("none", nodepool.Empty))
}

func ExampleLedger_Take() {
	pool := nodepool.NodePool{Name: "default", Disruption: nodepool.Disruption{Budgets: []nodepool.Budget{{Nodes: 20, Percent: true}}}}
	l := budget.New([]nodepool.NodePool{pool}, map[string]budget.Usage{"default": {Nodes: 11}}, time.Time{})
	after := l.Take("default", 3)
	fmt.Println(l.Left("default", nodepool.Drifted), after.Left("default", nodepool.Empty))
	fmt.Println(after.Why("default", nodepool.Empty))
	// Output:
	// 3 0
	// budgets[0] of pool default allows 20% (3) of 11 nodes at once; this plan takes 3
}

// Budgets of zones count the nodes of all pools there.
func TestZones(t *testing.T) {
	a, b := &nodepool.NodePool{Name: "a"}, &nodepool.NodePool{Name: "b"}
	node := func(pool *nodepool.NodePool, zone string, leaving bool) eligibility.Node {
		return eligibility.Node{Node: &corev1.Node{}, Pool: pool, Zone: zone, Claim: eligibility.Claim{Deleting: leaving}}
	}
	nodes := []eligibility.Node{node(a, "x", false), node(b, "x", true), node(b, "x", false), node(a, "y", false), node(nil, "z", false)}
	l := budget.Zones([]nodepool.Budget{{Nodes: 50, Percent: true}, {Nodes: 0, Reasons: []nodepool.Reason{nodepool.Drifted}}}, nodes, noon())
	assert.Equal(t, 1, l.Left("x", nodepool.Empty))
	assert.Equal(t, 1, l.Left("y", nodepool.Empty))
	assert.Equal(t, 0, l.Left("z", nodepool.Empty), "it has no node of a pool")
	assert.Equal(t, 0, l.Left("x", nodepool.Drifted))
	assert.Equal(t, 0, l.Take("x", 1).Left("x", nodepool.Empty))
	assert.Equal(t, 1, l.Take("x", 1).Left("y", nodepool.Empty))
	assert.Equal(t, "budgets[0] of zone x allows 50% (2) of 3 nodes at once, and 1 is being removed", l.Why("x", nodepool.Empty))
	assert.Equal(t, budget.Unlimited, budget.Zones(nil, nodes, noon()).Left("x", nodepool.Drifted))
}

// What the ledger leaves beside commands in waves may go at every moment of every order in which they are carried out, and one node more may not.
func TestTakeInWaves(t *testing.T) {
	for draw := range 2000 {
		rng := rand.New(rand.NewPCG(uint64(draw), 43))
		nodes := 1 + rng.IntN(40)
		pool := nodepool.NodePool{Name: "default"}
		for range 1 + rng.IntN(2) {
			pool.Disruption.Budgets = append(pool.Disruption.Budgets, nodepool.Budget{Nodes: 1 + rng.IntN(60), Percent: rng.IntN(3) > 0})
		}
		allowed := func(gone int) int {
			least := budget.Unlimited
			for _, b := range pool.Disruption.Budgets {
				least = min(least, b.Allowed(nodes-gone))
			}
			return least
		}
		l := budget.New([]nodepool.NodePool{pool}, map[string]budget.Usage{"default": {Nodes: nodes}}, noon())
		moments, gone := [][2]int{{}}, 0 // how many have gone, and how many leave
		for range 1 + rng.IntN(3) {
			var waves []int
			for at := l; len(waves) < 1+rng.IntN(6); {
				n := min(at.Left("default", nodepool.Drifted), 1+rng.IntN(4), nodes-gone)
				if n == 0 {
					break
				}
				waves, gone, at = append(waves, n), gone+n, at.Gone("default", n)
			}
			var next [][2]int
			for _, m := range moments {
				next = append(next, m)
				for _, n := range waves {
					next = append(next, [2]int{m[0], m[1] + n})
					m[0] += n
				}
				next = append(next, m)
			}
			moments, l = next, l.TakeInWaves("default", waves)
			left := budget.Unlimited
			for _, m := range moments {
				require.LessOrEqual(t, m[1], allowed(m[0]), "draw %d: %d nodes, %v, %v", draw, nodes, pool.Disruption.Budgets, moments)
				left = min(left, allowed(m[0])-m[1])
			}
			require.Equal(t, left, l.Left("default", nodepool.Drifted), "draw %d: %d nodes, %v, %v", draw, nodes, pool.Disruption.Budgets, moments)
		}
	}
}

func ExampleLedger_TakeInWaves() {
	pool := nodepool.NodePool{Name: "default", Disruption: nodepool.Disruption{Budgets: []nodepool.Budget{{Nodes: 30, Percent: true}}}}
	l := budget.New([]nodepool.NodePool{pool}, map[string]budget.Usage{"default": {Nodes: 10}}, noon())
	fmt.Println(l.Left("default", nodepool.Drifted), l.Gone("default", 4).Left("default", nodepool.Drifted))
	l = l.TakeInWaves("default", []int{2, 2, 1})
	fmt.Println(l.Left("default", nodepool.Drifted), l.Why("default", nodepool.Drifted))
	// Output:
	// 3 2
	// 1 budgets[0] of pool default allows 30% (3) of 8 nodes at once when this plan has given back 2; this plan takes 2
}
