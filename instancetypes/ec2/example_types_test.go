package ec2_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
)

// What a kubelet reserves and how many pods it takes changes what pods can use of the same machine.
func ExampleKubelet() {
	region, err := catalogue.Load("us-east-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	few := int32(10)
	for _, kubelet := range []ec2.Kubelet{
		{},
		{MaxPods: &few, KubeReserved: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}},
		{EvictionHard: map[string]string{"memory.available": "10%"}},
	} {
		types, err := ec2.Types(region, ec2.Settings{Family: ec2.AL2023, Kubelet: kubelet})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, t := range types {
			if t.Name == "m5.large" {
				left := t.Allocatable()
				fmt.Println(left.Cpu(), left.Memory(), left.Pods())
			}
		}
	}
	// Output:
	// 1930m 6903Mi 29
	// 1800m 6903Mi 10
	// 1930m 6548671692 29
}
