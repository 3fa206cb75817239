package regret_test

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/pipeline/regret"
)

// draws is how many histories are drawn; JOINERY_DRAWS says it for one long run.
func draws(t *testing.T, quick, long int) int {
	t.Helper()
	if text := os.Getenv("JOINERY_DRAWS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	if parts, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); err == nil {
		return max(quick, long/parts)
	}
	if testing.Short() {
		return quick / 3
	}
	return quick
}

// parts is the sum of the decisions.
func parts(r *regret.Report) regret.Bill {
	var out regret.Bill
	for _, d := range r.Decisions {
		out.Paid, out.Policy, out.Present, out.Bound = out.Paid+d.Paid, out.Policy+d.Policy, out.Present+d.Present, out.Bound+d.Bound
	}
	return out
}

// On random histories of a careless policy no bound is above a bill or above the optimum of all policies, the parts of the bills add up to the last
// digit, and the same history gives the same bytes.
func TestRandomHistories(t *testing.T) {
	sum, best, tookBack := regret.Bill{}, 0.0, 0
	for seed := range draws(t, 25, 150) {
		x := draw(t, uint64(seed), 12, 7)
		o := &regret.Options{Startup: -1, Deprovision: &giveback.Options{Objective: policy.AnySaving()}}
		r, err := regret.Audit(t.Context(), x.history, x.sale, o)
		require.NoError(t, err)
		assert.Equal(t, r.Bill, parts(r), "seed %d", seed)
		present, future, seconds := 0.0, 0.0, int64(0)
		for i := range x.history.Observations {
			obs := &x.history.Observations[i]
			var running []*corev1.Pod
			for _, p := range obs.Pods {
				if p.Spec.NodeName != "" {
					running = append(running, p)
				}
			}
			hours := x.history.End(i).Sub(obs.At).Hours()
			future += hours * optimum(x.sizes, running)
			present += hours * optimum(x.sizes, obs.Pods)
		}
		for _, h := range r.Hours {
			assert.LessOrEqual(t, h.Bound, h.Present, "seed %d at %s", seed, h.From)
			assert.LessOrEqual(t, h.Present, h.Policy, "seed %d at %s", seed, h.From)
			assert.LessOrEqual(t, h.Bound, h.Paid, "seed %d at %s", seed, h.From)
			seconds += h.Seconds
		}
		assert.Equal(t, int64(r.To.Sub(r.From)/time.Second), seconds)
		again, err := regret.Audit(t.Context(), x.history, x.sale, o)
		require.NoError(t, err)
		assert.Equal(t, text(t, r), text(t, again), "seed %d", seed)
		assert.NotContains(t, strings.Join(r.Notes, "\n"), "less was paid than the bound", "seed %d", seed)
		if x.mixed {
			continue
		}
		assert.LessOrEqual(t, r.Bound.Dollars(), future+1e-6, "seed %d", seed)
		assert.LessOrEqual(t, r.Present.Dollars(), present+1e-6, "seed %d", seed)
		sum.Paid, sum.Policy, sum.Present, sum.Bound = sum.Paid+r.Paid, sum.Policy+r.Policy, sum.Present+r.Present, sum.Bound+r.Bound
		best += present
		for _, note := range r.Notes {
			assert.Contains(t, note, "machines that the cloud took back", "seed %d", seed)
			tookBack++
		}
		assert.Zero(t, r.MostWaiting, "seed %d: every pod has a place in some size", seed)
	}
	t.Logf("paid $%.2f, ours $%.2f, optimum of all that serve every pod at once $%.2f, bounds $%.2f and $%.2f", sum.Paid.Dollars(), sum.Policy.Dollars(), best, sum.Present.Dollars(), sum.Bound.Dollars())
	assert.Positive(t, tookBack)
	assert.Less(t, sum.Policy, sum.Paid, "in the sum we are cheaper than a careless policy")
	assert.GreaterOrEqual(t, sum.Present.Dollars(), 0.93*best, "the bound says something")
}

