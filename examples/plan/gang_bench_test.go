package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// 1,000 pods in 50 groups of 20: where all fit; where a limit leaves room for half of them; where they are all in one zone each; and where pods
// take more of the limit than they ask for, so that a sum of requests says too little.
func BenchmarkGangs(b *testing.B) {
	for name, c := range map[string]struct {
		limit int64
		key   string
		cpus  []int // by group, again and again
		whole int
	}{
		"all fit":                  {0, "", []int{1, 2, 3}, 50},
		"half of them":             {700, "", []int{1, 2, 3}, 17 + (700-17*20)/40}, // a group of the smallest pods takes 20 CPUs, the next one 40
		"half of them, by zone":    {700, corev1.LabelTopologyZone, []int{1, 2, 3}, 17 + (700-17*20)/40},
		"half of them, one a node": {2_000, "", []int{3}, 2_000 / 80},
	} {
		b.Run(name, func(b *testing.B) {
			var pods []*corev1.Pod
			var groups []gang.Group
			for i := range 50 {
				name := fmt.Sprintf("job-%d", i)
				g := jobs(name)[0]
				g.Key = c.key
				pods, groups = append(pods, job(name, 20, fmt.Sprint(c.cpus[i%len(c.cpus)]))...), append(groups, g)
			}
			s := scheduling.Snapshot{Pods: pods, Pools: []scheduling.Pool{limited(c.limit, "a", "b")}}
			for b.Loop() {
				p, err := plan.Make(b.Context(), s, &plan.Options{Groups: groups})
				require.NoError(b, err)
				for name, n := range placedOf(p) {
					require.Equal(b, 20, n, name)
				}
				require.Len(b, placedOf(p), c.whole)
			}
		})
	}
}
