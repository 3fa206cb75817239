package rulecost_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/rulecost"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Terms are alternatives. One that requires nothing else allows every node without its rule, so the pod requires nothing.
// A term that is written without expressions matches no node, so it stays.
func TestTermWithoutItsLastExpressionAllowsEveryNode(t *testing.T) {
	term := func(keys ...string) (out corev1.NodeSelectorTerm) {
		for _, key := range keys {
			out.MatchExpressions = append(out.MatchExpressions, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpExists})
		}
		return out
	}
	for name, c := range map[string]struct{ terms, want []corev1.NodeSelectorTerm }{
		"the only one":    {[]corev1.NodeSelectorTerm{term("disk")}, nil},
		"one of two":      {[]corev1.NodeSelectorTerm{term("disk"), term("rack")}, nil},
		"a part of it":    {[]corev1.NodeSelectorTerm{term("disk", "rack")}, []corev1.NodeSelectorTerm{term("rack")}},
		"beside an empty": {[]corev1.NodeSelectorTerm{term(), term("disk")}, nil},
		"of another key":  {[]corev1.NodeSelectorTerm{term(), term("rack")}, []corev1.NodeSelectorTerm{term(), term("rack")}},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: c.terms}}}
		lifted := rulecost.Rule{Kind: rulecost.Selector, Owner: plan.WorkloadOf(pod), Key: "disk"}.Lift(scheduling.Snapshot{Pods: []*corev1.Pod{pod}})
		var got []corev1.NodeSelectorTerm
		if required := lifted.Pods[0].Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			got = required.NodeSelectorTerms
		}
		assert.Equal(t, c.want, got, name)
	}
}
