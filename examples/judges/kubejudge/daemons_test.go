package kubejudge_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
)

func daemonSet(name string, change ...func(*corev1.Pod)) *appsv1.DaemonSet {
	p := pod(name, name, change...)
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: p.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: p.Spec},
		},
	}
}

func TestDaemonsGoWhereTheirControllerPutsThem(t *testing.T) {
	nodes := []*corev1.Node{
		node("plain", "a"),
		node("batch", "b", taint("dedicated", corev1.TaintEffectNoSchedule)),
		node("cordoned", "a", func(n *corev1.Node) {
			n.Spec.Unschedulable = true
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
		}),
	}
	everywhere := daemonSet("agent", func(p *corev1.Pod) {
		p.Spec.Tolerations = append(make([]corev1.Toleration, 0, 20), corev1.Toleration{Operator: corev1.TolerationOpExists})
	})
	sets := []*appsv1.DaemonSet{daemonSet("log"), everywhere, daemonSet("zone-b", selector(corev1.LabelTopologyZone, "b"))}
	before := []*appsv1.DaemonSet{sets[0].DeepCopy(), sets[1].DeepCopy(), sets[2].DeepCopy()}

	got, binds := kubejudge.Daemons(sets, nodes, nil)
	assert.Equal(t, plan("agent-batch", "batch", "agent-cordoned", "cordoned", "log-cordoned", "cordoned", "agent-plain", "plain", "log-plain", "plain"), binds)
	assert.Equal(t, before, sets)
	assert.Empty(t, sets[1].Spec.Template.Spec.Tolerations[:2][1], "nor is what lies behind the slice")

	verdict, err := kubejudge.Judge(t.Context(), kubejudge.Scenario{Nodes: nodes, Pods: got}, binds)
	require.NoError(t, err)
	assert.True(t, verdict.Valid(), verdict.String())

	// The pod of one that runs is there already.
	running := got[3].DeepCopy()
	running.Spec.NodeName = "plain"
	_, binds = kubejudge.Daemons(sets, nodes, []*corev1.Pod{running})
	assert.Equal(t, plan("agent-batch", "batch", "agent-cordoned", "cordoned", "log-cordoned", "cordoned", "log-plain", "plain"), binds)
}

func ExampleDaemons() {
	nodes := []*corev1.Node{node("a1", "zone-a")}
	daemons, first := kubejudge.Daemons([]*appsv1.DaemonSet{daemonSet("agent")}, nodes, nil)
	fmt.Println(len(daemons), first)
	// Output: 1 [default/agent-a1 -> a1]
}
