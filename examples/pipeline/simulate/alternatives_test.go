package simulate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
)

// Every alternative of a new node holds all pods that the plan places there, those of later commands, too: a launch may choose any of them.
func TestAlternativesHoldThePodsOfLaterCommands(t *testing.T) {
	seeds, nodes, alternatives, later := uint64(24), 0, 0, 0
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		c, err := fragment.Generate(fragment.Options{Nodes: 6 + int(seed), Seed: 400 + seed, Constrained: seed%2 == 1})
		require.NoError(t, err)
		sim, nominated, err := simulate.New(c.Snapshot)
		require.NoError(t, err)
		r, err := giveback.Make(t.Context(), simulate.Cluster(c.Manifests, c.Snapshot, nominated, fragment.Now()), sim, &giveback.Options{Objective: policy.AnySaving()})
		require.NoError(t, err)
		need, first := map[string]corev1.ResourceList{}, map[string]int{}
		for i := range r.Commands {
			for _, pl := range r.Commands[i].Placements {
				if need[pl.Node] == nil {
					need[pl.Node] = corev1.ResourceList{}
				}
				for name, q := range pl.Pod.Spec.Containers[0].Resources.Requests {
					sum := need[pl.Node][name]
					sum.Add(q)
					need[pl.Node][name] = sum
				}
				first[pl.Node]++
			}
		}
		for i := range r.Commands {
			for _, n := range r.Commands[i].NewNodes {
				nodes++
				if first[n.Name] > len(n.Pods) {
					later++
				}
				for _, alt := range n.Alternatives {
					alternatives++
					for _, typ := range c.Snapshot.Pools[0].Types {
						if typ.Name != alt.InstanceType {
							continue
						}
						free := typ.Allocatable()
						for name, q := range need[n.Name] {
							have := free[name]
							assert.LessOrEqual(t, q.Cmp(have), 0, "seed %d: %s as %s has %s of %s for %s", seed, n.Name, alt.InstanceType, have.String(), name, q.String())
						}
					}
				}
			}
		}
	}
	t.Logf("%d new nodes with %d alternatives, %d of them get pods of later commands", nodes, alternatives, later)
	require.Positive(t, alternatives)
	require.Positive(t, later)
}
