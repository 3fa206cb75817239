package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling"
)

// kube-scheduler keeps the capacity for a nominated pod from pods of equal or lower priority, and
// gives it to higher ones.
func TestNominatedPodsGiveWayToHigherPriorities(t *testing.T) {
	priority := func(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &n } }
	large := func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("3", "1Gi") }
	nominated := func(p *corev1.Pod) { p.Status.NominatedNodeName = "n1" }
	for name, c := range map[string]struct {
		other int32
		want  string
	}{"lower": {5, ""}, "equal": {10, ""}, "higher": {20, "other"}} {
		t.Run(name, func(t *testing.T) {
			p := compile(t, scheduling.Snapshot{
				Pods:  []*corev1.Pod{pod("first", large, nominated, priority(10)), pod("other", large, priority(c.other))},
				Nodes: []*corev1.Node{node("n1")},
			})
			placed := ""
			for _, b := range solve(p, nothing).Bindings() {
				placed += b.Pod.Name
			}
			assert.Equal(t, c.want, placed)
		})
	}
}
