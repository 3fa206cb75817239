package simulate_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
)

// Nodes that the cloud takes back go, whatever their pods follow. In the state that they should end in, pods of several of these nodes may be together
// elsewhere, where no single node can bring its own first. So such nodes go in one command. If they may not, 43 nodes of 1,000 clusters stay; 4
// still do, where a pod has moved to another of these nodes before.
func TestInterruptedNodesThatWaitForEachOtherGo(t *testing.T) {
	clusters, interrupted, stay := 1000, 0, 0
	if testing.Short() {
		clusters = 100
	}
	for seed := range uint64(clusters) {
		r, x := rand.New(rand.NewPCG(seed, 53)), newTangled(seed)
		for _, p := range x.s.Pods {
			if p.Spec.NodeSelector != nil || r.IntN(3) == 0 {
				continue
			}
			p.Spec.TopologySpreadConstraints = nil
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: []string{corev1.LabelTopologyZone, corev1.LabelHostname}[r.IntN(2)], LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
			}}}}
		}
		sim, nominated, err := simulate.New(x.s)
		require.NoError(t, err)
		objects := simulate.Objects{PodDisruptionBudgets: x.pdbs}
		c := objects.Cluster(x.s, nominated, crampedNow())
		due := map[string]bool{}
		for _, n := range x.s.Nodes {
			if r.IntN(2) == 0 {
				due[n.Name] = true
				c.Interruptions = append(c.Interruptions, deprovision.Interruption{Node: n.Name, Deadline: c.Now.Add(time.Hour)})
			}
		}
		interrupted += len(due)
		got, err := giveback.Make(t.Context(), c, sim, &giveback.Options{})
		require.NoError(t, err)
		for i := range got.Commands {
			for _, n := range got.Commands[i].Nodes {
				delete(due, n.Name)
			}
		}
		for name := range due {
			stay++
			t.Logf("seed %d: %+v", seed, said(t, got, name))
		}
	}
	t.Logf("%d clusters, %d interrupted nodes, %d stay", clusters, interrupted, stay)
	require.Greater(t, interrupted, clusters)
	require.LessOrEqual(t, stay, 1+clusters/200)
}
