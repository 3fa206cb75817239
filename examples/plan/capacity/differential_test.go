package capacity_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/capacity"
	"github.com/joinery-sdk/joinery/scheduling"
)

func longer(short, long int) int {
	if parts, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); err == nil {
		return max(short, long/parts)
	}
	if testing.Short() {
		return short / 4
	}
	return short
}

// Ask on a state that is warm, after a chain of commits and beside forks, says what a plan from scratch of the same pods on the same
// snapshot says: the same kind, the same number of places, and a price that neither bound excludes. Places of an answer without a plan are checked
// by another path: pods that run where it says leave a snapshot in which the plan finds the same room for the rest.
func TestAskIsThePlanFromScratch(t *testing.T) {
	kinds, quick, dearer := map[string]int{}, 0, 0.0
	for seed := range uint64(longer(150, 2000)) {
		r := rand.New(rand.NewPCG(seed, 48))
		d := draw(r)
		state, err := capacity.New(t.Context(), d.Snapshot, &capacity.Options{Like: d.templates})
		require.NoError(t, err, "seed %d", seed)
		for step := range 6 {
			var pods []*corev1.Pod
			for range 1 + r.IntN(2) {
				pods = append(pods, d.pods(d.templates[r.IntN(len(d.templates))], 1+r.IntN(4))...)
			}
			at := fmt.Sprintf("seed %d, step %d", seed, step)
			before := len(state.Snapshot().Pods)
			a, err := state.Ask(t.Context(), pods)
			require.NoError(t, err, at)
			assert.Len(t, state.Snapshot().Pods, before, "%s: a question changes nothing", at)

			whole := state.Snapshot()
			whole.Pods = slices.Concat(whole.Pods, pods)
			p, err := plan.Make(t.Context(), whole, nil)
			require.NoError(t, err, at)
			want := capacity.Fits
			switch {
			case len(p.Unplaced())+len(p.Ignored()) > 0:
				want = capacity.Impossible
			case len(p.NewNodes()) > 0:
				want = capacity.Buy
			}
			if !assert.Equal(t, want, a.Kind, at) {
				t.Log(describe(pods), p.Totals())
			}
			assert.Len(t, a.Places, p.Totals().Placed, at)
			assert.Len(t, a.Nodes, len(p.NewNodes()), at)
			assert.GreaterOrEqual(t, a.PricePerHour, p.Totals().LowerBoundPerHour-1e-6, at)
			assert.GreaterOrEqual(t, p.Totals().PricePerHour, a.LowerBoundPerHour-1e-6, at)
			dearer = max(dearer, a.PricePerHour-p.Totals().PricePerHour)
			kinds[string(a.Kind)]++
			if capacity.IsQuick(a) {
				quick++
				kinds[string(a.Kind)+" quickly"]++
				holds(t, state.Snapshot(), a, at)
			}
			if a.Kind == capacity.Impossible {
				_, err := a.Commit()
				assert.Error(t, err, at)
				continue
			}
			if next, err := a.Commit(); assert.NoError(t, err, at) && r.IntN(3) > 0 { // else the answer is a fork that the chain leaves
				assert.Len(t, next.Snapshot().Pods, before+len(pods), at)
				state = next
			}
		}
	}
	t.Log(kinds, "dearer at most", dearer)
	for _, kind := range []string{"fits", "buy", "impossible", "fits quickly", "buy quickly"} {
		assert.Positive(t, kinds[kind], "%s is drawn", kind)
	}
	assert.LessOrEqual(t, dearer, 1e-9, "an answer from what is for sale costs what the whole plan costs")
}

// holds asserts that each pod of an answer finds its place when it may go nowhere else.
func holds(t *testing.T, s scheduling.Snapshot, a *capacity.Answer, at string) {
	t.Helper()
	s.Nodes = slices.Clone(s.Nodes)
	for i := range a.Nodes {
		s.Nodes = append(s.Nodes, a.Nodes[i].Node())
	}
	s.Pools = nil
	for _, place := range a.Places {
		s.Pods = slices.Clip(s.Pods)
		pinned := place.Pod.DeepCopy()
		term := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{place.Node}}}}
		if pinned.Spec.Affinity == nil {
			pinned.Spec.Affinity = &corev1.Affinity{}
		}
		pinned.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}
		one := s
		one.Pods = append(one.Pods, pinned)
		p, err := plan.Make(t.Context(), one, nil)
		if !assert.NoError(t, err, at) || !assert.Empty(t, p.Unplaced(), "%s: %s on %s", at, place.Pod.Name, place.Node) {
			return
		}
		runs := *place.Pod
		runs.Spec.NodeName = place.Node
		s.Pods = append(s.Pods, &runs)
	}
}

func describe(pods []*corev1.Pod) string {
	var out string
	for _, p := range pods {
		out += fmt.Sprintf("\n%s labels %v requests %v selector %v affinity %v ports %v tolerations %v", p.Name, p.Labels, p.Spec.Containers[0].Resources.Requests, p.Spec.NodeSelector, p.Spec.Affinity, p.Spec.Containers[0].Ports, p.Spec.Tolerations)
	}
	return out
}
