package replay_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/plan/capacity"
)

// asked is a chain of questions and what kube-scheduler says of the answers.
type asked struct {
	questions, placed int
	known             int // pods of kinds that the state has learned
	refused           []kubejudge.Verdict
}

// askAll asks for the pending pods of a scenario a few at a time, has each answer that places them all judged, and carries it out.
func askAll(ctx context.Context, s scenario.Scenario) (asked, error) {
	var out asked
	snapshot, err := replay.Snapshot(s)
	if err != nil {
		return out, err
	}
	var pending []*corev1.Pod
	snapshot.Pods = slices.DeleteFunc(slices.Clone(snapshot.Pods), func(p *corev1.Pod) bool {
		if p.Spec.NodeName == "" {
			pending = append(pending, p)
		}
		return p.Spec.NodeName == ""
	})
	state, err := capacity.New(ctx, snapshot, &capacity.Options{Like: pending})
	if err != nil {
		return out, err
	}
	for n := 1; len(pending) > 0; n = n%4 + 1 {
		pods := pending[:min(n, len(pending))]
		pending = pending[len(pods):]
		a, err := state.Ask(ctx, pods)
		if err != nil {
			return out, err
		}
		if out.questions++; a.Kind == capacity.Impossible {
			continue
		}
		var nodes []*corev1.Node
		for i := range a.Nodes {
			nodes = append(nodes, a.Nodes[i].Node())
		}
		var order []kubejudge.Binding
		for _, p := range a.Places {
			order = append(order, kubejudge.Binding{Pod: types.NamespacedName{Namespace: p.Pod.Namespace, Name: p.Pod.Name}, Node: p.Node})
			if out.placed++; state.Knows(p.Pod) {
				out.known++
			}
		}
		cluster, order, err := s.Planned(ctx, nodes, nil, order)
		if err != nil {
			return out, err
		}
		verdict, err := kubejudge.Judge(ctx, cluster, order)
		if err != nil {
			return out, err
		}
		if !verdict.Valid() {
			out.refused = append(out.refused, verdict)
		}
		if state, err = a.Commit(); err != nil {
			return out, err
		}
		s.Nodes = slices.Concat(s.Nodes, nodes)
		s = runs(s, a.Places)
	}
	return out, nil
}

// runs is the scenario with the pods running in their places.
func runs(s scenario.Scenario, places []capacity.Place) scenario.Scenario {
	at := map[types.NamespacedName]string{}
	for _, p := range places {
		at[types.NamespacedName{Namespace: p.Pod.Namespace, Name: p.Pod.Name}] = p.Node
	}
	s.Running = slices.Clone(s.Running)
	var pending []*corev1.Pod
	for _, p := range s.Pods {
		if node := at[nameOf(p)]; node != "" {
			bound := p.DeepCopy()
			bound.Spec.NodeName = node
			s.Running = append(s.Running, bound)
		} else {
			pending = append(pending, p)
		}
	}
	s.Pods = pending
	return s
}

// A chain of questions, each about the state that the one before led to, binds pods that kube-scheduler accepts one by one, whether an answer
// needed a plan or not. Volumes are left out, because a judge of one answer does not know what the one before had made.
func TestAnswersAreAccepted(t *testing.T) {
	n := *scenarios / 4
	results, errs := make([]asked, n), make([]error, n)
	inParallel(n, func(i int) {
		seed := *from + uint64(i)
		s := scenario.Generate(seed, scenario.Options{Pods: 5 + int(seed*37%80), Density: *density, NoVolumes: true, Limits: seed%4 == 0})
		if len(s.Leaving) == 0 { // New places the pods of leaving nodes
			results[i], errs[i] = askAll(t.Context(), s)
		}
	})
	var sum asked
	for i := range results {
		require.NoError(t, errs[i], "seed %d", *from+uint64(i))
		assert.Empty(t, results[i].refused, "seed %d", *from+uint64(i))
		sum.questions, sum.placed, sum.known = sum.questions+results[i].questions, sum.placed+results[i].placed, sum.known+results[i].known
	}
	fmt.Printf("%d questions, %d pods placed, %d of them of kinds that need no plan\n", sum.questions, sum.placed, sum.known)
	require.Positive(t, sum.known)
}
