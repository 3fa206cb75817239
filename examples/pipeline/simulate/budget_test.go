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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// leaving is how many nodes of a command leave at the same time, at most.
func leaving(c *giveback.Command) int {
	most := 0
	for _, wave := range c.Waves {
		most = max(most, len(wave))
	}
	return cmp.Or(most, len(c.Nodes))
}

// guarded gives the pods of some deployments PodDisruptionBudgets: of most of them one pod may be missing, of some none, and a few have two budgets,
// so that nothing may evict their pods.
func guarded(c *fragment.Cluster, seed uint64) {
	r, seen := rand.New(rand.NewPCG(seed, 29)), map[string]bool{}
	for _, p := range c.Snapshot.Pods {
		app := p.Labels["app"]
		if app == "" || seen[app] {
			continue
		}
		seen[app] = true
		kind, allowed := r.IntN(20), int32(1)
		if kind > 6 {
			continue
		}
		if kind == 1 {
			allowed = 0
		}
		for i := range 1 + max(0, 1-kind) {
			b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: fmt.Sprintf("%s-%d", app, i)}}
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: p.Labels}
			b.Status.DisruptionsAllowed = allowed
			c.Manifests.PodDisruptionBudgets = append(c.Manifests.PodDisruptionBudgets, b)
		}
	}
}

// untouchable are the apps whose pods no command may move.
func untouchable(c *fragment.Cluster) map[string]bool {
	out, budgets := map[string]bool{}, map[string]int{}
	for _, b := range c.Manifests.PodDisruptionBudgets {
		app := b.Spec.Selector.MatchLabels["app"]
		budgets[app]++
		out[app] = out[app] || b.Status.DisruptionsAllowed == 0 || budgets[app] > 1
	}
	return out
}

// untilQuiet plans a cluster and applies the plan, hour by hour, until it has found nothing for more than a day, because a saving counts for longer
// when its nodes have been quiet for longer, up to a day. It returns the price at the end, that after the first plan, and the evictions of it all. Each plan gives back no more
// nodes than the budgets allow at its moment, and moves no pod that PodDisruptionBudgets keep.
func untilQuiet(t *testing.T, c *fragment.Cluster) (dollars, first float64, evictions int) {
	t.Helper()
	s, kept := c.Snapshot, untouchable(c)
	for at, last := fragment.Now(), fragment.Now(); ; at = at.Add(time.Hour) {
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
		taken, waves := 0, false
		for i := range r.Commands {
			taken, waves = taken+leaving(&r.Commands[i]), waves || len(r.Commands[i].Waves) > 0
			for _, p := range r.Commands[i].Pods() {
				require.False(t, kept[p.Labels["app"]], "pod %s moves against its PodDisruptionBudgets", p.Name)
			}
			if s, err = simulate.Apply(s, &r.Commands[i], at); err != nil {
				require.NoError(t, err)
			}
		}
		require.LessOrEqual(t, taken, allowed)
		for _, v := range r.Verdicts {
			if v.Outcome == giveback.OverBudget && taken > 0 {
				require.Contains(t, v.Detail, "; this plan takes ")
				require.True(t, waves || strings.Contains(v.Detail, fmt.Sprintf("; this plan takes %d", taken)), v.Detail)
			} else {
				require.NotContains(t, v.Detail, "this plan takes")
			}
		}
		evictions += r.Evictions
		if first == 0 {
			first = r.PricePerHourAfter.Dollars()
		}
		if len(r.Commands) > 0 {
			last = at
			continue
		}
		if at.Sub(last) > 24*time.Hour {
			return r.PricePerHourAfter.Dollars(), first, evictions
		}
		at = at.Add(8 * time.Hour)
	}
}

// under says how much dearer clusters of one size end under budgets than without.
type under struct {
	clusters, evictions, free int
	sum, most, first          float64
	worst                     string
}

// Plans under a budget, made again until quiet, keep to it each time and come to an end. They end at most 1% dearer than without a budget in the
// mean, and 3% at worst. JOINERY_LONG=1 has 144 clusters; JOINERY_DRAWS=112 has 1,008, and JOINERY_FROM is the first draw.
func TestPlansUnderBudgetsUntilQuiet(t *testing.T) {
	draws, sizes := 2, []int{8, 20, 60}
	if testing.Short() {
		draws, sizes = 1, sizes[:1]
	}
	if parts, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); err == nil {
		draws = max(draws, 16/parts)
	}
	if n, err := strconv.Atoi(os.Getenv("JOINERY_DRAWS")); err == nil {
		draws = n
	}
	from, _ := strconv.Atoi(os.Getenv("JOINERY_FROM"))
	budgets := []string{`{nodes: "1"}`, `{nodes: "10%"}`, `{nodes: "0", schedule: "0 9 * * *", duration: 8h}, {nodes: "3"}`}
	seen := make([][3]under, len(budgets))
	for draw := from; draw < from+draws; draw++ {
		for k, size := range sizes {
			o := fragment.Options{Nodes: size, Seed: rand.New(rand.NewPCG(uint64(draw), uint64(size))).Uint64(), Constrained: draw%2 == 1}
			kept := draw/2%2 == 1
			made := func(pool string) *fragment.Cluster {
				o.Pool = pool
				c, err := fragment.Generate(o)
				require.NoError(t, err)
				if kept {
					guarded(c, o.Seed)
				}
				return c
			}
			free, _, moves := untilQuiet(t, made(fragment.Pool))
			for i, budget := range budgets {
				held, first, evictions := untilQuiet(t, made(strings.Replace(fragment.Pool, `{nodes: "100%"}`, budget, 1)))
				dearer, u := held/free-1, &seen[i][k]
				u.clusters, u.evictions, u.free, u.sum, u.first = u.clusters+1, u.evictions+evictions, u.free+moves, u.sum+dearer, u.first+first/free-1
				assert.LessOrEqual(t, dearer, 0.03, "draw %d, %s, %d nodes", draw, budget, size)
				if dearer > u.most {
					u.most, u.worst = dearer, fmt.Sprintf("draw %d, $%.3f instead of $%.3f", draw, held, free)
				}
			}
		}
	}
	for i, budget := range budgets {
		mean, n := 0.0, 0
		for k, size := range sizes {
			u := &seen[i][k]
			t.Logf("budgets %s, %d nodes: %d clusters end %.2f%% dearer in the mean and %.2f%% at most (%s), with %d evictions instead of %d; after the first plan they are %.2f%% dearer", budget, size, u.clusters, 100*u.sum/float64(u.clusters), 100*u.most, u.worst, u.evictions, u.free, 100*u.first/float64(u.clusters))
			mean, n = mean+u.sum, n+u.clusters
		}
		assert.LessOrEqual(t, mean/float64(n), 0.01, budget)
	}
}