func text(t *testing.T, r *regret.Report) string {
	t.Helper()
	out, err := json.Marshal(r)
	require.NoError(t, err)
	return string(out)
}

// What the policy did is audited with the same policy: it would do the same again, and there is nothing to regret.
func TestThePolicyRegretsNothing(t *testing.T) {
	for seed := range draws(t, 15, 60) {
		x := draw(t, uint64(seed), 12, 7)
		for _, objective := range []giveback.Objective{{}, policy.AnySaving()} {
			o := &regret.Options{Startup: -1, Deprovision: &giveback.Options{Objective: objective}}
			first, err := regret.Audit(t.Context(), x.history, x.sale, o)
			require.NoError(t, err)
			second, err := regret.Audit(t.Context(), first.Ours, x.sale, o)
			require.NoError(t, err)
			assert.Equal(t, second.Paid, first.Policy, "seed %d: its cluster is the history", seed)
			assert.Equal(t, second.Paid, second.Policy, "seed %d", seed)
			for i, h := range second.Hours {
				assert.Equal(t, h.Paid, h.Policy, "seed %d at %s", seed, h.From)
				assert.InDelta(t, first.Hours[i].Present.Dollars(), h.Bound.Dollars(), 1e-6, "seed %d: the pods are the same, and all of them run", seed)
			}
			for _, d := range second.Decisions {
				assert.Zero(t, d.Regret(), "seed %d: %s", seed, d.Node)
			}
		}
	}
}

// A node that is kept while no pod runs on it, one that is larger than its pods ever needed, and one whose pods fit elsewhere later are told apart,
// and what would have been better is named.
func TestDecisionsAreNamed(t *testing.T) {
	sizes := []size{{4, 16, 0.2}, {16, 64, 0.8}}
	at := func(minutes int) time.Time { return start().Add(time.Duration(minutes) * time.Minute) }
	small, large, idle := node("small", 0, sizes[0], "zone-b", at(0)), node("large", 1, sizes[1], "zone-a", at(0)), node("idle", 0, sizes[0], "zone-a", at(0))
	full := node("full", 0, sizes[0], "zone-b", at(0))
	a, b, c, d := pod("a", "web", 3, 4), pod("b", "web", 2, 4), pod("c", "job", 2, 4), pod("d", "job", 2, 4)
	idle.Spec.Taints = []corev1.Taint{{Key: "batch", Effect: corev1.TaintEffectNoSchedule}}
	for _, p := range []*corev1.Pod{b, c, d} {
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "zone-b"}
	}
	nodes := []*corev1.Node{small, large, idle, full}
	h, err := history.New(pools(t), []history.Observation{
		{At: at(0), Nodes: nodes, Pods: []*corev1.Pod{on(a, "large"), on(b, "small"), on(c, "full"), on(d, "full")}},
		{At: at(60), Nodes: nodes, Pods: []*corev1.Pod{on(a, "large"), on(b, "small"), on(c, "full")}},
	}, at(600))
	require.NoError(t, err)
	sale, err := h.Sale(market(t, sizes))
	require.NoError(t, err)
	r, err := regret.Audit(t.Context(), h, sale, nil)
	require.NoError(t, err)
	kinds := map[string]regret.Decision{}
	for _, x := range r.Decisions {
		kinds[x.Node] = x
	}
	assert.Equal(t, regret.Bought, kinds["large"].Kind)
	older := large.DeepCopy()
	older.CreationTimestamp = metav1.NewTime(at(-60))
	before, err := history.New(pools(t), []history.Observation{{At: at(0), Nodes: []*corev1.Node{older}, Pods: []*corev1.Pod{on(a, "large")}}}, at(600))
	require.NoError(t, err)
	begun, err := regret.Audit(t.Context(), before, sale, nil)
	require.NoError(t, err)
	assert.Equal(t, regret.Kept, begun.Decisions[0].Kind, "it was there before the history begins")
	assert.Equal(t, kinds["large"].Better, begun.Decisions[0].Better)
	assert.Equal(t, "size-0 in zone-a, on-demand, is enough for 1 pod ($0.20/h)", kinds["large"].Better)
	assert.InDelta(t, 0.6, kinds["large"].Saves, 1e-9)
	assert.Equal(t, regret.Empty, kinds["idle"].Kind)
	assert.Equal(t, kinds["idle"].Paid, kinds["idle"].Idle)
	kept := kinds["small"]
	if kinds["full"].Kind == regret.Kept {
		kept = kinds["full"]
	}
	assert.Equal(t, regret.Kept, kept.Kind)
	assert.Contains(t, kept.Better, "1 pod fits on ")
	assert.InDelta(t, 0.2, kept.Saves, 1e-9)
	assert.Equal(t, "large", r.Decisions[0].Node, "the dearest first")
	assert.Equal(t, r.Bill, parts(r))
}

