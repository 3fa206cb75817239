package eviction_test

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
)

// A refusal tells a pod that may go later from one that no waiting helps.
func ExampleRefusal() {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	busy := eviction.NewBudgets([]*policyv1.PodDisruptionBudget{b}).Check(pod())
	fmt.Println(busy.Budgets, "for good:", busy.Always)

	strict := b.DeepCopy()
	none := intstr.FromInt32(0)
	strict.Spec.MaxUnavailable = &none
	never := eviction.NewBudgets([]*policyv1.PodDisruptionBudget{strict}).Check(pod())
	fmt.Println(never.Text, "- for good:", never.Always)
	// Output:
	// [shop/web] for good: false
	// PodDisruptionBudget shop/web allows 0 disruptions - for good: true
}

// A job that needs eight pods can spare two of ten.
func ExampleGroup() {
	g := eviction.Group{Name: "lab/train", Member: func(p *corev1.Pod) bool { return p.Labels["job"] == "train" }, Minimum: 8}
	fmt.Println(g.Spare(10), g.Spare(8))
	g.Whole = true
	fmt.Println(g.Spare(10))
	// Output:
	// 2 0
	// 0
}
