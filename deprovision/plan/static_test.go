package plan_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// departure makes a node due by one of the methods.
func departure(w *world, method eligibility.Method, name string) {
	n := w.node(name)
	switch method {
	case eligibility.Interruption:
		w.Interruptions = append(w.Interruptions, deprovision.Interruption{Node: name, Deadline: now().Add(time.Hour)})
	case eligibility.Expiration:
		life := time.Minute
		n.Claim.ExpireAfter, n.Claim.Created = &life, now().Add(-time.Hour)
	case eligibility.Unhealthy:
		n.Repair = &eligibility.Repair{Why: "broken"}
	case eligibility.Drift:
		n.Drifted = []string{"x"}
	case eligibility.Emptiness, eligibility.Consolidation: // always
	}
}

// A node that a static pool needs goes by no method without another node of the pool, and the saving
// counts that node.
func TestStaticPoolsReplaceTheirNodes(t *testing.T) {
	for _, method := range eligibility.Methods() {
		for pods := range 2 {
			for replicas := range int64(5) {
				for limit := int64(1); limit <= 4; limit++ { // 1 for none
					name := fmt.Sprintf("%s, %d pods, %d replicas, limit %d", method, pods, replicas, limit)
					w := newWorld(fmt.Sprint("a 4 ", pods), fmt.Sprint("b 4 ", pods))
					w.Pools[0].Replicas = &replicas
					if limit > 1 {
						w.Pools[0].Limits = corev1.ResourceList{"nodes": *resource.NewQuantity(limit, resource.DecimalSI)}
					}
					departure(w, method, "a")
					r := w.plan(plan.Options{})
					goes := method == eligibility.Interruption || method == eligibility.Expiration
					if can := method == eligibility.Unhealthy || method == eligibility.Drift; !goes && (!can || replicas < 2 || limit == 2) {
						require.Empty(t, r.Commands, name)
						assert.Equal(t, plan.Blocked, r.Verdicts[0].Outcome, name)
						assert.Equal(t, eligibility.StaticPool, r.Verdicts[0].By[0].Kind, name)
						continue
					}
					require.Len(t, r.Commands, 1, name)
					c := r.Commands[0]
					assert.Equal(t, method, c.Method, name)
					if replicas < 2 { // the pool does not need it
						assert.Equal(t, plan.Delete, c.Kind, name)
						continue
					}
					assert.Equal(t, plan.Replace, c.Kind, name)
					require.Len(t, c.NewNodes, 1, name)
					assert.Equal(t, "default", c.NewNodes[0].Pool, name)
					assert.Zero(t, c.SavingsPerHour, name)
					assert.Equal(t, r.PricePerHour, r.PricePerHourAfter, name)
				}
			}
		}
	}
}

// A static pool that can buy nothing keeps its nodes, except those that go in any case.
func TestStaticPoolsThatCanBuyNothing(t *testing.T) {
	for _, method := range []eligibility.Method{eligibility.Interruption, eligibility.Expiration, eligibility.Unhealthy, eligibility.Drift} {
		w := newWorld("a 4 1", "b 4 1")
		w.none, w.Pools[0].Replicas = true, new(int64(2))
		departure(w, method, "a")
		r := w.plan(plan.Options{})
		if method == eligibility.Unhealthy || method == eligibility.Drift {
			require.Empty(t, r.Commands, method)
			assert.Contains(t, r.Verdicts[0].Detail, "but pool default cannot buy a node in its place now", method)
			continue
		}
		require.Len(t, r.Commands, 1, method)
		assert.Contains(t, r.Commands[0].Why, "though pool default cannot buy a node in its place now", method)
	}
}

// freeing is a toy that knows what a node frees if it goes before others are bought: without that,
// nothing is for sale.
type freeing struct {
	toy
	slots []string
}

