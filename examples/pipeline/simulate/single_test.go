package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// cramped is a small cluster where something may keep a plan from its final state: limits of pools, offerings of which few are left, budgets
// of pools, and PodDisruptionBudgets.
type cramped struct {
	s    scheduling.Snapshot
	pdbs []*policyv1.PodDisruptionBudget
}

func cores(n int) corev1.ResourceList {
	return corev1.ResourceList{"cpu": *resource.NewQuantity(int64(n), resource.DecimalSI), "memory": *resource.NewQuantity(int64(n)<<32, resource.BinarySI), "pods": resource.MustParse("20")}
}

// node adds a node that was bought as the offering of the type.
func (x *cramped) node(name, pool string, of instancetypes.InstanceType, offering int) {
	n := of.Node(name, of.Offerings[offering], map[string]string{nodepool.LabelKey: pool, "karpenter.sh/initialized": "true", "karpenter.sh/registered": "true"})
	n.CreationTimestamp = metav1.NewTime(untouchedSince())
	x.s.Nodes = append(x.s.Nodes, n)
}

// pod adds a pod of an app that runs on the node.
func (x *cramped) pod(node, app string, milli int) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: fmt.Sprintf("pod-%d", len(x.s.Pods)), Labels: map[string]string{"app": app}, CreationTimestamp: metav1.NewTime(untouchedSince()),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: "u", Controller: &yes}},
	}}
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: "Ready", Status: "True"}, {Type: "PodScheduled", Status: "True", LastTransitionTime: p.CreationTimestamp}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(milli), resource.DecimalSI)}}}}
	x.s.Pods = append(x.s.Pods, p)
	return p
}

func crampedNow() time.Time     { return time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC) }
func untouchedSince() time.Time { return crampedNow().Add(-48 * time.Hour) }

func newCramped(seed uint64) *cramped {
	r, x := rand.New(rand.NewPCG(seed, 41)), &cramped{}
	var types []instancetypes.InstanceType
	for i, cpu := range []int{2, 4, 8} {
		var offerings []instancetypes.Offering
		for _, zone := range []string{"a", "b"} {
			offerings = append(offerings, instancetypes.Offer(zone, "on-demand", 0.05*float64(cpu)+0.01*float64(r.IntN(3))))
			if r.IntN(2) == 0 {
				offerings = append(offerings, instancetypes.Offer(zone, "spot", 0.02*float64(cpu)))
			}
		}
		for k := range offerings {
			if r.IntN(5) == 0 {
				offerings[k].ReservationCount = 1 + r.IntN(2)
			}
		}
		types = append(types, instancetypes.New(fmt.Sprintf("t%d", i), nil, cores(cpu), offerings...))
	}
	pools := 1 + r.IntN(2)
	for i := range pools {
		pool := nodepool.New(fmt.Sprintf("pool-%d", i))
		pool.Disruption.Budgets = []nodepool.Budget{{Nodes: 100, Percent: true}}
		if r.IntN(3) == 0 {
			pool.Disruption.Budgets = []nodepool.Budget{{Nodes: r.IntN(3)}}
		}
		switch r.IntN(5) {
		case 0:
			pool.Limits = corev1.ResourceList{"cpu": *resource.NewQuantity(int64(8+2*r.IntN(5)), resource.DecimalSI)}
		case 1:
			pool.Limits = corev1.ResourceList{"nodes": *resource.NewQuantity(int64(2+r.IntN(4)), resource.DecimalSI)}
		}
		if r.IntN(4) == 0 {
			pool.Taints = []corev1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
		}
		x.s.Pools = append(x.s.Pools, scheduling.Pool{NodePool: pool, Types: types})
	}
	free, tainted := map[string]int{}, map[string]bool{}
	for i := range 2 + r.IntN(5) {
		pool, of, name := &x.s.Pools[r.IntN(pools)], types[r.IntN(3)], fmt.Sprintf("n%d", i)
		x.node(name, pool.Name, of, r.IntN(len(of.Offerings)))
		x.s.Nodes[i].Spec.Taints = pool.Taints
		tainted[name] = len(pool.Taints) > 0
		allocatable := of.Allocatable()
		free[name] = int(allocatable.Cpu().MilliValue())
		if r.IntN(8) == 0 {
			x.s.Nodes[i].Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
		}
	}
	for range r.IntN(12) {
		milli, node, app := 250*(1+r.IntN(8)), fmt.Sprintf("n%d", r.IntN(len(x.s.Nodes))), []string{"web", "db", "queue"}[r.IntN(3)]
		if free[node] < milli {
			continue
		}
		free[node] -= milli
		p := x.pod(node, app, milli)
		if tainted[node] || r.IntN(2) == 0 {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
		}
		if r.IntN(6) == 0 {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": []string{"web", "db", "queue"}[r.IntN(3)]}},
			}}}}
		}
	}
	if r.IntN(3) == 0 {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		b.Status.DisruptionsAllowed = int32(r.IntN(2))
		x.pdbs = append(x.pdbs, b)
	}
	return x
}

