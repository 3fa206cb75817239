package constraint_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/constraint"
)

func pod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", Labels: map[string]string{"app": "web"}}}
}

func ExampleFunc() {
	retired := constraint.Func(func(p *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
		if p.Labels["app"] == "web" {
			return required, &scheduling.Reason{Stage: scheduling.StagePod, Detail: "it is retired"}
		}
		return required, nil
	})
	o := scheduling.Options{Constraints: []scheduling.Constraint{constraint.Named("office", retired)}}
	_, refusal := o.Narrowed(pod(), requirements.AnyOf(requirements.Set{}))
	fmt.Println(refusal)
	// Output: constraint "office": it is retired
}

func ExampleRequire() {
	inShop := func(p *corev1.Pod) bool { return p.Namespace == "shop" }
	safe := constraint.Require(inShop, requirements.MustParse("karpenter.sh/capacity-type=on-demand"))
	o := scheduling.Options{Constraints: []scheduling.Constraint{safe}}
	left, _ := o.Narrowed(pod(), requirements.AnyOf(requirements.MustParse("team=shop")))
	fmt.Println(left)
	// Output: karpenter.sh/capacity-type in (on-demand), team in (shop)
}

func ExampleNamed() {
	fmt.Println(constraint.Named("office", constraint.Func(nil)))
	// Output: constraint "office"
}