// A node that a do-not-disrupt annotation protects at that moment, its own or that of a pod, was not kept by decision: the annotation is named.
func TestProtectedNodesAreNamed(t *testing.T) {
	sizes := []size{{4, 16, 0.2}, {16, 64, 0.8}}
	begin := start()
	for name, c := range map[string]struct {
		node, pod string // the value of the annotation
		pods      int
		kind      regret.Kind
		keeps     string
	}{
		"kept":             {pods: 1, kind: regret.Kept},
		"by the pod":       {pods: 1, pod: "true", kind: regret.Protected, keeps: "default/a has karpenter.sh/do-not-disrupt=true"},
		"for long":         {pods: 1, pod: "100h", kind: regret.Protected, keeps: "default/a has karpenter.sh/do-not-disrupt=100h"},
		"by the node":      {pods: 1, node: "true", kind: regret.Protected, keeps: "the node has karpenter.sh/do-not-disrupt=true"},
		"empty":            {kind: regret.Empty},
		"empty, protected": {node: "true", kind: regret.Protected, keeps: "the node has karpenter.sh/do-not-disrupt=true"},
	} {
		n, p := node("large", 1, sizes[1], "zone-a", begin.Add(-time.Hour)), pod("a", "web", 1, 1)
		n.Annotations, p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": c.node}, map[string]string{"karpenter.sh/do-not-disrupt": c.pod}
		// Our policy moves b to the large node if that has to stay.
		o := history.Observation{At: begin, Nodes: []*corev1.Node{n, node("small", 0, sizes[0], "zone-a", begin.Add(-time.Hour))}, Pods: []*corev1.Pod{on(pod("b", "job", 1, 1), "small")}}
		if c.pods > 0 {
			o.Pods = append(o.Pods, on(p, "large"))
		}
		h, err := history.New(pools(t), []history.Observation{o}, begin.Add(10*time.Hour))
		require.NoError(t, err)
		sale, err := h.Sale(market(t, sizes))
		require.NoError(t, err)
		r, err := regret.Audit(t.Context(), h, sale, nil)
		require.NoError(t, err)
		i := slices.IndexFunc(r.Decisions, func(d regret.Decision) bool { return d.Node == "large" })
		d := r.Decisions[i]
		require.Positive(t, d.Regret(), name)
		assert.Equal(t, c.kind, d.Kind, name)
		assert.Equal(t, c.keeps, d.Keeps, name)
		assert.NotEmpty(t, d.Better, name)
	}
}