// bySingle is the most that giving back one node saves now, if nothing blocks that and the budget of its pool allows it, and the node.
func (x *cramped) bySingle(t *testing.T, c *deprovision.Cluster, sim giveback.Simulator) (most deprovision.Price, which string) {
	pdbs := eviction.NewBudgets(c.PodDisruptionBudgets)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		pods := n.Reschedulable()
		allowed := 0
		for j := range x.s.Nodes {
			if x.s.Nodes[j].Labels[nodepool.LabelKey] == n.Pool.Name {
				allowed++
			}
		}
		if n.Pool.Disruption.Budgets[0].Allowed(allowed) == 0 || len(eligibility.Blockers(n, eligibility.Consolidation, pdbs, c.Now, eligibility.Rules{})) > 0 {
			continue
		}
		q := giveback.Question{Remove: []string{n.Name()}, Pods: pods, MaxNodes: len(pods), MaxCost: n.PricePerHour}
		a, err := sim.Simulate(t.Context(), q)
		require.NoError(t, err)
		if !a.OK() || n.CapacityType == "spot" && len(a.NewNodes) > 0 { // pools allow spot nodes
			continue
		}
		saves := n.PricePerHour
		for _, b := range a.NewNodes {
			saves -= b.PricePerHour
		}
		if saves > most {
			most, which = saves, n.Name()
		}
	}
	return most, which
}

// plan is the plan that takes any saving.
func (x *cramped) plan(t *testing.T) (giveback.Result, deprovision.Cluster, giveback.Simulator) {
	sim, nominated, err := simulate.New(x.s)
	require.NoError(t, err)
	c := simulate.Objects{PodDisruptionBudgets: x.pdbs}.Cluster(x.s, nominated, crampedNow())
	r, err := giveback.Make(t.Context(), c, sim, &giveback.Options{Objective: policy.AnySaving()})
	require.NoError(t, err)
	return r, c, sim
}

// A plan saves at least what giving back any one node would save now, unless it uses up a budget: then the next plan continues on the way to a state
// that may be far from what saves most now.
func TestNoSingleNodeSavesMore(t *testing.T) {
	clusters, from := 600, 0
	if testing.Short() {
		clusters = 150
	}
	if n, err := strconv.Atoi(os.Getenv("JOINERY_DRAWS")); err == nil {
		clusters = n
	} else if os.Getenv("JOINERY_LONG") == "1" {
		clusters = 5000
	}
	from, _ = strconv.Atoi(os.Getenv("JOINERY_FROM"))
	saved, less, held, questions := 0, 0, 0, 0
	for seed := uint64(from); seed < uint64(from+clusters); seed++ {
		x := newCramped(seed)
		r, c, sim := x.plan(t)
		questions += r.Questions
		if len(r.Commands) > 0 {
			saved++
		}
		if slices.ContainsFunc(r.Verdicts, func(v giveback.Verdict) bool { return strings.Contains(v.Detail, "; this plan takes ") }) {
			held++
			continue
		}
		if most, which := x.bySingle(t, &c, sim); r.PricePerHour-r.PricePerHourAfter < most {
			less++
			at := slices.IndexFunc(r.Verdicts, func(v giveback.Verdict) bool { return v.Node == which })
			assert.Fail(t, "a single node saves more", "seed %d: %s by itself saves %v, the plan %v; its verdict is %+v", seed, which, most, r.PricePerHour-r.PricePerHourAfter, r.Verdicts[at])
		}
	}
	t.Logf("%d clusters, %d with a saving, %d use up a budget, %d save less than a single node would, %d questions", clusters, saved, held, less, questions)
	assert.Greater(t, saved-held, clusters/2)
}

// priced returns a type of so many cores at this price.
func priced(name string, cpu int, dollars float64) instancetypes.InstanceType {
	return instancetypes.New(name, nil, cores(cpu), instancetypes.Offer("a", "on-demand", dollars))
}

