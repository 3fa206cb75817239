package plan_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// broken is a simulator that has nothing but an error.
type broken struct{ error }

func (b broken) Simulate(context.Context, plan.Question) (plan.Answer, error) {
	return plan.Answer{}, b.error
}

func TestErrorsHaveNames(t *testing.T) {
	ctx := t.Context()
	w := newWorld("a 4 1", "b 4 3")
	_, err := plan.Make(ctx, w.Cluster, nil, nil)
	require.ErrorIs(t, err, plan.ErrNoSimulator)
	_, err = plan.Make(ctx, deprovision.Cluster{}, w.toy, nil)
	require.ErrorIs(t, err, deprovision.ErrNoTime)
	_, err = plan.Make(ctx, deprovision.Cluster{Now: now(), Nodes: make([]eligibility.Node, 1)}, w.toy, nil)
	require.ErrorIs(t, err, deprovision.ErrNoNode)
	lost := w.Cluster
	lost.Pools = nil
	_, err = plan.Make(ctx, lost, w.toy, nil)
	var missing *deprovision.MissingPoolError
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, deprovision.MissingPoolError{Node: "a", Pool: "default"}, *missing)
	_, err = plan.Make(ctx, w.Cluster, broken{context.DeadlineExceeded}, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = plan.Make(ended, w.Cluster, w.toy, nil)
	require.ErrorIs(t, err, context.Canceled)
	_, err = plan.Make(ctx, deprovision.Cluster{Now: now()}, w.toy, nil)
	require.NoError(t, err, "no nodes are no mistake")
}

// No number of the options means anything below zero, except the price of disruption.
func TestNegativeOptionsAreErrors(t *testing.T) {
	w := newWorld("a 4 1", "b 4 3")
	for want, o := range map[string]plan.Options{
		"deprovision: Options.MaxEvictions is -1: want 0 or more":           {MaxEvictions: -1},
		"deprovision: Options.MinSavings is -$0.01: want 0 or more":         {MinSavings: deprovision.Dollars(-0.01)},
		"deprovision: Options.SpotFlexibility is -2: want 0 or more":        {SpotFlexibility: -2},
		"deprovision: Options.LaunchTime is -1s: want 0 or more":            {LaunchTime: -time.Second},
		"deprovision: Options.Objective.Horizon is -1h0m0s: want 0 or more": {Objective: plan.Objective{Horizon: -time.Hour}},
		"deprovision: Options.Objective.Balanced is -2: want 0 or more":     {Objective: plan.Objective{Balanced: -2}},
		"deprovision: Options.Rules.MinimumAge is -1h0m0s: want 0 or more":  {Rules: eligibility.Rules{MinimumAge: -time.Hour}},
	} {
		_, err := plan.Make(t.Context(), w.Cluster, w.toy, &o)
		require.EqualError(t, err, want)
		_, err = plan.Frontier(t.Context(), w.Cluster, w.toy, &o, 1)
		require.EqualError(t, err, want)
	}
	_, err := plan.Make(t.Context(), w.Cluster, w.toy, &plan.Options{Objective: plan.Objective{DisruptionPrice: -1}})
	require.NoError(t, err)
	_, err = plan.Make(nil, w.Cluster, w.toy, nil) //nolint:staticcheck // the context is nil on purpose
	require.EqualError(t, err, "deprovision: the context is nil; pass context.Background() for none")
}

