package scenario_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
)

func ExampleDiverse() {
	for _, p := range scenario.Diverse(5, 42) {
		fmt.Println(p.Name)
	}
	// Output:
	// plain-0
	// zones-1
	// hosts-2
	// near-3
	// apart-4
}

func ExampleLinear() {
	for _, t := range scenario.Linear(2) {
		fmt.Printf("%s %s CPU, $%.2f, %d offerings\n", t.Name, t.Resources.Cpu(), t.Offerings[0].Price, len(t.Offerings))
	}
	// Output:
	// linear-1 1 CPU, $0.31, 5 offerings
	// linear-2 2 CPU, $0.63, 5 offerings
}

func ExampleGenerate() {
	s := scenario.Generate(1, scenario.Options{Pods: 40})
	again := scenario.Generate(1, scenario.Options{Pods: 40})
	fmt.Println(s.String() == again.String(), len(s.Pods))
	// Output: true 40
}

func ExampleTangled() {
	fmt.Println(len(scenario.Tangled(1).Pods))
	// Output: 120
}

func ExampleMinimize() {
	s := scenario.Generate(1, scenario.Options{Pods: 40})
	small := scenario.Minimize(s, func(s scenario.Scenario) bool { return len(s.Pods) > 2 })
	fmt.Println(small)
	// Output: seed 1: 3 pods, 0 pools, 0 types, 0 nodes with 0 running pods, 0 daemonsets, 0 claims
}

func ExampleScenario_Planned() {
	s := scenario.Scenario{Pods: scenario.Usual(1, 1)}
	cluster, order, err := s.Planned(context.Background(), []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "new-0"}}}, nil,
		[]kubejudge.Binding{{Pod: types.NamespacedName{Name: s.Pods[0].Name}, Node: "new-0"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	verdict, err := kubejudge.Judge(context.Background(), cluster, order)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(verdict.Refused[0].Message)
	// Output: Too many pods, Insufficient cpu, Insufficient memory
}

func ExampleInstanceTypes() {
	for _, it := range scenario.InstanceTypes(scenario.Cloud()[:2]) {
		allocatable := it.Allocatable()
		fmt.Println(it.Name, allocatable.Cpu(), len(it.Offerings))
	}
	// Output:
	// c.2 1930m 6
	// c.4 3920m 6
}

func ExampleUsual() {
	fmt.Println(len(scenario.Usual(100, 1)), len(scenario.Deployments(100, 1)), len(scenario.Distinct(100, 1)))
	// Output: 100 100 100
}

func ExampleCatalogueJSON() {
	text, err := scenario.CatalogueJSON([]scenario.Type{{Name: "tiny", Architecture: "arm64"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(text))
	// Output:
	// [
	//   {
	//     "name": "tiny",
	//     "architecture": "arm64",
	//     "operatingSystems": null,
	//     "resources": null,
	//     "offerings": null
	//   }
	// ]
}
