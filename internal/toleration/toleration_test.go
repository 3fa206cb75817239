package toleration_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/internal/toleration"
)

func ExampleCovers() {
	gpu := corev1.Taint{Key: "gpu", Value: "big", Effect: corev1.TaintEffectNoSchedule}
	fmt.Println(toleration.Covers(nil, gpu))
	fmt.Println(toleration.Covers([]corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}, gpu))
	// Output:
	// false
	// true
}

func TestCovers(t *testing.T) {
	gpu := corev1.Taint{Key: "gpu", Value: "3", Effect: corev1.TaintEffectNoSchedule}
	for _, c := range []struct {
		name string
		t    corev1.Toleration
		want bool
	}{
		{"equal", corev1.Toleration{Key: "gpu", Operator: "Equal", Value: "3", Effect: "NoSchedule"}, true},
		{"no operator is Equal", corev1.Toleration{Key: "gpu", Value: "3"}, true},
		{"another value", corev1.Toleration{Key: "gpu", Value: "4"}, false},
		{"another effect", corev1.Toleration{Key: "gpu", Operator: "Exists", Effect: "NoExecute"}, false},
		{"another key", corev1.Toleration{Key: "cpu", Operator: "Exists"}, false},
		{"everything", corev1.Toleration{Operator: "Exists"}, true},
		{"a comparison", corev1.Toleration{Key: "gpu", Operator: "Gt", Value: "2"}, false},
		{"no operator at all", corev1.Toleration{Key: "gpu", Operator: "exists"}, false},
	} {
		require.Equal(t, c.want, toleration.Covers([]corev1.Toleration{{Key: "other"}, c.t}, gpu), c.name)
	}
}
