package scheduling_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling"
)

// Pods that kube-scheduler cannot tell apart are in one class, unless the caller has rules about
// their names.
func TestPodsKeptApart(t *testing.T) {
	var s scheduling.Snapshot
	for i := range 6 {
		s.Pods = append(s.Pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("pod-%d", i), Annotations: map[string]string{"workload": []string{"web", "queue"}[i%2]}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1")},
			}}}},
		})
	}
	together, err := scheduling.Compile(s, nil)
	require.NoError(t, err)
	require.Len(t, together.Classes, 1)
	apart, err := scheduling.Compile(s, &scheduling.Options{Apart: func(pod *corev1.Pod) string { return pod.Annotations["workload"] }})
	require.NoError(t, err)
	require.Len(t, apart.Classes, 2)
	for k, c := range apart.Classes {
		require.Equal(t, fmt.Sprintf("pod-%d", k), c.Pods[0].Name, "in the order of their first pods")
		require.Len(t, c.Pods, 3)
	}
}
