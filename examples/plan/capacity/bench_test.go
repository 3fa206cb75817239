package capacity_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/capacity"
)

// thousand is a cluster of 1,000 nodes and 7,000 pods, with pods to ask for: small ones, and some that no node takes.
func thousand(tb testing.TB) (state *capacity.State, small, large []*corev1.Pod) {
	tb.Helper()
	c, err := fragment.Generate(fragment.Options{Nodes: 1000, Seed: 1, Constrained: true})
	require.NoError(tb, err)
	pod := func(app string, cpu, memory int64) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "asked", Name: app, Labels: map[string]string{"app": app}}}
		p.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/" + app, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			"cpu": *resource.NewMilliQuantity(cpu, resource.DecimalSI), "memory": *resource.NewQuantity(memory<<20, resource.BinarySI),
		}}}}
		return p
	}
	for i := range int64(10) {
		small = append(small, pod(fmt.Sprintf("small%d", i), 100+50*i, 128+64*i))
		large = append(large, pod(fmt.Sprintf("large%d", i), 62_000-500*i, 460<<10))
	}
	state, err = capacity.New(tb.Context(), c.Snapshot, &capacity.Options{Like: append(append([]*corev1.Pod{}, small...), large...)})
	require.NoError(tb, err)
	return state, small, large
}

// some are n pods of a template.
func some(template *corev1.Pod, n, number int) []*corev1.Pod {
	out := make([]*corev1.Pod, n)
	for i := range out {
		p := *template
		p.Name = fmt.Sprintf("%s-%d-%d", template.Name, number, i)
		out[i] = &p
	}
	return out
}

// equal asserts that the answer is that of a plan from scratch.
func equal(tb testing.TB, state *capacity.State, a *capacity.Answer, pods []*corev1.Pod) {
	tb.Helper()
	whole := state.Snapshot()
	whole.Pods = append(slices.Clip(whole.Pods), pods...)
	p, err := plan.Make(tb.Context(), whole, nil)
	require.NoError(tb, err)
	require.Empty(tb, p.Unplaced())
	require.Len(tb, a.Places, len(pods))
	require.Len(tb, a.Nodes, len(p.NewNodes()))
	require.InDelta(tb, p.Totals().PricePerHour, a.PricePerHour, 1e-9)
	require.GreaterOrEqual(tb, a.LowerBoundPerHour, p.Totals().LowerBoundPerHour-1e-9, "where no node takes any of the pods, the bound knows it")
	require.LessOrEqual(tb, a.LowerBoundPerHour, a.PricePerHour+1e-9)
	require.NotEqual(tb, capacity.Impossible, a.Kind)
}

// One to four small pods for each question.
func BenchmarkAskSmallPods(b *testing.B) {
	state, small, _ := thousand(b)
	for i, template := range small { // outside of the time, each kind of question against a plan from scratch
		pods := some(template, 1+i%4, i)
		a, err := state.Ask(b.Context(), pods)
		require.NoError(b, err)
		require.Equal(b, capacity.Fits, a.Kind)
		equal(b, state, a, pods)
	}
	i := 0
	for b.Loop() {
		a, err := state.Ask(b.Context(), some(small[i%len(small)], 1+i%4, i))
		if err != nil || a.Kind != capacity.Fits || len(a.Places) != 1+i%4 {
			b.Fatal(a, err)
		}
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "asks/s")
}

// Up to ten pods for each question that need a machine of their own.
func BenchmarkAskPurchases(b *testing.B) {
	state, _, large := thousand(b)
	for i := 0; ; i++ { // until no node takes the least of them; their names are those of no question
		a, err := state.Ask(b.Context(), some(large[len(large)-1], 1, -1-i))
		require.NoError(b, err)
		if a.Kind == capacity.Buy {
			break
		}
		state, err = a.Commit()
		require.NoError(b, err)
	}
	for i, template := range large {
		pods := some(template, 1+i, i)
		a, err := state.Ask(b.Context(), pods)
		require.NoError(b, err)
		require.Equal(b, capacity.Buy, a.Kind)
		equal(b, state, a, pods)
	}
	i := 0
	for b.Loop() {
		a, err := state.Ask(b.Context(), some(large[i%len(large)], 1+i%10, i))
		if err != nil || a.Kind != capacity.Buy || len(a.Places) != 1+i%10 || a.LowerBoundPerHour <= 0 {
			b.Fatal(a, err)
		}
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "asks/s")
}

// A chain of commits of one pod each.
func BenchmarkCommit(b *testing.B) {
	state, small, _ := thousand(b)
	i := 0
	for b.Loop() {
		a, err := state.Ask(b.Context(), some(small[i%len(small)], 1, i))
		if err != nil || a.Kind == capacity.Impossible {
			b.Fatal(a, err)
		}
		if state, err = a.Commit(); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}