// within returns a pool with this budget.
func within(name string, b nodepool.Budget, types ...instancetypes.InstanceType) scheduling.Pool {
	pool := nodepool.New(name)
	pool.Disruption.Budgets = []nodepool.Budget{b}
	return scheduling.Pool{NodePool: pool, Types: types}
}

// said returns what the plan says about the node.
func said(t *testing.T, r giveback.Result, node string) giveback.Verdict {
	t.Helper()
	at := slices.IndexFunc(r.Verdicts, func(v giveback.Verdict) bool { return v.Node == node })
	require.GreaterOrEqual(t, at, 0)
	return r.Verdicts[at]
}

// Where the limit of a pool forbids to buy what the cheapest state needs before the old nodes go, something is saved nevertheless.
func TestAStateOutOfReach(t *testing.T) {
	for limit, want := range map[int]float64{10: 0.41, 12: 0.41, 18: 0.16} {
		small, large := priced("small", 2, 0.1), priced("large", 8, 0.41)
		large.Offerings = append(large.Offerings, instancetypes.Offer("a", "spot", 0.16))
		x := &cramped{}
		x.s.Pools = []scheduling.Pool{within("pool", nodepool.Budget{Nodes: 100, Percent: true}, small, large)}
		x.s.Pools[0].Limits = corev1.ResourceList{"cpu": *resource.NewQuantity(int64(limit), resource.DecimalSI)}
		x.node("n0", "pool", large, 0)
		x.node("n1", "pool", small, 0)
		x.pod("n0", "db", 1500)
		x.pod("n1", "db", 1250)
		r, _, _ := x.plan(t)
		assert.LessOrEqual(t, r.PricePerHourAfter.Dollars(), want+1e-9, "limit %d", limit)
	}
}

// A node that its budget keeps takes the pods of others, so nothing is bought for them.
func TestAFrozenNodeIsUsed(t *testing.T) {
	for _, types := range [][]instancetypes.InstanceType{{priced("large", 4, 0.2)}, {priced("large", 4, 0.2), priced("small", 2, 0.1)}} {
		x := &cramped{}
		x.s.Pools = []scheduling.Pool{within("frozen", nodepool.Budget{}, types...), within("open", nodepool.Budget{Nodes: 100, Percent: true}, types...)}
		x.node("n-frozen", "frozen", types[0], 0)
		x.node("n-open", "open", types[0], 0)
		x.pod("n-open", "db", 1000)
		r, _, _ := x.plan(t)
		assert.InDelta(t, 0.2, r.PricePerHourAfter.Dollars(), 1e-9)
		assert.Equal(t, giveback.OverBudget, said(t, r, "n-frozen").Outcome)
	}
}

// A verdict is true of what the plan leaves: it does not say that pods have no place, nor what another node for them would cost, where a budget
// has left a node empty that holds them.
func TestVerdictsOfWhatABudgetLeaves(t *testing.T) {
	few, held := 0, 0
	clusters := 600
	if testing.Short() {
		clusters = 150
	}
	for seed := range uint64(clusters) {
		x := newCramped(seed)
		r, _, _ := x.plan(t)
		moves := map[string]bool{}
		used, gone := map[string]int64{}, map[string]bool{}
		for i := range r.Commands {
			for _, n := range r.Commands[i].Nodes {
				gone[n.Name] = true
			}
			for _, p := range r.Commands[i].Placements {
				used[p.Node] += p.Pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
				moves[p.Pod.Name] = true
			}
		}
		for _, p := range x.s.Pods {
			if !moves[p.Name] {
				used[p.Spec.NodeName] += p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
			}
		}
		stay := 0
		for _, n := range x.s.Nodes {
			if !gone[n.Name] {
				stay++
			}
		}
		for i := range r.Commands {
			stay += len(r.Commands[i].NewNodes)
		}
		for _, v := range r.Verdicts {
			var pod string
			var others int
			if v.Outcome == giveback.WouldNotFit {
				if _, err := fmt.Sscanf(v.Detail, "%s of %d other nodes", &pod, &others); err == nil {
					few++
					assert.Equal(t, stay-1, others, "seed %d: %+v", seed, v)
				}
			}
			if v.Outcome == giveback.NoSaving && v.BestPricePerHour > 0 {
				assert.Positive(t, used[v.Node], "seed %d: it holds no pods: %+v", seed, v)
			}
			if v.Outcome == giveback.OverBudget {
				held++
			}
		}
	}
	t.Logf("%d verdicts count other nodes, %d name a budget", few, held)
	assert.Greater(t, few, clusters/30)
	assert.Greater(t, held, clusters/30)
}
