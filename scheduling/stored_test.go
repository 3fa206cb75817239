package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// A LimitRange acts on pods that are made: those of manifests, and those that move. It does not act
// on stored pods.
func TestLimitRangesActOnPodsThatAreMade(t *testing.T) {
	plain := func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }
	stored := func(p *corev1.Pod) { p.UID = "uid of " + p.UID }
	limits := []*corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "later"}, Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{"cpu": resource.MustParse("3")}}},
	}}}
	s := scheduling.Snapshot{
		Pods: []*corev1.Pod{
			pod("made", plain), pod("pending", plain, stored), pod("runs", plain, on("n1")), pod("moves", plain, stored, on("gone")),
		},
		Nodes:       []*corev1.Node{node("n1"), node("gone", func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{} })},
		LimitRanges: limits,
	}
	p := compile(t, s)
	cpu := func(name string) string {
		at, ok := p.Class("shop", name)
		require.True(t, ok)
		return p.Classes[at].Requests.Cpu().String()
	}
	assert.Equal(t, "3", cpu("made"))
	assert.Equal(t, "0", cpu("pending"))
	assert.Equal(t, "3", cpu("moves"))
	assert.Equal(t, int64(4000), p.Existing[0].Free[0], "what runs there takes nothing")

	c, err := whatif.Compile(s, nil)
	require.NoError(t, err)
	assert.Equal(t, int64(3000), c.Needs(s.Pods[2:3])[0], "what it takes where it goes")
	assert.Equal(t, int64(0), c.Needs(s.Pods[1:2])[0])
	assert.Equal(t, int64(4000), c.FreeOf([]string{"n1"})[0][0])
}
