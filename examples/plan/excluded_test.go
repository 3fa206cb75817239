package plan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// A refusal names the requirement of the pod that excludes every type, and the fix without it is offered: where the only large enough type lacks a
// label that the pod asks for, and where another requirement is met by the types that lack its label.
func TestWhatExcludesATypeIsNamed(t *testing.T) {
	sized := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("50")}
	}
	types := []instancetypes.InstanceType{
		instancetypes.New("small", map[string]string{"disk": "ssd"}, sized("4"), instancetypes.Offer("a", "on-demand", 0.2), instancetypes.Offer("b", "on-demand", 0.2)),
		instancetypes.New("large", map[string]string{"generation": "2"}, sized("16"), instancetypes.Offer("b", "on-demand", 0.8)),
	}
	ask := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	for name, c := range map[string]struct {
		cpu      string
		asks     []corev1.NodeSelectorRequirement
		key, why string
	}{
		"a label that the large type lacks": {"9", []corev1.NodeSelectorRequirement{ask("disk", corev1.NodeSelectorOpExists)}, "disk", "large would fit, but is excluded by the pod's disk"},
		"another value":                     {"9", []corev1.NodeSelectorRequirement{ask("generation", corev1.NodeSelectorOpIn, "1")}, "generation", "it requires generation in (1)"},
		"types without a label are asked for": {
			"1",
			[]corev1.NodeSelectorRequirement{ask("disk", corev1.NodeSelectorOpDoesNotExist), ask(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "c")},
			corev1.LabelTopologyZone,
			"it requires topology.kubernetes.io/zone in (c)",
		},
		"types without a value are asked for": {
			"1",
			[]corev1.NodeSelectorRequirement{ask("disk", corev1.NodeSelectorOpNotIn, "ssd"), ask(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "c")},
			corev1.LabelTopologyZone,
			"it requires topology.kubernetes.io/zone in (c)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(c.cpu)}}}}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: c.asks}}}}}
			made, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: []*corev1.Pod{p}, Pools: []scheduling.Pool{{NodePool: nodepool.New("default"), Types: types}}}, nil)
			require.NoError(t, err)
			refused := 0
			for r := range made.Refusals(t.Context()) {
				refused++
				assert.Contains(t, r.Reasons[0].String(), c.why)
				var dropped []string
				for _, f := range r.Fixes {
					if f.Kind == plan.DropSelector {
						dropped = append(dropped, f.Key)
					}
				}
				assert.Equal(t, []string{c.key}, dropped)
			}
			assert.Equal(t, 1, refused)
		})
	}
}
