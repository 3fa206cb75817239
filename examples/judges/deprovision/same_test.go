package deprovision_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/scheduling"
)

// The cluster that a plan ends with answers like the same cluster read anew: if any of its nodes goes, pods have the same places, and the
// same nodes are bought. So a plan that is made again finds what the plan before would have found.
func TestAnswersAreThoseOfTheClusterReadAnew(t *testing.T) {
	var asked, dealt atomic.Int64
	each(t, clusters(20, 500), func(ctx context.Context, seed uint64) (seen tally, err error) {
		w, err := draw(ctx, seed, false)
		if err != nil {
			return seen, err
		}
		if seed%2 == 1 {
			w.disturb(rand.New(rand.NewPCG(seed, 9)))
		}
		r, s, err := w.carryOut(ctx, &giveback.Options{}, &seen)
		if err != nil {
			return seen, err
		}
		same, err := samePlaces(w.snapshot, s)
		if err != nil {
			return seen, err
		}
		if !same {
			dealt.Add(1)
			return seen, nil
		}
		anew, _, err := simulate.New(s)
		if err != nil {
			return seen, err
		}
		nothing, err := r.After.Simulate(ctx, giveback.Question{})
		if err != nil {
			return seen, err
		}
		after := nothing.Rebased()
		now := map[types.NamespacedName]string{}
		for _, p := range s.Pods {
			now[key(p)] = p.Spec.NodeName
		}
		for _, n := range s.Nodes {
			a, err := answer(ctx, after, w.snapshot, n.Name, now)
			if err != nil {
				return seen, err
			}
			b, err := answer(ctx, anew, s, n.Name, now)
			if err != nil {
				return seen, err
			}
			asked.Add(1)
			if a != b {
				return seen, fmt.Errorf("without %s, after %d commands: %s\nread anew: %s", n.Name, len(r.Commands), a, b)
			}
		}
		return seen, nil
	})
	t.Logf("%d nodes were asked about, and %d clusters keep other places for pods that move by themselves", asked.Load(), dealt.Load())
	require.Positive(t, asked.Load())
}

// answer asks a simulator what becomes of the pods that now run on a node if it goes. The objects of the pods are those of the snapshot.
func answer(ctx context.Context, sim giveback.Simulator, s scheduling.Snapshot, node string, now map[types.NamespacedName]string) (string, error) {
	q := giveback.Question{Remove: []string{node}, Explain: true}
	for _, p := range s.Pods {
		if now[key(p)] == node && eviction.Reschedulable(p) {
			q.Pods = append(q.Pods, p)
		}
	}
	slices.SortFunc(q.Pods, func(a, b *corev1.Pod) int { return strings.Compare(key(a).String(), key(b).String()) })
	q.MaxNodes = len(q.Pods)
	a, err := sim.Simulate(ctx, q)
	names := map[string]string{} // a name that was given before is free when a cluster is read anew
	for i, n := range a.NewNodes {
		names[n.Name] = fmt.Sprintf("new-%d (%s %s %s)", i, n.InstanceType, n.Zone, n.CapacityType)
	}
	var places []string
	for _, p := range a.Placements {
		replicas := strings.TrimRight(p.Pod.Name, "0123456789") // which of them goes where does not matter
		places = append(places, fmt.Sprintf("%s to %s", replicas, cmp.Or(names[p.Node], p.Node)))
	}
	slices.Sort(places)
	return a.Why + strings.Join(places, ", "), err
}
