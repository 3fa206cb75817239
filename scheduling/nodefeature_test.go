package scheduling_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/internal/nodefeature"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Nodes that a pool buys are assumed to declare what the newest node of the pool declares. Without
// such a node, they are assumed to declare what pods need, and a note says so.
func TestFeaturesOfNodesToCome(t *testing.T) {
	own := func(p *corev1.Pod) { p.Spec.HostNetwork, p.Spec.HostUsers = true, new(false) }
	of := func(pool string, age time.Duration, features map[string]string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Labels[nodepool.LabelKey] = pool
			n.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).Add(-age))
			n.Status.NodeInfo.KubeletVersion = "v1.36.1"
			nodefeature.Declare(n, features)
		}
	}
	if known := node("n", of("default", 0, nodefeature.All())); len(nodefeature.Declared(known)) == 0 {
		t.Skip("this version of the API has no declared features")
	}
	const note = "pool default: its nodes are assumed to declare the node feature UserNamespacesHostNetworkSupport, which pods need; it has no node that confirms this"
	for name, c := range map[string]struct {
		nodes []*corev1.Node
		comes bool
		note  bool
	}{
		"no node":                      {nil, true, true},
		"a node that does not tell":    {[]*corev1.Node{node("n1", func(n *corev1.Node) { n.Labels[nodepool.LabelKey] = "default" })}, true, true},
		"another pool's node":          {[]*corev1.Node{node("n1", of("other", 0, nil))}, true, true},
		"a node that declares it":      {[]*corev1.Node{node("n1", of("default", 0, nodefeature.All()))}, true, false},
		"a node that does not":         {[]*corev1.Node{node("n1", of("default", 0, nil))}, false, false},
		"the newer one declares it":    {[]*corev1.Node{node("n1", of("default", time.Hour, nil)), node("n2", of("default", 0, nodefeature.All()))}, true, false},
		"the older one declares it":    {[]*corev1.Node{node("n1", of("default", 0, nil)), node("n2", of("default", time.Hour, nodefeature.All()))}, false, false},
		"one of two pools declares it": {[]*corev1.Node{node("n1", of("other", 0, nodefeature.All())), node("n2", of("default", 0, nil))}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0", own), pod("web-1")}, Nodes: c.nodes, Pools: []scheduling.Pool{pool("default")}})
			require.Len(t, p.Classes, 2, "pods that need different features are of different classes")
			assert.Equal(t, c.comes, p.Classes[0].Required.Compatible(p.Shapes[0].Labels, requirements.Keys{}))
			assert.True(t, p.Classes[1].Required.Compatible(p.Shapes[0].Labels, requirements.Keys{}))
			assert.Equal(t, c.note, slices.Contains(p.Notes, note), p.Notes)

			daemons := []*appsv1.DaemonSet{daemonSet("agent", "1")}
			daemons[0].Spec.Template.Spec.HostNetwork, daemons[0].Spec.Template.Spec.HostUsers = true, new(false)
			with := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-1")}, Nodes: c.nodes, Pools: []scheduling.Pool{pool("default")}, DaemonSets: daemons})
			assert.Equal(t, c.note, slices.Contains(with.Notes, note), with.Notes)
			assert.Equal(t, c.comes, with.Shapes[0].Free[0] < p.Shapes[0].Free[0], "a DaemonSet takes room only where its pod can run")
		})
	}
}