// An eviction makes a pod of another name. It is no arrival: the policy keeps the place of its predecessor and buys nothing.
func TestSuccessorsAreNoArrivals(t *testing.T) {
	sizes := []size{{4, 16, 0.2}}
	at := func(minutes int) time.Time { return start().Add(time.Duration(minutes) * time.Minute) }
	first, second := node("first", 0, sizes[0], "zone-a", at(0)), node("second", 0, sizes[0], "zone-a", at(5))
	h, err := history.New(pools(t), []history.Observation{
		{At: at(0), Nodes: []*corev1.Node{first}, Pods: []*corev1.Pod{on(pod("a-1", "a", 3, 4), "first")}},
		{At: at(5), Nodes: []*corev1.Node{second}, Pods: []*corev1.Pod{on(pod("a-2", "a", 3, 4), "second")}},
	}, at(10))
	require.NoError(t, err)
	sale, err := h.Sale(market(t, sizes))
	require.NoError(t, err)
	r, err := regret.Audit(t.Context(), h, sale, nil)
	require.NoError(t, err)
	assert.Zero(t, r.Launches)
	assert.Equal(t, r.Paid, r.Policy)
}

// A machine that the cloud took back is not there for our policy, either: the pods on it get a new node at once. Its successor has no place for free.
func TestWhatTheCloudTakesBack(t *testing.T) {
	sizes := []size{{4, 16, 0.2}}
	at := func(minutes int) time.Time { return start().Add(time.Duration(minutes) * time.Minute) }
	first, second := node("first", 0, sizes[0], "zone-a", at(0)), node("second", 0, sizes[0], "zone-a", at(5))
	before, after := pod("web-1", "web", 2, 4), pod("web-2", "web", 2, 4)
	h, err := history.New(pools(t), []history.Observation{
		{At: at(0), Pods: []*corev1.Pod{on(before, "first")}, Nodes: []*corev1.Node{first}},
		{At: at(5), Pods: []*corev1.Pod{on(after, "second")}, Nodes: []*corev1.Node{second}, TakenBack: []string{"first"}},
	}, at(20))
	require.NoError(t, err)
	sale, err := h.Sale(market(t, sizes))
	require.NoError(t, err)
	r, err := regret.Audit(t.Context(), h, sale, &regret.Options{Startup: -1})
	require.NoError(t, err)
	last := r.Ours.Observations[len(r.Ours.Observations)-1]
	require.Len(t, last.Nodes, 1)
	assert.NotEqual(t, "first", last.Nodes[0].Name)
	assert.Equal(t, last.Nodes[0].Name, last.Pods[0].Spec.NodeName)
	assert.Equal(t, 1, r.Launches)
	assert.Equal(t, r.Paid, r.Policy)
	assert.Equal(t, []string{"first"}, last.TakenBack)
	assert.Contains(t, r.Notes, "machines that the cloud took back from our policy, too, because they were there from the start: 1")
}

// Nodes of unknown price are on no side, nor are their pods, and the report says so.
func TestUnknownPrices(t *testing.T) {
	sizes := []size{{4, 16, 0.2}}
	known, unknown := node("known", 0, sizes[0], "zone-a", start()), node("unknown", 7, sizes[0], "zone-a", start())
	h, err := history.New(pools(t), []history.Observation{
		{At: start(), Nodes: []*corev1.Node{known, unknown}, Pods: []*corev1.Pod{on(pod("a", "a", 2, 4), "known"), on(pod("b", "b", 2, 4), "unknown"), on(pod("c", "c", 2, 4), "nowhere")}},
	}, start().Add(2*time.Hour))
	require.NoError(t, err)
	sale, err := h.Sale(market(t, sizes))
	require.NoError(t, err)
	r, err := regret.Audit(t.Context(), h, sale, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"unknown"}, r.Unpriced)
	assert.InDelta(t, 0.4, r.Paid.Dollars(), 1e-9)
	assert.InDelta(t, 0.4, r.Bound.Dollars(), 1e-9, "of one pod")
	assert.Equal(t, []string{"nodes of unknown price, left out everywhere, with their pods: unknown", "pods on nodes that were not observed, left out everywhere: at most 1"}, r.Notes)
}
