package taints_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
)

func TestToleratingIsARequirement(t *testing.T) {
	sets := taints.New()
	gpu := corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}
	batch := corev1.Taint{Key: "batch", Effect: corev1.TaintEffectPreferNoSchedule}
	none, both := sets.Intern(nil), sets.Intern([]corev1.Taint{gpu, batch})
	require.Equal(t, both, sets.Intern([]corev1.Taint{batch, gpu}), "a set, in any order")
	require.Equal(t, "gpu=yes:NoSchedule", taints.Text(gpu))
	require.Equal(t, "batch:PreferNoSchedule", taints.Text(batch))

	node := func(id int) requirements.Set {
		return requirements.FromLabels(map[string]string{taints.Key: taints.Value(id)})
	}
	accepts := func(fine requirements.Set, id int) bool { return fine.Compatible(node(id), requirements.Keys{}) }
	hard, _ := sets.Tolerated(nil)
	require.True(t, accepts(hard, none))
	require.False(t, accepts(hard, both))
	hard, soft := sets.Tolerated([]corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}})
	require.True(t, accepts(hard, both))
	require.False(t, accepts(soft, both), "what would rather not is still minded")
	require.True(t, accepts(soft, none))

	sets = taints.New()
	tainted := sets.Intern([]corev1.Taint{gpu})
	hard, soft = sets.Tolerated(nil)
	require.False(t, accepts(hard, tainted) || accepts(soft, tainted), "nothing is tolerated")
}

func TestTaintsOfAStartThatPass(t *testing.T) {
	for key, want := range map[string]bool{
		corev1.TaintNodeNotReady: true, "karpenter.sh/unregistered": true, "karpenter.sh/rebooting": true, "readiness.k8s.io/network": true, "gpu": false, corev1.TaintNodeUnschedulable: false,
	} {
		require.Equal(t, want, taints.Ephemeral(corev1.Taint{Key: key}), key)
	}
}