func TestEveryMethod(t *testing.T) {
	hour := time.Hour
	for name, c := range map[string]struct {
		world *world
		set   func(*world)
		o     plan.Options
		want  []string
	}{
		"empty nodes go together":        {world: newWorld("a 4 0", "b 4 0", "c 4 4"), want: []string{"emptiness delete -a -b"}},
		"what fits elsewhere is deleted": {world: newWorld("a 4 1", "b 4 3"), want: []string{"consolidation delete -a"}},
		"what is too large is replaced":  {world: newWorld("a 8 3"), want: []string{"consolidation replace -a +t3"}},
		"several are replaced by one": {
			world: newWorld("a 8 5", "b 8 5"), set: func(w *world) {
				w.node("a").PricePerHour, w.node("b").PricePerHour = deprovision.Dollars(0.09), deprovision.Dollars(0.09)
			},
			want: []string{"consolidation replace -a -b +t10"},
		},
		"but not if one of them saves as much": {world: newWorld("a 8 5", "b 8 5"), want: []string{"consolidation replace -b +t2"}},
		"an empty node is kept rather than bought again": {
			world: newWorld("a 8 3", "b 4 0", "c 2 0"), set: func(w *world) { w.even = true },
			want: []string{"emptiness delete -c", "consolidation delete -a"},
		},
		"what is right stays": {world: newWorld("a 4 4", "b 4 4")},
		"expired nodes are replaced, whatever it costs": {
			world: newWorld("a 2 2"), set: func(w *world) { w.Pools[0].Disruption.ExpireAfter = &hour },
			want: []string{"expiration replace -a +t2"},
		},
		"not before their time": {world: newWorld("a 2 2"), set: func(w *world) { w.Pools[0].Disruption.ExpireAfter = &hour; w.Now = w.Now.Add(-time.Second) }},
		"drifted nodes are replaced": {
			world: newWorld("a 2 2"), set: func(w *world) { w.node("a").Drifted = []string{"by hand"} },
			want: []string{"drift replace -a +t2"},
		},
		"empty ones drift first": {
			world: newWorld("a 2 2", "b 2 0"), set: func(w *world) { w.node("a").Drifted = []string{"x"}; w.node("b").Drifted = []string{"x"} },
			want: []string{"drift delete -b", "drift replace -a +t2"},
		},
		"interrupted nodes go first": {world: newWorld("a 2 2", "b 2 0"), set: func(w *world) {
			w.Interruptions = []deprovision.Interruption{{Node: "a", Deadline: now().Add(time.Hour)}}
		}, want: []string{"interruption delete -a"}},
		"only methods that were asked for": {
			world: newWorld("a 4 0", "b 4 1", "c 4 1"), o: plan.Options{Methods: []eligibility.Method{eligibility.Emptiness}},
			want: []string{"emptiness delete -a"},
		},
		"spot is not replaced by spot": {world: newWorld("a 8 3"), set: func(w *world) {
			w.spot = true
			w.node("a").CapacityType = "spot"
			w.node("a").PricePerHour = deprovision.Dollars(0.02)
		}},
		"unless it is asked for": {
			world: newWorld("a 8 3"), set: func(w *world) {
				w.spot = true
				w.node("a").CapacityType = "spot"
				w.node("a").PricePerHour = deprovision.Dollars(0.02)
			},
			o: plan.Options{SpotToSpot: true, SpotFlexibility: 1}, want: []string{"consolidation replace -a +t3"},
		},
		"nor with too few types to choose from": {
			world: newWorld("a 8 3"), set: func(w *world) {
				w.spot = true
				w.node("a").CapacityType = "spot"
				w.node("a").PricePerHour = deprovision.Dollars(0.02)
			},
			o: plan.Options{SpotToSpot: true},
		},
		"on-demand is replaced by spot": {world: newWorld("a 3 3"), set: func(w *world) { w.spot = true }, want: []string{"consolidation replace -a +t3"}},
		"savings have a minimum":        {world: newWorld("a 8 3"), o: plan.Options{MinSavings: deprovision.Dollars(0.06)}},
	} {
		if c.set != nil {
			c.set(c.world)
		}
		assert.Equal(t, c.want, commands(c.world.plan(c.o)), name)
	}
}

// byName is a ranker of a user's own: the last by name goes first.
type byName struct{}

func (byName) Rank(c deprovision.Candidate) float64 { return float64(c.Name[0]) }

func TestOwnRankerAndPolicy(t *testing.T) {
	w := newWorld("a 4 2", "b 4 2")
	assert.Equal(t, []string{"consolidation delete -b"}, commands(w.plan(plan.Options{Ranker: byName{}})))
	assert.Equal(t, []string{"consolidation delete -a"}, commands(w.plan(plan.Options{})), "of equals the first by name")
	r := w.plan(plan.Options{Objective: plan.Objective{DisruptionPrice: deprovision.Dollars(1)}})
	assert.Empty(t, r.Commands)
	v := verdict(t, r, "a")
	assert.Equal(t, plan.Outranked, v.Outcome)
	assert.Equal(t, "it would save $0.9600 in 24h0m0s, but its disruption costs $3.0000", v.Detail)
	assert.InDelta(t, 0.96, v.Earned.Dollars(), 1e-12)
	assert.InDelta(t, 3, v.Cost.Dollars(), 1e-12)
}