func (s freeing) Simulate(ctx context.Context, q plan.Question) (plan.Answer, error) {
	if !q.Freed && q.Moves == nil {
		q.MaxNodes, s.none = 0, true
	}
	a, err := s.toy.Simulate(ctx, q)
	if q.Freed && len(a.NewNodes) > 0 {
		a.Freed = s.slots
	}
	if a.After != nil {
		after := a.After().(toy)
		a.After = func() plan.Simulator { return freeing{after, s.slots} }
		a.Rebased = a.After
	}
	return a, err
}

// A node goes first only if the simulator says what that frees: one that does not know the question
// never lets one go. Of a plan's nodes that need the same place one goes.
func TestOnlyWhatIsProvedGoesFirst(t *testing.T) {
	both := plan.Options{TerminateFirst: []eligibility.Method{eligibility.Drift, eligibility.Unhealthy, eligibility.Consolidation}}
	for _, method := range eligibility.Methods() {
		for slots, first := range map[string]int{"": 0, "cr-1": 1} {
			for _, static := range []bool{false, true} {
				name := fmt.Sprint(method, slots, static)
				w := newWorld("a 4 4", "b 4 4")
				if static {
					w.Pools[0].Replicas, w.Pools[0].Limits = new(int64(2)), corev1.ResourceList{"nodes": *resource.NewQuantity(2, resource.DecimalSI)}
				}
				departure(w, method, "a")
				departure(w, method, "b")
				sim := freeing{toy: w.toy}
				if slots != "" {
					sim.slots = []string{slots}
				}
				r := planned(w.Cluster, sim, &both)
				n := 0
				for _, c := range r.Commands {
					if c.TerminateFirst {
						n++
						require.Equal(t, "a", c.Nodes[0].Name, name)
						require.Contains(t, c.Why, "; goes first: cr-1", name)
					}
				}
				if method != eligibility.Drift && method != eligibility.Unhealthy {
					first = 0
				}
				require.Equal(t, first, n, name)
			}
		}
	}
}

// A pool that is being deleted needs none of its nodes.
func TestStaticPoolsThatGo(t *testing.T) {
	w := newWorld("a 4 1", "b 4 1")
	w.Pools[0].Replicas, w.Pools[0].Metadata.DeletionTimestamp = new(int64(2)), &metav1.Time{Time: now()}
	departure(w, eligibility.Drift, "a")
	r := w.plan(plan.Options{})
	require.Len(t, r.Commands, 1)
	assert.Equal(t, plan.Delete, r.Commands[0].Kind)
}

// Beside nodes of other pools, whatever goes and why: no command leaves a static pool with fewer nodes
// than its replicas, if it had them, or with more nodes than before.
func TestStaticPoolsKeepTheirSize(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	replaced := 0
	for round := range 300 {
		var nodes []string
		for i := range 2 + r.IntN(6) {
			nodes = append(nodes, fmt.Sprintf("n%d 4 %d", i, r.IntN(5)))
		}
		w := newWorld(nodes...)
		w.Pools = append(w.Pools, w.Pools[0])
		replicas := r.Int64N(6)
		w.Pools[1].Name, w.Pools[1].Replicas = "static", &replicas
		w.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: 1 + r.IntN(3)}}
		before := int64(0)
		for i := range w.Nodes {
			w.Nodes[i].Pool = &w.Pools[0]
			if r.IntN(2) == 0 {
				w.Nodes[i].Pool = &w.Pools[1]
				before++
			}
			if r.IntN(3) > 0 {
				methods := eligibility.Methods()
				departure(w, methods[r.IntN(len(methods))], w.Nodes[i].Name())
			}
		}
		out := w.plan(plan.Options{})
		count := before
		for i := range out.Commands {
			c := &out.Commands[i]
			for _, n := range c.Nodes {
				if n.Pool == "static" {
					count--
				}
			}
			for _, n := range c.NewNodes {
				if n.Pool == "static" {
					count++
					replaced++
				}
			}
			require.GreaterOrEqual(t, count, min(before, replicas), "%d: %v", round, commands(out))
			require.LessOrEqual(t, count, before, "%d: %v", round, commands(out))
		}
	}
	require.Greater(t, replaced, 100)
}
