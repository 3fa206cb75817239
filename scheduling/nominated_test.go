package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// A nominated pod waits for a victim to end. A pod of a higher priority elsewhere does not give its room to lower ones.
func TestRoomIsKeptBesideHigherPriorities(t *testing.T) {
	priority := func(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &n } }
	cpu := func(s string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list(s, "1Gi") }
	}
	victim := func(p *corev1.Pod) {
		p.Spec.NodeName = "n1"
		now := metav1.Unix(1, 0)
		p.DeletionTimestamp = &now
	}
	unrelated := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"gpu": "yes"} }
	p := compile(t, scheduling.Snapshot{
		Pods: []*corev1.Pod{
			pod("victim", cpu("2"), victim),
			pod("waits", cpu("3"), priority(10), func(p *corev1.Pod) { p.Status.NominatedNodeName = "n1" }),
			pod("low", cpu("1"), priority(5)),
			pod("high", cpu("1"), priority(20), unrelated),
		},
		Nodes: []*corev1.Node{node("n1")},
	})
	placed := ""
	for _, b := range solve(p, nothing).Bindings() {
		placed += b.Pod.Name + " -> " + b.Node + ";"
	}
	assert.Empty(t, placed, "kube-scheduler keeps n1 for waits")
}

// A nominated pod is not there yet, so no affinity and no minimum of a spread may count it.
func TestNominatedPodsAreNotThereYet(t *testing.T) {
	p := compile(t, scheduling.Snapshot{
		Pods: []*corev1.Pod{
			pod("waits", func(p *corev1.Pod) {
				p.Labels, p.Status.NominatedNodeName = map[string]string{"app": "waits"}, "n1"
				p.Spec.Containers[0].Resources.Requests = list("400", "1Gi") // it cannot be bound first
			}),
			pod("beside", func(p *corev1.Pod) {
				p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
					{TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "waits"}}},
				}}}
			}),
		},
		Nodes: []*corev1.Node{node("n1"), node("n2")},
	})
	placed := ""
	for _, b := range solve(p, nothing).Bindings() {
		placed += b.Pod.Name + " -> " + b.Node + ";"
	}
	assert.Empty(t, placed)
}
