package topology_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
)

// A ratio that makes no sense is the pod's fault, told with what would do.
func TestMalformedRatios(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "want a label key, a colon and shares",
		"karpenter.sh/capacity-type":           "want a label key, a colon and shares",
		"karpenter.sh/capacity-type: spot":     `"spot": want a value and its share`,
		"karpenter.sh/capacity-type: spot=-1":  `"spot=-1": want a value and its share`,
		"karpenter.sh/capacity-type: a=1, a=2": `"a" has two shares`,
		"karpenter.sh/capacity-type: a=0, b=0": "the shares are all 0",
		"kubernetes.io/hostname: a=1":          "nodes have no names yet",
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", Annotations: map[string]string{podclass.RatioAnnotation: text}}}
		_, errs := topology.New(topology.Input{Classes: []topology.Class{{Pod: pod, Count: 1}}})
		require.Len(t, errs, 1)
		require.ErrorContains(t, errs[0].Err, want, text)
		require.ErrorContains(t, errs[0].Err, "metadata.annotations[joinery-sdk.dev/ratio]: ")
	}
}
