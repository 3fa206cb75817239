package semantics_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/joinery-sdk/joinery/internal/toleration"
)

// The scheduler's own matching is the judge of what is tolerated, its feature gate of comparisons being off.
func TestTolerationsAgreeWithKubernetes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	n, covered := rounds(50_000, 2_000_000), 0
	for range n {
		taint := corev1.Taint{
			Key: pick("gpu", "team", ""), Value: pick("", "1", "2", "a"),
			Effect: corev1.TaintEffect(pick("NoSchedule", "PreferNoSchedule", "NoExecute")),
		}
		var list []corev1.Toleration
		for range rng.IntN(4) {
			list = append(list, corev1.Toleration{
				Key: pick("gpu", "team", ""), Operator: corev1.TolerationOperator(pick("", "Equal", "Exists", "Lt", "Gt", "exists")),
				Value: pick("", "1", "2", "a"), Effect: corev1.TaintEffect(pick("", "NoSchedule", "PreferNoSchedule", "NoExecute")),
			})
		}
		want := schedulinghelper.TolerationsTolerateTaint(klog.Logger{}, list, &taint, false)
		require.Equal(t, want, toleration.Covers(list, taint), "%v of %v", list, taint)
		if want {
			covered++
		}
	}
	require.Greater(t, covered, n/20, "one taint in twenty is tolerated, or the test is hollow")
}
