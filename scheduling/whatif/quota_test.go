package whatif_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// A replacement counts towards a quota beside the node that it replaces, because both live for a while, and a later version of the cluster has
// both as well.
func TestReplacementsCountBesideTheOldNode(t *testing.T) {
	in := func(zone string, limit corev1.ResourceName, most string) capacityquota.Quota {
		return capacityquota.Quota{
			Name: zone + " " + string(limit), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelTopologyZone: zone}},
			Limits: corev1.ResourceList{limit: resource.MustParse(most)},
		}
	}
	for name, c := range map[string]struct {
		quotas []capacityquota.Quota
		zone   string // of the replacement; empty for none
	}{
		"no quota":                         {nil, "z1"},
		"room for one more":                {[]capacityquota.Quota{in("z1", capacityquota.Nodes, "2")}, "z1"},
		"none in the zone":                 {[]capacityquota.Quota{in("z1", capacityquota.Nodes, "1")}, "z2"},
		"exceeded in the zone":             {[]capacityquota.Quota{in("z1", capacityquota.Nodes, "0")}, "z2"},
		"cores in the zone":                {[]capacityquota.Quota{in("z1", corev1.ResourceCPU, "9")}, "z2"},
		"enough cores":                     {[]capacityquota.Quota{in("z1", corev1.ResourceCPU, "10")}, "z1"},
		"both zones":                       {[]capacityquota.Quota{in("z1", capacityquota.Nodes, "1"), in("z2", corev1.ResourceCPU, "1")}, ""},
		"everywhere":                       {[]capacityquota.Quota{{Name: "all", Limits: corev1.ResourceList{capacityquota.Nodes: resource.MustParse("1")}}}, ""},
		"a resource that nothing here has": {[]capacityquota.Quota{{Name: "gpus", Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("0")}}}, "z1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod("a", "n1", "1")
			s := snapshot([]*corev1.Node{node("n1", "z1", "8")}, p)
			s.Quotas = c.quotas
			at, err := whatif.Compile(s, nil)
			require.NoError(t, err)
			a := at.Ask(t.Context(), whatif.Question{Remove: []string{"n1"}, Pods: []*corev1.Pod{p}, MaxNodes: 1})
			require.Equal(t, c.zone != "", a.OK(), a.Why)
			if a.OK() {
				require.Len(t, a.Bought, 1)
				assert.Equal(t, c.zone, a.Bought[0].Labels[corev1.LabelTopologyZone])
			}
			b := at.Rebase().Ask(t.Context(), whatif.Question{Remove: []string{"n1"}, Pods: []*corev1.Pod{p}, MaxNodes: 1})
			assert.Equal(t, a.OK(), b.OK())
		})
	}
}

// What one answer buys counts in the next question, and what has left does not.
func TestVersionsCountTowardsQuotas(t *testing.T) {
	pods := []*corev1.Pod{pod("a", "n1", "7"), pod("b", "n2", "7"), pod("c", "", "7"), pod("d", "", "7")}
	s := snapshot([]*corev1.Node{node("n1", "z1", "8"), node("n2", "z1", "8")}, pods...)
	s.Quotas = []capacityquota.Quota{{Name: "all", Limits: corev1.ResourceList{capacityquota.Nodes: resource.MustParse("3")}}}
	at, err := whatif.Compile(s, nil)
	require.NoError(t, err)
	replaced := at.Ask(t.Context(), whatif.Question{Remove: []string{"n1"}, Pods: pods[:1], MaxNodes: 1})
	require.True(t, replaced.OK(), replaced.Why)
	again := replaced.After().Ask(t.Context(), whatif.Question{Remove: []string{"n2"}, Pods: pods[1:2], MaxNodes: 1})
	assert.True(t, again.OK(), "n1 is gone: %s", again.Why)
	bought := at.Ask(t.Context(), whatif.Question{Pods: pods[2:3], MaxNodes: 1})
	require.True(t, bought.OK(), bought.Why)
	fourth := bought.After().Ask(t.Context(), whatif.Question{Pods: pods[3:], MaxNodes: 1})
	assert.False(t, fourth.OK(), "three are there")
}
