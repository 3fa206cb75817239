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

// 1,000 pods in 50 groups of 20, where all fit, and where a limit leaves room for half of them.
func BenchmarkGangs(b *testing.B) {
	for name, limit := range map[string]int64{"all fit": 0, "half of them": 700} {
		b.Run(name, func(b *testing.B) {
			var pods []*corev1.Pod
			var groups []gang.Group
			for i := range 50 {
				list := job(fmt.Sprintf("job-%d", i), 20, fmt.Sprint(1+i%3))
				pods, groups = append(pods, list...), append(groups, jobs(fmt.Sprintf("job-%d", i))...)
			}
			s := scheduling.Snapshot{Pods: pods, Pools: []scheduling.Pool{limited(limit, "a", "b")}}
			for b.Loop() {
				p, err := plan.Make(b.Context(), s, &plan.Options{Groups: groups})
				require.NoError(b, err)
				for name, n := range placedOf(p) {
					require.Equal(b, 20, n, name)
				}
				require.Equal(b, limit == 0, len(p.Unplaced()) == 0)
			}
		})
	}
}
