package plan_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// owned gives pods to a workload, with requests of its own.
func owned(list []*corev1.Pod, kind, name, cpu, memory string) []*corev1.Pod {
	yes := true
	for i, p := range list {
		p.Name = name + p.Name
		p.Labels = map[string]string{"pod-template-hash": "5f"}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: &yes}}
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
		list[i] = p
	}
	return list
}

func planned(t *testing.T, pods ...*corev1.Pod) *plan.Plan {
	t.Helper()
	p, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: pods, Pools: pools()}, nil)
	require.NoError(t, err)
	require.Empty(t, p.Unplaced())
	return p
}

// Every billionth of the cost is somebody's, and the same whatever the order of the pods is.
func TestCostIsDivided(t *testing.T) {
	web, job, alone := owned(pods(7), "ReplicaSet", "web-5f", "700m", "1Gi"), owned(pods(3), "Job", "load", "1", "8Gi"), pods(1)
	all := append(append(web, job...), alone...)
	p := planned(t, all...)
	costs := p.CostByWorkload()
	require.Len(t, costs, 3)
	sum, count := 0.0, 0
	for _, c := range costs {
		sum += c.PricePerHour
		count += c.Pods
		assert.Positive(t, c.PricePerHour)
	}
	assert.Equal(t, p.Cost(), plan.Price(sum))
	assert.Equal(t, 11, count)
	names := []string{costs[0].Workload, costs[1].Workload, costs[2].Workload}
	assert.ElementsMatch(t, []string{"Deployment shop/web", "Job shop/load", "Pod shop/web-0"}, names)
	reversed := make([]*corev1.Pod, 0, len(all))
	for i := range all {
		reversed = append(reversed, all[len(all)-1-i])
	}
	assert.Equal(t, costs, planned(t, reversed...).CostByWorkload())
}

// What one workload costs at the margin is what is saved without it.
func TestMarginalCost(t *testing.T) {
	web, job := owned(pods(7), "ReplicaSet", "web-5f", "700m", "1Gi"), owned(pods(3), "Job", "load", "1", "8Gi")
	both := planned(t, append(append([]*corev1.Pod{}, web...), job...)...)
	marginal, err := both.MarginalCost(t.Context(), "Job shop/load")
	require.NoError(t, err)
	assert.InDelta(t, (both.Cost() - planned(t, web...).Cost()).Dollars(), marginal, 1e-9)
	assert.False(t, math.Signbit(marginal))
	nobody, err := both.MarginalCost(t.Context(), "Job shop/other")
	require.NoError(t, err)
	assert.Zero(t, nobody)
}

// A plan without some pods counts the layers of prices of the objective once, as the plan itself does.
func TestMarginalCostUnderDiscounts(t *testing.T) {
	half := instancetypes.PriceSourceFunc(func(_ instancetypes.PriceQuery, below []instancetypes.Quote) []instancetypes.Quote {
		out := slices.Clone(below)
		for i := range out {
			out[i].Price /= 2
		}
		return out
	})
	o := &plan.Options{Objective: &plan.Objective{Prices: []instancetypes.PriceSource{half}}}
	web, job := owned(pods(7), "ReplicaSet", "web-5f", "700m", "1Gi"), owned(pods(3), "Job", "load", "1", "8Gi")
	cost := func(pods ...*corev1.Pod) float64 {
		p, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: pods, Pools: pools()}, o)
		require.NoError(t, err)
		return p.Cost().Dollars()
	}
	both, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: append(append([]*corev1.Pod{}, web...), job...), Pools: pools()}, o)
	require.NoError(t, err)
	marginal, err := both.MarginalCost(t.Context(), "Job shop/load")
	require.NoError(t, err)
	assert.InDelta(t, both.Cost().Dollars()-cost(web...), marginal, 1e-9)
}

// A gate sees what a change costs, and whom.
func TestDiff(t *testing.T) {
	before := planned(t, owned(pods(2), "ReplicaSet", "web-5f", "700m", "1Gi")...)
	grown := append(owned(pods(2), "ReplicaSet", "web-5f", "700m", "1Gi"), owned(pods(1), "Job", "load", "1500m", "12Gi")...)
	after := planned(t, grown...)
	d := plan.Diff(before, after)
	assert.Equal(t, before.Totals(), d.Before)
	assert.Equal(t, after.Totals(), d.After)
	assert.Greater(t, d.After.PricePerHour, d.Before.PricePerHour)
	assert.Equal(t, []string{"shop/loadweb-0"}, d.Gained)
	assert.Empty(t, d.Lost)
	assert.Empty(t, d.Gone)
	require.NotEmpty(t, d.Nodes)
	require.NotEmpty(t, d.Workloads)
	assert.Equal(t, "Job shop/load", d.Workloads[len(d.Workloads)-1].Workload)
	back := plan.Diff(after, before)
	assert.Equal(t, d.Gained, back.Gone)
	assert.Empty(t, back.Lost, "nobody has to go without")
	tooLarge := append(owned(pods(1), "ReplicaSet", "web-5f", "9999", "1Gi"), owned(pods(1), "Job", "new", "9999", "1Gi")...)
	huge, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: tooLarge, Pools: pools()}, nil)
	require.NoError(t, err)
	worse := plan.Diff(before, huge)
	assert.Equal(t, []string{"shop/newweb-0", "shop/web-5fweb-0"}, worse.Lost, "with and without a place before")
	assert.Equal(t, []string{"shop/web-5fweb-1"}, worse.Gone)
	assert.Equal(t, []string{"shop/web-5fweb-0"}, plan.Diff(huge, before).Gained[:1])
	assert.Empty(t, plan.Diff(huge, huge).Lost, "nor before")
	same := plan.Diff(after, after)
	assert.Empty(t, same.Nodes)
	assert.Empty(t, same.Workloads)
}

