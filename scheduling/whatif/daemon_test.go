package whatif_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// agent is a DaemonSet whose pods bear the label that constraints of other pods select.
func agent(change ...func(*corev1.Pod)) *appsv1.DaemonSet {
	p := pod("", "", "100m", change...)
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent"}}
	d.Spec.Template.Labels, d.Spec.Template.Spec = p.Labels, p.Spec
	return d
}

func TestDaemonsOfNewNodesCount(t *testing.T) {
	for _, c := range []struct {
		name      string
		moves, by func(*corev1.Pod)
		bought    bool
	}{
		{"anti-affinity keeps a pod off its daemon", apart, labelled("web"), false},
		{"anti-affinity of the daemon keeps a pod off", labelled("web"), func(p *corev1.Pod) { labelled("agent")(p); apart(p) }, false},
		{"affinity finds its daemon", func(p *corev1.Pod) { labelled("job")(p); near(p) }, labelled("web"), true},
		{"affinity finds no daemon", func(p *corev1.Pod) { labelled("job")(p); near(p) }, labelled("agent"), false},
		{"a spread counts its daemon", spread(corev1.LabelHostname), labelled("web"), false},
		{"a daemon that is not selected", apart, labelled("agent"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pod("a", "n1", "1", c.moves)
			s := snapshot([]*corev1.Node{node("n1", "z1", "4"), node("n2", "z2", "0")}, p)
			s.DaemonSets = append(s.DaemonSets, agent(c.by))
			cluster, err := whatif.Compile(s, nil)
			require.NoError(t, err)
			q := whatif.Question{Remove: []string{"n1"}, Pods: s.Pods, MaxNodes: 1}
			a := cluster.Ask(t.Context(), q)
			assert.Equal(t, c.bought, a.OK(), "%v", a.Bought)
			if !a.OK() {
				return
			}
			// What was bought can be given back, and the next answer is the same.
			next := a.After()
			back := next.Ask(t.Context(), whatif.Question{Remove: []string{a.Bought[0].Name}, Pods: s.Pods, MaxNodes: 1})
			assert.True(t, back.OK())
			again := cluster.Ask(t.Context(), q)
			assert.Equal(t, a.Bought[0].Type, again.Bought[0].Type)
		})
	}
}

// Pods that differ only in a label that a daemon keeps away from are told apart.
func TestDaemonsTellPodsApart(t *testing.T) {
	noisy := func(p *corev1.Pod) { p.Labels = map[string]string{"noisy": "yes"} }
	quiet := func(p *corev1.Pod) { p.Labels = map[string]string{"noisy": "no"} }
	p, q := pod("a", "n1", "1", noisy), pod("b", "n1", "1", quiet)
	daemon := agent(labelled("agent"))
	daemon.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"noisy": "yes"}},
	}}}}
	s := snapshot([]*corev1.Node{node("n1", "z1", "4"), node("n2", "z2", "0")}, p, q)
	s.DaemonSets = append(s.DaemonSets, daemon)
	cluster, err := whatif.Compile(s, nil)
	require.NoError(t, err)
	for _, x := range s.Pods {
		a := cluster.Ask(t.Context(), whatif.Question{Remove: []string{"n1"}, Pods: []*corev1.Pod{x}, MaxNodes: 1})
		assert.Equal(t, x == q, a.OK(), x.Name)
	}
}