func TestEveryVerdict(t *testing.T) {
	w := newWorld("blocked 4 1", "chosen 4 1", "full 3 3", "alien 3 1")
	w.node("blocked").Pods[0].Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
	w.node("alien").Pool = nil
	r := w.plan(plan.Options{})
	assert.Equal(t, []string{"consolidation delete -chosen", "consolidation delete -full"}, commands(r))
	v := verdict(t, r, "blocked")
	assert.Equal(t, plan.Blocked, v.Outcome)
	assert.Equal(t, "shop/blocked-0: annotation karpenter.sh/do-not-disrupt=true", v.By[0].String())
	assert.Equal(t, eligibility.NotOurs, verdict(t, r, "alien").By[0].Kind)
	assert.Equal(t, "consolidation: its pods fit on other nodes", verdict(t, r, "chosen").Detail)
	assert.InDelta(t, 0.14, r.PricePerHour.Dollars(), 1e-9)
	assert.InDelta(t, 0.07, r.PricePerHourAfter.Dollars(), 1e-9)
	assert.Equal(t, 4, r.Evictions)

	full := newWorld("a 3 3", "b 3 3").plan(plan.Options{})
	v = verdict(t, full, "a")
	assert.Equal(t, plan.NoSaving, v.Outcome)
	assert.Equal(t, "it costs $0.0300 an hour, and the cheapest found for its pods is t3 in z at $0.0300", v.Detail)
	assert.InDelta(t, 0.03, v.BestPricePerHour.Dollars(), 1e-9)

	w = newWorld("a 4 1", "b 4 1", "c 4 1")
	w.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: 1}}
	r = w.plan(plan.Options{})
	assert.Len(t, r.Commands, 1)
	assert.Equal(t, plan.OverBudget, verdict(t, r, "b").Outcome)
	assert.Equal(t, "budgets[0] of pool default allows 1 of 3 nodes at once; this plan takes 1", verdict(t, r, "b").Detail)

	r = newWorld("a 4 0").plan(plan.Options{Methods: []eligibility.Method{eligibility.Drift}})
	assert.Equal(t, plan.NotAsked, verdict(t, r, "a").Outcome)

	w = newWorld("a 4 2")
	w.node("a").Drifted = []string{"by hand"}
	w.Nodes[0].PricePerHour = deprovision.Dollars(0.01)
	r = planned(w.Cluster, nowhere{}, nil)
	assert.Equal(t, plan.WouldNotFit, verdict(t, r, "a").Outcome)
	assert.Equal(t, "by hand, but no room", verdict(t, r, "a").Detail)
}

// Budgets are spent on nodes that go, whichever of the ranking these are, and verdicts say how many a plan takes.
func TestBudgetsAreSpentOnWhatGoes(t *testing.T) {
	for allowed := range 4 {
		w := newWorld("a 40 1", "b 30 1", "c 4 1", "d 4 1", "e 4 1")
		w.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: allowed}}
		r := planned(w.Cluster, moody{w.toy, func(q plan.Question) bool {
			return slices.ContainsFunc(q.Pods, func(p *corev1.Pod) bool { return p.Name == "a-0" || p.Name == "b-0" })
		}}, nil)
		assert.Len(t, r.Commands, min(allowed, 3), "budget of %d", allowed)
		for _, v := range r.Verdicts {
			if v.Outcome != plan.OverBudget {
				continue
			}
			want := fmt.Sprintf("budgets[0] of pool default allows %d of 5 nodes at once", allowed)
			if allowed > 0 {
				want += fmt.Sprintf("; this plan takes %d", allowed)
			}
			assert.Equal(t, want, v.Detail)
		}
	}
}