// A pod that is no longer planned has lost its place, and exists. One that never was planned is only named.
func TestDiffNamesWhoIsNotPlanned(t *testing.T) {
	list := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("20")}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelHostname: "n1"}},
		Status:     corev1.NodeStatus{Allocatable: list, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	type change func(*corev1.Pod)
	placed := func(*corev1.Pod) {}
	running := func(p *corev1.Pod) { p.Spec.NodeName = "n1" }
	nominated := func(p *corev1.Pod) { p.Status.NominatedNodeName = "n1" }
	huge := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("9999")}
	}
	gated := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} }
	foreign := func(p *corev1.Pod) { p.Spec.SchedulerName = "batch" }
	claiming := func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }
	optedOut := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: nodepool.LabelKey, Operator: corev1.NodeSelectorOpDoesNotExist}}}},
		}}}
	}
	pools := pools()
	pools[0].Types = slices.DeleteFunc(slices.Clone(pools[0].Types), func(t instancetypes.InstanceType) bool { return !strings.HasPrefix(t.Name, "c6a.") }) // others only take time
	made := func(how change) *plan.Plan {
		s := scheduling.Snapshot{Nodes: []*corev1.Node{node}, Pools: pools}
		if how != nil {
			s.Pods = pods(1)
			how(s.Pods[0])
		}
		p, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		return p
	}
	for name, c := range map[string]struct {
		before, after      change
		lost, gained, gone bool
		why                string
	}{
		"another scheduler":             {placed, foreign, true, false, false, `scheduler "batch" places it`},
		"a gate":                        {placed, gated, true, false, false, `scheduling gate "quota"`},
		"a claim":                       {placed, claiming, true, false, false, "dynamic resource allocation is not supported"},
		"no pool":                       {placed, optedOut, true, false, false, "it opted out of every pool"},
		"it ran":                        {running, gated, true, false, false, `scheduling gate "quota"`},
		"it had room":                   {nominated, gated, true, false, false, `scheduling gate "quota"`},
		"new and waiting":               {nil, gated, false, false, false, `scheduling gate "quota"`},
		"as before":                     {gated, gated, false, false, false, `scheduling gate "quota"`},
		"waiting for something else":    {gated, foreign, false, false, false, `scheduler "batch" places it`},
		"it had no place before either": {huge, gated, false, false, false, `scheduling gate "quota"`},
		"planned now, without a place":  {gated, huge, true, false, false, ""},
		"planned now":                   {gated, placed, false, true, false, ""},
		"it runs now":                   {gated, running, false, true, false, ""},
		"gone, and never planned":       {gated, nil, false, false, false, ""},
		"gone":                          {placed, nil, false, false, true, ""},
		"room is kept for it":           {placed, nominated, false, false, false, ""},
		"the room is used":              {nominated, placed, false, false, false, ""},
		"new, with room":                {nil, nominated, false, true, false, ""},
	} {
		d := plan.Diff(made(c.before), made(c.after))
		only := func(has bool) []string {
			if has {
				return []string{"shop/web-0"}
			}
			return []string{}
		}
		assert.Equal(t, only(c.lost), d.Lost, name)
		assert.Equal(t, only(c.gained), d.Gained, name)
		assert.Equal(t, only(c.gone), d.Gone, name)
		if c.why == "" {
			assert.Empty(t, d.Ignored, name)
			continue
		}
		require.Len(t, d.Ignored, 1, name)
		assert.Contains(t, d.Ignored["shop/web-0"], c.why, name)
	}
}

// Which replicas have the places is arbitrary, so only their number counts. Pods of a StatefulSet
// are not exchanged.
func TestDiffExchangesReplicas(t *testing.T) {
	list := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("20")}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelHostname: "n1"}},
		Status:     corev1.NodeStatus{Allocatable: list, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for kind, exchanged := range map[string]bool{"ReplicaSet": true, "Job": true, "StatefulSet": false} {
		made := func(running string) *plan.Plan {
			s := scheduling.Snapshot{Nodes: []*corev1.Node{node}, Pods: owned(pods(3), kind, "web-5f", "1500m", "1Gi")}
			for _, p := range s.Pods {
				if p.Name == running {
					p.Spec.NodeName = node.Name
				}
			}
			p, err := plan.Make(t.Context(), s, nil)
			require.NoError(t, err)
			return p
		}
		d := plan.Diff(made(""), made("web-5fweb-2"))
		if exchanged {
			assert.Empty(t, d.Lost, kind)
			assert.Empty(t, d.Gained, kind)
		} else {
			assert.Equal(t, []string{"shop/web-5fweb-0"}, d.Lost)
			assert.Equal(t, []string{"shop/web-5fweb-2"}, d.Gained)
		}
	}
}
