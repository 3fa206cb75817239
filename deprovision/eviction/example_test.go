package eviction_test

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

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
