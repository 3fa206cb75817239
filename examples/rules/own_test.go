package rules_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// office is a constraint of the team's own: pods of one namespace stay off spot, and those with the label "retired" go
// nowhere.
type office struct{ namespace string }

func (o office) Narrow(pod *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
	if pod.Labels["retired"] == "true" {
		return required, &scheduling.Reason{Stage: scheduling.StagePod, Detail: "the office has retired it"}
	}
	if pod.Namespace != o.namespace {
		return required, nil
	}
	return required.Intersect(requirements.AnyOf(requirements.MustParse("karpenter.sh/capacity-type!=spot"))), nil
}

// A constraint of one's own takes part in planning as those of manifests do.
func TestAConstraintOfOnesOwn(t *testing.T) {
	own := market().Constrain(office{"shop"})
	plan := own.Add(ruletest.Deployment("shop/web", 2).Requests("cpu", "1"), ruletest.Pod("shop/old").Label("retired", "true")).Plan(t)
	plan.Pods("shop/web-*").LandOn(ruletest.Place{CapacityType: "on-demand"})
	plan.Pods("shop/old").AreRefused(ruletest.Refusal{Stage: scheduling.StagePod, Text: "the office has retired it"})
	own.Add(ruletest.Pod("batch/etl").Requests("cpu", "1")).Plan(t).Pods("batch/etl").LandOn(ruletest.Place{CapacityType: "spot"})
}

// keepsAway makes a pod keep the shop's web pods out of its zone.
func keepsAway(spec *corev1.PodSpec) {
	spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}}}}
}