// An empty node goes because it is empty and is charged as such, even if the pods of a node that must go had moved there first. If a budget keeps it,
// these pods stay there, and nothing is bought for them.
func TestEmptyNodesAreChargedAsEmpty(t *testing.T) {
	for _, x := range []struct {
		empty, others int
		want          []string
		after         float64
	}{
		{3, 0, []string{"interruption replace -a +t1", "emptiness delete -b -c"}, 0.01},
		{0, 3, []string{"interruption delete -a"}, 0.16},
		{1, 3, []string{"interruption delete -a", "emptiness delete -c"}, 0.08},
	} {
		w := newWorld("a 4 1", "b 8 0", "c 8 0")
		w.Interruptions = []deprovision.Interruption{{Node: "a"}}
		w.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: x.empty, Reasons: []nodepool.Reason{nodepool.Empty}}, {Nodes: x.others, Reasons: []nodepool.Reason{nodepool.Underutilized}}}
		w.Pools = append(w.Pools, w.Pools[0])
		w.Pools[1].Name, w.Pools[1].Disruption.Budgets = "other", nil
		for i := range w.Nodes {
			w.Nodes[i].Pool = &w.Pools[0]
		}
		w.node("a").Pool = &w.Pools[1] // its own budgets would count it
		r := w.plan(plan.Options{})
		assert.Equal(t, x.want, commands(r), x)
		assert.InDelta(t, x.after, r.PricePerHourAfter.Dollars(), 1e-9, x)
	}
	w := newWorld("b 8 0") // consolidation alone gives it back, too
	assert.Equal(t, "nothing runs there that would have to move", w.plan(plan.Options{Methods: []eligibility.Method{eligibility.Consolidation}}).Commands[0].Why)
}

// nowhere accepts no pod.
type nowhere struct{}

func (nowhere) Simulate(_ context.Context, q plan.Question) (plan.Answer, error) {
	return plan.Answer{Unplaced: q.Pods, Why: "no room"}, nil
}

func TestBudgetsOfPods(t *testing.T) {
	w := newWorld("a 4 1", "b 4 3")
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"on": "a"}}
	b.Status.ExpectedPods = 1
	w.PodDisruptionBudgets = []*policyv1.PodDisruptionBudget{b}
	r := w.plan(plan.Options{})
	assert.Equal(t, []string{"consolidation delete -b"}, commands(r), "the other one goes instead")
	assert.Equal(t, "shop/a-0: PodDisruptionBudget shop/db allows 0 disruptions", verdict(t, r, "a").By[0].String())
}

// A pod that had to go with its node is protected again where it went.
func TestProtectedPodsMoveOnlyWhereTheyMust(t *testing.T) {
	w := newWorld("a 2 1", "b 4 1", "c 8 2")
	w.node("a").Pods[0].Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
	w.Interruptions = []deprovision.Interruption{{Node: "a", Deadline: now().Add(time.Hour)}}
	r := w.plan(plan.Options{})
	assert.Equal(t, []string{"interruption delete -a", "consolidation delete -c"}, commands(r))
	assert.Equal(t, "shop/a-0: annotation karpenter.sh/do-not-disrupt=true", verdict(t, r, "b").By[0].String())
}

func TestInterruptionsInAHurry(t *testing.T) {
	w := newWorld("a 2 2", "b 2 2", "c 2 2")
	w.Interruptions = []deprovision.Interruption{{Node: "c", Force: true, Deadline: now().Add(time.Hour)}, {Node: "b", Deadline: now().Add(time.Hour)}, {Node: "a"}}
	r := w.plan(plan.Options{})
	require.Len(t, r.Commands, 3)
	assert.Equal(t, "a", r.Commands[0].Nodes[0].Name, "the soonest first")
	assert.True(t, r.Commands[0].AtOnce)
	assert.False(t, r.Commands[1].AtOnce && r.Commands[1].Nodes[0].Name == "b", "there is time to buy first")
	assert.True(t, r.Commands[2].AtOnce != r.Commands[1].AtOnce, "a machine that does not answer is not waited for")
}

func TestPlanIsQuietAfterwards(t *testing.T) {
	w := newWorld("a 8 3", "b 4 1", "c 4 4", "d 16 2")
	r := w.plan(plan.Options{})
	require.NotEmpty(t, r.Commands)
	for i := range r.Commands {
		assert.Positive(t, r.Commands[i].SavingsPerHour)
		assert.Len(t, r.Commands[i].Pods(), len(r.Commands[i].Placements))
	}
	assert.NotNil(t, r.After)
}

