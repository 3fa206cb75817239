package rules_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/constraint"
)

// retired refuses pods with the label "retired". A constraint is asked for each pod, so it may read anything of it.
func retired(pod *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
	if pod.Labels["retired"] == "true" {
		return required, &scheduling.Reason{Stage: scheduling.StagePod, Detail: "it is retired"}
	}
	return required, nil
}

// noSpot keeps the pods of the shop off spot.
func noSpot() scheduling.Constraint {
	inShop := func(pod *corev1.Pod) bool { return pod.Namespace == "shop" }
	return constraint.Named("no spot in the shop", constraint.Require(inShop, requirements.MustParse("karpenter.sh/capacity-type!=spot")))
}

// Constraints of one's own take part in planning as those of manifests do, and their names stand in reasons.
func TestConstraintsOfOnesOwn(t *testing.T) {
	own := market().Constrain(constraint.Named("office", constraint.Func(retired)), noSpot())
	plan := own.Add(ruletest.Deployment("shop/web", 2).Requests("cpu", "1"), ruletest.Pod("shop/a-old").Requests("cpu", "1").Label("retired", "true")).Plan(t)
	plan.Pods("shop/web-*").LandOn(ruletest.Place{CapacityType: "on-demand"})
	plan.Pods("shop/a-old").AreRefused(ruletest.Refusal{Stage: scheduling.StagePod, Text: `constraint "office": it is retired`})
	own.Add(ruletest.Pod("batch/etl").Requests("cpu", "1")).Plan(t).Pods("batch/etl").LandOn(ruletest.Place{CapacityType: "spot"})
}

// keepsAway makes a pod keep the shop's web pods out of its zone.
func keepsAway(spec *corev1.PodSpec) {
	spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}}}}
}
