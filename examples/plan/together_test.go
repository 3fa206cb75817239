package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Nodes without the label of a set take none of its pods, whichever label it is: two nodes without it are not in one domain.
func TestSetsNeedTheirLabel(t *testing.T) {
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, "example.com/rack"} {
		for _, labelled := range []bool{false, true} {
			var s scheduling.Snapshot
			for i := range 2 {
				n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{corev1.LabelHostname: fmt.Sprintf("n%d", i)}}}
				if labelled {
					n.Labels[key] = "a"
				}
				n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("10")}
				n.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: "True"}}
				s.Nodes = append(s.Nodes, n)
			}
			s.Pods = pods(2)
			for _, p := range s.Pods {
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
			}
			p, err := plan.Make(t.Context(), s, &plan.Options{Scheduling: &scheduling.Options{
				Together: func(*corev1.Pod) (set, label string) { return "web", key },
			}})
			require.NoError(t, err)
			placed := 0
			for range p.Bindings() {
				placed++
			}
			want := 0
			if labelled {
				want = 2
			}
			assert.Equal(t, want, placed, "%s, labelled %t", key, labelled)
		}
	}
}