func ExampleMake() {
	w := newWorld("node-a 4 1", "node-b 4 3")
	r := planned(w.Cluster, w.toy, nil)
	for _, c := range r.Commands {
		fmt.Printf("%s %s: saves $%.2f an hour, %d pods move\n", c.Kind, c.Nodes[0].Name, c.SavingsPerHour.Dollars(), len(c.Pods()))
	}
	for _, v := range r.Verdicts {
		fmt.Printf("%s: %s\n", v.Node, v.Outcome)
	}
	// Output:
	// delete node-a: saves $0.04 an hour, 1 pods move
	// node-a: chosen
	// node-b: no-saving
}

// The frontier has nothing that a plan with that bound of evictions does not reach, and rises up to the whole plan.
func TestFrontierIsAttained(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		var nodes []string
		for i := range 3 + rnd.IntN(6) {
			size := 1 + rnd.IntN(20)
			nodes = append(nodes, fmt.Sprintf("n%d %d %d", i, size, rnd.IntN(size+1)))
		}
		w := newWorld(nodes...)
		o := &plan.Options{Objective: plan.Objective{DisruptionPrice: -1}}
		r := planned(w.Cluster, w.toy, o)
		var bounds []int
		for n := range r.Evictions {
			bounds = append(bounds, n)
		}
		points, err := plan.Frontier(t.Context(), w.Cluster, w.toy, o, bounds...)
		require.NoError(t, err)
		saved := map[int]deprovision.Price{} // by evictions
		for i, p := range points {
			if i > 0 {
				assert.Greater(t, p.SavingsPerHour, points[i-1].SavingsPerHour)
				assert.Greater(t, p.Evictions, points[i-1].Evictions)
			}
			saved[p.Evictions] = p.SavingsPerHour
			again := planned(w.Cluster, w.toy, &plan.Options{Objective: o.Objective, MaxEvictions: p.MaxEvictions})
			sum, moves := deprovision.Price(0), 0
			for _, c := range again.Commands[:p.Commands] {
				sum, moves = sum+c.SavingsPerHour, moves+len(c.Placements)
			}
			assert.Equal(t, p.SavingsPerHour, sum)
			assert.Equal(t, p.Evictions, moves)
		}
		best := deprovision.Price(0)
		for n := range r.Evictions + 1 {
			best = max(best, saved[n])
			bounded := planned(w.Cluster, w.toy, &plan.Options{Objective: o.Objective, MaxEvictions: n})
			if n > 0 {
				assert.LessOrEqual(t, bounded.PricePerHour-bounded.PricePerHourAfter, best, "seed %d: %d evictions of %v", seed, n, nodes)
			}
		}
		assert.GreaterOrEqual(t, best, r.PricePerHour-r.PricePerHourAfter)
	}
}

// haggling sells at one and a half times the price unless the question is thorough.
type haggling struct{ plan.Simulator }

func (s haggling) Simulate(ctx context.Context, q plan.Question) (plan.Answer, error) {
	a, err := s.Simulator.Simulate(ctx, q)
	for i := range a.NewNodes {
		if q.Moves == nil && !q.Thorough {
			a.NewNodes[i].PricePerHour += a.NewNodes[i].PricePerHour / 2
		}
	}
	if a.After != nil {
		after := a.After
		a.After = func() plan.Simulator { return haggling{after()} }
		a.Rebased = a.After
	}
	return a, err
}

// What many nodes are given back for is looked for once more with more work before it is taken.
func TestThoroughBeforeItIsTaken(t *testing.T) {
	w := newWorld("a 16 1", "b 16 1", "c 16 1")
	r := planned(w.Cluster, haggling{w.toy}, nil)
	require.NotEmpty(t, r.Commands)
	assert.Equal(t, deprovision.Dollars(0.03), r.PricePerHourAfter)
}

// Where nothing pays at a first look, few nodes are looked at once more, all together and with more work.
func TestThoroughBeforeTheEnd(t *testing.T) {
	w := newWorld("a 4 4", "b 4 4", "c 4 4")
	for i := range w.Nodes {
		w.Nodes[i].PricePerHour = deprovision.Dollars(0.05)
	}
	r := planned(w.Cluster, haggling{w.toy}, nil)
	require.Len(t, r.Commands, 1)
	assert.Equal(t, deprovision.Dollars(0.12), r.PricePerHourAfter)
}
