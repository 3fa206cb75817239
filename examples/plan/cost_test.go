package plan_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
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
