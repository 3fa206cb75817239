package kube_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
)

func ExampleFromExpressions() {
	s, err := kube.FromExpressions([]corev1.NodeSelectorRequirement{
		{Key: "cpu", Operator: corev1.NodeSelectorOpGt, Values: []string{"4"}},
		{Key: "gpu", Operator: corev1.NodeSelectorOpDoesNotExist},
	})
	fmt.Println(s, err)
	// Output: cpu>=5, !gpu <nil>
}

func ExampleFromNodeSelector() {
	alts, err := kube.FromNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}},
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "gpu", Operator: corev1.NodeSelectorOpExists}}},
	}})
	fmt.Println(alts, err)
	// Output: zone in (a) or gpu <nil>
}

func ExampleFromPod() {
	pod, err := kube.FromPod(&corev1.PodSpec{NodeSelector: map[string]string{"arch": "arm64"}})
	fmt.Println(pod.Required, len(pod.Preferred), err)
	// Output: arch in (arm64) 0 <nil>
}

func ExampleExpressions() {
	list, ok := kube.Expressions(requirements.MustParse("zone in (a,b), cpu>=5"))
	for _, e := range list {
		fmt.Println(e.Key, e.Operator, e.Values)
	}
	fmt.Println(ok)
	// Output:
	// cpu Gt [4]
	// zone In [a b]
	// true
}