// Three zones have a node each, and six pods spread over the zones with a skew of at most 1. One large node costs less than three small ones and would
// hold all pods, and once the other two zones have no node, kube-scheduler lets all pods go there. But nodes are for sale in these zones, where a plan
// for pending pods would put two pods each. So with every budget the zones stay, and the large node is replaced.
func TestZonesForSaleAreKept(t *testing.T) {
	for _, budget := range []nodepool.Budget{{Nodes: 100, Percent: true}, {Nodes: 1}} {
		x := &cramped{}
		zones := []string{"a", "b", "c"}
		var large, small []instancetypes.Offering
		for _, zone := range zones {
			large, small = append(large, instancetypes.Offer(zone, "on-demand", 1)), append(small, instancetypes.Offer(zone, "on-demand", 0.4))
		}
		types := []instancetypes.InstanceType{instancetypes.New("large", nil, cores(6), large...), instancetypes.New("small", nil, cores(2), small...)}
		pool := nodepool.New("pool-0")
		pool.Disruption.Budgets = []nodepool.Budget{budget}
		x.s.Pools = []scheduling.Pool{{NodePool: pool, Types: types}}
		for k, zone := range zones {
			of := types[min(k, 1)]
			x.node("node-"+zone, "pool-0", of, k)
			for range 2 {
				x.spreads(x.pod("node-"+zone, "web", 1000), 1)
			}
		}
		r, _, _ := x.plan(t)
		require.InDelta(t, 1.2, r.PricePerHourAfter.Dollars(), 1e-9)
		require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 2}, x.zonesOf(r, "web"))
	}
}

// spreads gives a pod a hard spread over zones.
func (x *cramped) spreads(p *corev1.Pod, skew int32) {
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: skew, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
	}}
}

// zonesOf counts the pods of an app by zone, after the plan.
func (x *cramped) zonesOf(r giveback.Result, app string) map[string]int {
	zone, at := map[string]string{}, map[*corev1.Pod]string{}
	for _, n := range x.s.Nodes {
		zone[n.Name] = n.Labels[corev1.LabelTopologyZone]
	}
	for _, p := range x.s.Pods {
		at[p] = p.Spec.NodeName
	}
	for i := range r.Commands {
		for _, n := range r.Commands[i].NewNodes {
			zone[n.Name] = n.Zone
		}
		for _, p := range r.Commands[i].Placements {
			at[p.Pod] = p.Node
		}
	}
	out := map[string]int{}
	for p, node := range at {
		if p.Labels["app"] == app {
			out[zone[node]]++
		}
	}
	return out
}

// No consolidation gives a zone more pods of a hard spread than it had, or than the skew allows beside the zones that are for sale. If spreads counted
// only zones with nodes, 359 zones of 1,000 plans got more.
func TestSpreadsKeepWhatIsForSale(t *testing.T) {
	clusters, moved := 1000, 0
	if testing.Short() {
		clusters = 100
	}
	for seed := range uint64(clusters) {
		x := newTangled(seed)
		r := rand.New(rand.NewPCG(seed, 47))
		apps := map[string]int32{}
		for _, p := range x.s.Pods {
			app := p.Labels["app"]
			if _, ok := apps[app]; !ok {
				apps[app] = r.Int32N(3)
			}
			if p.Spec.NodeSelector = nil; apps[app] > 0 { // pods that ask nothing may follow and exceed the skew
				x.spreads(p, apps[app])
			}
		}
		none := giveback.Result{}
		got, _, _ := x.plan(t)
		for app, skew := range apps {
			before, after := x.zonesOf(none, app), x.zonesOf(got, app)
			least := min(after["a"], after["b"])
			for zone, n := range after {
				if n != before[zone] {
					moved++
				}
				if skew > 0 {
					require.LessOrEqual(t, n, max(before[zone], least+int(skew)), "seed %d, app %s, zone %s: %v became %v", seed, app, zone, before, after)
				}
			}
		}
	}
	require.Positive(t, moved)
}
